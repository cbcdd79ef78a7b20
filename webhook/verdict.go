package webhook

import (
	"time"

	"github.com/gateway-go/gateway"
)

// verdict is what the API's state of a resource says about an event.
type verdict uint8

const (
	confirmed verdict = iota // the resource can only reach this state through the event
	behind                   // not yet, but the resource may still get there
	refuted                  // it can't have happened
)

// confirmation is the judgement of an event that carries no proof of its own.
type confirmation struct {
	verdict verdict
	fact    string    // see factNamed
	moment  time.Time // when it happened; later than that where the API doesn't say
	late    bool      // the resource is past the waiting state that the event announces
	status  string
}

// judge judges e by the resource that the API returned for it.
func judge(e *Event, r *resource, now time.Time) confirmation {
	c := confirmation{status: r.status(), moment: r.head().updatedAt.Time}
	row, occasion := rowOf(e.Kind), ""
	switch family := e.Kind.Family(); {
	case family != "" && family != e.Family:
		c.verdict = refuted // a payment with a subscription's id: the gateway never sends it
		return c
	case row == nil && string(e.Kind) != e.Family.prefix()+"."+c.status:
		c.verdict = refuted // an unknown meaning can't be proven
		return c
	case row == nil && r.transfer == nil:
		occasion = lastUpdate(r)
	case row == nil: // a transfer only moves forward
	default:
		c.verdict = row.proof(r, now)
		if row.at != nil {
			c.moment = row.at(r)
		}
		c.late = row.passed != nil && row.passed(r)
		if row.occasion != nil {
			occasion = row.occasion(r)
		}
	}
	c.fact = factNamed(e, occasion)
	return c
}

// statusVerdict judges the state that an unproven event says its resource is in:
// the resource must be in it or have been.
func statusVerdict(e *Event, r *resource, now time.Time) verdict {
	if e.Status == "" || e.Status == r.status() {
		return confirmed
	}
	tx := r.transaction
	switch {
	case r.subscription != nil:
		return stageVerdict(gateway.SubscriptionStatus(e.Status), r.subscription.Status)
	case tx != nil && e.Status == string(gateway.TransactionRefunded) && (tx.Amount <= 0 || tx.RefundedAmount < tx.Amount):
		return reached(gateway.TransactionRefunded)(tx) // a part of it proves another state
	}
	if row := derivedRow(e.Family, e.Status); row != nil {
		return row.proof(r, now)
	}
	return confirmed // a state on the way, such as processing, that nothing proves or denies
}

// stageVerdict knows no state that is over for good: a subscription goes round.
// It may only not be ahead of itself.
func stageVerdict(said, is gateway.SubscriptionStatus) verdict {
	if subscriptionStage(said) > subscriptionStage(is) {
		return behind
	}
	return confirmed
}

func subscriptionStage(s gateway.SubscriptionStatus) int {
	switch s {
	case gateway.SubscriptionIncomplete:
		return 1
	case gateway.SubscriptionTrialing:
		return 2
	case gateway.SubscriptionActive, gateway.SubscriptionPastDue, gateway.SubscriptionCancelScheduled:
		return 3
	case gateway.SubscriptionCanceled:
		return 4
	default:
		return 0
	}
}
