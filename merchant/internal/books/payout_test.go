package books_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// transfer returns a transfer of 2000 whose last change was in a minute, 0 for unknown.
func transfer(status gateway.TransferStatus, changed int) *gateway.Transfer {
	t := &gateway.Transfer{ID: "t1", Status: status, Amount: 2000, Fee: 50}
	if changed > 0 {
		t.UpdatedAt = gateway.TimestampOf(minute(changed))
	}
	return t
}

// payouts is a payout, its order and what was reported.
type payouts struct {
	order  books.Order
	payout books.Payout
	facts  []books.Fact
	log    []string
	problems
}

func newPayout() *payouts {
	return &payouts{order: books.Order{ID: "payout/p1"}, payout: books.Payout{ID: "p1", Requested: 2000, Operation: books.Sent, State: books.Unknown}}
}

func (p *payouts) keep(o books.Order, next books.Payout, r books.Result) books.Outcome {
	if silent(r) || foreign(r, o.Currency) {
		p.log = append(p.log, "silent")
	}
	for _, over := range r.Over {
		p.log = append(p.log, fmt.Sprintf("over %s/%s", over.Kind, over.Record))
	}
	if err := cmp.Or(p.problems.keep(r), p.remembered(next.Problems),
		p.wrongly(books.IsAmbiguous, next.ID, next.Operation == books.InDoubt && next.Status == "")); err != nil {
		p.log = append(p.log, "silent: "+err.Error())
	}
	p.order, p.payout = o, next
	p.facts = append(p.facts, r.Facts...)
	for _, f := range r.Facts {
		if f.Callback != books.None {
			p.log = append(p.log, f.Key)
		}
	}
	for _, problem := range r.Problems {
		p.log = append(p.log, "problem "+problem.Key)
	}
	return r.Outcome
}

func (p *payouts) read(t *gateway.Transfer, at int) books.Outcome {
	return p.keep(books.ApplyTransfer(p.order, p.payout, reading(t, at)))
}

func (p *payouts) outcome(op books.Operation) books.Outcome {
	return p.keep(books.ApplyPayoutOperation(p.order, p.payout, op, "no such key", start))
}

func TestAPayoutLeavesTheBalanceAndReturns(t *testing.T) {
	t.Parallel()
	p := newPayout()
	assert.Equal(t, books.Changed, p.read(transfer("pending", 1), 1))
	assert.Equal(t, int64(-2000), p.order.Net(), "as soon as it exists")
	assert.Equal(t, books.Pending, p.payout.State)
	assert.Equal(t, int64(50), p.payout.Fee, "part of the amount")
	p.read(transfer("processing", 2), 2)
	assert.Empty(t, p.log)
	p.read(transfer("error", 3), 3)
	assert.Equal(t, books.Failed, p.payout.State)
	assert.Equal(t, "error", p.payout.Reason)
	assert.Zero(t, p.order.Net())
	assert.Equal(t, "paid_out/p1/1 BRL -20.00\npaid_out/p1/2 BRL 20.00\npayout/p1/failed/2\n", keys(p.facts))
	assert.Equal(t, []string{"payout/p1/failed/2"}, p.log)
	assert.Equal(t, books.Unchanged, p.read(transfer("error", 3), 4))
	assert.Equal(t, books.Stale, p.read(transfer("processing", 2), 5))
}

// A payout is in BRL: it is not in the sums of an order in another currency.
func TestAPayoutOfAnOrderInAnotherCurrency(t *testing.T) {
	t.Parallel()
	p := newPayout()
	p.order = books.Order{ID: "order/A17", Currency: gateway.USD, Paid: 5000}
	p.read(transfer("pending", 1), 1)
	assert.Equal(t, books.Order{ID: "order/A17", Currency: gateway.USD, Paid: 5000}, p.order)
	assert.Equal(t, int64(2000), p.payout.Out, "but it is in the books")
	assert.Equal(t, "paid_out/p1/1 BRL -20.00\n", keys(p.facts))
	p.read(transfer("error", 2), 2)
	assert.Equal(t, []string{"problem currency/p1/paid_out/p1/1", "payout/p1/failed/2", "problem currency/p1/paid_out/p1/2"}, p.log)

	p = newPayout()
	p.order = books.Order{ID: "order/A17"} // nothing was asked for
	p.read(transfer("pending", 1), 1)
	assert.Equal(t, gateway.BRL, p.order.Currency)
	assert.Equal(t, int64(2000), p.order.PaidOut)
	assert.Empty(t, p.log)
}

func TestHowAPayoutEnds(t *testing.T) {
	t.Parallel()
	for status, want := range map[gateway.TransferStatus]books.State{
		"paid": books.Paid, "error": books.Failed, "rejected": books.Failed, "cancelled": books.Canceled,
	} {
		p := newPayout()
		tx := transfer(status, 1)
		tx.TransferredAt = gateway.TimestampOf(minute(7))
		p.read(tx, 1)
		assert.Equal(t, want, p.payout.State)
		assert.Len(t, p.log, 1)
		assert.Equal(t, minute(7), p.payout.PaidAt)
		assert.Equal(t, want == books.Paid, p.order.PaidOut == 2000, "what failed at once never left")
		assert.Equal(t, want != books.Paid, p.payout.Reason == string(status))
	}
}

func TestFactsOfAPayoutSayWhenTheyHappened(t *testing.T) {
	t.Parallel()
	p := newPayout()
	p.read(transfer("paid", 3), 20)
	p.read(transfer("error", 4), 21)
	later := transfer("paid", 5)
	later.UpdatedAt = gateway.Timestamp{}
	q := newPayout()
	q.read(later, 20)
	for i, at := range []int{3, 3, 4, 4, 20, 20} {
		assert.Equal(t, minute(at), slices.Concat(p.facts, q.facts)[i].At)
	}
}

func TestWhatBecomesOfTheRequestForAPayout(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		op       books.Operation
		state    books.State
		reported []string
	}{
		{books.Waiting, books.New, nil},
		{books.InDoubt, books.Ambiguous, []string{"problem ambiguous/payout/p1/"}},
		{books.Applied, books.Pending, nil},
		{books.Refused, books.Rejected, []string{"payout/p1/rejected/0"}},
		{books.Abandoned, books.Withdrawn, nil},
	} {
		p := newPayout()
		assert.Equal(t, books.Unchanged, p.outcome(books.Sent))
		assert.Equal(t, books.Changed, p.outcome(tc.op))
		assert.Equal(t, tc.state, p.payout.State)
		assert.Equal(t, tc.reported, p.log)
		assert.Equal(t, tc.op == books.Refused, p.payout.Reason == "no such key")
		assert.Zero(t, p.order.PaidOut)
		p.outcome(books.Sent)
		assert.Equal(t, tc.op == books.Waiting || tc.op == books.InDoubt, p.payout.State == books.Unknown, "other outcomes are final")
		p.read(transfer("processing", 1), 1)
		assert.Equal(t, books.Pending, p.payout.State, "the reading counts more")
	}
	p := newPayout()
	p.read(transfer("paid", 1), 1)
	for _, op := range []books.Operation{books.InDoubt, books.Refused} {
		p.outcome(op)
		assert.Equal(t, books.Paid, p.payout.State)
		assert.Empty(t, p.payout.Reason)
	}
	assert.Equal(t, []string{"payout/p1/paid/1"}, p.log)
}

func TestAPayoutThatEndsTwiceIsReportedTwice(t *testing.T) {
	t.Parallel()
	p := newPayout()
	p.read(transfer("paid", 1), 1)
	p.read(transfer("error", 2), 2) // the bank returned it
	assert.Zero(t, p.order.PaidOut)
	p.read(transfer("paid", 3), 3)
	assert.Equal(t, int64(2000), p.order.PaidOut)
	assert.Equal(t, []string{
		"payout/p1/paid/1", "payout/p1/failed/2", "problem reversed/payout/p1/1", "payout/p1/paid/3", "problem reversed/payout/p1/2",
	}, p.log)
}

// The check of a month adds up what transfers took: what a payout books, or why it can't be
// said.
func TestWhatATransferHasTaken(t *testing.T) {
	t.Parallel()
	for status := range spec.LiveTransferStatuses.All() {
		tx := transfer(gateway.TransferStatus(status), 1)
		p := newPayout()
		p.read(tx, 1)
		out, wrong := books.PaidOut(tx)
		assert.Empty(t, wrong, status)
		assert.Equal(t, p.order.PaidOut, out, status)
	}
	for wrong, tx := range map[string]gateway.Transfer{
		"unknown status brand_new":      {Status: "brand_new", Amount: 2000},
		"0 is no amount":                {Status: "paid"},
		"-5 is no amount":               {Status: "error", Amount: -5},
		"9007199254740992 is no amount": {Status: "paid", Amount: spec.MaxSafeAmount + 1},
	} {
		out, got := books.PaidOut(&tx)
		assert.Equal(t, wrong, got)
		assert.Zero(t, out)
	}
}

func TestTransfersThatCannotBeTrueChangeNothing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		transfer gateway.Transfer
		problem  string
	}{
		{gateway.Transfer{ID: "t1", Status: "brand_new", Amount: 2000}, "unknown_state/payout/p1/brand_new"},
		{gateway.Transfer{ID: "t1", Status: "paid"}, "contradiction/payout/p1/0 is no amount"},
		{gateway.Transfer{ID: "t1", Status: "paid", Amount: -5}, "contradiction/payout/p1/-5 is no amount"},
		{gateway.Transfer{ID: "t1", Status: "paid", Amount: spec.MaxSafeAmount + 1}, "contradiction/payout/p1/9007199254740992 is no amount"},
	} {
		p := newPayout()
		for range 2 {
			p.read(&tc.transfer, 1)
			assert.Equal(t, books.Unknown, p.payout.State)
			assert.Empty(t, p.facts)
		}
		assert.Equal(t, []string{"problem " + tc.problem}, p.log)
	}
	p := newPayout()
	p.read(&gateway.Transfer{ID: "t1", Status: "pending", Amount: spec.MaxSafeAmount}, 1)
	assert.Equal(t, []string{"problem contradiction/payout/p1/amount"}, p.log)
	assert.Equal(t, int64(spec.MaxSafeAmount), p.order.PaidOut, "what the gateway takes counts")
	p.read(&gateway.Transfer{ID: "t1", Status: "paid", Amount: 2001}, 2)
	p.read(&gateway.Transfer{ID: "t2", Status: "paid", Amount: 2000}, 2)
	assert.Equal(t, []string{"problem contradiction/payout/p1/its amount is 2001, but was 9007199254740991", "problem unmatched/payout/p1/t2"}, p.log[1:])
	assert.Equal(t, books.Pending, p.payout.State)

	p = newPayout()
	p.payout.Requested = 0 // adopted
	p.read(transfer("unknown", 1), 1)
	assert.Equal(t, int64(2000), p.order.PaidOut, "it exists")
	assert.Equal(t, []string{"problem unknown_state/payout/p1/unknown"}, p.log)
}

func TestATransferThatIsNotOverIsPending(t *testing.T) {
	t.Parallel()
	for _, status := range []gateway.TransferStatus{"unknown", "scheduled", "pending", "in_analysis", "processing"} {
		p := newPayout()
		p.read(transfer(status, 0), 5)
		assert.Equal(t, books.Pending, p.payout.State, status)
		assert.Equal(t, int64(2000), p.order.PaidOut, status)
		assert.Equal(t, status == "unknown", len(p.log) == 1, status)
		p.read(transfer("unknown", 0), 9)
		assert.Equal(t, status == "unknown", p.payout.Status == "unknown", "it says nothing: %s", status)
		p.read(transfer("pending", 0), 10)
		assert.Equal(t, gateway.TransferPending, p.payout.Status, status)
	}
}

func TestOrderOfReadingsOfATransfer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		first, second        gateway.TransferStatus
		changed, changedThen int
		at                   int // of the second; the first is in minute 5
		newer                bool
	}{
		{"pending", "scheduled", 0, 0, 6, true},
		{"pending", "scheduled", 0, 0, 5, false}, // neither is known to be later
		{"pending", "scheduled", 0, 0, 4, false},
		{"pending", "processing", 0, 0, 9, true},
		{"pending", "processing", 0, 0, 1, false},
		{"in_analysis", "pending", 0, 0, 9, true}, // the analysis has ended
		{"in_analysis", "pending", 0, 0, 1, false},
		{"pending", "in_analysis", 5, 5, 6, true},
		{"pending", "in_analysis", 5, 5, 1, false},
		{"in_analysis", "pending", 5, 5, 6, true},
		{"processing", "paid", 5, 5, 1, true}, // an end, whenever it was read
		{"processing", "error", 0, 0, 1, true},
		{"paid", "processing", 5, 5, 9, false},
		{"paid", "error", 5, 5, 9, true},
		{"paid", "error", 0, 0, 9, true},
		{"error", "paid", 0, 0, 9, true},
		{"paid", "rejected", 0, 0, 9, true},
		{"paid", "cancelled", 0, 0, 9, true},
		{"paid", "error", 5, 5, 5, false}, // neither is known to be later
		{"paid", "error", 0, 0, 1, false},
		{"processing", "paid", 5, 3, 9, false},
		{"processing", "pending", 5, 6, 1, true},
	} {
		p := newPayout()
		p.read(transfer(tc.first, tc.changed), 5)
		outcome := p.read(transfer(tc.second, tc.changedThen), tc.at)
		assert.Equal(t, tc.newer, p.payout.Status == tc.second, "%+v", tc)
		assert.Equal(t, tc.newer, outcome == books.Changed, "%+v", tc)
		assert.Equal(t, !tc.newer, outcome == books.Stale, "%+v", tc)
	}
	p := newPayout()
	p.payout.Requested = 1
	cent := transfer("pending", 1)
	cent.Amount = 1
	p.read(cent, 1)
	assert.Equal(t, int64(1), p.order.PaidOut)
	p = newPayout()
	p.outcome(books.Refused)
	assert.Equal(t, books.FromOutcome, p.facts[0].Source)
}

func TestATransferThatStaysBehindForADayIsAProblem(t *testing.T) {
	t.Parallel()
	p := newPayout()
	p.read(transfer("paid", 2), 2)
	p.read(transfer("processing", 1), 1)
	p.read(transfer("processing", 1), 3)
	p.read(transfer("processing", 1), 24*60)
	assert.Len(t, p.log, 1)
	p.read(transfer("processing", 1), 3+24*60)
	assert.Equal(t, "problem lower/payout/p1/2026-11-02T12:03:00Z", p.log[1])
	assert.Equal(t, books.Paid, p.payout.State)
}

// Every transfer status after every other one, newer, older and without updated_at.
func TestEveryReadingOfEveryPayout(t *testing.T) {
	t.Parallel()
	combinations := 0
	statuses := append(slices.Collect(spec.LiveTransferStatuses.All()), "brand_new")
	for _, first := range statuses {
		for _, second := range statuses {
			for _, third := range statuses {
				for n, changed := range [][3]int{{1, 2, 3}, {2, 1, 3}, {3, 2, 1}, {0, 0, 0}, {1, 1, 1}} {
					combinations++
					p := newPayout()
					if n%2 == 1 {
						p.order.Currency = gateway.USD
					}
					name := fmt.Sprint(first, second, third, changed)
					for i, status := range []string{first, second, third} {
						tx := transfer(gateway.TransferStatus(status), changed[i])
						p.read(tx, i)
						before := *p
						require.NotEqual(t, books.Changed, p.read(tx, i), name)
						require.Equal(t, before.payout, p.payout, name)
						require.Equal(t, before.facts, p.facts, name)
					}
					require.NotContains(t, strings.Join(p.log, "\n"), "silent", name)
					require.Equal(t, sums(p.facts, p.order.Currency), money(p.order), name)
					require.Equal(t, p.payout.Out, sums(p.facts, gateway.BRL).PaidOut, name)
					if returned := p.payout.State == books.Failed || p.payout.State == books.Canceled; returned || p.payout.State == books.Unknown {
						require.Zero(t, p.payout.Out, name)
					} else {
						require.Equal(t, int64(2000), p.payout.Out, name)
					}
				}
			}
		}
	}
	t.Logf("%d combinations of three readings", combinations)
}

// transferLives lists the possible histories of a transfer by the diagram.
func transferLives(t *testing.T) (list [][]string) {
	t.Helper()
	edges := machine(t, "Transfers")
	var walk func(l []string, last string)
	walk = func(l []string, last string) {
		if len(l) > 0 {
			list = append(list, slices.Clone(l))
		}
		for _, e := range edges {
			if e.from == last {
				walk(append(l, e.to), e.to)
			}
		}
	}
	walk(nil, "")
	return list
}

func TestEveryOrderOfEveryTransfer(t *testing.T) {
	t.Parallel()
	lives := transferLives(t)
	orders := 0
	for _, l := range lives {
		for name, times := range map[string]func(i int) int{
			"rising": func(i int) int { return i + 1 }, "equal": func(int) int { return 1 }, "none": func(int) int { return 0 },
		} {
			want := newPayout()
			for order := range permutations(len(l)) {
				orders++
				p := newPayout()
				for n, i := range order {
					at := i // the readings were made in this order, and are applied in another one
					if name == "rising" {
						at = n // the gateway lags
					}
					p.read(transfer(gateway.TransferStatus(l[i]), times(i)), at)
				}
				if want.payout.Status == "" {
					want = p
				}
				require.Equal(t, money(want.order), money(p.order), "%s %d", l, order)
				require.Equal(t, want.payout.State, p.payout.State, "%s %d", l, order)
				require.Equal(t, l[len(l)-1], string(p.payout.Status), "%s %d", l, order)
				require.Len(t, p.log, len(want.log), "reported once, whatever the order: %s %d", l, order)
			}
		}
	}
	t.Logf("%d orders of %d transfers", orders, len(lives))
}
