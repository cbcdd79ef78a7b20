package bench_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// The inbox benchmarks measure events per second. PostgreSQL flushes every commit to
// disk; SQLite, with these settings, flushes only at checkpoints. PostgreSQL is skipped
// if DATABASE_URL is not set.

func eachStore(b *testing.B, run func(b *testing.B, db *sql.DB, store *sqlstore.Store[*sql.Tx])) {
	b.Helper()
	for _, d := range []struct {
		name, driver, dsn string
		on                func(*sql.DB) database.Driver[*sql.Tx]
		pool              int // 0 for the pool that sql.Open returns
	}{
		{"PostgreSQL", "pgx", os.Getenv("DATABASE_URL"), database.Postgres, 32},
		{"PostgreSQL, pool of sql.Open", "pgx", os.Getenv("DATABASE_URL"), database.Postgres, 0},
		{"SQLite", "sqlite", "", database.SQLite, 32},
	} {
		b.Run(d.name, func(b *testing.B) {
			if d.driver == "sqlite" {
				d.dsn = sqliteFile(b) // each run has its own, as it has a schema of its own on PostgreSQL
			}
			if d.dsn == "" {
				b.Skip("DATABASE_URL is not set: ../integration/with-postgres starts a PostgreSQL and sets it")
			}
			db, err := sql.Open(d.driver, d.dsn)
			require.NoError(b, err)
			defer func() { _ = db.Close() }()
			if d.pool > 0 {
				db.SetMaxOpenConns(d.pool)
				db.SetMaxIdleConns(d.pool)
			}
			store := sqlstore.New(d.on(db), in(newSchema(b, db, d.driver)))
			require.NoError(b, store.Migrate(b.Context()))
			run(b, db, store)
		})
	}
}

func sqliteFile(b *testing.B) (dsn string) {
	b.Helper()
	return "file:" + filepath.Join(b.TempDir(), "events.db") +
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"
}

// newSchema creates a schema for the tables of a store, and returns its name.
func newSchema(b *testing.B, db *sql.DB, driver string) string {
	b.Helper()
	if driver == "sqlite" {
		return ""
	}
	name := newTable("inbox")
	_, err := db.ExecContext(b.Context(), "CREATE SCHEMA "+name)
	require.NoError(b, err)
	return name
}

func in(schema string) sqlstore.Option {
	return sqlstore.WithLocation(database.Location{InSchema: schema})
}

var tables atomic.Int64

// newTable returns the name of a table that does not exist yet.
func newTable(prefix string) string {
	return fmt.Sprintf("%s_%d_%d", prefix, os.Getpid(), tables.Add(1))
}

// shop is the account of the benchmarks' events.
var shop = gateway.Account{Name: "shop"}

func inbox(b *testing.B, store webhook.Store, workers int) *webhook.Receiver {
	b.Helper()
	rx, err := webhook.New(webhook.Config{
		Keys: []webhook.SigningKey{{Key: webhooktest.Secret()}}, Account: shop.Name, Store: store, Mode: webhook.Inbox,
		Workers: workers, MaxConcurrent: 1000, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(b, err)
	return rx
}

func perSecond(b *testing.B) {
	b.Helper()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkInboxInsert measures how fast the receiver verifies, parses and
// stores deliveries.
func BenchmarkInboxInsert(b *testing.B) {
	eachStore(b, func(b *testing.B, _ *sql.DB, store *sqlstore.Store[*sql.Tx]) {
		b.Helper()
		rx := inbox(b, store, -1)
		var n atomic.Int64
		b.SetParallelism(8)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				id := fmt.Sprint(n.Add(1))
				body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: id}.Body()
				got := rx.Receive(b.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
				if got.Status != http.StatusOK {
					b.Errorf("status %d", got.Status)
				}
			}
		})
		perSecond(b)
	})
}

// BenchmarkInboxDrain measures how fast the events of a full inbox are
// claimed, handled and completed, with handlers that write in the same
// transaction and with handlers that do nothing.
func BenchmarkInboxDrain(b *testing.B) {
	for _, kind := range []string{"HandleTx", "plain"} {
		b.Run(kind, func(b *testing.B) {
			eachStore(b, func(b *testing.B, db *sql.DB, store *sqlstore.Store[*sql.Tx]) {
				b.Helper()
				drainInbox(b, db, store, kind == "HandleTx")
			})
		})
	}
}

func drainInbox(b *testing.B, db *sql.DB, store *sqlstore.Store[*sql.Tx], transactional bool) {
	b.Helper()
	name := newTable("effects")
	_, err := db.ExecContext(b.Context(), "CREATE TABLE "+name+" (event_id TEXT NOT NULL)")
	require.NoError(b, err)
	fillInbox(b, store, b.N)

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

// BenchmarkInboxBoth stores and handles events at the same time, as in
// production. It ends when the last event has been handled.
func BenchmarkInboxBoth(b *testing.B) {
	eachStore(b, func(b *testing.B, db *sql.DB, store *sqlstore.Store[*sql.Tx]) {
		b.Helper()
		name := newTable("effects")
		_, err := db.ExecContext(b.Context(), "CREATE TABLE "+name+" (event_id TEXT NOT NULL)")
		require.NoError(b, err)
		rx := inbox(b, store, 16)
		done := make(chan struct{})
		var handled atomic.Int64
		webhook.OnOther(rx, sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.Event) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO "+name+" (event_id) VALUES ($1)", e.ID)
			if handled.Add(1) == int64(b.N) {
				close(done)
			}
			return err
		}))
		b.ResetTimer()
		rx.Start()
		fillInbox(b, store, b.N)
		<-done
		require.NoError(b, rx.Shutdown(b.Context()))
		b.StopTimer()
		perSecond(b)
	})
}

func fillInbox(b *testing.B, store *sqlstore.Store[*sql.Tx], n int) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				id := fmt.Sprint(i)
				body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: id}.Body()
				_, err := store.For(shop).Put(b.Context(), webhook.Record{
					Key: "id " + id, EventID: id, Kind: webhook.TransactionPaid, Resource: "transaction/" + id, Signed: true, Body: body,
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
