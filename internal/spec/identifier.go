package spec

import (
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// Digits can't say whether they are a card number or an order number, so the
// member's name decides. The name is split into words; orderNumber, order_no and
// numero_pedido are all identifiers. The words are lower case and singular.
var (
	identifierWords = readWords(`id uuid ref reference referencia order pedido orden ord inv invoice fatura factura nota nf nfe sku ean gtin upc
		barcode boleto line linha tracking rastreio rastreamento nsu tid cursor clabe cbu cvu iban idempotency code codigo protocol
		protocolo ticket booking reserva contract contrato subscription transaction transaccion transacao shipment shipping envio cart carrinho
		carrito lot lote serial batch timestamp time ts epoch millis ms nonce correlation trace session`)
	phoneWords = readWords(`phone mobile whatsapp celular telefone telefono document documento`)
	cardWords  = readWords(`card cartao cartoe tarjeta pan credit credito debit debito cc visa master mastercard amex elo
		hipercard diners discover jcb unionpay maestro aura cvv cvc payment pago pagamento`)
	textWords = readWords(`note text texto description descricao descripcion desc comment comentario message mensagem mensaje name
		nome nombre title titulo obs observacao observacion remark label memo detail holder`)
)

type wordSet map[string]bool

func readWords(list string) wordSet {
	set := wordSet{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// splitWords splits a member name at separators and capital letters.
func splitWords(name string) (words []string) {
	start := 0
	add := func(end int) { // adds an empty word between separators
		words = append(words, strings.ToLower(name[start:end]))
		start = end
	}
	for i := range len(name) {
		switch c := name[i]; {
		case isUpper(c):
			if i > 0 && !isUpper(name[i-1]) {
				add(i)
			}
		case !isWord(c) || c == '_':
			add(i)
			start = i + 1
		}
	}
	add(len(name))
	return words
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// IsIdentifier reports whether a member holds identifiers, judged by its name.
func IsIdentifier(name string) bool {
	found := false
	for _, word := range splitWords(name) {
		switch {
		case has(cardWords, word), has(textWords, word):
			return false
		case has(identifierWords, word):
			found = true
		}
	}
	return found
}

// isNeutral reports whether a name says so little that the name around it decides.
func isNeutral(name string) bool { return name == "number" || name == "num" || name == "value" }

// namesCard reports whether a word of s is one for a card or a payment by card.
func namesCard(s string) bool {
	return slices.ContainsFunc(splitWords(s), func(w string) bool { return has(cardWords, w) })
}

// has reports whether set has a word, in the singular or plural.
func has(set wordSet, word string) bool { return set[word] || set[strings.TrimSuffix(word, "s")] }

// isPhoneOrDocument reports whether a member holds a phone number or a document,
// judged by its name.
func isPhoneOrDocument(name string) bool {
	words := splitWords(name)
	is := func(set wordSet) bool { return slices.ContainsFunc(words, func(w string) bool { return has(set, w) }) }
	return !is(cardWords) && !is(textWords) && (isNeutral(name) || is(phoneWords))
}

// isReference reports whether the run of digits s[i:] is a part of a reference:
// shop-4111111111111 or order=4111111111111. A prefix that names a card, such as
// card-, makes it a card number.
func isReference(s string, i int) bool {
	if i < 2 {
		return false
	}
	switch s[i-1] {
	case '-':
		return isPrefix(s[tokenStart(s, i-1) : i-1])
	case ':', '=', '#', '/', '"', '\'':
		return isLabeled(s[:i-1])
	case ' ': // order: 4111111111111
		return strings.IndexByte(":=#", s[i-2]) >= 0 && isLabeled(s[:i-2])
	}
	return false
}

// isLabeled reports whether the last word of s, before separators, names an identifier.
func isLabeled(s string) bool {
	label := strings.TrimRight(s, " :=#\"'")
	return IsIdentifier(label[tokenStart(label, len(label)):])
}

// tokenStart returns the start of the word before i; hyphens join words.
func tokenStart(s string, i int) int {
	for i > 0 && (isWord(s[i-1]) || s[i-1] == '-') {
		i--
	}
	return i
}

// isPrefix reports whether a word is the prefix of a reference: it has a letter
// and does not name a card.
func isPrefix(word string) bool {
	return strings.ContainsFunc(word, unicode.IsLetter) && !slices.ContainsFunc(splitWords(word), func(w string) bool { return has(cardWords, w) || has(textWords, w) })
}

// isToken reports whether an identifier's value is one word, not text. Card
// numbers within text are found under any name.
func isToken(s string) bool {
	for i := range len(s) {
		if !isWord(s[i]) && strings.IndexByte("-./:#", s[i]) < 0 {
			return false
		}
	}
	return true
}

// isGrouped reports whether the card number in s is written in groups. No shop
// numbers its orders like a card: 4111-1111-1111-1111.
func isGrouped(s string) bool {
	start, end := findCard(s, 0)
	return !digits(s[start:end]) // without a card number, of nothing
}

// isCLABE reports whether 18 digits are a Mexican bank account number, which ends
// in a check digit: weights 3, 7 and 1, modulo 10.
func isCLABE(s string) bool {
	sum := 0
	for i := range 17 {
		sum += int(s[i]-'0') * [...]int{3, 7, 1}[i%3] % 10
	}
	return int(s[17]-'0') == (10-sum%10)%10
}

// endsBoleto reports whether the 14 digits at i are the last field of a boleto's
// digitable line: 23793.38128 60007.827136 95000.063305 9 84660000002000.
func endsBoleto(s string, i int) bool {
	const form = "00000.00000 00000.000000 00000.000000 0 "
	if i < len(form) {
		return false
	}
	for k, c := range []byte(s[i-len(form) : i]) {
		if form[k] == '0' && !isDigit(c) || form[k] != '0' && form[k] != c {
			return false
		}
	}
	return true
}

// embedded reports whether text is JSON, as metadata often is, and if so whether it
// contains card data. Its members are judged by their own names.
func embedded(text string) (card, isJSON bool) {
	if text = strings.TrimSpace(text); !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return false, false
	}
	_, err := jsonread.Rewriter{
		Name: func(name string) string {
			card = card || ContainsCardNumber(name)
			return name
		},
		Value: func(out *jsontext.Encoder, path []string, t jsontext.Token) error {
			name, parent := last(path)
			if CardMember(parent, name, t.Kind(), t.String()) {
				card = true
			}
			return out.WriteToken(t)
		},
	}.Rewrite([]byte(text))
	return card, err == nil
}

// last returns the last two names of a path.
func last(path []string) (name, parent string) {
	if n := len(path); n > 0 {
		name = path[n-1]
		if n > 1 {
			parent = path[n-2]
		}
	}
	return name, parent
}
