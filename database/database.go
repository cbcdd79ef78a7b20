// Package database says in which database the packages operations, webhook/sqlstore and
// merchant keep their tables, and has the SQL that creates these tables.
//
//	m, err := merchant.Open(ctx, database.Postgres(db), cfg, on)  // db is a *sql.DB, for example of pgx or lib/pq
//	outbox, err := operations.New(database.SQLite(db), config)    // see SQLite for how to open the file
//
// For transactions of pgx, use contrib/pgx.
//
// # Tables
//
// All names begin with "gateway_". On PostgreSQL the tables are in one schema, and every
// statement names it; see [Location]. The packages create what is missing when they are
// opened, or expect that your own migrations did; see [Mode]. [Schema] returns these
// migrations, and the command gateway-schema prints them as files.
package database

import (
	"context"
	"database/sql"
	"errors"
)

// Dialect is a dialect of SQL.
type Dialect uint8

// The dialects.
const (
	DialectPostgres Dialect = iota + 1 // 11 or later
	DialectSQLite                      // 3.35 or later
)

// String returns "postgres" or "sqlite".
func (d Dialect) String() string {
	switch d {
	case DialectPostgres:
		return "postgres"
	case DialectSQLite:
		return "sqlite"
	default:
		return "unknown"
	}
}

// Driver connects a package to a database. TX is the type of its transactions, as in your
// code. [SQLite] and [Postgres] are for [database/sql]; contrib/pgx has one for pgxpool.
//
// A driver may also have three methods for its pool. Keep(ctx context.Context, logger
// *slog.Logger), which is called before a package uses the database, keeps connections open
// that are needed again at once. Churns() bool reports whether the pool has closed some.
// Limit() int returns how many connections it opens at most, 0 for any number: callbacks, each
// of which holds one, then leave one for what reads beside them.
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

	// Rollback does nothing after a commit.
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

	// Query calls row for each row of a query's result, until row returns an error. row
	// only reads: the connection is busy until Query returns.
	Query(ctx context.Context, query string, args []any, row func(Scanner) error) error
}

// Batcher is a [Conn] of a transaction that sends several statements in one round trip.
type Batcher interface {
	Conn

	// Batch runs statements in order and returns how many rows each changed. After an
	// error, none of the later ones was run.
	Batch(ctx context.Context, statements []Statement) ([]int64, error)
}

// Statement is a statement with its arguments.
type Statement struct {
	SQL  string
	Args []any
}

// Scanner reads the columns of a row.
type Scanner interface {
	Scan(columns ...any) error
}

// Mode says who creates the tables.
type Mode uint8

const (
	// Create creates what is missing, which needs the right to create tables only then.
	Create Mode = iota

	// Expect creates nothing: an [ErrSchema] names the migrations that are missing. Use
	// it if your own tool for migrations applies the files of the command gateway-schema.
	Expect
)

// Location says where the tables are and who creates them. The zero Location is right for
// most programs.
type Location struct {
	// InSchema is the schema of the tables on PostgreSQL. If it is "", it is the first
	// schema of the search path of the connections, which must exist; as in PostgreSQL,
	// "$user" is left out if there is no schema with the name of the role. Statements
	// name the schema, so a later change of the search path changes nothing. On SQLite it
	// must be "".
	InSchema string

	// Schema says who creates the tables; the default is [Create].
	Schema Mode
}

// ErrSchema reports that the tables do not fit the program: they are missing and may not
// be created, were created only in part, belong to a later release that this one must not
// run beside, or the role lacks a right. The text names what to do. Nothing was changed.
var ErrSchema = errors.New("the tables of the gateway in the database do not fit this program")
