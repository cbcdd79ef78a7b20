package webhooks_test

import (
	"context"
	"database/sql"
	"iter"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// merchant is a shop whose database is restored from a backup.
type merchant struct {
	gw *mockserver.Server
	db *sql.DB
	rx *webhook.Receiver
}

func openMerchant(t *testing.T, gw *mockserver.Server, file string) *merchant {
	t.Helper()
	db, err := sql.Open("sqlite", sqliteDSN(file))
	require.NoError(t, err)
	m := &merchant{gw: gw, db: db}
	m.exec(t, `CREATE TABLE IF NOT EXISTS orders (ref TEXT PRIMARY KEY, id TEXT, state TEXT)`)
	m.exec(t, `CREATE TABLE IF NOT EXISTS shipments (ref TEXT)`)
	store := sqlstore.New(database.SQLite(db))
	require.NoError(t, store.Migrate(t.Context()))
	m.rx, err = webhook.New(webhook.Config{
		Keys: []webhook.SigningKey{{Key: gw.Secret()}}, API: gw.Client(gateway.WithAccount("shop")), Store: store,
		Mode: webhook.Inbox, Logger: quiet,
	})
	require.NoError(t, err)
	webhook.OnTransaction(m.rx, webhook.TransactionPaid,
		sqlstore.HandleTx(store, func(ctx context.Context, tx *sql.Tx, e *webhook.TransactionEvent) error {
			res, err := tx.ExecContext(ctx, `UPDATE orders SET state = 'paid' WHERE ref = $1 AND state = 'new'`, e.CorrelationID)
			if err := changedOne(res, err); err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, `INSERT INTO shipments VALUES ($1)`, e.CorrelationID)
			return err
		}))
	m.rx.Start()
	return m
}

func (m *merchant) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	_, err := m.db.ExecContext(t.Context(), statement, args...)
	require.NoError(t, err)
}

// stop ends the receiver, and the database with all that was committed since the backup.
func (m *merchant) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, m.rx.Shutdown(context.WithoutCancel(t.Context())))
	require.NoError(t, m.db.Close())
}

func (m *merchant) order(t *testing.T, ref string) (id string) {
	t.Helper()
	charge, err := m.gw.Client().Transactions.Create(t.Context(), gateway.TransactionParams{
		ExternalRef: ref, Amount: 1990, Method: gateway.Pix,
		Buyer:    gateway.BuyerParams{Name: "Ana", Email: "ana@example.com"},
		Products: []gateway.Product{{Name: "Mug", Price: 1990}},
	})
	require.NoError(t, err)
	m.exec(t, `INSERT INTO orders VALUES ($1, $2, 'new')`, ref, charge.ID)
	return charge.ID
}

func (m *merchant) pay(t *testing.T, id string) {
	t.Helper()
	require.NoError(t, m.gw.Transactions.Pay(id))
	require.NoError(t, m.gw.Wait(t.Context()))
	require.NoError(t, m.rx.Idle(t.Context()))
}

// open yields the orders that were not final when the backup was made.
func (m *merchant) open(ctx context.Context) iter.Seq2[webhook.OpenResource, error] {
	return func(yield func(webhook.OpenResource, error) bool) {
		rows, err := m.db.QueryContext(ctx, `SELECT id FROM orders WHERE state = 'new'`)
		if err != nil {
			yield(webhook.OpenResource{}, err)
			return
		}
		var ids []string
		for rows.Next() {
			var id string
			if err = rows.Scan(&id); err != nil {
				break
			}
			ids = append(ids, id)
		}
		_ = rows.Close()
		for _, id := range ids {
			if !yield(webhook.OpenResource{Family: webhook.FamilyTransaction, ID: id, Status: "pending"}, err) {
				return
			}
		}
	}
}

func (m *merchant) shipped(t *testing.T) (refs map[string]int) {
	t.Helper()
	rows, err := m.db.QueryContext(t.Context(), `SELECT ref, COUNT(*) FROM shipments GROUP BY ref`)
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	refs = map[string]int{}
	for rows.Next() {
		var ref string
		var n int
		require.NoError(t, rows.Scan(&ref, &n))
		refs[ref] = n
	}
	require.NoError(t, rows.Err())
	return refs
}

// The steps of "After a restore or a failover" in docs/webhooks.md: no payment is lost, not
// even one whose event got a 200 and whose order the restore lost, and each has its effect once.
func TestTheStepsAfterARestore(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	folder := t.TempDir()
	shop := openMerchant(t, gw, filepath.Join(folder, "shop.db"))
	var route atomic.Pointer[webhook.Receiver]
	route.Store(shop.rx)
	gw.Webhooks.Send(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rx := route.Load(); rx != nil {
			rx.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	before := shop.order(t, "paid before the backup")
	acknowledged := shop.order(t, "paid after the backup")
	during := shop.order(t, "paid while receivers are stopped")
	shop.order(t, "not paid")
	shop.pay(t, before)

	shop.exec(t, `VACUUM INTO '`+filepath.Join(folder, "backup.db")+`'`)
	since := gw.Clock.Now()
	require.NoError(t, gw.Clock.Advance(time.Minute))
	shop.pay(t, acknowledged)
	shop.pay(t, shop.order(t, "ordered and paid after the backup"))
	assert.Len(t, shop.shipped(t), 3)

	// 1. Stop all receivers.
	route.Store(nil)
	shop.stop(t)
	require.NoError(t, gw.Transactions.Pay(during))
	require.NoError(t, gw.Wait(t.Context()))
	// 2. Restore the backup. 3. Start the receivers: rejected deliveries arrive again.
	shop = openMerchant(t, gw, filepath.Join(folder, "backup.db"))
	defer shop.stop(t)
	assert.Equal(t, map[string]int{"paid before the backup": 1}, shop.shipped(t))
	route.Store(shop.rx)
	require.NoError(t, gw.Clock.Advance(time.Hour))
	require.NoError(t, shop.rx.Idle(t.Context()))
	assert.Equal(t, map[string]int{"paid before the backup": 1, "paid while receivers are stopped": 1}, shop.shipped(t))
	// 4. Restore the orders that the gateway has, and run a Reconciler over all that is not final.
	for tx, err := range gw.Client().Transactions.All(t.Context(), gateway.TransactionListParams{}) {
		require.NoError(t, err)
		if tx.CreatedAt.Before(since) {
			break
		}
		shop.exec(t, `INSERT INTO orders VALUES ($1, $2, 'new') ON CONFLICT DO NOTHING`, tx.ExternalRef, tx.ID)
	}
	reconciler, err := webhook.NewReconciler(shop.rx, webhook.ReconcilerConfig{Open: shop.open})
	require.NoError(t, err)
	_, err = reconciler.Once(t.Context())
	require.NoError(t, err)
	require.NoError(t, shop.rx.Idle(t.Context()))
	assert.Equal(t, map[string]int{
		"paid before the backup": 1, "paid after the backup": 1, "paid while receivers are stopped": 1, "ordered and paid after the backup": 1,
	}, shop.shipped(t))
}
