package bench_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// BenchmarkShop compares package merchant with two shops that are written by hand on the same
// client, gateway and PostgreSQL: "floor" does the least that is right, see [floor], and
// "river" has a job for what must not be forgotten, see [riverShop].
//
// Charge stores and sends the charge of an order. Life is Charge, the webhook of the payment,
// the change of the shop's order that follows from it, a refund in full and the change that
// follows from that. The pools are those that sql.Open and pgxpool.New return, and all
// configurations are the default ones. Statements, without BEGIN and COMMIT, and WAL are all
// that the database saw meanwhile, also of loops that look for work.
func BenchmarkShop(b *testing.B) {
	if os.Getenv("DATABASE_URL") == "" {
		b.Skip("DATABASE_URL is not set: ../integration/with-postgres starts a PostgreSQL and sets it")
	}
	for _, kind := range []struct {
		name string
		run  func(t *till, order string) error
	}{{"Charge", (*till).charge}, {"Life", (*till).live}} {
		for _, driver := range []struct {
			name  string
			shops map[string]func(t *till) seller
		}{
			{"pgx stdlib", map[string]func(t *till) seller{
				"gateway": func(t *till) seller { return openMerchant(t, database.Postgres(t.sqlPool("pgx")), sqlExec) },
				"floor":   func(t *till) seller { return openFloor(t, sqlHand(t.sqlPool("pgx"))) },
			}},
			{"pq", map[string]func(t *till) seller{
				"gateway": func(t *till) seller { return openMerchant(t, database.Postgres(t.sqlPool("postgres")), sqlExec) },
				"floor":   func(t *till) seller { return openFloor(t, sqlHand(t.sqlPool("postgres"))) },
			}},
			{"pgxpool", map[string]func(t *till) seller{ // River is notified of jobs on this one alone
				"gateway": func(t *till) seller { return openMerchant(t, pgxdriver.New(t.pgxPool()), pgxExec) },
				"floor":   func(t *till) seller { return openFloor(t, pgxHand(t.pgxPool())) },
				"river":   openRiverShop,
			}},
		} {
			for _, callers := range []int{1, 8} {
				for _, contestant := range shuffled(driver.shops) {
					b.Run(fmt.Sprintf("%s/%s/callers=%d/%s", kind.name, driver.name, callers, contestant), func(b *testing.B) {
						sell(b, driver.shops[contestant], callers, kind.run)
					})
				}
			}
		}
	}
}

func shuffled[V any](m map[string]V) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// sell runs b.N orders through a shop.
func sell(b *testing.B, open func(*till) seller, callers int, run func(t *till, order string) error) {
	b.Helper()
	warm := 3 * callers
	t := openTill(b, warm+b.N, open)
	defer t.close()
	begun := 0
	orders := func(n int) {
		var next atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for i := next.Add(1); i <= int64(n); i = next.Add(1) {
					if err := run(t, fmt.Sprint("O", begun+int(i))); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		begun += n
	}
	orders(warm)
	statements, wal := t.statements.Load(), walOf(b, t.admin)
	b.ResetTimer()
	orders(b.N)
	b.StopTimer()
	b.ReportMetric(float64(t.statements.Load()-statements)/float64(b.N), "statements/op")
	b.ReportMetric(float64(walOf(b, t.admin)-wal)/float64(b.N), "WAL-B/op")
}

// walOf returns how many bytes of write-ahead log the server has written.
func walOf(b *testing.B, db *sql.DB) (n int64) {
	b.Helper()
	require.NoError(b, db.QueryRowContext(b.Context(),
		`SELECT CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT)`).Scan(&n))
	return n
}

// seller is a shop: it charges and refunds, and tells its till what became of an order.
type seller interface {
	charge(ctx context.Context, order string) (transactionID string, err error)
	refund(ctx context.Context, order, transactionID string) error
	ServeHTTP(w http.ResponseWriter, r *http.Request) // receives webhooks
	start() (stop func())
}

// price is that of each order, in cents.
const price = 700

// till is what all shops have: a gateway, a schema with the orders, and buyers who wait.
type till struct {
	*testing.B

	shop       seller
	gw         *mockserver.Server
	client     *gateway.Client
	admin      *sql.DB // for what is not measured
	dsn        string
	statements atomic.Int64
	told       sync.Map // by order: a channel of states
	closing    []func()
}

func openTill(b *testing.B, orders int, open func(*till) seller) *till {
	b.Helper()
	gw, err := mockserver.New(mockserver.WithStart(time.Now()))
	require.NoError(b, err)
	t := &till{B: b, gw: gw, client: gw.Client(gateway.WithAccount("shop")), dsn: newSchemaDSN(b)}
	// One webhook for each life.
	for _, kind := range []string{"transaction.created", "transaction.pending", "transaction.refunded"} {
		require.NoError(b, gw.Faults.Add(mockserver.DropWebhook().On(kind)))
	}
	t.admin, err = sql.Open("pgx", t.dsn)
	require.NoError(b, err)
	t.exec(`CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT NOT NULL)`)
	t.exec(fmt.Sprintf(`INSERT INTO orders (id, state) SELECT 'O' || i, 'new' FROM generate_series(1, %d) AS i`, orders))
	t.shop = open(t)
	gw.Webhooks.Send(t.shop)
	t.closing = append(t.closing, t.shop.start())
	return t
}

func (t *till) exec(statement string) {
	t.Helper()
	_, err := t.admin.ExecContext(t.Context(), statement)
	require.NoError(t, err)
}

func (t *till) close() {
	t.Helper()
	for _, closes := range slices.Backward(t.closing) {
		closes()
	}
	require.NoError(t, errors.Join(t.admin.Close(), t.gw.Close()))
}

// sqlPool returns the pool that sql.Open returns, except that its statements are counted.
func (t *till) sqlPool(name string) *sql.DB {
	t.Helper()
	plain, err := sql.Open(name, t.dsn)
	require.NoError(t, err)
	db := sql.OpenDB(&counting{driver: plain.Driver(), dsn: t.dsn, n: &t.statements})
	t.closing = append(t.closing, func() { _ = plain.Close(); _ = db.Close() })
	return db
}

// pgxPool returns the pool that pgxpool.New returns, except that its statements are counted.
func (t *till) pgxPool() *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(t.dsn)
	require.NoError(t, err)
	cfg.ConnConfig.Tracer = tracer{&t.statements}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.closing = append(t.closing, pool.Close)
	return pool
}

// tracer counts the statements of pgx.
type tracer struct{ n *atomic.Int64 }

func (t tracer) count(statement string) {
	switch word, _, _ := strings.Cut(strings.ToLower(statement), " "); word {
	case "begin", "commit", "rollback":
	default:
		t.n.Add(1)
	}
}

func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	t.count(q.SQL)
	return ctx
}

func (tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (t tracer) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	t.count(q.SQL)
}

func (tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// charge charges an order.
func (t *till) charge(order string) error {
	_, err := t.shop.charge(t.Context(), order)
	return err
}

// live lets an order live, until it is refunded.
func (t *till) live(order string) error {
	id, err := t.shop.charge(t.Context(), order)
	if err != nil {
		return err
	}
	if err := t.gw.Transactions.Pay(id); err != nil {
		return err
	}
	if err := t.wait(order, "paid"); err != nil {
		return err
	}
	if err := t.shop.refund(t.Context(), order, id); err != nil {
		return err
	}
	return t.wait(order, "refunded")
}

// states returns the channel of an order's states.
func (t *till) states(order string) chan string {
	states, _ := t.told.LoadOrStore(order, make(chan string, 8))
	return states.(chan string)
}

// wait waits until the shop has told that an order is in a state.
func (t *till) wait(order, state string) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case is := <-t.states(order):
		if is != state {
			return fmt.Errorf("order %s is %s instead of %s", order, is, state)
		}
		return nil
	case <-late.C:
		return fmt.Errorf("order %s is not %s", order, state)
	}
}

// tell tells the buyer an order's state.
func (t *till) tell(order, state string) { t.states(order) <- state }

// change changes the shop's order, in the transaction of what it follows from.
func change(ctx context.Context, tx statementFunc, order, state string) error {
	return one(tx(ctx, `UPDATE orders SET state = $2 WHERE id = $1`, order, state))
}

// create sends the charge of an order. With the same reference, the gateway creates one.
func (t *till) create(ctx context.Context, order string) (*gateway.Transaction, error) {
	return t.client.Transactions.Create(ctx, bought(order))
}

func bought(order string) gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: order, Amount: price, Method: gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Book", Price: price}},
	}
}

// statementFunc executes a statement, and returns how many rows it changed.
type statementFunc func(ctx context.Context, statement string, args ...any) (int64, error)

// one returns an error unless a statement changed one row.
func one(n int64, err error) error {
	if err == nil && n != 1 {
		err = fmt.Errorf("the statement changed %d rows instead of 1", n)
	}
	return err
}

// handPool is how the shops that are written by hand use a pool.
type handPool struct {
	exec statementFunc
	in   func(ctx context.Context, run func(tx statementFunc) error) error // a transaction
}

func sqlHand(db *sql.DB) handPool {
	return handPool{
		exec: func(ctx context.Context, statement string, args ...any) (int64, error) {
			result, err := db.ExecContext(ctx, statement, args...)
			if err != nil {
				return 0, err
			}
			return result.RowsAffected()
		},
		in: func(ctx context.Context, run func(statementFunc) error) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			if err := run(sqlExec(tx)); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		},
	}
}

func sqlExec(tx *sql.Tx) statementFunc {
	return func(ctx context.Context, statement string, args ...any) (int64, error) {
		result, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
}

func pgxHand(pool *pgxpool.Pool) handPool {
	return handPool{
		exec: func(ctx context.Context, statement string, args ...any) (int64, error) {
			tag, err := pool.Exec(ctx, statement, args...)
			return tag.RowsAffected(), err
		},
		in: func(ctx context.Context, run func(statementFunc) error) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return run(pgxExec(tx)) })
		},
	}
}

func pgxExec(tx pgx.Tx) statementFunc {
	return func(ctx context.Context, statement string, args ...any) (int64, error) {
		tag, err := tx.Exec(ctx, statement, args...)
		return tag.RowsAffected(), err
	}
}

// merchantShop is the shop of the guide.
type merchantShop[TX any] struct {
	http.Handler

	t *till
	m *merchant.Merchant[TX]
}

func openMerchant[TX any](t *till, driver database.Driver[TX], in func(TX) statementFunc) seller {
	t.Helper()
	cfg := merchant.Config{Logger: slog.New(slog.DiscardHandler), Accounts: []merchant.Account{{
		Name: "shop", Client: t.client, Keys: []webhook.SigningKey{{Key: t.gw.Secret()}}, Zone: time.UTC,
	}}}
	m, err := merchant.Open(t.Context(), driver, cfg, merchant.Callbacks[TX]{
		Goods: func(ctx context.Context, tx TX, g *merchant.Goods) error {
			if err := change(ctx, in(tx), g.Order, string(g.State)); err != nil {
				return err
			}
			t.tell(g.Order, string(g.State)) // a refund waits for the commit
			return nil
		},
	})
	require.NoError(t, err)
	return &merchantShop[TX]{m.Webhook("shop"), t, m}
}

func (s *merchantShop[TX]) charge(ctx context.Context, order string) (string, error) {
	p := merchant.ChargeParams{Order: order, TransactionParams: bought("")}
	c, err := s.m.Charge(ctx, p)
	if err != nil {
		return "", err
	}
	if c.State != merchant.Pending {
		return "", fmt.Errorf("the charge of order %s is %s", order, c.State)
	}
	return c.TransactionID, nil
}

func (s *merchantShop[TX]) refund(ctx context.Context, order, _ string) error {
	_, err := s.m.Refund(ctx, merchant.RefundParams{ID: "r-" + order, Order: order, Full: true})
	return err
}

func (s *merchantShop[TX]) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.m.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(s.t, <-ended)
	}
}
