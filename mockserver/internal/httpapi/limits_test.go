package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
)

// edge is the boundary of one member's rule, or an enum with all of its values.
// Values are JSON; golden.Missing leaves the member out.
type edge struct {
	field   string
	allowed []string
	refused string
	code    string
	with    []string // members and values that are set first
	dialect string   // in which it applies; "" is both
}

// edges are the boundaries of every body, by operation. The rows of the
// interface document's Limits table are not among them: limits_test.go of the
// root package tries each with the client and with the mock gateway.
func edges() map[string][]edge {
	return map[string][]edge{
		"transactions.create": slices.Concat([]edge{
			{field: "external_ref", allowed: values(`""`, text(4000)), refused: "1", code: "invalid_type"},
			{field: "amount", allowed: values("99", "100"), refused: "10.5", code: "invalid_type"},
			{field: "currency", allowed: words(currencies), refused: `"EUR"`, code: "invalid_enum_value"},
			{field: "currency", refused: `"brl"`, code: "invalid_enum_value"},
			{field: "method", allowed: words("pix voucher credit_card"), refused: `"boleto"`, code: "invalid_enum_value"},
			{field: "products[0]", allowed: values(`{"name":"Book","price":1}`), refused: `"Book"`, code: "invalid_type"},
			{field: "token", allowed: words("pgct_x pgpm_x"), refused: `"tok_x"`, code: "invalid_string"},
			{field: "token", refused: golden.Missing, code: "required", with: values("method", `"credit_card"`)},
			{
				field: "notify_url", allowed: words("http://127.0.0.1:8080/hook http://[::1]/ http://localhost/"),
				refused: `"http://shop.example.com/hook"`, code: "invalid_string",
			},
			{field: "ip_address", allowed: words("203.0.113.7 2001:db8::1"), refused: `"300.1.1.1"`, code: "invalid_string"},
		}, people("buyer.", documentTypes)),
		"transactions.create for a known buyer": {
			{field: "buyer.id", refused: `""`, code: "too_small"},
			{field: "buyer.id", refused: "true", code: "invalid_type"},
		},
		"transactions.refund": {
			{field: "amount", allowed: values("1", "1000"), refused: "0", code: "too_small"},
			{field: "reason", allowed: values(text(500)), refused: text(501), code: "too_big"},
		},
		"transactions.update_delivery": {
			{field: "tracking_code", allowed: values(text(1)), refused: `""`, code: "too_small"},
			{field: "tracking_code", allowed: values(text(255)), refused: text(256), code: "too_big"},
			{field: "delivery_status", allowed: words("waiting in_transit delivered"), refused: `"lost"`, code: "invalid_enum_value"},
			{field: "tracking_url", allowed: values(shopURL(255)), refused: shopURL(256), code: "too_big"},
			{field: "tracking_url", allowed: words("http://shop.example.com/"), refused: `"ftp://shop.example.com/"`, code: "invalid_string"},
			{field: "tracking_company", allowed: values(text(1)), refused: `""`, code: "too_small"},
			{field: "tracking_company", allowed: values(text(64)), refused: text(65), code: "too_big"},
		},
		"transactions.set_sandbox_status": { // the states are row transaction-states
			{field: "status", refused: `"lost"`, code: "invalid_enum_value"},
		},
		"customers.create": slices.Concat([]edge{
			{field: "phone", allowed: words("1 +55(11)98765-4321"), dialect: "document", refused: "1", code: "invalid_type"},
			{field: "phone", allowed: words("11987654321"), dialect: "live", refused: `"1198765432"`, code: "invalid_string"},
			{field: "phone", refused: `"119876543210"`, dialect: "live", code: "invalid_string"},
			{field: "phone", refused: `"1198765432x"`, dialect: "live", code: "invalid_string"},
			{field: "ip_address", dialect: "document", allowed: words("203.0.113.7 2001:db8::1"), refused: `"300.1.1.1"`, code: "invalid_string"},
			{field: "ip_address", dialect: "live", allowed: values(`""`, `"300.1.1.1"`), refused: "1", code: "invalid_type"},
			{field: "address.country", dialect: "live", allowed: words("BR US br"), refused: `"BRA"`, code: "invalid_string"},
			{field: "document.number", dialect: "live", allowed: values(`""`), refused: "1", code: "invalid_type"},
		}, inDocument(people("", documentTypes+" EIN PASS PEP CEDULA NIN"), "address.country", "document.number")),
		"transfers.create": transferEdges(),
		"transfers.cancel": {
			{field: "reason", allowed: values(text(250)), refused: text(251), code: "too_big"},
		},
		"subscriptions.create": slices.Concat(subscriptionEdges(), sold("products[0]."), []edge{
			{field: "products[0].sku", allowed: values(text(255)), refused: text(256), code: "too_big"},
		}),
		"subscriptions.update": {
			{field: "failure_policy", allowed: words("immediate_cancel retry_then_cancel"), refused: `"retry"`, code: "invalid_enum_value"},
			{field: "retry_offsets_days", allowed: values("[1]"), refused: "[]", code: "too_small"},
			{field: "retry_offsets_days", allowed: values("[1,2,3,4,5,6,7,8,9,10]"), refused: "[1,2,3,4,5,6,7,8,9,10,11]", code: "too_big"},
			{field: "retry_offsets_days[1]", allowed: values("1"), refused: "0", code: "too_small"},
			{field: "retry_offsets_days[1]", allowed: values("30"), refused: "31", code: "too_big"},
		},
		"subscriptions.cancel": {
			{field: "reason", dialect: "document", allowed: values(`""`, text(4000)), refused: "1", code: "invalid_type"},
			{
				field: "reason", dialect: "live", allowed: words("user_requested payment_failure chargeback system"),
				refused: `"moved"`, code: "invalid_enum_value",
			},
		},
		"checkout_links.create": slices.Concat(
			inDocument(slices.Concat(linkEdges(), sold("products[0].")),
				"products[0].price", "products[0].quantity", "products[0].description", "products[0].compare_price"),
			liveLinkEdges("products[0].")),
		"checkout_links.create by amount": nil, // its limits are in the document's table
		"checkout_sessions.update": slices.Concat([]edge{
			{field: "payment_method", allowed: words("pix voucher credit_card"), refused: `"boleto"`, code: "invalid_enum_value"},
		}, people("buyer.", documentTypes)),
		"legacy.configure_integration": {
			{field: "webhookUrl", allowed: words("https://shop.example/ http://shop.example/"), refused: `"ftp://shop.example/"`, code: "invalid_string"},
			{field: "webhookUrl", refused: `"shop.example"`, code: "invalid_string"},
			{field: "pixWebhookUrl", allowed: words("http://shop.example/"), refused: `"ftp://shop.example/"`, code: "invalid_string"},
			{
				field: "pixWebhookUrl", allowed: words("https://shop.example/"), refused: `"http://shop.example/"`, code: "invalid_string",
				with: values("webhookUrl", golden.Missing),
			},
		},
		"legacy.create_pix_payment": {
			{field: "type", allowed: words("PIX"), refused: `"pix"`, code: "invalid_enum_value"},
			{field: "transaction.value", allowed: values("1"), refused: "0", code: "too_small"},
			{field: "transaction.value", allowed: values("9007199254740991"), refused: "9007199254740992", code: "too_big"},
			{field: "transaction.value", refused: "49.9", code: "invalid_type"},
			{field: "transaction.expirationTime", allowed: values("1"), refused: "0", code: "too_small"},
			{field: "transaction.expirationTime", allowed: values("2147483647"), refused: "2147483648", code: "too_big"},
			{field: "splits[0].pixKeyType", allowed: words("DOCUMENT EMAIL PHONE RANDOM"), refused: `"CPF"`, code: "invalid_enum_value"},
			{field: "splits[0].percent", allowed: values("0"), refused: "-0.01", code: "too_small"},
			{field: "splits[0].percent", allowed: values("100"), refused: "100.01", code: "too_big"},
			{field: "splits[0].amount", allowed: values("0"), refused: "-1", code: "too_small"},
		},
		"legacy.create_payment_token": nil, // any object
	}
}

// The value sets of the interface document, copied from it.
const (
	currencies        = "ARS BOB BRL CLP COP CRC GTQ MXN PYG PEN USD UYU"
	billingCurrencies = "BRL MXN COP CLP ARS PEN USD GTQ CRC NIO PYG UYU BOB PHP RUB INR SAR AED KWD QAR OMR KHR SGD IDR " +
		"KRW THB MYR HKD CNY EGP EUR GBP BHD MAD AUD CAD CHF NZD PLN KZT UZS JPY GLC"
	countries     = "AR BO BR CL CO CR EC GT MX PA PY PE UY"
	documentTypes = "DNI CUIT CI CE NIT CPF CNPJ RUT RUN CC CDI PP RUC PAS DPI CUI RFC CURP"
)

// inDocument makes the edges of some fields those of the document dialect.
func inDocument(list []edge, fields ...string) []edge {
	for i := range list {
		if slices.Contains(fields, list[i].field) {
			list[i].dialect = "document"
		}
	}
	return list
}

// liveLinkEdges returns those of a checkout link's product in the live dialect.
func liveLinkEdges(at string) []edge {
	const most, over = "9007199254740991", "9007199254740992"
	list := []edge{
		{field: at + "external_id", allowed: values(text(255)), refused: text(256), code: "too_big"},
		{field: at + "price", allowed: values("1"), refused: "0", code: "too_small"},
		{field: at + "price", allowed: values(most), refused: over, code: "too_big"},
		{field: at + "quantity", allowed: values("1"), refused: "0", code: "too_small"},
		{field: at + "quantity", allowed: values(most), refused: over, code: "too_big"},
		{field: at + "compare_price", allowed: values("1"), refused: "0", code: "too_small"},
		{field: at + "compare_price", allowed: values(most), refused: over, code: "too_big"},
		{field: at + "description", allowed: values(text(2000)), refused: text(2001), code: "too_big"},
	}
	for i := range list {
		list[i].dialect = "live"
	}
	return list
}

// people returns the edges of a person and of their document and address.
func people(at, types string) []edge {
	return []edge{
		{field: at + "name", allowed: values(text(1), text(1000)), refused: `""`, code: "too_small"},
		{field: at + "email", allowed: words("a@b ana.souza+shop@example.com"), refused: `"ana"`, code: "invalid_string"},
		{field: at + "document.type", allowed: words(types), refused: `"cpf"`, code: "invalid_enum_value"},
		{field: at + "document.type", refused: `"SSN"`, code: "invalid_enum_value"},
		{field: at + "document.number", allowed: values(text(1)), refused: `""`, code: "too_small"},
		{field: at + "address.street", allowed: values(text(1)), refused: `""`, code: "too_small"},
		{field: at + "address.city", allowed: values(text(1)), refused: `""`, code: "too_small"},
		{field: at + "address.state", allowed: words("SP 01"), refused: `"S"`, code: "too_small"},
		{field: at + "address.state", allowed: words("a1Z"), refused: `"SPXY"`, code: "too_big"},
		{field: at + "address.state", refused: `"S-"`, code: "invalid_string"},
		{field: at + "address.country", allowed: words(countries), refused: `"US"`, code: "invalid_enum_value"},
		{field: at + "address.country", refused: `"br"`, code: "invalid_enum_value"},
	}
}

// sold returns the edges of a product.
func sold(at string) []edge {
	return []edge{
		{field: at + "name", allowed: values(text(1)), refused: `""`, code: "too_small"},
		{field: at + "name", allowed: values(text(255)), refused: text(256), code: "too_big"},
		{field: at + "price", allowed: values("0"), refused: "-1", code: "too_small"},
		{field: at + "price", allowed: values("100000000"), refused: "100000001", code: "too_big"},
		{field: at + "quantity", allowed: values("1"), refused: "0", code: "too_small"},
		{field: at + "quantity", allowed: values("999999"), refused: "1000000", code: "too_big"},
	}
}

func transferEdges() []edge {
	list := []edge{
		{field: "pix_key_type", allowed: words("CPF"), refused: `"DOCUMENT"`, code: "invalid_enum_value"},
		{field: "pix_key_value", refused: `""`, code: "too_small"},
		{field: "pix_key_value", allowed: values(email(77)), refused: email(78), code: "too_big", with: values("pix_key_type", `"EMAIL"`)},
		{field: "amount", allowed: values("9007199254740991"), refused: "9007199254740992", code: "too_big"}, // the minimum is row transfer-minimum
		{field: "description", allowed: values(`""`, text(140)), refused: text(141), code: "too_big"},
		{field: "external_ref", allowed: values(`""`, text(100)), refused: text(101), code: "too_big"},
		{field: "notify_url", allowed: values(shopURL(2048)), refused: shopURL(2049), code: "too_big"},
		{field: "notify_url", allowed: words("http://127.0.0.1/hook"), refused: `"http://shop.example.com/"`, code: "invalid_string"},
		{field: "origin", allowed: values(text(50)), refused: text(51), code: "too_big"},
	}
	for kind, keys := range map[string][2]string{ // a key that matches the type and one that does not
		"CPF":   {`"529.982.247-25"`, `"52998224724"`},
		"CNPJ":  {`"11222333000181"`, `"11222333000182"`},
		"EMAIL": {`"ana@example.com"`, `"ana"`},
		"PHONE": {`"+5511987654321"`, `"12"`},
		"EVP":   {`"123e4567-e89b-12d3-a456-426614174000"`, `"123e4567"`},
	} {
		list = append(list, edge{
			field: "pix_key_value", allowed: keys[:1], refused: keys[1], code: "invalid_string",
			with: values("pix_key_type", `"`+kind+`"`),
		})
	}
	return list
}

func subscriptionEdges() []edge {
	return []edge{
		{field: "customer_id", refused: `""`, code: "too_small"},
		{field: "token", allowed: words("pgct_1"), refused: `"pgpm_ok"`, code: "invalid_string"},
		{
			field: "token", allowed: values(golden.Missing), refused: `"pgct_ok"`, code: "invalid_string",
			with: values("payment_method", `"pix_automatic"`),
		},
		{field: "payment_method", allowed: words("credit_card"), refused: `"pix"`, code: "invalid_enum_value"},
		{
			field: "payment_method", allowed: words("pix_automatic"), refused: `"voucher"`, code: "invalid_enum_value",
			with: values("token", golden.Missing),
		},
		{field: "interval", allowed: words("day week month"), refused: `"year"`, code: "invalid_enum_value"},
		{field: "failure_policy", allowed: words("immediate_cancel retry_then_cancel"), refused: `"retry"`, code: "invalid_enum_value"},
		{field: "currency", allowed: words(billingCurrencies), refused: `"XXX"`, code: "invalid_enum_value"},
		{field: "trial_end", allowed: words("2027-01-04T12:00:00.001Z 2027-02-01T00:00:00-03:00"), refused: `"2027-02-01"`, code: "invalid_string"},
		{field: "trial_end", refused: `"2027-02-01T00:00:00"`, code: "invalid_string"},  // no zone
		{field: "trial_end", refused: `"2027-02-30T00:00:00Z"`, code: "invalid_string"}, // no day
		{field: "trial_end", refused: `"2027-01-04T12:00:00Z"`, code: "invalid_string"}, // now
		{field: "informations[0]", allowed: values(`{"key":"","value":""}`), refused: `"C-17"`, code: "invalid_type"},
		{field: "billing_day_of_month", allowed: values("1"), refused: "0", code: "too_small"},
		{field: "billing_day_of_month", allowed: values("31"), refused: "32", code: "too_big"},
		{field: "comment", allowed: values(text(140)), refused: text(141), code: "too_big"},
	}
}

func linkEdges() []edge {
	return []edge{
		{field: "amount", refused: "1", code: "invalid_string"}, // besides the products
		{
			field: "currency", allowed: words(billingCurrencies), refused: `"XXX"`, code: "invalid_enum_value",
			with: values("products[0].currency", golden.Missing),
		},
		{field: "products[0].currency", allowed: words("BRL"), refused: `"USD"`, code: "invalid_string"}, // the link's
		{field: "expires_at", allowed: words("2027-01-04T12:00:00.001Z"), refused: `"2027-02-04"`, code: "invalid_string"},
		{field: "expires_at", refused: `"2027-01-04T12:00:00Z"`, code: "invalid_string"}, // now
		{field: "max_uses", allowed: values("1", "1000000"), refused: "0", code: "too_small"},
		{field: "payment_methods[0]", allowed: words("pix voucher credit_card"), refused: `"cash"`, code: "invalid_enum_value"},
		{field: "payment_methods[0]", refused: "1", code: "invalid_type"},
		{field: "products[0]", refused: `"Mug"`, code: "invalid_type"},
		{field: "products[0].external_id", allowed: values(text(1)), refused: `""`, code: "too_small"},
		{field: "products[0].description", allowed: values(text(4000)), refused: "1", code: "invalid_type"},
		{field: "products[0].image_url", allowed: words("http://shop.example/1.png"), refused: `"1.png"`, code: "invalid_string"},
		{field: "products[0].compare_price", allowed: values("0"), refused: "-1", code: "too_small"},
		{field: "products[0].compare_price", allowed: values("100000000"), refused: "100000001", code: "too_big"},
		{field: "products[0].type", allowed: words("physical digital"), refused: `"service"`, code: "invalid_enum_value"},
		{
			field: "products[0].currency", allowed: words(billingCurrencies), refused: `"XXX"`, code: "invalid_enum_value",
			with: values("currency", golden.Missing),
		},
	}
}

// TestEdges tries each edge on an otherwise valid body, in both dialects. A
// rejected member is named, and nothing changes.
func TestEdges(t *testing.T) {
	t.Parallel()
	all := edges()
	for _, w := range writes(t) {
		list, found := all[w.name]
		require.True(t, found, "%s has no limits in edges: add them", w.name)
		delete(all, w.name)
		for dialect := range dialects {
			for i, e := range list {
				if e.dialect != "" && e.dialect != dialect {
					continue
				}
				t.Run(fmt.Sprintf("%s %s %s %d", w.name, dialect, e.field, i), func(t *testing.T) {
					t.Parallel()
					w.edge(t, dialect, e)
				})
			}
		}
	}
	assert.Empty(t, all, "edges has operations that writes_test.go does not have")
}

func (w write) edge(t *testing.T, dialect string, e edge) {
	t.Helper()
	prepare := func() prepared {
		p := w.prepare(t, dialect)
		for i := 0; i+1 < len(e.with); i += 2 {
			p.body = golden.Edit(t, p.body, e.with[i], e.with[i+1])
		}
		return p
	}
	for _, value := range e.allowed {
		p := prepare()
		a := p.send(golden.Edit(t, p.body, e.field, value))
		assert.Equal(t, 2, a.Status/100, "%.80s\n%s", value, a.Body)
	}
	p := prepare()
	before := p.m.records()
	a := p.send(golden.Edit(t, p.body, e.field, e.refused))
	w.refused(a, dialect, e.field, e.code)
	if !w.plain {
		assert.Equal(t, "Validation Error", a.at("title"))
		assert.Equal(t, p.path, a.at("instance"))
	}
	assert.Equal(t, before, p.m.records(), "it changes nothing")
}

func values(list ...string) []string { return list }

// words returns the JSON of each of the words of a list.
func words(list string) []string {
	var out []string
	for word := range strings.FieldsSeq(list) {
		out = append(out, `"`+word+`"`)
	}
	return out
}

func text(n int) string { return `"` + strings.Repeat("é", n) + `"` }

// email returns the JSON of an e-mail address of n characters.
func email(n int) string { return `"` + strings.Repeat("a", n-len("@example.com")) + `@example.com"` }

func shopURL(n int) string { return `"https://shop.example.com/` + strings.Repeat("a", n-25) + `"` }

func TestAllFieldErrorsAtOnce(t *testing.T) {
	t.Parallel()
	a := newMock(t).call(http.MethodPost, "/v2/transactions",
		`{"amount":0,"method":"x","buyer":{"email":1},"products":[{"name":"B","price":1},{}]}`).problem(400, "VALIDATION_ERROR")
	errors, ok := a.at("errors").([]any)
	assert.True(t, ok)
	assert.Len(t, errors, 6, string(a.Body)) // amount, method, buyer.name, buyer.email, products[1].name, products[1].price
	assert.Equal(t, "6 fields are invalid.", a.at("detail"))
}

// Whole numbers may be written in other notations; a value that is not an
// integer is rejected with its name.
func TestNumberForms(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	for _, amount := range []string{"1e3", "1000.0", "1.0E3"} {
		a := m.call(http.MethodPost, "/v2/transactions", charge("amount", amount))
		if a.Status == http.StatusCreated {
			assert.InDelta(t, 1000, a.at("data.amount"), 0)
			continue
		}
		a.problem(400, "VALIDATION_ERROR").field("amount", "invalid_type")
	}
	m.call(http.MethodPost, "/v2/transactions", charge("amount", "1e400")).problem(400, "VALIDATION_ERROR").field("amount", "invalid_type")
	m.call(http.MethodPost, "/v2/transactions", charge("amount", "99999999999999999999")).problem(400, "VALIDATION_ERROR")
}

func TestUnknownMembersAreIgnored(t *testing.T) {
	t.Parallel()
	a := newMock(t).call(http.MethodPost, "/v2/transactions", charge("Amount", "5", "colour", `{"x":[1]}`))
	assert.Equal(t, http.StatusCreated, a.Status)
	assert.InDelta(t, 1000, a.at("data.amount"), 0, "names are matched exactly")
}
