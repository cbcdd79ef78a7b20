package shop_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/examples/shop"
	"github.com/gateway-go/gateway/mockserver"
)

func TestADuplicateWebhookShipsOnce(t *testing.T) {
	t.Parallel()
	s, gw := open(t)
	charge, err := s.Charge(t.Context(), order("1001"))
	require.NoError(t, err)

	require.NoError(t, gw.Webhooks.Duplicate("transaction.paid"))
	require.NoError(t, gw.Transactions.Pay(charge.ID))
	require.NoError(t, gw.Wait(t.Context()))
	assert.Equal(t, 1, s.Shipped("1001"))
}

func TestAWebhookPath(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	s := shop.New(gw.Client())
	receiver, err := s.Receiver(gw.Secret())
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/gateway", receiver)
	require.NoError(t, gw.Webhooks.SendTo("/webhooks/gateway", mux))
	charge, err := s.Charge(t.Context(), order("1001"))
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(charge.ID))
	require.NoError(t, gw.Wait(t.Context()))
	assert.Equal(t, 1, s.Shipped("1001"))
}

func TestAForgedWebhook(t *testing.T) {
	t.Parallel()
	s, gw := open(t)
	charge, err := s.Charge(t.Context(), order("1001"))
	require.NoError(t, err)

	require.NoError(t, gw.Webhooks.CorruptSignature("transaction.paid"))
	require.NoError(t, gw.Transactions.Pay(charge.ID))
	require.NoError(t, gw.Wait(t.Context()))
	assert.Zero(t, s.Shipped("1001"))

	require.NoError(t, gw.Clock.Advance(5*time.Second)) // the second attempt has a valid signature
	assert.Equal(t, 1, s.Shipped("1001"))
}

func TestWebhooksInTheWrongOrder(t *testing.T) {
	t.Parallel()
	s, gw := open(t)
	gw.Webhooks.Hold()
	charge, err := s.Charge(t.Context(), order("1001"))
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(charge.ID))

	held := gw.Webhooks.Deliveries() // created, pending, paid
	require.NoError(t, gw.Webhooks.Release(held[2].ID, held[1].ID, held[0].ID))
	require.NoError(t, gw.Wait(t.Context()))
	assert.Equal(t, 1, s.Shipped("1001"))
}

func TestADeploymentMissesAWebhook(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	s := shop.New(gw.Client())
	receiver, err := s.Receiver(gw.Secret())
	require.NoError(t, err)
	up := false
	gw.Webhooks.Send(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		receiver.ServeHTTP(w, r)
	}))
	charge, err := s.Charge(t.Context(), order("1001"))
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(charge.ID))
	require.NoError(t, gw.Wait(t.Context()))

	up = true
	require.NoError(t, gw.Clock.Advance(10*time.Minute)) // the gateway retries after 5 s, 5 min, …
	assert.Equal(t, 1, s.Shipped("1001"))
}
