// Package dbms has what the packages that keep data in a merchant's database need to
// know about PostgreSQL, SQLite and their drivers.
package dbms

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// The time of a database in Unix milliseconds, as SQL. It must be stable within a
// statement, or PostgreSQL would use no index.
const (
	PostgresNow = `CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS BIGINT)`
	SQLiteNow   = `CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`
)

// BusyTimeout is how long work is repeated after lock conflicts. It is longer than a
// handler's transaction should hold SQLite's write lock.
const BusyTimeout = 15 * time.Second

// State returns the code of a PostgreSQL error, whatever the driver.
func State(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// IsConflict reports whether err is a transient conflict with another session: a
// serialization failure, a deadlock, a lock that was not released within
// lock_timeout, or a locked SQLite database. SQLite drivers have only the error
// text in common.
func IsConflict(err error) bool {
	if err == nil || errors.Is(err, ErrUnknownCommit) {
		return false
	}
	switch State(err) {
	case "40001", "40P01", "55P03":
		return true
	case "":
		text := err.Error()
		return strings.Contains(text, "SQLITE_BUSY") || strings.Contains(text, "database is locked") ||
			strings.Contains(text, "database table is locked")
	default:
		return false
	}
}

// Repeat runs work, and repeats it while it conflicts with other sessions. It does not repeat
// work that may be committed, see [ErrUnknownCommit].
func Repeat(ctx context.Context, work func() error) error {
	giveUp := time.Now().Add(BusyTimeout)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		err := work()
		if !IsConflict(err) || time.Now().After(giveUp) {
			return err
		}
		wait := time.NewTimer(pause/2 + rand.N(pause)) //nolint:gosec // jitter needs no secrecy
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return errors.Join(ctx.Err(), err)
		}
	}
}

// IsTaken reports whether err is the violation of a unique index.
func IsTaken(err error) bool {
	if err == nil {
		return false
	}
	return State(err) == "23505" || strings.Contains(err.Error(), "UNIQUE constraint failed")
}

// Numbered rewrites "?" to the numbered parameters of PostgreSQL.
func Numbered(text string) string {
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(text, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		text = after
	}
}

// Pragmas are the settings of a connection to SQLite.
type Pragmas struct {
	File        string // "" for a database in memory
	Journal     string // "wal"
	BusyTimeout int    // milliseconds
	Synchronous int    // 0 OFF, 1 NORMAL, 2 FULL, 3 EXTRA
}

// Querier is a [sql.DB], [sql.Conn] or [sql.Tx].
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// ReadPragmas reads the settings of a connection for a schema, such as "main".
func ReadPragmas(ctx context.Context, db Querier, schema string) (Pragmas, error) {
	return ReadPragmasBy(schema, func(column any, query string, args ...any) error {
		return db.QueryRowContext(ctx, query, args...).Scan(column)
	})
}

// ReadPragmasBy is ReadPragmas with a function that reads the first column of a query's row.
func ReadPragmasBy(schema string, read func(column any, query string, args ...any) error) (p Pragmas, err error) {
	err = read(&p.File, "SELECT COALESCE((SELECT file FROM pragma_database_list WHERE name = ?), '')", schema)
	for pragma, value := range map[string]any{
		schema + ".journal_mode": &p.Journal, "busy_timeout": &p.BusyTimeout, schema + ".synchronous": &p.Synchronous,
	} {
		if err == nil {
			err = read(value, "PRAGMA "+pragma)
		}
	}
	return p, err
}
