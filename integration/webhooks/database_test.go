// Package webhooks_test runs the webhook receiver on real databases.
package webhooks_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// target is one kind of database under test.
type target struct {
	name    string
	dialect database.Dialect
	driver  string
	dsn     func(t *testing.T) string
}

// databases are the databases that this machine can run: integration/run
// starts PostgreSQL.
func databases(t *testing.T) []target {
	t.Helper()
	list := []target{{"SQLite", database.DialectSQLite, "sqlite", func(t *testing.T) string {
		t.Helper()
		return sqliteDSN(filepath.Join(t.TempDir(), "events.db"))
	}}}
	if os.Getenv("DATABASE_URL") == "" {
		t.Log("DATABASE_URL is not set: PostgreSQL is skipped; integration/run starts one")
		return list
	}
	return append(list, target{"PostgreSQL", database.DialectPostgres, "pgx", func(*testing.T) string { return os.Getenv("DATABASE_URL") }})
}

func sqliteDSN(file string) string {
	return "file:" + file + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"
}

func (d target) open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.dsn(t))
	require.NoError(t, err)
	db.SetMaxOpenConns(20)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// postgres is for tests of PostgreSQL alone, which open it themselves.
var postgres = target{dialect: database.DialectPostgres}

// on returns the driver of a database.
func (d target) on(db *sql.DB) database.Driver[*sql.Tx] {
	if d.dialect == database.DialectSQLite {
		return database.SQLite(db)
	}
	return database.Postgres(db)
}

// schema creates a schema for a store's tables, so that each store of a test has its own. On
// SQLite they have a file of their own.
func (d target) schema(t *testing.T, db *sql.DB) (name string) {
	t.Helper()
	if d.dialect == database.DialectSQLite {
		return ""
	}
	name = table("events")
	_, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+name)
	require.NoError(t, err)
	return name
}

// in is the option for the tables of a schema.
func in(schema string) sqlstore.Option {
	return sqlstore.WithLocation(database.Location{InSchema: schema})
}

// like is the option for the tables of another store.
func like(t *testing.T, s *sqlstore.Store[*sql.Tx]) sqlstore.Option {
	t.Helper()
	return in(schemaOf(t, s))
}

func schemaOf(t *testing.T, s *sqlstore.Store[*sql.Tx]) string {
	t.Helper()
	schema, _, found := strings.Cut(tableOf(t, s), ".")
	if !found { // SQLite
		return ""
	}
	return strings.Trim(schema, `"`)
}

// tableOf returns the name of a store's table in SQL.
func tableOf(t *testing.T, s *sqlstore.Store[*sql.Tx]) string {
	t.Helper()
	name, err := s.Table(t.Context())
	require.NoError(t, err)
	return name
}

var tables atomic.Int64

// table returns a unique name of a table or schema.
func table(prefix string) string {
	return fmt.Sprintf("%s_%d_%d", strings.ToLower(prefix), os.Getpid(), tables.Add(1))
}

// each runs a test on every database.
func each(t *testing.T, test func(t *testing.T, d target)) {
	t.Helper()
	for _, d := range databases(t) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

// connections counts the sessions that a pool opens.
type connections struct{ n atomic.Int64 }

// open returns what sql.Open would.
func (c *connections) open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(context.Context, *pgx.Conn) error {
		c.n.Add(1)
		return nil
	}))
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// What becomes of claimed events.
var (
	done     = webhook.Disposition{State: webhook.StateDone}
	released = webhook.Disposition{State: webhook.StateWaiting, Released: true}
	dead     = webhook.Disposition{State: webhook.StateDead}
)

func retry(delay time.Duration, reason string) webhook.Disposition {
	return webhook.Disposition{State: webhook.StateWaiting, Delay: delay, Reason: reason}
}

func aside(f webhook.Family) webhook.Disposition {
	return webhook.Disposition{State: webhook.StateUnhandled, Family: f}
}
