package webhook_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// subscribed creates a monthly card subscription, with a trial unless it is
// zero.
func subscribed(t *testing.T, gw *mockserver.Server, trial time.Duration) *gateway.Subscription {
	t.Helper()
	customer, err := gw.Client().Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana Souza", Email: "ana@example.com"})
	require.NoError(t, err)
	params := gateway.SubscriptionParams{CustomerID: customer.ID, Amount: 4990, Interval: gateway.IntervalMonth, Token: "pgct_ok_1"}
	if trial > 0 {
		params.TrialEnd = gw.Clock.Now().Add(trial)
	}
	sub, err := gw.Client().Subscriptions.Create(t.Context(), params)
	require.NoError(t, err)
	return sub
}

// after advances the gateway's clock by d and returns the subscription.
func after(t *testing.T, gw *mockserver.Server, id string, d time.Duration) *gateway.Subscription {
	t.Helper()
	require.NoError(t, gw.Clock.Advance(d))
	sub, err := gw.Client().Subscriptions.Get(t.Context(), id)
	require.NoError(t, err)
	return sub
}

// reconciled returns the kinds that one round finds.
func reconciled(t *testing.T, gw *mockserver.Server, open webhook.OpenResource) []string {
	t.Helper()
	rx, got := shop(t, webhook.Config{API: gw.Client()})
	open.Family = webhook.FamilySubscription
	_, err := reconciler(t, rx, open).Once(t.Context())
	require.NoError(t, err)
	return kindsOf(got)
}

const (
	month     = 31 * 24 * time.Hour // from January to February's period, plus a day
	nextMonth = 29 * 24 * time.Hour // from there to March's period, plus a day
)

func TestAPeriodWhoseChargeFailedIsNotARenewal(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	sub := subscribed(t, gw, 0)
	renewed := after(t, gw, sub.ID, month)
	require.NoError(t, gw.Subscriptions.FailNextCharges(sub.ID, 1))
	unpaid := after(t, gw, sub.ID, nextMonth)
	require.Equal(t, gateway.SubscriptionPastDue, unpaid.Status)
	require.True(t, unpaid.CurrentPeriodEnd.After(renewed.CurrentPeriodEnd.Time), "the unpaid period has begun")

	rx, got := shop(t, webhook.Config{API: gw.Client()})
	forged := `{"id":"e","event":"subscription","data":{"id":"` + sub.ID + `","event_type":"subscription.renewed"}}`
	assert.Equal(t, http.StatusServiceUnavailable, serve(rx, request(forged)).Code, "an unsigned renewal is not confirmed")
	assert.Empty(t, got.all())
	open := webhook.OpenResource{ID: sub.ID, Status: "active", PeriodEnd: renewed.CurrentPeriodEnd.Time}
	assert.Equal(t, []string{"subscription.past_due"}, reconciled(t, gw, open))

	_, err := gw.Client().Subscriptions.Cancel(t.Context(), sub.ID, gateway.SubscriptionCancelParams{})
	require.NoError(t, err)
	assert.Equal(t, []string{"subscription.canceled"}, reconciled(t, gw, open), "nor once the subscription has ended")
}

func TestARetryThatPaysThePeriodIsItsRenewal(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	sub := subscribed(t, gw, 0)
	renewed := after(t, gw, sub.ID, month)
	require.NoError(t, gw.Subscriptions.FailNextCharges(sub.ID, 1))
	paid := after(t, gw, sub.ID, nextMonth+4*24*time.Hour)
	require.Equal(t, gateway.SubscriptionActive, paid.Status)
	for _, status := range []string{"active", "past_due"} {
		open := webhook.OpenResource{ID: sub.ID, Status: status, PeriodEnd: renewed.CurrentPeriodEnd.Time}
		assert.Equal(t, []string{"subscription.renewed"}, reconciled(t, gw, open), status)
	}
}

// The gateway sends subscription.renewed for the retry of a trial's first charge, though no
// charge was paid before it.
func TestTheFirstChargeAfterATrialIsRenewedByItsRetry(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	_, got := readBackShop(t, gw)
	sub := subscribed(t, gw, 10*24*time.Hour)
	require.NoError(t, gw.Subscriptions.FailNextCharges(sub.ID, 1))
	unpaid := after(t, gw, sub.ID, 11*24*time.Hour)
	require.Equal(t, gateway.SubscriptionPastDue, unpaid.Status)
	paid := after(t, gw, sub.ID, 3*24*time.Hour)
	require.Equal(t, gateway.SubscriptionActive, paid.Status)
	require.NoError(t, gw.Wait(t.Context()))
	assert.Contains(t, kindsOf(got), "subscription.renewed", "the unsigned delivery is confirmed")
	for _, status := range []string{"trialing", "past_due"} {
		open := webhook.OpenResource{ID: sub.ID, Status: status, PeriodEnd: unpaid.CurrentPeriodEnd.Time}
		assert.Equal(t, []string{"subscription.renewed"}, reconciled(t, gw, open), status)
	}
}
