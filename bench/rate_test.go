package bench_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// BenchmarkInboxRate delivers b.N events at a fixed rate to a receiver with the
// default number of workers, with the pool of sql.Open and with a large one, while
// another transaction holds a snapshot or not. It measures the time from a delivery
// to the end of its handler, this process's CPU time (the senders included) and the
// sessions that were opened in the database.
//
//	BENCH_TIME=9000x for half a minute at 300 events per second
func BenchmarkInboxRate(b *testing.B) {
	if os.Getenv("DATABASE_URL") == "" {
		b.Skip("DATABASE_URL is not set: ../integration/with-postgres starts a PostgreSQL and sets it")
	}
	for _, kind := range []string{"plain", "HandleTx"} {
		for _, c := range []struct {
			rate, pool int
			held       bool
		}{{300, 0, false}, {300, 0, true}, {300, 32, false}, {1000, 32, false}} {
			name := fmt.Sprintf("%s/%d per s/pool %d", kind, c.rate, c.pool)
			if c.held {
				name += ", held snapshot"
			}
			b.Run(name, func(b *testing.B) { atRate(b, kind == "HandleTx", c.rate, c.pool, c.held) })
		}
	}
}

func atRate(b *testing.B, transactional bool, rate, pool int, held bool) {
	b.Helper()
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	require.NoError(b, err)
	defer func() { _ = db.Close() }()
	if pool > 0 {
		db.SetMaxOpenConns(pool)
		db.SetMaxIdleConns(pool)
	}
	store := sqlstore.New(database.Postgres(db), in(newSchema(b, db, "pgx")))
	require.NoError(b, store.Migrate(b.Context()))
	effects := newTable("effects")
	_, err = db.ExecContext(b.Context(), "CREATE TABLE "+effects+" (event_id TEXT NOT NULL)")
	require.NoError(b, err)
	if held {
		defer holdSnapshot(b)()
	}

	rx := inbox(b, store, 0)
	due := make([]time.Time, b.N)
	delays := make(chan time.Duration, b.N)
	done := func(e *webhook.Event) {
		i, _ := strconv.Atoi(e.ID)
		delays <- time.Since(due[i])
	}
	handler := func(_ context.Context, e *webhook.Event) error { done(e); return nil }
	if transactional {
		handler = sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.Event) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO "+effects+" (event_id) VALUES ($1)", e.ID)
			done(e)
			return err
		})
	}
	webhook.OnOther(rx, handler)
	rx.Start()
	sessions, cpu := sessionsOf(b, db), processTime(b)
	b.ResetTimer()
	var all sync.WaitGroup
	began := time.Now()
	for i := range b.N {
		due[i] = began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due[i]))
		all.Go(func() {
			id := strconv.Itoa(i)
			body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: id}.Body()
			got := rx.Receive(b.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
			if got.Status != http.StatusOK {
				b.Errorf("status %d", got.Status)
			}
		})
	}
	all.Wait()
	waiting := b.N - len(delays)
	took := make([]time.Duration, b.N)
	for i := range took {
		took[i] = <-delays
	}
	b.StopTimer()
	cpu = processTime(b) - cpu
	require.NoError(b, rx.Shutdown(b.Context()))
	slices.Sort(took)
	b.ReportMetric(float64(waiting), "waiting")
	b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-µs/event")
	b.ReportMetric(100*cpu.Seconds()/b.Elapsed().Seconds(), "cpu-%")
	b.ReportMetric(float64(took[b.N/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[b.N*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(sessionsOf(b, db)-sessions), "sessions")
}

// holdSnapshot keeps a transaction open that needs all versions of all rows. It
// returns a function that ends it.
func holdSnapshot(b *testing.B) (end func()) {
	b.Helper()
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	require.NoError(b, err)
	tx, err := db.BeginTx(b.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	require.NoError(b, err)
	_, err = tx.ExecContext(b.Context(), "SELECT count(*) FROM pg_class")
	require.NoError(b, err)
	return func() {
		_ = tx.Rollback()
		_ = db.Close()
	}
}

// sessionsOf returns the number of sessions that the database has had.
func sessionsOf(b *testing.B, db *sql.DB) (n int64) {
	b.Helper()
	require.NoError(b, db.QueryRowContext(b.Context(),
		"SELECT sessions FROM pg_stat_database WHERE datname = current_database()").Scan(&n))
	return n
}

// processTime returns the CPU time that this process has used.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
