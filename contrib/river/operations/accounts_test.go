package operations_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/river/operations"
)

func payout(ref string, amount int64) operations.CreateTransfer {
	return operations.CreateTransfer{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "b@example.com", Amount: amount, ExternalRef: ref}
}

// payouts returns the amounts of the account's payouts at the gateway, by reference.
func (w *world) payouts() map[string][]int64 {
	w.Helper()
	amounts := make(map[string][]int64)
	for t, err := range w.client().Transfers.All(w.Context(), gateway.TransferListParams{}) {
		require.NoError(w, err)
		amounts[t.ExternalRef] = append(amounts[t.ExternalRef], t.Amount)
	}
	return amounts
}

// Two companies share a database and use the same keys. Each operation is paid once,
// from its own account, whichever processes run.
func TestEachAccountPaysItsOwnOperations(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(a, b *world){
		"one River client":       func(a, b *world) { a.work(a.outbox, b.outbox) },
		"two processes":          func(a, b *world) { a.work(a.outbox); b.work(b.outbox) },
		"B joins later":          func(a, b *world) { a.work(a.outbox); a.reaches("payout-1", operations.Done); b.work(b.outbox) },
		"B leads, A joins later": func(a, b *world) { b.work(b.outbox); b.reaches("payout-1", operations.Done); a.work(a.outbox) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := open(t, nil)
			b := a.beside("Shop.B")
			a.insert(payout("payout-1", 100), operations.CreateTransaction(order("order-1", 300)))
			b.insert(payout("payout-1", 250), operations.CreateTransaction(order("order-1", 700)))
			charge := b.paid(1000)
			b.insert(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
			work(a, b)
			for _, w := range []*world{a, b} {
				w.reaches("payout-1", operations.Done)
				w.reaches("order-1", operations.Done)
			}
			e := b.reaches("refund", operations.Done)
			assert.Equal(t, "Shop.B", e.Account)
			assert.Equal(t, map[string][]int64{"payout-1": {100}}, a.payouts())
			assert.Equal(t, map[string][]int64{"payout-1": {250}}, b.payouts())
			assert.Equal(t, int64(300), b.refunded(charge.ID))
			for _, w := range []*world{a, b} {
				_, rejection := w.result("payout-1")
				assert.Empty(t, rejection)
				for _, o := range w.events {
					assert.Equal(t, w.account, o.Account)
				}
			}
		})
	}
}

// A payout in doubt is repeated and looked up at its own account, also while workers
// of another account, which has a payout with the same reference, run.
func TestAPayoutInDoubtStaysWithItsAccount(t *testing.T) {
	t.Parallel()
	a := open(t, nil)
	b := a.beside("b")
	require.NoError(t, a.gw.Account(b.key).Faults.Add(mockserver.LoseResponse().On("transfers.create").Times(3)))
	stop := a.work(b.outbox)
	b.insert(payout("payout-1", 250))
	require.Eventually(t, func() bool { return b.saw(operations.EventUnknown) }, time.Minute, 10*time.Millisecond)
	stop() // the worker dies while the payout is in doubt
	a.work(a.outbox)
	a.insert(payout("payout-1", 100))
	a.reaches("payout-1", operations.Done)
	a.work(b.outbox)
	b.reaches("payout-1", operations.Done)
	assert.Equal(t, map[string][]int64{"payout-1": {100}}, a.payouts())
	assert.Equal(t, map[string][]int64{"payout-1": {250}}, b.payouts())
	for _, w := range []*world{a, b} {
		_, rejection := w.result("payout-1")
		assert.Empty(t, rejection)
	}
}

// A process that serves only A neither works nor fails the jobs of B, even if
// its River client has the queue of B.
func TestAWorkerLeavesTheJobsOfOtherAccounts(t *testing.T) {
	t.Parallel()
	a := open(t, nil)
	b := a.beside("b")
	config := &river.Config{
		Logger: quiet, TestOnly: true, FetchCooldown: 10 * time.Millisecond, FetchPollInterval: 50 * time.Millisecond,
		Queues: map[string]river.QueueConfig{b.outbox.Queue(): {MaxWorkers: 4}},
	}
	require.NoError(t, a.outbox.Configure(config))
	client, err := river.NewClient(riverpgxv5.New(a.pool), config)
	require.NoError(t, err)
	require.NoError(t, client.Start(context.WithoutCancel(t.Context())))
	entry := b.insert(payout("payout-1", 250))[0]
	job := func() (state string, attempts, failures int) {
		require.NoError(t, a.pool.QueryRow(t.Context(), `SELECT j.state, j.attempt, COALESCE(cardinality(j.errors), 0)
			FROM river_job j JOIN gateway_operations o ON o.job_id = j.id WHERE o.id = $1`, entry.ID).Scan(&state, &attempts, &failures))
		return state, attempts, failures
	}
	require.Eventually(t, func() bool { state, _, _ := job(); return state == "scheduled" }, time.Minute, 10*time.Millisecond)
	_, attempts, failures := job()
	assert.Zero(t, attempts, "a snooze is no attempt")
	assert.Zero(t, failures)
	stopping, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, client.StopAndCancel(stopping))
	assert.Zero(t, a.gw.Requests.Count(""))
	list, err := b.outbox.List(t.Context(), operations.Query{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, operations.Waiting, list[0].State)

	_, err = a.pool.Exec(t.Context(), `UPDATE river_job SET scheduled_at = now(), state = 'available' WHERE finalized_at IS NULL`)
	require.NoError(t, err)
	a.work(b.outbox)
	b.reaches("payout-1", operations.Done)
	assert.Equal(t, map[string][]int64{"payout-1": {250}}, b.payouts())
	assert.Empty(t, a.payouts())
}

// The process that River elects as its leader may serve other accounts. An
// operation whose job is lost must be found all the same.
func TestTheLeaderWakesTheOperationsOfEveryAccount(t *testing.T) {
	t.Parallel()
	a := open(t, nil)
	b := a.beside("b")
	a.insert(payout("payout-1", 100))
	b.insert(payout("payout-1", 250))
	a.work(a.outbox)
	a.reaches("payout-1", operations.Done) // a's process leads
	b.work(b.outbox)
	b.reaches("payout-1", operations.Done)
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		e, err := b.outbox.InsertTx(t.Context(), tx, payout("payout-2", 300))
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `DELETE FROM river_job WHERE id = (SELECT job_id FROM gateway_operations WHERE id = $1)`, e.ID)
		return err
	}))
	b.reaches("payout-2", operations.Done)
}

// A person sees and changes only the operations of the outbox's own account.
func TestAnAccountsOperationsAreHiddenFromOthers(t *testing.T) {
	t.Parallel()
	a := open(t, func(c *operations.Config) { c.MaxSends = 2 })
	b := a.beside("b")
	require.NoError(t, a.gw.Account(b.key).Faults.Add(mockserver.Status(503).On("transfers.create")))
	b.work(b.outbox)
	stuck := b.insert(payout("payout-1", 250))[0]
	b.reaches("payout-1", operations.Ambiguous)
	waiting := b.insert(operations.Refund{Key: "refund", TransactionID: someID, Amount: 1})[0]

	list, err := a.outbox.List(t.Context(), operations.Query{})
	require.NoError(t, err)
	assert.Empty(t, list)
	counts, err := a.outbox.Counts(t.Context())
	require.NoError(t, err)
	assert.Empty(t, counts)
	require.ErrorIs(t, a.outbox.Resolve(t.Context(), stuck.ID, operations.Resolution{Decision: operations.SendAgain, By: "Rui"}), operations.ErrNotFound)
	require.ErrorIs(t, a.outbox.Retry(t.Context(), stuck.ID), operations.ErrNotFound)
	require.ErrorIs(t, pgx.BeginFunc(t.Context(), a.pool, func(tx pgx.Tx) error {
		return a.outbox.CancelTx(t.Context(), tx, waiting.ID)
	}), operations.ErrNotFound)
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
	w := open(t, nil)
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
			req.Header.Set("Authorization", "Bearer "+w.key)
		}
		return w.gw.Transport().RoundTrip(req)
	}))
	stop := w.work(w.outbox)
	w.insert(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
	w.reaches("refund", operations.Sent)
	stop()

	rotated, err := w.config.Client.With(gateway.WithCredential(gateway.BearerToken("sk_test_rotated")))
	require.NoError(t, err)
	w.config.Client = rotated
	w.outbox = w.newOutbox()
	w.work(w.outbox)
	w.insert(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
	e := w.reaches("refund", operations.Done)
	assert.Equal(t, 1, e.Sends)
	assert.Equal(t, int64(300), w.refunded(charge.ID))
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, "Bearer sk_test_rotated", credentials[len(credentials)-1])
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// An account's name that is used for another environment is found before anything
// is sent, also by a process that does not call Migrate, and its jobs are left to
// the processes that are right.
func TestANameOfAnotherEnvironmentSendsNothing(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	sandbox := mockserver.Run(t)
	config := w.config
	client, err := gateway.New("https://sandbox.gateway.example", gateway.BearerToken(sandbox.Key()), gateway.WithAccount(w.account),
		gateway.WithHTTPClient(&http.Client{Transport: sandbox.Transport()}))
	require.NoError(t, err)
	config.Client = client
	wrong, err := operations.New(w.pool, config)
	require.NoError(t, err)

	err = wrong.Migrate(t.Context())
	require.ErrorIs(t, err, operations.ErrAccountConflict)
	require.ErrorContains(t, err, client.Account().Fingerprint)
	err = pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := wrong.InsertTx(t.Context(), tx, payout("payout-1", 100))
		require.ErrorIs(t, err, operations.ErrAccountConflict)
		_, err = tx.Exec(t.Context(), `SELECT 1`)
		return err // nil: the transaction is still usable
	})
	require.NoError(t, err)
	_, err = wrong.List(t.Context(), operations.Query{})
	require.ErrorIs(t, err, operations.ErrAccountConflict)
	_, err = wrong.Purge(t.Context(), time.Now())
	require.ErrorIs(t, err, operations.ErrAccountConflict)

	stop := w.work(wrong)
	e := w.insert(payout("payout-1", 100))[0]
	require.Eventually(t, func() bool {
		var state string
		assert.NoError(t, w.pool.QueryRow(t.Context(), `SELECT j.state FROM river_job j JOIN gateway_operations o ON o.job_id = j.id WHERE o.id = $1`,
			e.ID).Scan(&state))
		return state == "scheduled"
	}, time.Minute, 10*time.Millisecond)
	stop()
	assert.Zero(t, sandbox.Requests.Count(""))

	// The gateway's address changes: the error has the statement to run.
	_, err = w.pool.Exec(t.Context(), `UPDATE gateway_operations_accounts SET fingerprint = $1 WHERE name = $2`, client.Account().Fingerprint, w.account)
	require.NoError(t, err)
	require.NoError(t, wrong.Migrate(t.Context()))
}

// An outbox whose account was never registered stores nothing.
func TestAnAccountIsRegisteredByMigrate(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	config := w.config
	config.Client = w.client(gateway.WithAccount("unknown"))
	unknown, err := operations.New(w.pool, config)
	require.NoError(t, err)
	err = pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := unknown.InsertTx(t.Context(), tx, payout("payout-1", 100))
		return err
	})
	require.ErrorContains(t, err, "the database has no account unknown: run Outbox.Migrate")
}

// The Idempotency-Keys of two accounts differ: a gateway that does not keep
// accounts apart must not take one's refund for the other's.
func TestAccountsHaveDifferentIdempotencyKeys(t *testing.T) {
	t.Parallel()
	a := open(t, func(c *operations.Config) { c.KeyLifetime = time.Hour }, mockserver.WithDialect(mockserver.Live))
	b := a.beside("b")
	charge := a.paid(1000)
	keys := make(map[string]string)
	var mu sync.Mutex
	for _, w := range []*world{a, b} {
		w.through(roundTripper(func(req *http.Request) (*http.Response, error) {
			if op, _ := gateway.OperationFromContext(req.Context()); op.Name == "transactions.refund" {
				mu.Lock()
				keys[w.account] = req.Header.Get("Idempotency-Key")
				mu.Unlock()
			}
			req = req.Clone(req.Context())
			req.Header.Set("Authorization", "Bearer "+a.key)
			return a.gw.Transport().RoundTrip(req)
		}))
		stop := w.work(w.outbox)
		w.insert(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
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

func TestQueueNames(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, account := range []string{
		"shop", "shop-br", "shop_br", "Shop", "shop.br", "shop--br", "-shop", "shop-", "...", strings.Repeat("a", 45), strings.Repeat("a", 46), strings.Repeat("a", 64),
	} {
		outbox, err := operations.New(unconnected(t), operations.Config{Client: namedClient(t, account), Logger: quiet})
		require.NoError(t, err)
		queue := outbox.Queue()
		assert.Empty(t, seen[queue], account)
		seen[queue] = account
		config := &river.Config{Logger: quiet}
		require.NoError(t, outbox.Configure(config))
		_, err = river.NewClient(riverpgxv5.New(unconnected(t)), config)
		require.NoError(t, err, "River must accept the queue %s", queue)
	}
	assert.Equal(t, "shop-br", seen["gateway_operations_shop-br"])
	assert.Equal(t, strings.Repeat("a", 45), seen["gateway_operations_"+strings.Repeat("a", 45)])
}
