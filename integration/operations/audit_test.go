package operations_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/operations"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// findings are the differences between the gateway's books and the handlers'
// results.
type findings struct {
	done, rejected, ambiguous, waiting int
	doubled                            int // applied more than once
	lost                               int // reported as applied, but not applied
	misreported                        int // reported as rejected, but applied
	unjustified                        int // ambiguous although the operator refunded nothing
	repeated                           int // handlers that committed more than once
	missing                            int // not reported at all
	text                               []string
}

func (f *findings) String() string {
	return fmt.Sprintf("%d applied, %d rejected, %d ambiguous, %d behind an ambiguous one; %d doubled, %d lost, %d misreported, %d unjustified, %d reported twice, %d not reported",
		f.done, f.rejected, f.ambiguous, f.waiting, f.doubled, f.lost, f.misreported, f.unjustified, f.repeated, f.missing)
}

func (f *findings) add(format string, args ...any) {
	if len(f.text) < 20 {
		f.text = append(f.text, fmt.Sprintf(format, args...))
	}
}

// check fails the test if any money moved twice or was lost.
func (s *outboxStorm) check() {
	f := s.audit()
	kills, points := s.fleet.killed()
	fmt.Printf("%s: account %s: %d operations (%d inserted twice, %d transactions repeated) in %d processes, %d kills %s, inserted in %v, done in %v (%.0f/s)\n%s: %s\n",
		s.Name(), s.name, len(s.ops), s.duplicates.Load(), s.locked.Load(), stormProcesses, kills, points, s.inserted.Round(time.Millisecond), s.took.Round(time.Millisecond),
		float64(len(s.ops))/s.took.Seconds(), s.Name(), f)
	assert.Empty(s, f.text)
	assert.Zero(s, f.doubled)
	assert.Zero(s, f.lost)
	assert.Zero(s, f.misreported)
	assert.Zero(s, f.unjustified)
	assert.Zero(s, f.repeated)
	assert.Zero(s, f.missing)
	assert.Equal(s, len(s.ops), f.done+f.rejected+f.ambiguous+f.waiting)
	assert.Positive(s, kills, "the workers must have been killed")
	assert.Positive(s, s.duplicates.Load())
}

// report is what handlers wrote about an operation.
type report struct {
	n            int
	value, error string
}

// books are the resources at the gateway.
type books struct {
	charges       map[string]int // transactions by reference
	payouts       map[string]int
	customers     map[string]int
	subscriptions map[string]int // by customer
	canceled      map[string]bool
	policies      map[string]string
	ended         map[string]bool
	refunded      map[string]int64
}

func (s *outboxStorm) books() *books {
	b := &books{
		charges: make(map[string]int), payouts: make(map[string]int), customers: make(map[string]int), subscriptions: make(map[string]int), canceled: make(map[string]bool),
		policies: make(map[string]string), ended: make(map[string]bool), refunded: make(map[string]int64),
	}
	for t, err := range s.client.Transactions.All(s.Context(), gateway.TransactionListParams{Limit: 100}) {
		require.NoError(s, err)
		b.charges[t.ExternalRef]++
	}
	for t, err := range s.client.Transfers.All(s.Context(), gateway.TransferListParams{Limit: 100}) {
		require.NoError(s, err)
		b.payouts[t.ExternalRef]++
		b.canceled[t.ID] = t.Status == gateway.TransferCancelled
	}
	for c, err := range s.client.Customers.All(s.Context(), gateway.CustomerListParams{Limit: 100}) {
		require.NoError(s, err)
		b.customers[c.ExternalRef]++
	}
	for sub, err := range s.client.Subscriptions.All(s.Context(), gateway.SubscriptionListParams{Limit: 100}) {
		require.NoError(s, err)
		b.subscriptions[sub.CustomerID]++
		b.policies[sub.ID] = string(sub.FailurePolicy)
		b.ended[sub.ID] = sub.Status == gateway.SubscriptionCancelScheduled || sub.Status == gateway.SubscriptionCanceled
	}
	for _, op := range s.ops {
		if r, ok := op.(operations.Refund); ok {
			tx, err := s.client.Transactions.Get(s.Context(), r.TransactionID)
			require.NoError(s, err)
			b.refunded[r.TransactionID] = tx.RefundedAmount
		}
	}
	return b
}

func (s *outboxStorm) reports() map[string]*report {
	rows, err := s.db.db.QueryContext(s.Context(), s.db.sql(`SELECT key, value, error FROM results WHERE account = ?`), s.name)
	require.NoError(s, err)
	defer func() { require.NoError(s, rows.Close()) }()
	reports := make(map[string]*report)
	for rows.Next() {
		var key, value, text string
		require.NoError(s, rows.Scan(&key, &value, &text))
		if reports[key] == nil {
			reports[key] = &report{}
		}
		r := reports[key]
		r.n++
		r.value, r.error = value, text
	}
	require.NoError(s, rows.Err())
	return reports
}

// entries returns the operations that have no report, by key.
func (s *outboxStorm) entries() map[string]*operations.Entry {
	found := make(map[string]*operations.Entry)
	var after int64
	for {
		list, err := s.outbox.List(s.Context(), operations.Query{States: []operations.State{operations.Waiting, operations.Ambiguous}, After: after, Limit: 1000})
		require.NoError(s, err)
		if len(list) == 0 {
			return found
		}
		for _, e := range list {
			found[e.Key] = e
			after = e.ID
		}
	}
}

func keyOf(op operations.Operation) string {
	switch o := op.(type) {
	case operations.CreateTransaction:
		return o.ExternalRef
	case operations.CreateTransfer:
		return o.ExternalRef
	case operations.CreateCustomer:
		return o.ExternalRef
	case operations.CreateSubscription:
		return o.IdempotencyKey
	case operations.Refund:
		return o.Key
	case operations.CancelTransfer:
		return o.Key
	case operations.UpdateSubscription:
		return o.Key
	case operations.CancelSubscription:
		return o.Key
	}
	return ""
}

// audit compares the gateway's books with what the handlers wrote.
func (s *outboxStorm) audit() *findings {
	f, b, reports, entries := &findings{}, s.books(), s.reports(), s.entries()
	moved := make(map[string]int64)  // reported as refunded, by charge
	open := make(map[string][]int64) // ambiguous refunds
	for _, op := range s.ops {
		key := keyOf(op)
		r, e := reports[key], entries[key]
		switch {
		case r == nil && e == nil:
			f.missing++
			list, err := s.outbox.List(s.Context(), operations.Query{Key: key})
			require.NoError(s, err)
			f.add("%s: not reported: %+v", key, list)
			continue
		case r == nil && e.State == operations.Waiting:
			f.waiting++
		case r == nil:
			f.ambiguous++
			if !s.justified(op, e) {
				f.unjustified++
				f.add("%s: ambiguous without a reason: %s", key, e.Ambiguity)
			}
			if refund, ok := op.(operations.Refund); ok {
				open[refund.TransactionID] = append(open[refund.TransactionID], refund.Amount)
			}
			continue
		case r.n > 1:
			f.repeated++
			f.add("%s: reported %d times", key, r.n)
		case r.error != "":
			f.rejected++
			if os.Getenv("REJECTIONS") != "" {
				fmt.Println(key, r.error)
			}
		default:
			f.done++
		}
		s.compare(f, b, op, r, moved)
	}
	for _, op := range s.dropped {
		if b.charges[keyOf(op)] > 0 {
			f.doubled++
			f.add("%s: sent although it was rolled back", keyOf(op))
		}
	}
	s.compareRefunds(f, b, moved, open)
	return f
}

// compare checks that an operation is in the gateway's books as reported.
func (s *outboxStorm) compare(f *findings, b *books, op operations.Operation, r *report, moved map[string]int64) {
	reported := r != nil && r.error == ""
	once := func(key string, n int) {
		switch {
		case n > 1:
			f.doubled++
			f.add("%s: %d times in the gateway's books", key, n)
		case n == 0 && reported:
			f.lost++
			f.add("%s: reported as applied, but not in the gateway's books", key)
		case n == 1 && !reported:
			f.misreported++
			f.add("%s: in the gateway's books, but reported as %+v", key, r)
		}
	}
	is := func(applied bool) int {
		if applied {
			return 1
		}
		return 0
	}
	switch o := op.(type) {
	case operations.CreateTransaction:
		once(o.ExternalRef, b.charges[o.ExternalRef])
	case operations.CreateTransfer:
		once(o.ExternalRef, b.payouts[o.ExternalRef])
	case operations.CreateCustomer:
		once(o.ExternalRef, b.customers[o.ExternalRef])
	case operations.CreateSubscription:
		once(o.IdempotencyKey, b.subscriptions[o.CustomerID])
	case operations.CancelTransfer:
		once(o.Key, is(b.canceled[o.TransferID]))
	case operations.UpdateSubscription:
		once(o.Key, is(b.policies[o.SubscriptionID] == string(o.Params.FailurePolicy)))
	case operations.CancelSubscription:
		once(o.Key, is(b.ended[o.SubscriptionID]))
	case operations.Refund:
		if reported {
			cents, err := strconv.ParseInt(r.value, 10, 64)
			require.NoError(s, err)
			moved[o.TransactionID] += cents
		}
	}
}

// compareRefunds compares amounts: the gateway's refunds must add up to the
// reported ones, the operator's, and each ambiguous one at most once.
func (s *outboxStorm) compareRefunds(f *findings, b *books, moved map[string]int64, open map[string][]int64) {
	for id, refunded := range b.refunded {
		left := refunded - moved[id] - s.byHand[id]
		possible := []int64{0}
		for _, amount := range open[id] {
			for _, p := range slices.Clone(possible) {
				possible = append(possible, p+amount)
			}
		}
		switch {
		case slices.Contains(possible, left):
		case left > 0:
			f.doubled++
			f.add("%s: %d cents refunded, %d reported, %d by hand", id, refunded, moved[id], s.byHand[id])
		default:
			f.lost++
			f.add("%s: %d cents refunded, %d reported, %d by hand", id, refunded, moved[id], s.byHand[id])
		}
	}
}

// justified checks in the mock gateway's request journal that an operation really
// was ambiguous: the operator's refunds must account for the difference that
// the outbox could not explain.
func (s *outboxStorm) justified(op operations.Operation, e *operations.Entry) bool {
	refund, ok := op.(operations.Refund)
	if !ok {
		return false
	}
	var before, asked, now int64
	_, err := fmt.Sscanf(e.Ambiguity, "refunded_amount was %d before this refund of %d was sent, and is %d now", &before, &asked, &now)
	require.NoError(s, err, e.Ambiguity)
	var byHand int64
	for _, r := range s.journal[refund.TransactionID] {
		if r.Header.Get(operatorHeader) != "" && r.Status == http.StatusOK && r.At.Before(e.UpdatedAt) {
			byHand += operatorRefund
		}
	}
	// The journal keeps only the latest requests; for older ones, use the
	// refunds that the gateway confirmed to the operator.
	var confirmed int64
	for _, at := range s.byHandAt[refund.TransactionID] {
		if at.Before(e.UpdatedAt) {
			confirmed += operatorRefund
		}
	}
	byHand = max(byHand, confirmed)
	explained := func(foreign int64) bool { return foreign > 0 && foreign%operatorRefund == 0 && foreign <= byHand }
	return explained(now-before) || explained(now-before-asked)
}

// keepJournal copies the refunds from the mock gateway's journal, which keeps
// only the latest requests.
func (s *outboxStorm) keepJournal(ctx context.Context) {
	var last uint64
	tick := time.NewTicker(400 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		for _, r := range s.gw.Requests.Find("transactions.refund") {
			if r.ID <= last {
				continue
			}
			last = r.ID
			id := strings.TrimSuffix(strings.TrimPrefix(r.Path, "/v2/transactions/"), "/refund")
			s.journal[id] = append(s.journal[id], r)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
