package webhooks_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Events that arrive and end together share transactions: a plain event costs at most
// half a commit, from its insert to its outcome. That does not depend on the machine.
func TestEventsShareTransactions(t *testing.T) {
	t.Parallel()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: integration/run starts PostgreSQL")
	}
	const events, senders = 4000, 16
	db, commits := ownDatabase(t)
	store := sqlstore.New(db, sqlstore.Postgres, sqlstore.WithLogger(quiet))
	require.NoError(t, store.Migrate(t.Context()))
	rx, err := webhook.New(webhook.Config{
		Keys: keys, Account: "shop", Store: store, Mode: webhook.Inbox, Workers: 16, Logger: quiet,
	})
	require.NoError(t, err)
	webhook.OnOther(rx, func(context.Context, *webhook.Event) error { return nil })
	work := make(chan int)
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for i := range work {
				id := fmt.Sprintf("e%d", i)
				entry, err := store.Put(t.Context(), record(id, id))
				assert.True(t, err == nil && entry.Added, "%v", err)
			}
		})
	}
	for i := range events {
		work <- i
	}
	close(work)
	all.Wait()
	rx.Start()
	require.Eventually(t, func() bool { return rx.Stats()[webhook.OutcomeHandled] == events }, 2*time.Minute, 10*time.Millisecond)
	require.NoError(t, rx.Shutdown(t.Context()))
	counts, err := store.Counts(t.Context())
	require.NoError(t, err)
	assert.Zero(t, counts.Waiting)
	assert.Zero(t, counts.Claimed)
	assert.Zero(t, counts.Dead)
	require.NoError(t, db.Close())
	n := commits()
	t.Logf("%d commits for %d events", n, events)
	assert.LessOrEqual(t, n, int64(events/2))
}

// ownDatabase creates a database that no other test uses. commits returns how many
// transactions were committed in it once all its sessions have ended.
func ownDatabase(t *testing.T) (db *sql.DB, commits func() int64) {
	t.Helper()
	admin, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	require.NoError(t, err)
	name := table("shop")
	_, err = admin.ExecContext(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := admin.ExecContext(context.WithoutCancel(t.Context()), "DROP DATABASE "+name+" WITH (FORCE)")
		assert.NoError(t, err)
		_ = admin.Close()
	})
	address, err := url.Parse(os.Getenv("DATABASE_URL"))
	require.NoError(t, err)
	address.Path = "/" + name
	db, err = sql.Open("pgx", address.String())
	require.NoError(t, err)
	return db, func() (n int64) {
		require.Eventually(t, func() bool {
			var sessions int
			assert.NoError(t, admin.QueryRowContext(t.Context(),
				"SELECT xact_commit, numbackends FROM pg_stat_database WHERE datname = $1", name).Scan(&n, &sessions))
			return sessions == 0
		}, time.Minute, 10*time.Millisecond)
		return n
	}
}
