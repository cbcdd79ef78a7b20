package merchant_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/operations"
)

// ready waits until the process is ready.
func (w *world) ready() {
	w.Helper()
	w.eventually("the process is ready", func() bool { return w.m.Ready(w.Context()) == nil })
}

// health returns the health, and checks its number of problems.
func (w *world) health() merchant.Health {
	w.Helper()
	h, err := w.m.Health(w.Context())
	require.NoError(w, err)
	require.Len(w, h.Accounts, len(w.cfg.Accounts))
	return h
}

func TestAProcessIsReadyWhileItRuns(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		require.ErrorIs(w, w.m.Ready(w.Context()), merchant.ErrNotRunning)
		stop := w.start()
		w.ready()
		w.gw.Down()
		require.NoError(w, w.m.Ready(w.Context()), "a gateway that is down does not take the shop off the network")
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		require.ErrorIs(w, w.m.Ready(ctx), context.Canceled)
		stop()
		err := w.m.Ready(w.Context())
		require.ErrorContains(w, err, "shutting down")
		require.NotErrorIs(w, err, merchant.ErrNotRunning, "a web process ignores that one, and this one accepts no events any more")
	})
}

// While the handlers of a shutdown still run, the process gets no new work.
func TestAProcessIsNotReadyWhileItShutsDown(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		entered, leave := make(chan struct{}), make(chan struct{})
		w.on.Paid = func(context.Context, *txn, *merchant.Charge) error {
			close(entered)
			<-leave
			return nil
		}
		w.open()
		stop := w.start()
		w.pays(w.charge(pix(w.order("R1"), 700)))
		<-entered
		require.NoError(w, w.m.Ready(w.Context()))
		ended := make(chan struct{})
		go func() { defer close(ended); stop() }()
		w.eventually("the process is not ready", func() bool { return w.m.Ready(w.Context()) != nil })
		select {
		case <-ended:
			assert.Fail(w, "Run ended before its callback")
		default:
		}
		close(leave)
		<-ended
	})
}

func TestADatabaseThatDoesNotAnswerIsNotReady(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		db := w.connect()
		w.db = db
		w.open()
		w.store("A1")
		w.start()
		w.ready()
		w.eventually("all loops run", func() bool { return w.count(`SELECT COUNT(*) FROM gateway_charges WHERE state = 'pending'`) == 1 })
		w.close(db)
		require.ErrorContains(w, w.m.Ready(w.Context()), "closed")
		_, err := w.m.Health(w.Context())
		require.ErrorContains(w, err, "closed")
	})
}

// A database that was restored from an older release's backup is not ready, and the error
// names what it lacks.
func TestASchemaOfAnotherReleaseIsNotReady(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]struct{ change, names string }{
		"a record's column":     {`ALTER TABLE gateway_payouts RENAME COLUMN transfer_id TO former`, "transfer_id"},
		"a record's table":      {`ALTER TABLE gateway_notes RENAME TO former`, "gateway_notes"},
		"an operation's column": {`ALTER TABLE gateway_operations RENAME COLUMN digest TO former`, "digest"},
		"an operation's table":  {`ALTER TABLE gateway_operations RENAME TO former`, "gateway_operations"},
		"the account":           {`DELETE FROM gateway_accounts`, "no account shop"},
		"another environment":   {`UPDATE gateway_accounts SET fingerprint = 'other'`, "fingerprint"},
		"the table of events":   {`ALTER TABLE gateway_webhook_events RENAME TO former`, "gateway_webhook_events"},
		"an older release":      {`DELETE FROM gateway_schema WHERE part = 'merchant'`, "0004_merchant"},
		"a later release":       {`INSERT INTO gateway_schema (part, version, oldest, applied_at) VALUES ('merchant', 999, 4, 0)`, ""},
		"a later one alone":     {`INSERT INTO gateway_schema (part, version, oldest, applied_at) VALUES ('merchant', 999, 999, 0)`, "a later release"},
		"older events":          {`DELETE FROM gateway_schema WHERE part = 'events'`, "0003_events"},
		"later events":          {`INSERT INTO gateway_schema VALUES ('events', 999, 1, 0)`, ""},
		"later events alone":    {`INSERT INTO gateway_schema VALUES ('events', 999, 999, 0)`, "install a later release"},
		"a later release adds":  {`ALTER TABLE gateway_payouts ADD COLUMN later text`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.open()
				require.ErrorIs(w, w.m.Ready(w.Context()), merchant.ErrNotRunning)
				w.exec(is.change)
				err := w.m.Ready(w.Context())
				if is.names == "" {
					require.ErrorIs(w, err, merchant.ErrNotRunning)
					return
				}
				require.ErrorContains(w, err, is.names)
				require.ErrorContains(w, err, "merchant: not ready: ")
			})
		})
	}
}

func TestHealthCountsWhatWaitsAndFails(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.CompareEvery = time.Hour
		w.open()
		assert.Equal(w, merchant.Health{Accounts: []merchant.AccountHealth{{Name: "shop", Operations: map[operations.State]int64{}}}}, w.health())
		stop := w.start()
		order := w.order("H1")
		w.fails("paid", 1000)
		w.pays(w.charge(pix(order, 700)))
		var h merchant.Health
		w.eventually("the callback fails", func() bool { h = w.health(); return h.Callbacks.Failing == 1 })
		assert.Equal(w, 1, h.Callbacks.Waiting)
		assert.Zero(w, h.Problems, "it is repeated")
		w.exec(`UPDATE gateway_facts SET attempts = 5, due_at = due_at + 3600000, created_at = created_at - 60000 WHERE delivered_at IS NULL AND stream = ''`)
		h = w.health()
		assert.Equal(w, 1, h.Problems)
		assert.Len(w, w.problems(), 1)
		assert.Greater(w, h.Callbacks.Oldest, time.Minute)

		// The event of a resource with the account's prefix that has no record.
		p := pix("", 100)
		p.ExternalRef = "shop-lost-1"
		tx, err := w.gw.Client().Transactions.Create(w.Context(), p.TransactionParams)
		require.NoError(w, err)
		require.NoError(w, w.gw.Transactions.Pay(tx.ID))
		w.eventually("the event fails", func() bool {
			result, err := w.db.ExecContext(w.Context(), `UPDATE gateway_webhook_events SET state = 4, token = '' WHERE kind = 'transaction.paid' AND reason <> '' AND token = ''`)
			return merchant.One(result, err) == nil
		})
		stop()
		assert.Equal(w, 1, w.health().Accounts[0].Events.Dead)

		// Nothing runs: requests and comparisons wait.
		w.stored(pix(w.order("H2"), 800))
		w.exec(`UPDATE gateway_checks SET check_at = 1 WHERE id = 'shop-H1-1'`)
		w.exec(`INSERT INTO gateway_problems (key, account, book, subject, record, kind, text, since) VALUES ('shop:1', 'shop', 'shop', 'order/H1', 'shop-H1-1', 'underpaid', 'less', 1)`)
		w.exec(`INSERT INTO gateway_problems (key, account, book, subject, record, kind, text, since, closed_at) VALUES ('shop:2', 'shop', 'shop', 'order/H1', 'shop-H1-1', 'underpaid', 'less', 1, 2)`)
		w.exec(`INSERT INTO gateway_problems (key, account, book, subject, record, kind, text, since) VALUES ('other:1', 'other', 'shop', 'order/H1', 'x', 'underpaid', 'less', 1)`)
		w.ambiguous("H2")
		h = w.health()
		assert.Len(w, w.problems(), h.Problems)
		assert.Equal(w, 4, h.Problems, "a callback, an event, an underpaid charge and an ambiguous request")
		assert.Equal(w, map[operations.State]int64{operations.Ambiguous: 1}, h.Accounts[0].Operations)
		assert.Equal(w, 1, h.Comparisons.Due)
		assert.Greater(w, h.Comparisons.Oldest, time.Hour)
	})
}

// stored stores a charge, which a process that runs sends.
func (w *world) stored(p merchant.ChargeParams) {
	w.Helper()
	w.tx(func(tx *txn) error {
		_, err := w.m.ChargeTx(w.Context(), tx, p)
		return err
	})
}

// ambiguous makes the request of an order's charge one that a person must resolve.
func (w *world) ambiguous(order string) {
	w.Helper()
	w.exec(`UPDATE gateway_operations SET state = 'ambiguous' WHERE key = ?`, "shop-"+order+"-1")
}

// Each account has its own counts.
func TestHealthHasEachAccount(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.two()
		w.stored(on("shop", pix(w.order("A1"), 100)))
		h := w.health()
		assert.Equal(w, "other", h.Accounts[0].Name)
		assert.Empty(w, h.Accounts[0].Operations)
		assert.Equal(w, "shop", h.Accounts[1].Name)
		assert.Equal(w, map[operations.State]int64{operations.Waiting: 1}, h.Accounts[1].Operations)
	})
}

// Probes read only indexes, however long the tables are.
func TestProbesReadIndexes(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		stop := w.start()
		order := w.order("I1")
		w.pays(w.charge(pix(order, 700)))
		w.reaches(order, "paid shop-I1-1 700")
		stop()
		w.fill()
		tap, db := w.tapped(nil)
		w.db = db
		w.open()
		tap.statements() // those of Open
		require.ErrorIs(w, w.m.Ready(w.Context()), merchant.ErrNotRunning)
		w.health()
		seen := tap.statements()
		tables := 0
		for statement := range seen {
			if strings.Contains(statement, "gateway_") {
				tables++
			}
			assert.True(w, strings.HasPrefix(strings.TrimSpace(statement), "SELECT"), "a probe writes nothing: %s", statement)
		}
		assert.LessOrEqual(w, tables, 12)
		w.indexed(seen)
	})
}
