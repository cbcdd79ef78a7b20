// Package database_test tests the schema that the packages operations, webhook/sqlstore and merchant share, on real databases.
package database_test

import (
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
	return open(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+
		"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
}

// openPostgres opens a database of its own, as a merchant does: the schema is that of the search path.
func openPostgres(t *testing.T) *sql.DB {
	t.Helper()
	admin := open(t, "pgx", os.Getenv("DATABASE_URL"))
	name := fmt.Sprintf("database_%d_%d", os.Getpid(), schemas.Add(1))
	run(t, admin, "CREATE SCHEMA "+name)
	return open(t, "pgx", os.Getenv("DATABASE_URL")+"&search_path="+name)
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
