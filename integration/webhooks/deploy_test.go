package webhooks_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// handled counts the handler runs of a test, by event.
type handled struct {
	mu   sync.Mutex
	runs map[string]int
}

func (h *handled) add(e *webhook.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs == nil {
		h.runs = make(map[string]int)
	}
	h.runs[e.ID]++
}

func (h *handled) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.runs)
}

func release(t *testing.T, cfg webhook.Config, got *handled, kinds ...webhook.Kind) *webhook.Receiver {
	t.Helper()
	rx, err := webhook.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rx.Shutdown(context.Background())) })
	for _, kind := range kinds {
		webhook.OnTransaction(rx, kind, func(_ context.Context, e *webhook.TransactionEvent) error {
			got.add(e.Event)
			return nil
		})
	}
	rx.Start()
	return rx
}

func deliver(t *testing.T, rx *webhook.Receiver, kind webhook.Kind, id string) int {
	t.Helper()
	body := webhooktest.Event{Kind: kind, ID: id, ResourceID: "tx_" + id}.Body()
	return rx.Receive(t.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body}).Status
}

func TestARollingDeployLosesNoEvent(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]webhook.Mode{"Inbox": webhook.Inbox, "Sync": webhook.Sync} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, d database) {
				t.Helper()
				s := newStore(t, d.open(t), d)
				cfg := webhook.Config{Keys: keys, Account: "shop", Store: s, Logger: quiet, Mode: mode, PollInterval: 50 * time.Millisecond}
				var got handled
				oldRelease := release(t, cfg, &got, webhook.TransactionPaid)
				newRelease := release(t, cfg, &got, webhook.TransactionPaid, webhook.TransactionRefunded)
				const refunds = 100
				for i := range refunds {
					rx := oldRelease
					if i%4 == 3 {
						rx = newRelease
					}
					require.Equal(t, 200, deliver(t, rx, webhook.TransactionRefunded, fmt.Sprint(i)))
				}
				require.Eventually(t, func() bool {
					newRelease.Start() // in Sync mode, look for unhandled events again
					return got.count() == refunds
				}, 2*time.Minute, 60*time.Millisecond)
				for id, runs := range got.runs {
					assert.Equal(t, 1, runs, id)
				}
			})
		})
	}
}

// firstSchema returns the statements with which the first release of sqlstore
// created its table.
func firstSchema(d database, name string) []string {
	types := strings.NewReplacer("{seq}", "INTEGER PRIMARY KEY AUTOINCREMENT", "{bytes}", "BLOB", "{int}", "INTEGER")
	if d.dialect == sqlstore.Postgres {
		types = strings.NewReplacer("{seq}", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "{bytes}", "BYTEA", "{int}", "BIGINT")
	}
	index := func(unique, suffix, on, where string) string {
		return "CREATE " + unique + "INDEX IF NOT EXISTS " + name + "_" + suffix + " ON " + name + " (" + on + ") WHERE " + where
	}
	return []string{
		types.Replace(`CREATE TABLE IF NOT EXISTS ` + name + ` (
			seq {seq}, key TEXT NOT NULL UNIQUE, event_id TEXT NOT NULL, kind TEXT NOT NULL, resource TEXT NOT NULL,
			fact TEXT NOT NULL, signed {int} NOT NULL, source TEXT NOT NULL, late {int} NOT NULL, position {int} NOT NULL,
			body {bytes}, confirmed {bytes}, state {int} NOT NULL, attempts {int} NOT NULL, token TEXT NOT NULL,
			due {int} NOT NULL, lease {int} NOT NULL, since {int} NOT NULL, stands_in {int}, matched TEXT NOT NULL,
			reason TEXT NOT NULL)`),
		index("UNIQUE ", "busy", "resource", "state = 2"),
		index("", "due", "due, seq", "state = 1"),
		index("", "latest", "resource, position", "state = 3"),
		index("", "done", "since", "state = 3"),
		index("", "dead", "since", "state = 4"),
		index("", "fact", "fact", "fact <> ''"),
		index("", "event", "event_id", "fact <> ''"),
	}
}

// oldPut stores an event with the statement of the first release.
func oldPut(t *testing.T, db *sql.DB, name, id string, state int, at time.Time) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), `INSERT INTO `+name+` (key, event_id, kind, resource, fact, signed, source, late, position, body, confirmed,
		state, attempts, token, due, lease, since, matched, reason)
		VALUES ($1, $2, 'transaction.paid', $3, '', 1, 'delivery', 0, 3, $4, NULL, $5, 1, 'old', $6, $7, $8, '', '') ON CONFLICT (key) DO NOTHING`,
		"id "+id, id, "transaction/tx_"+id, webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: "tx_" + id}.Body(),
		state, at.UnixMilli(), at.UnixMilli(), at.UnixMilli())
	require.NoError(t, err)
}

func TestTheTableOfTheFirstReleaseIsUpgradedWithoutLosingAnEvent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		t.Helper()
		ctx := t.Context()
		db := d.open(t)
		name := table("upgraded")
		for _, statement := range firstSchema(d, name) {
			_, err := db.ExecContext(ctx, statement)
			require.NoError(t, err)
		}
		ago := time.Now().Add(-3 * time.Hour)
		for id, state := range map[string]int{"waiting": 1, "claimed": 2, "done": 3, "dead": 4} {
			oldPut(t, db, name, id, state, ago)
		}
		s := sqlstore.New(db, d.dialect, sqlstore.WithTable(name))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { assert.NoError(t, s.Migrate(ctx)) })
		}
		all.Wait()
		remembers, err := s.Remembers(ctx)
		require.NoError(t, err)
		assert.InDelta(t, 3*time.Hour, remembers, float64(time.Minute), "as old as its oldest event")

		// Processes of the first release keep running: they store events, and
		// their own migration finds nothing to do.
		oldPut(t, db, name, "later", 1, time.Now())
		for _, statement := range firstSchema(d, name) {
			_, err := db.ExecContext(ctx, statement)
			require.NoError(t, err)
		}
		var got handled
		rx := release(t, webhook.Config{
			Keys: keys, Account: "shop", Store: s, Logger: quiet, Mode: webhook.Inbox, PollInterval: 50 * time.Millisecond,
		}, &got, webhook.TransactionPaid)
		require.Eventually(t, func() bool { return got.count() == 3 }, 2*time.Minute, 20*time.Millisecond)
		_, err = rx.RequeueAll(ctx, webhook.DeadLetterFilter{})
		require.NoError(t, err)
		require.Eventually(t, func() bool { return got.count() == 4 }, 2*time.Minute, 20*time.Millisecond)
		assert.Equal(t, map[string]int{"waiting": 1, "claimed": 1, "dead": 1, "later": 1}, got.runs)
		assert.Equal(t, 200, deliver(t, rx, webhook.TransactionPaid, "done"))
		assert.Equal(t, uint64(1), rx.Stats()[webhook.OutcomeDuplicate])
		var bodies int
		require.NoError(t, db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+name+" WHERE state = 3 AND key <> 'id done' AND body IS NOT NULL").Scan(&bodies))
		assert.Zero(t, bodies)
	})
}

// The first release claims only waiting events, so it doesn't touch events
// that this release has set aside.
func TestTheFirstReleaseLeavesUnhandledEventsAlone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		t.Helper()
		ctx := t.Context()
		db := d.open(t)
		s := newStore(t, db, d)
		_, err := s.Put(ctx, record("e1", "tx_1"))
		require.NoError(t, err)
		c, _, err := s.Claim(ctx, "id e1", time.Minute)
		require.NoError(t, err)
		require.NoError(t, s.Settle(ctx, c, aside(webhook.FamilyTransaction)))
		now := time.Now().Add(time.Hour).UnixMilli()
		for _, takes := range []string{"state = 1 AND due <= $1", "state = 2 AND lease <= $1", "state = 3 AND since < $1", "state = 4 AND since < $1"} {
			var n int
			require.NoError(t, db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+s.Table()+" WHERE "+takes, now).Scan(&n))
			assert.Zero(t, n, takes)
		}
	})
}

func TestANewTableRemembersNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		t.Helper()
		ctx := t.Context()
		db := d.open(t)
		s := newStore(t, db, d, sqlstore.WithRetention(30*24*time.Hour))
		remembers := func() time.Duration {
			t.Helper()
			r, err := s.Remembers(ctx)
			require.NoError(t, err)
			return r
		}
		assert.Less(t, remembers(), time.Minute)
		age(t, db, s, 20*24*time.Hour)
		assert.InDelta(t, 20*24*time.Hour, remembers(), float64(time.Minute))
		age(t, db, s, 20*24*time.Hour)
		assert.Equal(t, 30*24*time.Hour, remembers(), "no more than the retention")

		// A shorter retention purged events that a longer one would have kept.
		_, err := sqlstore.New(db, d.dialect, sqlstore.WithTable(s.Table()), sqlstore.WithRetention(48*time.Hour)).Purge(ctx)
		require.NoError(t, err)
		assert.InDelta(t, 48*time.Hour, remembers(), float64(time.Minute))

		_, err = db.ExecContext(ctx, "DELETE FROM "+s.Table())
		require.NoError(t, err)
		_, err = s.Remembers(ctx)
		require.ErrorContains(t, err, "run Migrate")
		require.NoError(t, s.Migrate(ctx))
		assert.Less(t, remembers(), time.Minute)
	})
}

func TestAClockThatWasSetBackDelaysNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		t.Helper()
		ctx := t.Context()
		db := d.open(t)
		before := newStore(t, db, d)
		for _, id := range []string{"waiting", "leased", "failed", "aside"} {
			_, err := before.Put(ctx, record(id, id))
			require.NoError(t, err)
		}
		claim := func(id string, lease time.Duration) *webhook.Claim {
			t.Helper()
			c, _, err := before.Claim(ctx, "id "+id, lease)
			require.NoError(t, err)
			require.NotNil(t, c)
			return c
		}
		claim("leased", 300*time.Millisecond)
		require.NoError(t, before.Settle(ctx, claim("failed", time.Minute), retry(300*time.Millisecond, "no database")))
		require.NoError(t, before.Settle(ctx, claim("aside", time.Minute), aside(webhook.FamilyTransaction)))
		age(t, db, before, -3*time.Hour) // what was written then is in the future now

		after := sqlstore.New(db, d.dialect, sqlstore.WithTable(before.Table()))
		got := map[string]bool{}
		require.Eventually(t, func() bool {
			claims, err := after.Next(ctx, 10, time.Minute)
			require.NoError(t, err)
			aside, err := after.NextUnhandled(ctx, func(webhook.Family, webhook.Kind) bool { return true }, 10, time.Minute)
			require.NoError(t, err)
			for _, c := range append(claims, aside...) {
				got[c.EventID] = true
			}
			return len(got) == 4
		}, time.Minute, 50*time.Millisecond, "%v", got)
	})
}

func TestMigrateNeedsNoRightsWhenThereIsNothingToDo(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		t.Helper()
		if d.dialect != sqlstore.Postgres {
			t.Skip("SQLite has no roles")
		}
		ctx := t.Context()
		db := d.open(t)
		schema, role := table("plain"), table("app")
		for _, statement := range []string{
			"CREATE SCHEMA " + schema, "CREATE ROLE " + role + " LOGIN", "GRANT USAGE ON SCHEMA " + schema + " TO " + role,
		} {
			_, err := db.ExecContext(ctx, statement)
			require.NoError(t, err)
		}
		dsn, err := url.Parse(d.dsn(t))
		require.NoError(t, err)
		query := dsn.Query()
		query.Set("user", role)
		dsn.RawQuery = query.Encode()
		app, err := sql.Open(d.driver, dsn.String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = app.Close() })

		name := sqlstore.WithTable(schema + ".events")
		s := sqlstore.New(app, d.dialect, name)
		require.ErrorContains(t, s.Migrate(ctx), "could not be created or upgraded to version 7; run Migrate once as the owner")
		require.NoError(t, sqlstore.New(db, d.dialect, name).Migrate(ctx))
		_, err = db.ExecContext(ctx, "GRANT SELECT, INSERT, UPDATE, DELETE ON "+schema+".events TO "+role)
		require.NoError(t, err)
		require.NoError(t, s.Migrate(ctx))
		var got handled
		rx := release(t, webhook.Config{Keys: keys, Account: "shop", Store: s, Logger: quiet}, &got, webhook.TransactionPaid)
		assert.Equal(t, 200, deliver(t, rx, webhook.TransactionPaid, "e1"))
		assert.Equal(t, 1, got.count())
	})
}
