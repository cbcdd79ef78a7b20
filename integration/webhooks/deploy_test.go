package webhooks_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
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
			each(t, func(t *testing.T, d target) {
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

func TestANewTableRemembersNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
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
		_, err := view(sqlstore.New(d.on(db), like(t, s), sqlstore.WithRetention(48*time.Hour)), "shop").Purge(ctx)
		require.NoError(t, err)
		assert.InDelta(t, 48*time.Hour, remembers(), float64(time.Minute))

		_, err = db.ExecContext(ctx, "DELETE FROM "+tableOf(t, s))
		require.NoError(t, err)
		_, err = s.Remembers(ctx)
		require.ErrorContains(t, err, "create the receiver again")
		require.NoError(t, s.Migrate(ctx))
		s = view(sqlstore.New(d.on(db), like(t, s), sqlstore.WithRetention(30*24*time.Hour)), "shop")
		assert.Less(t, remembers(), time.Minute)
	})
}

func TestAClockThatWasSetBackDelaysNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d target) {
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

		after := sqlstore.New(d.on(db), like(t, before))
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
	each(t, func(t *testing.T, d target) {
		t.Helper()
		if d.dialect != database.DialectPostgres {
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

		s := sqlstore.New(d.on(app), in(schema))
		require.ErrorContains(t, s.Migrate(ctx), "let a role that owns the tables open the program once")
		require.ErrorContains(t, s.Ready(ctx), "run Migrate")
		require.NoError(t, sqlstore.New(d.on(db), in(schema)).Migrate(ctx))
		_, err = db.ExecContext(ctx, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "+schema+" TO "+role)
		require.NoError(t, err)
		require.NoError(t, s.Migrate(ctx))
		require.NoError(t, s.Ready(ctx))
		var got handled
		rx := release(t, webhook.Config{Keys: keys, Account: "shop", Store: s, Logger: quiet}, &got, webhook.TransactionPaid)
		assert.Equal(t, 200, deliver(t, rx, webhook.TransactionPaid, "e1"))
		assert.Equal(t, 1, got.count())
	})
}
