// Package wire writes values as the interface does, for answers and webhooks
// alike.
package wire

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Stamp is a moment on the wire: RFC 3339 in UTC with milliseconds. The zero
// time is null.
type Stamp time.Time

// MarshalJSONTo writes the moment.
func (s Stamp) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(s.AppendJSON(enc.AvailableBuffer()))
}

// AppendJSON appends the moment.
func (s Stamp) AppendJSON(b []byte) []byte {
	t := time.Time(s)
	if t.IsZero() {
		return append(b, "null"...)
	}
	// The time package is quick at RFC 3339 as it stands, and slow at any layout.
	b = t.UTC().AppendFormat(append(b, '"'), time.RFC3339)
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z', '"')
}

// Nullable returns nil for "": null on the wire.
func Nullable(s *string) *string {
	if *s == "" {
		return nil
	}
	return s
}
