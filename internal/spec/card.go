package spec

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// HasTokenPrefix reports whether s has a prefix of the client-side payment
// element's tokens.
func HasTokenPrefix(s string) bool {
	return IsSingleUse(s) || strings.HasPrefix(s, "pgpm_")
}

// IsSingleUse reports whether a token can be charged only once. Other tokens
// are reusable.
func IsSingleUse(token string) bool { return strings.HasPrefix(token, "pgct_") }

const noCardData = "contains card data, which must never be sent to the API because it would bring you and the gateway into PCI DSS scope: " +
	"send a token from the client-side payment element instead"

// CardData reports whether a member is card data, judged by its name and its
// value. The client, the mock gateway and the journal share it. text is the
// value of a string, or the JSON of any other kind.
func CardData(name string, kind jsontext.Kind, text string) bool {
	return CardMember("", name, kind, text)
}

// CardMember is [CardData] for a member of the object called parent, which
// decides for a name that says nothing, such as the number of an order.
func CardMember(parent, name string, kind jsontext.Kind, text string) bool {
	switch class := classOf(name); {
	case class == cardMember:
		return kind != 'n'
	case class == cardObject && kind == '{', class == expiryMember && kind == '"' && isExpiry(text):
		return true
	default:
		return ContainsCardNumber(name) || valueIsCard(parent, name, kind, text)
	}
}

// valueIsCard reports whether the value of a member contains a card number.
func valueIsCard(parent, name string, kind jsontext.Kind, text string) bool {
	switch {
	case kind == '"':
		if card, isJSON := embedded(text); isJSON {
			return card
		}
		return len(text) >= minDigits && ContainsCardNumber(text) && !exempt(parent, name, text)
	case kind != '0' || len(text) < minDigits:
		return false
	}
	if strings.ContainsAny(text, ".eE") {
		v, ok := jsonread.Integer(text)
		if !ok {
			return false
		}
		text = strconv.FormatInt(v, 10)
	}
	return ContainsCardNumber(text) && !isAmount(name) && !exempt(parent, name, text)
}

// exempt reports whether digits that look like a card number are allowed under
// this member name. References, SKUs and ids may be any number. Phone numbers
// and documents have at most 13 digits, or 14 for a CNPJ, which isCardNumber
// excludes; a longer value may be a card number.
func exempt(parent, name, text string) bool {
	switch {
	case namesCard(parent):
		return false
	case IsIdentifier(name), isNeutral(name) && IsIdentifier(parent):
		return isToken(text) && !isGrouped(text) && !namesCard(text)
	default:
		return digits(text) && len(text) <= 13 && isPhoneOrDocument(name)
	}
}

// isAmount reports whether a member with this name contains an amount.
func isAmount(name string) bool {
	switch name {
	case "amount", "price", "unitPrice", "value", "total", "quantity":
		return true
	}
	return strings.HasSuffix(name, "_amount") || strings.HasSuffix(name, "Amount") || strings.HasSuffix(name, "_price")
}

// isExpiry reports whether s is an expiry date in a form used for cards:
// 12/29, 12/2029, 12-29, 1229, 2029-12.
func isExpiry(s string) bool {
	s = strings.ReplaceAll(s, " ", "")
	month, year, found := strings.Cut(strings.ReplaceAll(s, "-", "/"), "/")
	if !found && len(s) == 4 {
		month, year = s[:2], s[2:]
	}
	if len(month) == 4 {
		month, year = year, month
	}
	if !digits(month+year) || len(month) < 1 || len(month) > 2 || len(year) != 2 && len(year) != 4 {
		return false
	}
	m, _ := strconv.Atoi(month)
	return m >= 1 && m <= 12
}

// class classifies a member by its name.
type class uint8

const (
	noCard       class = iota
	cardMember         // the value is card data
	cardObject         // all members of the object are card data
	expiryMember       // card data if the value is a month and a year
)

// IsCardObject reports whether all members of an object called name are card
// data.
func IsCardObject(name string) bool { return classOf(name) == cardObject }

// cardNames are the normalized names of card data: lower case, without
// underscores, dashes, spaces and dots.
var cardNames = readNames(map[class]string{
	cardMember: `cardnumber cardno cardnum cardpan ccnumber ccnum ccno creditcardnumber creditcardno debitcardnumber pan
		fpan primaryaccountnumber numerocartao numerodocartao numerotarjeta cvv cvv2 cvc cvc2 csc cvn cvvcode
		cvccode cardcvv cardcvc cccvv cccvc securitycode cardsecuritycode cardcode verificationvalue
		cardverificationvalue cardverificationcode codigoseguranca codigodeseguranca codigoseguridad expmonth
		expyear expirymonth expiryyear expirationmonth expirationyear cardexpmonth cardexpyear
		cardexpirationmonth cardexpirationyear cardexpirymonth cardexpiryyear cardexpiry cardexpiration
		cardexpirydate cardexpirationdate cardexp ccexp ccexpiry validthru track1 track2 track3 track1data
		track2data trackdata magstripe magneticstripe pinblock`,
	cardObject: `card creditcard debitcard paymentcard bankcard carddata carddetails cardinfo creditcarddata cartao
		cartaodecredito cartaocredito tarjeta`,
	expiryMember: `expiry expiration exp expdate expirydate expirationdate validade vencimiento goodthru`,
})

func readNames(lists map[class]string) map[string]class {
	names := map[string]class{}
	for class, list := range lists {
		for name := range strings.FieldsSeq(list) {
			names[name] = class
		}
	}
	return names
}

// classOf normalizes a name and returns its class.
func classOf(name string) class {
	short := make([]byte, 0, 28) // on the stack, unless the name is longer
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			short = append(short, c+'a'-'A')
		case c == '_' || c == '-' || c == ' ' || c == '.':
		default:
			short = append(short, c)
		}
	}
	return cardNames[string(short)]
}

// checkCardData reports the card data in the nodes from i to end; see
// [CardData]. Array elements are judged by the array's name.
func (c *checker) checkCardData(array string, i, end int) {
	for i < end {
		name := cmp.Or(c.doc.Name(i), array)
		switch {
		case c.isCard(name, i):
			path := MaskCardNumbers(shown(c.doc.Path(i))) // a name may be a card number
			c.found = append(c.found, Violation{Field: path, Message: noCardData, Code: CodeInvalid})
			i = c.doc.End(i)
		case c.doc.Kind(i) == '[':
			c.checkCardData(name, i+1, c.doc.End(i))
			i = c.doc.End(i)
		default:
			i++ // descend into an object
		}
	}
}

// isCard reports whether a member is card data. For an array only the name is
// checked here; its elements follow.
func (c *checker) isCard(name string, at int) bool {
	var text string
	kind := c.doc.Kind(at)
	switch kind {
	case '"':
		text = c.doc.Text(at)
	case '[':
		return ContainsCardNumber(name)
	default:
		text = c.doc.Raw(at)
	}
	if isNeutral(name) && len(text) >= minDigits {
		return CardMember(c.parent(at), name, kind, text)
	}
	return CardData(name, kind, text)
}

// parent returns the name of the object that contains a member, or of the array
// that contains the object, with its place: cards[0].
func (c *checker) parent(at int) string {
	path := strings.Split(c.doc.Path(at), ".")
	for i := len(path) - 2; i >= 0; i-- {
		if !digits(path[i]) {
			return path[i]
		}
	}
	return ""
}
