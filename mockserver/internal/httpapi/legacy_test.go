package httpapi_test

import (
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// v1 sends a request as v1 requires it: with the apiKey header.
func (m *mock) v1(method, path, body string) response {
	m.t.Helper()
	return m.call(method, path, body, "Authorization", "", "apiKey", key)
}

func TestGoldenLegacy(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	const integration, payment = "/v1/business/integration", "/pix/v1/payment"
	m.v1(http.MethodPost, integration, string(golden.Read(t, "legacy/configure_integration.request.json"))).
		alike(http.StatusOK, "legacy/configure_integration.response.json")
	m.v1(http.MethodPost, integration, string(golden.Read(t, "legacy/configure_integration_pix.request.json"))).
		alike(http.StatusCreated, "legacy/configure_integration_pix.response.json")
	kept := m.v1(http.MethodPost, integration, `{}`)
	assert.Equal(t, "https://shop.example/webhooks/all", kept.text("webhookUrl"), "omitted members are unchanged")

	a := m.v1(http.MethodPost, payment, string(golden.Read(t, "legacy/create_pix_payment.request.json"))).
		alike(http.StatusCreated, "legacy/create_pix_payment.response.json", "transactionId")
	png, err := base64.StdEncoding.DecodeString(a.text("pixQrCode"))
	require.NoError(t, err)
	assert.Equal(t, "image/png", http.DetectContentType(png))
	assert.Equal(t, "2027-01-04T13:00:00.000Z", a.text("expirationDate"), "expirationTime is in seconds")

	id := a.text("transactionId")
	tx := m.call(http.MethodGet, "/v2/transactions/"+id, "")
	assert.Equal(t, "pix", tx.text("data.method"))
	assert.Equal(t, a.text("pixCode"), tx.text("data.pix.qr_code"))
	assert.Equal(t, "Centro", tx.text("data.buyer.address.neighborhood"))
	assert.Equal(t, map[string]any{"type": "CPF", "number": "52998224725"}, tx.at("data.buyer.document"))
	company := m.v1(http.MethodPost, payment, `{"type":"PIX","payer":{"fullName":"Loja","document":"11.222.333/0001-81"},"transaction":{"value":1}}`)
	tx = m.call(http.MethodGet, "/v2/transactions/"+company.text("transactionId"), "")
	assert.Equal(t, map[string]any{"type": "CNPJ", "number": "11.222.333/0001-81"}, tx.at("data.buyer.document"))
	assert.Equal(t, "Loja", tx.at("data.buyer.name"))
	m.move(id, engine.Pay)
	_, refusal := m.account().Transfer(m.payout("one"), engine.ProcessTransfer)
	require.Nil(t, refusal)
	assert.JSONEq(t, `{"balance":0,"currency":"BRL"}`, string(m.v1(http.MethodGet, "/v1/account/balance", "").Body))
	m.v1(http.MethodGet, "/v1/account/balance", "").alike(http.StatusOK, "legacy/balance.response.json", "balance")
}

func TestLegacyErrors(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	m.call(http.MethodGet, "/v1/account/balance", "").problem(http.StatusUnauthorized, "UNAUTHORIZED")
	m.v1(http.MethodPost, "/v1/business/integration", `{"pixWebhookUrl":"http://shop.example"}`).
		problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field("pixWebhookUrl", "invalid_string")
	m.v1(http.MethodPost, "/pix/v1/payment", `{"type":"PIX","payer":{},"transaction":{"value":0}}`).
		problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field("transaction.value", "too_small")
	a := m.v1(http.MethodPost, "/pix/v1/payment", `{"type":"PIX","payer":{},"transaction":{"value":1}}`)
	assert.Equal(t, http.StatusCreated, a.Status, string(a.Body))
	assert.Equal(t, "2027-01-05T12:00:00.000Z", a.text("expirationDate"), "a day if no time is sent")
}

// An externalId is not an idempotency key: each call creates a payment.
func TestLegacyPaymentsMayRepeat(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	body := string(golden.Read(t, "legacy/create_pix_payment.request.json"))
	first := m.v1(http.MethodPost, "/pix/v1/payment", body)
	second := m.v1(http.MethodPost, "/pix/v1/payment", body)
	assert.Equal(t, http.StatusCreated, second.Status)
	assert.NotEqual(t, first.text("transactionId"), second.text("transactionId"))
}

func TestPaymentToken(t *testing.T) {
	t.Parallel()
	const path = "/v2/payment_token/pgct_ok_4242"
	at := func(moment time.Time) *mock {
		return newMock(t, func(hc *httpapi.Config, sc *store.Config) {
			c := clock.New(clock.Config{Start: moment, Fire: func(clock.Timer) error { return nil }})
			hc.Now, sc.Clock = c.Now, c
		})
	}
	ends := time.Date(2026, time.August, 1, 3, 0, 0, 0, time.UTC)

	before := at(ends.Add(-time.Millisecond))
	before.sent(http.MethodPost, path, "legacy/create_payment_token.request.json").
		alike(http.StatusOK, "legacy/create_payment_token.response.json", "token", "exp_year")
	before.call(http.MethodPost, path, `{"card_number":"4111111111111111"}`).
		problem(http.StatusBadRequest, "VALIDATION_ERROR").field("card_number", "invalid_string")

	assert.InDelta(t, 2029, before.call(http.MethodGet, path, "").at("data.exp_year"), 0, "it is valid for some time")

	after := at(ends)
	for _, body := range []string{`{}`, `{`, `{"card_number":"4111111111111111"}`} {
		after.call(http.MethodPost, path, body).problem(http.StatusGone, "LEGACY_TOKENIZATION_RETIRED")
	}
	after.call(http.MethodPost, path, `{}`, "Authorization", "").problem(http.StatusUnauthorized, "UNAUTHORIZED")
	after.call(http.MethodGet, path, "").
		alike(http.StatusOK, "legacy/payment_token.response.json", "token", "exp_year")
}
