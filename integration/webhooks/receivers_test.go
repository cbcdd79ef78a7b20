package webhooks_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/gateway-go/gateway/internal/storm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const processes = 8

// Eight processes share one database and one merchant's table. The mock sends
// them events, some twice, some late, some with a wrong or stale signature; an
// attacker forges more; and the processes are killed, sometimes by their own
// handlers between claim and completion. Every event must be in the table
// exactly once, and nothing else may be. With 100,000 events:
//
//	DELIVERIES=100000 integration/run -timeout 3h -run TestReceivers -v ./webhooks
//
//nolint:paralleltest // one database after the other: the machine may be small
func TestReceivers(t *testing.T) {
	few := map[string]int{"PostgreSQL": 4000, "SQLite": 1500}
	for _, d := range databases(t) {
		t.Run(d.name, func(t *testing.T) {
			receivers(t, d, storm.Number(t, "DELIVERIES", few[d.name]))
		})
	}
}

func receivers(t *testing.T, d database, n int) {
	t.Helper()
	dsn := d.dsn(t)
	db, err := sql.Open(d.driver, dsn)
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	store := newStore(t, db, d)
	name, _ := business(t, db)
	s := &storm.Storm{
		Fleet: storm.StartFleet(t, processes, processSpec{
			Driver: d.driver, DSN: dsn, Dialect: d.dialect, Events: store.Table(), Business: name, Deaths: 0.004,
		}),
		Deliveries: n, KillEvery: 400 * time.Millisecond, ForgeEvery: 2 * time.Millisecond,
		Drained: func() bool {
			n, err := store.Counts(t.Context())
			return assert.NoError(t, err) && n.Waiting == 0 && n.Claimed == 0
		},
	}
	s.Run(t)

	var repeated int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+store.Table()+" WHERE attempts > 1").Scan(&repeated))
	left, err := store.Counts(t.Context())
	require.NoError(t, err)
	s.Check(t, effectsOf(t, db, name), left, repeated)
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
