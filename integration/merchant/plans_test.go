package merchant_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/integration/internal/plans"
	"github.com/gateway-go/gateway/merchant"
)

// The statistics are of a moment when nothing waited, and 4,000 callbacks and comparisons are
// due: a look for callbacks reads the queue once, and everything else a few rows.
func TestAFullQueueIsReadOnceWhateverTheStatisticsSay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres)
	const waiting = 4000
	w.patient().open()
	c := w.charge(pix(w.order("S1"), 700))
	require.NoError(t, w.gw.Transactions.Pay(c.TransactionID))
	w.refresh(c.ID)
	for _, table := range []string{"gateway_facts", "gateway_checks", "gateway_charges", "gateway_orders", "gateway_refunds"} {
		w.exec(`ALTER TABLE ` + table + ` SET (autovacuum_enabled = off)`)
		w.exec(`ANALYZE ` + table)
	}
	w.exec(`INSERT INTO gateway_facts (key, account, book, stream, subject, record, charge, kind, amount, currency, about, at, month, source, callback,
			created_at, delivered_at, due_at, attempts, error)
		SELECT key || i, account, book, stream, subject || i, record || i, charge, kind, amount, currency, about, at, month, source, callback, created_at, NULL, due_at, 0, ''
		FROM gateway_facts, generate_series(1, ?) AS i WHERE kind = 'settled'`, waiting)
	w.exec(`INSERT INTO gateway_orders (book, subject, currency, paid, fee, refunded, disputed, paid_out, adjusted, settled_by)
		SELECT book, subject || i, currency, paid, fee, refunded, disputed, paid_out, adjusted, settled_by
		FROM gateway_orders, generate_series(1, ?) AS i`, waiting)
	w.exec(`INSERT INTO gateway_charges (id, account, book, subject, attempt, ref, transaction_id, state, created_at, record)
		SELECT id || i, account, book, subject || i, attempt, ref || i, transaction_id || i, state, created_at, record
		FROM gateway_charges, generate_series(1, ?) AS i`, waiting)
	w.exec(`INSERT INTO gateway_checks (kind, id, account, lane, check_at)
		SELECT kind, id || i, account, 2, 1 FROM gateway_checks, generate_series(1, ?) AS i`, waiting)

	explained, log, err := plans.Open(w.name)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, explained.Close()) })
	explained.SetMaxOpenConns(3)
	var called atomic.Int64
	w.on.Paid = func(context.Context, *txn, *merchant.Charge) error {
		called.Add(1)
		return nil
	}
	m, err := merchant.Open(t.Context(), ofSQL(database.Postgres(explained)), w.cfg, w.on)
	require.NoError(t, err)
	log.Take()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	w.eventually("two looks", func() bool { return called.Load() > 600 })
	cancel()
	require.NoError(t, <-ended)

	looks, claims, pages := 0, 0, 0
	for _, p := range log.Take() {
		most := 200
		switch {
		case strings.Contains(p.Query, "ORDER BY f.due_at"):
			looks++
			most = 3 * waiting // the fact, and whether an earlier one of its order waits
		case strings.Contains(p.Query, "created_at <= "):
			most = 2 * waiting // once a minute: what waits for another process
		case strings.Contains(p.Query, "gateway_checks SET lease_until") && strings.Contains(p.Query, "ORDER BY"):
			claims++
			if strings.Contains(p.Query, "q.kind = 'charge'") {
				pages++
				most = 5 * 100 // a page of a walk: found, limited, locked, read and written
			}
		case strings.Contains(p.Query, "gateway_checks SET check_at"):
			most = 2 * waiting // a table of so few pages is read as fast as 16 of its rows by their keys
		case strings.Contains(p.Query, "SELECT seq, account, month"):
			most = 4 * waiting // the next facts for the totals, which are all
		case !strings.Contains(p.Query, "gateway_facts") && !strings.Contains(p.Query, "gateway_checks") &&
			!strings.Contains(p.Query, "gateway_charges") && !strings.Contains(p.Query, "gateway_orders"):
			continue
		}
		assert.LessOrEqual(t, p.Root.Visited(), most, p.String())
	}
	assert.Positive(t, looks)
	assert.Positive(t, claims)
	assert.Positive(t, pages)
}

// What a person or a dashboard looks at does not read all that was ever booked, whatever the
// planner believes about the tables.
func TestSumsAndCountsAreReadByIndexWhateverTheStatisticsSay(t *testing.T) {
	t.Parallel()
	for name, analyzed := range map[string]int{"never": -1, "empty": 0, "full": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, postgres)
			w.patient().open()
			c := w.charge(pix(w.order("S1"), 700))
			tables := []string{
				"gateway_facts", "gateway_refunds", "gateway_charges", "gateway_totals", "gateway_unsummed", "gateway_operations",
				"gateway_webhook_events",
			}
			analyze := func(when int) {
				for _, table := range tables {
					w.exec(`ALTER TABLE ` + table + ` SET (autovacuum_enabled = off)`)
					if analyzed == when {
						w.exec(`ANALYZE ` + table)
					}
				}
			}
			analyze(0)
			const many = 60_000
			w.exec(`INSERT INTO gateway_facts (key, account, book, stream, subject, record, charge, kind, amount, currency, about, at, month, source, callback,
					created_at, delivered_at, due_at, attempts, error)
				SELECT 'k' || i, 'shop', 'shop', '', 'order/' || i, '', '', 'paid', 100, 'BRL', 0, i, '2026-1' || i % 2, '', 'paid', i, i, i, 0, ''
				FROM generate_series(1, ?) AS i`, many)
			w.exec(`INSERT INTO gateway_refunds (book, id, charge, state, created_at, record)
				SELECT 'shop', 'r' || i, ?, 'refunded', i, '{}' FROM generate_series(1, CAST(? AS bigint)) AS i`, c.ID, many)
			w.exec(`INSERT INTO gateway_operations (account, kind, key, resource, params, state, progress, claims, due_at, created_at, updated_at)
				SELECT 'shop', 'k', 'old' || i, NULL, 'null', 'done', '{}', 3, 0, i, i FROM generate_series(1, ?) AS i`, many)
			w.adds()
			w.exec(`INSERT INTO gateway_facts (key, account, book, stream, subject, record, charge, kind, amount, currency, about, at, month, source, callback,
					created_at, delivered_at, due_at, attempts, error)
				SELECT 'late' || i, 'shop', 'shop', '', 'order/' || i, '', '', 'paid', 100, 'BRL', 0, i, '2026-11', '', 'paid', i, i, i, 0, ''
				FROM generate_series(1, ?) AS i`, 100)
			analyze(1)

			explained, log, err := plans.Open(w.name)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, explained.Close()) })
			explained.SetMaxOpenConns(3)
			m, err := merchant.Open(t.Context(), ofSQL(database.Postgres(explained)), w.cfg, w.on)
			require.NoError(t, err)
			log.Take()
			for range 7 { // PostgreSQL settles on plans
				s, err := m.Month(t.Context(), "shop", "2026-11")
				require.NoError(t, err)
				assert.Equal(t, int64(100*(many+100)), s.Closing)
				_, err = m.Health(t.Context())
				require.NoError(t, err)
				require.NoError(t, m.Idle(t.Context()))
			}
			read := make(map[string]int)
			for _, p := range log.Take() {
				for _, table := range tables {
					if strings.Contains(p.Query, table) {
						read[table]++
					}
				}
				if strings.Contains(p.Query, "gateway_") {
					assert.LessOrEqual(t, p.Root.Visited(), 1000, p.String())
					assert.Nil(t, p.JIT, p.String())
				}
			}
			for _, table := range tables {
				assert.GreaterOrEqual(t, read[table], 7, table)
			}
		})
	}
}

// On SQLite they read no table as a whole.
func TestSumsAndCountsAreReadByIndexOnSQLite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite)
	w.open()
	w.exec(w.storing(paidIn("2026-08", 1)))
	w.adds()
	driver := plans.OnSQLite(w.db)
	m, err := merchant.Open(t.Context(), ofSQL(driver), w.cfg, w.on)
	require.NoError(t, err)
	_, err = m.Month(t.Context(), "shop", "2026-08")
	require.NoError(t, err)
	_, err = m.Health(t.Context())
	require.NoError(t, err)
	require.NoError(t, m.Idle(t.Context()))
	for _, table := range []string{"gateway_facts", "gateway_refunds", "gateway_charges", "gateway_operations"} {
		scans, statements, err := driver.Scans(t.Context(), table)
		require.NoError(t, err)
		assert.Positive(t, statements, table)
		scans = slices.DeleteFunc(scans, func(plan string) bool { // what waits is what they count
			return strings.Contains(plan, "INDEX gateway_facts_due") || strings.Contains(plan, "INDEX gateway_refunds_accepted")
		})
		assert.Empty(t, scans, table)
	}
}
