package merchant_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// beside opens an outbox of package operations in another process, for an account of the
// shop.
func (w *world) beside() *operations.Outbox[*txn] {
	w.Helper()
	db := w.connect()
	o, err := operations.New(w.kind.on(db, w.pools[db]), operations.Config{
		Client: w.cfg.Accounts[0].Client, Logger: quiet, PollInterval: 20 * time.Millisecond, SendTimeout: time.Second, SettleAfter: 2 * time.Second,
	})
	require.NoError(w, err)
	operations.OnResult(o, func(context.Context, *txn, operations.TransferResult) error { return nil })
	return o
}

func transfer(ref string) operations.CreateTransfer {
	p := bill(ref, "", 500).TransferParams
	p.ExternalRef = ref
	return operations.CreateTransfer(p)
}

// insert stores an operation in the outbox's process.
func (w *world) insert(o *operations.Outbox[*txn], op operations.Operation) (err error) {
	w.Helper()
	tx, err := w.begin(w.Context(), w.db, nil)
	require.NoError(w, err)
	_, err = o.InsertTx(w.Context(), tx, op)
	require.NoError(w, tx.Commit(), "the transaction is still usable")
	return err
}

// runs runs an outbox in the background.
func (w *world) runs(o *operations.Outbox[*txn]) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// rejects checks that an outbox beside package merchant does nothing, in whatever call.
func (w *world) rejects(o *operations.Outbox[*txn], id int64) {
	w.Helper()
	ctx := w.Context()
	before := w.count(`SELECT COUNT(*) FROM gateway_operations`)
	for name, call := range map[string]func() error{
		"Migrate":  func() error { return o.Migrate(ctx) },
		"Ready":    func() error { return o.Ready(ctx) },
		"Run":      func() error { return o.Run(ctx) },
		"InsertTx": func() error { return w.insert(o, transfer("foreign-2")) },
		"again":    func() error { return w.insert(o, transfer("foreign-1")) },
		"Send":     func() error { _, err := o.Send(ctx, id); return err },
		"Work":     func() error { _, err := o.Work(ctx, id); return err },
		"Resolve": func() error {
			return o.Resolve(ctx, id, operations.Resolution{Decision: operations.SendAgain, By: "Rui"})
		},
		"Retry": func() error { return o.Retry(ctx, id) },
		"Purge": func() error { _, err := o.Purge(ctx, time.Now().Add(time.Hour)); return err },
		"CancelTx": func() error {
			tx, err := w.begin(ctx, w.db, nil)
			require.NoError(w, err)
			err = o.CancelTx(ctx, tx, id)
			require.NoError(w, tx.Rollback())
			return err
		},
	} {
		err := call()
		require.ErrorIs(w, err, gateway.ErrAccountConflict, name)
		require.ErrorContains(w, err, "package merchant has the account shop", name)
	}
	assert.Equal(w, before, w.count(`SELECT COUNT(*) FROM gateway_operations`), "nothing is stored or deleted")
}

// Fault 16. An outbox beside package merchant, with its account name: money would move, and
// no books would know.
func TestAnOutboxCantHaveAnAccountOfMerchant(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		c := w.waitingCharge("A1")
		id := int64(w.count(`SELECT id FROM gateway_operations`))
		w.rejects(w.beside(), id)
		_, err := w.m.Send(w.Context(), c.ID)
		require.NoError(w, err, "merchant's own outbox works")
		w.rejects(w.beside(), id)
		assert.Empty(w, w.transfers())

		// An account of its own is another one.
		w.cfg.Accounts[0].Client = w.gw.Client(gateway.WithAccount("suppliers"))
		other := w.beside()
		require.NoError(w, other.Migrate(w.Context()))
		require.NoError(w, w.insert(other, transfer("supplier-1")))
		stop := w.runs(other)
		w.soon("it is sent", func() bool { return len(w.transfers()) == 1 })
		require.NoError(w, stop())
	}, mockserver.WithOpeningBalance(1_000_000))
}

// waitingCharge stores a charge that is not sent.
func (w *world) waitingCharge(order string) (c *merchant.Charge) {
	w.Helper()
	w.order(order)
	w.tx(func(tx *txn) (err error) {
		c, err = w.m.ChargeTx(w.Context(), tx, pix(order, 900))
		return err
	})
	return c
}

// An account that an outbox had before: merchant gets it once nothing of the outbox waits, and
// the outbox is rejected from then on, also in a process that runs.
func TestMerchantGetsAnAccountOnceTheOutboxHasFinished(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		o := w.beside()
		require.NoError(w, o.Migrate(w.Context()))
		require.NoError(w, w.insert(o, transfer("foreign-1")))
		for _, state := range []string{"waiting", "working", "sent", "ambiguous", "decided", "dead"} {
			w.exec(`UPDATE gateway_operations SET state = ?`, state)
			_, err := w.openOn(w.db, w.cfg)
			require.ErrorIs(w, err, merchant.ErrAccount, state)
			require.ErrorContains(w, err, "an outbox of package operations has 1 operations of the account shop that have not ended", state)
			require.NoError(w, o.Ready(w.Context()), "the account is still the outbox's")
		}
		w.exec(`UPDATE gateway_operations SET state = 'waiting'`)
		stop := w.runs(o)
		w.soon("it is done", func() bool { return w.count(`SELECT COUNT(*) FROM gateway_operations WHERE state = 'done'`) == 1 })
		require.Len(w, w.transfers(), 1)

		w.open()
		w.waitingCharge("A1")
		id := int64(w.count(`SELECT MAX(id) FROM gateway_operations`))
		_, err := o.Send(w.Context(), id)
		require.ErrorIs(w, err, gateway.ErrAccountConflict)
		require.NoError(w, stop(), "it has sent nothing of merchant's")
		assert.Equal(w, 1, w.count(`SELECT COUNT(*) FROM gateway_operations WHERE state = 'waiting'`))
		w.rejects(o, id)
		w.rejects(w.beside(), id)

		m, err := w.openOn(w.db, w.cfg)
		require.NoError(w, err, "merchant's own operations wait")
		_, err = m.Send(w.Context(), "shop-A1-1")
		require.NoError(w, err)
	}, mockserver.WithOpeningBalance(1_000_000))
}

// An operation that is inserted while merchant opens: either it is stored, and Open fails, or
// merchant has the account, and nothing is stored.
func TestAnOutboxInsertsWhileMerchantOpens(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		o := w.beside()
		require.NoError(w, o.Migrate(w.Context()))
		// SQLite has one writer: its transactions never overlap.
		tx, err := w.begin(context.WithoutCancel(w.Context()), w.db, nil)
		require.NoError(w, err)
		_, err = o.InsertTx(w.Context(), tx, transfer("foreign-1"))
		require.NoError(w, err)
		opened := make(chan error, 1)
		db := w.connect()
		go func() {
			_, err := w.openOn(db, w.cfg)
			opened <- err
		}()
		w.waits(tx, opened)
		assert.Empty(w, opened, "it waits for the transaction")
		require.NoError(w, tx.Commit())
		require.ErrorIs(w, <-opened, merchant.ErrAccount)
		require.NoError(w, o.Ready(w.Context()))
	})
}
