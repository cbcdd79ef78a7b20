package transport

import "context"

// Operation names a call of the interface without identifying a resource, for
// logs and spans.
type Operation struct {
	Name   string // "transactions.refund"
	Method string // "PUT"
	Path   string // the template: "/v2/transactions/{id}/refund"
}

type contextKey struct{}

// OperationFromContext returns the operation that a request belongs to, for use
// in the RoundTripper of the caller's http.Client.
func OperationFromContext(ctx context.Context) (Operation, bool) {
	if c, ok := ctx.Value(contextKey{}).(*call); ok {
		return c.req.Operation, true
	}
	return Operation{}, false
}
