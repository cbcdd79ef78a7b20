package operations_test

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// returns is the part of a merchant's program that handles returns, as in the guide.
type returns struct {
	db     *sql.DB
	outbox *operations.Outbox[*sql.Tx]
}

func openReturns(ctx context.Context, file string, client *gateway.Client) (*returns, error) {
	db, err := sql.Open("sqlite", "file:"+file+
		"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	outbox, err := operations.New(database.SQLite(db), operations.Config{Client: client})
	if err != nil {
		return nil, err
	}
	if err := outbox.Migrate(ctx); err != nil {
		return nil, err
	}
	operations.OnResult(outbox, refunded)
	return &returns{db: db, outbox: outbox}, nil
}

func (r *returns) accept(ctx context.Context, id, transactionID string, cents int64) error {
	ctx = context.WithoutCancel(ctx) // a customer who closes the page must not interrupt SQLite
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	_, err = tx.ExecContext(ctx, `INSERT INTO returns (id, transaction_id, cents, state) VALUES (?, ?, ?, 'refunding')`, id, transactionID, cents)
	if err != nil {
		return err
	}
	_, err = r.outbox.InsertTx(ctx, tx, operations.Refund{Key: id, TransactionID: transactionID, Amount: cents})
	if err != nil {
		return err
	}
	return tx.Commit()
}

func refunded(ctx context.Context, tx *sql.Tx, r operations.RefundResult) error {
	state, reason := "refunded", ""
	if r.Err != nil { // rejected for good: nothing was refunded
		state, reason = "refused", r.Err.Error()
	}
	return merchant.One(tx.ExecContext(ctx, `UPDATE returns SET state = ?, reason = ? WHERE id = ?`, state, reason, r.Operation.Key))
}

func (r *returns) work(ctx context.Context) error {
	return r.outbox.Run(ctx)
}

func TestTheGuide(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client(gateway.WithAccount("shop-br"))
	tx, err := client.Transactions.Create(t.Context(), order("", 5000))
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	r, err := openReturns(t.Context(), filepath.Join(t.TempDir(), "shop.db"), client)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.db.Close()) }()
	_, err = r.db.ExecContext(t.Context(), `CREATE TABLE returns (id text PRIMARY KEY, transaction_id text, cents int, state text, reason text)`)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.work(ctx) }()
	require.NoError(t, r.accept(t.Context(), "return-17", tx.ID, 2500))
	require.NoError(t, r.accept(t.Context(), "return-18", tx.ID, 9900))
	states := make(map[string]string)
	require.Eventually(t, func() bool {
		rows, err := r.db.QueryContext(t.Context(), `SELECT id, state FROM returns WHERE state <> 'refunding'`)
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		for rows.Next() {
			var id, state string
			require.NoError(t, rows.Scan(&id, &state))
			states[id] = state
		}
		return assert.NoError(t, rows.Err()) && len(states) == 2
	}, time.Minute, 10*time.Millisecond)
	assert.Equal(t, map[string]string{"return-17": "refunded", "return-18": "refused"}, states)
	cancel()
	require.NoError(t, <-ended)
}

// A refund whose response is lost, in a merchant's own test.
func TestALostResponseInATest(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client(gateway.WithAccount("shop-br"))
	db, err := onSQLite.connect(onSQLite.create(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	outbox, err := operations.New(database.SQLite(db), operations.Config{
		Client: client, Logger: slog.New(slog.DiscardHandler),
		// Short, to keep the test fast. The defaults suit a real gateway.
		SendTimeout: 500 * time.Millisecond, SettleAfter: 2 * time.Second, HandlerTimeout: 2 * time.Second,
	})
	require.NoError(t, err)
	require.NoError(t, outbox.Migrate(t.Context()))
	done := make(chan error, 1)
	operations.OnResult(outbox, func(_ context.Context, _ *sql.Tx, r operations.TransactionResult) error {
		done <- r.Err
		return nil
	})
	require.NoError(t, gw.Faults.Add(mockserver.LoseResponse().On("transactions.create").Times(1)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- outbox.Run(ctx) }()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = outbox.InsertTx(t.Context(), tx, operations.CreateTransaction(order("order-1", 500)))
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.NoError(t, <-done)
	cancel()
	require.NoError(t, <-ended)
	page, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{})
	require.NoError(t, err)
	assert.Len(t, page.Items, 1)
}
