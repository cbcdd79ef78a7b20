// Package operations_test runs the outbox on each of its engines.
package operations_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/gateway-go/gateway"
	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	riveroperations "github.com/gateway-go/gateway/contrib/river/operations"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/operations"
)

var quiet = slog.New(slog.DiscardHandler)

// engine is a way to run an outbox, by its name.
type engine string

const (
	onRiver    engine = "River with pgx"
	onPostgres engine = "polling on PostgreSQL"
	onPgx      engine = "polling with pgx"
	onSQLite   engine = "polling on SQLite"
)

// all are the engines that a run tests. With SAMPLE, as in .ci/run, PostgreSQL is polled by
// database/sql or by pgx.
func all() []engine {
	switch n, err := strconv.Atoi(os.Getenv("SAMPLE")); {
	case err != nil:
		return []engine{onRiver, onPostgres, onPgx, onSQLite}
	case n%2 == 0:
		return []engine{onRiver, onPostgres, onSQLite}
	default:
		return []engine{onRiver, onPgx, onSQLite}
	}
}

// each runs a test on engines, on [all] if none is named.
func each(t *testing.T, test func(t *testing.T, e engine), engines ...engine) {
	t.Helper()
	if engines == nil {
		engines = all()
	}
	for _, e := range engines {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// create creates a database and returns its data source name. PostgreSQL's is a
// schema of its own.
func (e engine) create(t *testing.T) string {
	t.Helper()
	if e == onSQLite {
		return sqliteName(filepath.Join(t.TempDir(), "shop.db"))
	}
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		t.Skip("DATABASE_URL is not set: run ../with-postgres go test ./operations")
	}
	schema := "t_" + strings.ToLower(rand.Text()[:16])
	admin, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = admin.Exec(t.Context(), `CREATE SCHEMA `+schema)
	require.NoError(t, err)
	require.NoError(t, admin.Close(t.Context()))
	return url + "&search_path=" + schema
}

// sqliteName is the data source name of the guide.
func sqliteName(file string) string {
	return "file:" + file + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
}

// connect opens a database with a default pool.
func (e engine) connect(name string) (*sql.DB, error) {
	if e == onSQLite {
		return sql.Open("sqlite", name)
	}
	return sql.Open("pgx", name)
}

// sql returns a statement with the engine's parameters.
func (e engine) sql(text string) string {
	if e == onSQLite {
		return text
	}
	return dbms.Numbered(text)
}

// migrate creates the tables of River and of the handlers: one row for each run of a
// handler, without a unique constraint, since only the outbox prevents a second row
// for an operation.
func (e engine) migrate(t *testing.T, name string) {
	t.Helper()
	db, err := e.connect(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), `CREATE TABLE results (kind text NOT NULL, key text NOT NULL, error text NOT NULL, value text NOT NULL, account text NOT NULL)`)
	require.NoError(t, err)
	if e != onRiver {
		return
	}
	pool, err := pgxpool.New(t.Context(), name)
	require.NoError(t, err)
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet})
	require.NoError(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(t, err)
}

// outbox is an outbox whatever the type of its transactions is.
type outbox interface {
	Migrate(ctx context.Context) error
	List(ctx context.Context, q operations.Query) ([]*operations.Entry, error)
	Counts(ctx context.Context) (map[operations.State]int64, error)
	Resolve(ctx context.Context, id int64, d operations.Resolution) error
	Retry(ctx context.Context, id int64) error
	Purge(ctx context.Context, before time.Time) (int64, error)

	// insert inserts operations in one transaction, which fails with the error of
	// then.
	insert(ctx context.Context, ops []operations.Operation, then func() error) ([]*operations.Entry, error)
	// find inserts operations in a transaction, looks for one in it, and then commits,
	// or rolls back for an error.
	find(ctx context.Context, ops []operations.Operation, kind, key string, then ...error) (*operations.Entry, error)
	cancel(ctx context.Context, id int64) error

	// handle registers handlers that write their results, and then call after with
	// them before the commit.
	handle(after func(entry *operations.Entry, err error) error)
}

// in is an [outbox] with transactions of the type TX.
type in[TX any] struct {
	*operations.Outbox[TX]

	begin func(ctx context.Context, run func(TX) error) error
	exec  func(ctx context.Context, tx TX, args ...any) error // inserts a result
}

func (o *in[TX]) insert(ctx context.Context, ops []operations.Operation, then func() error) (entries []*operations.Entry, err error) {
	return entries, o.begin(ctx, func(tx TX) error {
		for _, op := range ops {
			e, err := o.InsertTx(ctx, tx, op)
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		if then != nil {
			return then()
		}
		return nil
	})
}

func (o *in[TX]) find(ctx context.Context, ops []operations.Operation, kind, key string, then ...error) (found *operations.Entry, err error) {
	return found, o.begin(ctx, func(tx TX) error {
		for _, op := range ops {
			if _, err := o.InsertTx(ctx, tx, op); err != nil {
				return err
			}
		}
		var err error
		if found, err = o.FindTx(ctx, tx, kind, key); err != nil {
			return err
		}
		return errors.Join(then...)
	})
}

func (o *in[TX]) cancel(ctx context.Context, id int64) error {
	return o.begin(ctx, func(tx TX) error { return o.CancelTx(ctx, tx, id) })
}

func (o *in[TX]) handle(after func(entry *operations.Entry, err error) error) {
	write(o, after, func(r operations.TransactionResult) string { return r.Value.ID })
	write(o, after, func(r operations.RefundResult) string { return fmt.Sprint(r.Value.AmountRefunded) })
	write(o, after, func(r operations.TransferResult) string { return r.Value.ID })
	write(o, after, func(r operations.CancelTransferResult) string { return string(r.Value.Status) })
	write(o, after, func(r operations.CustomerResult) string { return r.Value.ID })
	write(o, after, func(r operations.SubscriptionResult) string { return r.Value.ID })
	write(o, after, func(r operations.UpdateSubscriptionResult) string { return string(r.Value.FailurePolicy) })
	write(o, after, func(r operations.CancelSubscriptionResult) string { return string(r.Value.Status) })
}

func write[O operations.Returning[R], R, TX any](o *in[TX], after func(*operations.Entry, error) error, value func(operations.Result[O, R]) string) {
	operations.OnResult(o.Outbox, func(ctx context.Context, tx TX, r operations.Result[O, R]) error {
		rejection, text := "", ""
		if r.Err != nil {
			rejection = r.Err.Error()
		} else {
			text = value(r)
		}
		err := o.exec(ctx, tx, r.Entry.Kind, r.Entry.Key, rejection, text, r.Entry.Account)
		if err == nil && after != nil {
			err = after(r.Entry, r.Err)
		}
		return err
	})
}

const insertResult = `INSERT INTO results (kind, key, error, value, account) VALUES (?, ?, ?, ?, ?)`

// connected is an open database of a process.
type connected struct {
	engine

	name string
	db   *sql.DB
	pool *pgxpool.Pool // for River and pgx
}

func (e engine) open(ctx context.Context, name string) (*connected, error) {
	db, err := e.connect(name)
	if err != nil {
		return nil, err
	}
	d := &connected{engine: e, name: name, db: db}
	if e == onRiver || e == onPgx {
		d.pool, err = pgxpool.New(ctx, name)
	}
	return d, err
}

func (d *connected) close() error {
	if d.pool != nil {
		d.pool.Close()
	}
	return d.db.Close()
}

// outbox returns an outbox of an account.
func (d *connected) outbox(c operations.Config) (outbox, error) {
	switch d.engine {
	case onRiver:
		c.PollInterval = 2 * time.Second // of the sweep, which is a job
		o, err := riveroperations.New(d.pool, c)
		if err != nil {
			return nil, err
		}
		return &riverOutbox{o, in[pgx.Tx]{o.Outbox, d.beginPgx, d.insertPgx}}, nil
	case onPgx:
		o, err := operations.New(pgxdriver.New(d.pool), c)
		if err != nil {
			return nil, err
		}
		return &in[pgx.Tx]{o, d.beginPgx, d.insertPgx}, nil
	case onPostgres:
		return polled(d, database.Postgres(d.db), c)
	default:
		return polled(d, database.SQLite(d.db), c)
	}
}

// riverOutbox is an outbox that River works on.
type riverOutbox struct {
	river *riveroperations.Outbox

	in[pgx.Tx]
}

func (d *connected) beginPgx(ctx context.Context, run func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, d.pool, run)
}

func (d *connected) insertPgx(ctx context.Context, tx pgx.Tx, args ...any) error {
	_, err := tx.Exec(ctx, d.sql(insertResult), args...)
	return err
}

func polled(d *connected, driver database.Driver[*sql.Tx], c operations.Config) (outbox, error) {
	o, err := operations.New(driver, c)
	if err != nil {
		return nil, err
	}
	return &in[*sql.Tx]{o, d.beginSQL, func(ctx context.Context, tx *sql.Tx, args ...any) error {
		_, err := tx.ExecContext(ctx, d.sql(insertResult), args...)
		return err
	}}, nil
}

func (d *connected) beginSQL(ctx context.Context, run func(*sql.Tx) error) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no-op after a commit
	if err := run(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// work works on the operations of outboxes until ctx ends.
func (d *connected) work(ctx context.Context, outboxes ...outbox) error {
	if d.engine == onRiver {
		return d.workRiver(ctx, outboxes)
	}
	failed := make(chan error, len(outboxes))
	var running sync.WaitGroup
	for _, o := range outboxes {
		running.Go(func() {
			failed <- o.(interface {
				Run(ctx context.Context) error
			}).Run(ctx)
		})
	}
	running.Wait()
	for range outboxes {
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

func (d *connected) workRiver(ctx context.Context, outboxes []outbox) error {
	config := &river.Config{Logger: quiet, TestOnly: true, FetchCooldown: 5 * time.Millisecond, FetchPollInterval: 100 * time.Millisecond}
	for _, o := range outboxes {
		if err := o.(*riverOutbox).river.Configure(config); err != nil {
			return err
		}
	}
	client, err := river.NewClient(riverpgxv5.New(d.pool), config)
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return client.Stop(end)
}

// accountSpec is an account that a process serves.
type accountSpec struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

func (a accountSpec) client(base string, opts ...gateway.Option) (*gateway.Client, error) {
	return gateway.New(base, gateway.BearerToken(a.Key), append([]gateway.Option{gateway.WithAccount(a.Name)}, opts...)...)
}
