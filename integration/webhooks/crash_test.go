package webhooks_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/pgcrash"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// lossy makes a server lose what was committed in the last seconds before a
// crash, unless the commit asked to be flushed.
var lossy = []string{"synchronous_commit = off", "wal_writer_delay = 10s"}

// PostgreSQL crashes with synchronous_commit off while the gateway sends events
// and workers handle them. The gateway repeats what was not acknowledged: every
// event is handled once, and no acknowledged event is lost.
func TestAcknowledgedEventsSurviveACrashOfTheDatabase(t *testing.T) {
	t.Parallel()
	const events, senders, crashes = 150, 4, 2
	server := pgcrash.Start(t, lossy...)
	db, err := sql.Open("pgx", server.URL)
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	var setting string
	require.NoError(t, db.QueryRowContext(t.Context(), "SHOW synchronous_commit").Scan(&setting))
	require.Equal(t, "off", setting)
	store := sqlstore.New(database.Postgres(db), sqlstore.WithLogger(quiet))
	require.NoError(t, store.Migrate(t.Context()))
	effects, _ := business(t, db)
	rx, err := webhook.New(webhook.Config{
		Keys: keys, Account: "shop", Store: store, Mode: webhook.Inbox, Logger: quiet, PollInterval: 20 * time.Millisecond,
		Backoff: func(int) time.Duration { return 10 * time.Millisecond },
	})
	require.NoError(t, err)
	webhook.OnOther(rx, sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.Event) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+effects+" (event_id) VALUES ($1)", e.ID)
		return err
	}))
	rx.Start()

	due, acked := make(chan int, events), make(chan struct{}, events)
	for i := range events {
		due <- i
	}
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for i := range due {
				id := fmt.Sprintf("e%d", i)
				body := record(id, id).Body
				got := rx.Receive(t.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
				if got.Status != 200 {
					due <- i
					continue
				}
				acked <- struct{}{}
			}
		})
	}
	for n := 1; n <= events; n++ {
		<-acked
		if n%(events/(crashes+1)) == 0 && n < events {
			server.Crash(t)
		}
	}
	server.Crash(t) // right after the last acknowledgement
	close(due)
	all.Wait()

	assert.Eventually(t, func() bool {
		n, err := store.Counts(t.Context())
		return err == nil && n.Waiting == 0 && n.Claimed == 0
	}, 3*time.Minute, 20*time.Millisecond)
	require.NoError(t, rx.Shutdown(t.Context()))
	got := effectsOf(t, db, effects)
	assert.Len(t, got, events, "events with an effect")
	for id, n := range got {
		assert.Equal(t, 1, n, id)
	}
	losesUnflushedCommits(t, server, db)
}

// losesUnflushedCommits checks that the server would have lost the events: it
// loses a plain commit.
func losesUnflushedCommits(t *testing.T, server *pgcrash.Server, db *sql.DB) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), "CREATE TABLE plain (n integer)")
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "CHECKPOINT")
	require.NoError(t, err)
	for n := range 10 { // the log may be flushed for another reason
		_, err := db.ExecContext(t.Context(), "INSERT INTO plain VALUES ($1)", n)
		require.NoError(t, err)
		server.Crash(t)
		var rows int
		require.Eventually(t, func() bool {
			return db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM plain WHERE n = $1", n).Scan(&rows) == nil
		}, time.Minute, 20*time.Millisecond)
		if rows == 0 {
			return
		}
	}
	t.Error("the server never lost a commit: the test proves nothing")
}
