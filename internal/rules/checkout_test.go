package rules_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/internal/rules"
)

const (
	valueLink   = `{"amount": 4990, "currency": "BRL", "title": "Order 17"}`
	productLink = `{"currency": "BRL", "products": [{
		"external_id": "P1", "name": "Mug", "price": 3990, "quantity": 2, "description": "Blue",
		"image_url": "https://shop.example/mug.png", "compare_price": 4990, "type": "physical", "currency": "BRL"}]}`
)

func TestCheckoutLinkEdges(t *testing.T) {
	t.Parallel()
	checkEdges(t, rules.CheckoutLink, valueLink, []edge{
		{"amount", "1", "0", rules.CodeTooSmall},
		{"amount", "100000000", "100000001", rules.CodeTooBig},
		{"amount", "1", "null", rules.CodeInvalidType},
		{"currency", `"GLC"`, `"XXX"`, rules.CodeInvalidEnum},
		{"currency", missing, "null", rules.CodeInvalidType},
		{"title", text(1), text(0), rules.CodeTooSmall},
		{"title", text(255), text(256), rules.CodeTooBig},
		{"title", missing, "17", rules.CodeInvalidType},
		{"description", "null", "17", rules.CodeInvalidType},
		{"expires_at", `"2027-02-04T12:00:00-03:00"`, `"2027-02-04"`, rules.CodeInvalid},
		{"max_uses", "1", "0", rules.CodeTooSmall},
		{"max_uses", "null", `"1"`, rules.CodeInvalidType},
		{"success_url", `"shop://thanks"`, "17", rules.CodeInvalidType},
		{"cancel_url", "null", "[]", rules.CodeInvalidType},
		{"payment_methods", "[]", "null", rules.CodeInvalidType},
		{"metadata", "{}", "[]", rules.CodeInvalidType},
	})
	checkEdges(t, rules.CheckoutLink, edit(t, valueLink, "payment_methods", `["pix","pix"]`), []edge{
		{"payment_methods[1]", `"credit_card"`, `"cash"`, rules.CodeInvalidEnum},
		{"payment_methods[1]", `"voucher"`, "7", rules.CodeInvalidType},
	})
}

func TestCheckoutLinkProductEdges(t *testing.T) {
	t.Parallel()
	product := `{"name":"n","price":1}`
	checkEdges(t, rules.CheckoutLink, productLink, []edge{
		{"products", list(1, product), "[]", rules.CodeTooSmall},
		{"products", list(25, product), list(26, product), rules.CodeTooBig},
		{"products", list(1, product), missing, rules.CodeRequired},
		{"products", list(1, product), "null", rules.CodeInvalidType},
		{"products[0]", product, `"P1"`, rules.CodeInvalidType},
		{"products[0].external_id", missing, text(0), rules.CodeTooSmall},
		{"products[0].name", text(255), text(256), rules.CodeTooBig},
		{"products[0].name", text(1), text(0), rules.CodeTooSmall},
		{"products[0].name", text(1), missing, rules.CodeRequired},
		{"products[0].price", "0", "-1", rules.CodeTooSmall},
		{"products[0].price", "100000000", "100000001", rules.CodeTooBig},
		{"products[0].price", "0", missing, rules.CodeRequired},
		{"products[0].quantity", "1", "0", rules.CodeTooSmall},
		{"products[0].quantity", "999999", "1000000", rules.CodeTooBig},
		{"products[0].description", "null", "7", rules.CodeInvalidType},
		{"products[0].image_url", "null", `"mug.png"`, rules.CodeInvalid},
		{"products[0].image_url", `"http://shop.example/a.png"`, `"javascript:alert(1)"`, rules.CodeInvalid},
		{"products[0].compare_price", "null", "-1", rules.CodeTooSmall},
		{"products[0].compare_price", "100000000", "100000001", rules.CodeTooBig},
		{"products[0].type", `"digital"`, `"virtual"`, rules.CodeInvalidEnum},
		{"products[0].currency", `"BRL"`, `"usd"`, rules.CodeInvalidEnum},
		{"products[0].metadata", "null", `"blue"`, rules.CodeInvalidType},
	})
}

func TestCheckoutLinkWantsProductsOrAmount(t *testing.T) {
	t.Parallel()
	both := check(t, edit(t, productLink, "amount", "100"), rules.CheckoutLink)
	if assert.Len(t, both, 1) {
		assert.Equal(t, rules.Violation{
			Field: "amount", Code: rules.CodeInvalid, Message: "must not be sent together with products",
		}, both[0])
	}
	none := check(t, `{"title": "Nothing"}`, rules.CheckoutLink)
	if assert.Len(t, none, 1) {
		assert.Equal(t, rules.Violation{
			Field: "products", Code: rules.CodeRequired, Message: "is required where amount is not sent",
		}, none[0])
	}
}

func TestCheckoutSessionEdges(t *testing.T) {
	t.Parallel()
	base := `{"payment_method": "pix", "buyer": {"name": "Ana", "email": "ana@example.com", "phone": "11999999999",
		"birth_date": "1990-01-31", "document": {"type": "CPF", "number": "39053344705"},
		"address": {"street": "Rua A", "number": "1", "complement": "2", "neighborhood": "Centro", "city": "São Paulo",
			"state": "SP", "zipCode": "01310100", "country": "BR"}}}`
	checkEdges(t, rules.CheckoutSession, base, []edge{
		{"payment_method", `"voucher"`, `"boleto"`, rules.CodeInvalidEnum},
		{"payment_method", missing, `""`, rules.CodeInvalidEnum},
		{"buyer", missing, "null", rules.CodeInvalidType},
		{"buyer", "{}", "[]", rules.CodeInvalidType},
		{"buyer.name", missing, text(0), rules.CodeTooSmall},
		{"buyer.name", text(1), "7", rules.CodeInvalidType},
		{"buyer.email", "null", `"ana"`, rules.CodeInvalid},
		{"buyer.phone", "null", "11", rules.CodeInvalidType},
		{"buyer.document.type", `"CURP"`, `"cpf"`, rules.CodeInvalidEnum},
		{"buyer.document.number", `"1"`, missing, rules.CodeRequired},
		{"buyer.address.street", text(1), text(0), rules.CodeTooSmall},
		{"buyer.address.city", text(1), missing, rules.CodeRequired},
		{"buyer.address.state", `"SP"`, `"S"`, rules.CodeTooSmall},
		{"buyer.address.state", `"SPX"`, `"SPXY"`, rules.CodeTooBig},
		{"buyer.address.state", `"9A"`, `"S."`, rules.CodeInvalid},
		{"buyer.address.country", `"UY"`, `"US"`, rules.CodeInvalidEnum},
	})
	assert.Empty(t, check(t, "{}", rules.CheckoutSession))
}

func TestCheckoutSlug(t *testing.T) {
	t.Parallel()
	slug := func(s string) []rules.Violation {
		return rules.CheckQuery(url.Values{"slug": {s}}, rules.CheckoutSlug, rules.Variant{})
	}
	assert.Empty(t, slug("abc"))
	assert.Empty(t, slug(strings.Repeat("é", 255)))
	for bad, code := range map[string]string{
		"": rules.CodeTooSmall, "..": rules.CodeTooSmall, strings.Repeat("é", 256): rules.CodeTooBig,
	} {
		found := slug(bad)
		if assert.Len(t, found, 1, bad) {
			assert.Equal(t, "slug", found[0].Field)
			assert.Equal(t, code, found[0].Code)
		}
	}
}
