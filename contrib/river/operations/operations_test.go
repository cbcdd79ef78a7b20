package operations_test

import (
	"testing"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/river/operations"
)

func TestEveryKindOfOperationIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]mockserver.Option{
		"whole amounts":   nil,
		"settled in part": {mockserver.WithDialect(mockserver.Live), mockserver.WithSettledPercent(19.27)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testEveryKindOfOperation(t, opts...)
		})
	}
}

func testEveryKindOfOperation(t *testing.T, opts ...mockserver.Option) {
	t.Helper()
	w := open(t, nil, opts...)
	stop := w.work(w.outbox)
	defer stop()
	charge := w.paid(1000)
	client := w.gw.Client()
	transfer, err := client.Transfers.Create(t.Context(), gateway.TransferParams{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "a@example.com", Amount: 1700})
	require.NoError(t, err)
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com", Phone: "11987654321"})
	require.NoError(t, err)
	sub, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Token: "pgct_ok", Interval: gateway.IntervalMonth,
	})
	require.NoError(t, err)

	w.insert(
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
		if want[key] != "" {
			assert.Equal(t, want[key], value, key)
		} else {
			assert.NotEmpty(t, value, key)
		}
	}
	assert.Equal(t, int64(1000), w.refunded(charge.ID))
	assert.Equal(t, 3, w.gw.Requests.Count("transactions.refund"), "a target that is already reached is not sent")
}
