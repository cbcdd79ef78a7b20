package webhooks_test

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/storm"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

const processes = 8

// Eight processes share one database and one merchant's table. Each has receivers
// of two accounts, and the events of a resource go to one of them. The mock sends
// them events, some twice, some late, some with a wrong or stale signature; an
// attacker forges more; and the processes are killed, sometimes by their own
// handlers between claim and completion. Every event must be in the table
// exactly once, and nothing else may be. With 100,000 events:
//
//	DELIVERIES=100000 integration/run -timeout 3h -run TestReceivers -v ./webhooks
//
//nolint:paralleltest // one database after the other: the machine may be small
func TestReceivers(t *testing.T) {
	few := map[string]int{"PostgreSQL": 1500, "SQLite": 800}
	for _, d := range databases(t) {
		t.Run(d.name, func(t *testing.T) {
			receivers(t, d, false, storm.Number(t, "DELIVERIES", few[d.name]))
		})
		if d.dialect == database.DialectPostgres {
			t.Run(d.name+" with pgx", func(t *testing.T) {
				receivers(t, d, true, storm.Number(t, "DELIVERIES", few[d.name]/2))
			})
		}
	}
}

func receivers(t *testing.T, d target, withPGX bool, n int) {
	t.Helper()
	dsn := d.dsn(t)
	db, err := sql.Open(d.driver, dsn)
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	store := newStore(t, db, d)
	name, _ := business(t, db)
	s := &storm.Storm{
		Fleet: storm.StartFleet(t, processes, processSpec{
			Driver: d.driver, DSN: dsn, Dialect: d.dialect, PGX: withPGX,
			Schema: schemaOf(t, store), Business: name, Deaths: 0.004,
		}),
		Deliveries: n, KillEach: 25, Forge: 3,
		Drained: func() bool {
			left := unfinished(t, store)
			return left.Waiting == 0 && left.Claimed == 0
		},
	}
	s.Run(t)

	var repeated int
	count := "SELECT COUNT(*) FROM " + tableOf(t, store) + " WHERE attempts > 1 OR expired > 0"
	require.NoError(t, db.QueryRowContext(t.Context(), count).Scan(&repeated))
	s.Check(t, effectsOf(t, db, name), unfinished(t, store), repeated)
}

// unfinished adds up the events of all accounts.
func unfinished(t *testing.T, store *sqlstore.Store[*sql.Tx]) (sum webhook.Counts) {
	t.Helper()
	for _, account := range stormAccounts {
		n, err := view(store, account).Counts(t.Context())
		assert.NoError(t, err)
		sum.Waiting, sum.Claimed = sum.Waiting+n.Waiting, sum.Claimed+n.Claimed
		sum.Dead, sum.Unhandled = sum.Dead+n.Dead, sum.Unhandled+n.Unhandled
	}
	return sum
}

func effectsOf(t *testing.T, db *sql.DB, name string) map[string]int {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT event_id, COUNT(*) FROM "+name+" GROUP BY event_id")
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	effects := make(map[string]int)
	for rows.Next() {
		var id string
		var n int
		require.NoError(t, rows.Scan(&id, &n))
		effects[id] = n
	}
	require.NoError(t, rows.Err())
	return effects
}
