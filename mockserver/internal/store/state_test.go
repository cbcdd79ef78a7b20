package store_test

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// createEverything creates resources of all kinds, in several states and accounts.
func createEverything(t *testing.T, w *world) {
	t.Helper()
	a := w.Account("sk_test_1")
	fill(t, a, 5)
	for _, token := range []string{"pgct_paid_1", "pgct_3ds_1", "pgpm_refused"} {
		in := pixPayment(token)
		in.Method, in.Token = "credit_card", token
		mustCreate(t, a, in)
	}
	var id string
	a.View(func(d *store.Data) { id = d.Transactions.ByRef("order-2").ID })
	_, refusal := a.Transaction(id, engine.Pay)
	require.Nil(t, refusal)
	_, refusal = a.Transaction(id, func(env engine.Env, tx *engine.Transaction) (engine.Change, *engine.Refusal) {
		return engine.Refund(env, tx, engine.RefundRequest{Amount: 300, Reason: "late"})
	})
	require.Nil(t, refusal)
	require.Nil(t, refusalOf(a.Apply(func(d *store.Data) (engine.Change, *engine.Refusal) {
		c, refusal := engine.CreateCustomer(d.Env, nil, engine.Customer{Buyer: engine.Buyer{Name: "Ana", Email: "ana@example.com"}})
		return c, refusal
	})))
	require.Nil(t, refusalOf(a.Apply(func(d *store.Data) (engine.Change, *engine.Refusal) {
		return engine.CreateTransfer(d.Env, nil, engine.Transfer{Amount: 100, PixKey: "a@example.com", PixKeyType: "EMAIL"})
	})))
	var l *engine.Link
	for _, transition := range []func(d *store.Data) (engine.Change, *engine.Refusal){
		func(d *store.Data) (engine.Change, *engine.Refusal) {
			in := engine.NewSubscription{Token: "pgct_ok_sub"}
			in.Amount, in.Interval = 4990, "month"
			customer := &engine.Customer{Buyer: engine.Buyer{ID: "c", Email: "ana@example.com"}}
			return engine.CreateSubscription(d.Env, in, engine.ExistingForSubscription{Customer: customer})
		},
		func(d *store.Data) (engine.Change, *engine.Refusal) {
			in := engine.NewLink{Sold: []engine.NewLinkItem{{CatalogProduct: engine.CatalogProduct{ExternalID: "MUG-1", Name: "Mug", Price: 1}}}}
			c, refusal := engine.CreateLink(d.Env, in, engine.ExistingForLink{Product: d.Products.ByRef})
			l = c.Links[0]
			return c, refusal
		},
		func(d *store.Data) (engine.Change, *engine.Refusal) { return engine.OpenSession(d.Env, l, nil) },
		func(d *store.Data) (engine.Change, *engine.Refusal) {
			address := "https://shop.example/all"
			return engine.ConfigureIntegration(d.Env, nil, engine.IntegrationUpdate{WebhookURL: &address}), nil
		},
	} {
		require.Nil(t, refusalOf(a.Apply(transition)))
	}
	mustCreate(t, w.Account("sk_test_2"), pixPayment("order-1"))
	require.NoError(t, w.clock.Advance(t.Context(), time.Hour))
}

// roundTrip encodes and decodes v, as if it were saved in a file.
func roundTrip[T any](t *testing.T, v T) (out T) {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

func stateOf(t *testing.T, w *world) string {
	t.Helper()
	s, err := w.State()
	require.NoError(t, err)
	b, err := json.Marshal(s, json.Deterministic(true))
	require.NoError(t, err)
	return string(b)
}

func TestRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(nil)
	createEverything(t, w)
	saved, err := w.State()
	require.NoError(t, err)
	saved, before, used := roundTrip(t, saved), stateOf(t, w), w.memory.Used()-w.Remembered() // replaced versions are not saved
	next := mustCreate(t, w.Account("sk_test_1"), pixPayment("next"))

	other := mustCreate(t, w.Account("sk_test_3"), pixPayment("other"))
	require.NoError(t, w.Restore(saved, noon))
	w.Account("sk_test_3").View(func(d *store.Data) { assert.Nil(t, d.Transactions.Get(other.ID)) })
	emptied := newWorld(nil)
	emptied.Account("sk_test_3")
	assert.Equal(t, used+emptied.memory.Used(), w.memory.Used())
	repeated := mustCreate(t, w.Account("sk_test_1"), pixPayment("next"))
	assert.Equal(t, next, repeated, "the same calls return the same responses and ids")

	opened := newWorld(func(c *store.Config) { c.Opening = 500 })
	opened.Account("sk_test_3").View(func(d *store.Data) { assert.Equal(t, int64(500), d.Balance) })
	require.NoError(t, opened.Restore(saved, noon))
	opened.Account("sk_test_3").View(func(d *store.Data) { assert.Equal(t, int64(500), d.Balance, "the balance of a new account") })

	fresh := newWorld(nil)
	require.NoError(t, fresh.Restore(saved, noon))
	assert.Equal(t, before, stateOf(t, fresh))
	fresh.Account("sk_test_1").View(func(d *store.Data) {
		assert.True(t, d.Spent("pgct_paid_1"))
		assert.Equal(t, "partially_refunded", d.Transactions.ByRef("order-2").Status)
		p, err := d.Transactions.Page(query("partially_refunded"))
		require.NoError(t, err)
		assert.Equal(t, 1, p.Total, "the indexes are restored too")
	})
}

func query(status string) store.Query[engine.Transaction] {
	q := store.Query[engine.Transaction]{Limit: 5}
	q.In(store.TransactionStatus, status)
	return q
}

func TestRestoreRejectsCorruptState(t *testing.T) {
	t.Parallel()
	w := newWorld(nil)
	createEverything(t, w)
	before := stateOf(t, w)
	require.Error(t, w.Restore(store.State{Accounts: []store.AccountState{{Key: "sk_test_1", IDs: []byte("x")}}}, noon))
	assert.Equal(t, before, stateOf(t, w))
}

// A store that has replayed the saved commits equals the original, timers included.
func TestReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(nil)
	fill(t, w.Account("sk_test_1"), 3)
	require.Nil(t, w.Account("sk_test_1").Reset())
	createEverything(t, w)

	replayed := newWorld(nil)
	fired := map[clock.Timer]int{}
	for _, c := range w.commits {
		c = roundTrip(t, c)
		require.NoError(t, replayed.Replay(c))
		if c.Fired != nil {
			fired[*c.Fired]++
		}
	}
	replayed.clock.Drop(func(timer clock.Timer) bool {
		fired[timer]--
		return fired[timer] >= 0
	})
	assert.Equal(t, stateOf(t, w), stateOf(t, replayed))
	assert.Equal(t, w.memory.Used(), replayed.memory.Used())
	assert.Empty(t, replayed.sent, "no webhook is sent twice")
	assert.Equal(t, w.clock.Timers(), replayed.clock.Timers())
	require.NoError(t, replayed.clock.AdvanceTo(t.Context(), w.clock.Now()))
	assert.Equal(t, w.clock.Timers(), replayed.clock.Timers())
	assert.Equal(t, mustCreate(t, w.Account("sk_test_1"), pixPayment("n")).ID,
		mustCreate(t, replayed.Account("sk_test_1"), pixPayment("n")).ID)
	require.Error(t, replayed.Replay(store.Commit{Account: "sk_test_1", IDs: []byte("x")}))
}

func TestReset(t *testing.T) {
	t.Parallel()
	w := newWorld(nil)
	a, other := w.Account("sk_test_1"), w.Account("sk_test_2")
	first := mustCreate(t, a, pixPayment("one"))
	used := w.memory.Used()
	kept := mustCreate(t, other, pixPayment("one"))
	require.Nil(t, a.Reset())
	assert.Equal(t, used, w.memory.Used())
	again := mustCreate(t, a, pixPayment("one"))
	assert.Equal(t, uint64(1), again.Seq)
	assert.Equal(t, first.ID, again.ID, "the ids of this seed repeat")
	other.View(func(d *store.Data) { assert.Same(t, kept, d.Transactions.Get(kept.ID)) })
	assert.Len(t, w.clock.Timers(), 2)
}
