package operations_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// Two companies share a database and use the same keys. Each operation is paid once,
// from its own account, whichever processes run.
func TestEachAccountPaysItsOwnOperations(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(a, b *world){
		"one process":   func(a, b *world) { a.start(a.outbox, b.outbox) },
		"two processes": func(a, b *world) { a.start(a.outbox); b.start(b.outbox) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, e engine) {
				t.Helper()
				a := open(t, e, nil)
				b := a.beside("Shop.B")
				a.add(payout("payout-1", 100), operations.CreateTransaction(order("order-1", 300)))
				b.add(payout("payout-1", 250), operations.CreateTransaction(order("order-1", 700)))
				charge := b.paid(1000)
				b.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
				stop := b.start(b.outbox) // A joins later
				assert.Equal(t, "Shop.B", b.reaches("refund", operations.Done).Account)
				b.reaches("payout-1", operations.Done)
				b.reaches("order-1", operations.Done)
				counts, err := a.outbox.Counts(t.Context())
				require.NoError(t, err)
				assert.Equal(t, map[operations.State]int64{operations.Waiting: 2}, counts)
				stop()

				work(a, b)
				b.add(payout("payout-2", 260))
				b.reaches("payout-2", operations.Done)
				a.reaches("payout-1", operations.Done)
				a.reaches("order-1", operations.Done)
				assert.Equal(t, map[string][]int64{"payout-1": {100}}, a.payouts())
				assert.Equal(t, map[string][]int64{"payout-1": {250}, "payout-2": {260}}, b.payouts())
				assert.Equal(t, int64(300), b.refunded(charge.ID))
				for _, w := range []*world{a, b} {
					_, rejection := w.result("payout-1")
					assert.Empty(t, rejection)
					w.mu.Lock()
					assert.NotEmpty(t, w.events)
					for _, o := range w.events {
						assert.Equal(t, w.shop.Name, o.Account)
					}
					w.mu.Unlock()
				}
			})
		})
	}
}

// A payout in doubt is repeated and looked up at its own account, also while workers
// of another account, which has a payout with the same reference, run.
func TestAPayoutInDoubtStaysWithItsAccount(t *testing.T) {
	t.Parallel()
	a := open(t, onSQLite, nil)
	b := a.beside("b")
	require.NoError(t, a.gw.Account(b.shop.Key).Faults.Add(mockserver.LoseResponse().On("transfers.create").Times(3)))
	stop := a.start(b.outbox)
	b.add(payout("payout-1", 250))
	b.saw(operations.EventUnknown)
	stop() // the worker dies while the payout is in doubt
	a.start(a.outbox)
	a.add(payout("payout-1", 100))
	a.reaches("payout-1", operations.Done)
	a.start(b.outbox)
	b.reaches("payout-1", operations.Done)
	assert.Equal(t, map[string][]int64{"payout-1": {100}}, a.payouts())
	assert.Equal(t, map[string][]int64{"payout-1": {250}}, b.payouts())
	for _, w := range []*world{a, b} {
		_, rejection := w.result("payout-1")
		assert.Empty(t, rejection)
	}
}

// A person sees and changes only the operations of the outbox's own account.
func TestAnAccountsOperationsAreHiddenFromOthers(t *testing.T) {
	t.Parallel()
	a := open(t, onSQLite, func(c *operations.Config) { c.MaxSends = 2 })
	b := a.beside("b")
	require.NoError(t, a.gw.Account(b.shop.Key).Faults.Add(mockserver.Status(503).On("transfers.create")))
	b.start(b.outbox)
	stuck := b.add(payout("payout-1", 250))[0]
	b.reaches("payout-1", operations.Ambiguous)
	waiting := b.add(operations.Refund{Key: "refund", TransactionID: someID, Amount: 1})[0]

	list, err := a.outbox.List(t.Context(), operations.Query{})
	require.NoError(t, err)
	assert.Empty(t, list)
	counts, err := a.outbox.Counts(t.Context())
	require.NoError(t, err)
	assert.Empty(t, counts)
	require.ErrorIs(t, a.outbox.Resolve(t.Context(), stuck.ID, operations.Resolution{Decision: operations.SendAgain, By: "Rui"}), operations.ErrNotFound)
	require.ErrorIs(t, a.outbox.Retry(t.Context(), stuck.ID), operations.ErrNotFound)
	require.ErrorIs(t, a.outbox.cancel(t.Context(), waiting.ID), operations.ErrNotFound)
	require.NoError(t, b.outbox.Resolve(t.Context(), stuck.ID, operations.Resolution{Decision: operations.Abandoned, By: "Rui"}))
	b.reaches("payout-1", operations.Done)
	n, err := a.outbox.Purge(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	assert.Zero(t, n)
	n, err = b.outbox.Purge(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	assert.Positive(t, n)
}

// A rotated credential continues what the old one began.
func TestAKeyRotationContinues(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	charge := w.paid(1000)
	require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(1)))
	var mu sync.Mutex
	var credentials []string
	w.through(roundTripper(func(req *http.Request) (*http.Response, error) {
		mu.Lock()
		credentials = append(credentials, req.Header.Get("Authorization"))
		mu.Unlock()
		if strings.HasSuffix(req.Header.Get("Authorization"), "_rotated") { // the same account
			req = req.Clone(req.Context())
			req.Header.Set("Authorization", "Bearer "+w.shop.Key)
		}
		return w.gw.Transport().RoundTrip(req)
	}))
	stop := w.start(w.outbox)
	w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
	w.reaches("refund", operations.Sent)
	stop()

	rotated, err := w.config.Client.With(gateway.WithCredential(gateway.BearerToken("sk_test_rotated")))
	require.NoError(t, err)
	w.config.Client = rotated
	w.outbox = w.newOutbox()
	w.start(w.outbox)
	w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
	e := w.reaches("refund", operations.Done)
	assert.Equal(t, 1, e.Sends)
	assert.Equal(t, int64(300), w.refunded(charge.ID))
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, "Bearer sk_test_rotated", credentials[len(credentials)-1])
}

// The Idempotency-Keys of two accounts differ: a gateway that does not keep
// accounts apart must not take one's refund for the other's.
func TestAccountsHaveDifferentIdempotencyKeys(t *testing.T) {
	t.Parallel()
	a := open(t, onSQLite, func(c *operations.Config) { c.KeyLifetime = time.Hour }, mockserver.WithDialect(mockserver.Live))
	b := a.beside("b")
	charge := a.paid(1000)
	keys := make(map[string]string)
	var mu sync.Mutex
	for _, w := range []*world{a, b} {
		w.through(roundTripper(func(req *http.Request) (*http.Response, error) {
			if op, _ := gateway.OperationFromContext(req.Context()); op.Name == "transactions.refund" {
				mu.Lock()
				keys[w.shop.Name] = req.Header.Get("Idempotency-Key")
				mu.Unlock()
			}
			req = req.Clone(req.Context())
			req.Header.Set("Authorization", "Bearer "+a.shop.Key)
			return a.gw.Transport().RoundTrip(req)
		}))
		stop := w.start(w.outbox)
		w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
		w.reaches("refund", operations.Done)
		stop()
	}
	mu.Lock()
	defer mu.Unlock()
	assert.NotEmpty(t, keys["shop"])
	assert.NotEmpty(t, keys["b"])
	assert.NotEqual(t, keys["shop"], keys["b"])
	assert.Equal(t, int64(600), a.refunded(charge.ID))
}
