package webhook

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// record is the event as the store keeps it. An event without a resource has
// one of its own, so that it waits for nothing.
func record(e *Event, fact string, res *resource) (Record, error) {
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

// restore makes the event of a claim again.
func (rx *Receiver) restore(c *Claim) (*Event, error) {
	e, err := Parse(c.Body)
	if err != nil {
		return nil, err
	}
	e.Signed, e.KeyID, e.Source, e.Attempt = c.Signed, c.KeyID, c.Source, c.Attempt
	e.Stale = c.Late || (c.Position > 0 && c.Position < c.Latest)
	if e.confirmed, err = decodeResource(e.Family, c.Confirmed); err != nil {
		return nil, err
	}
	e.ConfirmedStatus = e.confirmed.status()
	return e, nil
}

// digest identifies what an event says: its kind, its resource and its data,
// however they are spelled. The rest of the envelope may differ between two
// deliveries of one event.
func digest(e *Event) string {
	data := jsontext.Value(e.Raw)
	_ = jsonread.Read(e.Raw, func(d *jsonread.Document) { // Parse has read it
		for i := range d.Children(0) {
			if d.Strict() && d.Name(i) == "data" { // stored digests of other bodies are of the whole
				data = jsontext.Value(d.Raw(i))
			}
		}
	})
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
