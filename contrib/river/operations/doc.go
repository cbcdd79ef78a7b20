// Package operations runs the outbox for gateway calls that move money on River
// (riverqueue.com), with pgx. A call that must happen (charge this order,
// refund that return, pay this supplier) is stored in the same transaction as the
// decision to make it. A worker sends it, finds out its outcome even across
// crashes, and runs your handler with it; the handler commits exactly once.
//
// # Use
//
// Create an [Outbox], register a handler for each kind of operation, and add it
// to the configuration of your River client:
//
//	outbox, err := operations.New(pool, operations.Config{Client: client})
//	if err != nil {
//		return err
//	}
//	operations.OnResult(outbox, func(ctx context.Context, tx pgx.Tx, r operations.RefundResult) error {
//		if r.Err != nil {
//			return reject(ctx, tx, r.Operation.Key, r.Err)
//		}
//		return refunded(ctx, tx, r.Operation.Key, r.Value.AmountRefunded)
//	})
//	config := &river.Config{}
//	if err := outbox.Configure(config); err != nil {
//		return err
//	}
//	riverClient, err := river.NewClient(riverpgxv5.New(pool), config)
//
// Then insert operations in your own transactions:
//
//	_, err = outbox.InsertTx(ctx, tx, operations.Refund{Key: "return-17", TransactionID: id, Amount: 500})
//
// Run River's own migrations first, then [Outbox.Migrate], which creates the
// outbox's table.
//
// # What is in which package
//
// Package github.com/gateway-go/gateway/operations has the outbox itself: how an outcome
// becomes known, and a worker of its own for PostgreSQL and SQLite that needs no
// River. This package runs it on River, and most of its names are those of that package.
// Both work on the same tables.
//
// docs/operations.md in the root module lists the guarantees and their limits.
package operations
