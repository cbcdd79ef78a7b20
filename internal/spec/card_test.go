package spec_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

// testCards are published test numbers of issuers and acquirers.
var testCards = map[string][]string{
	"Visa":             {"4111111111111111", "4012888888881881", "4242424242424242", "4222222222222", "4000000000000000006"},
	"Mastercard":       {"5555555555554444", "5105105105105100", "5200828282828210", "2223003122003222", "2720990000000007", "2221000000000009"},
	"American Express": {"378282246310005", "371449635398431", "341111111111111"},
	"Elo":              {"6362970000457013", "5067310000000010", "6516520000000000", "4389350000000000", "5090000000000003"},
	"Hipercard":        {"6062826786276634", "3841001111222233334", "3841400000000000"},
	"Hiper":            {"6370950000000005", "6376000000000000"},
	"Discover":         {"6011111111111117", "6011000990139424", "6445644564456445"},
	"Diners Club":      {"30569309025904", "38520000023237", "36148900647913"},
	"JCB":              {"3530111333300000", "3566002020360505"},
	"UnionPay":         {"6200000000000005", "8171999927660000"},
	"Maestro":          {"6759649826438453", "6304000000000000", "5018000000009"},
	"Aura":             {"5078601870000127985", "5078600000000000"},
}

// withCheckDigit replaces the last digit with the Luhn check digit, for ranges
// without a published test number.
func withCheckDigit(s string) string {
	sum := 0
	for i := range len(s) - 1 {
		v := int(s[i] - '0')
		if (len(s)-i)%2 == 0 {
			v = 2*v - v/5*9
		}
		sum += v
	}
	return s[:len(s)-1] + strconv.Itoa((10-sum%10)%10)
}

func eachCard(f func(brand, number string)) {
	for brand, numbers := range testCards {
		for _, number := range numbers {
			f(brand, withCheckDigit(number))
		}
	}
}

func inGroups(s, separator string, sizes ...int) string {
	var groups []string
	for i := 0; len(s) > 0; i++ {
		n := min(sizes[min(i, len(sizes)-1)], len(s))
		groups, s = append(groups, s[:n]), s[n:]
	}
	return strings.Join(groups, separator)
}

// hasCardData reports whether card data is found in a body.
func hasCardData(t *testing.T, v any) bool {
	t.Helper()
	body, err := json.Marshal(v, json.Deterministic(true))
	require.NoError(t, err)
	violations, err := spec.Check(body, func(*spec.Object) {}, spec.Variant{})
	require.NoError(t, err)
	for _, v := range violations {
		assert.Contains(t, v.Message, "card data, which must never be sent to the API")
		assert.False(t, spec.ContainsCardNumber(v.Field+" "+v.Message), "the error repeats the number")
	}
	return len(violations) > 0
}

type m = map[string]any

func TestCardNumbersOfEveryBrandAreFoundAnywhere(t *testing.T) {
	t.Parallel()
	eachCard(func(brand, number string) {
		written := []string{number}
		for _, separator := range []string{" ", "-"} {
			written = append(written, inGroups(number, separator, 4))
			if len(number) < 16 && len(number) > 13 {
				written = append(written, inGroups(number, separator, 4, 6, 5))
			}
		}
		for _, text := range written {
			for place, body := range map[string]any{
				"description": m{"description": text}, "metadata": m{"metadata": text}, "a metadata value": m{"metadata": `{"c":"` + text + `"}`},
				"in a sentence": m{"comment": "paid with " + text + ", thanks."}, "name": m{"buyer": m{"name": text}},
				"street": m{"buyer": m{"address": m{"street": text}}}, "list": m{"list": []any{1, m{"deep": []any{text}}}},
				"credit_card": m{"credit_card": m{"number": text, "expiration": "12/29"}}, "number alone": m{"numbers": text},
				"track 1": m{"x": "%B" + text + "^DOE/JANE^2912101"}, "track 2": m{"x": ";" + text + "=29121010000"},
				"next to a code": m{"x": text + " 123 12/29"}, "a name": m{"x": m{text: 1}}, "a product": m{"products": []any{m{"name": text}}},
				"a Pix key":          m{"pix_key_value": text},
				"a name in metadata": m{"metadata": `{"` + text + `":1,"c":2}`},
				"a long name":        m{"order " + text: 1}, "the name of a list": m{text: []any{}},
			} {
				assert.True(t, hasCardData(t, body), "%s as %s: %s", brand, place, text)
			}
			if len(number) > 13 {
				assert.True(t, hasCardData(t, m{"buyer": m{"phone": text}}), "%s as a phone: %s", brand, text)
				assert.True(t, hasCardData(t, m{"buyer": m{"document": m{"number": text}}}), "%s as a document: %s", brand, text)
				assert.True(t, hasCardData(t, m{"number": text}), "%s as a number: %s", brand, text)
			}
			assert.NotContains(t, spec.MaskCardNumbers("a "+text+" b "+text), number[:6])
		}
		assert.True(t, hasCardData(t, m{"external_ref": inGroups(number, " ", 4)}), "%s in groups is not exempt as a reference", brand)
		if len(number) < 19 {
			n, err := strconv.ParseInt(number, 10, 64)
			require.NoError(t, err)
			assert.True(t, hasCardData(t, m{"note": n}), "%s as a JSON number", brand)
		}
		assert.Len(t, spec.CheckQuery(url.Values{"search": {"x", number}}, func(*spec.Object) {}, spec.Variant{}), 1, brand)
	})
	assert.True(t, hasCardData(t, m{"note": 4.111111111111111e15}))
}

func TestCardDataIsFoundByItsName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"card_number", "cardNumber", "CardNumber", "CARD-NUMBER", "pan", "PAN", "cvv", "CVV2", "cvv2", "cvc", "cvc2", "csc", "cvn",
		"security_code", "securityCode", "card_security_code", "cardCvv", "exp_month", "expYear", "expiration_month", "card_expiry",
		"cardExpirationDate", "card number", "card.number", "paN", "cv_v", "c_vv", "card__verification__value____", "track_data", "track2", "trackData", "primary_account_number", "codigo_seguranca", "numero_cartao",
	} {
		for _, value := range []any{"x", 7, "123", []any{"1"}, m{"value": "1"}} {
			assert.True(t, hasCardData(t, m{"metadata": m{name: value}}), "%s = %v", name, value)
		}
		assert.False(t, hasCardData(t, m{name: nil}), name)
	}
	for _, name := range []string{"card", "credit_card", "creditCard", "DebitCard", "card_data", "cardDetails"} {
		assert.True(t, hasCardData(t, m{"x": m{name: m{"holder": "A"}}}), name)
		assert.False(t, hasCardData(t, m{"method": name, name: "visa"}), name)
	}
	for _, value := range []string{"12/29", "1/29", "12/2029", "12-29", "12 / 29", "1229", "2029-12"} {
		for _, name := range []string{"expiry", "expiration", "expirationDate", "exp_date", "validade"} {
			assert.True(t, hasCardData(t, m{name: value}), "%s = %s", name, value)
		}
	}
}

func TestEverydayNumbersAreNotCardData(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, time.November, 22, 0, 0, 0, 0, time.UTC)
	for second := range 86_400 {
		at := day.Add(time.Duration(second) * time.Second).Add(123_456_789)
		for _, n := range []int64{at.Unix(), at.UnixMilli(), at.UnixMicro(), at.UnixNano()} {
			for _, text := range []string{strconv.FormatInt(n, 10), "order-" + strconv.FormatInt(n, 10), "at " + strconv.FormatInt(n, 10)} {
				if spec.ContainsCardNumber(text) {
					t.Fatal(text)
				}
			}
		}
		for _, layout := range []string{"20060102150405", "20060102150405.000", time.RFC3339Nano, time.DateTime, "2006-01-02 15-04-05", "060102150405000"} {
			if text := at.Format(layout); spec.ContainsCardNumber(text) {
				t.Fatal(text)
			}
		}
	}
	for second := range 86_400 { // a day whose timestamps start like a Diners card
		at := time.Date(2027, time.May, 30, 0, 0, second, 0, time.UTC)
		if text := at.Format("02012006150405"); spec.ContainsCardNumber(text) {
			t.Fatal(text)
		}
	}
	for i := range 200_000 { // a UUID may consist of digits and start like a card number
		n := 1_000_003*i + 40_000_000
		id := fmt.Sprintf("%08d-%04d-4%03d-8%03d-%012d", n%100_000_000, i%9973, i%997, i%991, n)
		if spec.ContainsCardNumber(id) {
			t.Fatal(id)
		}
	}
	for i := range 5_000 {
		sum := sha256.Sum256([]byte(strconv.Itoa(i)))
		id, err := uuid.FromBytes(sum[:16])
		require.NoError(t, err)
		for _, text := range []string{
			id.String(), hex.EncodeToString(sum[:8]) + "f", "ref_" + hex.EncodeToString(sum[:]), strings.ToUpper(id.String()),
			strconv.FormatFloat(-46.633308+float64(i)/1e9, 'f', 14, 64), strconv.FormatFloat(float64(i)/7, 'g', -1, 64),
		} {
			assert.False(t, spec.ContainsCardNumber(text), text)
		}
	}
}

func TestProductCodesPhonesAndDocumentsAreNotCardData(t *testing.T) {
	t.Parallel()
	gtin := func(s string) string {
		sum := 0
		for i := range len(s) {
			n := int(s[i] - '0')
			if (len(s)-i)%2 == 1 {
				n *= 3
			}
			sum += n
		}
		return s + strconv.Itoa((10-sum%10)%10)
	}
	for i := range 1000 {
		ean, box := gtin(fmt.Sprintf("%d%011d", i%10, i*7919)), gtin(fmt.Sprintf("%d%012d", i%10, i*104729))
		assert.False(t, hasCardData(t, m{"name": ean, "metadata": "ean " + ean, "sku": ean, "barcode": box, "gtin": box}), ean+" "+box)
	}
	for i := range 1000 {
		for _, country := range []string{"54911", "591", "55119", "5521", "569", "57300", "506", "593", "502", "52155", "507", "595", "51", "598"} {
			length := map[string]int{"54": 13, "55": 13, "52": 13, "57": 12, "59": 12}[country[:2]]
			phone := fmt.Sprintf("%s%0*d", country, max(length, 11)-len(country), i*i*31%100_000_000)
			for _, text := range []string{phone, "+" + phone, phone[:2] + " " + phone[2:4] + " " + phone[4:9] + "-" + phone[9:]} {
				assert.False(t, hasCardData(t, m{"phone": text, "metadata": text, "pix_key_value": text}), text)
			}
		}
	}
	assert.False(t, hasCardData(t, m{"phone": "+4915123456789", "note": "call +4915123456789"}))
	cnpjs := 0
	for i := range int64(300_000) {
		text := strconv.FormatInt(30_000_000_000_100+i*4_999_967, 10)
		if _, ok := spec.NormalPixKey("CNPJ", text); !ok {
			continue
		}
		cnpjs++
		require.False(t, spec.ContainsCardNumber(text), text)
	}
	assert.Greater(t, cnpjs, 1000)
	for _, body := range []any{
		m{"document": m{"type": "CPF", "number": "52998224725"}},
		m{"document": m{"type": "CUI", "number": "4222222222222"}},
		m{"payment": m{"order_id": "4111111111111111"}}, // a name that says what it is
		m{"document": "30.512.345/0001-90"},
		m{"external_ref": "4111111111111111", "sku": "5555555555554444", "id": "378282246310005"},
		m{"order_id": "4111111111111111", "transactionId": "4111111111111111", "tracking_code": "378282246310005"},
		m{"amount": int64(4111111111111111), "unit_price": int64(4111111111111111), "value": int64(4111111111111111)},
		m{"line": "23793.38128 60007.827136 95000.063305 9 84660000002000", "plain": "23793381286000782713695000063305984660000002000"},
		m{"line": "84670000001-7 43590024020-9 02405000243-5 84221010811-9", "code": "00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-426655440000"},
		m{"tracking": "9400 1000 0000 0000 0000 00", "parcel": "BR123456789BR", "ups": "1Z999AA10123456784", "fedex": "986578788855"},
		m{"luhn": "4111111111111112", "issuer": "1111111111111117", "zero": "0000000000000000", "length": "411111111111111"},
		m{"company": "panorama", "expires_at": "2027-01-04T12:00:00Z", "expirationTime": 3600, "expiration": "2027-01-04", "card_brand": "visa"},
		m{"spaces": " {\"order_id\":\"4111111111111111\"}", "tabs": "\t[{\"order_id\":\"4111111111111111\"}]"},
		m{"lines": "\n{\"order_id\":\"4111111111111111\"}", "returns": "\r\n {\"order_id\":\"4111111111111111\"}"},
		m{"cardLast4": "1111", "card_token": "pgct_4111111111111111", "expiry": "in two days", "exp": 1798000000, "token": "pgct_1"},
	} {
		assert.False(t, hasCardData(t, body), "%v", body)
	}
}

func TestSomeMembersMayContainDigitsLikeACardNumber(t *testing.T) {
	t.Parallel()
	const number = "4111111111111111"
	for _, name := range []string{
		"external_ref", "externalRef", "externalId", "external_id", "idempotency_key", "sku", "id", "tracking_code", "cursor", "reference",
		"ref", "ean", "gtin", "upc", "barcode", "nsu", "tid", "order_id", "orderId", "order_ref", "orderRef",
	} {
		assert.False(t, hasCardData(t, m{name: number}), name)
		assert.True(t, hasCardData(t, m{name: "x " + number}), "%s with other characters", name)
		assert.False(t, hasCardData(t, m{name + "s": []any{number}}), "a list of %s", name)
		assert.True(t, hasCardData(t, m{name + "_note": number}), "%s_note", name)
		assert.True(t, hasCardData(t, m{"card_" + name: number}), "card_%s", name)
	}
	for _, name := range []string{"phone", "number", "document", "documentNumber", "document_number"} {
		assert.False(t, hasCardData(t, m{name: "4222222222222"}), name)
		assert.True(t, hasCardData(t, m{name: withCheckDigit("30569309025904")}), "%s of 14 digits", name)
	}
	for _, name := range []string{
		"amount", "price", "unit_price", "unitPrice", "value", "total", "quantity", "fee_amount", "feeAmount", "unit_price", "list_price",
	} {
		assert.False(t, hasCardData(t, m{name: int64(4111111111111111)}), name)
		assert.True(t, hasCardData(t, m{name: number}), "%s as a string", name)
	}
}

func TestCardNumbersAreFoundInAnyNumberNotation(t *testing.T) {
	t.Parallel()
	for number, card := range map[string]bool{
		"4111111111111111": true, "4111111111111111.0": true, "4.111111111111111e15": true, "4.111111111111111E15": true,
		"41111111111111110e-1": true, "411111111111111.1": false, "4111111111111111.5": false, "4.111111111111111e400": false,
		"4111111111111112.0": false,
	} {
		violations, err := spec.Check([]byte(`{"n":`+number+`}`), func(*spec.Object) {}, spec.Variant{})
		require.NoError(t, err)
		assert.Equal(t, card, len(violations) > 0, number)
	}
}

func TestAnExpiryIsAMonthAndAYear(t *testing.T) {
	t.Parallel()
	for value, expiry := range map[string]bool{
		"01/29": true, "12/29": true, "2029/1": true, "0129": true,
		"00/29": false, "13/29": false, "012/29": false, "112/29": false, "/29": false, "0029": false, "1329": false,
		"12/9": false, "12/029": false, "12/20290": false, "": false, "/": false, "12": false, "12290": false,
		"ab/29": false, "12/cd": false, "1x/2y": false, "2029": false,
	} {
		assert.Equal(t, expiry, hasCardData(t, m{"expiry": value}), value)
	}
}

func TestArrayElementsAreCheckedUnderTheArraysName(t *testing.T) {
	t.Parallel()
	for body, field := range map[string]string{
		`{"pan":[]}`: "", `{"pan":[null]}`: "", `{"pan":["x"]}`: "pan[0]", `{"expiry":["soon","12/29"]}`: "expiry[1]",
		`{"expiry":[{"notes":["12/29"]}]}`: "", `{"4222222222222":[]}`: "***", `{"4222222222222":1}`: "***",
		`{"order 4111111111111111":[]}`: "order ***", `{"note":4222222222222}`: "note",
	} {
		want := []spec.Violation(nil)
		found := check(t, body, spec.LegacyToken)
		if field != "" && assert.Len(t, found, 1, body) {
			want = []spec.Violation{{Field: field, Message: found[0].Message, Code: spec.CodeInvalid}}
		}
		assert.Equal(t, want, found, body)
	}
}

func TestAnyMemberNameIsAccepted(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"{", "`", "_", "A", "Z", "é", "z", "0"} {
		for _, name := range []string{c + "ab", "a" + c + "b", "ab" + c, c + c + c} {
			assert.Empty(t, check(t, `{"`+name+`":1}`, spec.LegacyToken), name)
		}
	}
}

func TestCardObjects(t *testing.T) {
	t.Parallel()
	for name, card := range map[string]bool{"card": true, "Credit-Card": true, "pan": false, "expiry": false, "buyer": false} {
		assert.Equal(t, card, spec.IsCardObject(name), name)
	}
}
