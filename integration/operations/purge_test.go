package operations_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/integration/internal/plans"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// asked counts the statements of a driver, each by itself.
type asked struct {
	database.Driver[*sql.Tx]

	n *atomic.Int64
}

func (d asked) Conn() database.Conn { return askedConn{d.Driver.Conn(), d.n} }

type askedConn struct {
	database.Conn

	n *atomic.Int64
}

func (c askedConn) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	c.n.Add(1)
	return c.Conn.Exec(ctx, text, args...)
}

func (c askedConn) Query(ctx context.Context, text string, args []any, row func(database.Scanner) error) error {
	c.n.Add(1)
	return c.Conn.Query(ctx, text, args, row)
}

// A purge looks at old operations once: neither those of another account nor those that have
// not ended are read again by the next one, and the latter are purged once they have.
func TestAPurgeContinuesWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		dialect database.Dialect
		open    func(t *testing.T) *sql.DB
		on      func(*sql.DB) database.Driver[*sql.Tx]
	}{
		"SQLite": {database.DialectSQLite, func(t *testing.T) *sql.DB {
			t.Helper()
			db, err := onSQLite.connect(onSQLite.create(t))
			require.NoError(t, err)
			return db
		}, database.SQLite},
		"PostgreSQL": {database.DialectPostgres, func(t *testing.T) *sql.DB {
			t.Helper()
			if os.Getenv("DATABASE_URL") == "" {
				t.Skip("DATABASE_URL is not set: run ../with-postgres go test ./operations")
			}
			db, err := onPostgres.connect(onPostgres.create(t))
			require.NoError(t, err)
			return db
		}, database.Postgres},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := k.open(t)
			t.Cleanup(func() { assert.NoError(t, db.Close()) })
			var statements atomic.Int64
			o, err := operations.New(asked{k.on(db), &statements}, operations.Config{
				Client: mockserver.Run(t).Client(gateway.WithAccount("shop")), Logger: quiet,
			})
			require.NoError(t, err)
			require.NoError(t, o.Migrate(t.Context()))
			exec := func(text string) {
				_, err := db.ExecContext(t.Context(), text)
				require.NoError(t, err)
			}
			// The time of operation i is i. Each third one is another account's, 7 and 2,600 wait.
			add := func(from, to int) {
				exec(fmt.Sprintf(`INSERT INTO gateway_operations (account, kind, key, resource, state, params, progress, claims, due_at, created_at, updated_at)
					WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d)
					SELECT CASE WHEN i %% 3 = 0 THEN 'other' ELSE 'shop' END, 'k', CAST(i AS text), NULL,
						CASE WHEN i IN (7, 2600) THEN 'waiting' WHEN i %% 5 = 0 THEN 'canceled' ELSE 'done' END, 'null', '{}', 1, 0, i, i FROM n`, from, to))
			}
			purge := func(before int64) (n, asked int64) {
				asked = -statements.Load()
				n, err := o.Purge(t.Context(), time.UnixMilli(before))
				require.NoError(t, err)
				return n, asked + statements.Load()
			}
			left := func(where string) (n int) {
				require.NoError(t, db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM gateway_operations WHERE `+where).Scan(&n))
				return n
			}
			add(1, 6000)
			n, _ := purge(1)
			assert.Zero(t, n)
			n, first := purge(5001)
			assert.Equal(t, int64(5000-5000/3-2), n)
			assert.Equal(t, 2, left(`account = 'shop' AND created_at <= 5000`), "they wait")
			assert.Equal(t, 2000, left(`account = 'other'`))
			assert.Equal(t, 1000, left(`created_at > 5000`))
			n, second := purge(5001)
			assert.Zero(t, n)
			assert.Less(t, second, int64(10))
			assert.Greater(t, first, second)
			exec(`UPDATE gateway_operations SET state = 'done', updated_at = 5002 WHERE state = 'waiting'`)
			n, _ = purge(5001)
			assert.Zero(t, n, "they have ended later")
			n, _ = purge(5003)
			assert.Equal(t, int64(2+1), n, "5001 is another account's")
			add(6001, 6100)
			n, _ = purge(7000)
			assert.Equal(t, int64(6100-5002-(6100/3-5002/3)), n)
			assert.Zero(t, left(`account = 'shop'`))
		})
	}
}

// A purge reads a part of the table at a time, whatever the planner believes about it.
func TestAPurgeIsCheapWhateverTheStatisticsSay(t *testing.T) {
	t.Parallel()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: run ../with-postgres go test ./operations")
	}
	for name, analyzed := range map[string]bool{"never": false, "empty": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			if analyzed {
				q.exec("ANALYZE " + q.table)
			}
			q.exec(`INSERT INTO ` + q.table + ` (account, kind, key, resource, params, state, progress, claims, due_at, created_at, updated_at)
				SELECT CASE WHEN i % 2 = 0 THEN 'shop' ELSE 'other' END, 'k', 'old' || i, NULL, 'null', 'done', '{}', 3, 0, i, i FROM generate_series(1, 60000) AS i`)
			q.log.Take()
			for range 6 { // PostgreSQL settles on plans
				_, err := q.outbox.Purge(t.Context(), time.UnixMilli(5000))
				require.NoError(t, err)
			}
			n, err := q.outbox.Purge(t.Context(), time.UnixMilli(40_001))
			require.NoError(t, err)
			assert.Equal(t, int64(20_000-2499), n)
			_, err = q.outbox.Counts(t.Context())
			require.NoError(t, err)
			purges := 0
			for _, p := range q.log.Take() {
				if !strings.Contains(p.Query, "gateway_operations") {
					continue
				}
				purges++
				assert.LessOrEqual(t, p.Root.Visited(), 5000, p.String())
				assert.False(t, p.Root.Scans(), p.String())
				assert.Nil(t, p.JIT, p.String())
			}
			assert.Greater(t, purges, 80)
		})
	}
}

// On SQLite a purge and the counts read parts of the table.
func TestAPurgeScansNothingOnSQLite(t *testing.T) {
	t.Parallel()
	db, err := onSQLite.connect(onSQLite.create(t))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	driver := plans.OnSQLite(db)
	o, err := operations.New(driver, operations.Config{Client: mockserver.Run(t).Client(gateway.WithAccount("shop")), Logger: quiet})
	require.NoError(t, err)
	require.NoError(t, o.Migrate(t.Context()))
	_, err = db.ExecContext(t.Context(), `INSERT INTO gateway_operations (account, kind, key, state, params, progress, claims, due_at, created_at, updated_at)
		VALUES ('shop', 'k', '1', 'done', 'null', '{}', 1, 0, 1, 1), ('shop', 'k', '2', 'waiting', 'null', '{}', 1, 0, 1, 1)`)
	require.NoError(t, err)
	for _, want := range []int64{1, 0} {
		n, err := o.Purge(t.Context(), time.Now())
		require.NoError(t, err)
		assert.Equal(t, want, n)
	}
	_, err = o.Counts(t.Context())
	require.NoError(t, err)
	scans, statements, err := driver.Scans(t.Context(), "gateway_operations")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, statements, 5)
	assert.Empty(t, scans)
}
