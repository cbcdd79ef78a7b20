package webhooks_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
	"github.com/stretchr/testify/require"
)

// The benchmarks count events a second, with commits that are flushed:
//
//	./with-postgres go test -run '^$' -bench Inbox ./webhooks

func eachStore(b *testing.B, run func(b *testing.B, db *sql.DB, store *sqlstore.Store)) {
	b.Helper()
	for _, d := range []struct {
		name, driver, dsn string
		dialect           sqlstore.Dialect
	}{
		{"PostgreSQL", "pgx", os.Getenv("DATABASE_URL"), sqlstore.Postgres},
		{"SQLite", "sqlite", sqliteDSN(filepath.Join(b.TempDir(), "events.db")), sqlstore.SQLite},
	} {
		b.Run(d.name, func(b *testing.B) {
			if d.dsn == "" {
				b.Skip("DATABASE_URL is not set; with-postgres sets it")
			}
			db, err := sql.Open(d.driver, d.dsn)
			require.NoError(b, err)
			defer func() { _ = db.Close() }()
			db.SetMaxOpenConns(32)
			db.SetMaxIdleConns(32)
			store := sqlstore.New(db, d.dialect, sqlstore.WithTable(table("speed")))
			require.NoError(b, store.Migrate(b.Context()))
			run(b, db, store)
		})
	}
}

func inbox(b *testing.B, store webhook.Store, workers int) *webhook.Receiver {
	b.Helper()
	rx, err := webhook.New(webhook.Config{
		Keys: keys, Store: store, Mode: webhook.Inbox, Workers: workers, MaxConcurrent: 1000, Logger: quiet,
	})
	require.NoError(b, err)
	return rx
}

func perSecond(b *testing.B) {
	b.Helper()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// How fast deliveries are answered: verified, parsed and stored.
func BenchmarkInboxInsert(b *testing.B) {
	eachStore(b, func(b *testing.B, _ *sql.DB, store *sqlstore.Store) {
		b.Helper()
		rx := inbox(b, store, -1)
		var n atomic.Int64
		b.SetParallelism(8)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				id := fmt.Sprint(n.Add(1))
				body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: id}.Body()
				got := rx.Receive(b.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret, time.Now(), body), Body: body})
				if got.Status != http.StatusOK {
					b.Errorf("answered %d", got.Status)
				}
			}
		})
		perSecond(b)
	})
}

// How fast a full inbox is worked off: claimed, handled and noted as done, by
// handlers that write in the same transaction and by some that do nothing.
func BenchmarkInboxDrain(b *testing.B) {
	for _, kind := range []string{"HandleTx", "plain"} {
		b.Run(kind, func(b *testing.B) {
			eachStore(b, func(b *testing.B, db *sql.DB, store *sqlstore.Store) {
				b.Helper()
				drain(b, db, store, kind == "HandleTx")
			})
		})
	}
}

func drain(b *testing.B, db *sql.DB, store *sqlstore.Store, transactional bool) {
	b.Helper()
	name := table("effects")
	_, err := db.ExecContext(b.Context(), "CREATE TABLE "+name+" (event_id TEXT NOT NULL)")
	require.NoError(b, err)
	fill(b, store, b.N)

	rx := inbox(b, store, 16)
	done := make(chan struct{})
	var handled atomic.Int64
	count := func() {
		if handled.Add(1) == int64(b.N) {
			close(done)
		}
	}
	handler := func(context.Context, *webhook.Event) error { count(); return nil }
	if transactional {
		handler = sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.Event) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO "+name+" (event_id) VALUES ($1)", e.ID)
			count()
			return err
		})
	}
	webhook.OnOther(rx, handler)
	b.ResetTimer()
	rx.Start()
	<-done
	require.NoError(b, rx.Shutdown(b.Context()))
	b.StopTimer()
	perSecond(b)
}

func fill(b *testing.B, store *sqlstore.Store, n int) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				id := fmt.Sprint(i)
				if _, err := store.Put(b.Context(), record(id, id)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
