package gateway

import (
	"context"

	"github.com/gateway-go/gateway/internal/transport"
)

// Operation names a call without saying whom it is about: what a log or a span
// may show.
type Operation struct {
	Name   string // "transactions.refund"
	Method string // "PUT"
	Path   string // the template: "/v2/transactions/{id}/refund"
}

// OperationFromContext returns the operation that a request of the client
// belongs to, for an http.RoundTripper given with [WithHTTPClient]: it has
// the same name for every attempt and no id in its path, as a span wants it.
// It is false for a request that this client did not make.
func OperationFromContext(ctx context.Context) (Operation, bool) {
	op, ok := transport.OperationFromContext(ctx)
	return Operation(op), ok
}
