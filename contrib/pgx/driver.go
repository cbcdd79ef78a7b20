// Package pgxdriver is the driver of the packages operations and merchant for pgx: they use
// your [pgxpool.Pool], and their methods that end with Tx take your [pgx.Tx].
//
//	outbox, err := operations.New(pgxdriver.New(pool), config)
//	m, err := merchant.Open(ctx, pgxdriver.New(pool), config, merchant.Callbacks[pgx.Tx]{Goods: goods})
//
// All modes of executing queries work: cache_statement, cache_describe, describe_exec, exec
// and simple_protocol. Behind a connection pooler in transaction mode, such as PgBouncer,
// cache_statement (pgx's default) and describe_exec don't: use exec. The packages return an
// error that says so when they are opened.
package pgxdriver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
)

// rollbackTimeout is how long a rollback may take. Then its connection is closed, which
// rolls back too.
const rollbackTimeout = 5 * time.Second

// New returns a driver for a pool, which needs two connections or more. Your transactions
// may be of this pool or of any other connection to the same database; one of [pgx.Tx.Begin]
// is a savepoint, and what is stored in it is rolled back with it.
//
// A transaction of the driver runs several statements in one round trip, if the package that
// uses it sends them together; see [database.Batcher].
func New(pool *pgxpool.Pool) database.Driver[pgx.Tx] { return driver{pool} }

type driver struct{ pool *pgxpool.Pool }

// Dialect implements [database.Driver].
func (driver) Dialect() database.Dialect { return database.DialectPostgres }

// Check implements [database.Driver].
func (d driver) Check(ctx context.Context) error {
	switch {
	case d.pool == nil:
		return errors.New("the pool is nil")
	case d.pool.Config().MaxConns == 1:
		return errors.New("the pool has one connection, so that a handler that uses the pool beside its transaction " +
			"waits for itself: allow several, with pool_max_conns in the connection string or MaxConns of pgxpool.Config")
	}
	// It lends connections of the pool, and keeps none.
	db := stdlib.OpenDBFromPool(d.pool)
	defer func() { _ = db.Close() }()
	return dbms.CheckPooler(ctx, db)
}

// Begin implements [database.Driver].
func (d driver) Begin(ctx context.Context, level sql.IsolationLevel) (pgx.Tx, error) {
	var options pgx.TxOptions
	switch level {
	case sql.LevelDefault:
	case sql.LevelReadCommitted:
		options.IsoLevel = pgx.ReadCommitted
	default:
		return nil, fmt.Errorf("the driver has no isolation level %s", level)
	}
	return d.pool.BeginTx(ctx, options)
}

// Commit implements [database.Driver].
func (driver) Commit(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }

// Rollback implements [database.Driver]. It also works if ctx has ended: otherwise each
// transaction that is rolled back for this reason would cost its connection.
func (driver) Rollback(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if err := tx.Rollback(ctx); !errors.Is(err, pgx.ErrTxClosed) {
		return err
	}
	return nil
}

// In implements [database.Driver].
func (driver) In(tx pgx.Tx) database.Conn { return txConn{conn{tx}, tx} }

// Conn implements [database.Driver]. What it returns is no [database.Batcher]: PostgreSQL runs
// a batch without a transaction as one, and would roll back the first statements if a later
// one fails.
func (d driver) Conn() database.Conn { return conn{d.pool} }

// Limit returns how many connections the pool opens at most; see [database.Driver].
func (d driver) Limit() int {
	if d.pool == nil {
		return 0
	}
	return int(d.pool.Config().MaxConns)
}

// conn runs statements on a pool or in a transaction.
type conn struct {
	db interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}
}

// Exec implements [database.Conn].
func (c conn) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	tag, err := c.db.Exec(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return tag.RowsAffected(), nil
}

// Query implements [database.Conn].
func (c conn) Query(ctx context.Context, query string, args []any, row func(database.Scanner) error) error {
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

// txConn is a [conn] in a transaction.
type txConn struct {
	conn

	tx pgx.Tx
}

// Batch implements [database.Batcher].
func (c txConn) Batch(ctx context.Context, statements []database.Statement) (changed []int64, err error) {
	var batch pgx.Batch
	for _, s := range statements {
		batch.Queue(s.SQL, s.Args...)
	}
	results := c.tx.SendBatch(ctx, &batch)
	defer func() {
		if closed := results.Close(); err == nil {
			err = closed
		}
	}()
	for i := range statements {
		tag, err := results.Exec()
		if err != nil {
			return changed, fmt.Errorf("statement %d of %d: %w", i+1, len(statements), err)
		}
		changed = append(changed, tag.RowsAffected())
	}
	return changed, nil
}
