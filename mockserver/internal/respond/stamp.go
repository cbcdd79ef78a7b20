// Package respond writes responses, and the values in them and in webhooks, in
// the interface's form.
package respond

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Stamp is a timestamp on the wire: RFC 3339 in UTC with milliseconds. The zero
// time is null.
type Stamp time.Time

// MarshalJSONTo writes the timestamp.
func (s Stamp) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(s.AppendJSON(enc.AvailableBuffer()))
}

// AppendJSON appends the timestamp.
func (s Stamp) AppendJSON(b []byte) []byte {
	t := time.Time(s)
	if t.IsZero() {
		return append(b, "null"...)
	}
	// time.RFC3339 is formatted much faster than a custom layout.
	b = t.UTC().AppendFormat(append(b, '"'), time.RFC3339)
	dot := len(b) - 1 // where the Z is
	b = strconv.AppendInt(b[:dot], int64(1000+t.Nanosecond()/int(time.Millisecond)), 10)
	b[dot] = '.'
	return append(b, 'Z', '"')
}

// UnmarshalJSONFrom reads a timestamp; null is the zero time.
func (s *Stamp) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var at time.Time
	err := json.UnmarshalDecode(dec, &at)
	*s = Stamp(at)
	return err
}

// Nullable returns nil for "": null on the wire.
func Nullable(s *string) *string {
	if *s == "" {
		return nil
	}
	return s
}
