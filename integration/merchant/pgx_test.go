package merchant_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	"github.com/gateway-go/gateway/merchant"
)

// A shop on pgx: its orders and charges share transactions of pgx, with CopyFrom,
// savepoints and batches.
func TestAShopOnPgx(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgxpools)
	pool := w.pools[w.db]
	w.cfg.SecondPayment = merchant.RefundSecondPayment
	m, err := merchant.Open(t.Context(), pgxdriver.New(pool), w.cfg, merchant.Callbacks[pgx.Tx]{
		Paid: func(ctx context.Context, tx pgx.Tx, c *merchant.Charge) error { // two statements, one round trip
			b := &pgx.Batch{}
			b.Queue(`UPDATE orders SET state = 'paid', ships = ships + 1 WHERE id = $1`, c.Order)
			b.Queue(`INSERT INTO calls (name, subject, record, amount) VALUES ('paid', $1, $2, $3)`, c.Order, c.ID, c.Paid)
			return tx.SendBatch(ctx, b).Close()
		},
		Refunded: func(ctx context.Context, tx pgx.Tx, r *merchant.Refund) error {
			_, err := tx.Exec(ctx, `INSERT INTO calls (name, subject, record, amount) VALUES ('refunded', $1, $2, $3)`, r.Order.ID, r.ID, r.Amount)
			return err
		},
	})
	require.NoError(t, err)
	w.gw.Account(w.gw.Key()).Webhooks.Send(m.Webhook("shop"))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	defer func() {
		cancel()
		assert.NoError(t, <-ended)
	}()

	sell(t, pool, m, "lost", false)
	o, err := m.Order(t.Context(), "lost")
	require.NoError(t, err)
	assert.Empty(t, o.Charges, "what was rolled back was never stored")

	first := sell(t, pool, m, "A1", true)
	sent, err := m.Send(t.Context(), first.ID)
	require.NoError(t, err)
	require.Equal(t, merchant.Pending, sent.State)
	second := raise(t, pool, m, "A1", 6000)
	sent2, err := m.Send(t.Context(), second.ID)
	require.NoError(t, err)

	require.NoError(t, w.gw.Transactions.Pay(sent2.TransactionID))
	w.reaches("A1", fmt.Sprintf("paid %s 6000", second.ID))
	require.NoError(t, w.gw.Transactions.Pay(sent.TransactionID))
	w.eventually("the payment that the order did not need goes back", func() bool { return len(w.calls("A1")) == 2 })
	assert.Contains(t, w.calls("A1")[1], "refunded")
	assert.Equal(t, 1, w.ships("A1"))
}

// sell stores an order with its charge in one transaction.
func sell(t *testing.T, pool *pgxpool.Pool, m *merchant.Merchant[pgx.Tx], order string, commit bool) *merchant.Charge {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.CopyFrom(t.Context(), pgx.Identifier{"orders"}, []string{"id", "state", "ships"}, pgx.CopyFromRows([][]any{{order, "new", 0}}))
	require.NoError(t, err)
	c, err := m.ChargeTx(t.Context(), tx, pix(order, 5000))
	require.NoError(t, err)
	if commit {
		require.NoError(t, tx.Commit(t.Context()))
	}
	return c
}

// raise charges an order again for a larger amount, behind a savepoint.
func raise(t *testing.T, pool *pgxpool.Pool, m *merchant.Merchant[pgx.Tx], order string, amount int64) *merchant.Charge {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	lost, err := tx.Begin(t.Context())
	require.NoError(t, err)
	_, err = m.ChargeTx(t.Context(), lost, pix(order, amount+1))
	require.NoError(t, err)
	require.NoError(t, lost.Rollback(t.Context()))
	kept, err := tx.Begin(t.Context())
	require.NoError(t, err)
	c, err := m.ChargeTx(t.Context(), kept, pix(order, amount))
	require.NoError(t, err)
	require.NoError(t, kept.Commit(t.Context()))
	require.NoError(t, tx.Commit(t.Context()))
	assert.Equal(t, amount, c.Requested)
	return c
}
