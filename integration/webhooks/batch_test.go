package webhooks_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// failing is a tracer that makes the first statement of each text for several events fail.
type failing struct {
	mu     sync.Mutex
	failed map[string]bool
}

func (f *failing) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !strings.Contains(data.SQL, "unnest(") {
		return ctx
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed[data.SQL] {
		return ctx
	}
	f.failed[data.SQL] = true
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func (f *failing) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A failure of a statement for several events is none of the events.
func TestTheSQLStorePassesTheStoreTestsIfBatchesFail(t *testing.T) {
	t.Parallel()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: integration/run starts PostgreSQL")
	}
	tracer := &failing{failed: map[string]bool{}}
	t.Cleanup(func() {
		kinds := map[string]bool{}
		for text := range tracer.failed { // each table has its own
			kinds[regexp.MustCompile(`events_\d+_\d+`).ReplaceAllString(text, "events")] = true
		}
		assert.GreaterOrEqual(t, len(kinds), 2, "of statements for several events")
	})
	webhooktest.RunStore(t, func() webhook.Store {
		config, err := pgx.ParseConfig(os.Getenv("DATABASE_URL"))
		require.NoError(t, err)
		config.Tracer = tracer
		db := stdlib.OpenDB(*config)
		t.Cleanup(func() { _ = db.Close() })
		store := sqlstore.New(database.Postgres(db), in(postgres.schema(t, db)), sqlstore.WithLogger(quiet))
		require.NoError(t, store.Migrate(t.Context()))
		return view(store, "shop")
	})
}

// Events whose rows another session has locked wait for it; the others of their batch don't.
func TestALockedRowDelaysOnlyItsEvent(t *testing.T) {
	t.Parallel()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: integration/run starts PostgreSQL")
	}
	const events = 64
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	store := newStore(t, db, postgres, sqlstore.WithLogger(quiet))
	for i := range events {
		id := fmt.Sprintf("e%d", i)
		_, err := store.Put(t.Context(), record(id, id))
		require.NoError(t, err)
	}
	claims, err := store.Next(t.Context(), events, time.Minute)
	require.NoError(t, err)
	require.Len(t, claims, events)

	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "SELECT 1 FROM "+tableOf(t, store)+" WHERE event_id = $1 FOR UPDATE", claims[7].EventID)
	require.NoError(t, err)
	completed := make(chan string, events)
	for _, c := range claims {
		go func() {
			assert.NoError(t, store.Settle(t.Context(), c, done), c.EventID)
			completed <- c.EventID
		}()
	}
	for range events - 1 {
		assert.NotEqual(t, claims[7].EventID, <-completed)
	}
	require.NoError(t, tx.Rollback())
	assert.Equal(t, claims[7].EventID, <-completed)
}
