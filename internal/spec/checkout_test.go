package spec_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/internal/spec"
)

const (
	valueLink   = `{"amount": 4990, "currency": "BRL", "title": "Order 17"}`
	productLink = `{"currency": "BRL", "products": [{
		"external_id": "P1", "name": "Mug", "price": 3990, "quantity": 2, "description": "Blue",
		"image_url": "https://shop.example/mug.png", "compare_price": 4990, "type": "physical", "currency": "BRL"}]}`
)

func TestCheckoutLinkEdges(t *testing.T) {
	t.Parallel()
	checkEdges(t, spec.CheckoutLink, valueLink, []edge{
		{"amount", "1", "0", spec.CodeTooSmall},
		{"amount", "100000000", "100000001", spec.CodeTooBig},
		{"amount", "1", "null", spec.CodeInvalidType},
		{"currency", `"GLC"`, `"XXX"`, spec.CodeInvalidEnum},
		{"currency", missing, "null", spec.CodeInvalidType},
		{"title", text(1), text(0), spec.CodeTooSmall},
		{"title", text(255), text(256), spec.CodeTooBig},
		{"title", missing, "17", spec.CodeInvalidType},
		{"description", "null", "17", spec.CodeInvalidType},
		{"expires_at", `"2027-02-04T12:00:00-03:00"`, `"2027-02-04"`, spec.CodeInvalid},
		{"max_uses", "1", "0", spec.CodeTooSmall},
		{"max_uses", "null", `"1"`, spec.CodeInvalidType},
		{"success_url", `"shop://thanks"`, "17", spec.CodeInvalidType},
		{"cancel_url", "null", "[]", spec.CodeInvalidType},
		{"payment_methods", "[]", "null", spec.CodeInvalidType},
		{"metadata", "{}", "[]", spec.CodeInvalidType},
	})
	checkEdges(t, spec.CheckoutLink, edit(t, valueLink, "payment_methods", `["pix","pix"]`), []edge{
		{"payment_methods[1]", `"credit_card"`, `"cash"`, spec.CodeInvalidEnum},
		{"payment_methods[1]", `"voucher"`, "7", spec.CodeInvalidType},
	})
}

func TestCheckoutLinkProductEdges(t *testing.T) {
	t.Parallel()
	product := `{"name":"n","price":1}`
	checkEdges(t, spec.CheckoutLink, productLink, []edge{
		{"products", list(1, product), "[]", spec.CodeTooSmall},
		{"products", list(25, product), list(26, product), spec.CodeTooBig},
		{"products", list(1, product), missing, spec.CodeRequired},
		{"products", list(1, product), "null", spec.CodeInvalidType},
		{"products[0]", product, `"P1"`, spec.CodeInvalidType},
		{"products[0].external_id", missing, text(0), spec.CodeTooSmall},
		{"products[0].name", text(255), text(256), spec.CodeTooBig},
		{"products[0].name", text(1), text(0), spec.CodeTooSmall},
		{"products[0].name", text(1), missing, spec.CodeRequired},
		{"products[0].price", "0", "-1", spec.CodeTooSmall},
		{"products[0].price", "100000000", "100000001", spec.CodeTooBig},
		{"products[0].price", "0", missing, spec.CodeRequired},
		{"products[0].quantity", "1", "0", spec.CodeTooSmall},
		{"products[0].quantity", "999999", "1000000", spec.CodeTooBig},
		{"products[0].description", "null", "7", spec.CodeInvalidType},
		{"products[0].image_url", "null", `"mug.png"`, spec.CodeInvalid},
		{"products[0].image_url", `"http://shop.example/a.png"`, `"javascript:alert(1)"`, spec.CodeInvalid},
		{"products[0].compare_price", "null", "-1", spec.CodeTooSmall},
		{"products[0].compare_price", "100000000", "100000001", spec.CodeTooBig},
		{"products[0].type", `"digital"`, `"virtual"`, spec.CodeInvalidEnum},
		{"products[0].currency", `"BRL"`, `"usd"`, spec.CodeInvalidEnum},
		{"products[0].metadata", "null", `"blue"`, spec.CodeInvalidType},
	})
}

func TestCheckoutLinkNeedsProductsOrAmount(t *testing.T) {
	t.Parallel()
	both := check(t, edit(t, productLink, "amount", "100"), spec.CheckoutLink)
	if assert.Len(t, both, 1) {
		assert.Equal(t, spec.Violation{
			Field: "amount", Code: spec.CodeInvalid, Message: "must not be sent together with products",
		}, both[0])
	}
	none := check(t, `{"title": "Nothing"}`, spec.CheckoutLink)
	if assert.Len(t, none, 1) {
		assert.Equal(t, spec.Violation{
			Field: "products", Code: spec.CodeRequired, Message: "is required if amount is not sent",
		}, none[0])
	}
}

func TestCheckoutSessionEdges(t *testing.T) {
	t.Parallel()
	base := `{"payment_method": "pix", "buyer": {"name": "Ana", "email": "ana@example.com", "phone": "11999999999",
		"birth_date": "1990-01-31", "document": {"type": "CPF", "number": "39053344705"},
		"address": {"street": "Rua A", "number": "1", "complement": "2", "neighborhood": "Centro", "city": "São Paulo",
			"state": "SP", "zipCode": "01310100", "country": "BR"}}}`
	checkEdges(t, spec.CheckoutSession, base, []edge{
		{"payment_method", `"voucher"`, `"boleto"`, spec.CodeInvalidEnum},
		{"payment_method", missing, `""`, spec.CodeInvalidEnum},
		{"buyer", missing, "null", spec.CodeInvalidType},
		{"buyer", "{}", "[]", spec.CodeInvalidType},
		{"buyer.name", missing, text(0), spec.CodeTooSmall},
		{"buyer.name", text(1), "7", spec.CodeInvalidType},
		{"buyer.email", "null", `"ana"`, spec.CodeInvalid},
		{"buyer.phone", "null", "11", spec.CodeInvalidType},
		{"buyer.document.type", `"CURP"`, `"cpf"`, spec.CodeInvalidEnum},
		{"buyer.document.number", `"1"`, missing, spec.CodeRequired},
		{"buyer.address.street", text(1), text(0), spec.CodeTooSmall},
		{"buyer.address.city", text(1), missing, spec.CodeRequired},
		{"buyer.address.state", `"SP"`, `"S"`, spec.CodeTooSmall},
		{"buyer.address.state", `"SPX"`, `"SPXY"`, spec.CodeTooBig},
		{"buyer.address.state", `"9A"`, `"S."`, spec.CodeInvalid},
		{"buyer.address.country", `"UY"`, `"US"`, spec.CodeInvalidEnum},
	})
	assert.Empty(t, check(t, "{}", spec.CheckoutSession))
}

func TestAllProductsOfALinkHaveOneCurrency(t *testing.T) {
	t.Parallel()
	mug := func(currency string) string { return `{"name":"Mug","price":1,"currency":` + currency + `}` }
	const want = "must be BRL: a checkout link and all its products must have the same currency"
	for body, field := range map[string]string{
		`{"currency":"BRL","products":[` + mug(`"BRL"`) + `,` + product + `]}`:                      "",
		`{"currency":"BRL","products":[` + mug(`"USD"`) + `]}`:                                      "products[0].currency",
		`{"currency":"BRL","products":[` + product + `,` + mug(`"USD"`) + `]}`:                      "products[1].currency",
		`{"products":[` + mug(`"BRL"`) + `,` + mug(`"BRL"`) + `,` + mug(`"USD"`) + `]}`:             "products[2].currency",
		`{"products":[` + product + `,` + mug(`"BRL"`) + `,` + mug(`"USD"`) + `],"currency":"BRL"}`: "products[2].currency",
		`{"amount":1,"currency":"BRL","metadata":{"currency":"USD"}}`:                               "",
	} {
		found := check(t, body, spec.CheckoutLink)
		if field == "" {
			assert.Empty(t, found, body)
			continue
		}
		assert.Equal(t, []spec.Violation{{Field: field, Message: want, Code: spec.CodeInvalid}}, found, body)
	}
	for _, wrong := range []string{ // reported once, not also as a different currency
		`{"currency":"XXX","products":[` + mug(`"BRL"`) + `]}`, `{"currency":"BRL","products":[` + mug(`"XXX"`) + `]}`,
		`{"currency":"BRL","products":[` + mug(`7`) + `]}`, `{"currency":"BRL","products":{"a":` + mug(`"USD"`) + `}}`,
		`{"currency":"BRL","products":["USD"]}`, `{"currency":"BRL","products":[["currency","USD"]]}`,
	} {
		assert.Len(t, check(t, wrong, spec.CheckoutLink), 1, wrong)
	}
}

func TestHostedPaymentEdges(t *testing.T) {
	t.Parallel()
	base := `{"session_token": "s", "buyer": {"name": "Ana"}, "payment_method": "credit_card", "currency": "BRL", "amount": 1,
		"token": "pgct_1", "installments": 1, "idempotency_key": "k"}`
	checkEdges(t, spec.HostedPayment, base, []edge{
		{"session_token", text(1), text(0), spec.CodeTooSmall},
		{"session_token", text(1), missing, spec.CodeRequired},
		{"session_token", text(1), "null", spec.CodeInvalidType},
		{"buyer.name", "null", text(0), spec.CodeTooSmall},
		{"payment_method", missing, `"cash"`, spec.CodeInvalidEnum},
		{"currency", missing, `"XXX"`, spec.CodeInvalidEnum},
		{"currency", `"USD"`, "null", spec.CodeInvalidType},
		{"amount", missing, "0", spec.CodeTooSmall},
		{"amount", "1", "null", spec.CodeInvalidType},
		{"amount", "100000000", "100000001", spec.CodeTooBig},
		{"token", missing, `"tok_1"`, spec.CodeInvalid},
		{"token", "null", "7", spec.CodeInvalidType},
		{"installments", missing, "0", spec.CodeTooSmall},
		{"installments", "null", `"1"`, spec.CodeInvalidType},
		{"installments", "1", "0", spec.CodeTooSmall},
		{"installments", "12", "13", spec.CodeTooBig},
		{"idempotency_key", missing, "7", spec.CodeInvalidType},
		{"idempotency_key", "null", text(256), spec.CodeTooBig},
		{"idempotency_key", text(255), text(256), spec.CodeTooBig},
	})
	checkEdges(t, spec.HostedSession, `{}`, []edge{
		{"referrer_url", missing, "7", spec.CodeInvalidType}, {"referrer_url", "null", "[]", spec.CodeInvalidType},
	})
}

func TestCheckoutOperations(t *testing.T) {
	t.Parallel()
	assert.Equal(t, spec.Safe, spec.CheckoutSessions.Resume.Class)
	for want, op := range map[string]spec.Operation{
		"hosted_checkout.open unsafe": spec.HostedCheckout.Open, "hosted_checkout.pay keyed": spec.HostedCheckout.Pay,
	} {
		assert.Equal(t, want, op.Name+" "+op.Class.String())
	}
}

func TestCheckoutSlug(t *testing.T) {
	t.Parallel()
	slug := func(s string) []spec.Violation {
		return spec.CheckQuery(url.Values{"slug": {s}}, spec.CheckoutSlug, spec.Variant{})
	}
	assert.Empty(t, slug("abc"))
	assert.Empty(t, slug(strings.Repeat("é", 255)))
	for bad, code := range map[string]string{
		"": spec.CodeTooSmall, "..": spec.CodeTooSmall, strings.Repeat("é", 256): spec.CodeTooBig,
	} {
		found := slug(bad)
		if assert.Len(t, found, 1, bad) {
			assert.Equal(t, "slug", found[0].Field)
			assert.Equal(t, code, found[0].Code)
		}
	}
}
