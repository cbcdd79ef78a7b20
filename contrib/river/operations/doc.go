// Package operations runs the outbox of package
// github.com/gateway-go/gateway/operations on River (riverqueue.com), with pgx. That
// package explains the outbox, and has a worker of its own that needs no River. Both
// work on the same tables, and most names here are those of that package.
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
// outbox's tables.
//
// docs/operations.md in the root module lists the guarantees and their limits.
package operations
