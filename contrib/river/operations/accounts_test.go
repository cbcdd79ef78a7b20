package operations_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/river/operations"
	"github.com/gateway-go/gateway/mockserver"
)

// A process that serves only A neither works nor fails the jobs of B, even if
// its River client has the queue of B.
func TestAWorkerLeavesTheJobsOfOtherAccounts(t *testing.T) {
	t.Parallel()
	a := open(t, nil)
	b := a.beside("b")
	config := &river.Config{
		Logger: quiet, TestOnly: true, FetchCooldown: 10 * time.Millisecond, FetchPollInterval: 50 * time.Millisecond,
		Queues: map[string]river.QueueConfig{b.outbox.Queue(): {MaxWorkers: 4}},
	}
	require.NoError(t, a.outbox.Configure(config))
	client, err := river.NewClient(riverpgxv5.New(a.pool), config)
	require.NoError(t, err)
	require.NoError(t, client.Start(context.WithoutCancel(t.Context())))
	entry := b.insert(payout("payout-1", 250))[0]
	job := func() (state string, attempts, failures int) {
		require.NoError(t, a.pool.QueryRow(t.Context(), `SELECT j.state, j.attempt, COALESCE(cardinality(j.errors), 0)
			FROM river_job j JOIN gateway_operations o ON o.job_id = j.id WHERE o.id = $1`, entry.ID).Scan(&state, &attempts, &failures))
		return state, attempts, failures
	}
	require.Eventually(t, func() bool { state, _, _ := job(); return state == "scheduled" }, time.Minute, 10*time.Millisecond)
	_, attempts, failures := job()
	assert.Zero(t, attempts, "a snooze is no attempt")
	assert.Zero(t, failures)
	stopping, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, client.StopAndCancel(stopping))
	assert.Zero(t, a.gw.Requests.Count(""))
	list, err := b.outbox.List(t.Context(), operations.Query{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, operations.Waiting, list[0].State)

	_, err = a.pool.Exec(t.Context(), `UPDATE river_job SET scheduled_at = now(), state = 'available' WHERE finalized_at IS NULL`)
	require.NoError(t, err)
	a.work(b.outbox)
	b.reaches("payout-1", operations.Done)
	assert.Equal(t, map[string][]int64{"payout-1": {250}}, b.payouts())
	assert.Empty(t, a.payouts())
}

// The process that River elects as its leader may serve other accounts. An
// operation whose job is lost must be found all the same.
func TestTheLeaderWakesTheOperationsOfEveryAccount(t *testing.T) {
	t.Parallel()
	a := open(t, nil)
	b := a.beside("b")
	a.insert(payout("payout-1", 100))
	b.insert(payout("payout-1", 250))
	a.work(a.outbox)
	a.reaches("payout-1", operations.Done) // a's process leads
	b.work(b.outbox)
	b.reaches("payout-1", operations.Done)
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		e, err := b.outbox.InsertTx(t.Context(), tx, payout("payout-2", 300))
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `DELETE FROM river_job WHERE id = (SELECT job_id FROM gateway_operations WHERE id = $1)`, e.ID)
		return err
	}))
	b.reaches("payout-2", operations.Done)
}

// A process whose account has another environment's base URL leaves its jobs to the
// processes that are right.
func TestANameOfAnotherEnvironmentSendsNothing(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	sandbox := mockserver.Run(t)
	config := w.config
	var err error
	config.Client, err = gateway.New("https://sandbox.gateway.example", gateway.BearerToken(sandbox.Key()), gateway.WithAccount(w.account),
		gateway.WithHTTPClient(&http.Client{Transport: sandbox.Transport()}))
	require.NoError(t, err)
	wrong, err := operations.New(w.pool, config)
	require.NoError(t, err)
	stop := w.work(wrong)
	e := w.insert(payout("payout-1", 100))[0]
	require.Eventually(t, func() bool {
		var state string
		assert.NoError(t, w.pool.QueryRow(t.Context(), `SELECT j.state FROM river_job j JOIN gateway_operations o ON o.job_id = j.id WHERE o.id = $1`,
			e.ID).Scan(&state))
		return state == "scheduled"
	}, time.Minute, 10*time.Millisecond)
	stop()
	assert.Zero(t, sandbox.Requests.Count(""))
}

func TestQueueNames(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, account := range []string{
		"shop", "shop-br", "shop_br", "Shop", "shop.br", "shop--br", "-shop", "shop-", "...", strings.Repeat("a", 45), strings.Repeat("a", 46), strings.Repeat("a", 64),
	} {
		outbox, err := operations.New(unconnected(t), operations.Config{Client: namedClient(t, account), Logger: quiet})
		require.NoError(t, err)
		queue := outbox.Queue()
		assert.Empty(t, seen[queue], account)
		seen[queue] = account
		config := &river.Config{Logger: quiet}
		require.NoError(t, outbox.Configure(config))
		_, err = river.NewClient(riverpgxv5.New(unconnected(t)), config)
		require.NoError(t, err, "River must accept the queue %s", queue)
	}
	assert.Equal(t, "shop-br", seen["gateway_operations_shop-br"])
	assert.Equal(t, strings.Repeat("a", 45), seen["gateway_operations_"+strings.Repeat("a", 45)])
}
