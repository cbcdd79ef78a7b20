// Package frameworks mounts the webhook receiver in the common web frameworks,
// one file each. The receiver is always the same; only the line that passes the
// request to it differs.
//
// Two rules apply to all of them. Nothing may read, decode or decompress the
// body before the receiver does, because the signature covers the bytes that
// arrived. And the route needs no session, no CSRF token and no login: the
// signature proves the sender.
package frameworks

import (
	"context"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// Path is the path of the URL that is registered at the gateway.
const Path = "/webhooks/gateway"

// Shop is the merchant's code that the receiver's handlers call.
type Shop interface {
	// Paid ships the order e.CorrelationID if e.Data has its amount and currency.
	// If the order does not exist yet, it returns an error, so that the event is
	// retried. It may be called again for the same payment after a crash; see
	// [webhook.OnTransaction].
	Paid(ctx context.Context, e *webhook.TransactionEvent) error
	// Refunded cancels the order, in full or in part.
	Refunded(ctx context.Context, e *webhook.TransactionEvent) error
}

// NewReceiver returns a receiver for one process that responds when the shop is
// done. With a Store in a database it serves several; see ../webhooks.
func NewReceiver(secret gateway.Secret, shop Shop) (*webhook.Receiver, error) {
	rx, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: secret}}})
	if err != nil {
		return nil, err
	}
	webhook.OnTransaction(rx, webhook.TransactionPaid, shop.Paid)
	webhook.OnTransaction(rx, webhook.TransactionRefunded, shop.Refunded)
	return rx, nil
}
