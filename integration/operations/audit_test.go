package operations_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/operations"
)

// fault is a difference between the gateway's books and the handlers' results.
type fault string

const (
	doubled     fault = "doubled"        // applied more than once
	lost        fault = "lost"           // reported as applied, but not applied
	misreported fault = "misreported"    // reported as rejected, but applied
	unjustified fault = "unjustified"    // ambiguous although the operator refunded nothing
	repeated    fault = "reported twice" // the handler committed more than once
	missing     fault = "not reported"
)

// findings are what became of the operations.
type findings struct {
	done, rejected, ambiguous, waiting int
	faults                             map[fault]int
	text                               []string // of the first faults
}

func (f *findings) String() string {
	counts := []string{fmt.Sprintf("%d applied, %d rejected, %d ambiguous, %d behind an ambiguous one", f.done, f.rejected, f.ambiguous, f.waiting)}
	for _, kind := range []fault{doubled, lost, misreported, unjustified, repeated, missing} {
		counts = append(counts, fmt.Sprintf("%d %s", f.faults[kind], kind))
	}
	return strings.Join(counts, ", ")
}

func (f *findings) add(kind fault, format string, args ...any) {
	f.faults[kind]++
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
	assert.Empty(s, f.faults, "%s", strings.Join(f.text, "\n"))
	assert.Equal(s, len(s.ops), f.done+f.rejected+f.ambiguous+f.waiting)
	assert.Positive(s, kills, "the workers must have been killed")
	assert.Positive(s, s.duplicates.Load())
}

// report is what handlers wrote about an operation.
type report struct {
	n            int
	value, error string
}

// books are what the gateway did.
type books struct {
	applied  map[string]int   // how often, by effect
	refunded map[string]int64 // cents, by charge
}

// effect names what an operation does, as the gateway's books show it; "" for a refund,
// of which they show the sum.
func effect(op operations.Operation) string {
	switch o := op.(type) {
	case operations.CreateTransaction:
		return "charge " + o.ExternalRef
	case operations.CreateTransfer:
		return "payout " + o.ExternalRef
	case operations.CreateCustomer:
		return "customer " + o.ExternalRef
	case operations.CreateSubscription:
		return "subscription of " + o.CustomerID
	case operations.CancelTransfer:
		return "no payout " + o.TransferID
	case operations.UpdateSubscription:
		return string(o.Params.FailurePolicy) + " for " + o.SubscriptionID
	case operations.CancelSubscription:
		return "end of " + o.SubscriptionID
	}
	return ""
}

func (s *outboxStorm) books() *books {
	b := &books{applied: make(map[string]int), refunded: make(map[string]int64)}
	for t, err := range s.client.Transactions.All(s.Context(), gateway.TransactionListParams{Limit: 100}) {
		require.NoError(s, err)
		b.applied["charge "+t.ExternalRef]++
	}
	for t, err := range s.client.Transfers.All(s.Context(), gateway.TransferListParams{Limit: 100}) {
		require.NoError(s, err)
		b.applied["payout "+t.ExternalRef]++
		if t.Status == gateway.TransferCancelled {
			b.applied["no payout "+t.ID]++
		}
	}
	for c, err := range s.client.Customers.All(s.Context(), gateway.CustomerListParams{Limit: 100}) {
		require.NoError(s, err)
		b.applied["customer "+c.ExternalRef]++
	}
	for sub, err := range s.client.Subscriptions.All(s.Context(), gateway.SubscriptionListParams{Limit: 100}) {
		require.NoError(s, err)
		b.applied["subscription of "+sub.CustomerID]++
		b.applied[string(sub.FailurePolicy)+" for "+sub.ID]++
		if sub.Status == gateway.SubscriptionCancelScheduled || sub.Status == gateway.SubscriptionCanceled {
			b.applied["end of "+sub.ID]++
		}
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
	f, b, reports, entries := &findings{faults: make(map[fault]int)}, s.books(), s.reports(), s.entries()
	moved := make(map[string]int64)  // reported as refunded, by charge
	open := make(map[string][]int64) // ambiguous refunds
	for _, op := range s.ops {
		key := keyOf(op)
		r, e := reports[key], entries[key]
		switch {
		case r == nil && e == nil:
			list, err := s.outbox.List(s.Context(), operations.Query{Key: key})
			require.NoError(s, err)
			f.add(missing, "%s: not reported: %+v", key, list)
			continue
		case r == nil && e.State == operations.Waiting:
			f.waiting++
		case r == nil:
			f.ambiguous++
			if !s.justified(op, e) {
				f.add(unjustified, "%s: ambiguous without a reason: %s", key, e.Ambiguity)
			}
			if refund, ok := op.(operations.Refund); ok {
				open[refund.TransactionID] = append(open[refund.TransactionID], refund.Amount)
			}
			continue
		case r.n > 1:
			f.add(repeated, "%s: reported %d times", key, r.n)
		case r.error != "":
			f.rejected++
		default:
			f.done++
		}
		s.compare(f, b, op, r, moved)
	}
	for _, op := range s.dropped {
		if b.applied[effect(op)] > 0 {
			f.add(doubled, "%s: sent although it was rolled back", keyOf(op))
		}
	}
	s.compareRefunds(f, b, moved, open)
	return f
}

// compare checks that an operation is in the gateway's books as reported.
func (s *outboxStorm) compare(f *findings, b *books, op operations.Operation, r *report, moved map[string]int64) {
	reported := r != nil && r.error == ""
	if refund, ok := op.(operations.Refund); ok {
		if reported {
			cents, err := strconv.ParseInt(r.value, 10, 64)
			require.NoError(s, err)
			moved[refund.TransactionID] += cents
		}
		return
	}
	switch n := b.applied[effect(op)]; {
	case n > 1:
		f.add(doubled, "%s: %d times in the gateway's books", keyOf(op), n)
	case n == 0 && reported:
		f.add(lost, "%s: reported as applied, but not in the gateway's books", keyOf(op))
	case n == 1 && !reported:
		f.add(misreported, "%s: in the gateway's books, but reported as %+v", keyOf(op), r)
	}
}

// compareRefunds compares amounts: the gateway's refunds must add up to the
// reported ones, the operator's, and each ambiguous one at most once.
func (s *outboxStorm) compareRefunds(f *findings, b *books, moved map[string]int64, open map[string][]int64) {
	for id, refunded := range b.refunded {
		byHand := operatorRefund * int64(len(s.byHand[id]))
		left := refunded - moved[id] - byHand
		possible := []int64{0}
		for _, amount := range open[id] {
			for _, p := range slices.Clone(possible) {
				possible = append(possible, p+amount)
			}
		}
		kind := lost
		if left > 0 {
			kind = doubled
		}
		if !slices.Contains(possible, left) {
			f.add(kind, "%s: %d cents refunded, %d reported, %d by hand", id, refunded, moved[id], byHand)
		}
	}
}

// justified checks that an operation really was ambiguous: the operator's refunds until
// then must account for the difference that the outbox could not explain.
func (s *outboxStorm) justified(op operations.Operation, e *operations.Entry) bool {
	refund, ok := op.(operations.Refund)
	if !ok {
		return false
	}
	var before, asked, now, byHand int64
	_, err := fmt.Sscanf(e.Ambiguity, "refunded_amount was %d before this refund of %d was sent, and is %d now", &before, &asked, &now)
	require.NoError(s, err, e.Ambiguity)
	for _, at := range s.byHand[refund.TransactionID] {
		if at.Before(e.UpdatedAt) {
			byHand += operatorRefund
		}
	}
	explained := func(foreign int64) bool { return foreign > 0 && foreign%operatorRefund == 0 && foreign <= byHand }
	return explained(now-before) || explained(now-before-asked)
}
