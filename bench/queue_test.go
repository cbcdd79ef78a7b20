package bench_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// BenchmarkQueue compares the inbox with River, as a queue of the same events in the
// same PostgreSQL, with pools of 32 connections and with the pools that sql.Open and
// pgxpool.New return. Ours handles the events of a resource in order; River has no
// order, and runs 500 workers where ours runs 16. With an effect, the handler
// inserts a row in the transaction that completes the event: HandleTx, and
// JobCompleteTx.
func BenchmarkQueue(b *testing.B) {
	if os.Getenv("DATABASE_URL") == "" {
		b.Skip("DATABASE_URL is not set: ../integration/with-postgres starts a PostgreSQL and sets it")
	}
	for _, pool := range []int{32, 0} {
		for _, what := range []struct {
			name                   string
			insert, handle, effect bool
		}{
			{"insert", true, false, false},
			{"drain", false, true, false},
			{"drain with effect", false, true, true},
			{"both", true, true, false},
			{"both with effect", true, true, true},
		} {
			for name, open := range map[string]func(*testing.B, int, bool) queue{"gateway": openInbox, "river": openRiver} {
				b.Run(fmt.Sprintf("%s/pool %d/%s", what.name, pool, name), func(b *testing.B) {
					q := open(b, pool, what.effect)
					defer q.stop()
					if !what.insert {
						put(b, q)
					}
					b.ResetTimer()
					if what.handle {
						q.start()
					}
					if what.insert {
						put(b, q)
					}
					if what.handle {
						q.wait()
					}
					b.StopTimer()
					perSecond(b)
				})
			}
		}
	}
}

// queue is a contestant. It expects b.N events.
type queue struct {
	put   func(id, body string) error
	start func() // of the workers
	wait  func() // until all events are handled, and that is stored
	stop  func()
}

// put stores b.N events, 16 at a time.
func put(b *testing.B, q queue) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				id := strconv.FormatInt(i, 10)
				body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: id}.Body()
				if err := q.put(id, string(body)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func openInbox(b *testing.B, pool int, effect bool) queue {
	b.Helper()
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	require.NoError(b, err)
	if pool > 0 {
		db.SetMaxOpenConns(pool)
		db.SetMaxIdleConns(pool)
	}
	store := sqlstore.New(database.Postgres(db), in(newSchema(b, db, "pgx")), sqlstore.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(b, store.Migrate(b.Context()))
	effects := newTable("effects")
	_, err = db.ExecContext(b.Context(), "CREATE TABLE "+effects+" (event_id TEXT NOT NULL)")
	require.NoError(b, err)
	rx := inbox(b, store, 16)
	all := newCountdown(b.N)
	handler := func(context.Context, *webhook.Event) error { all.one(); return nil }
	if effect {
		handler = sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.Event) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO "+effects+" (event_id) VALUES ($1)", e.ID)
			all.one()
			return err
		})
	}
	webhook.OnOther(rx, handler)
	return queue{
		put: func(id, body string) error {
			_, err := store.For(shop).Put(b.Context(), webhook.Record{
				Key: "id " + id, EventID: id, Kind: webhook.TransactionPaid, Resource: "transaction/" + id, Signed: true, Body: []byte(body),
			})
			return err
		},
		start: rx.Start,
		wait: func() {
			<-all.done
			require.NoError(b, rx.Shutdown(b.Context()))
		},
		stop: func() { _ = db.Close() },
	}
}

// countdown is done after n calls of one.
type countdown struct {
	left atomic.Int64
	done chan struct{}
}

func newCountdown(n int) *countdown {
	c := &countdown{done: make(chan struct{})}
	c.left.Store(int64(n))
	return c
}

func (c *countdown) one() {
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

// riverEvent is the job of an event.
type riverEvent struct {
	ID   string `json:"id"`
	Body string `json:"body"`
}

func (riverEvent) Kind() string { return "webhook" }

type riverWorker struct {
	river.WorkerDefaults[riverEvent]

	work func(context.Context, *river.Job[riverEvent]) error
}

func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverEvent]) error {
	return w.work(ctx, job)
}

func openRiver(b *testing.B, size int, effect bool) queue {
	b.Helper()
	ctx := b.Context()
	cfg, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	require.NoError(b, err)
	if size > 0 {
		cfg.MaxConns = int32(size)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	require.NoError(b, err)
	schema, effects, quiet := newTable("river"), newTable("effects"), slog.New(slog.DiscardHandler)
	_, err = pool.Exec(ctx, "CREATE SCHEMA "+schema)
	require.NoError(b, err)
	_, err = pool.Exec(ctx, "CREATE TABLE "+effects+" (event_id TEXT NOT NULL)")
	require.NoError(b, err)
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: schema, Logger: quiet})
	require.NoError(b, err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	require.NoError(b, err)

	all := newCountdown(b.N)
	worker := &riverWorker{work: func(context.Context, *river.Job[riverEvent]) error { all.one(); return nil }}
	if effect {
		worker.work = func(ctx context.Context, job *river.Job[riverEvent]) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				defer all.one()
				if _, err := tx.Exec(ctx, "INSERT INTO "+effects+" (event_id) VALUES ($1)", job.Args.ID); err != nil {
					return err
				}
				_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
				return err
			})
		}
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, worker)
	client, err := river.NewClient(driver, &river.Config{
		Schema: schema, Logger: quiet, Workers: workers, FetchCooldown: 2 * time.Millisecond,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 500}},
	})
	require.NoError(b, err)
	return queue{
		put: func(id, body string) error {
			_, err := client.Insert(ctx, riverEvent{id, body}, nil)
			return err
		},
		start: func() { require.NoError(b, client.Start(ctx)) },
		wait: func() {
			<-all.done
			require.NoError(b, client.Stop(ctx)) // stores the completions
		},
		stop: pool.Close,
	}
}
