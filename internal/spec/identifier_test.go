package spec_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

// maker makes random values from a seed.
type maker struct{ *rand.Rand }

func (r maker) digits(prefix string, n int) string {
	var b strings.Builder
	b.WriteString(prefix)
	for b.Len() < n {
		b.WriteByte(byte('0' + r.IntN(10)))
	}
	return b.String()
}

// luhn makes digits that pass the Luhn check.
func (r maker) luhn(prefix string, n int) string { return withCheckDigit(r.digits(prefix, n)) }

func (r maker) of(list ...string) string { return list[r.IntN(len(list))] }

func (r maker) uuid() string {
	id, err := uuid.NewRandomFromReader(reader{r})
	if err != nil {
		return ""
	}
	return id.String()
}

type reader struct{ maker }

func (r reader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return len(b), nil
}

// mod11 appends check digits as a CPF (max 11) and a CNPJ (max 9) have them.
func mod11(s string, maxWeight int) string {
	for range 2 {
		sum, weight := 0, 2
		for i := len(s) - 1; i >= 0; i-- {
			sum += int(s[i]-'0') * weight
			if weight++; weight > maxWeight {
				weight = 2
			}
		}
		check := 11 - sum%11
		if check > 9 {
			check = 0
		}
		s += strconv.Itoa(check)
	}
	return s
}

func clabe(s string) string {
	sum := 0
	for i := range 17 {
		sum += int(s[i]-'0') * []int{3, 7, 1}[i%3] % 10
	}
	return s[:17] + strconv.Itoa((10-sum%10)%10)
}

// identifiers are families of everyday values and the members that hold them.
// The prefixes of digits are those of card networks: others can't be mistaken.
func identifiers() map[string]func(r maker) any {
	cards := []string{"4", "4", "51", "55", "2221", "2720", "34", "37", "300", "36", "38", "39", "6011", "644", "65", "3528", "3589", "62", "50", "67", "6062", "637", "81"}
	return map[string]func(r maker) any{
		"prefixed references": func(r maker) any {
			ref := r.of("shop-", "ORD-2026-", "pedido-", "loja2-", "order_", "inv/", "A-", "order:", "nf#", "order = ", "nf # ", "order: ") + r.luhn(r.of(cards...), 13+r.IntN(7))
			return m{"external_ref": ref, "externalRef": ref, "idempotency_key": ref, "metadata": ref, "description": "Pedido " + ref}
		},
		"references of 13 digits": func(r maker) any {
			digits := r.luhn("4", 13)
			return m{"external_ref": "shop-" + digits, "metadata": `{"order_id":"` + digits + `"}`, "notes": `{"order_id":` + digits + `}`}
		},
		"order numbers": func(r maker) any {
			digits := r.luhn(r.of(cards...), 14+r.IntN(6))
			return m{"external_ref": digits, "order_id": digits, "order_number": digits, "metadata": `{"orderNumber":"` + digits + `","numero_pedido":"` + digits + `"}`}
		},
		"order numbers of every leading pair": func(r maker) any {
			digits := r.luhn(fmt.Sprintf("%02d", r.IntN(100)), 14+r.IntN(6))
			return m{"external_ref": digits, "metadata": `{"order":{"number":"` + digits + `","ids":["` + digits + `"]}}`}
		},
		"CLABEs": func(r maker) any {
			account := clabe(r.digits(r.of("646", "646", "621", "501", "670", "012"), 18))
			return m{"external_ref": account, "description": "CLABE " + account, "metadata": `{"clabe":"` + account + `"}`, "comment": account}
		},
		"CPFs and CNPJs": func(r maker) any {
			company := mod11(r.digits(r.of("30", "36", "38", "39", "4", "6"), 12), 9)
			return m{"document": m{"number": company}, "metadata": company, "description": "CNPJ " + company + " CPF " + mod11(r.digits("", 9), 11)}
		},
		"boletos": func(r maker) any {
			line := r.digits("", 5) + "." + r.digits("", 5) + " " + r.digits("", 5) + "." + r.digits("", 6) + " " + r.digits("", 5) + "." +
				r.digits("", 6) + " " + r.digits("", 1) + " " + r.luhn(r.of("30", "36", "38", "39", "1"), 14)
			return m{"digitable_line": line, "description": "Boleto " + line, "metadata": r.digits("", 44), "barcode": r.digits("", 47)}
		},
		"UUIDs": func(r maker) any {
			id := r.uuid()
			return m{"external_ref": id, "metadata": `{"id":"` + id + `"}`, "pix_key_value": id, "description": "Order " + id}
		},
		"metadata with ids": func(r maker) any {
			digits := r.luhn(r.of(cards...), 13+r.IntN(7))
			name := r.of("id", "order_id", "cartId", "invoice", "pedido", "orden_id", "booking_ref", "timestamp", "nsu", "protocolo", "sku", "trackingCode", "nota_fiscal")
			return m{"metadata": `{ "` + name + `": "` + digits + `", "nested": {"` + name + `": ` + digits + `}, "list": [{"` + name + `": "x-` + digits + `"}]}`}
		},
		"phones": func(r maker) any {
			phone := r.digits(r.of("4915", "4917", "5511", "5521", "5411", "5215", "593", "502"), 12+r.IntN(2))
			return m{"phone": "+" + phone, "buyer": m{"phone": phone}, "metadata": `{"whatsapp":"` + phone + `"}`, "description": "+" + phone}
		},
		"milliseconds": func(r maker) any {
			at := strconv.FormatInt(1_500_000_000_000+r.Int64N(500_000_000_000), 10)
			return m{"external_ref": at, "metadata": at, "description": "at " + at, "comment": "shop-" + at + "000"}
		},
		"end-to-end ids": func(r maker) any {
			id := "E" + r.digits("", 20) + strings.ReplaceAll(r.uuid(), "-", "")[:11]
			return m{"external_ref": id, "metadata": "paid by " + id, "end_to_end": id}
		},
	}
}

const perFamily = 2500

// TestIdentifiersAreAccepted is one direction of the check: an order whose
// identifier is taken for a card number can never be charged.
func TestIdentifiersAreAccepted(t *testing.T) {
	t.Parallel()
	families := identifiers()
	require.GreaterOrEqual(t, perFamily*len(families), 20_000)
	for family, make := range families {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			r := maker{rand.New(rand.NewPCG(1, uint64(len(family))))}
			refused := 0
			for range perFamily {
				body := make(r)
				if hasCardData(t, body) {
					refused++
					t.Log(body)
				}
			}
			assert.Zero(t, refused, "of %d", perFamily)
		})
	}
}

// networks lists the prefixes of each card network and the lengths of its numbers.
var networks = []struct {
	name     string
	prefixes []string
	lengths  []int
}{
	{"Visa", []string{"4"}, []int{13, 16, 19}},
	{"Mastercard", []string{"51", "52", "53", "54", "55", "2221", "23", "24", "25", "26", "2720"}, []int{16}},
	{"American Express", []string{"34", "37"}, []int{15}},
	{"Diners Club", []string{"300", "301", "302", "303", "304", "305", "309", "36", "38", "39"}, []int{14, 16, 19}},
	{"Discover", []string{"6011", "644", "645", "646", "647", "648", "649", "65"}, []int{16, 17, 18, 19}},
	{"JCB", []string{"3528", "3530", "3566", "3589"}, []int{16, 17, 18, 19}},
	{"UnionPay", []string{"62", "81"}, []int{16, 17, 18, 19}},
	{"Maestro", []string{"5018", "5020", "5038", "5893", "6304", "6759", "6761", "6762", "6763"}, []int{13, 14, 15, 16, 17, 18, 19}},
	{"Elo", []string{"401178", "431274", "438935", "451416", "457631", "504175", "506699", "509000", "627780", "636297", "636368", "650031", "655000"}, []int{16}},
	{"Hipercard", []string{"606282", "637095", "637568", "637599"}, []int{16}},
	{"Aura", []string{"50"}, []int{16, 19}},
}

// careless lists where a merchant may put a card number by mistake.
func careless(number string) map[string]any {
	return map[string]any{
		"the description":                  m{"description": number},
		"a sentence":                       m{"description": "Paid with " + number + ", thanks"},
		"a label in text":                  m{"description": "card: " + number},
		"an assignment":                    m{"description": "pan=" + number},
		"after the network's name":         m{"description": "visa-" + number},
		"after a word for a card":          m{"external_ref": "card-" + number},
		"a product":                        m{"products": []any{m{"name": number}}},
		"the buyer's name":                 m{"buyer": m{"name": number}},
		"the metadata":                     m{"metadata": number},
		"card_number":                      m{"metadata": m{"card_number": number}},
		"card_number in a string":          m{"metadata": `{"card_number":"` + number + `"}`},
		"card in a string":                 m{"metadata": `{"card":"` + number + `"}`},
		"a card object in a string":        m{"metadata": `{"card":{"number":"` + number + `"}}`},
		"pan in a string":                  m{"metadata": `{"pan":"` + number + `"}`},
		"an unknown member in a string":    m{"metadata": ` {"x":["` + number + `"]}`},
		"a payment in a string":            m{"metadata": `{"payment":{"number":"` + number + `"}}`},
		"card":                             m{"card": number},
		"a card object":                    m{"card": m{"number": number}},
		"a card's id":                      m{"card_id": number},
		"a note of the order":              m{"order_note": number},
		"broken JSON":                      m{"metadata": `{"card": ` + number},
		"text under an identifier":         m{"order_id": "card " + number},
		"the number of a list's elements":  m{"cards": []any{m{"number": number}}},
		"the name of a member of a string": m{"metadata": `{"` + number + `":1}`},
	}
}

// TestCardNumbersOfEveryRangeAreRejected is the other direction.
func TestCardNumbersOfEveryRangeAreRejected(t *testing.T) {
	t.Parallel()
	r := maker{rand.New(rand.NewPCG(2, 2))}
	missed, tried := map[string]int{}, map[string]int{}
	for _, network := range networks {
		for _, prefix := range network.prefixes {
			for _, n := range network.lengths {
				for range 4 {
					number := r.luhn(prefix, n)
					if ambiguous(number) {
						continue
					}
					written := []string{number, inGroups(number, " ", 4), inGroups(number, "-", 4)}
					if n == 14 || n == 15 {
						written = append(written, inGroups(number, " ", 4, 6, 5), inGroups(number, "-", 4, 6, 5))
					}
					for _, text := range written {
						for place, body := range careless(text) {
							tried[place]++
							if !hasCardData(t, body) && missed[place] < 3 {
								missed[place]++
								t.Errorf("%s in %s: %s", network.name, place, text)
							}
						}
					}
				}
			}
		}
	}
	for place, n := range tried {
		assert.Greater(t, n, 1000, place)
	}
}

// ambiguous reports whether the digits are also an EAN-13, a CNPJ, a CLABE or a
// time, each of which has a check of its own.
func ambiguous(number string) bool { return !spec.ContainsCardNumber(number) }

// TestHowOftenDigitsAreMistaken measures both kinds of mistakes that remain where
// only the digits can decide; docs/assumptions.md states the rates.
func TestHowOftenDigitsAreMistaken(t *testing.T) {
	t.Parallel()
	const n = 20_000
	r := maker{rand.New(rand.NewPCG(3, 3))}
	taken := map[int]int{}
	for length := 13; length <= 19; length++ {
		for range n {
			if spec.ContainsCardNumber(r.digits("", length)) {
				taken[length]++
			}
		}
	}
	for length, most := range map[int]int{13: 300, 14: 300, 15: 100, 16: 800, 17: 150, 18: 300, 19: 800} {
		assert.LessOrEqual(t, taken[length], most, "random numbers of %d digits in free text", length)
	}
	passed := map[int]int{}
	for length, prefix := range map[int]string{13: "4", 14: "36", 15: "37", 16: "4", 18: "62", 19: "4"} {
		for range n {
			if !spec.ContainsCardNumber(r.luhn(prefix, length)) {
				passed[length]++
			}
		}
	}
	t.Log("taken for card numbers of", n, taken, "card numbers not found of", n, passed)
	for length, most := range map[int]int{13: 2100, 14: 1000, 15: 0, 16: 0, 18: 2100, 19: 0} {
		assert.LessOrEqual(t, passed[length], most, "card numbers of %d digits in free text", length)
	}
}

// A word of letters before a number makes it a reference, whichever they are.
func TestPrefixesOfReferences(t *testing.T) {
	t.Parallel()
	const number = "4111111111111111"
	for _, prefix := range []string{"a", "z", "A", "Z", "shop", "9a"} {
		assert.False(t, hasCardData(t, map[string]any{"description": "for " + prefix + "-" + number}), prefix)
	}
	for _, prefix := range []string{"9", "@", "[", "`", "{", ""} {
		assert.True(t, hasCardData(t, map[string]any{"description": "for " + prefix + "-" + number}), prefix)
	}
}

// Names are split at separators and before capital letters.
func TestNamesOfIdentifiers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"id", "ID", "aId", "orderId", "order_no", "EAN", "orderAx", "orderZx", "x[id", "x-id", "__id__", "numero_pedido", "refs"} {
		assert.True(t, spec.IsIdentifier(name), name)
	}
	for _, name := range []string{"", "number", "ZId", "grid", "cardId", "order_note", "PaymentID", "x_y"} {
		assert.False(t, spec.IsIdentifier(name), name)
	}
}

// What is around a number, or how it is written, decides whether it is one of a card.
func TestNumbersInContext(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	const number, short, grouped = "4111111111111111", "4222222222222", "4111-1111-1111-1111"
	const diners, line = "36111111111111", "23793.38128 60007.827136 95000.063305 9 " // the last field of a boleto has 14 digits
	harmless := map[string]m{}
	for _, name := range []string{"number", "num", "value"} {
		harmless["a phone's "+name] = m{"phone": m{name: short}}
		harmless["an order's "+name] = m{"order": m{name: number}}
	}
	for _, separator := range []string{"=", ":", "#", "/", `="`, "='", ": ", "= ", "# "} {
		harmless["order"+separator] = m{"description": "for order" + separator + number}
	}
	for _, separator := range []string{"-", ".", "/", ":", "#", "_"} {
		harmless["an identifier with "+separator] = m{"order_id": "9" + separator + number}
	}
	for _, space := range []string{" ", "\t", "\n", "\r", " \n\t"} {
		harmless[fmt.Sprintf("JSON after %q", space)] = m{"metadata": space + `{"phone":{"number":"` + short + `"}}`}
		harmless[fmt.Sprintf("a list after %q", space)] = m{"metadata": space + `[{"phone":{"number":"` + short + `"}}]`}
	}
	harmless["an order in groups"] = m{"description": "for shop-" + grouped}
	harmless["a boleto"] = m{"description": line + diners}
	harmless["a boleto in text"] = m{"description": "pay " + line + diners}
	for what, body := range harmless {
		assert.False(t, hasCardData(t, body), what)
	}
	for what, body := range map[string]m{
		"another name":                {"amount": m{"number": number}},
		"another label":               {"description": "for size=" + number},
		"no label":                    {"description": "=" + number},
		"an order and >":              {"description": "for order>" + number},
		"an order and (":              {"description": "for order(" + number},
		"an order and a question":     {"description": "for order? " + number},
		"a name of an object":         {"metadata": `{"` + number + `":{}}`},
		"an order and a space":        {"description": "for order " + number},
		"an identifier with ?":        {"order_id": "9?" + number},
		"an identifier in groups":     {"order_id": grouped},
		"an identifier with spaces":   {"order_id": strings.ReplaceAll(grouped, "-", " ")},
		"groups with spaces":          {"description": "for shop-4111 1111 1111 1111"},
		"14 digits":                   {"description": diners},
		"a boleto with a letter":      {"description": strings.Replace(line, "8128", "812x", 1) + diners},
		"a boleto with another point": {"description": strings.Replace(line, ".", "-", 1) + diners},
		"the end of a boleto":         {"description": line[1:] + diners},
	} {
		assert.True(t, hasCardData(t, body), what)
	}
}
