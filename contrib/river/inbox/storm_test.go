package inbox_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/river/inbox"
	"github.com/gateway-go/gateway/internal/storm"
	"github.com/gateway-go/gateway/webhook"
)

// Four processes share a database. Each has receivers of two accounts, and the
// events of a resource go to one of them. The mock gateway sends them events, some twice,
// late, or with a wrong signature. An attacker forges more. The processes are killed
// from outside and by their own handlers, between the effect and the commit.
// Each event must have exactly one effect, and nothing else may have one.
//
//	DELIVERIES=100000 ../../../integration/with-postgres go test -timeout 3h -run TestRiverStorm -v .
//
//nolint:paralleltest // the machine may be small
func TestRiverStorm(t *testing.T) {
	url := newDatabase(t)
	pool := newPool(t, url)
	in, err := inbox.New(inbox.Config{Pool: pool, Logger: quiet})
	require.NoError(t, err)
	require.NoError(t, in.Migrate(t.Context()))
	s := &storm.Storm{
		Fleet:      storm.StartFleet(t, 4, processSpec{URL: url, Deaths: 0.004, Failures: 0.02}),
		Deliveries: storm.Number(t, "DELIVERIES", 1200), KillEach: 25, Forge: 2,
		Drained: func() bool {
			left := unfinished(t, in)
			return left.Waiting == 0 && left.Claimed == 0
		},
	}
	s.Run(t)

	effects := map[string]int{}
	rows, err := pool.Query(t.Context(), `SELECT event_id, COUNT(*) FROM effects GROUP BY event_id`)
	require.NoError(t, err)
	var id string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error { effects[id] = n; return nil })
	require.NoError(t, err)
	events, err := in.Table(t.Context())
	require.NoError(t, err)
	rows, err = pool.Query(t.Context(), `SELECT COUNT(*) FROM `+events+` WHERE attempts > 1 OR expired > 0`)
	require.NoError(t, err)
	repeated, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	require.NoError(t, err)
	s.Check(t, effects, unfinished(t, in), repeated)
}

// unfinished adds up the events of all accounts.
func unfinished(t *testing.T, in *inbox.Inbox) (sum webhook.Counts) {
	t.Helper()
	for _, account := range stormAccounts {
		n, err := in.For(gateway.Account{Name: account}).Counts(t.Context())
		assert.NoError(t, err)
		sum.Waiting, sum.Claimed = sum.Waiting+n.Waiting, sum.Claimed+n.Claimed
		sum.Dead, sum.Unhandled = sum.Dead+n.Dead, sum.Unhandled+n.Unhandled
	}
	return sum
}
