package webhooks_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// The test of an Inbox receiver in docs/testing.md.
func TestAPaymentGoesThroughTheInbox(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(filepath.Join(t.TempDir(), "shop.db"))
	db, err := sql.Open("sqlite", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.ExecContext(t.Context(), `CREATE TABLE orders (ref TEXT PRIMARY KEY, amount BIGINT, currency TEXT, state TEXT)`)
	require.NoError(t, err)
	gw := mockserver.Run(t)

	store := sqlstore.New(database.SQLite(db))
	require.NoError(t, store.Migrate(t.Context()))
	rx, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: gw.Secret()}}, Account: "shop", Store: store, Mode: webhook.Inbox})
	require.NoError(t, err)
	webhook.OnTransaction(rx, webhook.TransactionPaid,
		sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.TransactionEvent) error {
			res, err := tx.ExecContext(ctx, `UPDATE orders SET state = 'paid' WHERE ref = $1 AND amount = $2`, e.CorrelationID, e.Data.Charged())
			return changedOne(res, err)
		}))
	rx.Start() // the workers
	t.Cleanup(func() { assert.NoError(t, rx.Shutdown(context.WithoutCancel(t.Context()))) })
	gw.Webhooks.Send(rx)

	_, err = db.ExecContext(t.Context(), `INSERT INTO orders VALUES ('order-1001', 1990, 'BRL', 'new')`)
	require.NoError(t, err)
	charge, err := gw.Client().Transactions.Create(t.Context(), gateway.TransactionParams{
		ExternalRef: "order-1001", Amount: 1990, Method: gateway.Pix,
		Buyer:    gateway.BuyerParams{Name: "Ana", Email: "ana@example.com"},
		Products: []gateway.Product{{Name: "Mug", Price: 1990}},
	})
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(charge.ID))

	require.NoError(t, gw.Wait(t.Context())) // delivered: the event is stored
	require.NoError(t, rx.Idle(t.Context())) // handled: the order is paid
	var state string
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT state FROM orders WHERE ref = 'order-1001'`).Scan(&state))
	assert.Equal(t, "paid", state)
}
