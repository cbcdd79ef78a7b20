package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Row X7 under load: of 50 creates with the same reference, exactly one succeeds, and
// all others get its id.
func TestConcurrentCreatesWithOneReference(t *testing.T) {
	t.Parallel()
	a := newWorld(nil).Account("sk_test_1")
	var (
		start = make(chan struct{})
		wg    sync.WaitGroup
		won   atomic.Pointer[engine.Transaction]
		lost  [50]*engine.Refusal
	)
	for i := range 50 {
		wg.Go(func() {
			<-start
			created, refusal := create(a, pixPayment("one"))
			if lost[i] = refusal; refusal == nil {
				assert.True(t, won.CompareAndSwap(nil, created), "more than one create succeeded")
			}
		})
	}
	close(start)
	wg.Wait()
	require.NotNil(t, won.Load())
	rejected := 0
	for _, refusal := range lost {
		if refusal != nil {
			rejected++
			assert.Equal(t, engine.CodeDuplicateReference, refusal.Code)
			assert.Equal(t, "/v2/transactions/"+won.Load().ID, refusal.Instance)
		}
	}
	assert.Equal(t, 49, rejected)
	a.View(func(d *store.Data) { assert.Equal(t, 1, d.Transactions.Len()) })
}

func TestAccountsAreIsolated(t *testing.T) {
	t.Parallel()
	w := newWorld(nil)
	first := mustCreate(t, w.Account("sk_test_1"), pixPayment("one"))
	second := mustCreate(t, w.Account("sk_test_2"), pixPayment("one"))
	assert.Equal(t, first.Seq, second.Seq)
	assert.Equal(t, []string{"sk_test_1", "sk_test_2"}, w.Accounts())
	_, refusal := w.Account("sk_test_3").Transaction(first.ID, engine.Pay)
	require.NotNil(t, refusal)
	assert.Equal(t, engine.CodeNotFound, refusal.Code)
}

func TestCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(func(c *store.Config) { c.Opening = 500 })
	a := w.Account("sk_test_1")
	created := mustCreate(t, a, pixPayment("one"))
	assert.Equal(t, engine.Row{Seq: 1, Rev: 1}, created.Row)
	paid, refusal := a.Transaction(created.ID, engine.Pay)
	require.Nil(t, refusal)
	assert.Equal(t, engine.Row{Seq: 1, Rev: 2}, paid.Row)
	assert.Equal(t, "pending", created.Status, "a version that was read before does not change")

	a.View(func(d *store.Data) {
		assert.Same(t, paid, d.Transactions.Get(created.ID))
		assert.Same(t, paid, d.Transactions.ByRef("one"))
		assert.Nil(t, d.Transactions.ByRef(""))
		assert.Equal(t, int64(1500), d.Balance)
	})
	var kinds []string
	ids := map[string]bool{}
	for _, e := range w.sent {
		kinds = append(kinds, e.Kind)
		ids[e.ID] = true
		assert.Equal(t, noon, e.At)
	}
	assert.Equal(t, []string{"transaction.created", "transaction.pending", "transaction.paid"}, kinds)
	assert.Len(t, ids, 3)
}

func TestARejectionChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(nil)
	a := w.Account("sk_test_1")
	created := mustCreate(t, a, pixPayment("one"))
	sent, used := len(w.sent), w.memory.Used()
	_, refusal := a.Transaction(created.ID, engine.PassChallenge)
	require.NotNil(t, refusal)
	a.View(func(d *store.Data) { assert.Same(t, created, d.Transactions.Get(created.ID)) })
	assert.Len(t, w.sent, sent)
	assert.Equal(t, used, w.memory.Used())
}

func TestTimersFire(t *testing.T) {
	t.Parallel()
	w := newWorld(nil)
	a := w.Account("sk_test_1")
	expires := mustCreate(t, a, pixPayment("one"))
	paid := mustCreate(t, a, pixPayment("two"))
	_, refusal := a.Transaction(paid.ID, engine.Pay)
	require.Nil(t, refusal)

	require.NoError(t, w.clock.Advance(t.Context(), 24*time.Hour-time.Millisecond))
	a.View(func(d *store.Data) { assert.Equal(t, "pending", d.Transactions.Get(expires.ID).Status) })
	require.NoError(t, w.clock.Advance(t.Context(), time.Millisecond))
	a.View(func(d *store.Data) {
		assert.Equal(t, "expired", d.Transactions.Get(expires.ID).Status)
		assert.Equal(t, noon.Add(24*time.Hour), d.Transactions.Get(expires.ID).UpdatedAt)
		assert.Equal(t, "paid", d.Transactions.Get(paid.ID).Status)
	})
}

func TestCardTimersFire(t *testing.T) {
	t.Parallel()
	w := newWorld(func(c *store.Config) { c.AutoPay = time.Minute })
	a := w.Account("sk_test_1")
	created := map[string]*engine.Transaction{}
	for _, token := range []string{"pgct_ok", "pgct_3ds", "pgct_chargeback"} {
		in := pixPayment(token)
		in.Method, in.Token = "credit_card", token
		created[token] = mustCreate(t, a, in)
	}
	require.NoError(t, w.clock.Advance(t.Context(), 24*time.Hour))
	a.View(func(d *store.Data) {
		assert.Equal(t, "paid", d.Transactions.Get(created["pgct_ok"].ID).Status)
		assert.Equal(t, "canceled", d.Transactions.Get(created["pgct_3ds"].ID).Status)
		assert.Equal(t, "chargedback", d.Transactions.Get(created["pgct_chargeback"].ID).Status)
		assert.True(t, d.Spent("pgct_ok"))
		assert.Equal(t, int64(1000), d.Balance)
	})
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(func(c *store.Config) { c.Memory = memlimit.New(64 << 10) })
	a := w.Account("sk_test_1")
	var refusal *engine.Refusal
	n := 0
	for ; refusal == nil; n++ {
		_, refusal = create(a, pixPayment(fmt.Sprintf("order-%d", n)))
	}
	assert.Equal(t, engine.CodeMemoryLimit, refusal.Code)
	assert.Greater(t, n, 20)
	assert.LessOrEqual(t, w.memory.Used(), int64(64<<10))
	var first string
	a.View(func(d *store.Data) {
		assert.Equal(t, n-1, d.Transactions.Len(), "nothing is lost")
		first = d.Transactions.ByRef("order-0").ID
	})
	after, refusal := a.Transaction(first, engine.Cancel)
	require.Nil(t, refusal, "operations that don't need more memory still work")
	assert.Equal(t, "canceled", after.Status)
}

// Any key opens an account, so empty accounts count towards the limit too.
func TestAccountsCountTowardsTheMemoryLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(func(c *store.Config) { c.Memory = memlimit.New(64 << 10) })
	first, refusal := w.Open("sk_test_0")
	require.Nil(t, refusal)
	n := 1
	for ; refusal == nil; n++ {
		require.Less(t, n, 64)
		_, refusal = w.Open(fmt.Sprintf("sk_test_%d", n))
	}
	assert.Equal(t, engine.CodeMemoryLimit, refusal.Code)
	assert.Greater(t, n, 10)
	assert.Len(t, w.Accounts(), n-1)
	assert.LessOrEqual(t, w.memory.Used(), int64(64<<10))
	again, refusal := w.Open("sk_test_0")
	require.Nil(t, refusal, "an open account stays open")
	assert.Same(t, first, again)
	assert.NotNil(t, w.Account("sk_test_own"), "internal access is not rejected")
}

func TestAChangeThatCannotBeSavedIsNotApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(nil)
	a := w.Account("sk_test_1")
	created := mustCreate(t, a, pixPayment("one"))
	require.Len(t, w.commits, 1)
	assert.Equal(t, uint64(1), w.commits[0].Change.Transactions[0].Seq, "the outbox gets the position")
	assert.NotEmpty(t, w.commits[0].Change.Events[0].ID, "the outbox gets the event's id")

	w.fail = errors.New("disk full")
	_, refusal := a.Transaction(created.ID, engine.Pay)
	require.NotNil(t, refusal)
	assert.Equal(t, engine.CodeLogFailed, refusal.Code)
	a.View(func(d *store.Data) {
		assert.Equal(t, "pending", d.Transactions.Get(created.ID).Status)
		assert.Zero(t, d.Balance)
	})
	assert.Len(t, w.sent, 2)
}

// If the commit of a due timer fails, nothing changes and the timer is still
// due.
func TestATimerFiresAgainAfterAFailedCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(nil)
	a := w.Account("a")
	created := mustCreate(t, a, pixPayment("one"))
	w.fail = errors.New("disk full")
	err := w.clock.Advance(t.Context(), 25*time.Hour)
	require.ErrorIs(t, err, clock.ErrFire)
	require.ErrorContains(t, err, "disk full")
	a.View(func(d *store.Data) { assert.Equal(t, "pending", d.Transactions.Get(created.ID).Status) })
	require.Len(t, w.clock.Timers(), 1)

	w.fail = nil
	require.NoError(t, w.clock.Advance(t.Context(), 0))
	a.View(func(d *store.Data) { assert.Equal(t, "expired", d.Transactions.Get(created.ID).Status) })
}

// The fault stale-read returns the version before the last change, for the 1024
// resources that changed last.
func TestBeforeTheLastChange(t *testing.T) {
	t.Parallel()
	a := newWorld(nil).Account("sk_test_1")
	fill(t, a, 1026)
	before := func(ref string) (old, now *engine.Transaction) {
		a.View(func(d *store.Data) {
			now = d.Transactions.ByRef(ref)
			old = d.Transactions.Before(now.ID)
		})
		return old, now
	}
	old, _ := before("order-0")
	assert.Nil(t, old, "its last change created it")
	for i := range 1026 {
		_, now := before(fmt.Sprintf("order-%d", i))
		_, refusal := a.Transaction(now.ID, engine.Pay)
		require.Nil(t, refusal)
	}
	for ref, status := range map[string]string{
		"order-0": "paid", "order-1": "paid", // too long ago
		"order-2": "pending", "order-1024": "pending", "order-1025": "pending",
	} {
		old, _ := before(ref)
		assert.Equal(t, status, old.Status, ref)
	}
}

// A resource that one change creates and replaces is counted once.
func TestTwoVersionsInOneChange(t *testing.T) {
	t.Parallel()
	w, apart := newWorld(nil), newWorld(nil)
	require.Nil(t, refusalOf(w.Account("sk_test_1").Apply(func(d *store.Data) (engine.Change, *engine.Refusal) {
		c, refusal := engine.CreateTransaction(d.Env, pixPayment("one"), engine.Existing{})
		require.Nil(t, refusal)
		payment, refusal := engine.Pay(d.Env, c.Transactions[0])
		return c.And(payment), refusal
	})))
	_, refusal := apart.Account("sk_test_1").Transaction(mustCreate(t, apart.Account("sk_test_1"), pixPayment("one")).ID, engine.Pay)
	require.Nil(t, refusal)
	assert.Equal(t, apart.memory.Used(), w.memory.Used())
	w.Account("sk_test_1").View(func(d *store.Data) { assert.Equal(t, uint64(2), d.Transactions.ByRef("one").Rev) })
}
