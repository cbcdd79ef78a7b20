package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

var noon = time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC)

// world is a store with its clock and the events that it emitted.
type world struct {
	*store.Store

	memory *memlimit.Limit
	clock  *clock.Clock
	sent   []engine.Event

	commits []store.Commit
	fail    error // what Persist returns; nil to succeed
}

// Persist implements store.Outbox.
func (w *world) Persist(c store.Commit) (func(), error) {
	if w.fail != nil {
		return nil, w.fail
	}
	w.commits = append(w.commits, c)
	return func() { w.sent = append(w.sent, c.Change.Events...) }, nil
}

func newWorld(change func(*store.Config)) *world {
	w := &world{}
	w.clock = clock.New(clock.Config{Start: noon, Fire: func(t clock.Timer) error { return w.Fire(t) }})
	cfg := store.Config{
		Clock:   w.clock,
		IDs:     func(string) *ids.Source { return ids.Seeded(1) },
		Outbox:  w,
		Sandbox: true,
	}
	if change != nil {
		change(&cfg)
	}
	if cfg.Memory == nil {
		cfg.Memory = memlimit.Unlimited()
	}
	w.memory = cfg.Memory
	w.Store = store.New(cfg)
	return w
}

func pixPayment(ref string) engine.NewTransaction {
	return engine.NewTransaction{Transaction: engine.Transaction{
		ExternalRef: ref, Amount: 1000, Currency: "BRL", Method: "pix", Installments: 1,
		Buyer:    &engine.Buyer{Name: "Ana", Email: "ana@example.com"},
		Products: []engine.Product{{Name: "Book", Price: 1000, Quantity: 1}},
	}}
}

// create creates a transaction as the HTTP API does.
func create(a *store.Account, in engine.NewTransaction) (created *engine.Transaction, refusal *engine.Refusal) {
	_, refusal = a.Apply(func(d *store.Data) (engine.Change, *engine.Refusal) {
		c, refusal := engine.CreateTransaction(d.Env, in, engine.Existing{Reference: d.Transactions.ByRef(in.ExternalRef)})
		if refusal == nil {
			created = c.Transactions[0]
		}
		return c, refusal
	})
	return created, refusal
}

func mustCreate(tb testing.TB, a *store.Account, in engine.NewTransaction) *engine.Transaction {
	tb.Helper()
	created, refusal := create(a, in)
	require.Nil(tb, refusal)
	return created
}

func fill(tb testing.TB, a *store.Account, n int) {
	tb.Helper()
	for i := range n {
		mustCreate(tb, a, pixPayment(fmt.Sprintf("order-%d", i)))
	}
}

// refusalOf returns the refusal that [store.Account.Apply] returned.
func refusalOf(_ engine.Change, refusal *engine.Refusal) *engine.Refusal { return refusal }
