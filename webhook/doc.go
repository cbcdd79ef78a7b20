// Package webhook receives the gateway's webhooks: mount one handler, write one
// function per kind of event, and no event is lost, handled twice or forged.
//
//	rx, err := webhook.New(webhook.Config{
//		Keys: []webhook.SigningKey{{Key: gateway.NewSecret(os.Getenv("GATEWAY_WEBHOOK_SECRET"))}},
//	})
//	if err != nil {
//		return err
//	}
//	webhook.OnTransaction(rx, webhook.TransactionPaid,
//		func(ctx context.Context, e *webhook.TransactionEvent) error {
//			// An error brings the event back: also that of an order which is not stored yet.
//			return orders.MarkPaid(ctx, e.CorrelationID, e.Data.Amount, e.Data.Currency)
//		})
//	mux.Handle("POST /webhooks/gateway", rx)
//
// # Whom to believe
//
// Deliveries to an endpoint that is registered with a secret are signed;
// deliveries to the notify_url of a transaction are not. With Keys only signed
// ones are believed. With an API, and no Keys, every event is confirmed by
// reading its resource; SignatureOrReadBack does either. A handler of such an
// event has the state that the API showed in the event's Confirmed: act upon
// that, not upon the words of the body. See [Trust].
//
// # When to answer
//
// In Sync mode, the default, a delivery is answered when its handler is done:
// the gateway waits, and tries again when the handler fails. In Inbox mode it
// is answered as soon as the event is stored durably, and worked off after
// that with retries of the receiver's own; package sqlstore has stores for
// PostgreSQL and SQLite that several processes share. Inbox mode is
// recommended: the gateway gives up a receiver that is slow or fails too often.
//
// # Once
//
// An event is claimed, handled, and noted as done. Whatever happens in between,
// an error, a panic, a process that is killed, has it handled again, by the
// next delivery or when the claim's lease ends. So a handler may run twice for
// one event, and its effects must be idempotent; or they are written with
// sqlstore.HandleTx in the transaction that notes the event as done, and so
// exactly once. An event that keeps failing becomes a dead letter:
// [Receiver.DeadLetters] lists them and [Receiver.Requeue] puts them back.
//
// Events of one resource are handled one at a time. One that announces a state
// which the resource has left already is late, and skipped; see
// [Config.HandleStale].
//
// # Catching missed webhooks
//
// The gateway sends nothing for transactions that expire or are refused, and
// gives up a delivery eventually. A [Reconciler] reads what your records still
// have as open and passes what it finds to the same handlers. It also looks up
// creates whose outcome is unknown by their reference, and repairs events that
// were handled without an effect.
//
// # In pieces
//
// [Receiver.Receive] takes a delivery from a server that is no net/http one.
// [Parse] reads a body, a [Verifier] and [Verify] check a signature, [Sign]
// makes one.
package webhook
