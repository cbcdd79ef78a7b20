package operations_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/river/operations"
)

const someID = "01a20000-0000-7000-8000-000000000000"

func TestValidateNamesTheFieldAndTheRule(t *testing.T) {
	t.Parallel()
	payout := operations.CreateTransfer{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "b@example.com", Amount: 900}
	for _, wrong := range []struct {
		op    operations.Operation
		field string
	}{
		{operations.CreateTransaction(order("", 500)), "external_ref is required"},
		{operations.CreateTransaction(order("order-1", 0)), "amount"},
		{payout, "external_ref is required"},
		{operations.CreateSubscription{CustomerID: someID, Amount: 1, Token: "pgct_ok", Interval: gateway.IntervalMonth}, "idempotency_key is required"},
		{operations.Refund{TransactionID: someID, Full: true}, "key is required"},
		{operations.Refund{Key: "k", Full: true}, "transaction_id is required"},
		{operations.Refund{Key: "k", TransactionID: "../transfers", Full: true}, "transaction_id is required"},
		{operations.Refund{Key: "k", TransactionID: someID}, "amount is required unless up_to or full is set"},
		{operations.Refund{Key: "k", TransactionID: someID, Amount: 1, Full: true}, "amount is required unless up_to or full is set"},
		{operations.Refund{Key: "k", TransactionID: someID, Amount: -1}, "amount"},
		{operations.Refund{Key: "k", TransactionID: someID, UpTo: -1}, "up_to"},
		{operations.Refund{Key: "k", TransactionID: someID, Full: true, Reason: strings.Repeat("x", 501)}, "reason"},
		{operations.CancelTransfer{Key: strings.Repeat("k", 256), TransferID: someID}, "key must have at most 255"},
		{operations.CancelSubscription{Key: "k\x00", SubscriptionID: someID}, "control characters"},
		{operations.Refund{Key: "return-17\n", TransactionID: someID, Full: true}, "control characters"},
		{operations.Refund{Key: " return-17", TransactionID: someID, Full: true}, "begin or end with a space"},
		{operations.CreateTransaction(order("order-1\t", 500)), "control characters"},
		{operations.Refund{Key: "return\xff", TransactionID: someID, Full: true}, "valid UTF-8"},
		{operations.UpdateSubscription{Key: "k", SubscriptionID: someID, Params: gateway.SubscriptionUpdateParams{FailurePolicy: "sometimes"}}, "failure_policy"},
	} {
		err := wrong.op.Validate()
		require.ErrorIs(t, err, gateway.ErrValidation, "%T", wrong.op)
		assert.ErrorContains(t, err, wrong.field, "%T", wrong.op)
	}
}

func TestValuesThatCannotBeStoredExactlyAreRejected(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	for message, metadata := range map[string]map[string]any{
		"large numbers": {"n": int64(1<<53 + 1)},
		"U+0000":        {"n": "a\x00b"},
		"as JSON":       {"n": make(chan int)},
	} {
		require.NoError(t, pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
			_, err := w.outbox.InsertTx(t.Context(), tx, operations.UpdateSubscription{
				Key: "k", SubscriptionID: someID, Params: gateway.SubscriptionUpdateParams{Metadata: gateway.Some(metadata)},
			})
			assert.ErrorIs(t, err, gateway.ErrValidation)
			assert.ErrorContains(t, err, message)
			_, err = tx.Exec(t.Context(), `SELECT 1`)
			return err // nil: the transaction is still usable
		}))
	}
}

func TestAKeyFindsTheFirstOperation(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	refund := operations.Refund{Key: "return-17", TransactionID: someID, Amount: 500}
	first := w.insert(refund)[0]
	assert.False(t, first.Existing)
	second := w.insert(refund)[0]
	assert.True(t, second.Existing)
	assert.Equal(t, first.ID, second.ID)
	err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		refund.Amount = 501
		_, err := w.outbox.InsertTx(t.Context(), tx, refund)
		return err
	})
	require.ErrorIs(t, err, operations.ErrKeyReused)
	var jobs int
	require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE kind = 'gateway_operation'`).Scan(&jobs))
	assert.Equal(t, 1, jobs)
}

func TestARolledBackOperationIsNeverSent(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.work(w.outbox)
	tx, err := w.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = w.outbox.InsertTx(t.Context(), tx, operations.CreateTransaction(order("never", 500)))
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	w.insert(operations.CreateTransaction(order("later", 500)))
	w.reaches("later", operations.Done)
	assert.Equal(t, 1, w.gw.Requests.Count("transactions.create"))
}

func TestAnOperationCanBeCanceledUntilItIsSent(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.insert(operations.CreateTransaction(order("order-1", 500)), operations.CreateTransaction(order("order-2", 500)))
	cancel := func(id int64) error {
		return pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error { return w.outbox.CancelTx(t.Context(), tx, id) })
	}
	list, err := w.outbox.List(t.Context(), operations.Query{States: []operations.State{operations.Waiting}, Limit: 1})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, cancel(list[0].ID))
	require.ErrorIs(t, cancel(list[0].ID), operations.ErrState)
	require.ErrorIs(t, cancel(1<<40), operations.ErrNotFound)
	w.work(w.outbox)
	w.reaches("order-2", operations.Done)
	assert.Equal(t, 1, w.gw.Requests.Count("transactions.create"))
	rest, err := w.outbox.List(t.Context(), operations.Query{After: list[0].ID})
	require.NoError(t, err)
	require.Len(t, rest, 1)
	require.ErrorIs(t, cancel(rest[0].ID), operations.ErrState)
	counts, err := w.outbox.Counts(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[operations.State]int64{operations.Canceled: 1}, counts)

	n, err := w.outbox.Purge(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	assert.Equal(t, int64(2), n)
}

// An operation survives if an admin deletes its River job or a process dies
// with it.
func TestALostJobIsReplaced(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.insert(operations.CreateTransaction(order("order-1", 500)))
	_, err := w.pool.Exec(t.Context(), `DELETE FROM river_job`)
	require.NoError(t, err)
	w.work(w.outbox)
	w.reaches("order-1", operations.Done)
}

func TestAProcessWithoutAHandlerSendsNothing(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	bare, err := operations.New(w.pool, w.config)
	require.NoError(t, err)
	stop := w.work(bare)
	w.insert(operations.CreateTransaction(order("order-1", 500)))
	require.Eventually(t, func() bool { return w.saw(operations.EventUnhandled) }, time.Minute, 10*time.Millisecond)
	stop()
	assert.Zero(t, w.gw.Requests.Count(""))
	list, err := w.outbox.List(t.Context(), operations.Query{Key: "order-1"})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, operations.Waiting, list[0].State)
	assert.Zero(t, list[0].Sends)
}

func TestAnUpdateThatSomeoneElseOverwroteWaitsForAPerson(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	customer, err := w.gw.Client().Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
	require.NoError(t, err)
	sub, err := w.gw.Client().Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Token: "pgct_ok", Interval: gateway.IntervalMonth,
	})
	require.NoError(t, err)
	require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("subscriptions.update").Times(1)))
	w.work(w.outbox)
	w.insert(operations.UpdateSubscription{Key: "update", SubscriptionID: sub.ID, Params: gateway.SubscriptionUpdateParams{
		Metadata: gateway.Some(map[string]any{"tier": "gold"}),
	}})
	w.reaches("update", operations.Sent)
	_, err = w.gw.Client().Subscriptions.Update(t.Context(), sub.ID, gateway.SubscriptionUpdateParams{Metadata: gateway.Some(map[string]any{"tier": "iron"})})
	require.NoError(t, err)
	e := w.reaches("update", operations.Ambiguous)
	assert.Contains(t, e.Ambiguity, "someone else updated the subscription")
	require.NoError(t, w.outbox.Resolve(t.Context(), e.ID, operations.Resolution{Decision: operations.SendAgain, By: "Rui"}))
	w.reaches("update", operations.Done)
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	nameless, err := gateway.New("https://api.gateway.example", gateway.BearerToken("sk_test_x"))
	require.NoError(t, err)
	client, pool := namedClient(t, "shop"), unconnected(t)
	_, err = operations.New(nil, operations.Config{Client: client})
	require.ErrorContains(t, err, "the pool is nil")
	for message, config := range map[string]operations.Config{
		"Client is required":                {},
		"must consist of letters":           {Client: client, Schema: "a; DROP TABLE orders"},
		"KeyLifetime must not be negative":  {Client: client, KeyLifetime: -1},
		"PollInterval must not be negative": {Client: client, PollInterval: -1},
		`gateway.WithAccount("shop")`:       {Client: nameless},
		"at least twice SendTimeout":        {Client: client, SendTimeout: time.Minute, SettleAfter: time.Minute},
	} {
		_, err := operations.New(pool, config)
		require.ErrorContains(t, err, message)
	}
	outbox, err := operations.New(pool, operations.Config{Client: client, Workers: 5})
	require.NoError(t, err)
	config := &river.Config{}
	require.NoError(t, outbox.Configure(config))
	assert.Equal(t, map[string]river.QueueConfig{"gateway_operations_shop": {MaxWorkers: 5}}, config.Queues)
	assert.Len(t, config.PeriodicJobs, 1)
	require.ErrorContains(t, outbox.Configure(config), "already has an outbox of the account shop")
}

// River's tables and UI, the logs and the observed events contain no personal
// data.
func TestRiverStoresNoPersonalData(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.insert(operations.CreateTransaction(order("order-1", 500)))
	var args string
	require.NoError(t, w.pool.QueryRow(context.WithoutCancel(t.Context()), `SELECT args::text || metadata::text FROM river_job`).Scan(&args))
	assert.NotContains(t, args, "ana@example.com")
	assert.NotContains(t, args, "52998224725")
}

// unconnected returns a pool that has no connection yet.
func unconnected(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres:///nowhere")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func namedClient(t *testing.T, account string) *gateway.Client {
	t.Helper()
	client, err := gateway.New("https://api.gateway.example", gateway.BearerToken("sk_test_x"), gateway.WithAccount(account))
	require.NoError(t, err)
	return client
}
