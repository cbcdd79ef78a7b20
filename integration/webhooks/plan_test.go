package webhooks_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/integration/internal/plans"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// maxBuffers is how many buffers one call of Next may touch. The number
// doesn't depend on the machine's load, and a claim within the limit takes a
// few milliseconds.
const maxBuffers = 2000

// explained returns a database with one connection, and the plans of its
// statements.
func explained(t *testing.T) (*sql.DB, *plans.Log) {
	t.Helper()
	db, log, err := plans.Open(os.Getenv("DATABASE_URL"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db, log
}

// take returns the buffers that all statements since the last call touched, and the
// statement that touched the most, with its plan. None may have been compiled.
func take(t *testing.T, log *plans.Log) (buffers int, worst plans.Plan) {
	t.Helper()
	for _, one := range log.Take() {
		require.Nil(t, one.JIT, "a compiled statement:\n%s", &one)
		buffers += one.Root.Buffers()
		if one.Root.Buffers() >= worst.Root.Buffers() {
			worst = one
		}
	}
	return buffers, worst
}

// inboxTable is a table whose statistics the test controls.
type inboxTable struct {
	db interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	}
	name    string
	schema  string
	account string // that the events are added to; "" is the first
}

func newInboxTable(t *testing.T, d target, account string) inboxTable {
	t.Helper()
	db := d.open(t)
	s := newStore(t, db, d)
	account = cmp.Or(account, "shop")
	in := inboxTable{db: db, name: tableOf(t, s), schema: schemaOf(t, s), account: account}
	for _, name := range []string{"shop", account} {
		_, err := view(s, name).Counts(t.Context())
		require.NoError(t, err)
	}
	in.exec(t, "ALTER TABLE "+in.name+" SET (autovacuum_enabled = off)")
	return in
}

// open returns the account's store, as a process that starts has it.
func (in inboxTable) open(t *testing.T, db *sql.DB) *sqlstore.Store[*sql.Tx] {
	t.Helper()
	s := view(sqlstore.New(database.Postgres(db), sqlstore.WithLocation(database.Location{InSchema: in.schema})), in.account)
	_, err := s.Counts(t.Context()) // registering the account has no index
	require.NoError(t, err)
	return s
}

func (in inboxTable) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	_, err := in.db.ExecContext(t.Context(), query, args...)
	require.NoError(t, err)
}

// add adds n events with bodies of the usual size, each for its own resource,
// that have been due for a given time. state is a value of the table's column:
// 1 is waiting, 3 is done.
func (in inboxTable) add(t *testing.T, prefix string, n, state int, due time.Duration) {
	t.Helper()
	key := "id " + prefix
	in.exec(t, `INSERT INTO `+in.name+` (key, event_id, kind, resource, fact, signed, source, late, position, body,
		state, attempts, token, due, lease, since, arrived, matched, reason, account, digest, key_id, trace)
		SELECT '`+key+`' || i, '`+prefix+`' || i, 'transaction.paid', 'transaction/`+prefix+`' || i, '', 1, 'delivery', 0, 3,
			convert_to(repeat('x', 600), 'UTF8'), $2::bigint, 0, '', ms.now - $3::bigint, 0, ms.now, ms.now, '', '', '`+in.account+`', '', '', ''
		FROM generate_series(1, $1::bigint) AS i, (SELECT CAST(EXTRACT(EPOCH FROM now()) * 1000 AS BIGINT) AS now) AS ms`,
		n, state, due.Milliseconds())
}

// Statistics from an empty inbox must not make claims slow once it is full.
func TestAClaimIsCheapWhateverTheStatisticsSay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		if d.dialect != database.DialectPostgres {
			t.Skip("SQLite's planner has no statistics unless ANALYZE is run")
		}
		for name, tc := range map[string]struct {
			analyzed int
			account  string
		}{
			"never": {-1, ""}, "empty": {0, ""}, "almost empty": {30, ""}, "a short queue": {300, ""}, "a queue": {3000, ""}, "full": {100_000, ""},
			"never, a second account": {-1, "shop-mx"}, "a queue, a second account": {3000, "shop-mx"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				const backlog = 100_000
				analyzed := tc.analyzed
				in := newInboxTable(t, d, tc.account)
				if tc.account != "" { // another account is far behind
					first := in
					first.account = ""
					first.add(t, "first", 50_000, 1, 20*time.Minute)
				}
				in.add(t, "done", 50_000, 3, time.Hour)
				in.add(t, "early", max(analyzed, 0), 1, 10*time.Minute)
				if analyzed >= 0 {
					in.exec(t, "ANALYZE "+in.name)
				}
				db, p := explained(t)
				s := in.open(t, db)
				for range 10 { // PostgreSQL settles on a plan while the inbox is empty
					_, err := s.Next(t.Context(), 1, time.Minute)
					require.NoError(t, err)
				}
				in.add(t, "late", backlog-max(analyzed, 0), 1, 0)
				claimCheaply(t, s, p)

				// A process that starts now scans everything once.
				db, p = explained(t)
				s = in.open(t, db)
				_, err := s.Next(t.Context(), 1, time.Minute)
				require.NoError(t, err)
				claimCheaply(t, s, p)
			})
		}
	})
}

// When PostgreSQL estimates the cost of a lookup, it counts the empty pages of
// an index that vacuum has just cleaned. It must not JIT-compile claims because
// of that: compiling one takes a hundred times as long as running it.
func TestAClaimIsNotCompiledAfterAVacuum(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		if d.dialect != database.DialectPostgres {
			t.Skip("SQLite compiles no statements")
		}
		in := newInboxTable(t, d, "")
		in.handle(t, 100_000)
		in.exec(t, "VACUUM ANALYZE "+in.name)
		// As if ANALYZE had sampled only one of the few waiting events.
		in.exec(t, "UPDATE pg_class SET reltuples = 2 WHERE oid = CAST('"+in.schema+".gateway_webhook_events_first' AS regclass)")
		db, p := explained(t)
		s := in.open(t, db)
		in.add(t, "late", 10_000, 1, 0)
		claimCheaply(t, s, p)
	})
}

// claimCheaply claims and completes some batches, enough for PostgreSQL to
// settle on a plan, and for longer than a second, the interval at which a
// process looks for expired leases. It returns the buffers of the most
// expensive call of Next.
func claimCheaply(t *testing.T, s *sqlstore.Store[*sql.Tx], p *plans.Log) (most int) {
	t.Helper()
	p.Take()
	ticks := time.NewTicker(150 * time.Millisecond)
	defer ticks.Stop()
	sweeps := 0
	swept := func(buffers int, worst plans.Plan) bool { // reports whether this was a sweep, which is not measured
		if buffers < maxBuffers {
			return false
		}
		sweeps++
		require.False(t, strings.HasPrefix(worst.Query, "WITH w AS"), "a claim touched %d buffers:\n%s", buffers, &worst)
		require.LessOrEqual(t, sweeps, 2, "a process scans everything with two statements once in ten seconds; this scan touched %d buffers:\n%s",
			buffers, &worst)
		return true
	}
	for range 24 {
		claims, err := s.Next(t.Context(), 16, time.Minute)
		require.NoError(t, err)
		require.Len(t, claims, 16)
		buffers, worst := take(t, p)
		if swept(buffers, worst) {
			continue
		}
		most = max(most, buffers)
		for _, c := range claims {
			require.NoError(t, s.Settle(t.Context(), c, done))
			if buffers, worst = take(t, p); !swept(buffers, worst) {
				require.Less(t, buffers, 200, "buffers of a Complete:\n%s", &worst)
			}
		}
		<-ticks.C
	}
	return most
}

// While a session such as a dump or a report holds a snapshot, vacuum can't
// remove the events handled since: they stay before the waiting events in
// every index.
func TestAClaimSkipsRowsThatASnapshotKeepsFromVacuum(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		if d.dialect != database.DialectPostgres {
			t.Skip("SQLite overwrites rows in place")
		}
		in := newInboxTable(t, d, "")
		snapshot, err := d.open(t).BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		require.NoError(t, err)
		defer func() { _ = snapshot.Rollback() }()
		var n int
		require.NoError(t, snapshot.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+in.name).Scan(&n))

		db, p := explained(t)
		s := in.open(t, db)
		claim := func() int {
			t.Helper()
			in.add(t, fmt.Sprintf("waiting%d-", n), 600, 1, 0)
			_, err := s.Next(t.Context(), 1, time.Minute) // a process scans everything on its first call, and rarely after that
			require.NoError(t, err)
			return claimCheaply(t, s, p)
		}
		var buffers []int
		for _, handled := range []int{1000, 30_000, 100_000} { // 100,000 is 800 events a second for two minutes
			in.handle(t, handled)
			buffers = append(buffers, claim())
			n++
		}
		t.Log("buffers of a claim behind 1,000, 31,000 and 131,000 handled events:", buffers)
		assert.Less(t, buffers[2], 2*buffers[1], "a claim must not scan handled events")
	})
}

// handle adds n events, and claims and completes them as the store does.
func (in inboxTable) handle(t *testing.T, n int) {
	t.Helper()
	prefix := fmt.Sprintf("handled%d-", n)
	in.add(t, prefix, n, 1, 2*time.Minute)
	for _, step := range []string{
		"state = 2, attempts = 1, token = 't', lease = due + 60000",
		"state = 3, body = NULL",
	} {
		in.exec(t, "UPDATE "+in.name+" SET "+step+" WHERE key LIKE 'id "+prefix+"%'")
	}
}

// TestEveryStatementIsCheapAfterABurst: the table was empty when it was analyzed, and
// 4,000 events are due. A statement that reads each of them for each visits its square.
func TestEveryStatementIsCheapAfterABurst(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		if d.dialect != database.DialectPostgres {
			t.Skip("SQLite's planner has no statistics unless ANALYZE is run")
		}
		const backlog = 4000
		for name, tc := range map[string]struct {
			analyzed, running bool
			one               bool // all events are of one resource
			many              int  // rows that a statement may visit
		}{
			"never analyzed":                 {many: 1000},
			"empty":                          {analyzed: true, many: 1000},
			"empty, one resource":            {analyzed: true, one: true, many: 6 * backlog},
			"empty, a process that runs":     {analyzed: true, running: true, many: 6 * backlog},
			"never, one, a process runs":     {running: true, one: true, many: 6 * backlog},
			"never, a process that runs too": {running: true, many: 6 * backlog},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				in := newInboxTable(t, d, "")
				if tc.analyzed {
					in.exec(t, "ANALYZE "+in.name)
				}
				db, log := explained(t)
				s := in.open(t, db)
				for i := range 8 { // PostgreSQL settles on plans
					useQueue(t, s, fmt.Sprint("early", i))
				}
				in.add(t, "late", backlog, 1, 0)
				in.exec(t, "UPDATE "+in.name+" SET fact = 'of ' || event_id, signed = 0 WHERE event_id LIKE 'late%'")
				if tc.one {
					in.exec(t, "UPDATE "+in.name+" SET resource = 'transaction/one' WHERE event_id LIKE 'late%'")
				}
				if !tc.running {
					db, log = explained(t)
					s = in.open(t, db)
				}
				log.Take()
				useQueue(t, s, "after")
				most, statements := 0, 0
				for _, p := range log.Take() {
					if !strings.Contains(p.Query, "gateway_webhook_events") {
						continue
					}
					statements++
					if strings.HasPrefix(p.Query, "SELECT key, event_id") { // a page of Unfinished, which only River's inbox reads
						require.LessOrEqual(t, p.Root.Visited(), 6*backlog, "rows of a page:\n%s", &p)
						continue
					}
					require.LessOrEqual(t, p.Root.Visited(), tc.many, "rows that a statement visited:\n%s", &p)
					most = max(most, p.Root.Visited())
				}
				require.Greater(t, statements, 25, "most statements of a queue")
				t.Log("most rows visited: ", most)
			})
		}
	})
}

// useQueue calls each method of a store that workers and receivers call, with events of its
// own and with others that are due.
func useQueue(t *testing.T, s *sqlstore.Store[*sql.Tx], prefix string) {
	t.Helper()
	ctx := t.Context()
	put := func(name, fact string, signed bool) string {
		id := prefix + name
		e, err := s.Put(ctx, webhook.Record{
			Key: "id " + id, EventID: id, Kind: webhook.TransactionPaid, Resource: "transaction/" + id, Fact: fact, Signed: signed, Body: []byte("{}"),
		})
		require.NoError(t, err)
		return e.Key
	}
	claim := func(key string) *webhook.Claim {
		c, _, err := s.Claim(ctx, key, time.Minute)
		require.NoError(t, err)
		require.NotNil(t, c, key)
		return c
	}
	settle := func(c *webhook.Claim, d webhook.Disposition) { require.NoError(t, s.Settle(ctx, c, d)) }

	put("confirmed", "fact "+prefix, false)
	put("signed", "fact "+prefix, true)
	put("confirmed", "fact "+prefix, false)
	c := claim(put("held", "", true))
	require.NoError(t, s.Extend(ctx, c, time.Minute))
	settle(c, webhook.Disposition{State: webhook.StateWaiting, Released: true})
	c = claim("id " + prefix + "held")
	settle(c, webhook.Disposition{State: webhook.StateWaiting, Reason: "failed"})
	c = claim("id " + prefix + "held")
	settle(c, webhook.Disposition{State: webhook.StateUnhandled, Family: webhook.FamilyTransaction})
	_, err := s.NextUnhandled(ctx, func(webhook.Family, webhook.Kind) bool { return true }, 4, time.Minute)
	require.NoError(t, err)
	key := put("dead", "", true)
	settle(claim(key), webhook.Disposition{State: webhook.StateDead, Reason: "failed"})
	n, err := s.Requeue(ctx, key)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	settle(claim(key), webhook.Disposition{State: webhook.StateDead, Reason: "failed"})
	_, err = s.Discard(ctx, key)
	require.NoError(t, err)
	ordered, _, err := s.ClaimInOrder(ctx, put("ordered", "", true), time.Minute)
	require.NoError(t, err)
	require.NotNil(t, ordered)
	settle(ordered, done)
	for range 3 {
		claims, err := s.Next(ctx, 16, time.Minute)
		require.NoError(t, err)
		for _, c := range claims {
			settle(c, done)
		}
	}
	_, err = s.Unfinished(ctx, "", 10)
	require.NoError(t, err)
}

// On SQLite no statement of the queue scans the table.
func TestNoStatementScansTheTableOnSQLite(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", sqliteDSN(filepath.Join(t.TempDir(), "events.db")))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	driver := plans.OnSQLite(db)
	s := sqlstore.New(driver)
	require.NoError(t, s.Migrate(t.Context()))
	useQueue(t, view(s, "shop"), "one")
	scans, statements, err := driver.Scans(t.Context(), "gateway_webhook_events")
	require.NoError(t, err)
	require.Greater(t, statements, 20)
	scans = slices.DeleteFunc(scans, func(text string) bool { return strings.Contains(text, "SET due = CASE WHEN due > since") }) // once in a process
	require.Empty(t, scans)
}

// A purge reads what it deletes, and the counts what they count, whatever the planner believes about the
// table: neither what is too young nor what an earlier batch has deleted.
func TestAPurgeIsCheapWhateverTheStatisticsSay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		if d.dialect != database.DialectPostgres {
			t.Skip("SQLite's planner has no statistics unless ANALYZE is run")
		}
		for name, analyzed := range map[string]bool{"never": false, "empty": true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				in := newInboxTable(t, d, "")
				if analyzed {
					in.exec(t, "ANALYZE "+in.name)
				}
				const each = 10_000 // of old and young events, done and set aside
				in.exec(t, `INSERT INTO `+in.name+` (key, event_id, kind, resource, fact, signed, source, late, position, body,
					state, aside, attempts, token, due, lease, since, arrived, matched, reason, account, digest, key_id, trace)
					SELECT 'k' || i, 'e' || i, 'transaction.paid', 'transaction/' || i, '', 1, 'delivery', 0, 3, NULL,
						CASE WHEN i % 2 = 0 THEN 3 ELSE 5 END, CASE WHEN i % 2 = 0 THEN '' ELSE 'kind ' || i % 3 END, 0, '', at, 0, at, at, '', '', 'shop', '', '', ''
					FROM (SELECT i, CAST(EXTRACT(EPOCH FROM now()) * 1000 AS BIGINT) - CASE WHEN i <= 2 * $1::bigint THEN 10000 ELSE 3 END * CAST(3600000 AS bigint) + i AS at
						FROM generate_series(1, 4 * $1::bigint) AS i) AS q`, each)
				db, log := explained(t)
				s := in.open(t, db)
				_ = log.Take()
				purged, err := s.Purge(t.Context())
				require.NoError(t, err)
				assert.Equal(t, webhook.Purged{Done: each, Unhandled: each}, purged)
				batches := 0
				for _, one := range log.Take() {
					require.Nil(t, one.JIT, "a compiled statement:\n%s", &one)
					if !strings.HasPrefix(one.Query, "DELETE") {
						continue
					}
					batches++
					// A batch is read from the index, read by its numbers, and deleted.
					assert.LessOrEqual(t, one.Root.Visited(), 5000, "%s", &one)
					assert.False(t, one.Root.Scans(), "%s", &one)
					assert.LessOrEqual(t, one.Root.Buffers(), 12_000, "%s", &one)
				}
				assert.GreaterOrEqual(t, batches, 2*each/1000)
				n, err := s.Counts(t.Context())
				require.NoError(t, err)
				assert.Equal(t, each, n.Unhandled)
				for _, one := range log.Take() {
					assert.False(t, one.Root.Scans(), "%s", &one)
				}
			})
		}
	})
}
