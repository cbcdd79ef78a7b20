package legacy_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/mockserver"
)

// v1Of returns the v1 client of a mock gateway.
func v1Of(t *testing.T, gw *mockserver.Server) *legacy.Client {
	t.Helper()
	v1, err := legacy.New(gw.Client(), gateway.NewSecret(gw.Key()))
	require.NoError(t, err)
	return v1
}

func TestIntegrationInBothVariants(t *testing.T) {
	t.Parallel()
	v1 := v1Of(t, mockserver.Run(t))
	both, err := v1.ConfigureIntegration(t.Context(), integrationParams())
	require.NoError(t, err)
	assert.Equal(t, &legacy.Integration{
		ID: both.ID, WebhookURL: "https://shop.example/webhooks/all", PixWebhookURL: "https://shop.example/webhooks/pix", Status: "active", Raw: both.Raw,
	}, both)
	assert.NotEmpty(t, both.ID)

	var response gateway.Response
	pix, err := v1.ConfigureIntegration(t.Context(), legacy.IntegrationParams{PixWebhookURL: "https://shop.example/other"},
		gateway.ResponseInto(&response))
	require.NoError(t, err)
	assert.Equal(t, http.StatusCreated, response.StatusCode)
	assert.Equal(t, http.StatusCreated, pix.StatusCode)
	assert.Equal(t, "https://shop.example/other", pix.PixWebhookURL)
	assert.NotEmpty(t, pix.Message)
}

func TestPixPaymentReachesTheBalance(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithOpeningBalance(1000))
	v1 := v1Of(t, gw)
	payment, err := v1.CreatePixPayment(t.Context(), paymentParams())
	require.NoError(t, err)
	assert.Equal(t, legacy.PaymentWaitingPayment, payment.Status)
	assert.True(t, strings.HasPrefix(payment.PixCode, "000201"), payment.PixCode)
	assert.Equal(t, time.Hour, payment.ExpirationDate.Sub(payment.GenerateTime.Time))
	image, err := base64.StdEncoding.DecodeString(payment.PixQRCode)
	require.NoError(t, err)
	assert.Equal(t, "image/png", http.DetectContentType(image))

	before, err := v1.Balance(t.Context())
	require.NoError(t, err)
	assert.Equal(t, &legacy.Balance{Balance: 1000, Currency: gateway.BRL}, before)

	require.NoError(t, gw.Transactions.Pay(payment.TransactionID))
	tx, err := gw.Client().Transactions.Get(t.Context(), payment.TransactionID)
	require.NoError(t, err)
	assert.Equal(t, gateway.TransactionPaid, tx.Status, "a v1 payment is a transaction with the same id")
	after, err := v1.Balance(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1000+tx.Fee.NetAmount, after.Balance)
}

func TestV1AcceptsTheAPIKeyHeaderOnly(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	for name, credential := range map[string]gateway.Credential{
		"bearer": gateway.BearerToken(gw.Key()),
		"basic":  gateway.BasicToken(gw.Key()),
	} {
		err := gw.Client(gateway.WithCredential(credential)).Do(t.Context(), http.MethodGet, "/v1/account/balance", nil, nil)
		require.ErrorIs(t, err, gateway.ErrUnauthorized, name)
	}
	_, err := v1Of(t, gw).Balance(t.Context(), gateway.UseCredential(gateway.BearerToken(gw.Key())))
	require.NoError(t, err, "this package always sends the apiKey header")
}

func TestTheGatewayRejectsWhatTheClientCannotValidate(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	v1 := v1Of(t, gw)
	_, err := v1.CreatePixPayment(t.Context(), paymentParams(), gateway.BodyField("extra", map[string]any{"cvv": "123"}))
	require.ErrorIs(t, err, gateway.ErrValidation)

	other, err := legacy.New(gw.Client(), gateway.NewSecret("sk_test_revoked_1"))
	require.NoError(t, err)
	_, err = other.Balance(t.Context())
	require.ErrorIs(t, err, gateway.ErrUnauthorized)
	_, err = other.CreatePixPayment(t.Context(), paymentParams())
	require.ErrorIs(t, err, gateway.ErrUnauthorized)
}

func TestTokenizationIsRetiredByTheGatewaysClock(t *testing.T) {
	t.Parallel()
	cutoff := time.Date(2026, 8, 1, 3, 0, 0, 0, time.UTC)
	gw := mockserver.Run(t, mockserver.WithStart(cutoff.Add(-time.Second)))
	v1 := v1Of(t, gw)
	created, err := v1.CreatePaymentToken(t.Context(), publicToken, map[string]any{"payment_session": "ps_1"})
	require.NoError(t, err)
	assert.NotEmpty(t, created.Token)

	require.NoError(t, gw.Clock.AdvanceTo(cutoff))
	_, err = v1.CreatePaymentToken(t.Context(), publicToken, map[string]any{"payment_session": "ps_1"})
	require.ErrorIs(t, err, gateway.ErrRetired)
	var e *gateway.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "LEGACY_TOKENIZATION_RETIRED", e.Code)

	read, err := v1.PaymentToken(t.Context(), publicToken)
	require.NoError(t, err, "reading is not retired")
	assert.NotEmpty(t, read.Token)
}
