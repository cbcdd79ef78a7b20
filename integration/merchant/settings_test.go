package merchant_test

import (
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	_ "github.com/lib/pq"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
)

// sells charges an order twice, gets paid twice, and refunds.
func (w *world) sells() {
	w.Helper()
	w.on.PaidAgain, w.cfg.SecondPayment = nil, merchant.RefundSecondPayment
	w.open()
	stop := w.start()
	var orders []string
	for i := range 3 {
		order := w.order(fmt.Sprint("S", i))
		orders = append(orders, order)
		first, second := w.charge(pix(order, 700)), w.charge(card(order, 700))
		w.pays(first)
		w.pays(second)
	}
	for _, order := range orders {
		w.eventually("the second payment is refunded", func() bool { return w.state(order).Refunded == 700 })
		assert.Equal(w, 1, w.ships(order))
		_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: order, Order: order, UpTo: 200})
		require.NoError(w, err)
		w.eventually("the refund is reported", func() bool { return len(w.calls(order)) == 3 })
		assert.Equal(w, int64(500), w.state(order).Left())
		var refunded int64
		for _, tx := range w.made("shop-" + order) {
			refunded += tx.RefundedAmount
		}
		assert.Equal(w, int64(900), refunded)
	}
	stop()
}

// postgres opens the world's database with other settings.
func (w *world) postgres(driver, settings string) *sql.DB {
	w.Helper()
	db, err := sql.Open(driver, w.name+settings)
	require.NoError(w, err)
	w.Cleanup(func() { assert.NoError(w, db.Close()) })
	return db
}

func TestAShopWorksAsPostgreSQLIsOpened(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(w *world) *sql.DB{
		"one connection": func(w *world) *sql.DB {
			db := w.postgres("pgx", "")
			db.SetMaxOpenConns(1)
			return db
		},
		"two connections": func(w *world) *sql.DB {
			db := w.postgres("pgx", "")
			db.SetMaxOpenConns(2)
			return db
		},
		"repeatable read":            func(w *world) *sql.DB { return w.postgres("pgx", "&default_transaction_isolation=repeatable%20read") },
		"serializable":               func(w *world) *sql.DB { return w.postgres("pgx", "&default_transaction_isolation=serializable") },
		"lib/pq":                     func(w *world) *sql.DB { return w.postgres("postgres", "&sslmode=disable") },
		"without synchronous commit": func(w *world) *sql.DB { return w.postgres("pgx", "&synchronous_commit=off") },
		"simple protocol":            func(w *world) *sql.DB { return w.postgres("pgx", "&default_query_exec_mode=simple_protocol") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, postgres)
			w.db = open(w)
			w.sells()
		})
	}
}

// Behind a pooler in transaction mode, prepared statements are lost: Open says what to
// set, and with that the shop works.
func TestAShopWorksBehindPgBouncer(t *testing.T) {
	t.Parallel()
	pooler := os.Getenv("PGBOUNCER_URL")
	if pooler == "" {
		t.Skip("PGBOUNCER_URL is not set: integration/run starts PgBouncer")
	}
	w := newWorld(t, postgres)
	database := "d_" + strings.ToLower(rand.Text()[:16]) // the pooler passes on no search path
	w.exec(`CREATE DATABASE ` + database)
	w.name = strings.Replace(pooler, "/postgres?", "/"+database+"?", 1)
	var refused error
	for range 20 { // one call finds it unless no two clients of the pooler meet
		if _, refused = w.openOn(w.connect(), w.cfg); refused != nil {
			break
		}
	}
	require.ErrorContains(t, refused, "add default_query_exec_mode=exec")
	w.name += "&default_query_exec_mode=exec"
	w.db = w.connect()
	w.reader = w.db
	w.tables()
	w.sells()
}

// role opens the database as a role of its own, whose search path is the world's schema.
func (w *world) role() *sql.DB {
	w.Helper()
	u, err := url.Parse(w.name)
	require.NoError(w, err)
	schema := u.Query().Get("search_path")
	role := "r" + schema
	w.exec(`CREATE ROLE ` + role + ` LOGIN`)
	w.exec(`ALTER ROLE ` + role + ` SET search_path = ` + schema)
	w.exec(`GRANT USAGE ON SCHEMA ` + schema + ` TO ` + role)
	w.exec(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ` + schema + ` TO ` + role)
	db, err := sql.Open("pgx", strings.Replace(os.Getenv("DATABASE_URL"), "user=gateway", "user="+role, 1))
	require.NoError(w, err)
	w.Cleanup(func() { assert.NoError(w, db.Close()) })
	return db
}

// A role that may not create tables uses those that another one has created.
func TestARoleWithoutCreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres)
	w.open()
	w.db = w.role()
	_, err := w.db.ExecContext(t.Context(), `CREATE TABLE t (i int)`)
	require.ErrorContains(t, err, "permission denied")
	w.sells()
}

// A setting of SQLite that could lose a commit or block its users is refused and named.
func TestSettingsOfSQLiteAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite)
	for _, is := range []struct{ old, new, message string }{
		{"_txlock=immediate", "_txlock=deferred", "_txlock=immediate"},
		{"busy_timeout(10000)", "busy_timeout(0)", "busy_timeout"},
		{"synchronous(FULL)", "synchronous(NORMAL)", "synchronous"},
	} {
		db, err := sql.Open("sqlite", strings.Replace(w.name, is.old, is.new, 1))
		require.NoError(t, err)
		_, err = w.openOn(db, w.cfg)
		require.ErrorContains(t, err, is.message)
		require.NoError(t, db.Close())
	}
	w.db.SetMaxOpenConns(1)
	_, err := w.openOn(w.db, w.cfg)
	require.ErrorContains(t, err, "SetMaxOpenConns(1)")
	var tables int
	require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM sqlite_master WHERE name LIKE 'gateway_%'`).Scan(&tables))
	assert.Zero(t, tables, "nothing was created")
	w.db.SetMaxOpenConns(2)
	w.sells()
}

// polled are the tables with work, apart from the inbox, whose plans its own tests check.
var polled = []string{"gateway_facts", "gateway_checks", "gateway_operations"}

// A process that has nothing to do reads only indexes, however long the tables are.
func TestAnIdleProcessReadsIndexes(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		order := w.order("I1")
		w.pays(w.charge(pix(order, 700)))
		stop := w.start()
		w.reaches(order, "paid shop-I1-1 700")
		stop()
		w.fill()
		tap, db := w.tapped(nil)
		w.db = db
		w.open()
		tap.statements() // those of Open
		stop = w.start()
		w.eventually("the process polls all tables", func() bool { return tap.saw(polled...) })
		stop()
		w.indexed(tap.statements())
	})
}

// indexed checks that the plan of each statement reads the tables with work by an index.
func (w *world) indexed(statements map[string][]driver.NamedValue) {
	w.Helper()
	for statement, args := range statements {
		if statement = strings.TrimSpace(statement); !strings.HasPrefix(statement, "SELECT") && !strings.HasPrefix(statement, "WITH") && !strings.HasPrefix(statement, "UPDATE") {
			continue
		}
		var values []any
		for _, arg := range args {
			values = append(values, arg.Value)
		}
		for _, line := range w.plan(statement, values) {
			for _, table := range polled {
				assert.NotContains(w, line, "Seq Scan on "+table+" ", statement)
				if strings.HasPrefix(line+" ", "SCAN "+table+" ") {
					assert.Contains(w, line, "INDEX", statement)
				}
			}
		}
	}
}

// fill makes 5,000 copies of the records of an order that is done.
func (w *world) fill() {
	w.Helper()
	copies := `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)`
	for _, statement := range []string{
		`INSERT INTO gateway_charges (id, account, book, subject, attempt, ref, transaction_id, state, created_at, record)
			` + copies + ` SELECT id || i, account, book, subject || i, attempt, ref || i, transaction_id || i, state, created_at, record FROM gateway_charges, n`,
		`INSERT INTO gateway_checks (kind, id, account, lane, check_at)
			` + copies + ` SELECT kind, id || i, account, lane, check_at FROM gateway_checks, n`,
		`INSERT INTO gateway_facts (key, account, book, stream, subject, record, charge, kind, amount, currency, about, at, month, source, created_at, callback, delivered_at, due_at, attempts, error)
			` + copies + ` SELECT key || i, account, book, stream, subject || i, record, charge, kind, amount, currency, about, at, month, source, created_at, callback, delivered_at, due_at, attempts, error
			FROM gateway_facts, n WHERE kind = 'settled'`,
		`INSERT INTO gateway_operations (account, kind, key, state, params, progress, claims, due_at, created_at, updated_at)
			` + copies + ` SELECT account, kind, key || i, state, params, progress, claims, due_at, created_at, updated_at FROM gateway_operations, n`,
	} {
		w.exec(statement)
	}
	w.exec(`ANALYZE`)
}

// plan returns the plan of a statement.
func (w *world) plan(statement string, args []any) (lines []string) {
	w.Helper()
	explain := "EXPLAIN QUERY PLAN "
	if w.dialect == database.DialectPostgres {
		explain = "EXPLAIN "
	}
	rows, err := w.db.QueryContext(w.Context(), explain+statement, args...)
	require.NoError(w, err, statement)
	defer func() { require.NoError(w, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(w, err)
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(string)
		}
		require.NoError(w, rows.Scan(values...))
		lines = append(lines, *values[len(values)-1].(*string))
	}
	require.NoError(w, rows.Err())
	return lines
}
