package webhooks_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

var (
	quiet = slog.New(slog.DiscardHandler)
	keys  = []webhook.SigningKey{{Key: webhooktest.Secret()}}
)

func newStore(t *testing.T, db *sql.DB, d target, opts ...sqlstore.Option) *sqlstore.Store[*sql.Tx] {
	t.Helper()
	s := sqlstore.New(d.on(db), append([]sqlstore.Option{in(d.schema(t, db))}, opts...)...)
	require.NoError(t, s.Migrate(t.Context()))
	return view(s, "shop")
}

// view returns the store of an account.
func view(s *sqlstore.Store[*sql.Tx], name string) *sqlstore.Store[*sql.Tx] {
	one, _ := s.For(gateway.Account{Name: name}).(*sqlstore.Store[*sql.Tx])
	return one
}

func TestTheSQLStorePassesTheStoreTests(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		webhooktest.RunStore(t, func() webhook.Store { return newStore(t, d.open(t), d) })
	})
}

func TestManyProcessesMayMigrateAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		db := d.open(t)
		s := sqlstore.New(d.on(db), in(d.schema(t, db)))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { assert.NoError(t, s.Migrate(t.Context())) })
		}
		all.Wait()
		_, err := view(s, "shop").Put(t.Context(), record("e1", "tx_1"))
		require.NoError(t, err)
	})
}

func TestATableInASchema(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		db := d.open(t)
		schema := ""
		if d.dialect == database.DialectPostgres {
			schema = table("O'Brien \"shop?\"")
			_, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+database.Quote(schema))
			require.NoError(t, err)
		}
		s := newStore(t, db, d, in(schema))
		require.NoError(t, s.Migrate(t.Context()), "a second time")
		fact := record("e1", "tx_1")
		fact.Fact = "paid tx_1"
		_, err := s.Put(t.Context(), fact)
		require.NoError(t, err)
		claims, err := s.Next(t.Context(), 1, time.Minute)
		require.NoError(t, err)
		assert.Len(t, claims, 1)
	})
}

func record(id, resource string) webhook.Record {
	return webhook.Record{
		Key: "id " + id, EventID: id, Kind: webhook.TransactionPaid, Resource: "transaction/" + resource, Signed: true,
		Body: []byte(`{"id":"` + id + `","event":"transaction","data":{"id":"` + resource + `","event_type":"transaction.paid"}}`),
	}
}

func TestPurgeDeletesOldHandledEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		ctx := t.Context()
		db := d.open(t)
		s := newStore(t, db, d, sqlstore.WithRetention(webhook.MinRetention))
		for _, id := range []string{"done", "unhandled", "dead", "claimed", "waiting"} {
			_, err := s.Put(ctx, record(id, id))
			require.NoError(t, err)
		}
		for id, settle := range map[string]func(*webhook.Claim) error{
			"done":      func(c *webhook.Claim) error { return s.Settle(ctx, c, done) },
			"unhandled": func(c *webhook.Claim) error { return s.Settle(ctx, c, aside(webhook.FamilyTransaction)) },
			"dead":      func(c *webhook.Claim) error { return s.Settle(ctx, c, dead) },
			"claimed":   func(*webhook.Claim) error { return nil },
		} {
			c, _, err := s.Claim(ctx, "id "+id, time.Minute)
			require.NoError(t, err)
			require.NoError(t, settle(c))
		}
		purged, err := s.Purge(ctx)
		require.NoError(t, err)
		assert.Zero(t, purged)
		age(t, db, s, webhook.MinRetention+time.Minute)
		purged, err = s.Purge(ctx)
		require.NoError(t, err)
		assert.Equal(t, webhook.Purged{Done: 1, Unhandled: 1}, purged)
		n, err := s.Counts(ctx)
		require.NoError(t, err)
		n.Oldest = 0
		assert.Equal(t, webhook.Counts{Waiting: 1, Claimed: 1, Dead: 1}, n)
	})
}

// age makes everything in the store older by a duration.
func age(t *testing.T, db *sql.DB, s *sqlstore.Store[*sql.Tx], by time.Duration) {
	t.Helper()
	ms := fmt.Sprint(by.Milliseconds())
	_, err := db.ExecContext(t.Context(), "UPDATE "+tableOf(t, s)+" SET since = since - "+ms+", due = due - "+ms+", lease = lease - "+ms)
	require.NoError(t, err)
}

// business is a merchant's table with one row per effect, so a second effect
// of an event is visible.
func business(t *testing.T, db *sql.DB) (name string, count func() int) {
	t.Helper()
	name = table("effects")
	_, err := db.ExecContext(t.Context(), "CREATE TABLE "+name+" (event_id TEXT NOT NULL)")
	require.NoError(t, err)
	return name, func() (n int) {
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+name).Scan(&n))
		return n
	}
}

func TestHandleTxWritesBothOrNeither(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		ctx := t.Context()
		db := d.open(t)
		s := newStore(t, db, d)
		name, count := business(t, db)
		failures := []error{errors.New("after the insert"), nil}
		panics := true
		handler := func(ctx context.Context, tx *sql.Tx, e *webhook.TransactionEvent) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO "+name+" (event_id) VALUES ($1)", e.ID); err != nil {
				return err
			}
			if panics {
				panics = false
				panic("after the insert")
			}
			err := failures[0]
			failures = failures[1:]
			return err
		}
		rx, err := webhook.New(webhook.Config{Keys: keys, Account: "shop", Store: s, Logger: quiet, Backoff: func(int) time.Duration { return 0 }})
		require.NoError(t, err)
		webhook.OnTransaction(rx, webhook.TransactionPaid, sqlstore.HandleTx(s, handler))
		deliver := func() int {
			body := record("e1", "tx_1").Body
			h := webhooktest.Sign(webhooktest.Secret(), time.Now(), body)
			return rx.Receive(ctx, webhook.Delivery{Header: h, Body: body}).Status
		}
		for i, want := range []int{500, 500, 200, 200} { // without a backoff
			assert.Equal(t, want, deliver(), i)
		}
		assert.Equal(t, 1, count())
		assert.Equal(t, map[webhook.Outcome]uint64{webhook.OutcomeFailed: 2, webhook.OutcomeHandled: 1, webhook.OutcomeDuplicate: 1}, rx.Stats())
	})
}

func TestHandleTxOfALostClaimWritesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		ctx := t.Context()
		db := d.open(t)
		s := newStore(t, db, d)
		name, count := business(t, db)
		rx, err := webhook.New(webhook.Config{Keys: keys, Account: "shop", Store: s, Logger: quiet})
		require.NoError(t, err)
		effect := sqlstore.HandleTx(s, func(ctx context.Context, tx *sql.Tx, e *webhook.Event) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO "+name+" (event_id) VALUES ($1)", e.ID)
			return err
		})
		webhook.OnOther(rx, func(ctx context.Context, e *webhook.Event) error {
			// The process was asleep for longer than its lease.
			claim, _ := webhook.ClaimFromContext(ctx)
			require.NoError(t, s.Settle(ctx, claim, released))
			return effect(ctx, e)
		})
		body := record("e1", "tx_1").Body
		got := rx.Receive(ctx, webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
		assert.Equal(t, webhook.OutcomeLost, got.Outcome)
		assert.Equal(t, 503, got.Status)
		assert.Zero(t, count())
		require.Error(t, effect(ctx, &webhook.Event{}), "outside a handler")
	})
}

func TestALongHandleTxBlocksNoOtherEvent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
		t.Helper()
		if d.dialect == database.DialectSQLite {
			t.Skip("not true of SQLite: the whole file has one writer at a time, see docs/webhooks.md")
		}
		ctx := t.Context()
		db := d.open(t)
		s := newStore(t, db, d)
		rx, err := webhook.New(webhook.Config{
			Keys: keys, Account: "shop", Store: s, Logger: quiet, Mode: webhook.Inbox,
			Lease: 300 * time.Millisecond, PollInterval: 50 * time.Millisecond, Workers: 4,
		})
		require.NoError(t, err)
		runs := 0
		others, release := make(chan string, 10), make(chan struct{})
		webhook.OnOther(rx, sqlstore.HandleTx(s, func(_ context.Context, _ *sql.Tx, e *webhook.Event) error {
			if e.ID != "slow" {
				others <- e.ID
				return nil
			}
			runs++
			<-release
			return nil
		}))
		deliver := func(id string) {
			body := record(id, "tx_"+id).Body
			got := rx.Receive(ctx, webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
			assert.Equal(t, 200, got.Status)
		}
		deliver("slow")
		time.Sleep(time.Second) // the lease ends, and Next looks for lost events several times
		deliver("quick")
		assert.Equal(t, "quick", <-others, "while the slow one still runs")
		time.AfterFunc(100*time.Millisecond, func() { close(release) })
		deliver("slow") // a duplicate waits for the transaction
		require.Eventually(t, func() bool { return rx.Stats()[webhook.OutcomeHandled] == 2 }, 2*time.Minute, 10*time.Millisecond)
		require.NoError(t, rx.Shutdown(ctx))
		assert.Equal(t, 1, runs)
	})
}

// unknown is a driver of a database that the store does not know.
type unknown struct{ database.Driver[*sql.Tx] }

func (unknown) Dialect() database.Dialect { return 0 }

func TestInvalidArgumentsAreReported(t *testing.T) {
	t.Parallel()
	db := databases(t)[0].open(t)
	for want, s := range map[string]*sqlstore.Store[*sql.Tx]{
		"the driver is nil":                             sqlstore.New[*sql.Tx](nil),
		"the database is nil":                           sqlstore.New(database.SQLite(nil)),
		"unknown dialect":                               sqlstore.New[*sql.Tx](unknown{database.SQLite(db)}),
		"InSchema is only for PostgreSQL":               sqlstore.New(database.SQLite(db), in("shop")),
		"WithRetention(0s) is shorter than 25h0m0s":     sqlstore.New(database.SQLite(db), sqlstore.WithRetention(0)),
		"WithRetention(24h0m0s) is shorter than 25h0m0": sqlstore.New(database.SQLite(db), sqlstore.WithRetention(24*time.Hour)),
	} {
		require.ErrorContains(t, s.Migrate(t.Context()), want)
		_, err := s.Put(t.Context(), record("e", "tx"))
		require.ErrorContains(t, err, want)
		_, err = s.Next(t.Context(), 1, time.Minute)
		require.ErrorContains(t, err, want)
		_, err = s.Counts(t.Context())
		require.ErrorContains(t, err, want)
	}
}

func TestMigrateRejectsUnsafeSettingsOfASQLiteFile(t *testing.T) {
	t.Parallel()
	for pragmas, want := range map[string]string{
		"":                             "journal_mode delete and busy_timeout 0",
		"?_pragma=journal_mode(WAL)":   "journal_mode wal and busy_timeout 0",
		"?_pragma=busy_timeout(10000)": "journal_mode delete and busy_timeout 10000",
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)":                             "",
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)": "",
	} {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "events.db")+pragmas)
		require.NoError(t, err)
		err = sqlstore.New(database.SQLite(db)).Migrate(t.Context())
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)")
		}
		require.NoError(t, db.Close())
	}
	db, err := sql.Open("sqlite", sqliteDSN(filepath.Join(t.TempDir(), "events.db"))+"&_pragma=synchronous(OFF)")
	require.NoError(t, err)
	require.ErrorContains(t, sqlstore.New(database.SQLite(db)).Migrate(t.Context()), "synchronous OFF")
	require.NoError(t, db.Close())
	memory, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	memory.SetMaxOpenConns(1)
	require.NoError(t, sqlstore.New(database.SQLite(memory)).Migrate(t.Context()), "an in-memory database has one process")
	require.NoError(t, memory.Close())
}

// A handler that hangs must not keep what the other events need: the lock for writing of
// SQLite, or the only connection of a database in memory. So its transaction ends with its
// context.
func TestAHandlerThatHangsBlocksNoOtherEvent(t *testing.T) {
	t.Parallel()
	memory := target{"SQLite in memory", database.DialectSQLite, "sqlite", func(*testing.T) string { return ":memory:" }}
	for _, d := range append(databases(t), memory) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			db := d.open(t)
			if d.name == memory.name {
				db.SetMaxOpenConns(1)
			}
			s := newStore(t, db, d)
			effects, _ := business(t, db)
			rx, err := webhook.New(webhook.Config{
				Keys: keys, Account: "shop", Store: s, Logger: quiet, Mode: webhook.Inbox, Workers: 2, PollInterval: 20 * time.Millisecond,
				HandlerTimeout: 200 * time.Millisecond, Backoff: func(int) time.Duration { return time.Hour },
			})
			require.NoError(t, err)
			begun, late, release := make(chan string, 2), make(chan struct{}), make(chan struct{})
			webhook.OnOther(rx, sqlstore.HandleTx(s, func(ctx context.Context, tx *sql.Tx, e *webhook.Event) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO "+effects+" (event_id) VALUES ($1)", e.ID)
				switch e.ID {
				case "hangs":
					begun <- e.ID
					<-ctx.Done()
					close(late)
					<-release
				case "waits for itself": // it uses the store beside its transaction
					begun <- e.ID
					rec := record("e2", "tx_2")
					rec.Fact = "paid tx_2"
					for _, r := range []webhook.Record{record("e1", "tx_1"), rec} {
						if _, err := s.Put(ctx, r); err != nil {
							return err
						}
					}
				}
				return err
			}))
			rx.Start()
			for _, id := range []string{"hangs", "waits for itself"} {
				_, err = s.Put(t.Context(), record(id, "tx "+id))
				require.NoError(t, err)
				assert.Equal(t, id, <-begun)
			}
			_, err = s.Put(t.Context(), record("another", "tx another"))
			require.NoError(t, err)
			handled := func() (n int) {
				query := "SELECT COUNT(*) FROM " + effects + " WHERE event_id = 'another'"
				assert.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&n))
				return n
			}
			require.Eventually(t, func() bool { return handled() > 0 }, time.Minute, 10*time.Millisecond)
			<-late
			close(release)
			require.NoError(t, rx.Shutdown(t.Context()))
			assert.Zero(t, effectsOf(t, db, effects)["hangs"])
			assert.Equal(t, 1, handled())
		})
	}
}
