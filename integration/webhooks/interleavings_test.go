package webhooks_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/verify/explore/inbox"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// sqlWorld has the inbox and the effects in one database, and writes both in
// one transaction.
type sqlWorld struct {
	t       *testing.T
	db      *sql.DB
	target  target
	store   *sqlstore.Store[*sql.Tx]
	effects string
}

// reopen makes the next call of Next look for expired leases. A store does so
// only once a second, but in a schedule leases expire at any step.
func (w *sqlWorld) reopen() {
	w.store = sqlstore.New(w.target.on(w.db), like(w.t, w.store))
}

func (w *sqlWorld) Store() webhook.Store { return reopened{w.store, w, gateway.Account{}} }

type reopened struct {
	*sqlstore.Store[*sql.Tx]

	w       *sqlWorld
	account gateway.Account
}

func (s reopened) For(a gateway.Account) webhook.Store { return reopened{s.w.view(a), s.w, a} }

func (s reopened) Next(ctx context.Context, limit int, lease time.Duration) ([]*webhook.Claim, error) {
	return s.w.view(s.account).Next(ctx, limit, lease)
}

func (w *sqlWorld) view(a gateway.Account) *sqlstore.Store[*sql.Tx] { return view(w.store, a.Name) }

func (w *sqlWorld) Exact() bool { return true }

func (w *sqlWorld) Expire() error {
	w.reopen()
	_, err := w.db.ExecContext(w.t.Context(), "UPDATE "+tableOf(w.t, w.store)+" SET lease = lease - 7200000 WHERE state = 2")
	return err
}

func (w *sqlWorld) Handler(name func(*webhook.TransactionEvent) string) func(context.Context, *webhook.TransactionEvent) error {
	return sqlstore.HandleTx(w.store, func(ctx context.Context, tx *sql.Tx, e *webhook.TransactionEvent) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+w.effects+" (event_id) VALUES ($1)", name(e))
		return err
	})
}

func (w *sqlWorld) Effects() (map[string]int, error) {
	rows, err := w.db.QueryContext(w.t.Context(), "SELECT event_id FROM "+w.effects)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	found := map[string]int{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		found[name]++
	}
	return found, rows.Err()
}

// Two processes that share a database write each effect exactly once, even if
// one of them dies or loses its lease at any point.
func TestEveryInterleavingOfTheInbox(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithStart(time.Now().Add(time.Hour))) // no event is older than the store
	scenarios, err := inbox.Scenarios(t.Context(), gw)
	require.NoError(t, err)
	limits := inbox.Limits{Turns: 2, Crashes: 1, Expiries: 1, Failures: 1}
	if n, err := strconv.Atoi(os.Getenv("SCHEDULES")); err == nil {
		limits.Turns = n
	}
	each(t, func(t *testing.T, d target) {
		t.Helper()
		db := d.open(t)
		effects, _ := business(t, db)
		world := &sqlWorld{t: t, db: db, target: d, store: newStore(t, db, d), effects: effects}
		total := 0
		for _, s := range scenarios {
			runs, counterExample := inbox.Explore(t.Context(), s, limits, func() inbox.World {
				world.reopen()
				for _, name := range []string{tableOf(t, world.store), world.effects} {
					_, err := db.ExecContext(t.Context(), "DELETE FROM "+name+" WHERE event_id <> ''")
					require.NoError(t, err)
				}
				return world
			})
			total += runs
			assert.Empty(t, counterExample, "run %d", runs)
		}
		fmt.Printf("explored %d interleavings of the inbox in %s\n", total, d.name)
	})
}
