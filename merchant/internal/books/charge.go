package books

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
)

// charging is one change of a charge.
type charging struct {
	Books
	ledger
	tx    *gateway.Transaction
	shown shown
	was   Charge // before the change
	more  bool   // money was paid that was not booked before
}

// change starts a change of b.
func change(b Books, source Source, at time.Time) *charging {
	b.Refunds, b.Charge.Problems = slices.Clone(b.Refunds), slices.Clone(b.Charge.Problems)
	c := &charging{Books: b, was: b.Charge}
	c.ledger = ledger{
		order: &c.Order, record: b.Charge.ID, raised: &c.Charge.Problems, currency: b.Charge.Currency, source: source, at: at, now: at,
	}
	return c
}

// ApplyTransaction books what a reading of the charge's transaction shows.
func ApplyTransaction(b Books, r Reading[gateway.Transaction]) (Books, Result) {
	tx := r.Resource
	c := change(b, r.Source, r.At)
	c.tx, c.at = tx, lastChange(tx.UpdatedAt, tx.PaidAt, b.Charge.UpdatedAt, r.At)
	if !c.readable() {
		return c.Books, c.Result
	}
	stale := c.book()
	c.report()
	c.attribute()
	c.bookDisputed() // reported after the payment and the refunds
	c.returned()
	if !stale {
		c.overIfLater(IsUnknownState)
		c.overIfLater(IsContradicted)
	}
	switch {
	case !reflect.DeepEqual(visible(c.Charge), visible(b.Charge)):
		c.Outcome = Changed
	case stale && c.Outcome == Unchanged:
		c.Outcome = Stale
	}
	return c.Books, c.Result
}

// ApplyOperation stores what became of the request that creates the charge's
// transaction. A reading of the transaction counts more. reason says why it was
// refused. A final outcome is not replaced.
func ApplyOperation(b Books, op Operation, reason string, at time.Time) (Books, Result) {
	c := change(b, FromOutcome, at)
	if c.Charge.Operation.Ended() || op == c.Charge.Operation {
		return c.Books, c.Result
	}
	c.Charge.Operation, c.Outcome = op, Changed
	if op == Refused && c.Charge.Status == "" {
		c.Charge.Reason = reason
	}
	c.report()
	return c.Books, c.Result
}

// Accept counts what was paid as enough, as a person has decided. It does nothing
// unless the charge is underpaid. If the order was settled meanwhile, [Unneeded] has
// reported the payment.
func Accept(b Books, at time.Time) (Books, Result) {
	c := change(b, FromPerson, at)
	if c.Charge.State != Underpaid {
		return c.Books, c.Result
	}
	c.Charge.Accepted, c.Outcome = true, Changed
	c.report()
	return c.Books, c.Result
}

// Seen returns the charge of a transaction that someone else made, such as a sale by
// link, before its first reading is applied. What its buyer is asked to pay counts as
// requested.
func Seen(id string, origin Origin, tx *gateway.Transaction) Charge {
	amount := cmp.Or(tx.BasePrice, tx.Amount)
	return Charge{ID: id, Origin: origin, Currency: cmp.Or(tx.Currency, gateway.BRL), Requested: amount, Asked: amount, State: New}
}

// visible returns the charge without the times at which it was read, and without what
// changes only together with facts and problems.
func visible(c Charge) Charge {
	c.UpdatedAt, c.ReadAt, c.LowerSince, c.Reported, c.Problems = time.Time{}, time.Time{}, time.Time{}, nil, nil
	c.PaidAt = c.PaidAt.UTC()
	return c
}

// readable reports whether the reading can be booked, and raises a problem if not.
func (c *charging) readable() bool {
	charge, tx := &c.Charge, c.tx
	if charge.TransactionID != "" && !strings.EqualFold(charge.TransactionID, tx.ID) {
		c.problem(IsUnmatched, tx.ID, "charge %s is transaction %s, not %s", charge.ID, charge.TransactionID, tx.ID)
		return false
	}
	charge.TransactionID = cmp.Or(charge.TransactionID, tx.ID)
	c.shown = show(tx)
	if c.shown.stage == 0 {
		c.problem(IsUnknownState, string(tx.Status), "transaction %s has the unknown status %q", tx.ID, tx.Status)
		return false
	}
	contradiction := c.shown.contradiction(tx)
	if contradiction == "" && charge.Paid > 0 && tx.Currency != "" && tx.Currency != charge.Currency {
		contradiction = fmt.Sprintf("its currency is %s, but %s was paid before", tx.Currency, charge.Currency)
	}
	if contradiction != "" {
		c.problem(IsContradicted, string(tx.Status)+"/"+contradiction, "transaction %s, %s: %s", tx.ID, tx.Status, contradiction)
		return false
	}
	return true
}

// shown is what a reading shows of the money of a transaction.
type shown struct {
	stage          stage
	paid, refunded int64
	fee            int64
	assumed        bool // paid_amount is 0 although the transaction was paid
}

// show reads a transaction.
func show(tx *gateway.Transaction) shown {
	s := shown{stage: stageOf(tx.Status)}
	if !s.stage.pays() {
		return s
	}
	s.paid, s.refunded = tx.PaidAmount, tx.RefundedAmount
	if s.paid == 0 && s.stage != paidPartly {
		s.paid, s.assumed = tx.Charged(), true
	}
	if s.stage == refundedFully {
		s.refunded = max(s.refunded, s.paid)
	}
	// The fee of a payment that is not complete may still change.
	if tx.Fee != nil && s.stage != paidPartly {
		s.fee = tx.Fee.EstimatedFee
	}
	return s
}

// contradiction says why the reading can't be booked, or returns "".
func (s *shown) contradiction(tx *gateway.Transaction) string {
	for _, n := range [...]int64{tx.Amount, tx.BasePrice, tx.PaidAmount, tx.RefundedAmount, s.fee} {
		if n < 0 || n > spec.MaxSafeAmount {
			return fmt.Sprintf("%d is no amount", n)
		}
	}
	switch {
	case !s.stage.pays() && tx.PaidAmount+tx.RefundedAmount != 0:
		return fmt.Sprintf("%d was paid and %d refunded", tx.PaidAmount, tx.RefundedAmount)
	case s.stage.pays() && s.paid == 0:
		return "nothing was paid"
	case s.refunded > s.paid:
		return fmt.Sprintf("%d of %d was refunded", s.refunded, s.paid)
	}
	return ""
}

// book moves the charge to what the reading shows and books the differences. It
// reports whether the reading is older than what is booked.
func (c *charging) book() (stale bool) {
	charge, s := &c.Charge, &c.shown
	if s.assumed && charge.Paid > 0 && !charge.Assumed { // a report counts more
		if s.stage == refundedFully {
			s.refunded = max(c.tx.RefundedAmount, charge.Paid)
		}
		s.paid = max(charge.Paid, s.refunded)
	}
	less := s.paid < charge.Paid || s.refunded < charge.Refunded
	follows := c.follows(less)
	stale = !follows && (c.tx.Status != charge.Status || less)
	assumedTooMuch := follows && charge.Assumed && !s.assumed && s.paid < charge.Paid
	if c.judge(stale || less, &charge.ReadAt, &charge.LowerSince) || assumedTooMuch {
		c.problem(IsLower, charge.LowerSince.UTC().Format(time.RFC3339),
			"transaction %s is %s, %d paid, %d refunded; booked are %s, %d and %d",
			c.tx.ID, c.tx.Status, s.paid, s.refunded, charge.Status, charge.Paid, charge.Refunded)
	}
	if s.stage == refundedPartly && s.refunded == 0 {
		c.problem(IsContradicted, string(c.tx.Status), "transaction %s was refunded in part, but its refunded amount is 0", c.tx.ID)
	}
	if follows {
		c.follow()
	}
	c.bookPaid()
	c.bookRefunded()
	return stale
}

// follows reports whether the reading is newer than what gave the charge its status.
func (c *charging) follows(less bool) bool {
	charge, s := &c.Charge, &c.shown
	known := stageOf(charge.Status)
	if s.stage.pays() != known.pays() {
		return s.stage.pays() // what was paid stays paid
	}
	switch o := order(c.tx.UpdatedAt.Time, charge.UpdatedAt); {
	case known == 0, o > 0:
		return true
	case o < 0, less:
		return false
	case s.paid > charge.Paid, s.refunded > charge.Refunded:
		return true
	case (s.stage == ended) != (known == ended):
		return s.stage == ended // nothing comes after an end but a payment
	default:
		return c.now.After(charge.ReadAt)
	}
}

// follow takes over the state of the reading.
func (c *charging) follow() {
	charge, tx := &c.Charge, c.tx
	charge.Status, charge.Reason = tx.Status, ""
	if c.shown.stage == ended {
		charge.Reason = cmp.Or(tx.RefusalReason(), string(tx.Status))
	}
	charge.Amount = cmp.Or(tx.BasePrice, tx.Amount)
	if !tx.UpdatedAt.IsZero() {
		charge.UpdatedAt = tx.UpdatedAt.Time
	}
	if !tx.PaidAt.IsZero() {
		charge.PaidAt = tx.PaidAt.Time
	}
}

// bookPaid books what was paid, and the fee.
func (c *charging) bookPaid() {
	charge, s := &c.Charge, &c.shown
	at := c.at
	if !c.tx.PaidAt.IsZero() {
		c.at = c.tx.PaidAt.Time
	}
	defer func() { c.at = at }()
	if delta := s.paid - charge.Paid; delta > 0 {
		c.more = true
		if currency := cmp.Or(c.tx.Currency, charge.Currency, gateway.BRL); charge.Paid == 0 {
			c.Order.Currency = cmp.Or(c.Order.Currency, charge.Currency) // what was asked for
			charge.Foreign = charge.Currency != "" && currency != charge.Currency
			charge.Currency, c.currency = currency, currency
		}
		charge.Late = slices.Contains(charge.Reported, string(Unpaid))
		charge.Paid = s.paid
		charge.Assumed = s.assumed
		c.entry(EntryPaid, &c.order.Paid, key(EntryPaid, charge.TransactionID, cents(s.paid)), delta, None)
	}
	charge.Assumed = charge.Assumed && (s.assumed || s.paid < charge.Paid)
	if s.fee > 0 && charge.Fee == 0 {
		charge.Fee = s.fee
		c.entry(EntryFee, &c.order.Fee, key(EntryFee, charge.TransactionID), -s.fee, None)
	}
}

// bookRefunded books what went back. Attribute reports it.
func (c *charging) bookRefunded() {
	charge := &c.Charge
	if delta := c.shown.refunded - charge.Refunded; delta > 0 {
		charge.Refunded = c.shown.refunded
		c.entry(EntryRefunded, &c.order.Refunded, key(EntryRefunded, charge.TransactionID, cents(charge.Refunded)), -delta, None)
	}
}

// bookDisputed books what the dispute or chargeback takes: the gateway reports no
// amount, so it is all that is left.
func (c *charging) bookDisputed() {
	charge := &c.Charge
	disputed := int64(0)
	if stageOf(charge.Status).disputed() {
		disputed = charge.Paid - charge.Refunded
	}
	if delta := disputed - charge.Disputed; delta != 0 {
		charge.Disputed = disputed
		charge.Disputes++
		k := key(EntryDisputed, charge.TransactionID, strconv.Itoa(charge.Disputes), cents(disputed))
		c.entry(EntryDisputed, &c.order.Disputed, k, -delta, c.callback(OnDisputed))
	}
	c.hold(stageOf(charge.Status) == disputeContested, IsContested, strconv.Itoa(charge.Disputes), "charge %s: the dispute is contested", charge.ID)
}

// callback returns the callback of a fact; the check of a card has none.
func (c *charging) callback(name Callback) Callback {
	if c.Charge.CardCheck {
		return None
	}
	return name
}

// needed reports whether the order still wants money.
func (o *Order) needed() bool { return o.SettledBy == "" && !o.Closed }

// needs reports whether the order wants the money of a charge, or wanted it.
func (o *Order) needs(charge string) bool { return o.needed() || o.SettledBy == charge }

// report sets the state and reports what it means for the order.
func (c *charging) report() {
	charge := &c.Charge
	charge.State = charge.state()
	c.hold(charge.Operation == InDoubt && charge.Status == "", IsAmbiguous, "", "it is not known whether charge %s was made", charge.ID)
	if charge.CardCheck {
		return
	}
	c.hold(charge.State == Underpaid && c.Order.needed(), IsUnderpaid, cents(charge.Paid), "charge %s: %s of %s requested was paid, in %s",
		charge.ID, cents(charge.Paid), cents(charge.Requested), charge.Currency)
	excess := c.overpaid()
	if charge.Origin == FromSubscription {
		return // reported by ApplySubscription
	}
	switch {
	case charge.inFull() && c.Order.needed():
		c.Order.settle(charge)
		c.fact(Settled, key(Settled, c.Order.ID), OnPaid)
	case c.more && c.Order.needs(charge.ID):
		if c.Order.SettledBy == charge.ID && !excess {
			c.problem(IsPaidAgain, cents(charge.Paid), "charge %s was paid in full before, and is paid %s now", charge.ID, cents(charge.Paid))
		}
	case c.more && charge.State != Disputed && c.was.State != Disputed: // returned reports what was withheld
		c.paidAgain()
	case charge.State == Failed && once(&charge.Reported, string(Unpaid)):
		f := c.fact(Unpaid, key(Unpaid, charge.ID), OnUnpaid)
		if !c.Order.needed() {
			f.Callback = None // the order is paid, or wants no money
		}
	}
	if charge.State == Refunded {
		c.over(IsPaidAgain)
	}
	if gone := charge.State == Refunded || charge.State == Disputed; gone && c.was.State != charge.State && charge.wasPaidAgain() {
		c.ended(IsPaidAgain) // the caller has raised it, if there is no callback
	}
}

// overpaid raises a problem if too much was paid that the order needs, until that went
// back. It reports whether the excess has risen. Of a payment that the order did not need
// all is too much, which [PaidAgain] says.
func (c *charging) overpaid() (risen bool) {
	charge, excess := &c.Charge, c.Charge.Excess()
	risen = c.more && excess > c.was.Excess()
	holds := excess > charge.Refunded && charge.State != Disputed && c.Order.needs(charge.ID)
	if !holds || risen || c.was.State == Disputed || c.wasRaised(IsOverpaid) {
		c.hold(holds, IsOverpaid, cents(excess), "charge %s: %d was paid, %d requested, %d is interest, so %d is too much",
			charge.ID, charge.Paid, charge.Requested, charge.Interest(), excess)
	}
	return risen
}

// paidAgain reports what was paid as not needed by the order, again after each dispute: it
// could not be given back meanwhile.
func (c *charging) paidAgain() {
	k := key(PaidAgain, c.Charge.TransactionID, cents(c.Charge.Paid))
	if n := c.Charge.Disputes; n != 0 {
		k += "/" + strconv.Itoa(n)
	}
	if once(&c.Charge.Reported, k) {
		c.fact(PaidAgain, k, OnPaidAgain)
	}
}

// wasPaidAgain reports whether the charge was reported as not needed.
func (c *Charge) wasPaidAgain() bool {
	prefix := key(PaidAgain, c.TransactionID, "")
	return slices.ContainsFunc(c.Reported, func(k string) bool { return strings.HasPrefix(k, prefix) })
}

// returned reports money that a dispute withheld and that is there again, if the order does
// not need it.
func (c *charging) returned() {
	charge := &c.Charge
	if c.was.State == Disputed && charge.Left() > 0 && !c.Order.needs(charge.ID) && charge.ofOrder() {
		c.paidAgain()
	}
}

// ofOrder reports whether the charge can pay its order.
func (c *Charge) ofOrder() bool { return !c.CardCheck && c.Origin != FromSubscription }

// Unneeded reports what an order does not need of other charges: call it, in the same
// transaction, when a charge has settled the order (a call that returned another
// Order.SettledBy), or when the order is closed. others are the order's other charges,
// which it returns as they must be stored. It may be called again, and with all charges.
//
// What was paid of an order that another charge has settled is [PaidAgain], unless it is
// withheld: [ApplyTransaction] reports it if the dispute is won. Whether the order is
// settled or closed, no one needs to decide about what was underpaid or overpaid.
func Unneeded(o Order, others []Charge, at time.Time) ([]Charge, Result) {
	others = slices.Clone(others)
	var all Result
	for i := range others {
		c := change(Books{Order: o, Charge: others[i]}, FromOutcome, at)
		if o.needs(c.Charge.ID) || !c.Charge.ofOrder() {
			continue
		}
		c.over(IsUnderpaid)
		c.over(IsOverpaid)
		if o.SettledBy != "" && c.Charge.Left() > 0 {
			c.paidAgain()
		}
		others[i] = c.Charge
		all.Outcome = max(all.Outcome, c.Outcome)
		all.Facts, all.Over = append(all.Facts, c.Facts...), append(all.Over, c.Over...)
	}
	return others, all
}

// inFull reports whether what was requested was paid.
func (c *Charge) inFull() bool {
	return c.Accepted || stageOf(c.Status) > paidPartly && c.Paid >= c.Requested && !c.Foreign
}

// state returns the state of the charge: that of the last reading or, without one,
// that of the operation.
func (c *Charge) state() State {
	stage := stageOf(c.Status)
	switch {
	case stage.disputed():
		return Disputed
	case stage.pays() && c.Refunded >= c.Paid:
		return Refunded
	case c.inFull():
		return Paid
	case stage.pays():
		return Underpaid
	case stage == ended:
		return Failed
	case stage == waiting:
		return Pending
	}
	return c.Operation.state(Pending, Failed)
}

// lastChange returns the gateway's time of a change or, if it reports none, the time of the
// reading. A gateway whose time is that of an earlier reading, or before the payment, reports
// none.
func lastChange(updatedAt, paidAt gateway.Timestamp, known, at time.Time) time.Time {
	if updatedAt.IsZero() || updatedAt.Time.Equal(known) || paidAt.After(updatedAt.Time) {
		return at
	}
	return updatedAt.Time
}
