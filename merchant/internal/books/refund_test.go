package books_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// outcome applies what became of a refund of charge c1.
func (s *shop) outcome(id string, op books.Operation, moved int64) books.Outcome {
	s.t.Helper()
	return s.do("c1", func(b books.Books) (books.Books, books.Result) {
		return books.ApplyRefund(b, id, op, moved, "too late", minute(s.at))
	})
}

// refund returns a refund of charge c1.
func (s *shop) refund(id string) books.Refund {
	s.t.Helper()
	i := slices.IndexFunc(s.refunds["c1"], func(r books.Refund) bool { return r.ID == id })
	require.GreaterOrEqual(s.t, i, 0)
	return s.refunds["c1"][i]
}

// paidShop returns a shop whose charge c1 is paid, with refunds of it.
func paidShop(t *testing.T, refunds ...books.Refund) *shop {
	t.Helper()
	s := newShop(t)
	s.read("c1", seen{status: "paid", paid: 5000})
	s.refunds["c1"] = refunds
	s.expect("paid c1")
	return s
}

func part(total int64) seen { return seen{status: "partially_refunded", paid: 5000, refunded: total} }

func TestARefundIsAcceptedAndThenShown(t *testing.T) {
	t.Parallel()
	s := paidShop(t, books.Refund{ID: "r1", Operation: books.Sent, State: books.Unknown, Amount: 1000})
	s.outcome("r1", books.Applied, 1000)
	assert.Equal(t, books.Accepted, s.refund("r1").State)
	assert.Zero(t, s.order.Refunded, "what was asked for is no money")
	s.expect()
	s.read("c1", part(1000))
	assert.Equal(t, books.Done, s.refund("r1").State)
	s.expect("refunded r1")
	assert.Equal(t, books.Unchanged, s.outcome("r1", books.Refused, 0), "the outcome is final")
	last := s.facts[len(s.facts)-1]
	assert.Equal(t, "refund/r1", last.Key)
	assert.Equal(t, "c1", last.Charge)
	assert.Equal(t, int64(1000), last.About)
	assert.Zero(t, last.Amount, "booked as refunded/t-c1/1000")
}

func TestAWebhookComesBeforeTheResponseToARefund(t *testing.T) {
	t.Parallel()
	s := paidShop(t, books.Refund{ID: "r1", Operation: books.Sent, Amount: 1000})
	s.read("c1", part(1000))
	s.expect() // it may be this refund, or someone else's
	assert.Equal(t, int64(4000), s.order.Left(), "but it is booked")
	s.outcome("r1", books.Applied, 1000)
	s.expect("refunded r1")
	assert.Zero(t, s.charge("c1").ByOthers)
}

func TestSomeoneElseRefundsWhileARefundIsUnderWay(t *testing.T) {
	t.Parallel()
	s := paidShop(t, books.Refund{ID: "r1", Operation: books.Sent, Amount: 1000})
	s.read("c1", part(1500))
	s.outcome("r1", books.Applied, 1000)
	s.expect("refunded r1", "refunded c1")
	assert.Equal(t, int64(500), s.charge("c1").ByOthers)

	s = paidShop(t, books.Refund{ID: "r1", Operation: books.Sent, Amount: 1000})
	s.read("c1", part(500))
	s.outcome("r1", books.Refused, 0)
	s.expect("refund_rejected r1", "refunded c1")
	assert.Equal(t, books.FromOutcome, s.facts[len(s.facts)-1].Source)
	assert.Equal(t, books.Rejected, s.refund("r1").State)
	assert.Equal(t, "too late", s.refund("r1").Reason)
	assert.Equal(t, int64(500), s.charge("c1").ByOthers)

	s = paidShop(t, books.Refund{ID: "r1", Operation: books.Sent, Amount: 1000})
	s.read("c1", part(500))
	s.outcome("r1", books.Waiting, 0) // certainly not applied; to be sent again
	assert.Equal(t, books.New, s.refund("r1").State)
	s.expect("refunded c1")
}

func TestSomeoneElseRefundsBeforeAConfirmedRefundIsShown(t *testing.T) {
	t.Parallel()
	s := paidShop(t, books.Refund{ID: "r1", Operation: books.Sent, Amount: 1000})
	s.outcome("r1", books.Applied, 1000)
	s.read("c1", part(500))
	s.expect()
	s.read("c1", part(1500))
	s.expect("refunded r1", "refunded c1")
	assert.Equal(t, int64(500), s.charge("c1").ByOthers)
}

func TestARefundInDoubtIsDecidedByAPerson(t *testing.T) {
	t.Parallel()
	s := paidShop(t, books.Refund{ID: "r1", Operation: books.Sent, Amount: 1000})
	s.read("c1", part(1500))
	s.outcome("r1", books.InDoubt, 0)
	assert.Equal(t, books.Ambiguous, s.refund("r1").State)
	s.expect("refunded c1", "problem ambiguous/refund/r1/") // the money is gone, whoever refunded it
	assert.Equal(t, int64(1500), s.charge("c1").ByOthers)
	s.outcome("r1", books.Applied, 1000)
	s.expect("over ambiguous/r1", "refunded r1")
	assert.Equal(t, books.Done, s.refund("r1").State)
	assert.Equal(t, int64(500), s.charge("c1").ByOthers)
	s.read("c1", part(2000))
	s.expect("refunded c1")
	assert.Equal(t, int64(1000), s.charge("c1").ByOthers)

	s = paidShop(t, books.Refund{ID: "r1", Operation: books.InDoubt, Amount: 1000})
	s.outcome("r1", books.Applied, 1000) // not shown yet
	s.expect()
	s.read("c1", part(1000))
	s.expect("refunded r1")
	assert.Zero(t, s.charge("c1").ByOthers)
}

func TestARefundWhoseTargetWasReachedIsDone(t *testing.T) {
	t.Parallel()
	s := paidShop(t, books.Refund{ID: "r1", Operation: books.Waiting, UpTo: 1000})
	s.read("c1", part(1000))
	s.expect("refunded c1")
	s.outcome("r1", books.Applied, 0)
	s.expect("refunded r1")
	assert.Equal(t, books.Done, s.refund("r1").State)
}

func TestAConfirmedRefundThatIsNeverShownIsAProblem(t *testing.T) {
	t.Parallel()
	for name, changed := range map[string]int{"a clock that moves": 99999, "updated_at does not move": 1} {
		s := paidShop(t, books.Refund{ID: "r1", Operation: books.Sent, Amount: 1000})
		s.outcome("r1", books.Applied, 1000)
		read := func(at int) {
			s.do("c1", func(b books.Books) (books.Books, books.Result) {
				return books.ApplyTransaction(b, reading(seen{status: "paid", paid: 5000, changed: changed}.transaction("t-c1"), at))
			})
		}
		read(s.at)
		read(s.at + 24*60 - 1)
		assert.Empty(t, s.log, name)
		read(s.at + 24*60)
		s.expect("problem lower/refund/r1/")
		read(s.at + 48*60)
		s.expect()
		assert.Equal(t, books.Accepted, s.refund("r1").State)
	}
}

// A confirmed refund is waited for from its confirmation on, also while another one is
// decided.
func TestTheOutcomeOfARefundShowsThatAnotherIsMissing(t *testing.T) {
	t.Parallel()
	s := paidShop(t, books.Refund{ID: "r1", Operation: books.Sent, Amount: 1000}, books.Refund{ID: "r2", Operation: books.Sent, Amount: 1000})
	s.outcome("r1", books.Applied, 1000)
	s.at += 24 * 60
	s.outcome("r2", books.Applied, 1000)
	s.expect("problem lower/refund/r1/")
}

func TestTheRecordsThatAreGivenDoNotChange(t *testing.T) {
	t.Parallel()
	refunds := []books.Refund{{ID: "r1", Operation: books.Sent, State: books.Unknown, Amount: 1000}}
	after, _ := books.ApplyRefund(books.Books{Refunds: refunds}, "r1", books.Refused, 0, "", start)
	assert.Equal(t, books.Unknown, refunds[0].State)
	assert.Equal(t, books.Rejected, after.Refunds[0].State)
	charges := []books.Charge{{ID: "a", TransactionID: "a"}}
	_, next, _ := books.ApplySubscription(books.Order{}, books.Subscription{ID: "m1"}, charges, books.Reading[gateway.Subscription]{Resource: period("active", 0, 0, item("a", "paid", 0)), At: start})
	assert.Empty(t, charges[0].Reported)
	assert.Equal(t, []string{"period/a"}, next[0].Reported)
}

func TestAWithdrawnRefundAndAStrangeOneChangeNothing(t *testing.T) {
	t.Parallel()
	s := paidShop(t, books.Refund{ID: "r1", Operation: books.Waiting, Full: true})
	assert.Equal(t, books.Unchanged, s.outcome("r1", books.Waiting, 0))
	s.outcome("r1", books.Sent, 0)
	assert.Equal(t, books.Unknown, s.refund("r1").State)
	s.outcome("r1", books.Waiting, 0)
	assert.Equal(t, books.Changed, s.outcome("r1", books.Abandoned, 0))
	assert.Equal(t, books.Withdrawn, s.refund("r1").State)
	assert.Equal(t, books.Unchanged, s.outcome("r2", books.Applied, 1))
	s.expect()
}

func TestTheCheckOfACardIsNotReported(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.charge("c1").Origin, s.charge("c1").CardCheck = books.FromSubscription, true
	s.read("c1", seen{status: "paid", paid: 100})
	s.read("c1", seen{status: "refunded", paid: 100, refunded: 100})
	s.read("c1", seen{status: "chargedback", paid: 100})
	s.expect()
	assert.Equal(t, int64(100), s.order.Refunded)
}

// The order in which outcomes and readings arrive does not matter, as long as each
// request is marked as sent before its effect can be read.
func TestEveryOrderOfRefundsAndReadings(t *testing.T) {
	t.Parallel()
	steps := []struct {
		name string
		do   func(s *shop)
	}{
		{"a applied", func(s *shop) { s.outcome("a", books.Applied, 1000) }},
		{"b sent", func(s *shop) { s.outcome("b", books.Sent, 0) }},
		{"b applied", func(s *shop) { s.outcome("b", books.Applied, 2000) }},
		{"read 1000", func(s *shop) {
			s.read("c1", seen{status: "partially_refunded", paid: 5000, refunded: 1000, changed: 11})
		}},
		{"read 1500", func(s *shop) {
			s.read("c1", seen{status: "partially_refunded", paid: 5000, refunded: 1500, changed: 12})
		}},
		{"read 3500", func(s *shop) {
			s.read("c1", seen{status: "partially_refunded", paid: 5000, refunded: 3500, changed: 13})
		}},
	}
	orders := 0
	for p := range permutations(len(steps)) {
		at := func(i int) int { return slices.Index(p, i) }
		if at(0) > at(1) || at(1) > at(2) || at(1) > at(5) {
			continue // refunds of a transaction are sent one after another
		}
		orders++
		s := paidShop(t, books.Refund{ID: "a", Operation: books.Sent, Amount: 1000}, books.Refund{ID: "b", Operation: books.Waiting, Amount: 2000})
		var names []string
		for _, i := range p {
			names = append(names, steps[i].name)
			steps[i].do(s)
			assert.LessOrEqual(t, s.charge("c1").Attributed, s.charge("c1").Refunded, names)
		}
		require.Equal(t, books.Done, s.refund("a").State, names)
		require.Equal(t, books.Done, s.refund("b").State, names)
		require.Equal(t, int64(500), s.charge("c1").ByOthers, names)
		reported := int64(0)
		for _, f := range s.facts {
			reported += f.About
		}
		require.Equal(t, s.order.Refunded, reported, "%s: %s", names, keys(s.facts))
	}
	t.Logf("%d orders of two refunds and three readings", orders)
	assert.Equal(t, 60, orders)
}

// Two refunds are confirmed and shown at once, late or never, while the gateway's clock is
// stopped: exactly those are problems that were confirmed a day ago and are not shown.
func TestEverySequenceOfRefundsThatAreShownLate(t *testing.T) {
	t.Parallel()
	read := func(refunded int64) func(*shop) {
		return func(s *shop) {
			s.at++
			s.do("c1", func(b books.Books) (books.Books, books.Result) {
				tx := seen{status: "partially_refunded", paid: 5000, refunded: refunded, changed: 1}.transaction("t-c1")
				if refunded == 0 {
					tx.Status = gateway.TransactionPaid
				}
				return books.ApplyTransaction(b, reading(tx, s.at))
			})
		}
	}
	actions := []func(*shop){
		read(0), read(1000), read(3000),
		func(s *shop) { s.outcome("a", books.Applied, 1000) },
		func(s *shop) { s.outcome("b", books.Applied, 2000) },
		func(s *shop) { s.at += 23 * 60; read(0)(s) },
	}
	const length = 5
	sequences := 1
	for range length {
		sequences *= len(actions)
	}
	for n := range sequences {
		s := paidShop(t, books.Refund{ID: "a", Operation: books.Sent, Amount: 1000}, books.Refund{ID: "b", Operation: books.Sent, Amount: 2000})
		var name []int
		for range length {
			actions[n%len(actions)](s)
			name, n = append(name, n%len(actions)), n/len(actions)
			for _, r := range s.refunds["c1"] {
				missing := r.Operation == books.Applied && !r.Shown && minute(s.at).Sub(r.AppliedAt) >= 24*time.Hour
				require.NoError(t, s.wrongly(books.IsLower, r.ID, missing), "%d", name)
			}
		}
	}
	t.Logf("%d sequences", sequences)
}

func TestRefundableCountsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		want    int64
		refunds []books.Refund
	}{
		{4000, nil},
		{3000, []books.Refund{{Amount: 1000}}},
		{2500, []books.Refund{{Amount: 1000, Operation: books.Sent}, {Amount: 500, Operation: books.InDoubt}}},
		{3500, []books.Refund{{Amount: 1000, Operation: books.Applied, Moved: 500}}},
		{4000, []books.Refund{{Amount: 1000, Operation: books.Applied, Moved: 1000, Shown: true}}},
		{4000, []books.Refund{{Amount: 1000, Operation: books.Refused}, {Amount: 1000, Operation: books.Abandoned}}},
		{3000, []books.Refund{{UpTo: 2000}}},
		{4000, []books.Refund{{UpTo: 500}}},
		{2000, []books.Refund{{Amount: 2000}, {UpTo: 2500}}},
		{0, []books.Refund{{Full: true}}},
		{0, []books.Refund{{Full: true}, {Amount: 1000}}},
	} {
		b := books.Books{Charge: books.Charge{Paid: 6000, Refunded: 1000, Disputed: 1000}, Refunds: tc.refunds}
		assert.Equal(t, tc.want, b.Refundable(), fmt.Sprint(tc.refunds))
	}
	b := books.Books{Charge: books.Charge{Paid: 6000}, Refunds: []books.Refund{{UpTo: 1}}}
	assert.Equal(t, int64(5999), b.Refundable())
	b = books.Books{Charge: books.Charge{Paid: 6000, Refunded: 1000, Disputed: 2000}, Refunds: []books.Refund{{Full: true}}}
	assert.Equal(t, int64(4000), b.Planned())
}

// Whatever becomes of requests, no sum changes before a reading.
func TestNoMoneyComesFromIntentions(t *testing.T) {
	t.Parallel()
	all := []books.Operation{books.Waiting, books.Sent, books.InDoubt, books.Applied, books.Refused, books.Abandoned}
	sequences := 0
	for _, first := range all {
		for _, second := range all {
			for _, third := range all {
				sequences++
				b := books.Books{Order: books.Order{ID: "o"}, Charge: books.Charge{ID: "c"}, Refunds: []books.Refund{{ID: "r", Amount: 100}}}
				p, sub := books.Payout{ID: "p", Requested: 100}, books.Subscription{ID: "s"}
				o := b.Order
				var facts []books.Fact
				for _, op := range []books.Operation{first, second, third} {
					var results [4]books.Result
					b, results[0] = books.ApplyOperation(b, op, "", start)
					b, results[1] = books.ApplyRefund(b, "r", op, 100, "", start)
					o, p, results[2] = books.ApplyPayoutOperation(o, p, op, "", start)
					sub, results[3] = books.ApplySubscriptionOperation(o, sub, op, "", start)
					for _, r := range results {
						facts = append(facts, r.Facts...)
					}
				}
				assert.Equal(t, books.Order{ID: "o"}, b.Order)
				assert.Equal(t, books.Order{ID: "o"}, o)
				assert.Zero(t, b.Charge.Left()+p.Out)
				for _, f := range facts {
					assert.Zero(t, f.Amount)
				}
			}
		}
	}
	t.Logf("%d sequences of outcomes", sequences)
}
