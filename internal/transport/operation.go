package transport

import "context"

// Operation names a call of the interface without saying whom it is about: it
// is what logs and spans may show.
type Operation struct {
	Name   string // "transactions.refund"
	Method string // "PUT"
	Path   string // the template: "/v2/transactions/{id}/refund"
}

// Class says what may be done with an operation whose outcome is not known.
type Class uint8

const (
	// Safe operations may be repeated at will: reads, and writes that set a
	// state rather than add to it.
	Safe Class = iota
	// Keyed operations carry a reference that makes the gateway refuse, or
	// answer, a second one. They may be repeated with the same bytes.
	Keyed
	// Unsafe operations are repeated only where nothing was sent or the gateway
	// said that it did nothing.
	Unsafe
)

type contextKey struct{}

// OperationFromContext returns the operation that a request belongs to, for a
// RoundTripper below the client.
func OperationFromContext(ctx context.Context) (Operation, bool) {
	if c, ok := ctx.Value(contextKey{}).(*call); ok {
		return c.req.Operation, true
	}
	return Operation{}, false
}
