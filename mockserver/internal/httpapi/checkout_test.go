package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// link makes a checkout link and returns its slug.
func (m *mock) link(body string) string {
	m.t.Helper()
	a := m.call(http.MethodPost, "/v2/checkout-links", body)
	require.Equal(m.t, http.StatusCreated, a.Status, string(a.Body))
	url := a.text("data.url")
	return url[strings.LastIndexByte(url, '/')+1:]
}

// visit reads a link; token is of a session to resume.
func (m *mock) visit(slug, token string) response {
	m.t.Helper()
	return m.call(http.MethodGet, "/v2/checkout/"+slug, "", "x-checkout-session-token", token)
}

func (m *mock) fill(slug, token, body string) response {
	m.t.Helper()
	return m.call(http.MethodPatch, "/v2/checkout/"+slug+"/session", body, "x-checkout-session-token", token)
}

// The golden link has members that the document's create request cannot set, so
// the test sets them with the additional members that the mock accepts.
func TestGoldenCheckout(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	m.sent(http.MethodPost, "/v2/checkout-links", "checkout_links/create.request.json").
		alike(http.StatusCreated, "checkout_links/create.response.json", "url")
	m.sent(http.MethodPost, "/v2/checkout-links", "checkout_links/create_amount.request.json").
		alike(http.StatusCreated, "checkout_links/create.response.json", "url")
	slug := m.link(`{"title":"Order 17","description":"Two mugs","expires_at":"2027-02-04T12:00:00Z","max_uses":1,
		"success_url":"https://shop.example/thanks","cancel_url":"https://shop.example/cart",
		"payment_methods":["pix","credit_card"],"metadata":{"order":17},
		"products":[{"external_id":"MUG-1","name":"Mug","price":3990,"quantity":2,"description":"Blue, 300 ml",
			"image_url":"https://shop.example/mug.png","compare_price":4990,"metadata":{"color":"blue"}}]}`)
	open := m.visit(slug, "").alike(http.StatusOK, "checkout_sessions/open.response.json", "id", "product_id")
	require.NoError(t, m.clock.Advance(t.Context(), time.Minute))
	m.fill(slug, open.text("data.session_token"), `{}`)
	updated := m.call(http.MethodPatch, "/v2/checkout/"+slug+"/session",
		string(golden.Read(t, "checkout_sessions/update.request.json")), "x-checkout-session-token", open.text("data.session_token"))
	updated.alike(http.StatusOK, "checkout_sessions/update.response.json")

	slug = m.link(`{"title":"Order 18","amount":4990,"payment_methods":["pix"]}`)
	token := m.visit(slug, "").text("data.session_token")
	m.visit(slug, token).alike(http.StatusOK, "checkout_sessions/resume.response.json", "id", "used_count")
}

func TestCheckoutLinkURL(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	a := m.call(http.MethodPost, "/v2/checkout-links", `{"amount":4990}`)
	assert.Regexp(t, `^http://example\.com/pay/[a-z0-9]{12}$`, a.text("data.url"))
	a = m.call(http.MethodPost, "/v2/checkout-links", `{"amount":4990}`, "X-Forwarded-Proto", "https")
	assert.Regexp(t, `^https://example\.com/pay/`, a.text("data.url"))

	m = newMock(t, func(hc *httpapi.Config, _ *store.Config) { hc.Hosts = []string{"shop.test"} })
	for forwarded, want := range map[string]string{
		"shop.test:8443": "https://shop.test:8443/pay/", "evil.test": "https://example.com/pay/", "shop.test/x": "https://example.com/pay/",
	} {
		a = m.call(http.MethodPost, "/v2/checkout-links", `{"amount":4990}`, "X-Forwarded-Proto", "https", "X-Forwarded-Host", forwarded)
		assert.Contains(t, a.text("data.url"), want)
	}
	for forwarded, want := range map[string]string{
		`for=192.0.2.60;proto=https;host=shop.test`:                 "https://shop.test/pay/",
		`proto=HTTPS; host="shop.test:8443", host=inner;proto=http`: "https://shop.test:8443/pay/",
		`host=evil.test;proto=https`:                                "https://example.com/pay/",
		`for="[2001:db8::1]"`:                                       "http://example.com/pay/",
	} {
		a = m.call(http.MethodPost, "/v2/checkout-links", `{"amount":4990}`, "Forwarded", forwarded)
		assert.Contains(t, a.text("data.url"), want, forwarded)
	}
	m = newMock(t, func(hc *httpapi.Config, _ *store.Config) { hc.PublicURL = "https://pay.test/mock/" })
	a = m.call(http.MethodPost, "/v2/checkout-links", `{"amount":4990}`, "X-Forwarded-Host", "localhost")
	assert.Contains(t, a.text("data.url"), "https://pay.test/mock/pay/")
}

// A link's errors have the plain body, in both dialects.
func TestCheckoutLinkErrors(t *testing.T) {
	t.Parallel()
	for _, change := range []option{document, live} {
		m := newMock(t, change)
		for body, field := range map[string]string{
			`{}`: "products",
			`{"amount":1,"products":[{"name":"Mug","price":1}]}`: "amount",
			`{"products":[]}`: "products",
			`{"amount":1,"expires_at":"2027-01-04T12:00:00Z"}`:              "expires_at",
			`{"amount":1,"payment_methods":["cash"]}`:                       "payment_methods[0]",
			`{"amount":1,"metadata":[]}`:                                    "metadata",
			`{"products":[{"name":"Mug","price":1,"metadata":"text"}]}`:     "products[0].metadata",
			`{"amount":1,"currency":"EUR","title":"","payment_methods":[]}`: "title",
		} {
			a := m.call(http.MethodPost, "/v2/checkout-links", body)
			assert.Equal(t, http.StatusUnprocessableEntity, a.Status, body)
			assert.ElementsMatch(t, []string{"error", "message", "status"}, a.keysOfBody(), body)
			assert.Contains(t, a.text("message"), field+" ", body)
		}
		m.call(http.MethodPost, "/v2/checkout-links", `{`).problem(http.StatusBadRequest, "MALFORMED_JSON")
	}
}

func TestCheckoutSession(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	slug, other := m.link(`{"amount":4990}`), m.link(`{"amount":1}`)
	first := m.visit(slug, "")
	token := first.text("data.session_token")
	assert.Equal(t, false, first.at("data.resumed"))
	assert.Equal(t, true, m.visit(slug, token).at("data.resumed"))
	assert.Equal(t, false, m.visit(other, token).at("data.resumed"), "a token is of one link")
	assert.Equal(t, false, m.visit(slug, "cst_wrong").at("data.resumed"))

	// Filled in step by step: absent members are unchanged, null clears.
	assert.Equal(t, "open", m.fill(slug, token, `{"buyer":{"name":"Ana"},"payment_method":"pix"}`).text("data.status"))
	assert.Equal(t, "ready", m.fill(slug, token, `{"buyer":{"email":"ana@example.com"}}`).text("data.status"))
	assert.Equal(t, "open", m.fill(slug, token, `{"buyer":{"name":null}}`).text("data.status"))
	assert.Equal(t, "ready", m.fill(slug, token, `{"buyer":{"name":"Ana Souza","address":{"street":"Rua A","city":"São Paulo"}}}`).
		text("data.status"))

	m.fill(slug, token, `{"buyer":{"phone":"11","birth_date":"1990-01-02","document":{"type":"CPF","number":"52998224725"}}}`)
	buyer := func() (b engine.Buyer) {
		m.account().View(func(d *store.Data) { b = *d.Sessions.ByRef(token).Buyer })
		return b
	}
	assert.Equal(t, engine.Buyer{
		Name: "Ana Souza", Email: "ana@example.com", Phone: "11", BirthDate: "1990-01-02",
		Document: &engine.Document{Type: "CPF", Number: "52998224725"}, Address: &engine.Address{Street: "Rua A", City: "São Paulo", Country: "BR"},
	}, buyer())
	m.fill(slug, token, `{"buyer":{"phone":null,"document":null,"address":null}}`)
	assert.Equal(t, engine.Buyer{Name: "Ana Souza", Email: "ana@example.com", BirthDate: "1990-01-02"}, buyer())

	m.fill(slug, "", `{}`).problem(http.StatusUnauthorized, "INVALID_SESSION_TOKEN")
	m.fill(slug, "cst_wrong", `{}`).problem(http.StatusUnauthorized, "INVALID_SESSION_TOKEN")
	m.fill(other, token, `{}`).problem(http.StatusUnauthorized, "INVALID_SESSION_TOKEN")
	m.fill(slug, token, `{"buyer":{"email":"ana"}}`).problem(http.StatusBadRequest, "VALIDATION_ERROR").
		field("buyer.email", "invalid_string")
	require.NoError(t, m.clock.Advance(t.Context(), 30*time.Minute))
	m.fill(slug, token, `{}`).problem(http.StatusGone, "CHECKOUT_GONE")
	assert.Equal(t, false, m.visit(slug, token).at("data.resumed"), "an expired session is opened anew")
}

// A product without a currency has that of the link that shows it, whatever its
// currency in other links.
func TestCheckoutCurrencies(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	reais := m.link(`{"products":[{"external_id":"MUG-1","name":"Mug","price":3990},{"name":"Fee","price":1,"currency":"BRL"}]}`)
	dollars := m.link(`{"currency":"USD","products":[{"external_id":"MUG-1","name":"Mug","price":3990}]}`)
	for slug, currency := range map[string]string{reais: "BRL", dollars: "USD"} {
		a := m.visit(slug, "")
		assert.Equal(t, currency, a.at("data.link.currency"))
		assert.Equal(t, currency, a.at("data.items.0.currency"))
	}
}

// A product that is sent again under its external id has its new price in
// earlier links too.
func TestCheckoutCatalogue(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	first := m.link(`{"products":[{"external_id":"MUG-1","name":"Mug","price":3990}]}`)
	second := m.link(`{"products":[{"external_id":"MUG-1","name":"Blue mug","price":4990}]}`)
	assert.InDelta(t, 1, m.visit(first, "").at("data.link.id"), 0)
	assert.InDelta(t, 2, m.visit(second, "").at("data.link.id"), 0)
	item := m.visit(first, "")
	assert.Equal(t, "Blue mug", item.at("data.items.0.name"))
	assert.InDelta(t, 4990, item.at("data.items.0.price"), 0)
}

// A session accepts only the payment methods of its link.
func TestCheckoutSessionMethods(t *testing.T) {
	t.Parallel()
	for dialect, change := range dialects {
		m := newMock(t, change)
		slug := m.link(`{"amount":4990,"payment_methods":["pix","voucher"]}`)
		token := m.visit(slug, "").text("data.session_token")
		for _, method := range []string{"pix", "voucher"} {
			assert.Equal(t, method, m.fill(slug, token, `{"payment_method":"`+method+`"}`).text("data.selected_payment_method"))
		}
		m.fill(slug, token, `{"payment_method":"credit_card"}`).
			problem(in(dialect, http.StatusBadRequest, http.StatusUnprocessableEntity), "VALIDATION_ERROR").
			field("payment_method", "invalid_enum_value")
	}
}

func TestCheckoutSlugs(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	m.visit("abc", "").problem(http.StatusNotFound, "NOT_FOUND")
	m.visit(strings.Repeat("a", 255), "").problem(http.StatusNotFound, "NOT_FOUND")
	m.visit("ab", "").problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field("slug", "too_small")
	m.visit(strings.Repeat("a", 256), "").problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field("slug", "too_big")
	m.fill("ab", "", `{}`).problem(http.StatusBadRequest, "VALIDATION_ERROR").field("slug", "too_small")
	m.fill("abc", "", `{}`).problem(http.StatusNotFound, "NOT_FOUND")
	slug := m.link(`{"amount":1,"expires_at":"2027-01-04T13:00:00Z"}`)
	require.NoError(t, m.clock.Advance(t.Context(), time.Hour))
	m.visit(slug, "").problem(http.StatusGone, "CHECKOUT_GONE")
}
