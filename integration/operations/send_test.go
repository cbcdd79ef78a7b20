package operations_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

func polling(w *world) *operations.Outbox[*sql.Tx] { return w.outbox.(*in[*sql.Tx]).Outbox }

// A page sends what it has stored, without a worker.
func TestAnOperationIsSentAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, func(c *operations.Config) { c.SettleAfter = time.Minute })
		charge := w.paid(1000)
		first := w.add(operations.RefundUpTo("return-1", charge.ID, 300))[0]
		for range 2 {
			entry, err := polling(w).Send(t.Context(), first.ID)
			require.NoError(t, err)
			assert.Equal(t, operations.Done, entry.State)
			assert.Equal(t, 1, entry.Sends)
		}
		assert.Equal(t, int64(300), w.refunded(charge.ID))
		_, err := polling(w).Send(t.Context(), 1<<40)
		require.ErrorIs(t, err, operations.ErrNotFound)

		require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(1)))
		lost := w.add(operations.RefundUpTo("return-2", charge.ID, 500))[0]
		for range 2 {
			entry, err := polling(w).Send(t.Context(), lost.ID)
			require.NoError(t, err, "not to know the outcome is no error")
			assert.Equal(t, operations.Sent, entry.State)
			assert.Equal(t, 1, entry.Sends, "it is not sent again before its outcome is known")
		}
	}, onPostgres, onSQLite)
}

// Send waits for the worker that has the operation.
func TestSendWaitsForTheWorker(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		charge := w.paid(1000)
		entered, leave := make(chan struct{}), make(chan struct{})
		w.outbox.handle(func(*operations.Entry, error) error {
			close(entered)
			<-leave
			return nil
		})
		w.start(w.outbox)
		id := w.add(operations.RefundUpTo("return-1", charge.ID, 300))[0].ID
		<-entered
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := polling(w).Send(ctx, id)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		close(leave)
		entry, err := polling(w).Send(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, operations.Done, entry.State)
	}, onPostgres, onSQLite)
}

// A worker's handler may wait for a lock of the transaction that cancels its operation.
func TestCancelTxDoesNotWaitForAWorker(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		id := w.add(operations.RefundUpTo("return-1", w.paid(1000).ID, 300))[0].ID
		worker, err := w.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer func() { require.NoError(t, worker.Rollback()) }()
		_, err = worker.ExecContext(t.Context(), `UPDATE gateway_operations SET state = 'working' WHERE id = $1`, id)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err = w.outbox.cancel(ctx, id)
		require.ErrorIs(t, err, operations.ErrState)
		assert.ErrorContains(t, err, "a worker is about to send operation")
	}, onPostgres)
}

// A refund of an amount may say how much was refunded before: it is not sent if someone
// else refunded, and neither is the next one, whatever they ask for. Earlier refunds of the
// outbox are expected.
func TestARefundIsNotSentIfMoreWasRefunded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		charge := w.paid(1000)
		after := func(key string, amount, most int64) operations.Refund {
			return operations.Refund{Key: key, TransactionID: charge.ID, Amount: amount, RefundedAtMost: &most}
		}
		w.add(after("first", 100, 0), after("second", 200, 100))
		w.start(w.outbox)
		w.reaches("first", operations.Done)
		w.reaches("second", operations.Done)
		require.Equal(t, int64(300), w.refunded(charge.ID))

		_, err := w.client().Transactions.Refund(t.Context(), charge.ID, gateway.RefundParams{Amount: 50})
		require.NoError(t, err)
		w.add(after("third", 50, 300), after("fourth", 50, 349), after("fifth", 50, 350))
		for _, key := range []string{"third", "fourth", "fifth"} {
			w.reaches(key, operations.Done)
		}
		assert.Equal(t, int64(400), w.refunded(charge.ID), "only the fifth was sent")
		require.ErrorContains(t, w.rejection("third"), "refunded_amount is 350, but the refund allows at most 300")
		require.ErrorIs(t, w.rejection("fourth"), gateway.ErrConflict)
		require.NoError(t, w.rejection("fifth"))
	})
}
