package gateway

import (
	"bytes"
	"fmt"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/google/go-querystring/query"
)

// Opt is a request member for which "not sent", null and a value, even a zero
// value, mean three different things. The zero Opt is not sent; [Set] and
// [Null] make the other two.
//
//	gateway.SubscriptionUpdateParams{Metadata: gateway.Null[map[string]any]()} // clears it
type Opt[T any] struct {
	value T
	state optState
}

type optState uint8

const (
	optAbsent optState = iota
	optNull
	optSet
)

// Set returns an Opt that sends v, also when v is the zero value of its type.
func Set[T any](v T) Opt[T] { return Opt[T]{value: v, state: optSet} }

// Null returns an Opt that sends null, which clears the member.
func Null[T any]() Opt[T] { return Opt[T]{state: optNull} }

// Get returns the value and whether there is one; it is false for an Opt that
// is absent or null.
func (o Opt[T]) Get() (T, bool) { return o.value, o.state == optSet }

// IsNull reports whether the member is sent as null.
func (o Opt[T]) IsNull() bool { return o.state == optNull }

// IsZero reports whether the member is not sent at all.
func (o Opt[T]) IsZero() bool { return o.state == optAbsent }

// String returns the value's text, "null", or "absent".
func (o Opt[T]) String() string {
	switch o.state {
	case optSet:
		return fmt.Sprint(o.value)
	case optNull:
		return "null"
	default:
		return "absent"
	}
}

// MarshalJSON writes the value or null. An absent Opt inside a struct needs
// the tag option omitzero, or it is written as null.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if o.state != optSet {
		return []byte("null"), nil
	}
	return json.Marshal(o.value, json.Deterministic(true))
}

// UnmarshalJSON reads a value or null; a member that is missing stays absent.
func (o *Opt[T]) UnmarshalJSON(b []byte) error {
	if string(bytes.TrimSpace(b)) == "null" {
		*o = Null[T]()
		return nil
	}
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*o = Set(v)
	return nil
}

var _ query.Encoder = Opt[int]{}

// EncodeValues writes the value as a query parameter; null becomes an empty
// one and an absent Opt none.
func (o Opt[T]) EncodeValues(key string, v *url.Values) error {
	switch o.state {
	case optSet:
		v.Set(key, fmt.Sprint(o.value))
	case optNull:
		v.Set(key, "")
	case optAbsent:
	}
	return nil
}
