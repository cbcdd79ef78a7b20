package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// hosted opens a session by the live route and returns the body of a payment
// with its token and more members.
func (m *mock) hosted(slug, more string) string {
	m.t.Helper()
	a := m.call(http.MethodPost, "/v2/checkout/"+slug+"/session", `{"referrer_url":"https://shop.example/cart"}`)
	require.Equal(m.t, http.StatusCreated, a.Status, string(a.Body))
	assert.NotEmpty(m.t, a.text("data.expires_at"))
	return `{"session_token":"` + a.text("data.session_token") + `"` + more + `}`
}

const anaByPix = `,"payment_method":"pix","buyer":{"name":"Ana","email":"ana@example.com"}`

func TestHostedPaymentOfTheLiveDialect(t *testing.T) {
	t.Parallel()
	m := newMock(t, live)
	slug := m.link(`{"amount":4990}`)
	pay := "/v2/checkout/" + slug + "/pay"
	body := m.hosted(slug, anaByPix+`,"amount":4990,"currency":"BRL","idempotency_key":"order-17"`)
	a := m.call(http.MethodPost, pay, body)
	require.Equal(t, http.StatusOK, a.Status, string(a.Body))
	assert.Equal(t, "pending", a.text("data.transaction.status"))
	assert.NotEmpty(t, a.text("data.transaction.pix.qr_code"))
	again := m.call(http.MethodPost, pay, body)
	assert.Equal(t, a.text("data.transaction.id"), again.text("data.transaction.id"), "with the same key it is the same payment")
	m.move(a.text("data.transaction.id"), engine.Pay)
	assert.Equal(t, "paid", m.call(http.MethodPost, pay, body).text("data.transaction.status"))
	m.account().View(func(d *store.Data) { assert.Equal(t, 1, d.Transactions.Len()) })

	card := m.hosted(slug, `,"payment_method":"credit_card","buyer":{"name":"Ana","email":"ana@example.com"},"token":"pgct_captured_4242","installments":6`)
	a = m.call(http.MethodPost, pay, card)
	assert.Equal(t, "captured", a.text("data.transaction.status"))
	assert.InDelta(t, 6, a.at("data.transaction.installments"), 0)
	m.call(http.MethodPost, pay, card).problem(http.StatusConflict, "INVALID_STATE")
	card = m.hosted(slug, `,"payment_method":"credit_card","buyer":{"name":"Ana","email":"ana@example.com"},"token":"pgct_captured_4242"`)
	m.call(http.MethodPost, pay, card).problem(http.StatusUnprocessableEntity, "TOKEN_ALREADY_USED").field("token", "invalid_string")
}

func TestHostedPaymentsRules(t *testing.T) {
	t.Parallel()
	m := newMock(t, live)
	slug, other := m.link(`{"amount":4990}`), m.link(`{"amount":1}`)
	pay := "/v2/checkout/" + slug + "/pay"
	for more, field := range map[string][2]string{
		`,"buyer":{"name":"Ana","email":"ana@example.com"}`:                                {"payment_method", "required"},
		`,"payment_method":"pix","buyer":{"email":"ana@example.com"}`:                      {"buyer.name", "required"},
		`,"payment_method":"pix","buyer":{"name":"Ana"}`:                                   {"buyer.email", "required"},
		anaByPix + `,"amount":4989`:                                                        {"amount", "invalid_string"},
		anaByPix + `,"currency":"USD"`:                                                     {"currency", "invalid_string"},
		anaByPix + `,"installments":13`:                                                    {"installments", "too_big"},
		anaByPix + `,"token":"tok_1"`:                                                      {"token", "invalid_string"},
		`,"payment_method":"credit_card","buyer":{"name":"Ana","email":"ana@example.com"}`: {"token", "required"},
	} {
		m.call(http.MethodPost, pay, m.hosted(slug, more)).problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field(field[0], field[1])
	}
	m.call(http.MethodPost, pay, `{}`).problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field("session_token", "required")
	m.call(http.MethodPost, pay, m.hosted(other, anaByPix)).problem(http.StatusUnauthorized, "INVALID_SESSION_TOKEN")
	m.call(http.MethodPost, pay, m.hosted(slug, anaByPix), "Authorization", "").problem(http.StatusUnauthorized, "UNAUTHORIZED")
	m.call(http.MethodPost, "/v2/checkout/nothing/session", "").problem(http.StatusNotFound, "NOT_FOUND")
	m.call(http.MethodPost, "/v2/checkout/nothing/pay", m.hosted(slug, anaByPix)).problem(http.StatusNotFound, "NOT_FOUND")
	late := m.hosted(slug, anaByPix)
	require.NoError(t, m.clock.Advance(t.Context(), 30*time.Minute))
	m.call(http.MethodPost, pay, late).problem(http.StatusGone, "CHECKOUT_GONE")
	m.account().View(func(d *store.Data) { assert.Equal(t, 0, d.Transactions.Len(), "rejected requests created nothing") })
}

// The document dialect has neither route.
func TestHostedRoutesAreLive(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	slug := m.link(`{"amount":4990}`)
	m.call(http.MethodPost, "/v2/checkout/"+slug+"/pay", `{}`).problem(http.StatusNotFound, "UNKNOWN_PATH")
	m.call(http.MethodPost, "/v2/checkout/"+slug+"/session", `{}`).problem(http.StatusNotFound, "UNKNOWN_PATH")
	m.call(http.MethodGet, "/v2/checkout/"+slug+"/session", "").problem(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED")
	m.call(http.MethodGet, "/v2/checkout/"+slug+"/pay", "").problem(http.StatusNotFound, "UNKNOWN_PATH")
	for _, o := range m.api.Operations() {
		assert.NotContains(t, o.Name, "hosted")
	}
}
