package operations

import (
	"context"
	"database/sql"
	"time"
)

// Driver connects an [Outbox] to a database. TX is the type of its transactions, as
// in your code. [SQLite] and [Postgres] are for [database/sql]; contrib/river has
// one for pgx.
type Driver[TX any] interface {
	// Dialect returns the database's dialect of SQL.
	Dialect() Dialect

	// Check returns an error if the database is opened with settings that could lose
	// a commit or block its users. It names the setting.
	Check(ctx context.Context) error

	// Begin begins a transaction. level is [sql.LevelReadCommitted], or
	// [sql.LevelDefault] for that of the session; SQLite ignores it.
	Begin(ctx context.Context, level sql.IsolationLevel) (TX, error)

	Commit(ctx context.Context, tx TX) error
	Rollback(ctx context.Context, tx TX) error

	// In runs statements in a transaction.
	In(tx TX) Conn

	// Conn runs statements without a transaction.
	Conn() Conn
}

// Conn runs the statements of a [Driver]. They have numbered parameters ($1) on
// PostgreSQL and question marks on SQLite.
type Conn interface {
	// Exec runs a statement and returns how many rows it changed.
	Exec(ctx context.Context, statement string, args ...any) (int64, error)

	// Query calls row for each row of a query's result, until row returns an error.
	Query(ctx context.Context, query string, args []any, row func(Scanner) error) error
}

// Scanner reads the columns of a row.
type Scanner interface {
	Scan(columns ...any) error
}

// Dialect is a dialect of SQL.
type Dialect uint8

// The dialects.
const (
	DialectPostgres Dialect = iota + 1 // 11 or later
	DialectSQLite                      // 3.35 or later
)

// Engine decides when the operations of an [Outbox] are worked on: it calls
// [Outbox.Work]. What happens then, and whether anything does, depends only on the
// table. So an engine may call it too often, too early or from several processes.
// Without an engine, [Outbox.Run] works on them.
type Engine[TX any] interface {
	// Migrate creates what the engine needs, in the transaction of
	// [Outbox.Migrate].
	Migrate(ctx context.Context, tx TX) error

	// Wake is called in the transaction that makes an operation due.
	Wake(ctx context.Context, tx TX, id int64, kind string) error
}

// ms returns a duration in milliseconds, rounded up.
func ms(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }

func fromMS(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
