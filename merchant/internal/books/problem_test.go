package books_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// partly is an underpaid charge whose status tells nothing.
func partly(status gateway.TransactionStatus, refunded int64) seen {
	return seen{status: status, paid: 2000, refunded: refunded}
}

func TestAnUnderpaidProblemEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		then func(s *shop)
		want []string
	}{
		"the rest is paid": {func(s *shop) { s.read("c1", seen{status: "paid", paid: 5000}) }, []string{"over underpaid/c1", "paid c1"}},
		"a part of the rest is paid": {
			func(s *shop) { s.read("c1", seen{status: "paid", paid: 3000}) }, []string{"over underpaid/c1", "problem underpaid/c1/3000"},
		},
		"a person accepts it":      {func(s *shop) { s.do("c1", accepted) }, []string{"over underpaid/c1", "paid c1"}},
		"it is refunded in full":   {func(s *shop) { s.read("c1", partly("refunded", 2000)) }, []string{"over underpaid/c1", "refunded c1"}},
		"it is refunded in part":   {func(s *shop) { s.read("c1", partly("partially_refunded", 500)) }, []string{"refunded c1"}},
		"it is charged back":       {func(s *shop) { s.read("c1", partly("chargedback", 0)) }, []string{"over underpaid/c1", "disputed c1"}},
		"another charge is paid":   {func(s *shop) { s.read("c2", seen{status: "paid", paid: 5000}) }, []string{"paid c2", "over underpaid/c1", "paid_again c1"}},
		"another one is underpaid": {func(s *shop) { s.read("c2", partly("paid", 0)) }, []string{"problem underpaid/c2/2000"}},
		"the order is closed": {func(s *shop) {
			s.order.Closed = true
			s.unneeded()
		}, []string{"over underpaid/c1"}},
		"the order was closed": {func(s *shop) {
			s.order.Closed = true
			s.read("c1", partly("paid", 0))
		}, []string{"over underpaid/c1"}},
		"nothing happens": {func(s *shop) { s.read("c1", partly("paid", 0)) }, nil},
	} {
		s := newShop(t)
		s.read("c1", partly("paid", 0))
		s.expect("problem underpaid/c1/2000")
		tc.then(s)
		assert.Equal(t, tc.want, s.log, name)
	}
}

// A problem that holds again is raised again, with another key.
func TestAProblemThatHoldsAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", partly("paid", 0))
	s.read("c1", partly("in_protest", 0))
	s.expect("problem underpaid/c1/2000", "over underpaid/c1", "disputed c1", "problem in_protest/c1/1")
	s.read("c1", partly("paid", 0))
	s.expect("over in_protest/c1", "disputed c1", "problem underpaid/c1/2000/2")
	s.read("c1", partly("med", 0))
	s.read("c1", partly("paid", 0))
	s.expect("over underpaid/c1", "disputed c1", "disputed c1", "problem underpaid/c1/2000/3")
}

func TestAnOverpaidProblemEnds(t *testing.T) {
	t.Parallel()
	over := func(status gateway.TransactionStatus, refunded int64) seen {
		return seen{status: status, paid: 7500, refunded: refunded}
	}
	s := newShop(t)
	s.read("c1", over("paid", 0))
	s.read("c1", over("partially_refunded", 2499))
	s.expect("paid c1", "problem overpaid/c1/2500", "refunded c1")
	s.read("c1", over("partially_refunded", 2500))
	s.expect("over overpaid/c1", "refunded c1")
	s.read("c1", over("med", 2500))
	s.read("c1", over("partially_refunded", 2500))
	s.expect("disputed c1", "disputed c1")

	s = newShop(t)
	s.read("c1", over("paid", 0))
	s.read("c1", over("chargedback", 0))
	s.expect("paid c1", "problem overpaid/c1/2500", "over overpaid/c1", "disputed c1")
	s.read("c1", over("paid", 0))
	s.expect("disputed c1", "problem overpaid/c1/2500/2")

	s = newShop(t)
	s.read("c1", over("med", 0)) // withheld when it is first seen
	s.expect("paid c1", "disputed c1")
	s.read("c1", over("paid", 0))
	s.expect("disputed c1", "problem overpaid/c1/2500")
}

// What the buyer is asked to pay is reported in another way now and then: that is no payment.
func TestAnotherInterestIsNoPayment(t *testing.T) {
	t.Parallel()
	b := books.Books{Order: books.Order{ID: "o"}, Charge: books.Charge{ID: "c1", Origin: books.FromOrder, Requested: 5000, Asked: 5000, Currency: gateway.BRL}}
	at := 0
	read := func(amount, paid int64) (said []string) {
		at++
		tx := seen{status: "paid", paid: paid, changed: at}.transaction("t")
		tx.Amount = amount
		var r books.Result
		b, r = books.ApplyTransaction(b, reading(tx, at))
		for _, over := range r.Over {
			said = append(said, "over "+string(over.Kind))
		}
		for _, p := range r.Problems {
			said = append(said, p.Key)
		}
		return said
	}
	b.Charge.Problems = []books.Raised{{Kind: books.IsUnderpaid, Record: "c1", Times: 1, Over: true}, {Kind: books.IsOverpaid, Record: "r1", Times: 1}}
	assert.Empty(t, read(7500, 7500), "interest")
	assert.Empty(t, read(4750, 7500), "what is settled")
	assert.Equal(t, []string{"overpaid/c1/3500"}, read(4750, 8500))
	assert.Empty(t, read(4750, 8500))
	assert.Equal(t, []string{"over overpaid", "overpaid/c1/1000"}, read(7500, 8500))
	assert.Equal(t, []string{"over overpaid"}, read(8500, 8500))
	assert.Equal(t, []string{"overpaid/c1/3500/2"}, read(4750, 8500), "it holds again")
}

func TestAnOverpaidProblemOfAPartEndsWithTheOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "partially_paid", paid: 7500}) // more is expected
	s.read("c2", seen{status: "paid", paid: 5000})
	s.expect("problem underpaid/c1/7500", "problem overpaid/c1/2500", "paid c2", "over underpaid/c1", "over overpaid/c1", "paid_again c1")
}

// The example of the rules: nothing of it may be silent.
func TestADisputeIsWonAfterAnotherChargeHasPaidTheOrder(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{false, true} {
		s := newShop(t)
		s.read("c1", partly("paid", 0))
		s.read("c1", partly("med", 0))
		s.expect("problem underpaid/c1/2000", "over underpaid/c1", "disputed c1")
		if closed {
			s.order.Closed = true
			s.unneeded()
			s.expect()
		} else {
			s.read("c2", seen{status: "paid", paid: 5000})
			s.expect("paid c2") // what is withheld is not there
		}
		s.read("c1", partly("paid", 0))
		s.expect("disputed c1", "paid_again c1")
		assert.Contains(t, keys(s.facts), "paid_again/t-c1/2000/2\n")
		s.read("c1", partly("med", 0))
		s.read("c1", partly("paid", 0))
		s.expect("over paid_again/c1", "disputed c1", "disputed c1", "paid_again c1")
	}
	s := newShop(t)
	s.read("c2", seen{status: "paid", paid: 5000})
	s.read("c1", seen{status: "med", paid: 5000})
	s.expect("paid c2", "disputed c1") // it can't be refunded now
	s.read("c1", seen{status: "paid", paid: 5000})
	s.expect("disputed c1", "paid_again c1")

	s = newShop(t)
	s.read("c2", seen{status: "paid", paid: 5000})
	s.read("c1", seen{status: "med", paid: 5000})
	s.read("c1", seen{status: "refunded", paid: 5000})
	s.expect("paid c2", "disputed c1", "refunded c1", "disputed c1") // it is gone
}

func TestEveryCentThatAnOrderDoesNotNeedCounts(t *testing.T) {
	t.Parallel()
	cent := partly("partially_refunded", 1999)
	s := newShop(t)
	s.read("c1", cent)
	s.read("c2", seen{status: "paid", paid: 5000})
	s.expect("refunded c1", "problem underpaid/c1/2000", "paid c2", "over underpaid/c1", "paid_again c1")

	s = newShop(t)
	s.read("c2", seen{status: "paid", paid: 5000})
	s.read("c1", partly("med", 1999))
	s.read("c1", cent)
	s.expect("paid c2", "refunded c1", "disputed c1", "disputed c1", "paid_again c1")
}

func TestWhatAnOrderDoesNotNeed(t *testing.T) {
	t.Parallel()
	charge := func(id string, change func(*books.Charge)) books.Charge {
		b := books.Books{Charge: books.Charge{ID: id, Origin: books.FromOrder, Requested: 5000, Currency: gateway.BRL}}
		change(&b.Charge)
		b, _ = books.ApplyTransaction(b, reading(partly("paid", 0).transaction("t-"+id), 1))
		return b.Charge
	}
	given := []books.Charge{
		charge("settles", func(*books.Charge) {}),
		charge("underpaid", func(*books.Charge) {}),
		charge("link", func(c *books.Charge) { c.Origin = books.FromLink }),
		charge("subscription", func(c *books.Charge) { c.Origin = books.FromSubscription }),
		charge("check", func(c *books.Charge) { c.CardCheck = true }),
		{ID: "unpaid", Origin: books.FromOrder, State: books.Pending},
	}
	before := given[1].Problems[0]
	charges, result := books.Unneeded(books.Order{ID: "o", SettledBy: "settles"}, given, minute(7))
	assert.Equal(t, before, given[1].Problems[0], "the records that are given do not change")
	assert.Equal(t, books.Result{
		Outcome: books.Changed,
		Facts: []books.Fact{
			{Key: "paid_again/t-underpaid/2000", Kind: books.PaidAgain, Order: "o", Record: "underpaid", At: minute(7), Source: books.FromOutcome, Callback: books.OnPaidAgain},
			{Key: "paid_again/t-link/2000", Kind: books.PaidAgain, Order: "o", Record: "link", At: minute(7), Source: books.FromOutcome, Callback: books.OnPaidAgain},
		},
		Over: []books.Over{{Kind: books.IsUnderpaid, Record: "underpaid"}, {Kind: books.IsUnderpaid, Record: "link"}},
	}, result)
	for _, i := range []int{0, 3, 4, 5} {
		assert.Equal(t, given[i], charges[i])
	}
	for _, o := range []books.Order{{ID: "o"}, {ID: "o", SettledBy: "settles"}} { // wanted still; called again
		_, result = books.Unneeded(o, charges, minute(8))
		assert.Equal(t, books.Result{}, result)
	}
}

// A problem that the caller raised about a fact without a callback ends too.
func TestAPaymentThatWasNotNeededGoesBack(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "paid", paid: 5000})
	s.read("c2", seen{status: "paid", paid: 5000})
	s.read("c2", seen{status: "partially_refunded", paid: 5000, refunded: 4999})
	s.expect("paid c1", "paid_again c2", "refunded c2")
	s.read("c2", seen{status: "refunded", paid: 5000, refunded: 5000})
	s.expect("over paid_again/c2", "refunded c2")
	s.read("c2", seen{status: "refunded", paid: 5000, refunded: 5000})
	s.read("c1", seen{status: "refunded", paid: 5000, refunded: 5000})
	s.expect("refunded c1") // the order needed it

	s = newShop(t)
	s.read("c1", seen{status: "partially_paid", paid: 4000})
	s.do("c1", accepted)
	s.read("c1", seen{status: "paid", paid: 5000})
	s.log = nil
	s.read("c1", seen{status: "refunded", paid: 5000})
	s.expect("over paid_again/c1", "refunded c1")
}

func TestAReadingThatIsUnderstoodAgain(t *testing.T) {
	t.Parallel()
	at := func(s *shop, minute int, v seen) {
		s.do("c1", func(b books.Books) (books.Books, books.Result) {
			return books.ApplyTransaction(b, reading(v.transaction("t-c1"), minute))
		})
	}
	for problem, odd := range map[string]seen{
		"unknown_state/c1/brand_new":             {status: "brand_new"},
		"contradiction/c1/paid/nothing was paid": {status: "paid", changed: 1},
	} {
		kind := problem[:13]
		s := newShop(t)
		read := func(minute int) {
			s.do("c1", func(b books.Books) (books.Books, books.Result) {
				tx := odd.transaction("t-c1")
				tx.Amount = 0
				return books.ApplyTransaction(b, reading(tx, minute))
			})
		}
		read(5)
		read(7)
		s.expect("problem " + problem)
		at(s, 6, seen{status: "pending", changed: 1})
		at(s, 7, seen{status: "pending", changed: 1})
		s.expect() // these were under way before
		at(s, 8, seen{status: "pending", changed: 1})
		s.expect("over " + kind + "/c1")
		at(s, 9, seen{status: "pending", changed: 1})
		s.expect()
		read(10)
		read(9)
		at(s, 10, seen{status: "paid", paid: 5000, changed: 2})
		at(s, 11, seen{status: "pending", changed: 1})
		s.expect("problem "+problem+"/2", "paid c1") // the last one is older than what is booked
		at(s, 12, seen{status: "paid", paid: 5000, changed: 2})
		s.expect("over " + kind + "/c1")
	}

	s := newShop(t)
	at(s, 1, seen{status: "partially_refunded", paid: 5000})
	at(s, 2, seen{status: "partially_refunded", paid: 5000})
	s.expect("paid c1", "problem contradiction/c1/partially_refunded")
	at(s, 3, seen{status: "partially_refunded", paid: 5000, refunded: 1})
	s.expect("over contradiction/c1", "refunded c1")
}

func TestARefundThatIsShownAtLast(t *testing.T) {
	t.Parallel()
	s := paidShop(t, books.Refund{ID: "r1", Operation: books.Sent, Amount: 1000})
	s.outcome("r1", books.Applied, 1000)
	s.at += 24 * 60
	s.read("c1", seen{status: "paid", paid: 5000, changed: 1})
	s.expect("problem lower/refund/r1/")
	s.read("c1", part(1000))
	s.expect("over lower/r1", "refunded r1")

	s = paidShop(t, books.Refund{ID: "r1", Operation: books.Sent, Amount: 1000})
	s.outcome("r1", books.Applied, 1000)
	s.at += 24 * 60
	s.read("c1", seen{status: "in_protest", paid: 5000})
	s.expect("disputed c1", "problem lower/refund/r1/", "problem in_protest/c1/1")
}

// The merchant chooses the IDs of refunds: one may be that of its charge, as the ID of a sale
// by link is that of its transaction, or that of a payout.
func TestARefundWithTheIDOfItsCharge(t *testing.T) {
	t.Parallel()
	b := books.Books{
		Charge:  books.Charge{ID: "x", Origin: books.FromLink, Requested: 5000, Currency: gateway.BRL},
		Refunds: []books.Refund{{ID: "x", Operation: books.Sent, Amount: 1000}},
	}
	var said []string
	keep := func(next books.Books, r books.Result) {
		b = next
		for _, over := range r.Over {
			said = append(said, fmt.Sprintf("over %s/%s", over.Kind, over.Record))
		}
		for _, p := range r.Problems {
			assert.Equal(t, "x", p.Record)
			said = append(said, p.Key)
		}
	}
	paid := seen{status: "paid", paid: 5000, changed: 1}.transaction("t")
	keep(books.ApplyTransaction(b, reading(paid, 1)))
	keep(books.ApplyRefund(b, "x", books.InDoubt, 0, "", minute(2)))
	keep(books.ApplyTransaction(b, reading(paid, 3)))
	keep(books.ApplyRefund(b, "x", books.Applied, 1000, "", minute(4)))
	for at := range 3 {
		keep(books.ApplyTransaction(b, reading(paid, 4+24*60+at)))
	}
	assert.Equal(t, []string{"ambiguous/refund/x/", "over ambiguous/x", "lower/refund/x/"}, said)
	_, p, r := books.ApplyPayoutOperation(books.Order{}, books.Payout{ID: "x", Operation: books.Sent}, books.InDoubt, "", start)
	assert.Equal(t, "ambiguous/payout/x/", r.Problems[0].Key)
	_, _, r = books.ApplyPayoutOperation(books.Order{}, p, books.Applied, "", start)
	assert.Equal(t, []books.Over{{Kind: books.IsAmbiguous, Record: "x", About: books.AboutPayout}}, r.Over, "not the refund's")
}

func TestWhatWasLowerAgreesAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	full := seen{status: "partially_refunded", paid: 5000, refunded: 1000, changed: 2}
	s.read("c1", full)
	lower := seen{status: "paid", paid: 5000, changed: 3}
	s.later("c1", 1, lower)
	s.later("c1", 2, lower)
	s.log = nil
	s.do("c1", func(b books.Books) (books.Books, books.Result) {
		return books.ApplyTransaction(b, reading(full.transaction("t-c1"), 0))
	})
	s.expect() // it was made before
	full.changed = 4
	s.later("c1", 3, full)
	s.expect("over lower/c1")
	lower.changed = 5
	s.later("c1", 4, lower)
	s.later("c1", 5, lower)
	s.expect("problem lower/c1/2026-11-06T12:01:00Z")
}

func TestARequestIsInDoubtTwice(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	operation := func(op books.Operation) {
		s.do("c1", func(b books.Books) (books.Books, books.Result) { return books.ApplyOperation(b, op, "", start) })
	}
	operation(books.InDoubt)
	operation(books.Sent) // again, as a person decided
	operation(books.InDoubt)
	s.expect("problem ambiguous/c1/", "over ambiguous/c1", "problem ambiguous/c1//2")
	s.read("c1", seen{status: "pending"})
	s.expect("over ambiguous/c1") // it was made
	operation(books.Sent)
	operation(books.InDoubt)
	s.expect()
	operation(books.Applied)
	s.expect()

	s = paidShop(t, books.Refund{ID: "r1", Operation: books.Sent, Amount: 1000})
	for _, op := range []books.Operation{books.InDoubt, books.Waiting, books.Sent, books.InDoubt, books.Refused} {
		s.outcome("r1", op, 0)
	}
	s.expect("problem ambiguous/refund/r1/", "over ambiguous/r1", "problem ambiguous/refund/r1//2", "over ambiguous/r1", "refund_rejected r1")

	p := newPayout()
	for _, op := range []books.Operation{books.InDoubt, books.Sent, books.InDoubt} {
		p.outcome(op)
	}
	assert.Equal(t, []string{"problem ambiguous/payout/p1/", "over ambiguous/p1", "problem ambiguous/payout/p1//2"}, p.log)
	p.read(transfer("pending", 1), 1)
	assert.Equal(t, []string{"over ambiguous/p1"}, p.log[3:])

	m := newMember()
	for _, op := range []books.Operation{books.InDoubt, books.Sent, books.InDoubt} {
		var r books.Result
		m.subscription, r = books.ApplySubscriptionOperation(m.order, m.subscription, op, "", start)
		m.keep(r)
	}
	m.expect(t, "problem ambiguous/subscription/m1/", "over ambiguous/m1", "problem ambiguous/subscription/m1//2")
	m.apply(period("active", 0, 0), day(0))
	m.expect(t, "over ambiguous/m1")
}

func TestTransfersThatAreUnderstoodAgain(t *testing.T) {
	t.Parallel()
	p := newPayout()
	p.read(transfer("unknown", 1), 5)
	p.read(transfer("brand_new", 2), 7)
	assert.Equal(t, []string{"problem unknown_state/payout/p1/unknown", "problem unknown_state/payout/p1/brand_new"}, p.log)
	p.read(transfer("pending", 3), 6) // under way before
	assert.Len(t, p.log, 2)
	p.read(transfer("pending", 3), 8)
	assert.Equal(t, []string{"over unknown_state/p1"}, p.log[2:])
	p.read(transfer("unknown", 4), 9)
	assert.Equal(t, []string{"problem unknown_state/payout/p1/unknown/2"}, p.log[3:])

	p = newPayout()
	odd := transfer("pending", 1)
	odd.Amount = 0
	p.read(odd, 1)
	p.read(transfer("pending", 1), 2)
	assert.Equal(t, []string{"problem contradiction/payout/p1/0 is no amount", "over contradiction/p1"}, p.log)

	p = newPayout()
	p.payout.Requested = 0 // adopted
	p.read(odd, 1)
	p.read(transfer("pending", 1), 2)
	assert.Len(t, p.log, 2)

	p = newPayout()
	p.payout.Requested = 3000
	p.read(transfer("pending", 1), 1)
	p.read(transfer("paid", 2), 2)
	assert.Equal(t, []string{"problem contradiction/payout/p1/amount", "payout/p1/paid/1"}, p.log, "it still pays another amount")

	p = newPayout()
	p.read(transfer("paid", 2), 1)
	p.read(transfer("processing", 1), 2)
	p.read(transfer("brand_new", 3), 3)
	p.read(transfer("processing", 1), 4) // older than what is booked
	p.read(transfer("processing", 1), 2+24*60)
	assert.Equal(t, []string{"payout/p1/paid/1", "problem unknown_state/payout/p1/brand_new", "problem lower/payout/p1/2026-11-02T12:02:00Z"}, p.log)
	p.read(transfer("paid", 2), 3+24*60)
	assert.Equal(t, []string{"over lower/p1", "over unknown_state/p1"}, p.log[3:])
}

func TestASubscriptionThatIsUnderstoodAgain(t *testing.T) {
	t.Parallel()
	m := newMember()
	m.apply(period("active", 0, 1), day(1))
	m.apply(period("paused", 0, 2), day(3))
	m.expect(t, "problem unknown_state/subscription/m1/paused")
	m.apply(period("past_due", 0, 3), day(2)) // under way before
	m.apply(period("active", 0, 2), day(4))   // older
	m.expect(t, "past_due ")
	m.apply(period("active", 0, 4), day(5))
	m.expect(t, "over unknown_state/m1")
	m.apply(period("paused", 0, 5), day(6))
	m.expect(t, "problem unknown_state/subscription/m1/paused/2")
}

// What was remembered by a record that another process stored is not changed in place.
func TestTheProblemsOfTheRecordsThatAreGivenDoNotChange(t *testing.T) {
	t.Parallel()
	raised := func(kind books.ProblemKind, record string) []books.Raised {
		about := map[string]books.About{"r": books.AboutRefund, "p": books.AboutPayout, "s": books.AboutSubscription}[record]
		return []books.Raised{{Kind: kind, Record: record, About: about, Times: 1, At: start}}
	}
	for _, record := range []string{"c", "r"} {
		b := books.Books{Charge: books.Charge{ID: "c", Operation: books.InDoubt, Problems: raised(books.IsAmbiguous, record)}, Refunds: []books.Refund{{ID: "r", Operation: books.InDoubt}}}
		after, _ := books.ApplyOperation(b, books.Applied, "", start)
		next, _ := books.ApplyRefund(after, "r", books.Applied, 0, "", start)
		assert.Equal(t, raised(books.IsAmbiguous, record), b.Charge.Problems)
		assert.True(t, next.Charge.Problems[0].Over)
	}
	p := books.Payout{ID: "p", Operation: books.InDoubt, Problems: raised(books.IsAmbiguous, "p")}
	_, after, _ := books.ApplyPayoutOperation(books.Order{}, p, books.Applied, "", start)
	assert.True(t, after.Problems[0].Over)
	assert.Equal(t, raised(books.IsAmbiguous, "p"), p.Problems)
	s := books.Subscription{ID: "s", Operation: books.InDoubt, Problems: raised(books.IsAmbiguous, "s")}
	next, _ := books.ApplySubscriptionOperation(books.Order{}, s, books.Applied, "", start)
	assert.True(t, next.Problems[0].Over)
	assert.Equal(t, raised(books.IsAmbiguous, "s"), s.Problems)
	assert.Equal(t, []books.Raised{{Kind: books.IsAmbiguous, Record: "s", About: books.AboutSubscription, Times: 1, Over: true, At: start}}, next.Problems)
	assert.Equal(t, time.Duration(0), next.Problems[0].At.Sub(start))
}
