package gateway_test

import (
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// losingAnswers returns a client whose gateway carries every request out, and
// whose network then loses the answers to the first n writes.
func losingAnswers(t *testing.T, n int64) (lossy, sound *gateway.Client) {
	t.Helper()
	gw := mockserver.Run(t)
	var left atomic.Int64
	left.Store(n)
	network := roundTripFunc(func(r *http.Request) (*http.Response, error) {
		answer, err := gw.Transport().RoundTrip(r)
		if err != nil || r.Method == http.MethodGet || left.Add(-1) < 0 {
			return answer, err
		}
		_ = answer.Body.Close()
		return nil, syscall.ECONNRESET
	})
	return gw.Client(gateway.WithHTTPClient(&http.Client{Transport: network})), gw.Client()
}

func TestALostSubscriptionIsNotMadeTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, key := range []string{"order-17", ""} { // the caller's and the client's own
			lossy, sound := losingAnswers(t, 1)
			customer, err := sound.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
			require.NoError(t, err)
			var response gateway.Response
			sub, err := lossy.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
				CustomerID: customer.ID, Amount: 4990, Token: gateway.CardToken("pgct_ok_" + key), Interval: gateway.IntervalMonth,
				IdempotencyKey: key,
			}, gateway.ResponseInto(&response))
			require.NoError(t, err)
			assert.Equal(t, gateway.SubscriptionActive, sub.Status)
			assert.Equal(t, 2, response.Attempts)
			assert.NotEmpty(t, response.Reference)

			all, err := gateway.Collect(sound.Subscriptions.All(t.Context(), gateway.SubscriptionListParams{}), 0)
			require.NoError(t, err)
			assert.Len(t, all, 1)
			charges, err := gateway.Collect(sound.Transactions.All(t.Context(), gateway.TransactionListParams{}), 0)
			require.NoError(t, err)
			assert.Len(t, charges, 1, "it was charged once")
		}
	})
}

func TestALostSubscriptionWithoutAKeyIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lossy, sound := losingAnswers(t, 1)
		lossy, err := lossy.With(gateway.WithAutoReference(false))
		require.NoError(t, err)
		customer, err := sound.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
		require.NoError(t, err)
		_, err = lossy.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
			CustomerID: customer.ID, Amount: 4990, Token: "pgct_ok", Interval: gateway.IntervalMonth,
		})
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		all, err := gateway.Collect(sound.Subscriptions.All(t.Context(), gateway.SubscriptionListParams{}), 0)
		require.NoError(t, err)
		assert.Len(t, all, 1, "it was not sent again")
	})
}

// A write without a key is sent once: whether it was carried out is to be read.
func TestLostWritesWithoutAKeyAreUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lossy, sound := losingAnswers(t, 4)
		customer, err := sound.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
		require.NoError(t, err)
		sub, err := sound.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
			CustomerID: customer.ID, Amount: 4990, Token: "pgct_ok", Interval: gateway.IntervalMonth,
		})
		require.NoError(t, err)

		_, err = lossy.Subscriptions.Update(t.Context(), sub.ID, gateway.SubscriptionUpdateParams{FailurePolicy: gateway.ImmediateCancel})
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		_, err = lossy.Subscriptions.Cancel(t.Context(), sub.ID, gateway.SubscriptionCancelParams{})
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		var outcome *gateway.OutcomeError
		require.ErrorAs(t, err, &outcome)
		assert.Equal(t, "subscriptions.cancel", outcome.Op)

		got, err := sound.Subscriptions.Get(t.Context(), sub.ID)
		require.NoError(t, err)
		assert.Equal(t, gateway.ImmediateCancel, got.FailurePolicy)
		assert.Equal(t, gateway.SubscriptionCancelScheduled, got.Status)

		_, err = lossy.CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{Amount: 4990})
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		link, err := sound.CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{Amount: 4990})
		require.NoError(t, err)
		session, err := lossy.CheckoutSessions.Open(t.Context(), link.Slug())
		require.NoError(t, err)
		_, err = lossy.CheckoutSessions.Update(t.Context(), link.Slug(), session.SessionToken, gateway.CheckoutSessionParams{PaymentMethod: gateway.Pix})
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		assert.NotContains(t, err.Error(), session.SessionToken.Reveal())
	})
}
