package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/verify/explore/inbox"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// memory is an in-memory world with a clock of its own.
type memory struct {
	store   webhook.Store
	now     time.Time
	mu      sync.Mutex
	effects map[string]int
}

func newMemory() inbox.World {
	w := &memory{now: time.Now(), effects: map[string]int{}}
	w.store = webhook.NewMemoryStore(webhook.MemoryOptions{Now: func() time.Time { return w.now }})
	return w
}

func (w *memory) Store() webhook.Store { return w.store }

func (w *memory) Exact() bool { return false }

func (w *memory) Expire() error {
	w.now = w.now.Add(2 * time.Hour)
	return nil
}

func (w *memory) Effects() (map[string]int, error) { return maps.Clone(w.effects), nil }

func (w *memory) Handler(name func(*webhook.TransactionEvent) string) func(context.Context, *webhook.TransactionEvent) error {
	return func(_ context.Context, e *webhook.TransactionEvent) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.effects[name(e)]++
		return nil
	}
}

func scenarios(t *testing.T) []inbox.Scenario {
	t.Helper()
	gw := mockserver.Run(t, mockserver.WithStart(time.Now().Add(time.Hour))) // later than the clock of the store
	list, err := inbox.Scenarios(t.Context(), gw)
	require.NoError(t, err)
	return list
}

// TestEveryInterleavingOfTheInbox checks that in every interleaving an acknowledged
// event is handled, exactly once if no process crashes and no lease expires, and
// that a forged event is never handled.
func TestEveryInterleavingOfTheInbox(t *testing.T) {
	t.Parallel()
	var total atomic.Int64
	t.Cleanup(func() { fmt.Printf("explored %d interleavings of the inbox in memory\n", total.Load()) })
	for i, s := range scenarios(t) {
		limits := inbox.Limits{Turns: 2, Crashes: 1, Expiries: 1, Failures: 1}
		if os.Getenv("FULL_SIZE") != "" && explore.Sampled(i) {
			limits.Turns = 3
		}
		if n, err := strconv.Atoi(os.Getenv("SCHEDULES")); err == nil {
			limits.Turns = n
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			runs, counterExample := inbox.Explore(t.Context(), s, limits, newMemory)
			total.Add(int64(runs))
			assert.Empty(t, counterExample, "run %d", runs)
		})
	}
}

// broken is a world whose store has a bug.
type broken struct {
	inbox.World

	around func(webhook.Store) webhook.Store
}

func (b broken) Store() webhook.Store { return b.around(b.World.Store()) }

// forgetful treats every delivery as a new event.
type forgetful struct{ webhook.Store }

func (s forgetful) For(a gateway.Account) webhook.Store { return forgetful{s.Store.For(a)} }

func (s forgetful) Put(ctx context.Context, rec webhook.Record) (webhook.Entry, error) {
	rec.Key += webhooktest.NewID()
	return s.Store.Put(ctx, rec)
}

// hasty marks an event as done when it is claimed.
type hasty struct{ webhook.Store }

func (s hasty) For(a gateway.Account) webhook.Store { return hasty{s.Store.For(a)} }

func (s hasty) Next(ctx context.Context, limit int, lease time.Duration) ([]*webhook.Claim, error) {
	claims, err := s.Store.Next(ctx, limit, lease)
	for _, c := range claims {
		err = errors.Join(err, s.Store.Settle(ctx, c, webhook.Disposition{State: webhook.StateDone}))
	}
	return claims, err
}

func (s hasty) Settle(context.Context, *webhook.Claim, webhook.Disposition) error { return nil }

// endless is a store whose leases never expire.
type endless struct{ webhook.Store }

func (s endless) For(a gateway.Account) webhook.Store { return endless{s.Store.For(a)} }

func (s endless) Next(ctx context.Context, limit int, _ time.Duration) ([]*webhook.Claim, error) {
	return s.Store.Next(ctx, limit, 1000*time.Hour)
}

// oneAccount is a store that does not distinguish accounts.
type oneAccount struct{ webhook.Store }

func (s oneAccount) For(gateway.Account) webhook.Store { return s }

// TestEverySeededDefectOfAStoreIsFound shows that the properties can fail.
func TestEverySeededDefectOfAStoreIsFound(t *testing.T) {
	t.Parallel()
	list := scenarios(t)
	for _, defect := range []struct {
		finds    string
		around   func(webhook.Store) webhook.Store
		scenario string
	}{
		{"was written 2 times", func(s webhook.Store) webhook.Store { return forgetful{s} }, list[0].Name},
		{"an acknowledged event was lost", func(s webhook.Store) webhook.Store { return hasty{s} }, list[0].Name},
		{"is not empty", func(s webhook.Store) webhook.Store { return endless{s} }, list[0].Name},
		{"an acknowledged event was lost", func(s webhook.Store) webhook.Store { return oneAccount{s} }, "the same events of two accounts"},
	} {
		limits := inbox.Limits{Turns: 1, Crashes: 1}
		scenario := list[slices.IndexFunc(list, func(s inbox.Scenario) bool { return s.Name == defect.scenario })]
		_, counterExample := inbox.Explore(t.Context(), scenario, limits, func() inbox.World { return broken{newMemory(), defect.around} })
		t.Log(counterExample)
		assert.Contains(t, counterExample, defect.finds)
	}
}
