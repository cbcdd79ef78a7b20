package operations_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

func TestEveryKindOfOperationIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		testEveryKindOfOperation(t, e)
	})
	t.Run("settled in part", func(t *testing.T) {
		t.Parallel()
		testEveryKindOfOperation(t, onSQLite, mockserver.WithDialect(mockserver.Live), mockserver.WithSettledPercent(19.27))
	})
}

func testEveryKindOfOperation(t *testing.T, e engine, opts ...mockserver.Option) {
	t.Helper()
	// Long: time on a busy machine does not count as a lost response.
	w := open(t, e, func(c *operations.Config) { c.SendTimeout, c.SettleAfter = 30*time.Second, time.Minute }, opts...)
	w.start(w.outbox)
	charge := w.paid(1000)
	client := w.client()
	transfer, err := client.Transfers.Create(t.Context(), gateway.TransferParams{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "a@example.com", Amount: 1700})
	require.NoError(t, err)
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com", Phone: "11987654321"})
	require.NoError(t, err)
	sub, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Token: "pgct_ok", Interval: gateway.IntervalMonth,
	})
	require.NoError(t, err)
	w.add(
		operations.CreateTransaction(order("order-1", 500)),
		operations.Refund{Key: "refund-1", TransactionID: charge.ID, Amount: 300},
		operations.RefundUpTo("refund-2", charge.ID, 450),
		operations.RefundUpTo("refund-3", charge.ID, 450),
		operations.Refund{Key: "refund-4", TransactionID: charge.ID, Full: true},
		operations.CreateTransfer{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "b@example.com", Amount: 1900, ExternalRef: "payout-1"},
		operations.CancelTransfer{Key: "cancel-1", TransferID: transfer.ID},
		operations.CreateCustomer{Name: "Rui", Email: "rui@example.com", Phone: "11987654322", ExternalRef: "member-1"},
		operations.CreateSubscription{CustomerID: customer.ID, Amount: 990, Token: "pgct_ok2", Interval: gateway.IntervalMonth, IdempotencyKey: "club-1"},
		operations.UpdateSubscription{Key: "update-1", SubscriptionID: sub.ID, Params: gateway.SubscriptionUpdateParams{
			FailurePolicy: gateway.ImmediateCancel, Metadata: gateway.Some(map[string]any{"tier": "gold", "seats": 3}),
		}},
		operations.CancelSubscription{Key: "end-1", SubscriptionID: sub.ID},
	)
	want := map[string]string{
		"refund-1": "300", "refund-2": "150", "refund-3": "0", "refund-4": "550", "cancel-1": "cancelled",
		"update-1": "immediate_cancel", "end-1": "cancel_scheduled",
	}
	for _, key := range []string{"order-1", "refund-1", "refund-2", "refund-3", "refund-4", "payout-1", "cancel-1", "member-1", "club-1", "update-1", "end-1"} {
		e := w.reaches(key, operations.Done)
		assert.LessOrEqual(t, e.Sends, 1, key)
		value, rejection := w.result(key)
		assert.Empty(t, rejection, key)
		assert.NotEmpty(t, value, key)
		if want[key] != "" {
			assert.Equal(t, want[key], value, key)
		}
	}
	assert.Equal(t, int64(1000), w.refunded(charge.ID))
	assert.Equal(t, 3, w.gw.Requests.Count("transactions.refund"), "a target that is already reached is not sent")
}

func TestARefundIsMadeOnceIfItsResponseIsLost(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]mockserver.Fault{
		"applied": mockserver.LoseResponse(), "not applied": mockserver.ResetBefore(), "429 after it was applied": mockserver.Status(429).Applied(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, e engine) {
				t.Helper()
				w := open(t, e, nil)
				charge := w.paid(1000)
				require.NoError(t, w.gw.Faults.Add(fault.On("transactions.refund").Times(1)))
				w.start(w.outbox)
				w.add(operations.Refund{Key: "first", TransactionID: charge.ID, Amount: 300}, operations.Refund{Key: "second", TransactionID: charge.ID, Amount: 200})
				for key, want := range map[string]string{"first": "300", "second": "200"} {
					w.reaches(key, operations.Done)
					value, rejection := w.result(key)
					assert.Empty(t, rejection)
					assert.Equal(t, want, value)
				}
				assert.Equal(t, int64(500), w.refunded(charge.ID))
			})
		})
	}
}

func TestARolledBackOperationIsNeverSent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		w.start(w.outbox)
		_, err := w.outbox.insert(t.Context(), []operations.Operation{operations.CreateTransaction(order("never", 500))}, func() error { return errRolledBack })
		require.ErrorIs(t, err, errRolledBack)
		w.add(operations.CreateTransaction(order("later", 500)))
		w.reaches("later", operations.Done)
		assert.Equal(t, 1, w.gw.Requests.Count("transactions.create"))
	})
}

func TestAKeyFindsTheFirstOperation(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		charge := w.paid(1000)
		refund := operations.Refund{Key: "return-17", TransactionID: charge.ID, Amount: 500, Reason: "broken"}
		first := w.add(refund)[0]
		assert.False(t, first.Existing)
		second := w.add(refund)[0]
		assert.True(t, second.Existing)
		assert.Equal(t, first.ID, second.ID)
		refund.Amount = 501
		_, err := w.outbox.insert(t.Context(), []operations.Operation{refund}, nil)
		require.ErrorIs(t, err, operations.ErrKeyReused)
		require.NoError(t, w.outbox.cancel(t.Context(), first.ID))
		require.ErrorIs(t, w.outbox.cancel(t.Context(), first.ID), operations.ErrState)
		require.ErrorIs(t, w.outbox.cancel(t.Context(), 1<<40), operations.ErrNotFound)
		w.start(w.outbox)
		w.add(operations.Refund{Key: "return-18", TransactionID: charge.ID, UpTo: 200})
		w.reaches("return-18", operations.Done)
		assert.Equal(t, int64(200), w.refunded(charge.ID), "the canceled refund is not sent")
		counts, err := w.outbox.Counts(t.Context())
		require.NoError(t, err)
		assert.Equal(t, map[operations.State]int64{operations.Canceled: 1}, counts)
		list, err := w.outbox.List(t.Context(), operations.Query{
			States: []operations.State{operations.Done, operations.Waiting}, Kind: "transactions.refund", Resource: "transactions/" + charge.ID,
		})
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, "return-18", list[0].Key)
		require.ErrorIs(t, w.outbox.cancel(t.Context(), list[0].ID), operations.ErrState, "it was sent")
		page, err := w.outbox.List(t.Context(), operations.Query{Limit: 1})
		require.NoError(t, err)
		require.Len(t, page, 1)
		assert.Equal(t, first.ID, page[0].ID)
		rest, err := w.outbox.List(t.Context(), operations.Query{After: first.ID})
		require.NoError(t, err)
		assert.Equal(t, list, rest)
		n, err := w.outbox.Purge(t.Context(), list[0].UpdatedAt.Add(1e9))
		require.NoError(t, err)
		assert.Equal(t, int64(2), n)
	})
}

// What a person decides about an operation that can't be determined, and about one
// whose handler fails.
func TestAPersonDecides(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, func(c *operations.Config) { c.MaxSends, c.HandlerAttempts = 2, 1 })
		require.NoError(t, w.gw.Faults.Add(mockserver.Status(503).On("transfers.create")))
		w.start(w.outbox)
		payout := operations.CreateTransfer{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "b@example.com", Amount: 900}
		for _, key := range []string{"again", "abandoned", "applied"} {
			payout.ExternalRef = key
			w.add(payout)
		}
		ids := make(map[string]int64)
		for _, key := range []string{"again", "abandoned", "applied"} {
			ids[key] = w.reaches(key, operations.Ambiguous).ID
		}
		w.gw.Faults.Clear()
		made, err := w.client().Transfers.Create(t.Context(), gateway.TransferParams(payout))
		require.NoError(t, err)
		require.ErrorIs(t, w.outbox.Retry(t.Context(), ids["again"]), operations.ErrState)
		for key, d := range map[string]operations.Resolution{
			"again":     {Decision: operations.SendAgain, By: "Rui"},
			"abandoned": {Decision: operations.Abandoned, By: "Rui"},
			"applied":   {Decision: operations.Applied, By: "Rui", ResourceID: made.ID},
		} {
			require.NoError(t, w.outbox.Resolve(t.Context(), ids[key], d), key)
			require.ErrorIs(t, w.outbox.Resolve(t.Context(), ids[key], d), operations.ErrState, key)
		}
		for key, want := range map[string]string{"again": "", "abandoned": "abandoned", "applied": ""} {
			w.reaches(key, operations.Done)
			_, rejection := w.result(key)
			assert.Contains(t, rejection, want)
		}

		broken := true
		w.outbox.handle(func(*operations.Entry, error) error {
			if broken {
				return errors.New("broken")
			}
			return nil
		})
		w.add(operations.CreateTransaction(order("order-1", 500)))
		failed := w.reaches("order-1", operations.Dead)
		assert.Contains(t, failed.LastError, "broken")
		broken = false
		require.NoError(t, w.outbox.Retry(t.Context(), failed.ID))
		w.reaches("order-1", operations.Done)
		w.result("order-1")
		assert.Equal(t, 1, w.gw.Requests.Count("transactions.create"))
	})
}
