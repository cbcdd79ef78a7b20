package merchant_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// levels are PostgreSQL's isolation levels; SQLite has one.
var levels = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

// atLevels runs a test on SQLite, and on PostgreSQL at each isolation level of the
// shop's transactions.
func atLevels(t *testing.T, test func(w *world, level sql.IsolationLevel)) {
	t.Helper()
	each(t, func(w *world) {
		w.open()
		w.gw.Webhooks.Hold() // no other transaction interferes
		if w.dialect == database.DialectSQLite {
			test(w, sql.LevelDefault)
			return
		}
		for _, level := range levels {
			test(w, level)
		}
	})
}

// in runs a transaction of the shop at an isolation level, and repeats it after a
// conflict, as a shop must whose level is stricter than read committed.
func (w *world) in(db *sql.DB, level sql.IsolationLevel, run func(tx *txn) error) error {
	var err error
	for range 10 {
		if err = w.once(db, level, run); !dbms.IsConflict(err) && (err == nil || !strings.Contains(err.Error(), "repeat the transaction")) {
			break
		}
	}
	return err
}

func (w *world) once(db *sql.DB, level sql.IsolationLevel, run func(tx *txn) error) error {
	tx, err := w.begin(w.Context(), db, &sql.TxOptions{Isolation: level})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := run(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// race runs second while the transaction of first is open, and commits the first one
// when the second one waits for it, or has ended. Each may be repeated.
func (w *world) race(level sql.IsolationLevel, first func(tx *txn) error, second func() error) (err1, err2 error) {
	w.Helper()
	ended := make(chan error, 1)
	var started sync.Once
	err1 = w.once(w.db, level, func(tx *txn) error {
		err := first(tx)
		started.Do(func() { go func() { ended <- second() }() })
		w.waits(tx, ended)
		return err
	})
	return err1, <-ended
}

// waits waits until another session of PostgreSQL waits for a transaction, or the other
// one has ended. On SQLite, each transaction waits for the one before.
func (w *world) waits(tx *txn, ended chan error) {
	if w.dialect == database.DialectSQLite {
		return
	}
	var pid int
	require.NoError(w, tx.QueryRowContext(w.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
	for deadline := time.Now().Add(10 * time.Second); len(ended) == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var n int
		err := w.db.QueryRowContext(w.Context(), `SELECT COUNT(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`, pid).Scan(&n)
		if !assert.NoError(w, err) || n > 0 {
			return
		}
	}
}

// process opens the merchant's side again, as another process does.
func (w *world) process() *merchant.Merchant[*txn] {
	w.Helper()
	m, err := w.openOn(w.connect(), w.cfg)
	require.NoError(w, err)
	return m
}

// card describes a charge by card.
func card(order string, amount int64) merchant.ChargeParams {
	p := pix(order, amount)
	p.Method, p.Token = gateway.CreditCard, gateway.CardToken("pgct_test_"+order)
	return p
}

// made returns the gateway's transactions whose reference begins with a prefix.
func (w *world) made(prefix string) (list []*gateway.Transaction) {
	w.Helper()
	client := w.gw.Client()
	for summary, err := range client.Transactions.All(w.Context(), gateway.TransactionListParams{}) {
		require.NoError(w, err)
		if strings.HasPrefix(summary.ExternalRef, prefix) {
			tx, err := client.Transactions.Get(w.Context(), summary.ID)
			require.NoError(w, err)
			list = append(list, tx)
		}
	}
	return list
}

// pays pays a charge, unless its card was charged at once.
func (w *world) pays(c *merchant.Charge) {
	w.Helper()
	if c.State == merchant.Pending {
		require.NoError(w, w.gw.Account(keyOf(w, merchant.Account{Name: c.Account})).Transactions.Pay(c.TransactionID))
	}
}

func TestTwoChargesAtOnceMakeOne(t *testing.T) {
	t.Parallel()
	atLevels(t, func(w *world, level sql.IsolationLevel) {
		other, db := w.process(), w.connect()
		for _, again := range []bool{false, true} { // the second attempt follows one that failed
			order := fmt.Sprintf("%d-%t", level, again)
			want := "shop-" + order + "-1"
			if again {
				c := w.charge(pix(order, 100))
				require.NoError(w, w.gw.Transactions.Cancel(c.TransactionID))
				require.NoError(w, w.m.Refresh(w.Context(), c.ID))
				want = "shop-" + order + "-2"
			}
			var a, b *merchant.Charge
			err1, err2 := w.race(level, func(tx *txn) (err error) {
				a, err = w.m.ChargeTx(w.Context(), tx, pix(order, 500))
				return err
			}, func() error {
				return w.in(db, level, func(tx *txn) (err error) {
					b, err = other.ChargeTx(w.Context(), tx, pix(order, 500))
					return err
				})
			})
			require.NoError(w, err1)
			require.NoError(w, err2)
			assert.Equal(w, want, a.ID)
			assert.Equal(w, want, b.ID)
			var sending sync.WaitGroup
			for _, m := range []*merchant.Merchant[*txn]{w.m, other} {
				sending.Go(func() {
					_, err := m.Send(w.Context(), want)
					assert.NoError(w, err)
				})
			}
			sending.Wait()
			assert.Len(w, w.made(want), 1)
		}
	})
}

func TestARefundIsStoredOnceAndWithinWhatIsLeft(t *testing.T) {
	t.Parallel()
	atLevels(t, func(w *world, level sql.IsolationLevel) {
		other, db := w.process(), w.connect()
		order := fmt.Sprint("R", int(level))
		c := w.charge(pix(order, 1000))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		require.NoError(w, w.m.Refresh(w.Context(), c.ID))
		refund := func(m *merchant.Merchant[*txn], p merchant.RefundParams) func(tx *txn) error {
			return func(tx *txn) error {
				_, err := m.RefundTx(w.Context(), tx, p)
				return err
			}
		}
		race := func(a, b merchant.RefundParams) error {
			err1, err2 := w.race(level, refund(w.m, a), func() error { return w.in(db, level, refund(other, b)) })
			require.NoError(w, err1)
			return err2
		}
		same := merchant.RefundParams{ID: order + "same", Order: order, Amount: 300}
		require.NoError(w, race(same, same))
		exceeding := race(merchant.RefundParams{ID: order + "a", Charge: c.ID, Amount: 400}, merchant.RefundParams{ID: order + "b", Charge: c.ID, Amount: 400})
		require.ErrorIs(w, exceeding, merchant.ErrLeft)
		differing := same
		differing.Amount = 100
		require.ErrorIs(w, race(same, differing), merchant.ErrReused)

		for _, id := range []string{"same", "a"} {
			r, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: order + id, Charge: c.ID, Amount: map[string]int64{"same": 300, "a": 400}[id]})
			require.NoError(w, err)
			assert.Equal(w, merchant.Done, r.State)
		}
		assert.Equal(w, int64(700), w.state(order).Refunded)
		assert.Equal(w, int64(700), w.made(c.ID)[0].RefundedAmount)
	})
}

// The same refund ID for two orders.
func TestARefundIDBelongsToOneOrder(t *testing.T) {
	t.Parallel()
	atLevels(t, func(w *world, level sql.IsolationLevel) {
		other, db := w.process(), w.connect()
		var ids []string
		for _, name := range []string{"X", "Y"} {
			c := w.charge(pix(fmt.Sprint(name, int(level)), 1000))
			require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
			require.NoError(w, w.m.Refresh(w.Context(), c.ID))
			ids = append(ids, c.ID)
		}
		p := func(i int) merchant.RefundParams {
			return merchant.RefundParams{ID: fmt.Sprint("return-", int(level)), Charge: ids[i], Full: true}
		}
		err1, err2 := w.race(level, func(tx *txn) error {
			_, err := w.m.RefundTx(w.Context(), tx, p(0))
			return err
		}, func() error {
			return w.in(db, level, func(tx *txn) error {
				_, err := other.RefundTx(w.Context(), tx, p(1))
				return err
			})
		})
		require.NoError(w, err1)
		require.ErrorIs(w, err2, merchant.ErrReused)
	})
}

// Two processes book the payments of two charges of an order at the same time.
func TestTwoPaymentsAtOnceShipOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		w.gw.Webhooks.Hold()
		other := w.process()
		var orders []string
		var booking sync.WaitGroup
		for i := range 8 {
			order := w.order(fmt.Sprint("P", i))
			orders = append(orders, order)
			first, second := w.charge(pix(order, 700)), w.charge(card(order, 700))
			require.Equal(w, 2, second.Attempt)
			w.pays(first)
			w.pays(second)
			booking.Go(func() { assert.NoError(w, w.m.Refresh(w.Context(), first.ID)) })
			booking.Go(func() { assert.NoError(w, other.Refresh(w.Context(), second.ID)) })
			booking.Go(func() { assert.NoError(w, other.Refresh(w.Context(), first.ID)) })
		}
		booking.Wait()
		w.start()
		for _, order := range orders {
			w.eventually("both payments are reported", func() bool { return len(w.calls(order)) >= 2 })
			calls := strings.Join(w.calls(order), ", ")
			assert.Contains(w, []string{
				fmt.Sprintf("paid shop-%[1]s-1 700, paid_again shop-%[1]s-2 700", order), fmt.Sprintf("paid shop-%[1]s-2 700, paid_again shop-%[1]s-1 700", order),
			}, calls)
			assert.Equal(w, 1, w.ships(order))
			assert.Equal(w, int64(1400), w.state(order).Paid)
		}
	})
}

// An order is closed while its payment is booked: it is shipped if the payment came first.
func TestAnOrderIsClosedWhileItIsPaid(t *testing.T) {
	t.Parallel()
	atLevels(t, func(w *world, level sql.IsolationLevel) {
		other, db := w.process(), w.connect()
		closing := func(order string) func(tx *txn) error {
			return func(tx *txn) error { return w.m.CloseOrderTx(w.Context(), tx, order) }
		}
		paid := func(name string) (order string, c *merchant.Charge) {
			order = w.order(fmt.Sprint(name, int(level)))
			c = w.charge(pix(order, 700))
			require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
			return order, c
		}
		closed, c := paid("C")
		err1, err2 := w.race(level, closing(closed), func() error { return other.Refresh(w.Context(), c.ID) })
		require.NoError(w, err1)
		require.NoError(w, err2)

		shipped, c := paid("S")
		lock := func(tx *txn) error { // any change of the order; then the payment waits before the closing does
			_, err := w.m.ChargeTx(w.Context(), tx, pix(shipped, 700))
			return err
		}
		err1, err2 = w.race(level, lock, func() error { return other.Refresh(w.Context(), c.ID) })
		require.NoError(w, err1)
		require.NoError(w, err2)
		require.NoError(w, w.in(db, level, closing(shipped)))

		stop := w.start()
		w.reaches(closed, "paid_again "+"shop-"+closed+"-1 700")
		w.reaches(shipped, "paid "+"shop-"+shipped+"-1 700")
		stop()
		assert.Zero(w, w.ships(closed))
		assert.Equal(w, 1, w.ships(shipped))
		assert.False(w, w.state(closed).Settled)
		assert.True(w, w.state(shipped).Closed)
	})
}

// A charge that waits to be sent is withdrawn with its order, or sent: never both.
func TestAnOrderIsClosedWhileItsChargeIsSent(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		other := w.process()
		for i := range 8 {
			order := fmt.Sprint("W", i)
			require.NoError(w, w.in(w.db, sql.LevelDefault, func(tx *txn) error {
				_, err := w.m.ChargeTx(w.Context(), tx, pix(order, 300))
				return err
			}))
			var both sync.WaitGroup
			both.Go(func() {
				_, err := other.Send(w.Context(), "shop-"+order+"-1")
				assert.NoError(w, err)
			})
			both.Go(func() {
				assert.NoError(w, w.in(w.db, sql.LevelDefault, func(tx *txn) error { return w.m.CloseOrderTx(w.Context(), tx, order) }))
			})
			both.Wait()
			c, want := w.state(order).Charges[0], 0
			if c.State != merchant.Withdrawn {
				assert.Equal(w, merchant.Pending, c.State)
				want = 1
			}
			assert.Len(w, w.made(c.ID), want)
		}
	})
}

// A charge that is refused stores nothing, even if the shop commits.
func TestAChargeThatIsRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		order := "N1"
		small, large := w.charge(pix(order, 100)), w.charge(card(order, 9900))
		w.pays(small)
		require.NoError(w, w.m.Refresh(w.Context(), small.ID))
		require.NoError(w, w.m.Refresh(w.Context(), large.ID))
		before := w.state(order)
		require.Equal(w, merchant.Underpaid, before.Charges[0].State)
		tx, err := w.begin(w.Context(), w.db, nil)
		require.NoError(w, err)
		c, err := w.m.ChargeTx(w.Context(), tx, pix(order, 20000))
		require.ErrorIs(w, err, merchant.ErrState)
		assert.Equal(w, small.ID, c.ID)
		require.NoError(w, tx.Commit())
		after := w.state(order)
		assert.Len(w, after.Charges, 2)
		assert.Equal(w, int64(9900), after.Charges[1].Requested)
	})
}

// A refund is refused in a transaction that commits, and that was the first to see what
// became of another refund: what it saw is stored as a whole, so the next reading is
// booked.
func TestARefundThatIsRefusedLeavesConsistentRecords(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		w.gw.Webhooks.Hold()
		order := "V1"
		c := w.charge(pix(order, 1000))
		w.pays(c)
		require.NoError(w, w.m.Refresh(w.Context(), c.ID))
		require.NoError(w, w.in(w.db, sql.LevelDefault, func(tx *txn) error {
			_, err := w.m.RefundTx(w.Context(), tx, merchant.RefundParams{ID: "r1", Order: order, Amount: 100})
			return err
		}))
		w.exec(`UPDATE gateway_operations SET state = 'sent' WHERE key = 'r1'`)
		_, err := w.gw.Client().Transactions.Refund(w.Context(), c.TransactionID, gateway.RefundParams{Amount: 101}) // by someone else
		require.NoError(w, err)
		require.NoError(w, w.m.Refresh(w.Context(), c.ID))
		w.exec(`UPDATE gateway_operations SET state = 'ambiguous' WHERE key = 'r1'`)
		tx, err := w.begin(w.Context(), w.db, nil)
		require.NoError(w, err)
		_, err = w.m.RefundTx(w.Context(), tx, merchant.RefundParams{ID: "r2", Order: order, Amount: 1000})
		require.ErrorIs(w, err, merchant.ErrLeft)
		require.NoError(w, tx.Commit())
		require.NoError(w, w.m.Refresh(w.Context(), c.ID))
		o := w.state(order)
		assert.Equal(w, merchant.Ambiguous, o.Refunds[0].State)
		assert.Equal(w, int64(101), o.Refunded)
		var reported int64
		require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT SUM(about) FROM gateway_facts WHERE kind = 'returned'`).Scan(&reported))
		assert.Equal(w, int64(101), reported)
	})
}

// A callback that panics again and again is repeated less and less often.
func TestAPanicIsRepeatedLessAndLessOften(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.on.Paid = func(context.Context, *txn, *merchant.Charge) error { panic("a bug in a callback") }
		w.open()
		c := w.charge(pix("L1", 100))
		w.pays(c)
		require.NoError(w, w.m.Refresh(w.Context(), c.ID))
		w.exec(`UPDATE gateway_facts SET attempts = 10`)
		w.start()
		var wait int64
		w.eventually("the callback panics", func() bool {
			err := w.db.QueryRowContext(w.Context(), `SELECT due_at - created_at FROM gateway_facts WHERE attempts = 11 AND callback = 'paid'`).Scan(&wait)
			return err == nil
		})
		assert.GreaterOrEqual(w, wait, (1<<10)*time.Second.Milliseconds())
	})
}

// logs is a log that several goroutines write.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A callback refunds, while other processes book what the gateway shows of the same
// order.
func TestACallbackRefundsWhileItsOrderIsBooked(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		log := &logs{}
		w.cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		w.on.Paid = func(ctx context.Context, tx *txn, c *merchant.Charge) error {
			if err := w.called(ctx, tx, "paid", c.Order, c.ID, c.Paid); err != nil {
				return err
			}
			_, err := w.m.RefundTx(ctx, tx, merchant.RefundParams{ID: "back-" + c.ID, Charge: c.ID, Amount: 100})
			return err
		}
		w.on.PaidAgain, w.cfg.SecondPayment = nil, merchant.RefundSecondPayment
		w.open().start()
		other := w.process()
		var booking sync.WaitGroup
		defer booking.Wait()
		var orders []string
		for i := range 4 {
			order := fmt.Sprint("D", i)
			orders = append(orders, order)
			first, second := w.charge(pix(order, 700)), w.charge(card(order, 700))
			w.pays(first)
			w.pays(second)
			for _, id := range []string{first.ID, second.ID} {
				booking.Go(func() {
					for range 30 {
						assert.NoError(w, other.Refresh(w.Context(), id))
					}
				})
			}
		}
		for _, order := range orders {
			w.eventually("both refunds are made", func() bool { return w.state(order).Refunded == 800 })
		}
		assert.NotContains(w, log.text(), "deadlock")
	})
}

// A callback that does not return, and ignores its context, keeps its own order waiting
// and no other. On SQLite its transaction keeps the database's only write lock.
func TestACallbackThatHangsHoldsUpNoOtherOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres)
	begun, end := make(chan struct{}, 10), make(chan struct{})
	paid := w.on.Paid
	w.on.Paid = func(ctx context.Context, tx *txn, c *merchant.Charge) error {
		if c.Order == "A1" {
			begun <- struct{}{}
			<-end
		}
		return paid(ctx, tx, c)
	}
	w.cfg.CallbackTimeout = time.Hour
	w.open().start()
	for _, order := range []string{"A1", "A2", "A3"} {
		c := w.charge(pix(w.order(order), 1990))
		require.NoError(t, w.gw.Transactions.Pay(c.TransactionID))
		if order == "A1" {
			<-begun
		}
	}
	w.reaches("A2", "paid shop-A2-1 1990")
	w.reaches("A3", "paid shop-A3-1 1990")
	assert.Empty(t, w.calls("A1"))
	close(end)
	w.reaches("A1", "paid shop-A1-1 1990")
	assert.Empty(t, begun, "the callback runs once at a time")
}

// Idle counts what waits at one moment: a callback that inserts a refund moves work from
// one count to another that may have been read already.
func TestIdleMissesNoWorkThatMoves(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.on.PaidAgain, w.cfg.SecondPayment = nil, merchant.RefundSecondPayment
		count, move := make(chan struct{}), make(chan struct{})
		var once sync.Once
		_, db := w.tapped(func(statement string) string {
			if strings.Contains(statement, "FROM gateway_refunds AS r WHERE") { // the last count
				once.Do(func() {
					close(count)
					<-move
				})
			}
			return statement
		})
		w.open()
		watch, err := w.openOn(db, w.cfg)
		require.NoError(w, err)
		w.start()
		require.NoError(w, w.gw.Faults.Add(mockserver.Latency(time.Second).On("transactions.refund").Probability(1)))
		first, second := w.charge(pix(w.order("I1"), 100)), w.charge(voucher("I1", 100))
		w.gw.Webhooks.Hold()
		require.NoError(w, w.gw.Transactions.Pay(first.TransactionID))
		require.NoError(w, w.gw.Transactions.Pay(second.TransactionID))
		idle := make(chan error, 1)
		go func() { idle <- watch.Idle(w.Context()) }()
		<-count // nothing waits yet
		require.NoError(w, w.m.Refresh(w.Context(), first.ID))
		require.NoError(w, w.m.Refresh(w.Context(), second.ID))
		w.eventually("the refund is stored", func() bool {
			o, err := w.m.Order(w.Context(), "I1")
			return err == nil && len(o.Refunds) > 0
		})
		close(move)
		require.NoError(w, <-idle)
		assert.Equal(w, int64(100), w.state("I1").Refunded)
	})
}
