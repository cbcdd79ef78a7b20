package books

import (
	"strconv"
	"time"

	"github.com/gateway-go/gateway"
)

// Access is until when the member may use what the subscription pays for.
type Access struct {
	Until  time.Time                  // the end of the last period whose payment is kept, or of the trial; zero if none
	Status gateway.SubscriptionStatus // that of the newest reading, "" before the first
	Ends   bool                       // it is not renewed: canceled, or its cancellation is planned
}

// equal reports whether a member has the same access.
func (a *Access) equal(other *Access) bool {
	return a.Until.Equal(other.Until) && a.Status == other.Status && a.Ends == other.Ends
}

// MemberAccess is called at the end of each change of a subscription, with all its charges. If
// the access has changed, it returns the fact. Before there is something to use there is none.
//
// Facts are delivered late: the caller tells the member's access as it is then.
func MemberAccess(o Order, s Subscription, charges []Charge, at time.Time) (Subscription, Result) {
	access := s.access(charges)
	if access.equal(&s.Access) {
		return s, Result{}
	}
	s.Access = access
	if access.Until.IsZero() && s.AccessFacts == 0 {
		return s, Result{Outcome: Changed}
	}
	s.AccessFacts++
	l := ledger{order: &o, record: s.ID, source: FromOutcome, at: at, now: at}
	l.fact(AccessChanged, key(AccessChanged, s.ID, strconv.Itoa(s.AccessFacts)), OnAccess)
	return s, l.Result
}

// access returns the access that the booked charges and the trial give. A payment that was
// refunded in full or is withheld gives none; after a dispute that was won it does again.
func (s *Subscription) access(charges []Charge) Access {
	until := s.TrialEnd
	for i := range charges {
		if c := &charges[i]; c.Left() > 0 && c.PeriodEnd.After(until) {
			until = c.PeriodEnd
		}
	}
	return Access{Until: until, Status: s.Status, Ends: s.Ends}
}

// turn is the attempts to charge one period, up to the one that was paid.
type turn struct {
	first time.Time                        // when the first attempt was made, zero if it is not known
	paid  *gateway.SubscriptionTransaction // nil if none was paid yet
}

// turns returns the periods that were charged, the oldest first, without checks of a card. A
// period that was paid is not charged again, and one that was not paid is charged until it is
// or the subscription ends. Without a trial the first period begins when it is paid, which may
// be later than the charge: a buyer confirms it, or authorizes a Pix Automatico.
func turns(sub *gateway.Subscription, items []gateway.SubscriptionTransaction) (list []turn) {
	open := false
	for i := range items {
		item := &items[i]
		if isCardCheck(sub, item) {
			continue
		}
		if !open {
			list, open = append(list, turn{first: item.CreatedAt.Time}), true
		}
		if t := &list[len(list)-1]; isPeriod(sub, item) {
			t.paid, open = item, false
			if t.first.IsZero() || len(list) == 1 && sub.TrialEnd.IsZero() {
				t.first = later(item.CreatedAt.Time, item.PaidAt.Time)
			}
		}
	}
	return list
}

// current reports whether the charges of a turn were made for the current period: after the
// middle of the period before it, since a gateway may announce a debit some days ahead.
func (t *turn) current(sub *gateway.Subscription) bool {
	start, end := sub.CurrentPeriodStart.Time, sub.CurrentPeriodEnd.Time
	return !start.IsZero() && t.first.After(start.Add(-end.Sub(start)/2)) && t.first.Before(end)
}

// paidPeriod is a charge that has paid a period, and when that ends.
type paidPeriod struct {
	charge *gateway.SubscriptionTransaction
	end    time.Time
}

// paidPeriods returns the charges that have paid a period whose end the reading tells. The
// newest one, if it was made for the current period, has paid until that ends. An earlier one
// has paid until the period of the next charge began, at the latest until the current one did,
// unless that is so long after that a period without a charge must be between them. What was paid for a period that has not begun ends later than the reading shows.
func paidPeriods(sub *gateway.Subscription, items []gateway.SubscriptionTransaction) (list []paidPeriod) {
	all := turns(sub, items)
	limit, paysCurrent := sub.CurrentPeriodStart.Time, mayBePaid(sub)
	for i := len(all) - 1; i >= 0; i-- {
		t := &all[i]
		if t.paid != nil && paysCurrent && t.current(sub) {
			list = append(list, paidPeriod{t.paid, sub.CurrentPeriodEnd.Time})
			paysCurrent = false
			continue // the period before ended when this one began, whenever its charge was made
		}
		if t.paid != nil && limit.After(t.first) {
			list = append(list, paidPeriod{t.paid, t.end(sub, limit)})
		}
		limit = earlier(limit, t.first)
	}
	return list
}

// end returns when the period of an earlier turn ended, if the next one that is known began
// then. Periods differ: a first one may last until a billing day, and a month has 28 to 31 days.
func (t *turn) end(sub *gateway.Subscription, next time.Time) time.Time {
	start, end := sub.CurrentPeriodStart.Time, sub.CurrentPeriodEnd.Time
	if length := end.Sub(start); !t.first.IsZero() && !start.IsZero() && end.After(start) && next.Sub(t.first)-length > length/4*3 {
		return t.first.Add(length)
	}
	return next
}

// mayBePaid reports whether the current period may be paid: a period begins even if its charge
// fails.
func mayBePaid(sub *gateway.Subscription) bool {
	switch sub.Status {
	case gateway.SubscriptionActive:
		return true
	case gateway.SubscriptionCancelScheduled, gateway.SubscriptionCanceled:
		return sub.CancellationReason != gateway.CancellationPaymentFailure
	default:
		return false
	}
}

// earlier returns the earlier of two times, of which one may be unknown.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
