package books_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// shop is an order of 5000 with charges, and what was reported about it.
type shop struct {
	t       *testing.T
	order   books.Order
	charges map[string]*books.Charge
	refunds map[string][]books.Refund // by charge
	at      int
	log     []string // callbacks and problems
	facts   []books.Fact
	problems
}

func newShop(t *testing.T) *shop {
	t.Helper()
	return &shop{t: t, order: books.Order{ID: "order/A17"}, charges: map[string]*books.Charge{}, refunds: map[string][]books.Refund{}}
}

// charge returns the charge, and makes it if it is new.
func (s *shop) charge(id string) *books.Charge {
	if s.charges[id] == nil {
		s.charges[id] = &books.Charge{ID: id, Origin: books.FromOrder, Requested: 5000, Currency: gateway.BRL, State: books.Unknown, Operation: books.Sent}
	}
	return s.charges[id]
}

// do runs a function on the books of a charge and stores what it returns.
func (s *shop) do(id string, f func(books.Books) (books.Books, books.Result)) books.Outcome {
	s.t.Helper()
	b, result := f(books.Books{Order: s.order, Charge: *s.charge(id), Refunds: s.refunds[id]})
	settles := s.order.SettledBy != b.Order.SettledBy
	s.order, *s.charge(id), s.refunds[id] = b.Order, b.Charge, b.Refunds
	s.store(result)
	if settles {
		s.unneeded()
	}
	assert.Equal(s.t, sums(s.facts, s.order.Currency), money(s.order))
	s.check()
	return result.Outcome
}

// check checks what holds of all charges after each change.
func (s *shop) check() {
	s.t.Helper()
	var raised []books.Raised
	for _, c := range s.charges {
		require.NoError(s.t, s.ofCharge(&s.order, c))
		raised = append(raised, c.Problems...)
		if s.order.SettledBy == "" || s.order.SettledBy == c.ID || c.Origin != books.FromOrder || c.Left() <= 0 {
			continue
		}
		require.NoError(s.t, reportedAgain(s.facts, c))
	}
	assert.NoError(s.t, s.remembered(raised))
}

// reportedAgain returns an error unless the facts say that what is there of the charge is not
// needed, once and after the last dispute that withheld it.
func reportedAgain(facts []books.Fact, c *books.Charge) error {
	reported := 0
	total := fmt.Sprintf("paid_again/%s/%d", c.TransactionID, c.Paid)
	for _, f := range facts {
		switch {
		case f.Kind == books.EntryDisputed && f.Record == c.ID && f.Amount < 0:
			reported = 0
		case f.Key == total || strings.HasPrefix(f.Key, total+"/"):
			reported++
		}
	}
	if reported != 1 {
		return fmt.Errorf("what the order does not need of %s was reported %d times: %s", c.ID, reported, keys(facts))
	}
	return nil
}

// unneeded does what a caller does once the order wants no more money.
func (s *shop) unneeded() {
	s.t.Helper()
	ids := slices.Sorted(maps.Keys(s.charges))
	var charges []books.Charge
	for _, id := range ids {
		charges = append(charges, *s.charges[id])
	}
	charges, result := books.Unneeded(s.order, charges, minute(s.at))
	for i, id := range ids {
		*s.charges[id] = charges[i]
	}
	s.store(result)
	_, again := books.Unneeded(s.order, charges, minute(s.at))
	assert.Equal(s.t, books.Result{}, again, "twice")
}

// store stores the facts and problems of a result.
func (s *shop) store(result books.Result) {
	s.t.Helper()
	for _, over := range result.Over {
		s.log = append(s.log, fmt.Sprintf("over %s/%s", over.Kind, over.Record))
	}
	require.NoError(s.t, s.keep(result))
	for _, fact := range result.Facts {
		if fact.Callback != books.None {
			s.log = append(s.log, string(fact.Callback)+" "+fact.Record)
		}
	}
	for _, p := range result.Problems {
		s.log = append(s.log, "problem "+p.Key)
	}
	assert.False(s.t, silent(result))
	s.facts = append(s.facts, result.Facts...)
}

// read applies a reading of a charge, a minute after the last.
func (s *shop) read(id string, v seen) books.Outcome {
	s.t.Helper()
	s.at++
	if v.changed == 0 {
		v.changed = s.at
	}
	return s.do(id, func(b books.Books) (books.Books, books.Result) {
		return books.ApplyTransaction(b, reading(v.transaction("t-"+id), s.at))
	})
}

// later is read after some days, without a change of updated_at.
func (s *shop) later(id string, days int, v seen) books.Outcome {
	s.t.Helper()
	return s.do(id, func(b books.Books) (books.Books, books.Result) {
		return books.ApplyTransaction(b, reading(v.transaction("t-"+id), s.at+days*24*60))
	})
}

// expect checks what was reported since the last call.
func (s *shop) expect(reported ...string) {
	s.t.Helper()
	assert.Equal(s.t, reported, s.log)
	s.log = nil
}

// keys lists the keys of facts and their amounts.
func keys(facts []books.Fact) string {
	var text strings.Builder
	for _, f := range facts {
		text.WriteString(f.Key)
		if f.Amount != 0 {
			text.WriteString(" " + gateway.FormatAmount(f.Amount, f.Currency))
		}
		text.WriteString("\n")
	}
	return text.String()
}

func TestAnOrderIsPaidRefundedInPartAndChargedBack(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	assert.Equal(t, books.Changed, s.read("c1", seen{status: "pending"}))
	assert.Equal(t, books.Pending, s.charge("c1").State)
	s.expect()
	s.read("c1", seen{status: "captured", paid: 5000, fee: 50})
	assert.Equal(t, books.Paid, s.charge("c1").State)
	s.expect("paid c1")
	assert.Equal(t, books.Unchanged, s.read("c1", seen{status: "captured", paid: 5000, fee: 60, changed: 2}), "the fee is booked once")
	s.read("c1", seen{status: "partially_refunded", paid: 5000, refunded: 1000, fee: 50})
	assert.Equal(t, books.Paid, s.charge("c1").State, "partly refunded is no state")
	s.expect("refunded c1")
	assert.Equal(t, books.Stale, s.read("c1", seen{status: "captured", paid: 5000, fee: 50, changed: 2}), "a late webhook")
	assert.Equal(t, int64(4000-50), s.order.Net())
	s.read("c1", seen{status: "chargedback", paid: 5000, refunded: 1000, fee: 50})
	assert.Equal(t, books.Disputed, s.charge("c1").State)
	s.expect("disputed c1")
	assert.Zero(t, s.order.Left())
	assert.Zero(t, s.charge("c1").Left())
	assert.Equal(t, int64(3), (&books.Charge{Paid: 10, Refunded: 5, Disputed: 2}).Left())
	assert.Equal(t, int64(-50), s.order.Net(), "the gateway keeps the fee")
	assert.Equal(t, `paid/t-c1/5000 BRL 50.00
fee/t-c1 BRL -0.50
settled/order/A17
refunded/t-c1/1000 BRL -10.00
returned/t-c1/1000
disputed/t-c1/1/4000 BRL -40.00
`, keys(s.facts))
}

func TestIdsIgnoreCase(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.charge("c1").TransactionID = "T-C1"
	s.read("c1", seen{status: "paid", paid: 5000})
	assert.Equal(t, "T-C1", s.charge("c1").TransactionID)
	assert.Contains(t, keys(s.facts), "paid/T-C1/5000 ", "one spelling, so that the key is unique")
}

func TestTheSecondOfTwoPixCodesIsPaidAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "pending"})
	s.read("c2", seen{status: "pending"})
	s.read("c2", seen{status: "paid", paid: 5000})
	s.read("c1", seen{status: "paid", paid: 5000})
	s.expect("paid c2", "paid_again c1")
	assert.Equal(t, "c2", s.order.SettledBy, "the first one that was booked")
	assert.Equal(t, int64(10000), s.order.Paid)
	s.read("c1", seen{status: "refunded", paid: 5000, refunded: 5000})
	assert.Equal(t, int64(5000), s.order.Left(), "the order is still paid")
	assert.Equal(t, books.Refunded, s.charge("c1").State)
}

// A second payment was reported, and disputed before it was given back. Then it can't be
// given back, so it is reported again when the dispute is won.
func TestASecondPaymentIsReportedAgainAfterADispute(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c2", seen{status: "paid", paid: 5000})
	s.read("c1", seen{status: "paid", paid: 5000})
	s.expect("paid c2", "paid_again c1")
	s.read("c1", seen{status: "med", paid: 5000})
	s.expect("over paid_again/c1", "disputed c1")
	s.read("c1", seen{status: "in_protest", paid: 5000})
	s.expect("problem in_protest/c1/1")
	s.read("c1", seen{status: "paid", paid: 5000})
	s.expect("over in_protest/c1", "disputed c1", "paid_again c1")
	s.read("c1", seen{status: "captured", paid: 5000})
	s.expect()
	s.unneeded()
	s.expect()
	s.read("c1", seen{status: "med", paid: 5000})
	s.read("c1", seen{status: "paid", paid: 6000}) // more at once
	s.expect("over paid_again/c1", "disputed c1", "disputed c1", "paid_again c1")
	assert.Contains(t, keys(s.facts), "paid_again/t-c1/5000\n")
	assert.Contains(t, keys(s.facts), "paid_again/t-c1/5000/2\n")
	assert.Contains(t, keys(s.facts), "paid_again/t-c1/6000/4\n")
	s.read("c1", seen{status: "med", paid: 6000})
	s.read("c1", seen{status: "refunded", paid: 6000, refunded: 6000})
	s.expect("over paid_again/c1", "disputed c1", "over paid_again/c1", "refunded c1", "disputed c1")

	s = newShop(t)
	s.read("c2", seen{status: "paid", paid: 5000})
	s.read("c2", seen{status: "med", paid: 5000})
	s.expect("paid c2", "disputed c2") // it was needed
}

func TestAPartOfASecondPaymentIsNotLost(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "paid", paid: 5000})
	s.read("c2", seen{status: "partially_paid", paid: 2000})
	s.read("c2", seen{status: "paid", paid: 5000})
	s.expect("paid c1", "paid_again c2", "paid_again c2")
	assert.Contains(t, keys(s.facts), "paid_again/t-c2/2000\n")
	assert.Contains(t, keys(s.facts), "paid_again/t-c2/5000\n")
}

func TestAClosedOrderWantsNoMoney(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "pending"})
	s.order.Closed = true
	s.read("c1", seen{status: "paid", paid: 5000})
	s.expect("paid_again c1")
	assert.Empty(t, s.order.SettledBy)
	assert.Equal(t, int64(5000), s.order.Paid)
}

func TestOneTransactionThatIsPaidTwiceIsAProblem(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "paid", paid: 5000})
	s.read("c1", seen{status: "paid", paid: 10000})
	s.expect("paid c1", "problem overpaid/c1/5000") // to refund the charge in full would return both
	assert.Equal(t, int64(10000), s.order.Paid)
}

func TestTheRestOfAPaymentThatWasAcceptedIsPaidAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "partially_paid", paid: 4000})
	s.do("c1", accepted)
	s.log = nil
	s.read("c1", seen{status: "paid", paid: 5000})
	s.expect("problem paid_again/c1/5000") // not too much for the charge, but the order was paid
}

// What the buyer has paid too much: more than the order wants and the interest of the card.
func TestWhatWasPaidTooMuch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		charge books.Charge
		want   int64
	}{
		"nothing is paid":                    {books.Charge{Requested: 1000}, 0},
		"as requested":                       {books.Charge{Requested: 1000, Asked: 1000, Amount: 1000, Paid: 1000}, 0},
		"too little":                         {books.Charge{Requested: 1000, Asked: 1000, Amount: 1000, Paid: 400}, 0},
		"too much":                           {books.Charge{Requested: 1000, Asked: 1000, Amount: 1000, Paid: 1500}, 500},
		"a cent":                             {books.Charge{Requested: 1000, Asked: 1000, Amount: 1000, Paid: 1001}, 1},
		"with interest":                      {books.Charge{Requested: 1000, Asked: 1000, Amount: 1100, Paid: 1100}, 0},
		"too much, with interest":            {books.Charge{Requested: 1000, Asked: 1000, Amount: 1100, Paid: 1150}, 50},
		"a cheaper cart":                     {books.Charge{Requested: 1000, Asked: 1500, Amount: 1500, Paid: 1500}, 500},
		"a cheaper cart, with interest":      {books.Charge{Requested: 1000, Asked: 1500, Amount: 1600, Paid: 1600}, 500},
		"a dearer cart":                      {books.Charge{Requested: 2000, Asked: 1500, Amount: 1500, Paid: 2000}, 0},
		"a dearer cart, with interest":       {books.Charge{Requested: 1550, Asked: 1500, Amount: 1600, Paid: 1600}, 0},
		"what is settled":                    {books.Charge{Requested: 1000, Asked: 1000, Amount: 950, Paid: 1000}, 0},
		"what is settled, too much":          {books.Charge{Requested: 1000, Asked: 1000, Amount: 950, Paid: 1500}, 500},
		"an old row":                         {books.Charge{Requested: 1000, Amount: 1000, Paid: 1500}, 500},
		"an old row, with interest":          {books.Charge{Requested: 1000, Amount: 1100, Paid: 1100}, 0},
		"in another currency":                {books.Charge{Requested: 1000, Asked: 1000, Amount: 1000, Paid: 1500, Foreign: true}, 0},
		"refunded":                           {books.Charge{Requested: 1000, Asked: 1000, Amount: 1000, Paid: 1500, Refunded: 700}, 500},
		"the check of a card":                {books.Charge{Requested: 10, Asked: 10, Amount: 10, Paid: 100, CardCheck: true}, 0},
		"the largest amount":                 {books.Charge{Requested: 1, Asked: 1, Amount: 1, Paid: spec.MaxSafeAmount}, spec.MaxSafeAmount - 1},
		"accepted, and nothing is requested": {books.Charge{Requested: 0, Paid: 100, Accepted: true}, 100},
	} {
		assert.Equal(t, tc.want, tc.charge.Excess(), name)
	}
}

func TestAnOverpaidChargeNeedsAPerson(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.charge("c1").Asked = 5000
	s.read("c1", seen{status: "paid", paid: 7500})
	s.expect("paid c1", "problem overpaid/c1/2500")
	s.read("c1", seen{status: "captured", paid: 7500})
	s.expect() // nothing more was paid
	s.read("c1", seen{status: "captured", paid: 8000})
	s.expect("over overpaid/c1", "problem overpaid/c1/3000")

	s = newShop(t)
	s.charge("c1").Asked, s.charge("c1").Requested = 5000, 3000 // the cart became cheaper
	s.read("c1", seen{status: "pending"})
	s.read("c1", seen{status: "paid", paid: 5000})
	s.expect("paid c1", "problem overpaid/c1/2000")
	assert.Equal(t, books.Paid, s.charge("c1").State)

	s = newShop(t)
	tx := seen{status: "paid", paid: 5600}.transaction("t-c1")
	tx.Amount = 5500
	var result books.Result
	s.do("c1", func(b books.Books) (books.Books, books.Result) {
		b, result = books.ApplyTransaction(b, reading(tx, 1))
		return b, result
	})
	s.expect("paid c1", "problem overpaid/c1/100")
	assert.Equal(t, "charge c1: 5600 was paid, 5000 requested, 500 is interest, so 100 is too much", result.Problems[0].Text)

	s = newShop(t)
	s.charge("c1").Origin = books.FromSubscription
	s.read("c1", seen{status: "paid", paid: 7500})
	s.expect("problem overpaid/c1/2500")
}

// All of a payment that the order did not need is too much, which PaidAgain says.
func TestASecondPaymentIsNotOverpaidToo(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "paid", paid: 5000})
	s.read("c2", seen{status: "paid", paid: 7500})
	s.expect("paid c1", "paid_again c2")
}

func TestALateVoucherIsPaidAfterItExpired(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "expired"})
	assert.Equal(t, books.Failed, s.charge("c1").State)
	assert.Equal(t, "expired", s.charge("c1").Reason)
	s.expect("unpaid c1")
	s.read("c1", seen{status: "paid", paid: 5000})
	s.expect("paid c1")
	assert.True(t, s.charge("c1").Late)
	assert.Empty(t, s.charge("c1").Reason)
	s.read("c1", seen{status: "paid", paid: 5001})
	assert.True(t, s.charge("c1").Late)
}

func TestTheSecondCodeOfAPaidOrderExpiresQuietly(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "pending"})
	s.read("c2", seen{status: "paid", paid: 5000})
	s.read("c1", seen{status: "expired"})
	s.expect("paid c2") // a callback Unpaid could cancel the order
	assert.Contains(t, keys(s.facts), "unpaid/c1\n")
}

func TestARefusedCardSaysWhy(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	tx := seen{status: "refused"}.transaction("t")
	tx.Informations = []gateway.Information{{Key: "refusal_reason", Value: "insufficient_funds"}}
	s.do("c1", func(b books.Books) (books.Books, books.Result) { return books.ApplyTransaction(b, reading(tx, 1)) })
	s.expect("unpaid c1")
	assert.Equal(t, "insufficient_funds", s.charge("c1").Reason)
}

// accepted is what a person decides about a charge.
func accepted(b books.Books) (books.Books, books.Result) { return books.Accept(b, start) }

func TestAnUnderpaidChargeNeedsAPerson(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "pending"})
	assert.Equal(t, books.Unchanged, s.do("c1", accepted), "nothing to accept")
	s.read("c1", seen{status: "partially_paid", paid: 4900, fee: 50})
	assert.Equal(t, books.Underpaid, s.charge("c1").State)
	s.expect("problem underpaid/c1/4900")
	assert.Equal(t, int64(4900), s.order.Net(), "the fee of a part may change")
	assert.Equal(t, books.Changed, s.do("c1", accepted))
	assert.Equal(t, books.Paid, s.charge("c1").State)
	s.expect("over underpaid/c1", "paid c1")
}

func TestAPersonSettlesAnOrderOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "partially_paid", paid: 4900})
	assert.Equal(t, books.Changed, s.do("c1", accepted))
	assert.Equal(t, books.FromPerson, s.facts[len(s.facts)-1].Source)
	s = newShop(t)
	s.read("c1", seen{status: "paid", paid: 5000})
	s.read("c1", seen{status: "partially_paid", paid: 5000})
	assert.Equal(t, books.Underpaid, s.charge("c1").State)
	s.do("c1", accepted)
	s.expect("paid c1") // it settled the order before

	s = newShop(t)
	s.read("c1", seen{status: "partially_paid", paid: 4900})
	s.order.Closed = true
	s.unneeded()
	s.log = nil
	assert.Equal(t, books.Changed, s.do("c1", accepted), "it is kept")
	assert.Equal(t, books.Paid, s.charge("c1").State)
	assert.Empty(t, s.order.SettledBy)
	s.expect()
}

func TestAReadingWhoseTimeIsNotKnown(t *testing.T) {
	t.Parallel()
	b, _ := books.ApplyTransaction(books.Books{Charge: books.Charge{ID: "c1"}},
		books.Reading[gateway.Transaction]{Resource: seen{status: "pending"}.transaction("t")})
	assert.Equal(t, books.Pending, b.Charge.State)
}

func TestWhatAReadingChangesIsSaid(t *testing.T) {
	t.Parallel()
	here := time.FixedZone("here", 3600)
	base := gateway.Transaction{ID: "t", Status: "paid", Amount: 5000, PaidAmount: 5000, PaidAt: gateway.TimestampOf(start)}
	for name, change := range map[string]func(tx *gateway.Transaction){
		"status":  func(tx *gateway.Transaction) { tx.Status = "captured" },
		"amount":  func(tx *gateway.Transaction) { tx.Amount = 5100 },
		"paid_at": func(tx *gateway.Transaction) { tx.PaidAt = gateway.TimestampOf(minute(1)) },
		"":        func(tx *gateway.Transaction) { tx.PaidAt = gateway.TimestampOf(start.In(here)) },
	} {
		s := newShop(t)
		read := func(tx gateway.Transaction, at int) books.Outcome {
			tx.UpdatedAt = gateway.TimestampOf(minute(at))
			return s.do("c1", func(b books.Books) (books.Books, books.Result) { return books.ApplyTransaction(b, reading(&tx, at)) })
		}
		read(base, 1)
		assert.Equal(t, books.Unchanged, read(base, 2))
		next := base
		change(&next)
		assert.Equal(t, name != "", read(next, 3) == books.Changed, name)
	}
}

func TestTheRestOfAPartialPaymentPaysTheOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "partially_paid", paid: 2000})
	s.read("c1", seen{status: "paid", paid: 5000})
	s.expect("problem underpaid/c1/2000", "over underpaid/c1", "paid c1")
	assert.Contains(t, keys(s.facts), "paid/t-c1/5000 BRL 30.00\n")
}

func TestAPartThatSufficesIsStillAPart(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "partially_paid", paid: 5000}) // of an amount with interest
	assert.Equal(t, books.Underpaid, s.charge("c1").State)
	s.read("c1", seen{status: "paid", paid: 5000})
	s.expect("problem underpaid/c1/5000", "over underpaid/c1", "paid c1")
}

func TestAPaymentIsAcceptedThatTheOrderDoesNotNeedAnyMore(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "partially_paid", paid: 2000})
	s.read("c2", seen{status: "paid", paid: 5000})
	s.do("c1", accepted)
	s.expect("problem underpaid/c1/2000", "paid c2", "over underpaid/c1", "paid_again c1")
}

func TestAnotherCurrencyDoesNotPayTheOrder(t *testing.T) {
	t.Parallel()
	for _, currency := range []gateway.Currency{"", gateway.BRL} {
		s := newShop(t)
		s.order.Currency = currency
		s.read("c1", seen{status: "paid", paid: 5000, fee: 50, currency: gateway.USD})
		assert.Equal(t, books.Underpaid, s.charge("c1").State)
		assert.Equal(t, gateway.BRL, s.order.Currency, "it is what was asked for")
		s.expect("problem currency/c1/paid/t-c1/5000", "problem currency/c1/fee/t-c1", "problem underpaid/c1/5000")
		s.read("c1", seen{status: "med", paid: 5000, refunded: 1000, fee: 50, currency: gateway.USD})
		s.expect("over underpaid/c1", "refunded c1", "disputed c1", "problem currency/c1/refunded/t-c1/1000", "problem currency/c1/disputed/t-c1/1/4000")
		assert.Zero(t, money(s.order))
		assert.Equal(t, int64(5000), sums(s.facts, gateway.USD).Paid, "but it is in the books")
	}

	s := newShop(t)
	s.read("c1", seen{status: "partially_paid", paid: 1000})
	s.read("c2", seen{status: "paid", paid: 5000, currency: gateway.USD})
	assert.Equal(t, int64(1000), s.order.Paid, "sums are in one currency")
	s.expect("problem underpaid/c1/1000", "problem currency/c2/paid/t-c2/5000", "problem underpaid/c2/5000")
	s.read("c1", seen{status: "paid", paid: 5000, currency: gateway.USD})
	s.expect("problem contradiction/c1/paid/its currency is USD, but BRL was paid before")
	assert.Equal(t, int64(1000), s.order.Paid)

	s = newShop(t)
	s.read("c1", seen{status: "partially_paid", paid: 1})
	s.read("c1", seen{status: "paid", paid: 5000, currency: gateway.USD})
	assert.Equal(t, int64(1), s.order.Paid)
}

// What was asked for in another currency than the order's pays the order, but is not in
// its sums.
func TestACurrencyThatTheOrderDoesNotHave(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.order.Currency = gateway.BRL // by an earlier charge, or a payout
	s.charge("c1").Currency = gateway.USD
	s.read("c1", seen{status: "paid", paid: 5000, currency: gateway.USD})
	s.expect("paid c1", "problem currency/c1/paid/t-c1/5000")
	assert.False(t, s.charge("c1").Foreign)
	assert.Zero(t, money(s.order))
}

func TestADisputeIsWonOrLost(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "paid", paid: 5000})
	s.read("c1", seen{status: "med", paid: 5000})
	assert.Equal(t, int64(5000), s.order.Disputed)
	s.read("c1", seen{status: "in_protest", paid: 5000})
	assert.Equal(t, int64(5000), s.order.Disputed, "contesting it does not return the money")
	s.expect("paid c1", "disputed c1", "problem in_protest/c1/1")
	assert.Equal(t, books.Stale, s.read("c1", seen{status: "paid", paid: 5000, changed: 1}), "a webhook from before the dispute")
	s.read("c1", seen{status: "paid", paid: 5000})
	assert.Zero(t, s.order.Disputed)
	assert.Equal(t, books.Paid, s.charge("c1").State)
	s.read("c1", seen{status: "med", paid: 5000})
	s.read("c1", seen{status: "pre_chargedback", paid: 5000})
	s.read("c1", seen{status: "chargedback", paid: 5000})
	s.expect("over in_protest/c1", "disputed c1", "disputed c1")
	assert.Equal(t, int64(0), s.order.Left())
	assert.Contains(t, keys(s.facts), "disputed/t-c1/2/0 BRL 50.00\ndisputed/t-c1/3/5000 BRL -50.00\n")
}

func TestAReadingThatStaysLowerForADayIsAProblem(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "partially_refunded", paid: 5000, refunded: 1000})
	s.expect("paid c1", "refunded c1")
	returned := seen{status: "paid", paid: 5000} // the buyer's bank returned the refund
	s.read("c1", returned)
	returned.changed = s.at
	s.later("c1", 0, returned)
	s.expect()
	s.later("c1", 1, returned)
	s.expect("problem lower/c1/2026-11-02T12:02:00Z")
	assert.Equal(t, books.Stale, s.later("c1", 2, returned), "raised once")
	assert.Equal(t, int64(1000), s.order.Refunded, "nothing is unbooked")
	s.later("c1", 3, seen{status: "partially_refunded", paid: 5000, refunded: 1000, changed: 3})
	s.later("c1", 4, returned)
	s.expect("over lower/c1") // a day begins again
}

func TestAPaidTransactionThatIsReadAsUnpaidIsAProblem(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "paid", paid: 5000})
	assert.Equal(t, books.Stale, s.read("c1", seen{status: "canceled"}))
	s.later("c1", 2, seen{status: "canceled", changed: 2})
	s.expect("paid c1", "problem lower/c1/2026-11-02T12:02:00Z")
	assert.Equal(t, books.Paid, s.charge("c1").State)
}

func TestPaidWithoutAPaidAmount(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "captured"})
	assert.True(t, s.charge("c1").Assumed)
	s.expect("paid c1")
	s.read("c1", seen{status: "captured", paid: 5000})
	assert.False(t, s.charge("c1").Assumed)
	s.read("c1", seen{status: "captured"})
	assert.False(t, s.charge("c1").Assumed, "a report counts more")
	s.expect()

	s = newShop(t)
	s.read("c1", seen{status: "captured"})
	s.read("c1", seen{status: "captured", paid: 4000})
	s.expect("paid c1", "problem lower/c1/2026-11-02T12:02:00Z") // at once: it is no late reading
	s = newShop(t)
	s.read("c1", seen{status: "captured", paid: 4000})
	s.read("c1", seen{status: "captured"})
	s.expect("problem underpaid/c1/4000")
	s.read("c1", seen{status: "refunded"})
	assert.Equal(t, int64(4000), s.order.Refunded)
}

func TestWhatWasPaidWithoutAPaidAmount(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "partially_paid", paid: 1})
	s.read("c1", seen{status: "captured"})
	assert.Equal(t, int64(1), s.order.Paid, "a report counts more")
	assert.False(t, s.charge("c1").Assumed)
	s.read("c1", seen{status: "partially_refunded", refunded: 3000})
	assert.Equal(t, int64(3000), s.order.Paid, "at least what was refunded")
	assert.True(t, s.charge("c1").Assumed)
	s.read("c1", seen{status: "partially_refunded", paid: 3000, refunded: 3000})
	assert.False(t, s.charge("c1").Assumed)

	s = newShop(t)
	s.read("c1", seen{status: "paid", paid: spec.MaxSafeAmount})
	assert.Equal(t, int64(spec.MaxSafeAmount), s.order.Paid)
}

func TestARefundedTransactionIsRefundedInFull(t *testing.T) {
	t.Parallel()
	for _, refunded := range []int64{0, 1000, 5000} {
		s := newShop(t)
		s.read("c1", seen{status: "refunded", paid: 5000, refunded: refunded})
		assert.Equal(t, int64(5000), s.order.Refunded)
		assert.Equal(t, books.Refunded, s.charge("c1").State)
	}
}

// A live gateway reports in amount what it settles.
func TestTheSettledAmountDoesNotCount(t *testing.T) {
	t.Parallel()
	for _, tx := range []*gateway.Transaction{
		{ID: "t", Status: "paid", Amount: 4750, BasePrice: 5000, PaidAmount: 5000},
		{ID: "t", Status: "paid", Amount: 4750, BasePrice: 5000},
		{ID: "t", Status: "paid", Amount: 4750, PaidAmount: 5000},
		{ID: "t", Status: "paid", Amount: 5600, PaidAmount: 5600}, // with interest
	} {
		s := newShop(t)
		s.do("c1", func(b books.Books) (books.Books, books.Result) { return books.ApplyTransaction(b, reading(tx, 1)) })
		s.expect("paid c1")
		assert.Equal(t, max(tx.PaidAmount, 5000), s.order.Paid)
		assert.Equal(t, gateway.BRL, s.charge("c1").Currency)
	}
}

func TestWhatWaitsForAPaymentIsPending(t *testing.T) {
	t.Parallel()
	for _, status := range []gateway.TransactionStatus{"pending", "waiting_payment", "processing", "processed", "authorized", "three_ds_required"} {
		s := newShop(t)
		s.read("c1", seen{status: status})
		assert.Equal(t, books.Pending, s.charge("c1").State, status)
		s.expect()
	}
}

func TestWhatWasMissedIsReportedInOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "in_protest", paid: 5000, refunded: 1000, fee: 50})
	s.expect("paid c1", "refunded c1", "disputed c1", "problem in_protest/c1/1")
	assert.False(t, s.charge("c1").Late)
}

func TestEveryCentCounts(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.read("c1", seen{status: "partially_paid", paid: 4999})
	s.read("c1", seen{status: "paid", paid: 5000, fee: 1})
	s.read("c1", seen{status: "partially_refunded", paid: 5000, refunded: 1, fee: 1})
	s.expect("problem underpaid/c1/4999", "over underpaid/c1", "paid c1", "refunded c1")
	s.read("c1", seen{status: "med", paid: 5000, refunded: 4999, fee: 1})
	s.expect("refunded c1", "disputed c1")
	assert.Equal(t, books.Order{Paid: 5000, Fee: 1, Refunded: 4999, Disputed: 1}, money(s.order))
}

// Equal times of the gateway say nothing, and neither does a time that is missing: then
// the amounts and the order of our readings decide.
func TestOrderOfReadingsOfAChargeWithEqualTimes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first, second seen
		at            int // of the second; the first is in minute 5
		newer         bool
	}{
		"a dispute":                       {seen{status: "paid", paid: 5000}, seen{status: "med", paid: 5000}, 6, true},
		"a dispute before it was won":     {seen{status: "paid", paid: 5000}, seen{status: "med", paid: 5000}, 4, false},
		"a dispute at once":               {seen{status: "paid", paid: 5000}, seen{status: "med", paid: 5000}, 5, false},
		"a won dispute":                   {seen{status: "med", paid: 5000}, seen{status: "paid", paid: 5000}, 6, true},
		"before the dispute":              {seen{status: "med", paid: 5000}, seen{status: "paid", paid: 5000}, 4, false},
		"a won dispute of what is left":   {seen{status: "med", paid: 5000, refunded: 1000}, seen{status: "partially_refunded", paid: 5000, refunded: 1000}, 6, true},
		"a won dispute, then a refund":    {seen{status: "med", paid: 5000}, seen{status: "partially_refunded", paid: 5000, refunded: 1000}, 1, true},
		"a won dispute, then the rest":    {seen{status: "med", paid: 2000}, seen{status: "paid", paid: 5000}, 1, true},
		"a refund, then a dispute":        {seen{status: "med", paid: 5000, refunded: 1000}, seen{status: "paid", paid: 5000}, 9, false},
		"paid less":                       {seen{status: "paid", paid: 5000}, seen{status: "med", paid: 4000}, 9, false},
		"refunded less, but paid more":    {seen{status: "med", paid: 4000, refunded: 1000}, seen{status: "paid", paid: 5000}, 9, false},
		"the same stage, later":           {seen{status: "processing"}, seen{status: "authorized"}, 6, true},
		"the same stage, at once":         {seen{status: "processing"}, seen{status: "authorized"}, 5, false},
		"the same stage, earlier":         {seen{status: "processing"}, seen{status: "authorized"}, 4, false},
		"paid, read before":               {seen{status: "pending"}, seen{status: "paid", paid: 5000}, 1, true},
		"not paid, read later":            {seen{status: "paid", paid: 5000}, seen{status: "expired"}, 9, false},
		"an end, read before":             {seen{status: "pending"}, seen{status: "expired"}, 4, true},
		"an end, read later":              {seen{status: "pending"}, seen{status: "expired"}, 6, true},
		"nothing comes after an end":      {seen{status: "expired"}, seen{status: "pending"}, 6, false},
		"another end, later":              {seen{status: "canceled"}, seen{status: "expired"}, 6, true},
		"a part that becomes the whole":   {seen{status: "partially_paid", paid: 5000}, seen{status: "paid", paid: 5000}, 6, true},
		"the part, read before the whole": {seen{status: "paid", paid: 5000}, seen{status: "partially_paid", paid: 5000}, 4, false},
	} {
		for times, changed := range map[string][2]int{"equal": {3, 3}, "none": {0, 0}, "only the first": {3, 0}, "only the second": {0, 3}} {
			tc.first.changed, tc.second.changed = changed[0], changed[1]
			b := books.Books{Charge: books.Charge{ID: "c1", Origin: books.FromOrder, Requested: 5000, Currency: gateway.BRL}}
			b, _ = books.ApplyTransaction(b, reading(tc.first.transaction("t"), 5))
			b, result := books.ApplyTransaction(b, reading(tc.second.transaction("t"), tc.at))
			assert.Equal(t, tc.newer, b.Charge.Status == tc.second.status, "%s, %s", name, times)
			if tc.newer || tc.second.paid <= tc.first.paid && tc.second.refunded <= tc.first.refunded {
				assert.Equal(t, !tc.newer, result.Outcome == books.Stale, "%s, %s", name, times)
			}
			assert.Equal(t, max(tc.first.paid, tc.second.paid), b.Order.Paid, "%s, %s", name, times)
			assert.Equal(t, max(tc.first.refunded, tc.second.refunded), b.Order.Refunded, "%s, %s", name, times)
			assert.Equal(t, b.Charge.State == books.Disputed, b.Order.Disputed > 0, "%s, %s", name, times)
		}
	}
}

// A gateway that counts seconds, or whose clock has stopped, reports a dispute and that it
// was won with one updated_at.
func TestADisputeIsWonInTheSecondInWhichItBegan(t *testing.T) {
	t.Parallel()
	for _, changed := range []int{0, 1} {
		s := newShop(t)
		for i, status := range []gateway.TransactionStatus{"paid", "med", "in_protest", "paid", "med", "paid"} {
			s.do("c1", func(b books.Books) (books.Books, books.Result) {
				return books.ApplyTransaction(b, reading(seen{status: status, paid: 5000, changed: changed}.transaction("t-c1"), i+1))
			})
			assert.Equal(t, status == "paid", s.order.Disputed == 0, "%d %s", i, status)
		}
		assert.Equal(t, int64(5000), s.order.Left())
	}
}

func TestReadingsThatCannotBeTrueChangeNothing(t *testing.T) {
	t.Parallel()
	for name, tx := range map[string]*gateway.Transaction{
		"paid/nothing was paid":                        {Status: "paid"},
		"partially_paid/nothing was paid":              {Status: "partially_paid", Amount: 5000},
		"refused/5000 was paid and 0 refunded":         {Status: "refused", PaidAmount: 5000},
		"expired/0 was paid and 7 refunded":            {Status: "expired", RefundedAmount: 7},
		"processed/5000 was paid and 0 refunded":       {Status: "processed", PaidAmount: 5000},
		"paid/6000 of 5000 was refunded":               {Status: "paid", PaidAmount: 5000, RefundedAmount: 6000},
		"paid/-1 is no amount":                         {Status: "paid", PaidAmount: -1, Amount: 5000},
		"pending/-2 is no amount":                      {Status: "pending", Amount: -2},
		"paid/-3 is no amount":                         {Status: "paid", PaidAmount: 5000, Fee: &gateway.Fee{EstimatedFee: -3}},
		"paid/9007199254740992 is no amount":           {Status: "paid", PaidAmount: 9007199254740992},
		"chargedback/9223372036854775807 is no amount": {Status: "chargedback", PaidAmount: 5000, BasePrice: 9223372036854775807},
	} {
		s := newShop(t)
		tx.ID = "t"
		for range 2 {
			s.do("c1", func(b books.Books) (books.Books, books.Result) { return books.ApplyTransaction(b, reading(tx, 1)) })
			assert.Equal(t, books.Unknown, s.charge("c1").State, name)
			assert.Empty(t, s.facts, name)
		}
		s.expect("problem contradiction/c1/" + name)
	}
	s := newShop(t)
	before := unreported(*s.charge("c1"))
	s.read("c1", seen{status: "brand_new", paid: 5000})
	s.expect("problem unknown_state/c1/brand_new")
	before.TransactionID = "t-c1"
	assert.Equal(t, before, unreported(*s.charge("c1")))
	s.read("c1", seen{status: "partially_refunded", paid: 5000})
	s.expect("over unknown_state/c1", "paid c1", "problem contradiction/c1/partially_refunded")
	before = unreported(*s.charge("c1"))
	assert.Equal(t, books.Changed, s.do("c1", func(b books.Books) (books.Books, books.Result) {
		return books.ApplyTransaction(b, reading(seen{status: "chargedback", paid: 9000, changed: 99}.transaction("another"), 9))
	}))
	s.expect("problem unmatched/c1/another")
	assert.Equal(t, before, unreported(*s.charge("c1")))
	assert.Equal(t, books.Paid, before.State)
	assert.Equal(t, "t-c1", before.TransactionID)
}

// unreported is a charge without the problems that were reported.
func unreported(c books.Charge) books.Charge {
	c.Reported, c.Problems = nil, nil
	return c
}

func TestWhatBecomesOfTheRequest(t *testing.T) {
	t.Parallel()
	operation := func(op books.Operation) func(books.Books) (books.Books, books.Result) {
		return func(b books.Books) (books.Books, books.Result) { return books.ApplyOperation(b, op, "no stock", start) }
	}
	for _, tc := range []struct {
		op       books.Operation
		state    books.State
		reported []string
	}{
		{books.Waiting, books.New, nil},
		{books.InDoubt, books.Ambiguous, []string{"problem ambiguous/c1/"}},
		{books.Applied, books.Pending, nil},
		{books.Refused, books.Failed, []string{"unpaid c1"}},
		{books.Abandoned, books.Withdrawn, nil},
	} {
		s := newShop(t)
		assert.Equal(t, books.Changed, s.do("c1", operation(tc.op)))
		assert.Equal(t, tc.state, s.charge("c1").State)
		s.expect(tc.reported...)
		for _, f := range s.facts {
			assert.Equal(t, books.FromOutcome, f.Source)
			assert.Equal(t, start, f.At)
		}
		assert.Equal(t, books.Unchanged, s.do("c1", operation(tc.op)), "twice")
		if tc.op == books.Refused {
			assert.Equal(t, "no stock", s.charge("c1").Reason)
		}
		if tc.op != books.Waiting && tc.op != books.InDoubt {
			assert.Equal(t, books.Unchanged, s.do("c1", operation(books.Sent)), "the outcome is final")
		} else {
			s.do("c1", operation(books.Sent))
			assert.Equal(t, books.Unknown, s.charge("c1").State)
		}
		assert.Zero(t, sums(s.facts, gateway.BRL))
		s.log = nil
		s.read("c1", seen{status: "paid", paid: 5000})
		s.expect("paid c1") // the reading counts more
		assert.Equal(t, books.Paid, s.charge("c1").State)
	}
	s := newShop(t)
	s.read("c1", seen{status: "pending"})
	s.do("c1", operation(books.Refused))
	assert.Equal(t, books.Pending, s.charge("c1").State, "the transaction exists")
	assert.Empty(t, s.charge("c1").Reason)
	s.expect()
}

func TestAdoptionBooksWithoutCallbacks(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	tx := seen{status: "partially_refunded", paid: 5000, refunded: 1000}.transaction("t-c1")
	c := books.Seen("c1", books.FromAdoption, tx)
	s.charges["c1"] = &c
	r := reading(tx, 1)
	r.Source = books.FromEarlier
	s.do("c1", func(b books.Books) (books.Books, books.Result) { return books.ApplyTransaction(b, r) })
	s.expect()
	assert.Equal(t, int64(4000), s.order.Left())
	s.read("c1", seen{status: "refunded", paid: 5000, refunded: 5000, changed: 5})
	s.expect("refunded c1")
}

func TestASaleByLinkRequestsWhatItsBuyerIsAskedToPay(t *testing.T) {
	t.Parallel()
	c := books.Seen("l1", books.FromLink, &gateway.Transaction{Amount: 4750, BasePrice: 5000})
	assert.Equal(t, books.Charge{ID: "l1", Origin: books.FromLink, State: books.New, Requested: 5000, Asked: 5000, Currency: gateway.BRL}, c)
	c = books.Seen("l1", books.FromLink, &gateway.Transaction{Amount: 4750, Currency: gateway.MXN})
	assert.Equal(t, int64(4750), c.Requested)
	assert.Equal(t, int64(4750), c.Asked)
	assert.Equal(t, gateway.MXN, c.Currency)
}

func TestWithoutACurrencyItIsBRL(t *testing.T) {
	t.Parallel()
	b, _ := books.ApplyTransaction(books.Books{Order: books.Order{ID: "o"}, Charge: books.Charge{ID: "c"}},
		reading(&gateway.Transaction{ID: "t", Status: "paid", PaidAmount: 5000}, 1))
	assert.Equal(t, gateway.BRL, b.Charge.Currency)
	assert.Equal(t, gateway.BRL, b.Order.Currency)
	assert.Equal(t, "c", b.Order.SettledBy)
}

func TestFactsSayWhenTheyHappened(t *testing.T) {
	t.Parallel()
	tx := seen{status: "partially_refunded", paid: 5000, refunded: 1000, fee: 50, changed: 9}.transaction("t")
	tx.PaidAt = gateway.TimestampOf(minute(3))
	_, result := books.ApplyTransaction(books.Books{Charge: chargeOf(tx)}, reading(tx, 20))
	var times []time.Time
	for _, f := range result.Facts {
		times = append(times, f.At)
		assert.Equal(t, books.FromWebhook, f.Source)
	}
	assert.Equal(t, []time.Time{minute(3), minute(3), minute(9), minute(9), minute(9)}, times)
	tx.UpdatedAt, tx.PaidAt = gateway.Timestamp{}, gateway.Timestamp{}
	_, result = books.ApplyTransaction(books.Books{Charge: chargeOf(tx)}, reading(tx, 20))
	assert.Equal(t, minute(20), result.Facts[0].At, "without times of the gateway")
}

// A gateway that does not say when a transaction changed does not date its refunds: the reading does.
func TestAChangeWithoutATimeIsDatedByItsReading(t *testing.T) {
	t.Parallel()
	for name, updated := range map[string]gateway.Timestamp{"the same": gateway.TimestampOf(minute(2)), "none": {}} {
		s := newShop(t)
		s.read("c1", seen{status: "paid", paid: 5000, changed: 2})
		tx := seen{status: "partially_refunded", paid: 5000, refunded: 1000}.transaction("t-c1")
		tx.UpdatedAt, tx.PaidAt = updated, gateway.Timestamp{}
		b, r := books.ApplyTransaction(books.Books{Order: s.order, Charge: *s.charge("c1")}, reading(tx, 9))
		assert.Equal(t, int64(1000), b.Charge.Refunded, name)
		require.NotEmpty(t, r.Facts, name)
		assert.Equal(t, minute(9), r.Facts[0].At, name)
	}
}
