package webhook

import (
	"time"

	"github.com/gateway-go/gateway"
)

// happenedSince lists the kinds of what must have happened to the resource
// since the records were written, in order.
func happenedSince(open OpenResource, r *resource, now time.Time) []Kind {
	if r.subscription != nil {
		return subscriptionSince(open, r, now)
	}
	if open.Status == r.status() {
		return nil
	}
	var since []Kind
	if r.transaction != nil && !wasPaid(gateway.TransactionStatus(open.Status)) && r.proves(TransactionPaid, now) {
		since = append(since, TransactionPaid)
	}
	switch row := derivedRow(open.Family, r.status()); {
	case r.status() == "pending", row != nil && row.kind == TransactionPaid:
		return since
	case row == nil: // a state without a kind is reported by its own name
		return append(since, Kind(open.Family.prefix()+"."+r.status()))
	default:
		return append(since, row.kind)
	}
}

func wasPaid(was gateway.TransactionStatus) bool {
	return was.Settled() || was == gateway.TransactionPartiallyRefunded
}

func subscriptionSince(open OpenResource, r *resource, now time.Time) []Kind {
	was, sub := gateway.SubscriptionStatus(open.Status), r.subscription
	var since []Kind
	begun := was != "" && was != gateway.SubscriptionIncomplete && was != gateway.SubscriptionTrialing
	if !begun && r.proves(SubscriptionStarted, now) {
		since = append(since, SubscriptionStarted)
	}
	recovered := was == gateway.SubscriptionPastDue && sub.Status == gateway.SubscriptionActive
	later := !open.PeriodEnd.IsZero() && sub.CurrentPeriodEnd.After(open.PeriodEnd)
	if begun && (recovered || later) && r.proves(SubscriptionRenewed, now) {
		since = append(since, SubscriptionRenewed)
	}
	if row := derivedRow(FamilySubscription, r.status()); row != nil && sub.Status != was {
		since = append(since, row.kind)
	}
	return since
}
