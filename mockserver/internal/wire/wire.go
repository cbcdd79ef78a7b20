// Package wire writes values as the interface does, for answers and webhooks
// alike.
package wire

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// TimeLayout is RFC 3339 in UTC with milliseconds.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Stamp is a moment on the wire; the zero time is null.
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
	b = append(b, '"')
	return append(t.UTC().AppendFormat(b, TimeLayout), '"')
}

// Nullable returns nil for "": null on the wire.
func Nullable(s *string) *string {
	if *s == "" {
		return nil
	}
	return s
}
