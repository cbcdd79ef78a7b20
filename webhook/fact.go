package webhook

import (
	"strconv"

	"github.com/google/uuid"

	"github.com/gateway-go/gateway"
)

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

// factID is the id of an event that is known by its fact. It is the same in every
// process, for every delivery and reconciliation that reports the fact, so that
// handlers can use it as an idempotency key.
func factID(fact string) string {
	return "fact-" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(fact)).String()
}
