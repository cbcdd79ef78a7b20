package operations_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/river/operations"
	"github.com/gateway-go/gateway/mockserver"
)

var quiet = slog.New(slog.DiscardHandler)

// world is a merchant with its own database, outbox and gateway.
type world struct {
	*testing.T

	gw      *mockserver.Server
	account string // its name
	key     string // its credential
	pool    *pgxpool.Pool
	config  operations.Config
	outbox  *operations.Outbox
}

// poolOf creates a schema for the test, with River's tables and the results
// table, and returns a pool for it.
func poolOf(t *testing.T) *pgxpool.Pool {
	t.Helper()
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		t.Skip("DATABASE_URL is not set: run ../../integration/with-postgres go test ./...")
	}
	schema := "t_" + strings.ToLower(rand.Text()[:16])
	admin, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = admin.Exec(t.Context(), `CREATE SCHEMA `+schema)
	require.NoError(t, err)
	require.NoError(t, admin.Close(t.Context()))
	pool, err := pgxpool.New(t.Context(), url+"&search_path="+schema+"&pool_max_conns=16")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet})
	require.NoError(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(t, err)
	// One row for each run of a handler, without a unique constraint: only the
	// outbox prevents a second row for an operation.
	_, err = pool.Exec(t.Context(), `CREATE TABLE results (kind text NOT NULL, key text NOT NULL, error text NOT NULL, value text NOT NULL,
		account text NOT NULL)`)
	require.NoError(t, err)
	return pool
}

// open starts a merchant. change may alter the configuration before the outbox
// is created.
func open(t *testing.T, change func(*operations.Config), opts ...mockserver.Option) *world {
	t.Helper()
	w := &world{T: t, account: "shop", pool: poolOf(t)}
	w.gw = mockserver.Run(t, append([]mockserver.Option{mockserver.WithStart(time.Now()), mockserver.WithOpeningBalance(1_000_000)}, opts...)...)
	w.key = w.gw.Key()
	w.config = operations.Config{
		Logger:      quiet,
		SendTimeout: 500 * time.Millisecond, SettleAfter: time.Second,
		MaxBackoff: 50 * time.Millisecond, PollInterval: time.Second, HandlerTimeout: 5 * time.Second,
	}
	if change != nil {
		change(&w.config)
	}
	w.start()
	return w
}

// beside starts another merchant with an account of its own at the same gateway, on
// the same database.
func (w *world) beside(account string) *world {
	w.Helper()
	other := &world{T: w.T, gw: w.gw, account: account, key: "sk_test_" + account, pool: w.pool, config: w.config}
	other.start()
	return other
}

func (w *world) start() {
	w.Helper()
	w.config.Client = w.client()
	w.outbox = w.newOutbox()
}

// client returns a client of the merchant's account.
func (w *world) client(opts ...gateway.Option) *gateway.Client {
	return w.gw.Account(w.key).Client(append([]gateway.Option{gateway.WithAccount(w.account)}, opts...)...)
}

func (w *world) newOutbox() *operations.Outbox {
	w.Helper()
	outbox, err := operations.New(w.pool, w.config)
	require.NoError(w, err)
	require.NoError(w, outbox.Migrate(w.Context()))
	record(outbox, func(r operations.TransactionResult) string { return r.Value.ID })
	record(outbox, func(r operations.RefundResult) string { return fmt.Sprint(r.Value.AmountRefunded) })
	record(outbox, func(r operations.TransferResult) string { return r.Value.ID })
	return outbox
}

// record stores the result that a handler received.
func record[O operations.Returning[R], R any](outbox *operations.Outbox, value func(operations.Result[O, R]) string) {
	operations.OnResult(outbox, func(ctx context.Context, tx pgx.Tx, r operations.Result[O, R]) error {
		text, shown := "", ""
		if r.Err != nil {
			text = r.Err.Error()
		} else {
			shown = value(r)
		}
		_, err := tx.Exec(ctx, `INSERT INTO results (kind, key, error, value, account) VALUES ($1, $2, $3, $4, $5)`,
			r.Entry.Kind, r.Entry.Key, text, shown, r.Entry.Account)
		return err
	})
}

// work starts a process's River client; the returned function stops it.
func (w *world) work(outboxes ...*operations.Outbox) (stop func()) {
	w.Helper()
	config := &river.Config{Logger: quiet, TestOnly: true, FetchCooldown: 10 * time.Millisecond, FetchPollInterval: 50 * time.Millisecond}
	for _, outbox := range outboxes {
		require.NoError(w, outbox.Configure(config))
	}
	client, err := river.NewClient(riverpgxv5.New(w.pool), config)
	require.NoError(w, err)
	require.NoError(w, client.Start(context.WithoutCancel(w.Context())))
	stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), 20*time.Second)
		defer cancel()
		assert.NoError(w, client.StopAndCancel(ctx))
	})
	w.Cleanup(stop)
	return stop
}

// insert inserts operations in one transaction.
func (w *world) insert(ops ...operations.Operation) []*operations.Entry {
	w.Helper()
	var entries []*operations.Entry
	require.NoError(w, pgx.BeginFunc(w.Context(), w.pool, func(tx pgx.Tx) error {
		for _, op := range ops {
			e, err := w.outbox.InsertTx(w.Context(), tx, op)
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return nil
	}))
	return entries
}

// reaches waits until an operation is in a state.
func (w *world) reaches(key string, state operations.State) *operations.Entry {
	w.Helper()
	var list []*operations.Entry
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var err error
		list, err = w.outbox.List(w.Context(), operations.Query{Key: key})
		require.NoError(w, err)
		if len(list) == 1 && list[0].State == state {
			return list[0]
		}
	}
	require.Fail(w, "the operation must be "+string(state), "%s: %+v", key, list)
	return nil
}

func order(ref string, amount int64) gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: ref, Amount: amount, Method: gateway.Pix,
		Buyer:    gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com", Document: &gateway.Document{Type: "CPF", Number: "52998224725"}},
		Products: []gateway.Product{{Name: "Mug", Price: amount}},
	}
}

func payout(ref string, amount int64) operations.CreateTransfer {
	return operations.CreateTransfer{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "b@example.com", Amount: amount, ExternalRef: ref}
}

// payouts returns the amounts of the account's payouts at the gateway, by reference.
func (w *world) payouts() map[string][]int64 {
	w.Helper()
	amounts := make(map[string][]int64)
	for t, err := range w.client().Transfers.All(w.Context(), gateway.TransferListParams{}) {
		require.NoError(w, err)
		amounts[t.ExternalRef] = append(amounts[t.ExternalRef], t.Amount)
	}
	return amounts
}
