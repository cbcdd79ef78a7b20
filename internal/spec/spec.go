// Package spec defines the interface's operations, rules, limits and enums
// once, for the client and the mock gateway. The client checks the body that
// it is about to send, the mock gateway the body that it received. A rule
// checks the bytes on the wire, so it can tell apart a missing member, null, a
// value of the wrong type and a zero value.
//
// A rule is a function that checks an [Object]:
//
//	func product(o *Object) {
//		o.String("name", Required).Len(1, MaxProductName)
//		o.Int("price", Required).Between(0, MaxAmount)
//		o.Int("quantity", Optional).Between(1, MaxQuantity)
//	}
//
// To add an endpoint, add an [Operation] to the file of its resource, next to
// the limits and enums of its rule.
package spec

import (
	"net/url"
	"time"
)

// Rule checks the members of one request body or query.
type Rule func(*Object)

// Variant is everything apart from the request that a rule may depend on, such
// as the dialect. The zero Variant follows the interface document.
type Variant struct {
	Dialect      Dialect
	Lenient      bool // products and buyer may be missing
	LoopbackHTTP bool // notify_url may be plain http to a loopback host
	LocalHTTP    bool // notify_url may be plain http to a host that is surely not on the internet: see [IsLocal]

	// Now is the gateway's current time. Timestamps that must be in the future
	// are compared with it; if it is zero, any timestamp is accepted.
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

// Violation is one broken rule: the member's path ("products[0].name"), a
// message, and one of the codes above.
type Violation struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	Code    string `json:"code"`
}

// Check runs rule over a JSON body and returns every violation, in the order
// of the rules. It returns an error only if the body is not a JSON object.
func Check(body []byte, rule Rule, v Variant) ([]Violation, error) {
	d, err := Parse(body)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return d.Check(rule, v), nil
}

// CheckQuery runs rule over query parameters. Numbers are parsed from strings,
// repeated parameters are joined with commas, and an empty optional parameter
// counts as absent.
func CheckQuery(q url.Values, rule Rule, v Variant) []Violation {
	d, err := parseQuery(q)
	if err != nil {
		return []Violation{{Message: "the query has too many parameters", Code: CodeInvalid}}
	}
	defer d.Release()
	return d.Check(rule, v)
}
