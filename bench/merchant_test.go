package bench_test

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// The benchmarks of package merchant measure what a shop waits for, by the public API, with
// the pool that sql.Open returns and the default configuration. The gateway is in memory.
// What fills the tables is copied from one order that was charged and paid. Each iteration
// has a database of its own, so -benchtime 1x is one measurement.

// patience is how long a benchmark waits for what may not come.
const patience = time.Minute

// eachShop runs a benchmark on both databases. PostgreSQL is skipped if DATABASE_URL is not
// set.
func eachShop(b *testing.B, run func(b *testing.B, dialect database.Dialect)) {
	b.Helper()
	for name, dialect := range map[string]database.Dialect{"PostgreSQL": database.DialectPostgres, "SQLite": database.DialectSQLite} {
		b.Run(name, func(b *testing.B) {
			if dialect == database.DialectPostgres && os.Getenv("DATABASE_URL") == "" {
				b.Skip("DATABASE_URL is not set: ../integration/with-postgres starts a PostgreSQL and sets it")
			}
			run(b, dialect)
		})
	}
}

// stall is a shop: it receives webhooks and counts callbacks.
type stall struct {
	*testing.B

	dialect    database.Dialect
	db         *sql.DB
	dsn        string
	gw         *mockserver.Server
	m          *merchant.Merchant[*sql.Tx]
	accounts   []string
	reads      atomic.Int64 // of copies
	hang       atomic.Bool  // account "other" gets no responses to reads
	fail       atomic.Pointer[trip]
	failed     atomic.Int64  // requests that got what fail returns
	back       chan struct{} // closed when fail ends
	statements atomic.Int64  // see count
	paid       func(order string)
	bodies     sync.Map // the transactions that were copied, by ID
}

// openStall opens a shop with the accounts "shop" and "other".
func openStall(b *testing.B, dialect database.Dialect) *stall {
	b.Helper()
	gw, err := mockserver.New(mockserver.WithStart(time.Now()))
	require.NoError(b, err)
	s := &stall{B: b, dialect: dialect, gw: gw, paid: func(string) {}, accounts: []string{"shop", "other"}, back: make(chan struct{})}
	name := "pgx"
	if dialect == database.DialectSQLite {
		name = "sqlite"
		s.dsn = "file:" + filepath.Join(b.TempDir(), newTable("shop")+".db") +
			"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	} else {
		s.dsn = newSchemaDSN(b)
	}
	s.db, err = sql.Open(name, s.dsn)
	require.NoError(b, err)
	s.serve(s.db)
	return s
}

// count serves on a pool that counts statements, without BEGIN and COMMIT.
func (s *stall) count() (closePool func()) {
	s.Helper()
	db := sql.OpenDB(&counting{driver: s.db.Driver(), dsn: s.dsn, n: &s.statements})
	if len(s.accounts) > 100 {
		db.SetMaxOpenConns(32)
	}
	s.serve(db)
	return func() { _ = db.Close() }
}

// newSchemaDSN creates a schema in PostgreSQL, and returns the data source name that has its
// tables.
func newSchemaDSN(b *testing.B) string {
	b.Helper()
	dsn := os.Getenv("DATABASE_URL")
	admin, err := sql.Open("pgx", dsn)
	require.NoError(b, err)
	schema := newTable("shop")
	_, err = admin.ExecContext(b.Context(), "CREATE SCHEMA "+schema)
	require.NoError(b, errors.Join(err, admin.Close()))
	return dsn + "&sslmode=disable&search_path=" + schema // lib/pq requires TLS by default
}

// serve opens the merchant's side on a pool.
func (s *stall) serve(db *sql.DB) {
	s.Helper()
	on := database.Postgres
	if s.dialect == database.DialectSQLite {
		on = database.SQLite
	}
	m, err := merchant.Open(s.Context(), on(db), s.config(), merchant.Callbacks[*sql.Tx]{
		Paid:     func(_ context.Context, _ *sql.Tx, c *merchant.Charge) error { s.paid(c.Order); return nil },
		Refunded: func(_ context.Context, _ *sql.Tx, r *merchant.Refund) error { s.paid(r.ID); return nil },
	})
	require.NoError(s, err)
	s.m = m
}

func (s *stall) config() merchant.Config {
	cfg := merchant.Config{Logger: slog.New(slog.DiscardHandler)}
	for _, name := range s.accounts {
		key := s.key(name)
		client := s.gw.Account(key).Client(gateway.WithAccount(name), gateway.WithHTTPClient(&http.Client{Transport: s.copies(name)}))
		cfg.Accounts = append(cfg.Accounts, merchant.Account{Name: name, Client: client, Keys: []webhook.SigningKey{{Key: s.gw.Secret()}}, Zone: time.UTC})
	}
	return cfg
}

func (s *stall) key(account string) string {
	if account == "shop" {
		return s.gw.Key()
	}
	return "sk_test_" + account
}

// copies is the transport of an account. The gateway has only the transaction that was
// copied: a copy, whose ID ends in "-copy-N", is read as that one under its own ID.
func (s *stall) copies(account string) http.RoundTripper {
	transport := s.gw.Transport()
	return trip(func(r *http.Request) (*http.Response, error) {
		if fail := s.fail.Load(); fail != nil {
			s.failed.Add(1)
			return (*fail)(r)
		}
		if account == "other" && s.hang.Load() && r.Method == http.MethodGet {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		path, id, _ := cutLast(r.URL.Path, "/")
		original, number, isCopy := strings.Cut(id, "-copy-")
		if !isCopy {
			return transport.RoundTrip(r)
		}
		s.reads.Add(1)
		known, ok := s.bodies.Load(original)
		if !ok {
			r = r.Clone(r.Context())
			r.URL.Path = path + "/" + original
			res, err := transport.RoundTrip(r)
			if err != nil || res.StatusCode != http.StatusOK {
				return res, err
			}
			body, err := io.ReadAll(res.Body)
			if err = errors.Join(err, res.Body.Close()); err != nil {
				return nil, err
			}
			known, _ = s.bodies.LoadOrStore(original, body)
		}
		body := bytes.ReplaceAll(known.([]byte), []byte(original), []byte(original+"-copy-"+number))
		return &http.Response{
			Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	})
}

type trip func(r *http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}

// run runs the merchant's side until the returned function is called.
func (s *stall) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.m.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		require.NoError(s, <-ended)
	})
}

func (s *stall) close() {
	_ = s.db.Close()
	_ = s.gw.Close()
}

// charge charges an order on an account, and pays if so. No webhook reports it.
func (s *stall) charge(account, order string, pays bool) *merchant.Charge {
	s.Helper()
	c, err := s.m.Charge(s.Context(), merchant.ChargeParams{Account: account, Order: order, TransactionParams: bought("")})
	require.NoError(s, err)
	require.Equal(s, merchant.Pending, c.State)
	if pays {
		require.NoError(s, s.gw.Account(s.key(account)).Transactions.Pay(c.TransactionID))
	}
	return c
}

// original charges an order that is copied. It is paid and booked, and its callback was
// called.
func (s *stall) original(account, order string) *merchant.Charge {
	s.Helper()
	c := s.charge(account, order, true)
	require.NoError(s, s.m.Refresh(s.Context(), c.ID))
	s.exec(`UPDATE gateway_facts SET delivered_at = created_at WHERE delivered_at IS NULL`)
	return c
}

func (s *stall) exec(statement string) {
	s.Helper()
	_, err := s.db.ExecContext(s.Context(), statement)
	require.NoError(s, err)
}

// now is the time of the database's clock in milliseconds.
func (s *stall) now() string {
	if s.dialect == database.DialectSQLite {
		return `CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`
	}
	return `CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS BIGINT)`
}

// hasChecks reports whether the comparisons have a table of their own. Otherwise each is in
// the column check_at of its charge.
func (s *stall) hasChecks() bool {
	var one int
	err := s.db.QueryRowContext(s.Context(), `SELECT 1 FROM gateway_checks LIMIT 1`).Scan(&one)
	return err == nil || errors.Is(err, sql.ErrNoRows)
}

// checks is the table that has the times of the comparisons.
func (s *stall) checks() string {
	if s.hasChecks() {
		return "gateway_checks"
	}
	return "gateway_charges"
}

// seed stores n copies of an order with its charge and facts, of which each is due to be
// compared since some milliseconds, which may depend on i, or never if that is "". The
// callback "paid" of each waits or was called.
func (s *stall) seed(c *merchant.Charge, n int, dueSince string, waits bool) {
	s.Helper()
	checkAt, delivered := `NULL`, `created_at`
	if dueSince != "" {
		checkAt = s.now() + ` - (` + dueSince + `)`
	}
	if waits {
		delivered = `CASE WHEN callback = 'paid' THEN NULL ELSE created_at END`
	}
	order := "order/" + c.Order
	s.copy("gateway_orders", n, `subject = '`+order+`'`, map[string]string{
		"subject": `subject || '-copy-' || i`, "settled_by": `settled_by || '-copy-' || i`, "current": `"current" || '-copy-' || i`,
	}, nil)
	s.copy("gateway_charges", n, `id = '`+c.ID+`'`, map[string]string{
		"id": `id || '-copy-' || i`, "subject": `subject || '-copy-' || i`, "ref": `ref || '-copy-' || i`,
		"transaction_id": `transaction_id || '-copy-' || i`, "end_to_end_id": `NULL`, "check_at": checkAt,
		"record": fmt.Sprintf(`REPLACE(REPLACE(record, '"%[1]s"', '"%[1]s-copy-' || i || '"'), '"%[2]s"', '"%[2]s-copy-' || i || '"')`, c.ID, c.TransactionID),
	}, nil)
	s.copy("gateway_facts", n, `subject = '`+order+`'`, map[string]string{
		"key": `key || '-copy-' || i`, "subject": `subject || '-copy-' || i`, "record": `record || '-copy-' || i`,
		"delivered_at": delivered, "due_at": `created_at`,
	}, []string{"seq"})
	if s.hasChecks() && dueSince != "" {
		s.copy("gateway_checks", n, `id = '`+c.ID+`'`, map[string]string{
			"id": `id || '-copy-' || i`, "lane": `2`, "check_at": checkAt, "lease_until": `NULL`,
		}, nil)
	}
}

// copy copies the rows of a table n times, with other values in some columns.
func (s *stall) copy(table string, n int, where string, other map[string]string, without []string) {
	s.Helper()
	rows, err := s.db.QueryContext(s.Context(), `SELECT * FROM `+table+` WHERE 1 = 0`)
	require.NoError(s, err)
	names, err := rows.Columns()
	require.NoError(s, errors.Join(err, rows.Err(), rows.Close()))
	var columns, values []string
	for _, name := range names {
		if slices.Contains(without, name) {
			continue
		}
		columns = append(columns, `"`+name+`"`)
		values = append(values, cmp.Or(other[name], `"`+name+`"`))
	}
	s.exec(fmt.Sprintf(`INSERT INTO %s (%s) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT %s FROM n, %s WHERE %s`,
		table, strings.Join(columns, ", "), n, strings.Join(values, ", "), table, where))
}

// dueNow makes the comparison of a charge due.
func (s *stall) dueNow(charge string) {
	s.Helper()
	table, lease := s.checks(), ""
	if s.hasChecks() {
		lease = ", lease_until = NULL"
	}
	s.exec(`UPDATE ` + table + ` SET check_at = ` + s.now() + lease + ` WHERE id = '` + charge + `'`)
}

// BenchmarkMerchantCallbacks calls the callbacks that wait.
func BenchmarkMerchantCallbacks(b *testing.B) {
	for _, n := range []int{4_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			eachShop(b, func(b *testing.B, dialect database.Dialect) {
				b.Helper()
				var took time.Duration
				for range b.N {
					took += drainCallbacks(b, dialect, n)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(took.Seconds()/float64(b.N), "s/drain")
				b.ReportMetric(float64(n)*float64(b.N)/took.Seconds(), "callbacks/s")
			})
		})
	}
}

func drainCallbacks(b *testing.B, dialect database.Dialect, n int) time.Duration {
	b.Helper()
	s := openStall(b, dialect)
	defer s.close()
	s.seed(s.original("shop", "A"), n, "", true)
	all := newCountdown(n)
	s.paid = func(string) { all.one() }
	began := time.Now()
	stop := s.run()
	<-all.done
	took := time.Since(began)
	stop()
	var waiting int
	require.NoError(b, s.db.QueryRowContext(b.Context(), `SELECT COUNT(*) FROM gateway_facts WHERE delivered_at IS NULL`).Scan(&waiting))
	require.Zero(b, waiting)
	return took
}

// BenchmarkMerchantLostWebhook measures the time in which a payment is found whose webhook
// was lost: from the time at which its comparison is due to its callback. If that is not
// within a minute, "found" is 0, and the rate of routine comparisons says how long it
// takes.
func BenchmarkMerchantLostWebhook(b *testing.B) {
	for _, routine := range []int{0, 2_000, 100_000} {
		b.Run(fmt.Sprintf("behind %d routine comparisons", routine), func(b *testing.B) {
			eachShop(b, func(b *testing.B, dialect database.Dialect) {
				b.Helper()
				measureLost(b, dialect, 1, func(s *stall) (release func()) {
					if routine > 0 {
						s.seed(s.original("shop", "R"), routine, "60000 + i", false)
					}
					return func() {}
				})
			})
		})
	}
	b.Run("beside an account that hangs", func(b *testing.B) {
		eachShop(b, func(b *testing.B, dialect database.Dialect) {
			b.Helper()
			measureLost(b, dialect, 1, func(s *stall) (release func()) {
				s.seed(s.original("other", "H"), 120, "60000 + i", false)
				s.hang.Store(true)
				return func() { s.hang.Store(false) }
			})
		})
	})
	b.Run("beside a locked order", func(b *testing.B) {
		eachShop(b, func(b *testing.B, dialect database.Dialect) {
			b.Helper()
			if dialect == database.DialectSQLite {
				b.Skip("one transaction can write at a time")
			}
			measureLost(b, dialect, 4, func(s *stall) (release func()) {
				c := s.charge("shop", "L", true)
				tx, err := s.db.BeginTx(b.Context(), nil)
				require.NoError(b, err)
				require.NoError(b, tx.QueryRowContext(b.Context(), `SELECT subject FROM gateway_orders WHERE subject = 'order/L' FOR UPDATE`).Scan(new(string)))
				s.dueNow(c.ID)
				return func() { require.NoError(b, tx.Rollback()) }
			})
		})
	})
}

// measureLost finds payments, one after another, beside what prepare has made.
func measureLost(b *testing.B, dialect database.Dialect, payments int, prepare func(s *stall) (release func())) {
	b.Helper()
	var took []time.Duration
	var routine, found int64
	var span time.Duration
	for range b.N {
		s := openStall(b, dialect)
		calls := make(chan string, 1000)
		s.paid = func(order string) { calls <- order }
		var lost []*merchant.Charge
		for i := range payments {
			lost = append(lost, s.charge("shop", fmt.Sprint("P", i), true))
		}
		release := prepare(s)
		stop := s.run()
		// The process has begun with the others.
		time.Sleep(2 * time.Second)
		reads, began := s.reads.Load(), time.Now()
		for _, c := range lost {
			due := time.Now()
			s.dueNow(c.ID)
			if !called(calls, c.Order, min(patience, 2*patience/time.Duration(payments+1))) {
				break
			}
			found++
			took = append(took, time.Since(due))
		}
		routine += s.reads.Load() - reads
		span += time.Since(began)
		release() // the process may wait for it
		stop()
		s.close()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(found)/float64(b.N*payments), "found")
	if len(took) > 0 {
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2].Seconds(), "s/payment")
	}
	b.ReportMetric(float64(routine)/span.Seconds(), "routine/s")
}

// called reports whether the callback of an order was called in time.
func called(calls chan string, order string, wait time.Duration) bool {
	late := time.After(wait)
	for {
		select {
		case is := <-calls:
			if is == order {
				return true
			}
		case <-late:
			return false
		}
	}
}

// counting is a driver that counts statements.
type counting struct {
	driver driver.Driver
	dsn    string
	n      *atomic.Int64
}

func (c *counting) Driver() driver.Driver { return c.driver }

func (c *counting) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return &countingConn{conn, c.n}, nil
}

// countingConn is a connection of both drivers, which execute without preparing first.
type countingConn struct {
	driver.Conn

	n *atomic.Int64
}

func (c *countingConn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	c.n.Add(1)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, statement, args)
}

func (c *countingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.n.Add(1)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *countingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

func (c *countingConn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *countingConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(v.Value)
	v.Value = value
	return err
}

// BenchmarkMerchantSums measures the calls whose cost could grow with all that was ever booked.
func BenchmarkMerchantSums(b *testing.B) {
	for _, facts := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("%d facts", facts), func(b *testing.B) {
			eachShop(b, func(b *testing.B, dialect database.Dialect) {
				b.Helper()
				s := openStall(b, dialect)
				defer s.close()
				s.history(facts)
				month := time.Now().UTC().Format("2006-01")
				for name, call := range map[string]func() error{
					"Month":  func() error { _, err := s.m.Month(b.Context(), "shop", month); return err },
					"Idle":   func() error { return s.m.Idle(b.Context()) },
					"Health": func() error { _, err := s.m.Health(b.Context()); return err },
				} {
					b.Run(name, func(b *testing.B) {
						for b.Loop() {
							require.NoError(b, call())
						}
						b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/call")
					})
				}
			})
		})
	}
}

// history stores orders with that many facts in all, and lets the shop run until it has
// nothing to do.
func (s *stall) history(facts int) {
	s.Helper()
	c := s.original("shop", "A")
	var each, left int
	require.NoError(s, s.db.QueryRowContext(s.Context(), `SELECT COUNT(*) FROM gateway_facts WHERE subject = 'order/A'`).Scan(&each))
	s.seed(c, facts/each, "", false)
	s.exec(`ANALYZE`)
	defer s.run()()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		err := s.db.QueryRowContext(s.Context(), `SELECT COUNT(*) FROM gateway_facts WHERE seq >=
			(SELECT first FROM gateway_unsummed ORDER BY last DESC LIMIT 1)`).Scan(&left)
		if err != nil || left == 0 { // a release before the totals has no such table
			return
		}
	}
	require.Fail(s, "the facts are not in the totals", "%d are left", left)
}

// BenchmarkMerchantUnchanged compares charges with the gateway where nothing is new, after
// those of a release before this one.
func BenchmarkMerchantUnchanged(b *testing.B) {
	const charges = 2_000
	eachShop(b, func(b *testing.B, dialect database.Dialect) {
		b.Helper()
		var took time.Duration
		var wal int64
		statements := 0.0
		for range b.N {
			s := openStall(b, dialect)
			s.seed(s.original("shop", "R"), charges, "60000 + i", false)
			closePool := s.count()
			if dialect == database.DialectPostgres {
				s.exec(`ANALYZE`)
				wal -= walOf(b, s.db)
			}
			began := time.Now()
			stop := s.run()
			s.until("all are compared", func() bool { return s.due() == 0 })
			took += time.Since(began)
			statements += float64(s.statements.Load())
			if dialect == database.DialectPostgres {
				wal += walOf(b, s.db)
			}
			require.GreaterOrEqual(b, s.reads.Load(), int64(charges))
			stop()
			closePool()
			s.close()
		}
		n := float64(b.N * charges)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(n/took.Seconds(), "comparisons/s")
		b.ReportMetric(statements/n, "statements/comparison")
		if dialect == database.DialectPostgres {
			b.ReportMetric(float64(wal)/n, "WAL-B/comparison")
		}
	})
}

// until waits for a condition.
func (s *stall) until(what string, is func() bool) {
	s.Helper()
	for late := time.Now().Add(2 * patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			require.Fail(s, "not in time: "+what)
		}
	}
}

func (s *stall) number(query string) (n int) {
	s.Helper()
	require.NoError(s, s.db.QueryRowContext(s.Context(), query).Scan(&n))
	return n
}

// due returns how many comparisons are due.
func (s *stall) due() int {
	return s.number(`SELECT COUNT(*) FROM ` + s.checks() + ` WHERE check_at <= ` + s.now())
}

// BenchmarkMerchantIdle counts the statements of a process that has nothing to do.
func BenchmarkMerchantIdle(b *testing.B) {
	const settles, lasts = 5 * time.Second, 5 * time.Second
	for _, accounts := range []int{1, 100} {
		b.Run(fmt.Sprintf("accounts=%d", accounts), func(b *testing.B) {
			eachShop(b, func(b *testing.B, dialect database.Dialect) {
				b.Helper()
				var statements int64
				var cpu time.Duration
				for range b.N {
					s := openStall(b, dialect)
					s.accounts = numbered(accounts)
					closePool := s.count()
					stop := s.run()
					time.Sleep(settles)
					statements -= s.statements.Load()
					cpu -= processTime(b)
					time.Sleep(lasts)
					statements += s.statements.Load()
					cpu += processTime(b)
					stop()
					closePool()
					s.close()
				}
				span := lasts.Seconds() * float64(b.N)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(statements)/span, "statements/s")
				b.ReportMetric(float64(cpu.Milliseconds())/span, "cpu-ms/s")
			})
		})
	}
}

func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("shop", i))
	}
	return names
}

// BenchmarkMerchantOpen opens a thousand accounts: in a new database, and after a restart. Open
// uses as many connections at once as there are accounts, so the pool is limited to 32.
func BenchmarkMerchantOpen(b *testing.B) {
	for name, times := range map[string]int{"first": 1, "again": 2} {
		b.Run("accounts=1000/"+name, func(b *testing.B) {
			eachShop(b, func(b *testing.B, dialect database.Dialect) {
				b.Helper()
				var took time.Duration
				for range b.N {
					s := openStall(b, dialect)
					s.accounts = numbered(1000)
					var last time.Duration
					for range times {
						began := time.Now()
						closePool := s.count()
						last = time.Since(began)
						closePool()
					}
					took += last
					s.close()
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(took.Seconds()/float64(b.N), "s/open")
			})
		})
	}
}

// BenchmarkMerchantOutage counts the requests of a process while its gateway fails, for three
// seconds or BENCH_OUTAGE, and how long all that waits takes once the gateway is back. 50
// charges wait to be sent, 50 to be compared, and the webhooks of 50 payments arrive.
func BenchmarkMerchantOutage(b *testing.B) {
	const each = 50
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv("BENCH_OUTAGE"), "3s"))
	require.NoError(b, err)
	for name, fail := range map[string]func(*stall) trip{
		"503":  func(*stall) trip { return status(http.StatusServiceUnavailable) },
		"429":  func(*stall) trip { return status(http.StatusTooManyRequests) },
		"hang": (*stall).hangs,
	} {
		b.Run(name, func(b *testing.B) {
			eachShop(b, func(b *testing.B, dialect database.Dialect) {
				b.Helper()
				var vain int64
				var took time.Duration
				for range b.N {
					s := openStall(b, dialect)
					s.waiting(each, fail(s))
					stop := s.run()
					time.Sleep(lasts)
					vain += s.failed.Load()
					s.fail.Store(nil)
					close(s.back)
					began := time.Now()
					s.until("all is done", func() bool {
						return s.number(`SELECT COUNT(*) FROM gateway_charges WHERE state = 'paid'`) == 2*each &&
							s.number(`SELECT COUNT(*) FROM gateway_operations WHERE state <> 'done'`) == 0
					})
					took += time.Since(began)
					stop()
					s.close()
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(vain)/float64(b.N), "requests-in-vain")
				b.ReportMetric(took.Seconds()/float64(b.N), "s/recovery")
			})
		})
	}
}

// waiting lets the gateway fail, while n of each wait: payments whose webhook was lost, webhooks
// and charges that were stored.
func (s *stall) waiting(n int, fail trip) {
	s.Helper()
	var pending []*merchant.Charge
	for i := range n {
		s.charge("shop", fmt.Sprint("P", i), true)
		pending = append(pending, s.charge("shop", fmt.Sprint("E", i), false))
	}
	s.gw.Account(s.gw.Key()).Webhooks.Send(s.m.Webhook("shop"))
	s.fail.Store(&fail)
	for i, c := range pending {
		require.NoError(s, s.gw.Transactions.Pay(c.TransactionID))
		tx, err := s.db.BeginTx(s.Context(), nil)
		require.NoError(s, err)
		_, err = s.m.ChargeTx(s.Context(), tx, merchant.ChargeParams{Account: "shop", Order: fmt.Sprint("O", i), TransactionParams: bought("")})
		require.NoError(s, errors.Join(err, tx.Commit()))
	}
	require.NoError(s, s.gw.Wait(s.Context()))
	s.exec(`UPDATE ` + s.checks() + ` SET check_at = 0`)
}

// hangs gives no response, until the connection is reset because the gateway is back.
func (s *stall) hangs() trip {
	return func(r *http.Request) (*http.Response, error) {
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-s.back:
			return nil, errors.New("connection reset by peer")
		}
	}
}

// status responds with a status.
func status(code int) trip {
	return func(r *http.Request) (*http.Response, error) {
		body := fmt.Sprintf(`{"error":"down","message":"down","status":%d}`, code)
		return &http.Response{
			StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}
