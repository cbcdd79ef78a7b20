// Package inbox is the inbox of a [webhook.Receiver] on River (riverqueue.com) and
// PostgreSQL, for a service that already runs its jobs there. The receiver
// verifies, confirms and deduplicates as with any store; River decides when and
// where the handlers run, retries them, and shows them in its UI.
//
//	in, err := inbox.New(inbox.Config{Pool: pool})
//	if err != nil {
//		return err
//	}
//	rx, err := webhook.New(webhook.Config{Keys: keys, Account: "shop", Store: in, Mode: webhook.Inbox, Workers: -1})
//	if err != nil {
//		return err
//	}
//	webhook.OnTransaction(rx, webhook.TransactionPaid,
//		inbox.HandleTx(in, func(ctx context.Context, tx pgx.Tx, e *webhook.TransactionEvent) error {
//			return markPaid(ctx, tx, e.CorrelationID, e.Data.Charged())
//		}))
//	config := &river.Config{}
//	if err := in.Configure(config, rx); err != nil {
//		return err
//	}
//	client, err := river.NewClient(riverpgxv5.New(pool), config)
//
// Run River's own migrations first, then Migrate, which creates the table of
// events.
//
// Receivers of several accounts at the gateway may share an Inbox: pass all of
// them to Configure. Each account has a queue, and its events are handled only by
// its own receiver.
//
// # How it works
//
// An event is one row of a sqlstore table and one job of River, inserted in one
// transaction. The row holds the event: its body, its identity, its position among the
// events of its resource, and its lease. The job schedules the event and shows its
// outcome:
//
//   - after a handler's error the job is retryable, at the time that the
//     receiver's backoff sets;
//   - the job of a dead letter is discarded; retrying it, in River's UI or with
//     JobRetry, requeues the event, as [webhook.Receiver.Requeue] does;
//   - the job of an event that this process has no handler for is snoozed until a
//     process that has one takes it; [webhook.Receiver.Unhandled] counts the event.
//
// The row is authoritative: an extra job for an event does nothing. A job whose
// process died is made available by a sweep, long before River rescues it.
package inbox
