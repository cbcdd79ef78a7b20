package operations_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/river/operations"
	"github.com/gateway-go/gateway/database"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	client, pool := namedClient(t, "shop"), unconnected(t)
	_, err := operations.New(nil, operations.Config{Client: client})
	require.ErrorContains(t, err, "the pool is nil")
	_, err = operations.NewReader(nil, "shop", database.Location{})
	require.ErrorContains(t, err, "the pool is nil")
	_, err = operations.NewReader(pool, "a\nb", database.Location{})
	require.ErrorContains(t, err, "name")
	_, err = operations.New(pool, operations.Config{Client: client, PollInterval: -1})
	require.ErrorContains(t, err, "Config.PollInterval must not be negative")
	outbox, err := operations.New(pool, operations.Config{Client: client, Workers: 5})
	require.NoError(t, err)
	config := &river.Config{}
	require.NoError(t, outbox.Configure(config))
	assert.Equal(t, map[string]river.QueueConfig{"gateway_operations_shop": {MaxWorkers: 5}}, config.Queues)
	assert.Len(t, config.PeriodicJobs, 1)
	require.ErrorContains(t, outbox.Configure(config), "already has an outbox of the account shop")
	require.ErrorContains(t, outbox.Run(t.Context()), "an engine works on the operations of this outbox")
}

// Each name of the outbox's package has one here, except those that this package
// replaces or that are for engines and other databases.
func TestEveryNameOfTheOutboxHasOneHere(t *testing.T) {
	t.Parallel()
	ours := exported(t, "*.go")
	for _, instead := range []string{"NewWithEngine", "Engine"} {
		ours[instead] = true
	}
	names := exported(t, "../../../operations/*.go")
	assert.Contains(t, names, "OnResult")
	for name := range names {
		assert.True(t, ours[name], "names.go lacks %s", name)
	}
}

// exported returns the exported names of files, without methods.
func exported(t *testing.T, pattern string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	names := make(map[string]bool)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for name := range file.Scope.Objects {
			if ast.IsExported(name) {
				names[name] = true
			}
		}
	}
	return names
}

// An operation survives if an admin deletes its River job or a process dies
// with it.
func TestALostJobIsReplaced(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.insert(operations.CreateTransaction(order("order-1", 500)))
	_, err := w.pool.Exec(t.Context(), `DELETE FROM river_job`)
	require.NoError(t, err)
	w.work(w.outbox)
	w.reaches("order-1", operations.Done)
}

// With River, a claimed operation has a job like any other: its process need not send it.
func TestAClaimedOperationHasAJob(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	require.NoError(t, pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		c, err := w.outbox.InsertClaimedTx(t.Context(), tx, operations.CreateTransaction(order("order-1", 500)))
		if err == nil {
			assert.Equal(t, operations.Waiting, c.Entry.State)
		}
		return err
	}))
	var jobs int
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT COUNT(*) FROM river_job`).Scan(&jobs))
	assert.Equal(t, 1, jobs)
	w.work(w.outbox)
	w.reaches("order-1", operations.Done)
}

// An operator paused the queue, for example to restore a backup: a process that starts
// leaves the operations alone until the operator resumes it.
func TestAPausedQueueStaysPaused(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.insert(payout("payout-1", 100))
	_, err := w.pool.Exec(t.Context(), `INSERT INTO river_queue (name, created_at, metadata, paused_at, updated_at) VALUES ($1, now(), '{}', now(), now())`, w.outbox.Queue())
	require.NoError(t, err)
	w.outbox = w.newOutbox()
	w.work(w.outbox)
	client, err := river.NewClient(riverpgxv5.New(w.pool), &river.Config{Logger: quiet})
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the workers have started
		queue, err := client.QueueGet(t.Context(), w.outbox.Queue())
		return assert.NoError(t, err) && queue.UpdatedAt.After(*queue.PausedAt)
	}, time.Minute, 10*time.Millisecond)
	list, err := w.outbox.List(t.Context(), operations.Query{})
	require.NoError(t, err)
	assert.Equal(t, operations.Waiting, list[0].State)
	require.NoError(t, client.QueueResume(t.Context(), w.outbox.Queue(), nil))
	w.reaches("payout-1", operations.Done)
}

// An operation has one job, although it is inserted twice, and River's tables and UI
// show no personal data of it.
func TestAJobHasOnlyTheIdentityOfItsOperation(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	for range 2 {
		w.insert(operations.CreateTransaction(order("order-1", 500)))
	}
	var jobs int
	var args string
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT count(*), string_agg(args::text || metadata::text, '') FROM river_job`).Scan(&jobs, &args))
	assert.Equal(t, 1, jobs)
	assert.NotContains(t, args, "ana@example.com")
	assert.NotContains(t, args, "52998224725")
}

// unconnected returns a pool that has no connection yet.
func unconnected(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres:///nowhere")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func namedClient(t *testing.T, account string) *gateway.Client {
	t.Helper()
	client, err := gateway.New("https://api.gateway.example", gateway.BearerToken("sk_test_x"), gateway.WithAccount(account))
	require.NoError(t, err)
	return client
}
