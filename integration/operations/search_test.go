package operations_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

const searchedPages = 12

var lists = []string{"transactions.list", "transfers.list", "subscriptions.list"}

// buried returns a merchant whose creates of every kind are in doubt, and rejected
// when they are repeated, while each list has many pages of later resources.
func buried(t *testing.T, applied bool, change func(*operations.Config)) *world {
	t.Helper()
	w := open(t, onSQLite, func(c *operations.Config) {
		c.SendTimeout, c.SettleAfter, c.HandlerTimeout = time.Second, 2*time.Second, time.Second // a lease of 4 s
		if change != nil {
			change(c)
		}
	}, mockserver.WithOpeningBalance(1<<40))
	customer, err := w.client().Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
	require.NoError(t, err)
	lost := mockserver.ResetBefore()
	if applied {
		lost = mockserver.LoseResponse()
	}
	creates := map[string]string{"order-1": "transactions.create", "payout-1": "transfers.create", "club-1": "subscriptions.create"}
	for _, op := range creates {
		require.NoError(t, w.gw.Faults.Add(lost.On(op).Times(1), mockserver.Status(422).On(op).Times(3)))
	}
	for _, list := range lists {
		require.NoError(t, w.gw.Faults.Add(mockserver.Status(500).On(list)))
	}
	stop := w.start(w.outbox)
	w.add(
		operations.CreateTransaction(order("order-1", 500)), payout("payout-1", 900),
		operations.CreateSubscription{CustomerID: customer.ID, Amount: 990, Token: "pgct_ok", Interval: gateway.IntervalMonth, IdempotencyKey: "club-1"},
	)
	for key, op := range creates {
		require.Eventually(t, func() bool { return w.gw.Requests.Count(op) >= 4 }, time.Minute, 10*time.Millisecond)
		w.reaches(key, operations.Sent)
	}
	stop()
	w.gw.Faults.Clear()
	for i := range (searchedPages-1)*100 + 50 {
		_, err := w.client().Transfers.Create(t.Context(), gateway.TransferParams(payout(fmt.Sprintf("later-%d", i), 900)))
		require.NoError(t, err)
		_, err = w.client().Subscriptions.Create(t.Context(), gateway.SubscriptionParams{ // which creates a transaction too
			CustomerID: customer.ID, Amount: 4990, Token: gateway.CardToken(fmt.Sprintf("pgct_ok_%d", i)), Interval: gateway.IntervalMonth,
		})
		require.NoError(t, err)
	}
	w.gw.Requests.Clear()
	return w
}

// A search that takes longer than a job, and whose process is replaced, continues
// where it was.
func TestALongSearchContinues(t *testing.T) {
	t.Parallel()
	w := buried(t, true, nil)
	w.through(roundTripper(func(req *http.Request) (*http.Response, error) {
		if op, _ := gateway.OperationFromContext(req.Context()); slices.Contains(lists, op.Name) {
			slow := time.NewTimer(400 * time.Millisecond) // all pages take longer than the lease
			defer slow.Stop()
			select {
			case <-slow.C:
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		}
		return w.gw.Transport().RoundTrip(req)
	}))
	stop := w.start(w.outbox)
	w.saw(operations.EventSearching)
	stop()
	w.start(w.outbox)
	for _, key := range []string{"order-1", "payout-1"} {
		w.reaches(key, operations.Done)
		value, rejection := w.result(key)
		assert.NotEmpty(t, value)
		assert.Empty(t, rejection)
	}
	e := w.reaches("club-1", operations.Ambiguous)
	assert.Contains(t, e.Ambiguity, "looks like this one")
	for _, list := range lists {
		first := 0
		requests := w.gw.Requests.Find(list)
		for _, r := range requests {
			if !strings.Contains(r.Query, "cursor=") {
				first++
			}
		}
		// A page is read again if the process is replaced meanwhile, and of the
		// transactions the time around the request is searched first.
		assert.LessOrEqual(t, first, 3, list)
		assert.Less(t, len(requests), 2*searchedPages, list)
	}
}

// A search that is too long ends with a question to a person.
func TestASearchIsBounded(t *testing.T) {
	t.Parallel()
	w := buried(t, false, func(c *operations.Config) { c.MaxSearchPages = 3 })
	w.start(w.outbox)
	for _, key := range []string{"order-1", "payout-1", "club-1"} {
		e := w.reaches(key, operations.Ambiguous)
		assert.Contains(t, e.Ambiguity, "the list was searched over 3 pages, back to 20", key)
		assert.Contains(t, e.Ambiguity, "Config.MaxSearchPages is 3", key)
	}
	w.saw(operations.EventAmbiguous)
}
