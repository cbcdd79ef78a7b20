// Package spec holds the interface document once, for both halves of the
// project: its operations, rules, limits and enums. The client runs a rule over
// the body it is about to send, the mock gateway over the body that came.
// Because a rule sees the bytes on the wire, absent, null, a wrong type and a
// value, even a zero value, are four different things to it.
//
// A rule is a function over an [Object], one per request:
//
//	func product(o *Object) {
//		o.String("name", Required).Len(1, MaxProductName)
//		o.Int("price", Required).Between(0, MaxAmount)
//		o.Int("quantity", Optional).Between(1, MaxQuantity)
//	}
//
// A new endpoint is an [Operation] in the file of its resource, beside the limits
// and enums of its rule.
package spec

import (
	"net/url"
	"time"
)

// Rule checks the members of one request body or query.
type Rule func(*Object)

// Variant is what a rule may depend on beside the request: which of the two
// readings of the interface holds, and who asks. The zero Variant is the
// interface document's own reading.
type Variant struct {
	Dialect      Dialect
	Lenient      bool // products and buyer may be missing
	LoopbackHTTP bool // notify_url may be plain http to a loopback host

	// Now is what times that must be in the future are compared with; the zero
	// time accepts them all.
	Now time.Time
}

// The codes of a Violation.
const (
	CodeRequired    = "required"
	CodeInvalidType = "invalid_type"
	CodeTooSmall    = "too_small"
	CodeTooBig      = "too_big"
	CodeInvalid     = "invalid_string"
	CodeInvalidEnum = "invalid_enum_value"
)

// Violation is one broken rule: the member's path ("products[0].name"), what
// is wrong with it in words, and one of the codes above.
type Violation struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	Code    string `json:"code"`
}

// Check runs rule over a JSON body and returns every violation, in the body
// rules' order. The error is for a body that is no JSON object at all.
func Check(body []byte, rule Rule, v Variant) ([]Violation, error) {
	d, err := Parse(body)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return d.Check(rule, v), nil
}

// CheckQuery runs rule over query parameters, which are strings: numbers are read from
// them, repeated keys are one comma-joined list, an empty optional one is absent.
func CheckQuery(q url.Values, rule Rule, v Variant) []Violation {
	d, err := parseQuery(q)
	if err != nil {
		return []Violation{{Message: "the query has too many parameters", Code: CodeInvalid}}
	}
	defer d.Release()
	return d.Check(rule, v)
}
