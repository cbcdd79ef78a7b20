// Package webhook receives the gateway's webhooks: mount one http.Handler, and
// write one function per kind of event. The receiver rejects forged events.
// With a durable store it loses no event that it has acknowledged, and it can
// apply effects exactly once.
//
//	rx, err := webhook.New(webhook.Config{
//		Keys: []webhook.SigningKey{{Key: gateway.NewSecret(os.Getenv("GATEWAY_WEBHOOK_SECRET"))}},
//	})
//	if err != nil {
//		return err
//	}
//	webhook.OnTransaction(rx, webhook.TransactionPaid,
//		func(ctx context.Context, e *webhook.TransactionEvent) error {
//			// If this returns an error, because the order is not stored yet for
//			// example, the event is retried.
//			return orders.MarkPaid(ctx, e.CorrelationID, e.Data.Charged(), e.Data.Currency)
//		})
//	mux.Handle("POST /webhooks/gateway", rx)
//
// # Authentication
//
// Deliveries to an endpoint that is registered with a secret are signed;
// deliveries to the notify_url of a transaction are not. With Keys, the
// receiver accepts only signed deliveries. With an API and no Keys, it confirms
// every event by reading its resource; SignatureOrReadBack accepts both. A
// confirmed event is rebuilt from the resource, which its handler gets as
// Confirmed. See [Trust].
//
// # Modes
//
// In Sync mode, the default, the receiver responds when the handler is done,
// and the gateway retries if the handler fails. In Inbox mode it responds as
// soon as the event is stored durably; workers handle the event and retry it.
// Use Inbox mode for anything important: a gateway may disable an endpoint that
// is slow or fails too often. Package sqlstore has a store for PostgreSQL and
// SQLite that several processes can share.
//
// # Exactly once
//
// The receiver claims an event with a lease, handles it, and completes it.
// After an error, a panic or a crash it handles the event again, so a handler
// may run twice for one event. Make its effects idempotent, or write them with
// sqlstore.HandleTx in the transaction that completes the event, and they
// happen exactly once. An event that keeps failing becomes a dead letter:
// [Receiver.DeadLetters] lists them and [Receiver.Requeue] retries them.
//
// Events of one resource are handled one at a time. A late event, which announces
// a state that the resource has already left, is skipped unless it moves money;
// see [Config.HandleStale].
//
// # Catching missed webhooks
//
// The gateway sends nothing for transactions that expire or are refused, and
// eventually stops redelivering. A [Reconciler] reads the resources that are open
// in your records and passes the missed events to the same handlers. It also
// uses the reference to look up creates whose outcome is unknown, and repairs
// events that were handled without an effect.
//
// # Building blocks
//
// [Receiver.Receive] processes a delivery from a server that does not use
// net/http. [Parse] reads a body, a [Verifier] and [Verify] check a signature,
// [Sign] makes one, and [Diagnose] explains why one is rejected.
package webhook
