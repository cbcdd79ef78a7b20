// Package sqlstore keeps the events of a [webhook.Receiver] in a PostgreSQL or
// SQLite database; see package database. Several processes may share it.
//
//	store := sqlstore.New(database.Postgres(db)) // db comes from sql.Open("pgx", …)
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
// its writes to this database happen exactly once. With the driver of contrib/pgx
// it is a pgx.Tx.
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
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/webhook"
)

// defaultRetention is how long completed events are remembered without
// [WithRetention]. The gateway is assumed to stop redelivering after a day;
// the margin covers deliveries that are resent manually.
const defaultRetention = 90 * 24 * time.Hour

// Store keeps events in a database. It implements [webhook.Store]. TX is the type of
// the database's transactions, such as *[sql.Tx].
type Store[TX any] struct {
	*core

	driver database.Driver[TX]
}

var _ webhook.Store = (*Store[*sql.Tx])(nil)

// core is a Store without the type of its transactions.
type core struct {
	*shared

	err      error // invalid arguments of New or For, returned by every method
	expiries pace  // of checks for expired leases
	clock    clock
	frontier frontier

	account gateway.Account // the zero Account stands for the only one
	only    bool            // it does
	opening chan struct{}   // has an element while the account is being opened
	opened  atomic.Bool
	q       queries                 // for the rows of the account; set when it is opened, like puts
	reading atomic.Pointer[queries] // q for what only reads; see reads
	puts    *batches[webhook.Record, webhook.Entry]
}

// shared is what the Stores of all accounts have in common.
type shared struct {
	db        *sqldb.DB
	retention time.Duration

	// common has no account: those of its statements that have a token as an argument are for
	// all accounts. It is nil until the schema of the table is known.
	common atomic.Pointer[queries]
	places chan struct{} // has an element for each delivery that is being stored

	alone               chan struct{} // see batches
	completed, released *batches[*webhook.Claim, struct{}]

	mu    sync.Mutex
	views map[gateway.Account]*core
}

// Option configures a [Store].
type Option func(*options)

type options struct {
	location  database.Location
	retention time.Duration
	logger    *slog.Logger
}

// WithLocation says where the table gateway_webhook_events is and who creates it; see
// [database.Location].
func WithLocation(l database.Location) Option { return func(o *options) { o.location = l } }

// WithRetention sets how long completed events are remembered and unhandled
// events are kept; default 90 days. The minimum is [webhook.MinRetention].
func WithRetention(d time.Duration) Option { return func(o *options) { o.retention = d } }

// WithLogger sets the logger of the warnings about a pool that keeps too few
// idle connections and about the version of the SQLite driver; default [slog.Default].
func WithLogger(logger *slog.Logger) Option { return func(o *options) { o.logger = logger } }

// New returns a store in a database, such as [database.Postgres](db), which the caller
// must close. The table must exist: see [Store.Migrate]. If an argument is invalid,
// every method returns an error.
func New[TX any](driver database.Driver[TX], opts ...Option) *Store[TX] {
	o := options{retention: defaultRetention, logger: slog.Default()}
	for _, set := range opts {
		set(&o)
	}
	all := &shared{
		retention: o.retention, places: make(chan struct{}, maxPuts), alone: make(chan struct{}, maxAlone),
		views: make(map[gateway.Account]*core),
	}
	s := &Store[TX]{all.view(gateway.Account{}), driver}
	switch {
	case driver == nil:
		s.err = errors.New("sqlstore: the driver is nil: use database.Postgres(db) or database.SQLite(db)")
	case driver.Dialect() != database.DialectPostgres && driver.Dialect() != database.DialectSQLite:
		s.err = errors.New("sqlstore: the driver has an unknown dialect")
	case o.retention < webhook.MinRetention:
		s.err = fmt.Errorf("sqlstore: WithRetention(%v) is shorter than %v: the gateway redelivers for 24 hours, and an event that is forgotten "+
			"earlier would be handled twice", o.retention, webhook.MinRetention)
	default:
		all.db = sqldb.New(sqldb.Untyped(driver), o.location, o.logger)
		all.completed = all.newSettled(func(q *queries) (single, several string) { return q.complete, q.completeAll })
		all.released = all.newSettled(func(q *queries) (single, several string) { return q.release, q.releaseAll })
	}
	return s
}

// Durable reports true.
func (s *core) Durable() bool { return true }

// For implements [webhook.Store]. The result is a *Store with the same table and
// pool. Its first call registers the account in the database.
//
// A Store that For was not called on has the events of the table's only account, and
// returns an error while there is none or several.
func (s *Store[TX]) For(account gateway.Account) webhook.Store {
	return &Store[TX]{s.of(account), s.driver}
}

// wrap returns a user's transaction. If New had invalid arguments there may be no driver.
func (s *Store[TX]) wrap(tx TX) sqldb.Tx {
	if s.err != nil {
		return sqldb.Tx{}
	}
	return sqldb.Wrap(s.driver, tx)
}

// PutTx is [Store.Put] in your transaction, for data that must be committed
// together with the event. If it returns an error, roll back. On PostgreSQL it
// returns an error for a record with a Fact unless the isolation level of tx is
// read committed.
func (s *Store[TX]) PutTx(ctx context.Context, tx TX, rec webhook.Record) (webhook.Entry, error) {
	return s.putTx(ctx, s.wrap(tx), rec)
}

// PutDeadTx is [Store.PutDead] in your transaction.
func (s *Store[TX]) PutDeadTx(ctx context.Context, tx TX, rec webhook.Record, reason string) (webhook.Entry, error) {
	return s.putDeadTx(ctx, s.wrap(tx), rec, reason)
}

// CompleteTx ends a claim in your transaction: the event is done. Call it first: it locks
// the event, so no other process takes it over. After the commit, set the
// claim's Completed.
func (s *Store[TX]) CompleteTx(ctx context.Context, tx TX, c *webhook.Claim) error {
	return s.completeTx(ctx, s.wrap(tx), c)
}

// RequeueTx is [Store.Requeue] of one event in your transaction. It reports
// whether the event was a dead letter.
func (s *Store[TX]) RequeueTx(ctx context.Context, tx TX, key string) (bool, error) {
	return s.requeueTx(ctx, s.wrap(tx), key)
}

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
// TX is the type of the driver's transactions, and E the event type of the
// registering function. fn must not commit or roll
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
func HandleTx[TX, E any](s *Store[TX], fn func(ctx context.Context, tx TX, e E) error) func(ctx context.Context, e E) error {
	return func(ctx context.Context, e E) error {
		claim, ok := webhook.ClaimFromContext(ctx)
		if !ok {
			return errors.New("sqlstore: HandleTx must be called with the context of a webhook handler")
		}
		return s.handleTx(ctx, claim, func(tx sqldb.Tx) error { return fn(ctx, sqldb.User[TX](tx), e) })
	}
}

// handleTx completes the event first. That locks the event's row, so no other
// process takes it over while fn runs; on SQLite the write also takes the
// write lock before fn reads, so fn's snapshot can't become stale.
func (s *core) handleTx(ctx context.Context, c *webhook.Claim, fn func(sqldb.Tx) error) error {
	if err := s.find(ctx); err != nil {
		return err
	}
	handled := false
	err := s.db.UserTx(ctx, func(tx sqldb.Tx) error { return s.completeTx(ctx, tx, c) }, func(tx sqldb.Tx) error {
		err := fn(tx)
		handled = err == nil
		return err
	})
	switch {
	case err == nil:
		c.Completed = true
	case handled:
		err = fmt.Errorf("sqlstore: the handler's transaction was not committed: %w", err)
	}
	return err
}

// affectsOne returns ErrClaimLost if an update matched no row, because the
// claim's token is no longer valid.
func affectsOne(n int64, err error) error {
	if err == nil && n != 1 {
		err = webhook.ErrClaimLost
	}
	return err
}
