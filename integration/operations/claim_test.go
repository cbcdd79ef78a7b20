package operations_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// claim inserts an operation that the test sends itself.
func (w *world) claim(op operations.Operation) *operations.Claim {
	w.Helper()
	tx, err := w.db.BeginTx(w.Context(), nil)
	require.NoError(w, err)
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	c, err := polling(w).InsertClaimedTx(w.Context(), tx, op)
	require.NoError(w, err)
	require.NoError(w, tx.Commit())
	return c
}

// counted makes the outbox call the gateway through a transport that counts creates.
func (w *world) counted() *atomic.Int64 {
	w.Helper()
	n := new(atomic.Int64)
	next := w.gw.Transport()
	w.through(roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/transactions") {
			n.Add(1)
		}
		return next.RoundTrip(req)
	}))
	return n
}

// created returns how many transactions the gateway has.
func (w *world) created() (n int) {
	w.Helper()
	for _, err := range w.client().Transactions.All(w.Context(), gateway.TransactionListParams{}) {
		require.NoError(w, err)
		n++
	}
	return n
}

// What a process has claimed at the insertion, no worker touches, and the claim's Send sends
// it once.
func TestAClaimedOperationIsSentByItsProcess(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, func(c *operations.Config) { c.SendTimeout, c.SettleAfter = time.Minute, 2*time.Minute })
		creates := w.counted()
		w.start(w.outbox)
		c := w.claim(operations.CreateTransaction(order("A1", 700)))
		assert.Equal(t, operations.Sent, c.Entry.State)
		assert.Equal(t, 1, c.Entry.Sends, "the commit is the mark")
		w.add(operations.CreateTransaction(order("B1", 700)))
		w.reaches("B1", operations.Done)
		assert.Equal(t, int64(1), creates.Load(), "the workers leave it alone")
		for range 2 {
			entry, err := c.Send(t.Context())
			require.NoError(t, err)
			assert.Equal(t, operations.Done, entry.State)
			assert.Equal(t, 1, entry.Sends)
			require.Len(t, entry.History, 1)
			assert.Equal(t, "sending", entry.History[0].Text)
		}
		assert.Equal(t, int64(2), creates.Load())
		_, rejection := w.result("A1")
		assert.Empty(t, rejection)
	}, onPostgres, onSQLite)
}

// If the process dies between its commit and the request, a worker sends the operation when
// the lease has ended.
func TestAClaimWhoseProcessDiesIsSentByAWorker(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		creates := w.counted()
		c := w.claim(operations.CreateTransaction(order("A1", 700)))
		_, err := w.db.ExecContext(t.Context(), w.sql(`UPDATE gateway_operations SET lease_until = 1 WHERE id = ?`), c.Entry.ID)
		require.NoError(t, err)
		w.start(w.outbox)
		entry := w.reaches("A1", operations.Done)
		assert.Equal(t, 2, entry.Sends, "it may have been sent before")
		assert.Equal(t, int64(1), creates.Load())
		_, err = c.Send(t.Context()) // the process was not dead: the gateway recognizes the reference
		require.Error(t, err, "another worker has the operation")
		assert.Equal(t, 1, w.created())
		value, rejection := w.result("A1")
		assert.NotEmpty(t, value)
		assert.Empty(t, rejection)
	}, onPostgres, onSQLite)
}

// What the caller can't send any more, workers send at once.
func TestAClaimThatIsNotSentGoesToTheWorkers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, func(c *operations.Config) { c.SendTimeout, c.SettleAfter = time.Minute, 2*time.Minute })
		creates := w.counted()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		c := w.claim(operations.CreateTransaction(order("A1", 700)))
		_, err := c.Send(gone)
		require.ErrorIs(t, err, context.Canceled)
		list, err := w.outbox.List(t.Context(), operations.Query{Key: "A1"})
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, operations.Waiting, list[0].State)
		assert.Zero(t, list[0].Sends, "nothing was sent")
		assert.Zero(t, creates.Load())

		// Nor what a gate refuses, because the gateway fails.
		g := gate.New("shop", quiet)
		w.config.Client = w.client(gateway.WithGate(g), gateway.WithMaxAttempts(1))
		w.outbox = w.newOutbox()
		require.NoError(t, w.gw.Faults.Add(mockserver.Status(http.StatusServiceUnavailable).On("transactions.get").Times(1)))
		_, err = w.config.Client.Transactions.Get(t.Context(), "00000000-0000-4000-8000-000000000000")
		require.Error(t, err)
		require.True(t, g.State().Closed)
		g.Stop()
		c = w.claim(operations.CreateTransaction(order("B1", 700)))
		impatient, cancel := context.WithTimeout(gate.With(t.Context(), g), 10*time.Millisecond)
		defer cancel()
		_, _ = c.Send(impatient)
		w.config.Client = w.client()
		w.outbox = w.newOutbox()
		w.start(w.outbox)
		assert.Equal(t, 1, w.reaches("A1", operations.Done).Sends)
		assert.Equal(t, 1, w.reaches("B1", operations.Done).Sends)
	}, onPostgres, onSQLite)
}

// A transaction that is rolled back leaves nothing that could be sent, and after a COMMIT whose
// response was lost, the claim finds out.
func TestAClaimThatWasRolledBackIsNotSent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		creates := w.counted()
		tx, err := w.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		c, err := polling(w).InsertClaimedTx(t.Context(), tx, operations.CreateTransaction(order("A1", 700)))
		require.NoError(t, err)
		require.NoError(t, tx.Rollback())
		_, err = c.SendIfStored(t.Context())
		require.ErrorIs(t, err, operations.ErrNotFound)

		w.add(operations.CreateTransaction(order("A1", 700))) // another process has stored the same since
		_, err = c.SendIfStored(t.Context())
		require.ErrorIs(t, err, operations.ErrNotFound)
		assert.Zero(t, creates.Load())

		entry, err := w.claim(operations.CreateTransaction(order("B1", 700))).SendIfStored(t.Context())
		require.NoError(t, err)
		assert.Equal(t, operations.Done, entry.State)

		late := w.claim(operations.CreateTransaction(order("C1", 700)))
		_, err = w.db.ExecContext(t.Context(), w.sql(`UPDATE gateway_operations SET lease_until = 1 WHERE id = ?`), late.Entry.ID)
		require.NoError(t, err)
		_, err = polling(w).Send(t.Context(), late.Entry.ID) // another process
		require.NoError(t, err)
		sent := creates.Load()
		entry, err = late.SendIfStored(t.Context())
		require.NoError(t, err)
		assert.Equal(t, operations.Done, entry.State)
		assert.Equal(t, sent, creates.Load(), "it is not sent again")
	}, onPostgres, onSQLite)
}

// Its response may be lost like that of any other request, and its insertion may find an
// operation that is there.
func TestAClaimIsAnOperationLikeOthers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.create").Times(1)))
		entry, err := w.claim(operations.CreateTransaction(order("A1", 700))).Send(t.Context())
		require.NoError(t, err, "not to know the outcome is no error")
		assert.Equal(t, operations.Sent, entry.State)
		w.start(w.outbox)
		assert.Equal(t, 2, w.reaches("A1", operations.Done).Sends)
		assert.Equal(t, 1, w.created())

		again := w.claim(operations.CreateTransaction(order("A1", 700)))
		assert.True(t, again.Entry.Existing)
		entry, err = again.Send(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2, entry.Sends, "it is not sent again")

		tx, err := w.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = polling(w).InsertClaimedTx(t.Context(), tx, operations.CreateTransaction(order("A1", 800)))
		require.ErrorIs(t, err, operations.ErrKeyReused)
		_, err = polling(w).InsertClaimedTx(t.Context(), tx, operations.CreateTransaction{})
		require.ErrorIs(t, err, gateway.ErrValidation)
		require.NoError(t, tx.Commit(), "the transaction is still usable")

		charge := w.paid(1000)
		refund := w.claim(operations.RefundUpTo("return-1", charge.ID, 300)) // not safe to repeat: it is marked before it is sent
		assert.Equal(t, operations.Waiting, refund.Entry.State)
		entry, err = refund.Send(t.Context())
		require.NoError(t, err)
		assert.Equal(t, operations.Done, entry.State)
		assert.Equal(t, int64(300), w.refunded(charge.ID))
	}, onPostgres, onSQLite)
}
