// Package database_test tests the schema that the packages operations, webhook/sqlstore and
// merchant share, on real databases.
package database_test

import (
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
)

var quiet = slog.New(slog.DiscardHandler)

// allParts are the parts of the schema.
var allParts = []string{database.PartAccounts, database.PartOperations, database.PartEvents, database.PartMerchant}

// kind is a kind of database that this machine can run.
type kind struct {
	dialect database.Dialect
	open    func(t *testing.T) *sql.DB // a new, empty database or schema
}

var schemas atomic.Int64

func each(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	kinds := []kind{{database.DialectSQLite, openSQLite}}
	if os.Getenv("DATABASE_URL") == "" {
		t.Log("DATABASE_URL is not set: PostgreSQL is skipped; integration/run starts one")
	} else {
		kinds = append(kinds, kind{database.DialectPostgres, openPostgres})
	}
	for _, k := range kinds {
		t.Run(k.dialect.String(), func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

func openSQLite(t *testing.T) *sql.DB {
	t.Helper()
	return open(t, "sqlite", sqliteName(filepath.Join(t.TempDir(), "shop.db")))
}

func sqliteName(file string) string {
	return "file:" + file + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)" +
		"&_pragma=synchronous(FULL)"
}

// openPostgres opens a schema of its own, as a merchant does: that of the search path.
func openPostgres(t *testing.T) *sql.DB {
	t.Helper()
	admin := server(t, "DATABASE_URL")
	name := unique("database")
	run(t, admin, "CREATE SCHEMA "+name)
	return open(t, "pgx", os.Getenv("DATABASE_URL")+"&search_path="+name)
}

// unique returns a name that no other test has.
func unique(prefix string) string {
	return fmt.Sprintf("%s_%d_%d", prefix, os.Getpid(), schemas.Add(1))
}

// server opens the server of an environment variable, or skips the test.
func server(t *testing.T, variable string, settings ...string) *sql.DB {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skip(variable + " is not set: integration/with-postgres and integration/with-pgbouncer start one")
	}
	return open(t, "pgx", strings.Join(append([]string{os.Getenv(variable)}, settings...), "&"))
}

// column reads the first column of a query's result.
func column(t *testing.T, db *sql.DB, query string, args ...any) (list []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	require.NoError(t, err, query)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var value string
		require.NoError(t, rows.Scan(&value))
		list = append(list, value)
	}
	require.NoError(t, rows.Err())
	return list
}

// catalog returns everything that is created in a database or, on PostgreSQL, in a schema: columns,
// constraints, indexes and the rows of gateway_schema. The name of the schema is left out.
func (k kind) catalog(t *testing.T, db *sql.DB) []string {
	t.Helper()
	const rows = `SELECT part || ' ' || version || ' ' || oldest FROM gateway_schema ORDER BY version, part`
	if k.dialect == database.DialectSQLite {
		list := column(t, db, `SELECT type || ' ' || name || ': ' || COALESCE(sql, '') FROM sqlite_master
			WHERE tbl_name LIKE 'gateway%' ORDER BY type, name`)
		if len(list) > 0 {
			list = append(list, column(t, db, rows)...)
		}
		return list
	}
	schema := column(t, db, `SELECT current_schema()`)[0]
	list := column(t, db, `SELECT line FROM (
			SELECT concat('column ', c.relname, '.', a.attname, ' ', a.attnum, ' ', format_type(a.atttypid, a.atttypmod), ' ',
				a.attnotnull, ' ', a.attidentity, ' ', pg_get_expr(d.adbin, d.adrelid)) AS line
			FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
				LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
			WHERE c.relnamespace = CAST($1 AS regnamespace) AND c.relkind = 'r' AND c.relname LIKE 'gateway%'
				AND a.attnum > 0 AND NOT a.attisdropped
			UNION ALL SELECT concat('constraint ', conname, ' ', pg_get_constraintdef(n.oid)) FROM pg_constraint n
				JOIN pg_class c ON c.oid = n.conrelid
			WHERE connamespace = CAST($1 AS regnamespace) AND c.relname LIKE 'gateway%'
			UNION ALL SELECT concat('index ', pg_get_indexdef(i.indexrelid), ' ', i.indisvalid)
			FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
			WHERE c.relnamespace = CAST($1 AS regnamespace) AND c.relname LIKE 'gateway%') AS lines ORDER BY line`,
		database.Quote(schema))
	if slices.ContainsFunc(list, func(line string) bool { return strings.HasPrefix(line, "column gateway_schema.") }) {
		list = append(list, column(t, db, rows)...)
	}
	for i := range list {
		list[i] = strings.ReplaceAll(strings.ReplaceAll(list[i], database.Quote(schema)+".", ""), schema+".", "")
	}
	return list
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func run(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement, args...)
	require.NoError(t, err, statement)
}

// on returns the DB of a package.
func (k kind) on(db *sql.DB, where database.Location) *sqldb.DB {
	driver := database.SQLite(db)
	if k.dialect == database.DialectPostgres {
		driver = database.Postgres(db)
	}
	return sqldb.New(sqldb.Untyped(driver), where, quiet)
}

// migrations returns those of the program.
func migrations(t *testing.T, d database.Dialect) []database.Migration {
	t.Helper()
	list, err := database.Schema(d, "")
	require.NoError(t, err)
	return list
}
