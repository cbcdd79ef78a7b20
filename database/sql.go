package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/gateway-go/gateway/internal/dbms"
)

// SQLite returns a driver for a SQLite database, which the processes of one machine
// may share. db must be a file with several connections, opened with write-ahead
// logging, a busy timeout, synchronous FULL, and transactions that begin with the
// write lock. With the driver modernc.org/sqlite, the data source name is
//
//	file:shop.db?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)
//
// A package that is opened on it returns an error that names a setting that is missing.
// Begin your own transactions with a context that does not end during them
// ([context.WithoutCancel]): modernc.org/sqlite before v1.41.0 may otherwise return a
// connection to the pool that still has the write lock, and no one can write until
// the process ends. The packages do so themselves.
func SQLite(db *sql.DB) Driver[*sql.Tx] {
	return &sqlDriver{db: db, dialect: DialectSQLite, writing: make(chan struct{}, 1)}
}

// Postgres returns a driver for a PostgreSQL database, which any number of
// processes may share. Any driver of database/sql and any default isolation level will
// do. Behind a connection pooler in transaction mode, it must not use prepared
// statements: with pgx, add default_query_exec_mode=exec to the connection string.
func Postgres(db *sql.DB) Driver[*sql.Tx] { return &sqlDriver{db: db, dialect: DialectPostgres} }

type sqlDriver struct {
	db      *sql.DB
	dialect Dialect
	idle    dbms.Idle

	// SQLite has one writer at a time, and who waits for it gets no turn: writers try
	// again and again until the busy timeout. So the workers of a process queue here,
	// and only the first one tries.
	writing chan struct{}         // has an element during a transaction
	writer  atomic.Pointer[write] // that transaction
}

// write is a transaction of SQLite. stop keeps it from being rolled back.
type write struct {
	tx   *sql.Tx
	stop func() bool
}

// Dialect implements [Driver].
func (d *sqlDriver) Dialect() Dialect { return d.dialect }

// Begin implements [Driver].
func (d *sqlDriver) Begin(ctx context.Context, level sql.IsolationLevel) (*sql.Tx, error) {
	if d.db == nil {
		return nil, errNil
	}
	if d.dialect == DialectPostgres {
		return d.db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	}
	select {
	case d.writing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	tx, err := d.db.BeginTx(uninterrupted(ctx), nil)
	if err != nil {
		<-d.writing
		return nil, err
	}
	// The transaction ends with the context, between its statements: a handler that hangs
	// must not keep the only lock.
	w := &write{tx: tx}
	w.stop = context.AfterFunc(ctx, func() { _ = d.Rollback(ctx, tx) })
	d.writer.Store(w)
	return tx, nil
}

// end lets the next worker write, once for a transaction.
func (d *sqlDriver) end(tx *sql.Tx) {
	if w := d.writer.Load(); w != nil && w.tx == tx && d.writer.CompareAndSwap(w, nil) {
		w.stop()
		<-d.writing
	}
}

// Commit implements [Driver].
func (d *sqlDriver) Commit(_ context.Context, tx *sql.Tx) error {
	defer d.end(tx)
	return tx.Commit()
}

// Rollback implements [Driver].
func (d *sqlDriver) Rollback(_ context.Context, tx *sql.Tx) error {
	defer d.end(tx)
	return tx.Rollback()
}

// In implements [Driver].
func (d *sqlDriver) In(tx *sql.Tx) Conn { return sqlConn{tx, d.dialect} }

// Conn implements [Driver].
func (d *sqlDriver) Conn() Conn {
	if d.db == nil {
		return nilConn{}
	}
	if d.dialect == DialectSQLite {
		return poolConn{d.db}
	}
	return sqlConn{d.db, d.dialect}
}

// poolConn runs statements of SQLite on connections of a pool. It waits for a connection
// until the context ends: the statements themselves are not interrupted.
type poolConn struct{ db *sql.DB }

// Exec implements [Conn].
func (p poolConn) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	c, err := p.db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }() // back to the pool
	return sqlConn{c, DialectSQLite}.Exec(ctx, statement, args...)
}

// Query implements [Conn].
func (p poolConn) Query(ctx context.Context, query string, args []any, row func(Scanner) error) error {
	c, err := p.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // back to the pool
	return sqlConn{c, DialectSQLite}.Query(ctx, query, args, row)
}

// errNil is the error for a driver of a nil [sql.DB]. Its users are created without an error
// of their own.
var errNil = errors.New("the database is nil")

type nilConn struct{}

func (nilConn) Exec(context.Context, string, ...any) (int64, error)             { return 0, errNil }
func (nilConn) Query(context.Context, string, []any, func(Scanner) error) error { return errNil }

// Keep keeps the connections of the workers open; [sql.DB] keeps two by default. See
// [Driver].
func (d *sqlDriver) Keep(ctx context.Context, logger *slog.Logger) {
	if d.db == nil {
		return
	}
	if limit, first := d.idle.Keep(d.db); first {
		logger.WarnContext(ctx, "gateway: the pool kept too few idle connections and opened new ones all the time; the "+
			"limit was raised. Set it where you open the database, to the number of workers + 4 or more",
			slog.String("call", fmt.Sprintf("db.SetMaxIdleConns(%d)", limit)))
	}
}

// Limit returns how many connections the pool opens at most, 0 if there is no limit. See
// [Driver].
func (d *sqlDriver) Limit() int {
	if d.db == nil {
		return 0
	}
	return d.db.Stats().MaxOpenConnections
}

// Churns reports whether the pool has closed idle connections. See [Driver].
func (d *sqlDriver) Churns() bool { return d.db != nil && d.db.Stats().MaxIdleClosed > 0 }

// sqlConn runs statements on a [sql.DB] or [sql.Conn] or in a [sql.Tx].
type sqlConn struct {
	db interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
	dialect Dialect
}

// context returns the context of a statement.
func (c sqlConn) context(ctx context.Context) context.Context {
	if c.dialect == DialectSQLite {
		return uninterrupted(ctx)
	}
	return ctx
}

// uninterrupted returns the context of a statement of SQLite, which the busy timeout
// ends. If a context interrupts one, modernc.org/sqlite may return the connection to
// the pool with its transaction, and so with the write lock.
func uninterrupted(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// Exec implements [Conn].
func (c sqlConn) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	result, err := c.db.ExecContext(c.context(ctx), statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Query implements [Conn].
func (c sqlConn) Query(ctx context.Context, query string, args []any, row func(Scanner) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	rows, err := c.db.QueryContext(c.context(ctx), query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the errors that matter
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
