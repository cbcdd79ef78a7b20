package books

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
)

// subscriptionStatuses are the statuses of a subscription that this version knows.
var subscriptionStatuses = [...]gateway.SubscriptionStatus{
	gateway.SubscriptionIncomplete, gateway.SubscriptionTrialing, gateway.SubscriptionActive,
	gateway.SubscriptionPastDue, gateway.SubscriptionCancelScheduled, gateway.SubscriptionCanceled,
}

// subscribing is one change of a subscription.
type subscribing struct {
	Order        Order
	Subscription Subscription
	Charges      []Charge
	ledger
}

// subscription starts a change of a subscription.
func subscription(o Order, s Subscription, charges []Charge, source Source, at time.Time) *subscribing {
	c := &subscribing{Order: o, Subscription: s, Charges: slices.Clone(charges)}
	c.Subscription.Problems = slices.Clone(s.Problems)
	c.ledger = ledger{order: &c.Order, record: s.ID, about: AboutSubscription, raised: &c.Subscription.Problems, source: source, at: at, now: at}
	return c
}

// ApplySubscription stores what a reading of the subscription shows: its state, and its
// charges, which are reported as periods. It makes the records of charges that are new.
// It books no money, because the charges of a subscription have neither a fee nor an
// updated_at: the caller reads the transactions in Result.Read and applies them.
func ApplySubscription(o Order, s Subscription, charges []Charge, r Reading[gateway.Subscription]) (Subscription, []Charge, Result) {
	sub := r.Resource
	c := subscription(o, s, charges, r.Source, r.At)
	c.at = lastChange(sub.UpdatedAt, gateway.Timestamp{}, s.UpdatedAt, r.At)
	if s.SubscriptionID != "" && !strings.EqualFold(s.SubscriptionID, sub.ID) {
		c.problem(IsUnmatched, sub.ID, "subscription %s is %s, not %s", s.ID, s.SubscriptionID, sub.ID)
		return c.Subscription, c.Charges, c.Result
	}
	c.Subscription.SubscriptionID = cmp.Or(s.SubscriptionID, sub.ID)
	known := slices.Contains(subscriptionStatuses[:], sub.Status)
	if !known {
		c.problem(IsUnknownState, string(sub.Status), "subscription %s has the unknown status %q", sub.ID, sub.Status)
	}
	follows := known && c.follows(sub)
	items := slices.SortedFunc(slices.Values(sub.Transactions), func(a, b gateway.SubscriptionTransaction) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt.Time), cmp.Compare(a.ID, b.ID))
	})
	c.charges(sub, items, r.At)
	c.periods(sub, items)
	if follows {
		c.follow(sub, items)
		c.overIfLater(IsUnknownState)
	}
	switch q := &c.Subscription; {
	case q.Status != s.Status, q.Reason != s.Reason, q.FailedAttempts != s.FailedAttempts, !q.PaidUntil.Equal(s.PaidUntil),
		!q.TrialEnd.Equal(s.TrialEnd), q.Ends != s.Ends, len(c.Charges) != len(charges):
		c.Outcome = Changed
	case known && !follows && sub.Status != s.Status && c.Outcome == Unchanged:
		c.Outcome = Stale
	}
	return c.Subscription, c.Charges, c.Result
}

// ApplySubscriptionOperation stores what became of the request that creates the
// subscription. A reading counts more. reason says why it was refused. A final outcome
// is not replaced.
func ApplySubscriptionOperation(o Order, s Subscription, op Operation, reason string, at time.Time) (Subscription, Result) {
	c := subscription(o, s, nil, FromOutcome, at)
	if s.Operation.Ended() || op == s.Operation {
		return s, c.Result
	}
	q := &c.Subscription
	q.Operation, c.Outcome = op, Changed
	c.doubt()
	if q.Status != "" {
		return c.Subscription, c.Result
	}
	q.State = op.state(State(gateway.SubscriptionIncomplete), Rejected)
	if op == Refused {
		q.Reason = reason
		c.notice(&q.Reported, Ended, key(Ended, s.ID), "")
	}
	return c.Subscription, c.Result
}

// doubt raises a problem while it is not known whether the subscription was made.
func (c *subscribing) doubt() {
	s := &c.Subscription
	c.hold(s.Operation == InDoubt && s.Status == "", IsAmbiguous, "", "it is not known whether subscription %s was made", s.ID)
}

// notice reports something about the subscription, unless the list says that it was
// reported before.
func (c *subscribing) notice(reported *[]string, kind Kind, key, charge string) {
	if once(reported, key) {
		c.fact(kind, key, OnSubscription).Charge = charge
	}
}

// follows reports whether the reading is newer than what gave the subscription its
// status. A subscription can have each status again, except the last one.
func (c *subscribing) follows(sub *gateway.Subscription) bool {
	s := &c.Subscription
	switch o := order(sub.UpdatedAt.Time, s.UpdatedAt); {
	case s.Status == "", o > 0:
		return true
	case o < 0:
		return false
	case sub.Status.Final() != s.Status.Final():
		return sub.Status.Final()
	default:
		return c.now.After(s.ReadAt)
	}
}

// follow takes over the state of the reading.
func (c *subscribing) follow(sub *gateway.Subscription, items []gateway.SubscriptionTransaction) {
	s := &c.Subscription
	s.Status, s.State, s.Reason = sub.Status, State(sub.Status), string(sub.CancellationReason)
	s.Ends = sub.Status.Final() || sub.Status == gateway.SubscriptionCancelScheduled || sub.CancelAtPeriodEnd
	if !sub.UpdatedAt.IsZero() {
		s.UpdatedAt = sub.UpdatedAt.Time
	}
	if c.now.After(s.ReadAt) {
		s.ReadAt = c.now
	}
	c.doubt()
	if sub.Transactions != nil {
		s.FailedAttempts = failedAttempts(sub, items)
	}
	switch {
	case sub.Status == gateway.SubscriptionPastDue:
		c.notice(&s.Reported, PastDue, key(PastDue, s.ID, strconv.FormatInt(sub.CurrentPeriodEnd.Unix(), 10)), "")
	case sub.Status.Final():
		c.notice(&s.Reported, Ended, key(Ended, s.ID), "")
	}
}

// charges makes the records of new charges and reports the charges that were paid, were
// not paid or were charged back. A charge of an older reading counts too: it was made.
func (c *subscribing) charges(sub *gateway.Subscription, items []gateway.SubscriptionTransaction, at time.Time) {
	kind := Started
	for i := range items {
		item := &items[i]
		charge := c.charge(sub, item)
		if shows := charge.Status == item.Status && item.PaidAmount <= charge.Paid && item.RefundedAmount <= charge.Refunded; !shows && !at.Before(charge.ReadAt) {
			c.Read = append(c.Read, item.ID)
		}
		switch stage := stageOf(item.Status); {
		case isPeriod(sub, item):
			c.notice(&charge.Reported, kind, "period/"+charge.TransactionID, charge.ID)
			kind = Renewed
			if stage == chargedBack {
				c.notice(&charge.Reported, ChargedBack, key(ChargedBack, charge.TransactionID), charge.ID)
			}
		case stage == ended && !sub.Status.Final() || item.Status == gateway.TransactionRefused:
			c.notice(&charge.Reported, PaymentFailed, key(PaymentFailed, charge.TransactionID), charge.ID)
		}
	}
}

// periods notes until when the charges have paid, and until when the trial lasts. An older
// reading counts too: the latest end that was ever shown is kept, so that the order of the
// readings does not matter.
func (c *subscribing) periods(sub *gateway.Subscription, items []gateway.SubscriptionTransaction) {
	s := &c.Subscription
	for _, p := range paidPeriods(sub, items) {
		charge := c.charge(sub, p.charge)
		charge.PeriodEnd = later(charge.PeriodEnd, p.end)
		if sub.CancellationReason != gateway.CancellationChargeback {
			s.PaidUntil = later(s.PaidUntil, p.end)
		}
	}
	if sub.Status.Running() || sub.Status == gateway.SubscriptionPastDue { // else it may never have begun
		s.TrialEnd = later(s.TrialEnd, sub.TrialEnd.Time)
	}
}

// charge returns the record of a charge, which it makes if there is none.
func (c *subscribing) charge(sub *gateway.Subscription, item *gateway.SubscriptionTransaction) *Charge {
	for i := range c.Charges {
		if strings.EqualFold(c.Charges[i].TransactionID, item.ID) {
			return &c.Charges[i]
		}
	}
	charge := Charge{
		ID: item.ID, Origin: FromSubscription, TransactionID: item.ID, State: New,
		Currency: cmp.Or(item.Currency, sub.Currency, gateway.BRL), Requested: sub.Amount, CardCheck: isCardCheck(sub, item),
	}
	c.Charges = append(c.Charges, charge)
	return &c.Charges[len(c.Charges)-1]
}

// isCardCheck reports whether a charge only validated the card: nothing else is charged
// before the trial ends.
func isCardCheck(sub *gateway.Subscription, item *gateway.SubscriptionTransaction) bool {
	return !item.CreatedAt.IsZero() && item.CreatedAt.Before(sub.TrialEnd.Time)
}

// isPeriod reports whether a charge has paid for a period, even if it was refunded
// later.
func isPeriod(sub *gateway.Subscription, item *gateway.SubscriptionTransaction) bool {
	stage := stageOf(item.Status)
	return stage.pays() && stage != paidPartly && !isCardCheck(sub, item) && (item.AmountIs(sub.Amount) || item.PaidAmount > sub.Amount)
}

// failedAttempts returns how many charges failed since the last one that was paid.
func failedAttempts(sub *gateway.Subscription, items []gateway.SubscriptionTransaction) (n int) {
	for i := range items {
		switch {
		case isPeriod(sub, &items[i]):
			n = 0
		case items[i].Status == gateway.TransactionRefused:
			n++
		}
	}
	return n
}
