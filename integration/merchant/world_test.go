// Package merchant_test is a shop on package merchant, on SQLite and PostgreSQL, against
// the mock gateway.
package merchant_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

var quiet = slog.New(slog.DiscardHandler)

// each runs a test on both databases.
func each(t *testing.T, test func(w *world), opts ...mockserver.Option) {
	t.Helper()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, k, opts...))
		})
	}
}

// world is a shop with its own database and gateway.
type world struct {
	*testing.T

	kind    kind
	dialect database.Dialect
	name    string                    // data source
	pools   map[*sql.DB]*pgxpool.Pool // those that lend their connections
	taps    map[*sql.DB]*tap
	db      *sql.DB
	reader  *sql.DB // as the database is opened by default
	gw      *mockserver.Server
	cfg     merchant.Config
	on      merchant.Callbacks[*txn]
	m       *merchant.Merchant[*txn]
	live    bool // the gateway's dialect, of [dialects]

	mu     sync.Mutex
	failed map[string]int // callbacks that fail before they succeed, by kind
}

func newWorld(t *testing.T, k kind, opts ...mockserver.Option) *world {
	t.Helper()
	w := &world{
		T: t, kind: k, dialect: k.dialect, pools: make(map[*sql.DB]*pgxpool.Pool), taps: make(map[*sql.DB]*tap), failed: make(map[string]int),
	}
	w.name = w.create()
	w.db = w.connect()
	w.reader = w.db
	w.gw = mockserver.Run(t, append([]mockserver.Option{mockserver.WithStart(time.Now())}, opts...)...)
	w.tables()
	w.cfg = merchant.Config{
		Accounts:    []merchant.Account{w.account("shop", w.gw.Key(), w.gw.Secret())},
		SendTimeout: 3 * time.Second, SettleAfter: 6 * time.Second, // a busy machine is not a lost response
		PollInterval: 50 * time.Millisecond, CallbackTimeout: 5 * time.Second,
		Logger: quiet,
	}
	w.on = merchant.Callbacks[*txn]{
		Paid: func(ctx context.Context, tx *txn, c *merchant.Charge) error {
			if err := w.called(ctx, tx, "paid", c.Order, c.ID, c.Paid); err != nil {
				return err
			}
			return merchant.One(tx.ExecContext(ctx, w.sql(`UPDATE orders SET state = 'paid', ships = ships + 1 WHERE id = ?`), c.Order))
		},
		PaidAgain: func(ctx context.Context, tx *txn, c *merchant.Charge) error {
			return w.called(ctx, tx, "paid_again", c.Order, c.ID, c.Paid)
		},
		Unpaid: func(ctx context.Context, tx *txn, c *merchant.Charge) error {
			return w.called(ctx, tx, "unpaid", c.Order, c.ID, 0)
		},
		Refunded: func(ctx context.Context, tx *txn, r *merchant.Refund) error {
			return w.called(ctx, tx, "refunded", r.Order.ID, r.ID, r.Amount)
		},
		RefundRejected: func(ctx context.Context, tx *txn, r *merchant.Refund) error {
			return w.called(ctx, tx, "refund_rejected", r.Order.ID, r.ID, r.Amount)
		},
		Disputed: func(ctx context.Context, tx *txn, c *merchant.Charge) error {
			return w.called(ctx, tx, "disputed", c.Order, c.ID, c.Disputed)
		},
		Payout: func(ctx context.Context, tx *txn, p *merchant.Payout) error {
			return w.called(ctx, tx, "payout "+string(p.State), p.Order, p.ID, p.Amount)
		},
		Problem: func(ctx context.Context, tx *txn, p *merchant.Problem) error {
			return w.called(ctx, tx, "problem "+string(p.Kind), p.Order, p.Record, 0)
		},
	}
	return w
}

// tables creates the shop's own tables. There is one row for each run of a callback,
// without a unique constraint: only package merchant prevents a second one.
func (w *world) tables() {
	w.Helper()
	n := `n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY`
	if w.dialect == database.DialectSQLite {
		n = `n INTEGER PRIMARY KEY AUTOINCREMENT`
	}
	for _, statement := range []string{
		`CREATE TABLE orders (id text PRIMARY KEY, state text NOT NULL, ships int NOT NULL)`,
		`CREATE TABLE calls (` + n + `, name text NOT NULL, subject text NOT NULL, record text NOT NULL, amount bigint NOT NULL)`,
	} {
		w.exec(statement)
	}
}

// account returns an account of the mock gateway.
func (w *world) account(name, key string, secret gateway.Secret) merchant.Account {
	return merchant.Account{
		Name: name, Book: "shop", Client: w.gw.Account(key).Client(gateway.WithAccount(name)), Keys: []webhook.SigningKey{{Key: secret}}, Zone: time.UTC,
	}
}

// create creates a database and returns its data source name. PostgreSQL's is a schema
// of its own.
func (w *world) create() string {
	w.Helper()
	if w.dialect == database.DialectSQLite {
		file := filepath.Join(w.TempDir(), "shop.db")
		return "file:" + file + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	}
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		w.Skip("DATABASE_URL is not set: run ../with-postgres go test ./merchant")
	}
	schema := "t_" + strings.ToLower(rand.Text()[:16])
	db, err := sql.Open("pgx", url)
	require.NoError(w, err)
	defer func() { require.NoError(w, db.Close()) }()
	_, err = db.ExecContext(w.Context(), `CREATE SCHEMA `+schema)
	require.NoError(w, err)
	return url + "&search_path=" + schema
}

func driverName(dialect database.Dialect) string {
	if dialect == database.DialectSQLite {
		return "sqlite"
	}
	return "pgx"
}

func (w *world) sql(text string) string {
	if w.dialect == database.DialectSQLite {
		return text
	}
	return dbms.Numbered(text)
}

func (w *world) exec(statement string, args ...any) {
	w.Helper()
	_, err := w.db.ExecContext(w.Context(), w.sql(statement), args...)
	require.NoError(w, err)
}

// fails makes a callback fail so many times.
func (w *world) fails(name string, times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed[name] = times
}

// called records a call of a callback in its transaction.
func (w *world) called(ctx context.Context, tx *txn, name, order, record string, amount int64) error {
	if _, err := tx.ExecContext(ctx, w.sql(`INSERT INTO calls (name, subject, record, amount) VALUES (?, ?, ?, ?)`), name, order, record, amount); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed[name] > 0 {
		w.failed[name]--
		if w.failed[name]%2 == 1 {
			panic("a bug in a callback")
		}
		return fmt.Errorf("a failure of a callback")
	}
	return nil
}

// open opens the merchant's side and receives the gateway's webhooks.
func (w *world) open() *world {
	w.Helper()
	var err error
	w.m, err = w.openOn(w.db, w.cfg)
	require.NoError(w, err)
	for _, a := range w.cfg.Accounts {
		w.gw.Account(keyOf(w, a)).Webhooks.Send(w.m.Webhook(a.Name))
	}
	return w
}

// keyOf returns the key of an account of the mock gateway.
func keyOf(w *world, a merchant.Account) string {
	if a.Name == "shop" {
		return w.gw.Key()
	}
	return "sk_test_" + a.Name
}

// start runs the merchant's side; the returned function stops it.
func (w *world) start() (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.m.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(w, <-ended)
	})
	w.Cleanup(stop)
	return stop
}

// order stores an order of the shop.
func (w *world) order(id string) string {
	w.Helper()
	w.exec(`INSERT INTO orders (id, state, ships) VALUES (?, 'new', 0)`, id)
	return id
}

// ships returns how often an order was shipped.
func (w *world) ships(id string) (n int) {
	w.Helper()
	require.NoError(w, w.reader.QueryRowContext(w.Context(), w.sql(`SELECT ships FROM orders WHERE id = ?`), id).Scan(&n))
	return n
}

// calls returns the calls of callbacks for an order.
func (w *world) calls(order string) (list []string) {
	w.Helper()
	rows, err := w.reader.QueryContext(w.Context(), w.sql(`SELECT name, record, amount FROM calls WHERE subject = ? ORDER BY n`), order)
	require.NoError(w, err)
	defer func() { require.NoError(w, rows.Close()) }()
	for rows.Next() {
		var name, record string
		var amount int64
		require.NoError(w, rows.Scan(&name, &record, &amount))
		list = append(list, fmt.Sprintf("%s %s %d", name, record, amount))
	}
	require.NoError(w, rows.Err())
	return list
}

// pix describes a charge by Pix.
func pix(order string, amount int64) merchant.ChargeParams {
	p := merchant.ChargeParams{Order: order}
	p.Amount, p.Method = amount, gateway.Pix
	p.Buyer = gateway.BuyerParams{Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"}}
	p.Products = []gateway.Product{{Name: "Book", Price: amount}}
	return p
}

// charge charges an order.
func (w *world) charge(p merchant.ChargeParams) *merchant.Charge {
	w.Helper()
	c, err := w.m.Charge(w.Context(), p)
	require.NoError(w, err)
	return c
}

// eventually waits until a condition holds, for longer than an operation's lease of two
// minutes: on a busy machine, a serializable transaction may conflict until it is given up,
// and is repeated when the lease has ended.
func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	require.Fail(w, "timeout: "+what)
}

// reaches waits until the order's calls are these, in this order.
func (w *world) reaches(order string, calls ...string) {
	w.Helper()
	var got []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if got = w.calls(order); len(got) >= len(calls) {
			break
		}
	}
	assert.Equal(w, calls, got)
}

// state returns the order's money, and checks that it is the sum of its facts.
func (w *world) state(order string) *merchant.Order {
	w.Helper()
	var sum, net int64
	err := w.reader.QueryRowContext(w.Context(), w.sql(`SELECT paid - fee - refunded - disputed - paid_out + adjusted,
		(SELECT COALESCE(SUM(amount), 0) FROM gateway_facts WHERE book = o.book AND subject = o.subject)
		FROM gateway_orders AS o WHERE subject = ?`), "order/"+order).Scan(&net, &sum)
	if !errors.Is(err, sql.ErrNoRows) {
		require.NoError(w, err)
	}
	assert.Equal(w, sum, net, "the order's money is the sum of its facts")
	o, err := w.m.Order(w.Context(), order)
	require.NoError(w, err)
	return o
}

// through makes an account call the gateway through a transport.
func (w *world) through(transport http.RoundTripper) {
	w.cfg.Accounts[0].Client = w.gw.Account(w.gw.Key()).Client(gateway.WithAccount("shop"), gateway.WithHTTPClient(&http.Client{Transport: transport}))
}
