// Package sqlstore keeps the events of a [webhook.Receiver] in a PostgreSQL or
// SQLite database, through [database/sql] and a driver of your choice. Several
// processes may share it.
//
//	store := sqlstore.New(db, sqlstore.Postgres) // db comes from sql.Open("pgx", …)
//	if err := store.Migrate(ctx); err != nil {
//		return nil, err
//	}
//	rx, err := webhook.New(webhook.Config{Keys: keys, Account: "shop", Store: store, Mode: webhook.Inbox})
//	if err != nil {
//		return nil, err
//	}
//
// The receivers of several accounts at the gateway may share a table: each sees
// only the events of its own account. See [Store.For].
//
// [HandleTx] runs a handler in the transaction that completes its event, so
// its writes to this database happen exactly once.
//
// By default [sql.DB] keeps two idle connections, too few for a receiver with 8
// workers. Set the limit to the receiver's Workers + 4 or more, with
// SetMaxIdleConns. If connections are closed and opened all the time, the store
// raises the limit (to 64 at most) and logs a warning, once.
//
// The store works with every default isolation level, and its commits wait for
// the disk even if synchronous_commit is off. Behind a connection pooler in
// transaction mode, such as PgBouncer, the driver must not use prepared
// statements: with pgx, add default_query_exec_mode=exec to the connection
// string.
//
// SQLite allows one writer at a time: open it with a busy timeout and
// write-ahead logging. With the driver modernc.org/sqlite the DSN is
// "file:events.db?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)". Use v1.41.0
// or later: with earlier versions a connection whose query was interrupted, because a
// context ended, may keep the write lock until the process ends.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/webhook"
)

// Dialect is the SQL dialect of a database.
type Dialect uint8

// The dialects.
const (
	Postgres Dialect = iota + 1 // 11 or later
	SQLite                      // 3.35 or later
)

// DefaultTable is the name of the table of events without [WithTable].
const DefaultTable = "gateway_webhook_events"

// defaultRetention is how long completed events are remembered without
// [WithRetention]. The gateway is assumed to stop redelivering after a day;
// the margin covers deliveries that are resent manually.
const defaultRetention = 90 * 24 * time.Hour

// Store keeps events in a database. It implements [webhook.Store].
type Store struct {
	db        *sql.DB
	dialect   Dialect
	table     string
	retention time.Duration
	err       error // invalid arguments of New, returned by every method
	expiries  pace  // of checks for expired leases
	clock     clock
	frontier  frontier
	logger    *slog.Logger
	shared    *shared

	account gateway.Account // the zero Account stands for the only one
	opening chan struct{}   // has an element while the account is being opened
	opened  atomic.Bool
	q       queries // for the rows of the account; set when it is opened, like puts
	puts    *batches[webhook.Record, webhook.Entry]
}

// shared is what the Stores of all accounts have in common.
type shared struct {
	q     queries // of no account; those that have a token as an argument are for all accounts
	idle  dbms.Idle
	build func() (*debug.BuildInfo, bool)
	puts  chan struct{} // has an element for each delivery that is being stored

	alone               chan struct{} // see batches
	completed, released *batches[*webhook.Claim, struct{}]

	mu    sync.Mutex
	views map[gateway.Account]*Store
}

var _ webhook.Store = (*Store)(nil)

// Option configures a [Store].
type Option func(*Store)

// WithTable sets the table's name: lower-case letters, digits and underscores,
// optionally preceded by a schema and a dot.
func WithTable(name string) Option { return func(s *Store) { s.table = name } }

// WithRetention sets how long completed events are remembered and unhandled
// events are kept; default 90 days. The minimum is [webhook.MinRetention].
func WithRetention(d time.Duration) Option { return func(s *Store) { s.retention = d } }

// WithLogger sets the logger of the warnings about a pool that keeps too few
// idle connections and about the version of the SQLite driver; default [slog.Default].
func WithLogger(logger *slog.Logger) Option { return func(s *Store) { s.logger = logger } }

var tableName = regexp.MustCompile(`^([a-z_][a-z0-9_]{0,30}\.)?[a-z_][a-z0-9_]{0,40}$`)

// New returns a store in db, which the caller must close. The table must
// exist: see [Store.Migrate]. If an argument is invalid, every method returns
// an error.
func New(db *sql.DB, dialect Dialect, opts ...Option) *Store {
	s := &Store{
		db: db, dialect: dialect, table: DefaultTable, retention: defaultRetention, frontier: frontier{names: "[]"}, opening: make(chan struct{}, 1),
		shared: &shared{build: debug.ReadBuildInfo, puts: make(chan struct{}, maxPuts), alone: make(chan struct{}, maxAlone), views: make(map[gateway.Account]*Store)},
	}
	for _, o := range opts {
		o(s)
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	switch {
	case db == nil:
		s.err = errors.New("sqlstore: the database is nil")
	case dialect != Postgres && dialect != SQLite:
		s.err = errors.New("sqlstore: unknown Dialect")
	case !tableName.MatchString(s.table):
		s.err = fmt.Errorf("sqlstore: %q is not a valid table name: use lower-case letters, digits and underscores", s.table)
	case s.retention < webhook.MinRetention:
		s.err = fmt.Errorf("sqlstore: WithRetention(%v) is shorter than %v: the gateway redelivers for 24 hours, and an event that is forgotten "+
			"earlier would be handled twice", s.retention, webhook.MinRetention)
	default:
		s.q = newQueries(dialect, s.table, "")
	}
	s.shared.q, s.puts = s.q, s.newPuts()
	s.shared.completed = s.newSettled(s.q.complete, s.q.completeAll)
	s.shared.released = s.newSettled(s.q.release, s.q.releaseAll)
	return s
}

// Table returns the table's name.
func (s *Store) Table() string { return s.table }

// Durable reports true.
func (s *Store) Durable() bool { return true }

// HandleTx returns a handler that runs fn in the database transaction that
// completes the event. Either both are committed or neither is, so writes that
// fn makes through tx happen exactly once, even if a process crashes.
//
//	webhook.OnTransaction(rx, webhook.TransactionPaid,
//		sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.TransactionEvent) error {
//			res, err := tx.ExecContext(ctx, `UPDATE orders SET state = CASE state WHEN 'new' THEN 'paid' ELSE state END
//				WHERE ref = $1 AND amount = $2 AND currency = $3`,
//				e.CorrelationID, e.Data.Charged(), string(e.Data.Currency))
//			return changedOne(res, err)
//		}))
//
// Write changedOne yourself: it must return an error if RowsAffected is 0. An
// UPDATE that matches no row is not an error in SQL, so without the check the
// event would be completed and the payment lost.
//
// E is the event type of the registering function. fn must not commit or roll
// back tx. Effects outside tx are repeated if the transaction fails.
//
// On PostgreSQL tx has the default isolation of the session. If it is stricter
// than read committed, a conflict with another transaction (SQLSTATE 40001) is
// an error of fn or of the commit, and the receiver repeats the event after
// its Backoff.
//
// fn must access this database through tx alone. On SQLite tx holds the only
// write lock, so a write through the [sql.DB] waits until the busy timeout ends
// and fails, and so does every other event while fn waits for a call to the
// gateway. Make such a call first, in a handler that wraps the one returned here.
func HandleTx[E any](s *Store, fn func(ctx context.Context, tx *sql.Tx, e E) error) func(ctx context.Context, e E) error {
	return func(ctx context.Context, e E) error {
		claim, ok := webhook.ClaimFromContext(ctx)
		if !ok {
			return errors.New("sqlstore: HandleTx must be called with the context of a webhook handler")
		}
		return s.handleTx(ctx, claim, func(tx *sql.Tx) error { return fn(ctx, tx, e) })
	}
}

// handleTx completes the event first. That locks the event's row, so no other
// process takes it over while fn runs; on SQLite the write also takes the
// write lock before fn reads, so fn's snapshot can't become stale.
func (s *Store) handleTx(ctx context.Context, c *webhook.Claim, fn func(*sql.Tx) error) error {
	if s.err != nil {
		return s.err
	}
	tx, err := s.begin(ctx, func(tx *sql.Tx) error { return s.CompleteTx(ctx, tx, c) })
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no-op after a commit
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("sqlstore: the handler's transaction was not committed: %w", err)
	}
	c.Completed = true
	return nil
}

// affectsOne returns ErrClaimLost if an update matched no row, because the
// claim's token is no longer valid.
func affectsOne(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n != 1 {
		err = webhook.ErrClaimLost
	}
	return err
}
