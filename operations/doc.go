// Package operations is an outbox for gateway calls that move money, on PostgreSQL or
// SQLite. A call that must happen (charge this order, refund that return, pay this
// supplier) is stored in the same transaction as the decision to make it. A worker
// sends it, finds out its outcome even across crashes, and runs your handler with
// it; the handler commits exactly once.
//
// # Use
//
// Create an [Outbox] for your database and register a handler for each kind of
// operation:
//
//	outbox, err := operations.New(database.SQLite(db), operations.Config{Client: client})
//	if err != nil {
//		return err
//	}
//	if err := outbox.Migrate(ctx); err != nil { // creates the tables
//		return err
//	}
//	operations.OnResult(outbox, func(ctx context.Context, tx *sql.Tx, r operations.RefundResult) error {
//		if r.Err != nil {
//			return reject(ctx, tx, r.Operation.Key, r.Err)
//		}
//		return refunded(ctx, tx, r.Operation.Key, r.Value.AmountRefunded)
//	})
//	go outbox.Run(ctx) // look at its error
//
// Then insert operations in your own transactions:
//
//	_, err = outbox.InsertTx(ctx, tx, operations.Refund{Key: "return-17", TransactionID: id, Amount: 500})
//
// Package database has drivers for SQLite and PostgreSQL. For pgx and River, use package
// github.com/gateway-go/gateway/contrib/river/operations, which runs this outbox.
//
// # How an outcome becomes known
//
// A create has a reference, fixed when it is inserted. After a lost response it
// is sent again with the same reference, and the gateway applies it only once.
//
// A refund, a cancellation and an update have none. The outbox sends them one at
// a time per resource, and commits the resource's state before each request.
// After a lost response it sends nothing until [Config.SettleAfter] has passed
// and the request can no longer be applied. Then it reads the resource and
// compares it with the state before:
//
//   - The change is there: the operation was applied.
//   - Several reads don't show it: it was not applied and is sent again.
//   - Something else changed too, so the reads are inconclusive: the operation
//     is [Ambiguous]. It waits, with its history, until a person decides with
//     [Outbox.Resolve].
//
// With a gateway that honors Idempotency-Key, no comparison is needed while it
// remembers the key; see [Config.KeyLifetime].
//
// docs/operations.md lists the guarantees and their limits.
package operations
