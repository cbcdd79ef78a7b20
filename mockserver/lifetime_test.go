package mockserver_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// diary is a receiver that records the content of the events.
type diary struct {
	mu    sync.Mutex
	lines []string        // of subscriptions, in the order of their arrival
	paid  map[string]bool // transactions whose payment was reported
	seen  map[string]bool // event ids
	twice []string        // event ids that were received again
}

func (d *diary) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := event(w, r)
	if e == nil {
		return
	}
	if d.seen[e.ID] {
		d.twice = append(d.twice, e.ID)
	}
	d.seen[e.ID] = true
	if e.Kind == webhook.TransactionPaid {
		d.paid[e.ResourceID] = true
	}
	if s, err := e.Subscription(); err == nil {
		d.lines = append(d.lines, lineOf(s.Data))
	}
}

// event verifies, reads and acknowledges a webhook.
func event(w http.ResponseWriter, r *http.Request) *webhook.Event {
	body, err := io.ReadAll(r.Body)
	if err != nil || webhook.Verify(r.Header, body, gateway.NewSecret("whsec_mock")) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return nil
	}
	e, err := webhook.Parse(body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return nil
	}
	_, _ = w.Write([]byte(`{"received":true}`))
	return e
}

func lineOf(s webhook.SubscriptionData) string {
	line := fmt.Sprintf("%s %s %s cycle %d of %s", s.OccurredAt.Format(time.DateOnly), s.EventType, s.Status, s.CycleCount,
		s.CurrentPeriodStart.Format(time.DateOnly))
	if s.FailureReason != "" {
		line += fmt.Sprintf(": attempt %d %s", s.AttemptNumber, s.FailureReason)
	}
	return line + fmt.Sprintf(", paid %d, plan %s", s.LatestTransaction.PaidAmount, s.Metadata.Text())
}

// Three years of a monthly subscription, for a merchant who has only the
// client and the webhooks. In the months listed below the first charge fails,
// or the first charge and the retry on day 3; in the last month all of them
// fail.
func TestThreeYearsOfASubscription(t *testing.T) {
	t.Parallel()
	made := time.Date(2027, time.January, 31, 12, 0, 0, 0, time.UTC)
	failures := map[int]int{5: 1, 14: 2, 27: 1, 37: 4}
	gw := mockserver.Run(t, mockserver.WithSeed(7), mockserver.WithStart(made), mockserver.WithFee(149))
	book := &diary{paid: map[string]bool{}, seen: map[string]bool{}}
	gw.Webhooks.Send(book)
	client := gw.Client()
	params := subscriber(t, client)
	params.Metadata = map[string]any{"plan": "gold"}
	sub, err := client.Subscriptions.Create(t.Context(), params)
	require.NoError(t, err)

	for cycle := 2; cycle <= 37; cycle++ {
		if n := failures[cycle]; n > 0 {
			require.NoError(t, gw.Subscriptions.FailNextCharges(sub.ID, n))
		}
		require.NoError(t, gw.Clock.AdvanceTo(monthsAfter(made, cycle).Add(-time.Second)))
	}
	require.NoError(t, gw.Wait(t.Context()))

	want, charges, paid := expected(made, failures)
	assert.Equal(t, want, book.lines)
	assert.Empty(t, book.twice)
	read, err := client.Subscriptions.Get(t.Context(), sub.ID)
	require.NoError(t, err)
	assert.Equal(t, gateway.SubscriptionCanceled, read.Status)
	assert.Equal(t, gateway.CancellationReason("payment_failure"), read.CancellationReason)
	assert.Len(t, read.Transactions, charges)
	assert.Len(t, book.paid, paid)
	for _, c := range read.Transactions {
		assert.Equal(t, c.Status == gateway.TransactionPaid, book.paid[c.ID], "exactly the payments were reported")
	}
	assert.Equal(t, int64(paid)*(4990-149), balance(t, gw))
}

// expected derives the events from the dates alone.
func expected(made time.Time, failures map[int]int) (lines []string, charges, paid int) {
	line := func(at time.Time, kind, status string, cycle int, more string, amount int) {
		lines = append(lines, fmt.Sprintf(`%s subscription.%s %s cycle %d of %s%s, paid %d, plan {"plan":"gold"}`,
			at.Format(time.DateOnly), kind, status, cycle, monthsAfter(made, cycle-1).Format(time.DateOnly), more, amount))
	}
	line(made, "created", "active", 1, "", 4990)
	line(made, "started", "active", 1, "", 4990)
	charges, paid = 1, 1
	for cycle := 2; cycle <= 37; cycle++ {
		due := monthsAfter(made, cycle-1)
		attempts := []time.Time{due, due.AddDate(0, 0, 3), due.AddDate(0, 0, 5), due.AddDate(0, 0, 7)}
		failed := failures[cycle]
		for n, at := range attempts[:failed] {
			status := "past_due"
			if n == 3 {
				status = "canceled"
			}
			charges++
			line(at, "payment_failed", status, cycle, fmt.Sprintf(": attempt %d declined", n+1), 0)
			switch n {
			case 0:
				line(at, "past_due", status, cycle, "", 0)
			case 3:
				line(at, "canceled", status, cycle, "", 0)
			}
		}
		if failed < len(attempts) {
			charges++
			paid++
			line(attempts[failed], "renewed", "active", cycle, "", 4990)
		}
	}
	return lines, charges, paid
}

// monthsAfter walks back from a day that the month does not have.
func monthsAfter(t time.Time, n int) time.Time {
	for day := t.Day(); ; day-- {
		at := time.Date(t.Year(), t.Month()+time.Month(n), day, t.Hour(), 0, 0, 0, time.UTC)
		if at.Day() == day {
			return at
		}
	}
}

// Every documented kind is caused by an action of a merchant or a payer.
func TestEveryDocumentedKindArrives(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	var mu sync.Mutex
	got := map[webhook.Kind]bool{}
	gw.Webhooks.Send(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if e := event(w, r); e != nil {
			got[e.Kind] = true
		}
	}))
	causeTransactions(t, gw)
	causeTransfers(t, gw)
	causeSubscriptions(t, gw)
	require.NoError(t, gw.Wait(t.Context()))
	for _, kind := range webhook.DocumentedKinds() {
		assert.True(t, got[kind], "%s was not sent: cause it in this test", kind)
		delete(got, kind)
	}
	assert.Empty(t, got, "undocumented kinds were sent")
}

func causeTransactions(t *testing.T, gw *mockserver.Server) {
	t.Helper()
	client := gw.Client()
	card := func(ref, token string) string {
		params := order(ref)
		params.Method, params.Token = gateway.CreditCard, gateway.CardToken(token)
		made, err := client.Transactions.Create(t.Context(), params)
		require.NoError(t, err)
		return made.ID
	}
	require.NoError(t, gw.Transactions.Cancel(card("1", "pgct_ok")))
	require.NoError(t, gw.Transactions.Chargeback(card("2", "pgct_paid")))
	_, err := client.Transactions.Refund(t.Context(), card("3", "pgct_captured"), gateway.RefundParams{Full: true})
	require.NoError(t, err)
	card("4", "pgct_3ds")
}

func causeTransfers(t *testing.T, gw *mockserver.Server) {
	t.Helper()
	client := gw.Client()
	for i, to := range []gateway.PixKey{"maria@example.com", "analysis@example.com", "fail@example.com"} {
		params := payout(fmt.Sprint(i))
		params.PixKeyValue = to
		_, err := client.Transfers.Create(t.Context(), params)
		require.NoError(t, err)
	}
	made, err := client.Transfers.Create(t.Context(), payout("cancelled"))
	require.NoError(t, err)
	_, err = client.Transfers.Cancel(t.Context(), made.ID, gateway.TransferCancelParams{})
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(2*time.Hour))
}

func causeSubscriptions(t *testing.T, gw *mockserver.Server) {
	t.Helper()
	client := gw.Client()
	for _, token := range []gateway.CardToken{"pgct_renewal_fails", "pgct_chargeback", "pgct_ok_trial"} {
		params := subscriber(t, client)
		params.Token = token
		if token == "pgct_ok_trial" {
			params.TrialEnd = gw.Clock.Now().Add(10 * 24 * time.Hour)
		}
		made, err := client.Subscriptions.Create(t.Context(), params)
		require.NoError(t, err)
		_, err = client.Subscriptions.Update(t.Context(), made.ID, gateway.SubscriptionUpdateParams{
			Metadata: gateway.Some(map[string]any{"token": token}),
		})
		require.NoError(t, err)
	}
	require.NoError(t, gw.Clock.Advance(60*24*time.Hour))
}

// Two servers with the same seed and calls send the same bytes.
func TestSeededSubscriptionsRepeat(t *testing.T) {
	t.Parallel()
	run := func() []string {
		gw := mockserver.Run(t, mockserver.WithSeed(3))
		gw.Webhooks.Send(&diary{paid: map[string]bool{}, seen: map[string]bool{}})
		params := subscriber(t, gw.Client())
		params.IdempotencyKey = "k"
		_, err := gw.Client().Subscriptions.Create(t.Context(), params)
		require.NoError(t, err)
		require.NoError(t, gw.Clock.Advance(100*24*time.Hour))
		var bodies []string
		for _, d := range gw.Webhooks.Deliveries() {
			bodies = append(bodies, string(d.Body))
		}
		return bodies
	}
	first := run()
	assert.Len(t, first, 2+2+3*3)
	assert.True(t, slices.Equal(first, run()))
}

func TestTimersOfFinishedResourcesAreNotShown(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	made, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.Len(t, gw.Clock.Timers(), 1)
	require.NoError(t, gw.Transactions.Pay(made.ID))
	assert.Empty(t, gw.Clock.Timers())
	moved, err := gw.Clock.Next()
	require.NoError(t, err)
	assert.False(t, moved, "there is nothing to wait for")
}
