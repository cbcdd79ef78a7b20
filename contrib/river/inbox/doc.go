// Package inbox is the inbox of a [webhook.Receiver] on River (riverqueue.com) and
// PostgreSQL, for a service that already runs its jobs there. The receiver
// verifies, confirms and deduplicates as with any store; River decides when and
// where the handlers run, retries them, and shows them in its UI.
//
//	in, err := inbox.New(inbox.Config{Pool: pool})
//	if err != nil {
//		return err
//	}
//	rx, err := webhook.New(webhook.Config{Keys: keys, Store: in, Mode: webhook.Inbox, Workers: -1})
//	if err != nil {
//		return err
//	}
//	webhook.OnTransaction(rx, webhook.TransactionPaid,
//		inbox.HandleTx(in, func(ctx context.Context, tx pgx.Tx, e *webhook.TransactionEvent) error {
//			return markPaid(ctx, tx, e.CorrelationID, e.Data.Amount)
//		}))
//	config := &river.Config{}
//	if err := in.Configure(config, rx); err != nil {
//		return err
//	}
//	client, err := river.NewClient(riverpgxv5.New(pool), config)
//
// [Inbox.Migrate] creates the tables, after River's own migrations.
//
// # How it works
//
// An event is one row of a sqlstore table and one job of River, inserted in one
// transaction. The row is the event: its body, its identity, its position among the
// events of its resource, and its lease. The job schedules it, and shows its
// outcome:
//
//   - a handler's error makes it retryable at the time of the receiver's backoff;
//   - a dead letter makes it discarded, and retrying the job, in River's UI or with
//     JobRetry, requeues the event, as [webhook.Receiver.Requeue] does;
//   - an event that this process has no handler for is snoozed for a process that
//     has one, and is counted by [webhook.Receiver.Unhandled].
//
// An extra job does nothing. A job whose process died is made available by a sweep,
// long before River rescues it.
package inbox
