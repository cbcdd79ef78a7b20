package webhooks_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// cell is what happens to an inbox while events arrive.
type cell struct {
	name      string
	postgres  bool // it needs PostgreSQL
	server    bool // a server of its own
	clock     bool // a clock that can be set, of PostgreSQL
	overtaken bool // a failed event, and one that a clock delays, may be overtaken by later ones of its resource

	perResource int // events; 0 means 12
	resources   int // senders; 0 means 12
	poison      bool
	handle      func(ctx context.Context, resource, n int) error // before the effect
	disturb     func(ctx context.Context, t *testing.T, w *pressure)
}

// cells are the kinds of failure and load that queues are tested with.
func cells() []cell {
	return []cell{
		{name: "a worker is killed", overtaken: true, disturb: func(ctx context.Context, t *testing.T, w *pressure) {
			t.Helper()
			for pause(ctx, 150*time.Millisecond) {
				w.replace(t) //nolint:contextcheck // the receiver outlives the disturbance
				w.happened.Add(1)
			}
		}},
		{name: "the database restarts", postgres: true, server: true, overtaken: true, disturb: func(ctx context.Context, t *testing.T, w *pressure) {
			t.Helper()
			for range 2 {
				pause(ctx, 300*time.Millisecond)
				w.server.Crash(t)
				w.happened.Add(1)
			}
		}},
		{name: "sessions are terminated", postgres: true, server: true, overtaken: true, disturb: func(ctx context.Context, t *testing.T, w *pressure) {
			t.Helper()
			for done := 0; pause(ctx, 50*time.Millisecond); {
				before := done
				err := w.db.QueryRowContext(ctx, "SELECT (SELECT COUNT(*) FROM "+w.table+") + (SELECT COUNT(*) FROM "+w.effects+")").Scan(&done)
				if w.happened.Load() >= 2 && (err != nil || done == before) {
					continue // on a busy machine, sessions need longer to get something done
				}
				_, err = w.db.ExecContext(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = current_user")
				if err == nil {
					w.happened.Add(1)
				}
			}
		}},
		{name: "the pool is exhausted", disturb: func(ctx context.Context, t *testing.T, w *pressure) {
			t.Helper()
			for ctx.Err() == nil {
				if conn, err := w.db.Conn(ctx); err == nil {
					pause(ctx, 20*time.Millisecond)
					_ = conn.Close()
					w.happened.Add(1)
				}
			}
		}},
		{name: "a snapshot is held", postgres: true, disturb: func(ctx context.Context, t *testing.T, w *pressure) {
			t.Helper()
			w.happened.Add(2)
			holdSnapshots(ctx, t, w.other(t), w.table, time.Minute, 0)
		}},
		{name: "the table is locked", disturb: func(ctx context.Context, t *testing.T, w *pressure) {
			t.Helper()
			other := w.other(t)
			for pause(ctx, 100*time.Millisecond) {
				tx, err := other.BeginTx(ctx, nil)
				if err != nil {
					continue
				}
				if _, err = tx.ExecContext(ctx, w.lock()); err == nil {
					pause(ctx, 200*time.Millisecond)
					w.happened.Add(1)
				}
				_ = tx.Rollback()
			}
		}},
		{name: "a burst", perResource: 3, resources: 200},
		{name: "poison", poison: true},
		{name: "a slow handler", handle: func(ctx context.Context, resource, _ int) error {
			if resource == 0 {
				pause(ctx, 100*time.Millisecond)
			}
			return nil
		}},
		{name: "a handler that often fails", overtaken: true, handle: func(context.Context, int, int) error {
			if attempts.Add(1)%3 == 0 {
				return errors.New("no stock service")
			}
			return nil
		}},
		{name: "the clock is set back", clock: true, overtaken: true, disturb: func(ctx context.Context, t *testing.T, w *pressure) {
			t.Helper()
			w.step(ctx, t, time.Hour)
			w.step(ctx, t, -time.Hour)
		}},
		{name: "the clock is set forward", clock: true, disturb: func(ctx context.Context, t *testing.T, w *pressure) {
			t.Helper()
			w.step(ctx, t, time.Hour)
			w.step(ctx, t, 2*time.Hour)
		}},
	}
}

var attempts atomic.Int64

// Under each of them, every event that got a 200 has its effect exactly once, in the order
// of its resource unless attempts fail, and nothing is left behind. Only poison becomes a
// dead letter.
func TestTheInboxUnderPressure(t *testing.T) {
	t.Parallel()
	for _, c := range cells() {
		for _, d := range databases(t) {
			if (c.postgres || c.clock) && d.dialect != database.DialectPostgres {
				continue
			}
			t.Run(c.name+" "+d.name, func(t *testing.T) {
				t.Parallel()
				newPressure(t, c, d).run(t)
			})
		}
	}
}

// pressure is an inbox with HandleTx in one cell. Two receivers share it, like two processes.
type pressure struct {
	cell
	target

	server  *pgcrash.Server
	dsn     string
	db      *sql.DB
	store   *sqlstore.Store[*sql.Tx]
	table   string
	effects string

	running  sync.Map     // by resource: *atomic.Int32
	happened atomic.Int64 // disturbances

	mu        sync.RWMutex
	receivers [2]*webhook.Receiver
	pools     [2]*sql.DB
}

func newPressure(t *testing.T, c cell, d target) *pressure {
	t.Helper()
	c.perResource, c.resources = cmp.Or(c.perResource, 12), cmp.Or(c.resources, 12)
	w := &pressure{cell: c, target: d}
	switch {
	case c.server:
		w.server = pgcrash.Start(t)
		w.dsn = w.server.URL
	case d.dialect == database.DialectSQLite:
		w.dsn = sqliteDSN(filepath.Join(t.TempDir(), "events.db"))
	default:
		w.dsn = os.Getenv("DATABASE_URL")
	}
	if c.clock {
		w.dsn = withClock(t, w.dsn)
	}
	w.db = w.other(t)
	w.store = sqlstore.New(d.on(w.db), in(d.schema(t, w.db)), sqlstore.WithLogger(quiet))
	require.NoError(t, w.store.Migrate(t.Context()))
	w.table = tableOf(t, w.store)
	w.effects = table("effects")
	number := "BIGSERIAL PRIMARY KEY"
	if d.dialect == database.DialectSQLite {
		number = "INTEGER PRIMARY KEY"
	}
	_, err := w.db.ExecContext(t.Context(), "CREATE TABLE "+w.effects+" (n "+number+", event_id TEXT NOT NULL, resource TEXT NOT NULL)")
	require.NoError(t, err)
	for i := range w.receivers {
		w.start(t, i)
	}
	return w
}

// other opens another pool, as sql.Open returns it, except where it is to be exhausted.
func (w *pressure) other(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open(w.driver, w.dsn)
	require.NoError(t, err)
	if w.name() == "the pool is exhausted" {
		db.SetMaxOpenConns(2)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// withClock gives the sessions of a data source a clock of their own, which [pressure.step]
// sets.
func withClock(t *testing.T, dsn string) string {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	schema := table("clock")
	for _, statement := range []string{
		"CREATE SCHEMA " + schema,
		"CREATE TABLE " + schema + ".step (ms BIGINT NOT NULL)",
		"INSERT INTO " + schema + ".step VALUES (0)",
		"CREATE FUNCTION " + schema + ".statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS " +
			"$$SELECT pg_catalog.statement_timestamp() + (SELECT ms FROM " + schema + ".step) * interval '1 millisecond'$$",
	} {
		_, err = db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	return dsn + "&options=" + url.QueryEscape("-csearch_path="+schema+",pg_catalog")
}

// step sets the database's clock while events arrive.
func (w *pressure) step(ctx context.Context, t *testing.T, by time.Duration) {
	t.Helper()
	if !pause(ctx, 100*time.Millisecond) {
		return
	}
	changed, err := w.db.ExecContext(ctx, "UPDATE step SET ms = $1", by.Milliseconds())
	if assert.NoError(t, err) {
		n, err := changed.RowsAffected()
		assert.NoError(t, err)
		assert.Equal(t, int64(1), n)
		w.happened.Add(1)
	}
}

func (w *pressure) name() string { return w.cell.name }

func (w *pressure) lock() string {
	if w.dialect == database.DialectSQLite {
		return "DELETE FROM " + w.effects + " WHERE n < 0" // takes the lock for writing
	}
	return "LOCK TABLE " + w.table + " IN EXCLUSIVE MODE"
}

// start replaces a receiver.
func (w *pressure) start(t *testing.T, i int) {
	t.Helper()
	db := w.db
	if w.name() != "the pool is exhausted" {
		db = w.other(t)
	}
	store := sqlstore.New(w.on(db), like(t, w.store), sqlstore.WithLogger(quiet))
	cfg := webhook.Config{
		Keys: keys, Account: "shop", Store: store, Mode: webhook.Inbox, Logger: quiet, HandleStale: true,
		Lease: 2 * time.Second, PollInterval: 50 * time.Millisecond, Backoff: func(int) time.Duration { return 10 * time.Millisecond },
	}
	if w.poison {
		cfg.MaxAttempts = 3
	}
	rx, err := webhook.New(cfg)
	require.NoError(t, err)
	webhook.OnOther(rx, sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.Event) error {
		var resource, n int
		if _, err := fmt.Sscanf(e.ID, "e-%d-%d", &resource, &n); err != nil {
			return err
		}
		v, _ := w.running.LoadOrStore(resource, new(atomic.Int32))
		running, _ := v.(*atomic.Int32)
		// A clock that is set forward ends leases.
		assert.True(t, running.Add(1) == 1 || w.clock, "events of a resource are handled one at a time")
		defer running.Add(-1)
		if w.isPoison(resource, n) {
			panic("an event that no handler can read")
		}
		if w.handle != nil {
			if err := w.handle(ctx, resource, n); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO "+w.effects+" (event_id, resource) VALUES ($1, $2)", e.ID, e.ResourceID)
		return err
	}))
	rx.Start()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.receivers[i], w.pools[i] = rx, db
}

func (w *pressure) isPoison(resource, n int) bool { return w.poison && resource%3 == 0 && n == 2 }

// replace cuts a receiver off from its database in the middle of its work, as a killed
// process is, and starts another.
func (w *pressure) replace(t *testing.T) {
	t.Helper()
	w.mu.RLock()
	rx, db := w.receivers[0], w.pools[0]
	w.mu.RUnlock()
	_ = db.Close()
	w.start(t, 0)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = rx.Shutdown(ended)
}

// run delivers the events of every resource in order, each until it got a 200, and
// checks the effects.
func (w *pressure) run(t *testing.T) {
	t.Helper()
	disturbed, stop := context.WithCancel(t.Context())
	var all, disturbance sync.WaitGroup
	if w.disturb != nil {
		disturbance.Go(func() { w.disturb(disturbed, t, w) })
	}
	for resource := range w.resources {
		all.Go(func() {
			for n := range w.perResource {
				w.deliver(t, resource, n) //nolint:contextcheck // the disturbance ends before the deliveries
				for w.disturb != nil && n >= w.perResource/2 && w.happened.Load() < 2 && pause(disturbed, time.Millisecond) {
					continue // half of the events come after the disturbances began
				}
			}
		})
	}
	all.Wait()
	want := w.resources * w.perResource
	dead := 0
	for r := range w.resources {
		for n := range w.perResource {
			if w.isPoison(r, n) {
				dead++
			}
		}
	}
	var counts webhook.Counts
	require.Eventually(t, func() bool {
		var n int
		err := w.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+w.effects).Scan(&n)
		return err == nil && n >= want-dead
	}, 2*time.Minute, 20*time.Millisecond)
	stop()
	disturbance.Wait()
	require.Eventually(t, func() bool { // an outcome may be stored again after its lease
		var err error
		counts, err = view(w.store, "shop").Counts(t.Context())
		return err == nil && counts.Waiting+counts.Claimed == 0
	}, time.Minute, 20*time.Millisecond)
	for _, rx := range w.receivers {
		require.NoError(t, rx.Shutdown(t.Context()))
	}
	assert.Equal(t, dead, counts.Dead)
	w.check(t, want-dead)
}

func (w *pressure) deliver(t *testing.T, resource, n int) {
	t.Helper()
	id := fmt.Sprintf("e-%d-%02d", resource, n)
	body := record(id, fmt.Sprintf("r%d", resource)).Body
	for attempt := 0; ; attempt++ {
		w.mu.RLock()
		rx := w.receivers[(resource+attempt)%len(w.receivers)]
		w.mu.RUnlock()
		got := rx.Receive(t.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
		if got.Status == 200 {
			return
		}
		if !assert.Less(t, attempt, 2000, "status %d", got.Status) || !pause(t.Context(), 20*time.Millisecond) {
			return
		}
	}
}

func (w *pressure) check(t *testing.T, want int) {
	t.Helper()
	rows, err := w.db.QueryContext(t.Context(), "SELECT event_id, resource FROM "+w.effects+" ORDER BY n")
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	of := map[string][]string{}
	sum := 0
	for rows.Next() {
		var id, resource string
		require.NoError(t, rows.Scan(&id, &resource))
		of[resource] = append(of[resource], id)
		sum++
	}
	require.NoError(t, rows.Err())
	assert.Equal(t, want, sum, "effects")
	for r := range w.resources {
		var order []string
		for n := range w.perResource {
			if !w.isPoison(r, n) {
				order = append(order, fmt.Sprintf("e-%d-%02d", r, n))
			}
		}
		got := of[fmt.Sprintf("r%d", r)]
		if w.overtaken {
			slices.Sort(got)
		}
		assert.Equal(t, strings.Join(order, " "), strings.Join(got, " "))
	}
}
