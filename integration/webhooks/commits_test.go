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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// Events that arrive and end together share transactions: a plain event costs at most
// half a commit, from its insert to its outcome. "Together" does not depend on the
// machine here: a lock on the table keeps the first statements waiting until all callers
// have come.
func TestEventsShareTransactions(t *testing.T) {
	t.Parallel()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: integration/run starts PostgreSQL")
	}
	const events = 240
	db, commits, blocked := ownDatabase(t)
	store := view(sqlstore.New(database.Postgres(db), sqlstore.WithLogger(quiet)), "shop")
	require.NoError(t, store.Migrate(t.Context()))
	rx, err := webhook.New(webhook.Config{
		Keys: keys, Account: "shop", Store: store, Mode: webhook.Inbox, Workers: events, Logger: quiet,
	})
	require.NoError(t, err)
	var handling sync.WaitGroup // one for each event whose handler has not begun
	handling.Add(events)
	end := make(chan struct{})
	webhook.OnOther(rx, func(context.Context, *webhook.Event) error {
		handling.Done()
		<-end
		return nil
	})

	var stored sync.WaitGroup
	const inserting, ending = 2, 1 // statements that run at a time
	together(t, db, tableOf(t, store), blocked, inserting, func() {
		var begun sync.WaitGroup
		begun.Add(events)
		for i := range events {
			stored.Go(func() {
				begun.Done()
				id := fmt.Sprintf("e%d", i)
				entry, err := store.Put(t.Context(), record(id, id))
				assert.True(t, err == nil && entry.Added, "%v", err)
			})
		}
		begun.Wait()
	})
	stored.Wait()
	rx.Start()
	handling.Wait()
	together(t, db, tableOf(t, store), blocked, ending, func() { close(end) })
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

// together locks the table while begin runs, and until so many statements wait for it: all
// that run at a time. One that waits for long is given up, and its calls end one by one.
func together(t *testing.T, db *sql.DB, table string, blocked func() int, statements int, begin func()) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { assert.NoError(t, tx.Commit()) }()
	_, err = tx.ExecContext(t.Context(), "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	begin()
	require.Eventually(t, func() bool { return blocked() >= statements }, time.Minute, time.Millisecond)
}

// ownDatabase creates a database that no other test uses. commits returns how many
// transactions were committed in it once all its sessions have ended. blocked
// returns how many sessions wait for a lock in it.
func ownDatabase(t *testing.T) (db *sql.DB, commits func() int64, blocked func() int) {
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
	commits = func() (n int64) {
		require.Eventually(t, func() bool {
			var sessions int
			assert.NoError(t, admin.QueryRowContext(t.Context(),
				"SELECT xact_commit, numbackends FROM pg_stat_database WHERE datname = $1", name).Scan(&n, &sessions))
			return sessions == 0
		}, time.Minute, 10*time.Millisecond)
		return n
	}
	blocked = func() (n int) {
		assert.NoError(t, admin.QueryRowContext(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'", name).Scan(&n))
		return n
	}
	return db, commits, blocked
}
