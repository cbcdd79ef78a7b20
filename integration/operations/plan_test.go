package operations_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"strings"
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

// backlog is how many operations are due. A statement that reads each of them for each
// visits its square.
const backlog = 4000

// limits is how many rows a statement may visit. They don't depend on the load of the
// machine.
type limits struct{ one, look int }

var (
	// indexed: a few rows for one operation, and a few for each that a look returns.
	indexed = limits{20, 500}
	// ordered: all are of one resource, so a look reads each, to find the one that has no
	// earlier rival, and a claim does, to find one in flight.
	ordered = limits{3 * backlog, 6 * backlog}
	// small: the plans were made when the whole table had one page, which is scanned faster
	// than looked up. PostgreSQL keeps such a plan until the next ANALYZE, a minute later.
	small = limits{2 * backlog, 500}
)

// queue is an outbox whose table has statistics that the test controls.
type queue struct {
	*testing.T

	name   string
	db     *sql.DB // to prepare the table
	table  string
	gw     *mockserver.Server
	log    *plans.Log
	outbox *operations.Outbox[*sql.Tx]
}

func newQueue(t *testing.T) *queue {
	t.Helper()
	q := &queue{T: t, name: onPostgres.create(t), gw: mockserver.Run(t, mockserver.WithOpeningBalance(1e9))}
	var err error
	q.db, err = onPostgres.connect(q.name)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.db.Close()) })
	q.open()
	q.exec("ALTER TABLE " + q.table + " SET (autovacuum_enabled = off)")
	return q
}

// open opens the outbox as a process that starts.
func (q *queue) open() {
	q.Helper()
	explained, log, err := plans.Open(q.name)
	require.NoError(q, err)
	q.Cleanup(func() { assert.NoError(q, explained.Close()) })
	q.log = log
	q.outbox, err = operations.New(database.Postgres(explained), operations.Config{
		Client: q.gw.Client(gateway.WithAccount("shop")), Logger: quiet, PollInterval: 20 * time.Millisecond,
		SendTimeout: 10 * time.Second, SettleAfter: 20 * time.Second, // the machine may be busy
	})
	require.NoError(q, err)
	require.NoError(q, q.outbox.Migrate(q.Context()))
	q.table, err = q.outbox.Table(q.Context())
	require.NoError(q, err)
	operations.OnResult(q.outbox, func(_ context.Context, _ *sql.Tx, r operations.RefundResult) error { return r.Err })
	operations.OnResult(q.outbox, func(_ context.Context, _ *sql.Tx, r operations.TransferResult) error { return r.Err })
}

func (q *queue) exec(text string, args ...any) {
	q.Helper()
	_, err := q.db.ExecContext(q.Context(), text, args...)
	require.NoError(q, err)
}

// insert inserts operations in a state, as InsertTx stores them.
func (q *queue) insert(state string, ops ...operations.Operation) {
	q.Helper()
	type row struct {
		Kind     string               `json:"kind"`
		Key      string               `json:"key"`
		Resource *string              `json:"resource"`
		Params   operations.Operation `json:"params"`
	}
	rows := make([]row, len(ops))
	for i, op := range ops {
		switch op := op.(type) {
		case operations.Refund:
			resource := "transactions/" + strings.ToLower(op.TransactionID)
			rows[i] = row{"transactions.refund", op.Key, &resource, op}
		case operations.CreateTransfer:
			rows[i] = row{"transfers.create", op.ExternalRef, nil, op}
		}
	}
	text, err := json.Marshal(rows)
	require.NoError(q, err)
	q.exec(`INSERT INTO `+q.table+` (account, kind, key, resource, params, state, progress, claims, due_at, created_at, updated_at)
		SELECT 'shop', kind, key, resource, params, $2, '{}', 0, ms.now, ms.now, ms.now
		FROM json_to_recordset(CAST($1 AS json)) AS r(kind text, key text, resource text, params jsonb),
			(SELECT CAST(EXTRACT(EPOCH FROM now()) * 1000 AS BIGINT) AS now) AS ms`, string(text), state)
}

// refunds returns n refunds of a cent, each of its own transaction or all of one.
func (q *queue) refunds(prefix string, n int, one bool) (ops []operations.Operation) {
	q.Helper()
	var charge *gateway.Transaction
	for i := range n {
		if charge == nil || !one {
			var err error
			charge, err = q.gw.Client().Transactions.Create(q.Context(), order("", 100_000))
			require.NoError(q, err)
			require.NoError(q, q.gw.Transactions.Pay(charge.ID))
		}
		ops = append(ops, operations.Refund{Key: fmt.Sprint(prefix, i), TransactionID: charge.ID, Amount: 1})
	}
	return ops
}

func payouts(prefix string, n int) (ops []operations.Operation) {
	for i := range n {
		ops = append(ops, payout(fmt.Sprint(prefix, i), 1000))
	}
	return ops
}

// work runs the outbox until n operations of the test are done.
func (q *queue) work(n int) {
	q.Helper()
	ctx, cancel := context.WithCancel(q.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- q.outbox.Run(ctx) }()
	done := 0
	for deadline := time.Now().Add(2 * time.Minute); done < n && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		require.NoError(q, q.db.QueryRowContext(q.Context(), `SELECT COUNT(*) FROM `+q.table+` WHERE state = 'done' AND key LIKE '%-%'`).Scan(&done))
	}
	cancel()
	require.NoError(q, <-ended)
	if done >= n {
		return
	}
	var left string
	require.NoError(q, q.db.QueryRowContext(q.Context(), `SELECT COALESCE(string_agg(key || ' ' || state || ' ' || progress, E'\n'), '') FROM `+q.table+`
		WHERE state IN ('working', 'sent', 'ambiguous', 'decided', 'dead')`).Scan(&left))
	require.Fail(q, "the outbox does not work", "%d of %d are done; in flight:\n%s", done, n, left)
}

// TestTheQueueIsCheapWhateverTheStatisticsSay: the planner takes the queue for empty,
// because it was when the table was analyzed, and when the plans were made.
func TestTheQueueIsCheapWhateverTheStatisticsSay(t *testing.T) {
	t.Parallel()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: run ../with-postgres go test ./operations")
	}
	kinds := map[string]func(q *queue, prefix string, n int) []operations.Operation{
		"refunds":        func(q *queue, prefix string, n int) []operations.Operation { return q.refunds(prefix, n, false) },
		"payouts":        func(_ *queue, prefix string, n int) []operations.Operation { return payouts(prefix, n) },
		"refunds of one": func(q *queue, prefix string, n int) []operations.Operation { return q.refunds(prefix, n, true) },
	}
	for name, analyze := range map[string]func(q *queue){
		"never analyzed": func(*queue) {},
		"empty":          func(q *queue) { q.exec("ANALYZE " + q.table) },
		"all done": func(q *queue) {
			q.exec(`INSERT INTO ` + q.table + ` (account, kind, key, resource, params, state, progress, claims, due_at, created_at, updated_at)
				SELECT 'shop', 'transactions.refund', 'old' || i, 'transactions/old' || i, 'null', 'done', '{}', 3, 0, 0, 0 FROM generate_series(1, 50000) AS i`)
			q.exec("ANALYZE " + q.table)
		},
	} {
		for kind, made := range kinds {
			for process, running := range map[string]bool{"a process that starts": false, "a process that runs": true} {
				t.Run(name+", "+kind+", "+process, func(t *testing.T) {
					t.Parallel()
					limit := indexed
					switch {
					case kind == "refunds of one":
						limit = ordered
					case running && name != "all done":
						limit = small
					}
					q := newQueue(t)
					analyze(q)
					q.insert("waiting", made(q, "early-", 12)...)
					q.work(12) // PostgreSQL settles on plans
					q.insert("waiting", made(q, "late-", backlog)...)
					if !running {
						q.open()
					}
					q.log.Take()
					q.work(12 + 30)
					q.within(limit)
				})
			}
		}
	}
}

// within checks the statements since the last look at the log.
func (q *queue) within(l limits) {
	q.Helper()
	most := make(map[string]int)
	for _, p := range q.log.Take() {
		if !strings.Contains(p.Query, "gateway_operations") {
			continue
		}
		what, limit := strings.Fields(p.Query)[0], l.one
		if strings.HasPrefix(p.Query, "SELECT id, due_at") {
			what, limit = "look", l.look
		}
		visited := p.Root.Visited()
		most[what] = max(most[what], visited)
		require.LessOrEqual(q, visited, limit, "rows that a statement visited:\n%s", &p)
		require.False(q, limit < backlog && p.Root.Scans(), "a statement scanned the table:\n%s", &p)
		require.Nil(q, p.JIT, "a statement was compiled:\n%s", &p)
	}
	require.Contains(q, most, "look")
	require.Contains(q, most, "UPDATE")
	q.Log("rows visited:", most)
}

// On SQLite no statement of the queue scans the table.
func TestTheQueueIsNotScannedOnSQLite(t *testing.T) {
	t.Parallel()
	db, err := onSQLite.connect(onSQLite.create(t))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	driver := plans.OnSQLite(db)
	q := &queue{T: t, db: db, gw: mockserver.Run(t, mockserver.WithOpeningBalance(1e9))}
	o, err := operations.New(driver, operations.Config{Client: q.gw.Client(gateway.WithAccount("shop")), Logger: quiet, PollInterval: 20 * time.Millisecond})
	require.NoError(t, err)
	require.NoError(t, o.Migrate(t.Context()))
	done := make(chan struct{}, 4)
	operations.OnResult(o, func(_ context.Context, _ *sql.Tx, r operations.RefundResult) error {
		done <- struct{}{}
		return r.Err
	})
	var last *operations.Entry
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	for _, op := range q.refunds("refund-", 4, true) {
		last, err = o.InsertTx(t.Context(), tx, op)
		require.NoError(t, err)
	}
	require.NoError(t, tx.Commit())
	_, err = o.Work(t.Context(), last.ID) // it has to wait for the others
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	for range 4 {
		<-done
	}
	_, err = o.Send(t.Context(), last.ID)
	require.NoError(t, err)
	cancel()
	require.NoError(t, <-ended)
	scans, statements, err := driver.Scans(t.Context(), "gateway_operations")
	require.NoError(t, err)
	require.Greater(t, statements, 6)
	require.Empty(t, scans)
}
