package operations

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gateway-go/gateway/operations"
)

// driver is the operations.Driver for pgx.
type driver struct{ pool *pgxpool.Pool }

// Dialect implements operations.Driver.
func (driver) Dialect() operations.Dialect { return operations.DialectPostgres }

// Check implements operations.Driver.
func (driver) Check(context.Context) error { return nil }

// Begin implements operations.Driver.
func (d driver) Begin(ctx context.Context, level sql.IsolationLevel) (pgx.Tx, error) {
	var options pgx.TxOptions
	if level == sql.LevelReadCommitted {
		options.IsoLevel = pgx.ReadCommitted
	}
	return d.pool.BeginTx(ctx, options)
}

// Commit implements operations.Driver.
func (driver) Commit(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }

// Rollback implements operations.Driver.
func (driver) Rollback(ctx context.Context, tx pgx.Tx) error {
	if err := tx.Rollback(ctx); !errors.Is(err, pgx.ErrTxClosed) {
		return err
	}
	return nil
}

// In implements operations.Driver.
func (driver) In(tx pgx.Tx) operations.Conn { return conn{tx} }

// Conn implements operations.Driver.
func (d driver) Conn() operations.Conn { return conn{d.pool} }

// conn runs statements on a pool or in a transaction.
type conn struct {
	db interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}
}

// Exec implements operations.Conn.
func (c conn) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	tag, err := c.db.Exec(ctx, statement, args...)
	return tag.RowsAffected(), err
}

// Query implements operations.Conn.
func (c conn) Query(ctx context.Context, query string, args []any, row func(operations.Scanner) error) error {
	rows, err := c.db.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
