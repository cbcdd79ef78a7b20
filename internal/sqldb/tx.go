package sqldb

import (
	"context"
	"database/sql"
	"log/slog"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
)

// Tx is a transaction of any driver: what runs statements in it, and the driver's own, as
// the user has it.
type Tx struct {
	database.Conn

	user any
}

// User returns the transaction as the driver has it. TX is the type of the driver's
// transactions, or Tx itself.
func User[TX any](tx Tx) TX {
	if same, ok := any(tx).(TX); ok {
		return same
	}
	return tx.user.(TX) //nolint:forcetypeassert // Untyped made it of a Driver[TX]
}

// IsTx reports whether TX is Tx itself: only package merchant, which is built on it, has an
// outbox of such transactions.
func IsTx[TX any]() bool {
	var tx TX
	_, is := any(tx).(Tx)
	return is
}

// Wrap returns the transaction of a user.
func Wrap[TX any](d database.Driver[TX], tx TX) Tx {
	if same, ok := any(tx).(Tx); ok {
		return same
	}
	return Tx{d.In(tx), tx}
}

// Untyped returns a driver whose transactions have one type, so that what is built on it
// is compiled once, and not for each type of transaction.
func Untyped[TX any](d database.Driver[TX]) database.Driver[Tx] {
	if same, ok := any(d).(database.Driver[Tx]); ok {
		return same
	}
	return untyped[TX]{d}
}

type untyped[TX any] struct{ d database.Driver[TX] }

func (u untyped[TX]) Dialect() database.Dialect       { return u.d.Dialect() }
func (u untyped[TX]) Check(ctx context.Context) error { return u.d.Check(ctx) }
func (u untyped[TX]) Conn() database.Conn             { return u.d.Conn() }
func (u untyped[TX]) In(tx Tx) database.Conn          { return tx.Conn }

func (u untyped[TX]) Begin(ctx context.Context, level sql.IsolationLevel) (Tx, error) {
	tx, err := u.d.Begin(ctx, level)
	if err != nil {
		return Tx{}, err
	}
	return Tx{u.d.In(tx), tx}, nil
}

// Commit implements [database.Driver]. An error that does not prove that the transaction was
// rolled back is a [dbms.ErrUnknownCommit].
func (u untyped[TX]) Commit(ctx context.Context, tx Tx) error {
	if err := ctx.Err(); err != nil { // COMMIT is not sent, so this is certain
		_ = u.Rollback(ctx, tx) // err is more useful
		return err
	}
	return dbms.Committed(u.d.Commit(ctx, User[TX](tx)))
}

func (u untyped[TX]) Rollback(ctx context.Context, tx Tx) error {
	return u.d.Rollback(ctx, User[TX](tx))
}

// keeper and churner are the optional methods of a driver; see [database.Driver].
type (
	keeper interface {
		Keep(ctx context.Context, logger *slog.Logger)
	}
	churner interface{ Churns() bool }
	limited interface{ Limit() int }
)

// Keep implements keeper.
func (u untyped[TX]) Keep(ctx context.Context, logger *slog.Logger) {
	if pool, ok := u.d.(keeper); ok {
		pool.Keep(ctx, logger)
	}
}

// Limit implements limited.
func (u untyped[TX]) Limit() int {
	if pool, ok := u.d.(limited); ok {
		return pool.Limit()
	}
	return 0
}

// Churns implements churner.
func (u untyped[TX]) Churns() bool {
	pool, ok := u.d.(churner)
	return ok && pool.Churns()
}
