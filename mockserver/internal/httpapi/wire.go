package httpapi

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// stamp is a moment on the wire: RFC 3339 in UTC with milliseconds, or null.
type stamp time.Time

const wireTime = "2006-01-02T15:04:05.000Z"

// MarshalJSONTo writes the moment.
func (s stamp) MarshalJSONTo(enc *jsontext.Encoder) error {
	t := time.Time(s)
	if t.IsZero() {
		return enc.WriteToken(jsontext.Null)
	}
	b := append(enc.AvailableBuffer(), '"')
	return enc.WriteValue(append(t.UTC().AppendFormat(b, wireTime), '"'))
}

// nullable returns nil for "": null on the wire.
func nullable(s *string) *string {
	if *s == "" {
		return nil
	}
	return s
}
