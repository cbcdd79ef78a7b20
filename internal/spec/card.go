package spec

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// HasTokenPrefix reports whether s starts like a payment token of the
// client-side payment element.
func HasTokenPrefix(s string) bool {
	return IsSingleUse(s) || strings.HasPrefix(s, "pgpm_")
}

// IsSingleUse reports whether a token pays once; the other kind is reusable.
func IsSingleUse(token string) bool { return strings.HasPrefix(token, "pgct_") }

const noCardData = "card data must never go to the API, which would bring you and the gateway under PCI DSS: " +
	"send the token that the client-side payment element made"

// CardData reports whether a member is card data by its name, its value or both, for
// client, mock gateway and journal. text is the string, or the JSON of anything else.
func CardData(name string, kind jsontext.Kind, text string) bool {
	switch class := classOf(name); {
	case class == cardMember:
		return kind != 'n'
	case class == cardObject && kind == '{', class == expiryMember && kind == '"' && isExpiry(text):
		return true
	default:
		return HoldsCardNumber(name) || holdsNumber(name, kind, text)
	}
}

// holdsNumber reports whether the value of a member called name is or holds a
// card number.
func holdsNumber(name string, kind jsontext.Kind, text string) bool {
	switch {
	case len(text) < minDigits || kind != '"' && kind != '0':
		return false
	case kind == '0':
		if strings.ContainsAny(text, ".eE") {
			v, ok := jsonread.Integer(text)
			if !ok {
				return false
			}
			text = strconv.FormatInt(v, 10)
		}
		return HoldsCardNumber(text) && !isAmount(name) && !excused(name, text)
	default:
		return HoldsCardNumber(text) && !excused(name, text)
	}
}

// excused reports whether digits are something else by their member's name.
// References, SKUs and ids may be any number. Phones and documents have at most 13
// digits, a CNPJ 14: a longer one is a card.
func excused(name, text string) bool {
	if !digits(text) {
		return false
	}
	switch name {
	case "idempotency_key", "sku", "id", "tracking_code", "cursor", "reference", "ref", "ean", "gtin", "upc", "barcode", "nsu", "tid":
		return true
	case "phone", "number", "document", "documentNumber", "document_number":
		return len(text) <= 13
	}
	return strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "Id") || strings.HasSuffix(name, "_ref") || strings.HasSuffix(name, "Ref")
}

// isAmount reports whether a number is an amount by its member's name.
func isAmount(name string) bool {
	switch name {
	case "amount", "price", "unitPrice", "value", "total", "quantity":
		return true
	}
	return strings.HasSuffix(name, "_amount") || strings.HasSuffix(name, "Amount") || strings.HasSuffix(name, "_price")
}

// isExpiry reports whether a text is a month and a year as cards print them:
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

// class is what a member's name says of it.
type class uint8

const (
	noCard       class = iota
	cardMember         // its value is card data
	cardObject         // its members are
	expiryMember       // it is where it is a month and a year
)

// IsCardObject reports whether all members of an object called name are card
// data.
func IsCardObject(name string) bool { return classOf(name) == cardObject }

// cardNames are the names of card data, without case, underscores, dashes and spaces.
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

type names struct {
	class map[string]class
	begin [26][26]uint32 // by the first two letters, the bits of the third: few other names begin so
}

func readNames(lists map[class]string) *names {
	n := &names{class: map[string]class{}}
	for class, list := range lists {
		for name := range strings.FieldsSeq(list) {
			n.class[name] = class
			n.begin[name[0]-'a'][name[1]-'a'] |= 1 << (name[2] - 'a')
		}
	}
	return n
}

// mayBeCard reports whether a member may be card data by its name alone.
func mayBeCard(name string) bool {
	if len(name) >= minDigits || len(name) < 3 {
		return true
	}
	a, b, c := name[0]-'a', name[1]-'a', name[2]-'a'
	return a >= 26 || b >= 26 || c >= 26 || cardNames.begin[a][b]&(1<<c) != 0
}

// classOf judges a name without its case, underscores, dashes and spaces.
func classOf(name string) class {
	if !mayBeCard(name) {
		return noCard
	}
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
	return cardNames.class[string(short)]
}

// checkCardData reports what is card data among the nodes from i to end, see [CardData].
// Elements of an array have the array's name.
func (c *checker) checkCardData(array string, i, end int) {
	for i < end {
		name := cmp.Or(c.doc.Name(i), array)
		switch {
		case c.doc.Kind(i) != '[' && len(c.doc.Raw(i)) < minDigits && !mayBeCard(name): // most members
			i++
		case c.isCard(name, i):
			path := MaskCardNumbers(c.doc.Path(i)) // a name may be one
			c.found = append(c.found, Violation{Field: path, Message: noCardData, Code: CodeInvalid})
			i = c.doc.End(i)
		case c.doc.Kind(i) == '[':
			c.checkCardData(name, i+1, c.doc.End(i))
			i = c.doc.End(i)
		default:
			i++ // the first member, of an object
		}
	}
}

// isCard reports whether a member is card data. An array is judged by its
// elements.
func (c *checker) isCard(name string, at int) bool {
	switch kind := c.doc.Kind(at); kind {
	case '"':
		return CardData(name, kind, c.doc.Text(at))
	case '[':
		return HoldsCardNumber(name)
	default:
		return CardData(name, kind, c.doc.Raw(at))
	}
}
