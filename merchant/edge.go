package merchant

import (
	"context"
	"errors"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// Merchant is the merchant's side of the gateway. TX is the type of your transactions:
// *sql.Tx, or pgx.Tx with contrib/pgx. It is safe for concurrent use.
type Merchant[TX any] struct{ core }

// Open checks the database and the accounts and creates the tables, whose names begin
// with "gateway_", if they are missing; see Config.Location. db is [database.SQLite],
// [database.Postgres] or the driver of contrib/pgx.
//
// It reads a transaction of each account that has made one. A gateway that can't be reached
// is logged and causes no error.
//
// The error is [ErrAccount] if the name or the prefix of an account is in use for another
// one, a prefix begins with that of another account, or the client has the credential of
// another account, or an outbox of package operations has operations of the account that have
// not ended: afterwards that outbox is rejected. It is [gateway.ErrAccountConflict] too if the
// address of the gateway has changed. It is [database.ErrSchema] if the tables don't fit this release. Any other names
// the setting that is wrong, in the configuration or the database.
func Open[TX any](ctx context.Context, db database.Driver[TX], cfg Config, on Callbacks[TX]) (*Merchant[TX], error) {
	if db == nil {
		return nil, errors.New("merchant: the database is nil: use database.SQLite(db) or database.Postgres(db)")
	}
	m := &Merchant[TX]{core{shared: new(shared)}}
	m.in = func(tx any) sqldb.Tx { return sqldb.Wrap(db, tx.(TX)) } //nolint:forcetypeassert // only Merchant[TX] calls it
	if err := m.set(ctx, sqldb.Untyped(db), cfg, untyped(on)); err != nil {
		return nil, err
	}
	return m, nil
}

func untyped[TX any](c Callbacks[TX]) Callbacks[sqldb.Tx] {
	return Callbacks[sqldb.Tx]{
		Goods: call(c.Goods), Access: call(c.Access), Paid: call(c.Paid), PaidAgain: call(c.PaidAgain), Unpaid: call(c.Unpaid), Refunded: call(c.Refunded),
		RefundRejected: call(c.RefundRejected), Disputed: call(c.Disputed), Payout: call(c.Payout),
		Subscription: call(c.Subscription), Problem: call(c.Problem),
	}
}

// call returns a callback for transactions of any driver.
func call[TX, R any](f func(context.Context, TX, *R) error) func(context.Context, sqldb.Tx, *R) error {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, tx sqldb.Tx, record *R) error { return f(ctx, sqldb.User[TX](tx), record) }
}
