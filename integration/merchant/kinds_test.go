package merchant_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
)

// kind is a database with the way in which the shop uses it.
type kind struct {
	name    string
	dialect database.Dialect
	native  bool // by pgx instead of database/sql
}

var (
	sqlite   = kind{"SQLite", database.DialectSQLite, false}
	postgres = kind{"PostgreSQL", database.DialectPostgres, false}
	pgxpools = kind{"pgx", database.DialectPostgres, true}
)

// kinds are those that a run tests. With SAMPLE, as in .ci/run, PostgreSQL is used by
// database/sql or by pgx.
func kinds() []kind {
	switch n, err := strconv.Atoi(os.Getenv("SAMPLE")); {
	case err != nil:
		return []kind{sqlite, postgres, pgxpools}
	case n%2 == 0:
		return []kind{sqlite, postgres}
	default:
		return []kind{sqlite, pgxpools}
	}
}

// txn is a transaction of the shop, of one of the kinds: so a test is written once.
type txn struct {
	sql *sql.Tx
	pgx pgx.Tx

	// Of a transaction that the test has begun.
	commit, rollback func() error
}

// row is a row of a query.
type row interface{ Scan(columns ...any) error }

func (t *txn) ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error) {
	if t.sql != nil {
		return t.sql.ExecContext(ctx, statement, args...)
	}
	tag, err := t.pgx.Exec(ctx, statement, args...)
	return changed(tag.RowsAffected()), err
}

func (t *txn) QueryRowContext(ctx context.Context, query string, args ...any) row {
	if t.sql != nil {
		return t.sql.QueryRowContext(ctx, query, args...)
	}
	return t.pgx.QueryRow(ctx, query, args...)
}

func (t *txn) Commit() error   { return t.commit() }
func (t *txn) Rollback() error { return t.rollback() }

// changed is the result of a statement.
type changed int64

func (c changed) RowsAffected() (int64, error) { return int64(c), nil }
func (c changed) LastInsertId() (int64, error) { return 0, errors.ErrUnsupported }

// shopDriver is a driver of transactions as the shop has them.
type shopDriver[TX any] struct {
	database.Driver[TX]

	shown func(TX) *txn
	of    func(*txn) TX
}

func ofSQL(d database.Driver[*sql.Tx]) database.Driver[*txn] {
	return shopDriver[*sql.Tx]{d, func(tx *sql.Tx) *txn { return &txn{sql: tx} }, func(t *txn) *sql.Tx { return t.sql }}
}

func ofPgx(d database.Driver[pgx.Tx]) database.Driver[*txn] {
	return shopDriver[pgx.Tx]{d, func(tx pgx.Tx) *txn { return &txn{pgx: tx} }, func(t *txn) pgx.Tx { return t.pgx }}
}

func (d shopDriver[TX]) Begin(ctx context.Context, level sql.IsolationLevel) (*txn, error) {
	tx, err := d.Driver.Begin(ctx, level)
	if err != nil {
		return nil, err
	}
	return d.shown(tx), nil
}

func (d shopDriver[TX]) Commit(ctx context.Context, tx *txn) error {
	return d.Driver.Commit(ctx, d.of(tx))
}

func (d shopDriver[TX]) Rollback(ctx context.Context, tx *txn) error {
	return d.Driver.Rollback(ctx, d.of(tx))
}
func (d shopDriver[TX]) In(tx *txn) database.Conn { return d.Driver.In(d.of(tx)) }

// Keep forwards the optional method.
func (d shopDriver[TX]) Keep(ctx context.Context, logger *slog.Logger) {
	if pool, ok := d.Driver.(interface {
		Keep(ctx context.Context, logger *slog.Logger)
	}); ok {
		pool.Keep(ctx, logger)
	}
}

// Limit forwards the optional method.
func (d shopDriver[TX]) Limit() int {
	if pool, ok := d.Driver.(interface{ Limit() int }); ok {
		return pool.Limit()
	}
	return 0
}

// kindNamed returns the kind with a name.
func kindNamed(name string) kind {
	for _, k := range []kind{sqlite, postgres, pgxpools} {
		if k.name == name {
			return k
		}
	}
	return kind{}
}

// connect opens a database with a default pool.
func (k kind) connect(ctx context.Context, name string) (*sql.DB, *pgxpool.Pool, error) {
	if !k.native {
		db, err := sql.Open(driverName(k.dialect), name)
		return db, nil, err
	}
	pool, err := pgxpool.New(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	return stdlib.OpenDBFromPool(pool), pool, nil
}

// on returns the driver of a database.
func (k kind) on(db *sql.DB, pool *pgxpool.Pool) database.Driver[*txn] {
	switch {
	case pool != nil:
		return ofPgx(pgxdriver.New(pool))
	case k.dialect == database.DialectSQLite:
		return ofSQL(database.SQLite(db))
	default:
		return ofSQL(database.Postgres(db))
	}
}

// begin begins a transaction of the shop.
func (w *world) begin(ctx context.Context, db *sql.DB, options *sql.TxOptions) (*txn, error) {
	return begin(ctx, db, w.pools[db], options)
}

func begin(ctx context.Context, db *sql.DB, pool *pgxpool.Pool, options *sql.TxOptions) (*txn, error) {
	if pool != nil {
		var o pgx.TxOptions
		if options != nil && options.Isolation != sql.LevelDefault {
			o.IsoLevel = pgx.TxIsoLevel(strings.ToLower(options.Isolation.String()))
		}
		tx, err := pool.BeginTx(ctx, o)
		if err != nil {
			return nil, err
		}
		return &txn{pgx: tx, commit: func() error { return tx.Commit(ctx) }, rollback: func() error {
			if err := tx.Rollback(ctx); !errors.Is(err, pgx.ErrTxClosed) {
				return err
			}
			return nil
		}}, nil
	}
	tx, err := db.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return &txn{sql: tx, commit: tx.Commit, rollback: tx.Rollback}, nil
}

// openOn opens the merchant's side on a database, as a process does.
func (w *world) openOn(db *sql.DB, cfg merchant.Config) (*merchant.Merchant[*txn], error) {
	driver := w.kind.on(db, w.pools[db])
	if tap := w.taps[db]; tap != nil {
		driver = tap.on(w.kind)
	}
	return merchant.Open(w.Context(), driver, cfg, w.on)
}

// close closes a database.
func (w *world) close(db *sql.DB) {
	w.Helper()
	require.NoError(w, db.Close())
	if pool := w.pools[db]; pool != nil {
		pool.Close()
	}
}

// connect opens the database with a default pool.
func (w *world) connect() *sql.DB {
	w.Helper()
	db, pool, err := w.kind.connect(context.WithoutCancel(w.Context()), w.name)
	require.NoError(w, err)
	w.pools[db] = pool
	w.Cleanup(func() { w.close(db) })
	return db
}
