package webhook

import (
	"strconv"
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

// confirm judges e by the resource that the API returned for it.
func confirm(e *Event, r *resource, now time.Time) confirmation {
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

// factNamed names what is true if the event is, so that two events that report
// the same are known to be one. What can happen once to a resource is named by
// the kind, anything else also by its occasion.
func factNamed(e *Event, occasion string) string {
	fact := string(e.Kind) + " " + e.ResourceID
	if occasion != "" {
		fact += " " + occasion
	}
	return fact
}

// ownFact names the fact of a proven event by its own data. It reports false
// where only the API's state can name it.
func ownFact(e *Event) (fact string, ok bool) {
	row := rowOf(e.Kind)
	switch {
	case row == nil || row.needsAPI():
		return "", false
	case row.occasion == nil:
		return factNamed(e, ""), true
	default:
		at := timestampOf(e, row.occasionMember...)
		return factNamed(e, instant(at)), !at.IsZero()
	}
}

// instant writes a time for a fact.
func instant(t gateway.Timestamp) string {
	if t.IsZero() {
		return "-"
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// position places an event in its resource's life: an event is late if one with
// a greater position was handled before. 0 is never late.
//
// Transactions and transfers only move forward, so the rank of their kind is
// enough. A subscription goes round in cycles: its events are placed by their
// timestamp, and by their rank within one timestamp. The timestamp is the body's
// word, so it counts in a signed event only: a forged one must not make real
// ones late.
func position(e *Event) int64 {
	row := rowOf(e.Kind)
	switch {
	case row == nil || row.rank == 0 || e.Kind.Family() != e.Family:
		return 0
	case e.Kind == TransactionRefunded && e.Status == string(gateway.TransactionPartiallyRefunded):
		return rowOf(TransactionPartiallyRefunded).rank
	case e.Family != FamilySubscription:
		return row.rank
	case !e.Signed:
		return 0
	}
	at := timestampOf(e, "occurred_at", "occurredAt")
	if at.IsZero() || at.UnixMilli() <= 0 {
		return 0
	}
	return at.UnixMilli()<<2 | row.rank
}
