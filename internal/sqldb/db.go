// Package sqldb runs the statements of the packages that keep tables in a merchant's
// database: operations, webhook/sqlstore and merchant. It has what they share: the words in
// which PostgreSQL and SQLite differ, transactions that are repeated after a conflict, the
// schema and the accounts.
package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
)

// DB runs statements on the tables of one schema. All times in them are Unix milliseconds of
// the database's clock, so the clocks of the processes need not agree.
//
// Statements have "?" for parameters and these words, which [DB.dialect] defines for each
// dialect. Packages may replace words of their own first.
//
//	{s}      the schema and a dot, before the name of a table
//	{now}    the time at which the statement began
//	{clock}  the time at which a row is read, after waiting for its lock
//	{lock}   locks the rows of a SELECT until the transaction ends
//	{skip}   locks them, and leaves out those that another session has locked
//	{json}   a parameter of the type json
//	{jsonb}  a parameter of the type jsonb
//	{int}    the type of integers, in CAST
//
//	{next_xid}    the ID of the next transaction to write: all that write now have lower ones
//	{oldest_xid}  the lowest ID of a transaction that may still commit
type DB struct {
	driver   database.Driver[Tx]
	location database.Location
	logger   *slog.Logger

	found    sync.Mutex                       // held while the schema is looked up
	words    atomic.Pointer[strings.Replacer] // nil until the schema is known
	schema   string                           // "" on SQLite
	strict   bool                             // the default isolation is stricter than read committed
	checking sync.Mutex
	checked  bool // the settings of the database
	build    func() (*debug.BuildInfo, bool)
}

// New returns a DB on a driver. It does not use the database yet. On a driver of
// [DB.Shared] it is the same one.
func New(driver database.Driver[Tx], location database.Location, logger *slog.Logger) *DB {
	if s, ok := driver.(shared); ok {
		return s.db
	}
	return &DB{driver: driver, location: location, logger: logger, build: debug.ReadBuildInfo}
}

// Shared returns the driver for packages that use this DB: its settings are checked once, and its
// schema is looked up once, for all of them.
func (db *DB) Shared() database.Driver[Tx] { return shared{db.driver, db} }

type shared struct {
	database.Driver[Tx]

	db *DB
}

// Dialect returns the dialect of the database.
func (db *DB) Dialect() database.Dialect { return db.driver.Dialect() }

// Driver returns the driver.
func (db *DB) Driver() database.Driver[Tx] { return db.driver }

// Check checks the settings of the database once; see [database.Driver].
func (db *DB) Check(ctx context.Context) error { return db.CheckBy(ctx, db.driver.Check) }

// CheckBy is Check for a package that needs other settings than the driver checks.
func (db *DB) CheckBy(ctx context.Context, settings func(context.Context) error) error {
	db.checking.Lock()
	defer db.checking.Unlock()
	if db.checked {
		return nil
	}
	if err := db.Repeat(ctx, func() error { return settings(ctx) }); err != nil {
		return err
	}
	if db.Dialect() == database.DialectSQLite {
		build, _ := db.build()
		dbms.WarnOfDriver(ctx, db.logger, build)
	}
	db.checked = true
	return nil
}

// SQL returns a statement in the database's dialect. The schema must be known; see
// [DB.Find].
func (db *DB) SQL(text string) string {
	text = db.words.Load().Replace(text)
	if db.Dialect() == database.DialectSQLite {
		return text
	}
	return strings.ReplaceAll(dbms.Numbered(text), "{s}", database.Quote(db.schema)+".") // a name may have a "?"
}

// dialect are the words of the dialect. On PostgreSQL, SQL itself replaces {s}.
func (db *DB) dialect() []string {
	if db.Dialect() == database.DialectSQLite { // a transaction holds the only write lock
		return []string{
			"{s}", "", "{now}", dbms.SQLiteNow, "{clock}", dbms.SQLiteNow, "{lock}", "", "{skip}", "", "{keep}", "",
			"{json}", "?", "{jsonb}", "?", "{int}", "INTEGER", "{next_xid}", "0", "{oldest_xid}", "0",
		}
	}
	return []string{
		"{now}", dbms.PostgresNow,
		"{clock}", strings.ReplaceAll(dbms.PostgresNow, "statement_timestamp", "clock_timestamp"),
		"{lock}", "FOR UPDATE", "{skip}", "FOR UPDATE SKIP LOCKED", "{keep}", "FOR KEY SHARE",
		"{json}", "CAST(? AS json)", "{jsonb}", "CAST(? AS jsonb)", "{int}", "bigint",
		"{next_xid}", "txid_snapshot_xmax(txid_current_snapshot())", "{oldest_xid}", "txid_snapshot_xmin(txid_current_snapshot())",
	}
}

// Repeat runs work, and repeats it while it conflicts with other sessions.
func (db *DB) Repeat(ctx context.Context, work func() error) error {
	if pool, ok := db.driver.(keeper); ok {
		pool.Keep(ctx, db.logger)
	}
	return dbms.Pooled(dbms.Repeat(ctx, work))
}

// PurgeAtOnce returns how many rows a statement may delete, so that it takes some milliseconds:
// SQLite has one write lock, and changes each index at once.
func (db *DB) PurgeAtOnce() int {
	if db.Dialect() == database.DialectSQLite {
		return 100
	}
	return 1000
}

// Limit returns how many connections the pool opens at most, 0 if there is no limit or it is not
// known.
func (db *DB) Limit() int {
	if pool, ok := db.driver.(limited); ok {
		return pool.Limit()
	}
	return 0
}

// Churns reports whether the pool has closed connections because it keeps too few idle ones:
// what begins many statements at once then opens a connection for each.
func (db *DB) Churns() bool {
	pool, ok := db.driver.(churner)
	return ok && pool.Churns()
}

// Transaction runs a transaction, and repeats it if it conflicts with another session. Its
// statements expect read committed: each sees what was committed before it. run may be
// repeated, but not after a commit whose outcome is not known: then the error is
// [dbms.ErrUnknownCommit].
func (db *DB) Transaction(ctx context.Context, run func(Tx) error) error {
	return db.Repeat(ctx, func() error {
		tx, err := db.begin(ctx, sql.LevelReadCommitted, run)
		if err != nil {
			return err
		}
		return db.driver.Commit(ctx, tx)
	})
}

// Durable is Transaction with a commit that survives a crash of the database: a request must
// not be sent before it is certain to be stored.
func (db *DB) Durable(ctx context.Context, run func(Tx) error) error {
	return db.Transaction(ctx, func(tx Tx) error {
		if err := db.raise(ctx, tx); err != nil {
			return err
		}
		return run(tx)
	})
}

// ByIndex runs a statement that looks through a queue, in a transaction in which PostgreSQL
// uses indexes and no JIT compiler. A queue that was empty when its statistics or its plan
// were made, and has filled up since, would be scanned, or read and sorted, as a whole. And
// the planner counts the empty pages of an index that vacuum has just cleaned: it takes a
// lookup for a long scan, and compiling it takes a hundred times as long as running it.
func (db *DB) ByIndex(ctx context.Context, run func(Session) error) error {
	if db.Dialect() == database.DialectSQLite {
		return run(db.Conn())
	}
	return db.Transaction(ctx, func(tx Tx) error {
		if err := db.UseIndexes(ctx, tx); err != nil {
			return err
		}
		return run(db.In(tx))
	})
}

// UseIndexes is [DB.ByIndex] for the statements of a transaction that this module has begun.
func (db *DB) UseIndexes(ctx context.Context, tx Tx) error {
	if db.Dialect() == database.DialectSQLite {
		return nil
	}
	_, err := tx.Exec(ctx, byIndex)
	return err
}

const byIndex = `SELECT set_config('jit', 'off', TRUE), set_config('enable_bitmapscan', 'off', TRUE), set_config('enable_seqscan', 'off', TRUE), ` + RaiseCommit

// UserTx begins a transaction for code of a user, which has the session's default isolation:
// the user's statements may depend on it. It is repeated until first, which takes the locks
// and makes it durable with [RaiseCommit], succeeds; then work runs once. Then it is committed.
func (db *DB) UserTx(ctx context.Context, first, work func(Tx) error) error {
	var tx Tx
	err := db.Repeat(ctx, func() (err error) {
		tx, err = db.begin(ctx, sql.LevelDefault, first)
		return err
	})
	if err != nil {
		return err
	}
	defer db.driver.Rollback(ctx, tx) //nolint:errcheck // after a commit it does nothing
	if err := work(tx); err != nil {
		return err
	}
	return db.driver.Commit(ctx, tx)
}

// begin begins a transaction with what run does.
func (db *DB) begin(ctx context.Context, level sql.IsolationLevel, run func(Tx) error) (tx Tx, err error) {
	tx, err = db.driver.Begin(ctx, level)
	if err != nil {
		return tx, err
	}
	begun := false
	defer func() {
		if !begun { // run failed or panicked
			_ = db.driver.Rollback(ctx, tx) // err is more useful
		}
	}()
	err = run(tx)
	begun = err == nil
	return tx, err
}

// RaiseCommit makes PostgreSQL flush the commit of the transaction that it is executed in,
// here and on a synchronous standby, even if synchronous_commit is weaker for the database or
// the role. A stronger setting stays.
const RaiseCommit = `set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('on', 'remote_apply')
	THEN current_setting('synchronous_commit') ELSE 'on' END, TRUE)`

// raise executes RaiseCommit. [database.Driver.Check] has checked what SQLite does.
func (db *DB) raise(ctx context.Context, tx Tx) error {
	if db.Dialect() == database.DialectSQLite {
		return nil
	}
	_, err := tx.Exec(ctx, `SELECT `+RaiseCommit)
	return err
}

// Session runs statements with the words of [DB], in a transaction or each by itself. One
// by itself is repeated after a conflict.
type Session struct {
	db       *DB
	conn     database.Conn
	alone    bool
	finished bool // the statements are
}

// In returns a session in a transaction.
func (db *DB) In(tx Tx) Session { return Session{db: db, conn: tx.Conn} }

// Conn returns a session without a transaction.
func (db *DB) Conn() Session { return Session{db: db, conn: db.driver.Conn(), alone: true} }

// Dialect returns the dialect of the database.
func (s Session) Dialect() database.Dialect { return s.db.Dialect() }

// Finished returns the session for statements that [DB.SQL] has returned. A package that runs
// the same ones all the time calls SQL once for each.
func (s Session) Finished() Session {
	s.finished = true
	return s
}

func (s Session) sql(text string) string {
	if s.finished {
		return text
	}
	return s.db.SQL(text)
}

// Exec runs a statement and returns how many rows it changed.
func (s Session) Exec(ctx context.Context, statement string, args ...any) (n int64, err error) {
	err = s.run(ctx, func(c database.Conn) error {
		n, err = c.Exec(ctx, s.sql(statement), args...)
		return err
	})
	return n, err
}

// Must runs a statement that changes one row.
func (s Session) Must(ctx context.Context, statement string, args ...any) error {
	n, err := s.Exec(ctx, statement, args...)
	if err == nil && n != 1 {
		err = fmt.Errorf("a statement changed %d rows instead of 1", n)
	}
	return err
}

// MustAll runs statements that change one row each, in one round trip if the driver can.
func (s Session) MustAll(ctx context.Context, statements ...database.Statement) error {
	changed, err := s.Batch(ctx, statements)
	if err != nil {
		return err
	}
	for _, n := range changed {
		if n != 1 {
			return fmt.Errorf("a statement changed %d rows instead of 1", n)
		}
	}
	return nil
}

// First reads the first row of a query's result. found is false if there is none. After a
// conflict the query is repeated: what scan has set counts only if found is true.
func (s Session) First(ctx context.Context, query string, args []any, scan func(database.Scanner) error) (found bool, err error) {
	err = s.run(ctx, func(c database.Conn) error {
		found = false
		return c.Query(ctx, s.sql(query), args, func(row database.Scanner) error {
			if found {
				return nil
			}
			found = true
			return scan(row)
		})
	})
	return found, err
}

// Row is First into columns.
func (s Session) Row(ctx context.Context, query string, args []any, columns ...any) (found bool, err error) {
	return s.First(ctx, query, args, Into(columns...))
}

// Into returns a scan of columns.
func Into(columns ...any) func(database.Scanner) error {
	return func(row database.Scanner) error { return row.Scan(columns...) }
}

// All reads all rows of a query's result.
func All[T any](ctx context.Context, s Session, query string, args []any, scan func(database.Scanner) (T, error)) (list []T, err error) {
	err = s.run(ctx, func(c database.Conn) error {
		list = nil
		return c.Query(ctx, s.sql(query), args, func(row database.Scanner) error {
			one, err := scan(row)
			list = append(list, one)
			return err
		})
	})
	return list, err
}

// Each calls row for each row of a query's result. It is not repeated after a conflict once
// there was a row.
func (s Session) Each(ctx context.Context, query string, args []any, row func(database.Scanner) error) error {
	var failed error
	err := s.run(ctx, func(c database.Conn) error {
		rows := 0
		failed = c.Query(ctx, s.sql(query), args, func(r database.Scanner) error {
			rows++
			return row(r)
		})
		if rows > 0 {
			return nil
		}
		return failed
	})
	if err == nil {
		err = failed
	}
	return err
}

// run runs a statement.
func (s Session) run(ctx context.Context, statement func(database.Conn) error) error {
	switch {
	case !s.alone:
		return statement(s.conn)
	case s.db.strict: // even a single SELECT may conflict with other sessions
		return s.db.Transaction(ctx, func(tx Tx) error { return statement(tx.Conn) })
	default:
		return s.db.Repeat(ctx, func() error { return statement(s.conn) })
	}
}

// Batch runs statements in order, in one round trip if the driver can, and returns how many
// rows each changed. It is for a session in a transaction.
func (s Session) Batch(ctx context.Context, statements []database.Statement) (changed []int64, err error) {
	all := make([]database.Statement, len(statements))
	for i, st := range statements {
		all[i] = database.Statement{SQL: s.sql(st.SQL), Args: st.Args}
	}
	if several, ok := s.conn.(database.Batcher); ok && len(all) > 1 {
		return several.Batch(ctx, all)
	}
	for _, st := range all {
		n, err := s.conn.Exec(ctx, st.SQL, st.Args...)
		if err != nil {
			return changed, err
		}
		changed = append(changed, n)
	}
	return changed, nil
}
