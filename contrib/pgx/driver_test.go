package pgxdriver_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// modes are the ways in which pgx executes queries. Those that are pooled work behind a pooler
// in transaction mode.
var modes = []struct {
	name   string
	pooled bool
}{
	{"cache_statement", false},
	{"cache_describe", true},
	{"describe_exec", false},
	{"exec", true},
	{"simple_protocol", true},
}

// server returns the address of the PostgreSQL server or, with PGBOUNCER_URL, of the pooler.
func server(t *testing.T, variable string) string {
	t.Helper()
	url := os.Getenv(variable)
	if url == "" {
		t.Skip(variable + " is not set: run ../../integration/with-postgres ../../integration/with-pgbouncer go test ./...")
	}
	return url
}

// newSchema creates a schema and returns its name.
func newSchema(t *testing.T) string {
	t.Helper()
	schema := "t_" + strings.ToLower(rand.Text()[:16])
	admin, err := pgx.Connect(t.Context(), server(t, "DATABASE_URL"))
	require.NoError(t, err)
	_, err = admin.Exec(t.Context(), `CREATE SCHEMA `+schema)
	require.NoError(t, err)
	require.NoError(t, admin.Close(t.Context()))
	return schema
}

func open(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// each runs a test in each mode, on the server and, in the modes that work there, behind a
// pooler. The pool has two connections: fewer would be rejected.
func each(t *testing.T, test func(t *testing.T, pool *pgxpool.Pool, schema string)) {
	t.Helper()
	for _, mode := range modes {
		for _, variable := range []string{"DATABASE_URL", "PGBOUNCER_URL"} {
			if variable == "PGBOUNCER_URL" && !mode.pooled {
				continue
			}
			t.Run(mode.name+" on "+variable, func(t *testing.T) {
				t.Parallel()
				url := server(t, variable) + "&pool_max_conns=2&default_query_exec_mode=" + mode.name
				test(t, open(t, url), newSchema(t))
			})
		}
	}
}

// text is a named type, as the states and kinds of the packages.
type text string

func TestEveryStatementAndType(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, pool *pgxpool.Pool, schema string) {
		t.Helper()
		driver, table := pgxdriver.New(pool), schema+".sorts"
		assert.Equal(t, database.DialectPostgres, driver.Dialect())
		require.NoError(t, driver.Check(t.Context()))
		c := driver.Conn()
		n, err := c.Exec(t.Context(), `CREATE TABLE `+table+` (
			id bigint PRIMARY KEY, name text NOT NULL, kind text, n bigint, raw bytea, doc json, docb jsonb)`)
		require.NoError(t, err)
		assert.Zero(t, n)
		insert := `INSERT INTO ` + table + ` (id, name, kind, n, raw, doc, docb)
			VALUES ($1, $2, $3, $4, $5, CAST($6 AS json), CAST($7 AS jsonb))`
		seven := int64(-7)
		n, err = c.Exec(t.Context(), insert, 1, "it's \"Ana\" \\ ?", text("named"), &seven, []byte{0, 0xff, '\''},
			`{"a":"\u0000"}`, `{"b":1}`)
		require.NoError(t, err)
		assert.EqualValues(t, 1, n)
		_, err = c.Exec(t.Context(), insert, int64(2), "", nil, (*int64)(nil), []byte(nil), sql.NullString{}, nil)
		require.NoError(t, err)

		type line struct {
			id   int
			name string
			kind sql.Null[text]
			n    *int64
			null sql.NullInt64
			raw  []byte
			doc  json.RawMessage
			docb *string
			is   bool
		}
		var lines []line
		query := `SELECT id, name, kind, n, n, raw, doc, docb, n IS NULL FROM ` + table + ` WHERE id <= $1 ORDER BY id`
		require.NoError(t, c.Query(t.Context(), query, []any{int64(2)}, func(row database.Scanner) error {
			var l line
			err := row.Scan(&l.id, &l.name, &l.kind, &l.n, &l.null, &l.raw, &l.doc, &l.docb, &l.is)
			lines = append(lines, l)
			return err
		}))
		doc := `{"b": 1}`
		assert.Equal(t, []line{
			{
				id: 1, name: "it's \"Ana\" \\ ?", kind: sql.Null[text]{V: "named", Valid: true}, n: &seven,
				null: sql.NullInt64{Int64: -7, Valid: true}, raw: []byte{0, 0xff, '\''},
				doc: json.RawMessage(`{"a":"\u0000"}`), docb: &doc,
			},
			{id: 2, is: true},
		}, lines)

		n, err = c.Exec(t.Context(), `UPDATE `+table+` SET n = n + $1 WHERE id > $2`, int64(1), int64(0))
		require.NoError(t, err)
		assert.EqualValues(t, 2, n)
		n, err = c.Exec(t.Context(), `DELETE FROM `+table+` WHERE id = $1`, int64(3))
		require.NoError(t, err)
		assert.Zero(t, n)

		_, err = c.Exec(t.Context(), insert, int64(1), "again", nil, nil, nil, nil, nil)
		assert.True(t, dbms.IsTaken(err), err)
		n, err = c.Exec(t.Context(), `DELETE FROM `+schema+`.absent`)
		assert.Equal(t, "42P01", dbms.State(err))
		assert.Zero(t, n)
		require.Error(t, c.Query(t.Context(), `SELECT 1 FROM `+schema+`.absent`, nil, nil))
	})
}

// A callback's error ends a query, and the connection is free again: the pool has only two.
func TestACallbackEndsAQuery(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, pool *pgxpool.Pool, _ string) {
		t.Helper()
		c, enough := pgxdriver.New(pool).Conn(), errors.New("enough")
		const thousand = `SELECT g FROM generate_series(1, 1000) AS g`
		for range 5 {
			rows := 0
			err := c.Query(t.Context(), thousand, nil, func(database.Scanner) error {
				if rows++; rows == 3 {
					return enough
				}
				return nil
			})
			require.ErrorIs(t, err, enough)
			assert.Equal(t, 3, rows)
			assert.Panics(t, func() {
				_ = c.Query(t.Context(), thousand, nil, func(database.Scanner) error { panic("a bug") })
			})
		}
		assert.Zero(t, pool.Stat().AcquiredConns())
	})
}

// log is a table that the tests of transactions write to.
func log(t *testing.T, c database.Conn, schema string) (insert, all string) {
	t.Helper()
	_, err := c.Exec(t.Context(), `CREATE TABLE `+schema+`.log (line text PRIMARY KEY)`)
	require.NoError(t, err)
	return `INSERT INTO ` + schema + `.log (line) VALUES ($1)`, `SELECT line FROM ` + schema + `.log ORDER BY line`
}

func read(t *testing.T, c database.Conn, query string) (list []string) {
	t.Helper()
	require.NoError(t, c.Query(t.Context(), query, nil, func(row database.Scanner) error {
		var line string
		err := row.Scan(&line)
		list = append(list, line)
		return err
	}))
	return list
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, pool *pgxpool.Pool, schema string) {
		t.Helper()
		driver := pgxdriver.New(pool)
		insert, all := log(t, driver.Conn(), schema)
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelDefault} {
			tx, err := driver.Begin(t.Context(), level)
			require.NoError(t, err)
			_, err = driver.In(tx).Exec(t.Context(), insert, "committed "+level.String())
			require.NoError(t, err)
			require.NoError(t, driver.Commit(t.Context(), tx))
			require.NoError(t, driver.Rollback(t.Context(), tx), "after the commit")

			tx, err = driver.Begin(t.Context(), level)
			require.NoError(t, err)
			_, err = driver.In(tx).Exec(t.Context(), insert, "rolled back")
			require.NoError(t, err)
			require.NoError(t, driver.Rollback(t.Context(), tx))
			require.Error(t, driver.Commit(t.Context(), tx), "after the rollback")
			_, err = driver.In(tx).Exec(t.Context(), insert, "too late")
			require.ErrorIs(t, err, pgx.ErrTxClosed)
		}
		_, err := driver.Begin(t.Context(), sql.LevelSnapshot)
		require.ErrorContains(t, err, "Snapshot")

		// A transaction that failed can't be committed without notice.
		tx, err := driver.Begin(t.Context(), sql.LevelDefault)
		require.NoError(t, err)
		_, err = driver.In(tx).Exec(t.Context(), `SELECT 1 / 0`)
		require.Error(t, err)
		require.ErrorIs(t, driver.Commit(t.Context(), tx), pgx.ErrTxCommitRollback)
		require.NoError(t, driver.Rollback(t.Context(), tx))

		assert.Equal(t, []string{"committed Default", "committed Read Committed"}, read(t, driver.Conn(), all))
		assert.Zero(t, pool.Stat().AcquiredConns())
	})
}

func TestTheLevelOfATransaction(t *testing.T) {
	t.Parallel()
	driver := pgxdriver.New(open(t, server(t, "DATABASE_URL")+"&default_transaction_isolation=serializable"))
	for level, want := range map[sql.IsolationLevel]string{
		sql.LevelDefault: "serializable", sql.LevelReadCommitted: "read committed",
	} {
		tx, err := driver.Begin(t.Context(), level)
		require.NoError(t, err)
		assert.Equal(t, []string{want}, read(t, driver.In(tx), `SELECT current_setting('transaction_isolation')`))
		require.NoError(t, driver.Rollback(t.Context(), tx))
	}
}

// A user's savepoint, of pgx.Tx.Begin, takes what was written in it along.
func TestSavepoints(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, pool *pgxpool.Pool, schema string) {
		t.Helper()
		driver := pgxdriver.New(pool)
		insert, all := log(t, driver.Conn(), schema)
		outer, err := pool.Begin(t.Context())
		require.NoError(t, err)
		defer outer.Rollback(t.Context()) //nolint:errcheck // after a commit it does nothing
		_, err = driver.In(outer).Exec(t.Context(), insert, "outer")
		require.NoError(t, err)

		inner, err := outer.Begin(t.Context())
		require.NoError(t, err)
		_, err = batch(t, driver.In(inner), insert, "a", "b")
		require.NoError(t, err)
		require.NoError(t, inner.Rollback(t.Context()))

		inner, err = outer.Begin(t.Context())
		require.NoError(t, err)
		_, err = batch(t, driver.In(inner), insert, "c", "outer")
		assert.True(t, dbms.IsTaken(err), err)
		require.NoError(t, inner.Rollback(t.Context()))

		inner, err = outer.Begin(t.Context())
		require.NoError(t, err)
		_, err = batch(t, driver.In(inner), insert, "d", "e")
		require.NoError(t, err)
		require.NoError(t, inner.Commit(t.Context()))
		require.NoError(t, outer.Commit(t.Context()))
		assert.Equal(t, []string{"d", "e", "outer"}, read(t, driver.Conn(), all))
	})
}

// batch inserts lines in one round trip.
func batch(t *testing.T, c database.Conn, insert string, lines ...string) ([]int64, error) {
	t.Helper()
	several, ok := c.(database.Batcher)
	require.True(t, ok)
	var list []database.Statement
	for _, line := range lines {
		list = append(list, database.Statement{SQL: insert, Args: []any{line}})
	}
	return several.Batch(t.Context(), list)
}

func TestBatches(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, pool *pgxpool.Pool, schema string) {
		t.Helper()
		driver := pgxdriver.New(pool)
		insert, all := log(t, driver.Conn(), schema)
		_, ok := driver.Conn().(database.Batcher)
		assert.False(t, ok, "without a transaction, PostgreSQL would roll back the first statements if a later one fails")

		tx, err := driver.Begin(t.Context(), sql.LevelReadCommitted)
		require.NoError(t, err)
		in, ok := driver.In(tx).(database.Batcher)
		require.True(t, ok)
		changed, err := in.Batch(t.Context(), []database.Statement{
			{SQL: insert, Args: []any{"a"}},
			{SQL: insert, Args: []any{"b"}},
			{SQL: `SELECT line FROM ` + schema + `.log`},
			{SQL: `UPDATE ` + schema + `.log SET line = line || $1 WHERE line = $2`, Args: []any{"!", "none"}},
			{SQL: `UPDATE ` + schema + `.log SET line = line || $1`, Args: []any{"!"}},
			{SQL: `SELECT set_config('lock_timeout', $1, TRUE)`, Args: []any{"5s"}},
		})
		require.NoError(t, err)
		assert.Equal(t, []int64{1, 1, 2, 0, 2, 1}, changed)
		changed, err = in.Batch(t.Context(), nil)
		require.NoError(t, err)
		assert.Empty(t, changed)
		require.NoError(t, driver.Commit(t.Context(), tx))
		assert.Equal(t, []string{"a!", "b!"}, read(t, driver.Conn(), all))

		// The second one fails: nothing of the transaction stays, the error is that one's,
		// and the connection works.
		tx, err = driver.Begin(t.Context(), sql.LevelReadCommitted)
		require.NoError(t, err)
		changed, err = batch(t, driver.In(tx), insert, "c", "a!", "d")
		assert.Equal(t, []int64{1}, changed)
		assert.True(t, dbms.IsTaken(err), err)
		require.ErrorContains(t, err, "statement 2 of 3")
		_, err = driver.In(tx).Exec(t.Context(), insert, "e")
		assert.Equal(t, "25P02", dbms.State(err), "the transaction has failed")
		require.NoError(t, driver.Rollback(t.Context(), tx))
		assert.Equal(t, []string{"a!", "b!"}, read(t, driver.Conn(), all))

		// One that can't be parsed.
		tx, err = driver.Begin(t.Context(), sql.LevelReadCommitted)
		require.NoError(t, err)
		in, ok = driver.In(tx).(database.Batcher)
		require.True(t, ok)
		_, err = in.Batch(t.Context(), []database.Statement{
			{SQL: insert, Args: []any{"f"}}, {SQL: `INSERT INTO ` + schema + `.absent VALUES ($1)`, Args: []any{"g"}},
		})
		assert.Equal(t, "42P01", dbms.State(err), err)
		require.NoError(t, driver.Rollback(t.Context(), tx))
		_, err = batch(t, driver.In(tx), insert, "h", "i")
		require.ErrorIs(t, err, pgx.ErrTxClosed)
		assert.Equal(t, []string{"a!", "b!"}, read(t, driver.Conn(), all))
		assert.Zero(t, pool.Stat().AcquiredConns())
	})
}

// trips counts round trips in the way of a tracer.
type trips struct{ queries, batches int }

func (n *trips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	n.queries++
	return ctx
}
func (n *trips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (n *trips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	n.batches++
	return ctx
}
func (n *trips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (n *trips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func TestABatchIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	schema := newSchema(t)
	config, err := pgxpool.ParseConfig(server(t, "DATABASE_URL"))
	require.NoError(t, err)
	var n trips
	config.ConnConfig.Tracer = &n
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	driver := sqldb.Untyped(pgxdriver.New(pool))
	insert, _ := log(t, driver.Conn(), schema)
	db := sqldb.New(driver, database.Location{InSchema: schema}, quiet)
	require.NoError(t, db.Find(t.Context()))
	n = trips{}
	two := []database.Statement{{SQL: insert, Args: []any{"a"}}, {SQL: insert, Args: []any{"b"}}}
	require.NoError(t, db.Transaction(t.Context(), func(tx sqldb.Tx) error {
		changed, err := db.In(tx).Batch(t.Context(), two)
		assert.Equal(t, []int64{1, 1}, changed)
		return err
	}))
	assert.Equal(t, trips{queries: 2, batches: 1}, n, "begin and commit, and the batch")
}

var quiet = slog.New(slog.DiscardHandler)

// Behind a pooler, prepared statements are another client's. The setting is found when a
// package is opened, and not by the first refund.
func TestAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			schema := newSchema(t)
			pool := open(t, server(t, "PGBOUNCER_URL")+"&default_query_exec_mode="+mode.name)
			db := sqldb.New(sqldb.Untyped(pgxdriver.New(pool)), database.Location{InSchema: schema}, quiet)
			err := db.Migrate(t.Context(), database.PartAccounts, database.PartOperations)
			if mode.pooled {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, dbms.ErrPooler)
			require.ErrorContains(t, err, "default_query_exec_mode=exec")
			assert.Zero(t, pool.Stat().AcquiredConns())
		})
	}
}

func TestPoolsThatAreRejected(t *testing.T) {
	t.Parallel()
	require.EqualError(t, pgxdriver.New(nil).Check(t.Context()), "the pool is nil")
	err := pgxdriver.New(open(t, server(t, "DATABASE_URL")+"&pool_max_conns=1")).Check(t.Context())
	require.ErrorContains(t, err, "pool_max_conns")
	pool := open(t, server(t, "DATABASE_URL")+"&pool_max_conns=2")
	require.NoError(t, pgxdriver.New(pool).Check(t.Context()))
	assert.Zero(t, pool.Stat().AcquiredConns(), "the check gives its connections back")
}

// A transaction that is rolled back because its context has ended keeps its connection.
func TestARollbackAfterTheContext(t *testing.T) {
	t.Parallel()
	pool := open(t, server(t, "DATABASE_URL")+"&pool_max_conns=2")
	driver := pgxdriver.New(pool)
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		tx, err := driver.Begin(ctx, sql.LevelReadCommitted)
		require.NoError(t, err)
		cancel()
		require.NoError(t, driver.Rollback(ctx, tx))
	}
	assert.EqualValues(t, 1, pool.Stat().NewConnsCount(), "the connections were closed")
}
