package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/gateway-go/gateway"
)

// record is the stored form of an event. An event without a resource gets its
// own, so that it does not wait for other events.
func record(e parsed, fact string, res *resource) (Record, error) {
	state, err := res.encode()
	if err != nil {
		return Record{}, err
	}
	rec := Record{
		Key:       "id " + e.ID,
		EventID:   e.ID,
		Kind:      e.Kind,
		Resource:  resourceKey(e.Family, e.ResourceID),
		Fact:      fact,
		Signed:    e.Signed,
		KeyID:     e.KeyID,
		Source:    e.Source,
		Late:      e.Stale,
		Position:  position(e),
		Body:      e.Raw,
		Confirmed: state,
	}
	if res != nil {
		rec.Key = "fact " + fact
	}
	if e.ResourceID == "" {
		rec.Resource = "event/" + e.ID
	}
	if res == nil {
		rec.Digest = digest(e)
	}
	return rec, nil
}

// restore rebuilds the event of a claim.
func (rx *Receiver) restore(c *Claim) (*Event, error) {
	e, err := Parse(c.Body)
	if err != nil {
		return nil, err
	}
	e.Signed, e.KeyID, e.Source, e.Attempt, e.Age = c.Signed, c.KeyID, c.Source, c.begun(), c.Age
	e.Stale = c.Late || (c.Position > 0 && c.Position < c.Latest)
	if e.confirmed, err = decodeResource(e.Family, c.Confirmed); err != nil {
		return nil, err
	}
	e.ConfirmedStatus = e.confirmed.status()
	e.receiver = rx
	return e, nil
}

// digest identifies the content of an event: its kind, resource and data,
// regardless of their encoding. The rest of the envelope may differ between
// two deliveries of one event.
func digest(e parsed) string {
	data := jsontext.Value(e.content)
	if canonical := data.Clone(); canonical.Canonicalize(jsontext.AllowDuplicateNames(true)) == nil {
		data = canonical
	}
	h := sha256.New()
	for _, part := range []string{string(e.Kind), string(e.Family), e.ResourceID} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// factNamed names the fact that an event reports, so that two events with the
// same fact are recognized as one. The name has the kind and, if the fact can
// happen to a resource more than once, the occasion.
func factNamed(e *Event, occasion string) string {
	fact := string(e.Kind) + " " + e.ResourceID
	if occasion != "" {
		fact += " " + occasion
	}
	return fact
}

// ownFact names the fact of a proven event by the event's data. It returns
// false if only the API's state can name it.
func ownFact(e parsed) (fact string, ok bool) {
	row := rowOf(e.Kind)
	switch {
	case row == nil || row.needsAPI():
		return "", false
	case row.occasion == nil:
		return factNamed(e.Event, ""), true
	default:
		return factNamed(e.Event, instant(e.occasion)), !e.occasion.IsZero()
	}
}

// instant formats a time for a fact. A time that can't be read is what was sent: two
// occurrences are not the same because neither can be read.
func instant(t gateway.Timestamp) string {
	if t.Unreadable() {
		raw, _ := t.MarshalJSON() // never fails
		sum := sha256.Sum256(raw)
		return "unread-" + hex.EncodeToString(sum[:8])
	}
	if t.IsZero() {
		return "-"
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// position returns the order of an event within its resource: an event is late
// if one with a greater position was handled before; 0 is never late.
//
// For transactions and transfers it is the rank of the kind. Subscriptions go
// through cycles, so theirs is the timestamp, and the rank within it. Only
// signed events have one: a forged event must not make real ones late.
func position(e parsed) int64 {
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
	at := e.occurred
	if at.IsZero() || at.UnixMilli() <= 0 {
		return 0 // the order is unknown; see warnOrder
	}
	return at.UnixMilli()<<2 | row.rank
}

// factID returns the id of an event that is identified by its fact. It is the
// same in every process, delivery and reconciliation, so handlers can use it
// as an idempotency key.
func factID(fact string) string {
	return "fact-" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(fact)).String()
}
