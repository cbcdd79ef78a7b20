// Package sqlstore keeps the events of a [webhook.Receiver] in a PostgreSQL or
// SQLite database, through [database/sql] and a driver of your choice. Several
// processes may share it.
//
//	store := sqlstore.New(db, sqlstore.Postgres) // db is of sql.Open("pgx", …)
//	if err := store.Migrate(ctx); err != nil {
//		return nil, err
//	}
//	rx, err := webhook.New(webhook.Config{Keys: keys, Store: store, Mode: webhook.Inbox})
//	if err != nil {
//		return nil, err
//	}
//
// [HandleTx] runs a handler in the transaction that makes its event done, so
// that what it writes to this database is written exactly once.
//
// SQLite allows one writer at a time: open it with a busy timeout and the write
// ahead log, in the driver modernc.org/sqlite with
// "file:events.db?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)".
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/gateway-go/gateway/webhook"
)

// Dialect is the kind of a database.
type Dialect uint8

// The dialects.
const (
	Postgres Dialect = iota + 1 // 11 or later
	SQLite                      // 3.35 or later
)

// DefaultTable is the table of events, where [WithTable] does not name another.
const DefaultTable = "gateway_webhook_events"

// DefaultRetention is how long done events are remembered, where
// [WithRetention] does not say otherwise. The gateway gives up a delivery
// after a day; the rest is for those who send old ones again.
const DefaultRetention = 90 * 24 * time.Hour

// Store keeps events in a database. It implements [webhook.Store].
type Store struct {
	db        *sql.DB
	dialect   Dialect
	table     string
	retention time.Duration
	err       error // of New's arguments, returned by every method
	q         queries
	expiries  pace // of looking for leases that have run out
	clock     clock
	frontier  frontier
}

var _ webhook.Store = (*Store)(nil)

// Option changes a [Store].
type Option func(*Store)

// WithTable names the table: letters, digits and underscores, after a schema
// and a dot if need be.
func WithTable(name string) Option { return func(s *Store) { s.table = name } }

// WithRetention sets how long done events are remembered, and unhandled ones are
// kept: at least [webhook.MinRetention].
func WithRetention(d time.Duration) Option { return func(s *Store) { s.retention = d } }

var tableName = regexp.MustCompile(`^([a-z_][a-z0-9_]{0,30}\.)?[a-z_][a-z0-9_]{0,40}$`)

// New returns a store in db, which stays the caller's to close. The table must
// exist: see [Store.Migrate]. A wrong argument is reported by every method.
func New(db *sql.DB, dialect Dialect, opts ...Option) *Store {
	s := &Store{db: db, dialect: dialect, table: DefaultTable, retention: DefaultRetention, frontier: frontier{names: "[]"}}
	for _, o := range opts {
		o(s)
	}
	switch {
	case db == nil:
		s.err = errors.New("sqlstore: the database is nil")
	case dialect != Postgres && dialect != SQLite:
		s.err = errors.New("sqlstore: unknown Dialect")
	case !tableName.MatchString(s.table):
		s.err = fmt.Errorf("sqlstore: %q is no table name: small letters, digits and underscores", s.table)
	case s.retention < webhook.MinRetention:
		s.err = fmt.Errorf("sqlstore: WithRetention(%v) is shorter than %v: the gateway redelivers for 24 hours, and an event that is forgotten "+
			"earlier would be handled twice", s.retention, webhook.MinRetention)
	default:
		s.q = newQueries(dialect, s.table)
	}
	return s
}

// Table returns the table's name.
func (s *Store) Table() string { return s.table }

// Durable reports true.
func (s *Store) Durable() bool { return true }

// HandleTx makes a handler of fn that shares one database transaction with the
// note that its event is done: both are written or neither is, so that what fn
// does through tx happens exactly once, whatever crashes when.
//
//	webhook.OnTransaction(rx, webhook.TransactionPaid,
//		sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.TransactionEvent) error {
//			res, err := tx.ExecContext(ctx, `UPDATE orders SET state = 'paid' WHERE ref = $1 AND amount = $2 AND currency = $3`,
//				e.CorrelationID, e.Data.Amount, string(e.Data.Currency))
//			return changedOne(res, err)
//		}))
//
// changedOne is yours: it returns an error where RowsAffected is 0. To the
// database an UPDATE of a row that does not exist yet is a success, and to HandleTx
// too: the event would be done, and the payment lost.
//
// E is an event as the registering function wants it. fn must neither commit
// nor roll back. What fn does beside tx is done again when the transaction
// fails.
func HandleTx[E any](s *Store, fn func(ctx context.Context, tx *sql.Tx, e E) error) func(ctx context.Context, e E) error {
	return func(ctx context.Context, e E) error {
		claim, ok := webhook.ClaimFromContext(ctx)
		if !ok {
			return errors.New("sqlstore: HandleTx needs the context of a receiver's handler")
		}
		return s.handleTx(ctx, claim, func(tx *sql.Tx) error { return fn(ctx, tx, e) })
	}
}

// handleTx writes the note first: it locks the event's row, so that no one
// takes the event over while fn runs, and on SQLite it is the write that keeps
// a reader's snapshot from going stale under fn.
func (s *Store) handleTx(ctx context.Context, c *webhook.Claim, fn func(*sql.Tx) error) error {
	if s.err != nil {
		return s.err
	}
	tx, err := s.begin(ctx, func(tx *sql.Tx) error { return s.CompleteTx(ctx, tx, c) })
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("sqlstore: the handler's transaction was not committed: %w", err)
	}
	c.Completed = true
	return nil
}

// affectsOne turns an update that found no row into ErrClaimLost: the token in
// its condition no longer counts.
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
