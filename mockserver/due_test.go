package mockserver_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// Timers that are due fire immediately, although a manual clock doesn't run.

func TestAChallengePassedAfterTheTrialIsChargedAtOnce(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	params := subscriber(t, client)
	params.Token, params.TrialEnd = "pgct_3ds_1", gw.Clock.Now().Add(5*time.Minute)
	made, err := client.Subscriptions.Create(t.Context(), params)
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(10*time.Minute))
	read, err := client.Subscriptions.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.PassChallenge(read.Transactions[0].ID))
	read, err = client.Subscriptions.Get(t.Context(), made.ID)
	require.NoError(t, err)
	assert.Equal(t, gateway.SubscriptionActive, read.Status)
	assert.Len(t, read.Transactions, 2, "the check of the card and the first charge")
	for _, timer := range gw.Clock.Timers() {
		assert.True(t, timer.At.After(gw.Clock.Now()), "%+v", timer)
	}
}

func TestADailyRenewalPaidLateCatchesUpAtOnce(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	params := subscriber(t, client)
	params.Interval = gateway.IntervalDay
	made, err := client.Subscriptions.Create(t.Context(), params)
	require.NoError(t, err)
	require.NoError(t, gw.Subscriptions.FailNextCharges(made.ID, 1))
	require.NoError(t, gw.Clock.Advance(3*24*time.Hour+time.Hour)) // the first retry is on the fourth day
	read, err := client.Subscriptions.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, gateway.SubscriptionPastDue, read.Status)
	_, err = client.Transactions.SetSandboxStatus(t.Context(), read.Transactions[0].ID, gateway.SandboxStatusParams{Status: gateway.TransactionPaid})
	require.NoError(t, err)
	read, err = client.Subscriptions.Get(t.Context(), made.ID)
	require.NoError(t, err)
	assert.Equal(t, gateway.SubscriptionActive, read.Status)
	assert.Len(t, read.Transactions, 4, "the first day and three renewals")
	assert.True(t, read.CurrentPeriodEnd.After(gw.Clock.Now()))
}

func TestALinkIsPaidNoMoreThanMaxUsesAllows(t *testing.T) {
	t.Parallel()
	for name, pay := range map[string]func(gw *mockserver.Server, client *gateway.Client, id string) error{
		"by control": func(gw *mockserver.Server, _ *gateway.Client, id string) error { return gw.Transactions.Pay(id) },
		"in the sandbox": func(_ *mockserver.Server, client *gateway.Client, id string) error {
			_, err := client.Transactions.SetSandboxStatus(t.Context(), id, gateway.SandboxStatusParams{Status: gateway.TransactionPaid})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gw := mockserver.Run(t)
			client := gw.Client()
			slug := onceLink(t, gw)
			for range 3 {
				session, err := client.CheckoutSessions.Open(t.Context(), slug)
				require.NoError(t, err)
				_, err = client.CheckoutSessions.Update(t.Context(), slug, session.SessionToken, gateway.CheckoutSessionParams{
					Buyer:         gateway.CheckoutBuyer{Name: "Ana", Email: "ana@example.com"},
					PaymentMethod: gateway.Pix,
				})
				require.NoError(t, err)
				require.NoError(t, gw.Checkout.Begin(slug))
			}
			page, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{})
			require.NoError(t, err)
			require.Len(t, page.Items, 3)
			require.NoError(t, pay(gw, client, page.Items[1].ID))
			for _, i := range []int{0, 2} {
				err := pay(gw, client, page.Items[i].ID)
				var control *mockserver.ControlError
				assert.True(t, errors.As(err, &control) || errors.Is(err, gateway.ErrConflict), "%v", err)
				read, err := client.Transactions.Get(t.Context(), page.Items[i].ID)
				require.NoError(t, err)
				assert.Equal(t, gateway.TransactionCanceled, read.Status)
			}
			_, err = client.CheckoutSessions.Open(t.Context(), slug)
			var gone *gateway.Error
			require.ErrorAs(t, err, &gone)
			assert.Equal(t, http.StatusGone, gone.StatusCode)
		})
	}
}

// onceLink creates a checkout link with max_uses 1.
func onceLink(t *testing.T, gw *mockserver.Server) string {
	t.Helper()
	r := post(t, gw, "/v2/checkout-links", `{"amount":1000,"max_uses":1}`)
	require.Equal(t, http.StatusCreated, r.status, r.body)
	const at = "/pay/"
	for i := range r.body {
		if len(r.body) > i+len(at)+12 && r.body[i:i+len(at)] == at {
			return r.body[i+len(at) : i+len(at)+12]
		}
	}
	require.Fail(t, "no slug", r.body)
	return ""
}

// A process may die after a change and before the timer that the change makes
// due.
func TestARestartFiresWhatWasDueWhenTheProcessDied(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	gw := mockserver.Run(t, mockserver.WithDataFile(path))
	client := gw.Client()
	params := subscriber(t, client)
	params.Interval = gateway.IntervalDay
	made, err := client.Subscriptions.Create(t.Context(), params)
	require.NoError(t, err)
	require.NoError(t, gw.Subscriptions.FailNextCharges(made.ID, 1))
	require.NoError(t, gw.Clock.Advance(3*24*time.Hour+time.Hour))
	read, err := client.Subscriptions.Get(t.Context(), made.ID)
	require.NoError(t, err)
	// The renewals that were waiting for the unpaid one are due immediately.
	_, err = client.Transactions.SetSandboxStatus(t.Context(), read.Transactions[0].ID, gateway.SandboxStatusParams{Status: gateway.TransactionPaid})
	require.NoError(t, err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, gw.Close())

	for i, end := range recordEnds(content) {
		restarted := cutOff(t, content[:end])
		for _, timer := range restarted.Clock.Timers() {
			assert.True(t, timer.At.After(restarted.Clock.Now()), "after record %d the %s of %s is still pending", i+1, timer.Kind, timer.ID)
		}
	}
}
