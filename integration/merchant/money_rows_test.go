package merchant_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// Fault 21. The gateway of one account hangs, and more comparisons of it are due than are
// made at the same time: a payment of the other account is found all the same.
func TestAnAccountThatHangsStopsNoOtherAccount(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().two()
		w.gw.Webhooks.Hold()
		var hanging []string
		for i := range 20 {
			hanging = append(hanging, w.charge(on("other", pix(w.order(fmt.Sprint("X", i)), 700))).ID)
		}
		order := w.order("H1")
		c := w.charge(on("shop", pix(order, 700)))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID)) // its webhook is lost

		// A process whose requests may take long meets the gateway that hangs.
		slow, err := w.cfg.Accounts[1].Client.With(gateway.WithAttemptTimeout(10 * time.Minute))
		require.NoError(w, err)
		w.cfg.Accounts[1].Client = slow
		w.m, err = w.openOn(w.db, w.cfg)
		require.NoError(w, err)
		require.NoError(w, w.gw.Account("sk_test_other").Faults.Add(mockserver.HangUntilTimeout().On("GET transactions.*")))
		for _, id := range hanging {
			w.due("gateway_charges", id, time.Hour)
		}
		w.due("gateway_charges", c.ID, time.Minute)
		w.start()
		w.soon("the payment is found", func() bool { return len(w.calls(order)) == 1 })
		w.reaches(order, "paid "+c.ID+" 700")
	})
}

// Fault 21. A transaction holds the row of one order: the payment of another one is found.
func TestAnOrderThatIsLockedStopsNoOtherOrder(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(w *world) {
		w.patient().open()
		w.gw.Webhooks.Hold()
		locked, free := w.order("K1"), w.order("K2")
		c, d := w.charge(pix(locked, 700)), w.charge(pix(free, 800))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		require.NoError(w, w.gw.Transactions.Pay(d.TransactionID))
		tx, err := w.begin(w.Context(), w.db, nil)
		require.NoError(w, err)
		unlock := sync.OnceFunc(func() { assert.NoError(w, tx.Rollback()) })
		defer unlock()
		require.NoError(w, tx.QueryRowContext(w.Context(), `SELECT subject FROM gateway_orders WHERE subject = 'order/K1' FOR UPDATE`).Scan(new(string)))

		before := w.gw.Requests.Count("transactions.get")
		w.due("gateway_charges", c.ID, time.Minute)
		w.start()
		w.eventually("the locked order is compared", func() bool { return w.gw.Requests.Count("transactions.get") > before })
		w.due("gateway_charges", d.ID, time.Minute)
		found := w.within(30*time.Second, func() bool { return len(w.calls(free)) == 1 })
		assert.True(w, found, "the payment of the other order is found")
		unlock()
		w.reaches(locked, "paid "+c.ID+" 700")
		w.reaches(free, "paid "+d.ID+" 800")
	})
}

// Fault 22. A process whose clock is five minutes ahead wanted a subscription to be read
// once more, as it is after the database's clock was set back: it is not read without end.
func TestASubscriptionIsNotReadWithoutEndIfClocksDisagree(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().members().open()
		stop := w.start()
		w.subscribe(w.member("M1", "pgct_ok_1"))
		w.reaches("M1", "started started 2990")
		w.handledAll()
		stop()
		w.m = w.process()
		w.records("gateway_subscriptions", "M1", func(record map[string]any) { record["ReadAfter"] = time.Now().Add(5 * time.Minute) })
		w.due("gateway_subscriptions", "M1", 0)
		before := w.gw.Requests.Count("subscriptions.get")
		reads := func() int { return w.gw.Requests.Count("subscriptions.get") - before }
		w.start()
		w.eventually("it is read", func() bool { return reads() > 0 })
		w.within(10*time.Second, func() bool { return reads() > 8 })
		assert.LessOrEqual(w, reads(), 8, "reads of one subscription in ten seconds")
	})
}

// Fault 23. The text of a callback's error has a byte that PostgreSQL can't store.
func TestACallbackWhoseErrorHasNULIsCountedAndDelayed(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		var calls atomic.Int64
		w.on.Paid = func(context.Context, *txn, *merchant.Charge) error {
			calls.Add(1)
			return errors.New("the label printer said \x00\xff ERROR")
		}
		w.patient().open().start()
		w.pays(w.charge(pix(w.order("N1"), 700)))
		failures := func() int {
			return w.count(`SELECT COALESCE(MAX(attempts), 0) FROM gateway_facts WHERE callback = 'paid'`)
		}
		w.eventually("the callback fails", func() bool { return failures() > 0 || calls.Load() > 5 })
		require.Positive(w, failures(), "a failure is counted")
		// The next failure makes it a problem.
		w.exec(`UPDATE gateway_facts SET attempts = 4, due_at = ? WHERE callback = 'paid'`, time.Now().UnixMilli())
		w.soon("a person is told", func() bool { return len(w.problems()) == 1 })
		p := w.problems()[0]
		assert.Equal(w, merchant.ProblemCallback, p.Kind)
		assert.Contains(w, p.Text, "the label printer said")
		assert.Contains(w, p.Text, "ERROR")
		assert.NotContains(w, p.Text, "\x00")
		assert.Equal(w, 1, w.health().Callbacks.Failing)
		assert.LessOrEqual(w, calls.Load(), int64(5), "a failure delays the next call")
	})
}

// Fault 23. The clock of the database was set back by an hour: what was due a moment ago
// seems to be due in an hour.
func TestACallbackIsNotLateBecauseTheDatabasesClockWasSetBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open()
		order := w.order("B1")
		c := w.charge(pix(order, 700))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.refresh(c.ID)
		w.exec(`UPDATE gateway_facts SET due_at = due_at + 3600000, created_at = created_at + 3600000 WHERE delivered_at IS NULL`)
		h := w.health()
		assert.Equal(w, 1, h.Callbacks.Waiting)
		assert.True(w, h.Callbacks.Oldest > 0 || h.Problems > 0, "Health shows a callback that waits: %+v", h.Callbacks)

		w.start()
		second := w.charge(pix(w.order("B2"), 800)) // its payment wakes the loop of callbacks
		require.NoError(w, w.gw.Transactions.Pay(second.TransactionID))
		w.reaches("B2", "paid "+second.ID+" 800")
		for _, p := range w.problems() { // or a person retries it
			require.NoError(w, w.m.Resolve(w.Context(), p.ID, by(merchant.Retry)))
		}
		w.soon("it is called", func() bool { return len(w.calls(order)) == 1 })
		w.reaches(order, "paid "+c.ID+" 700")
	})
}

// Fault 24. A callback never returns, or ends its goroutine, as t.FailNow does: Run returns
// when it is stopped.
func TestRunReturnsAlthoughACallbackNeverDoes(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"hangs", "Goexit"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				entered, leave := make(chan struct{}), make(chan struct{})
				w.Cleanup(sync.OnceFunc(func() { close(leave) }))
				enter := sync.OnceFunc(func() { close(entered) })
				w.on.Paid = func(context.Context, *txn, *merchant.Charge) error {
					enter()
					if way == "Goexit" {
						runtime.Goexit()
					}
					<-leave // whatever becomes of its context
					return nil
				}
				w.patient()
				w.cfg.CallbackTimeout = time.Second
				w.open()
				ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- w.m.Run(ctx) }()
				c := w.charge(pix(w.order("G1"), 700))
				require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
				<-entered
				cancel()
				select {
				case err := <-ended:
					require.NoError(w, err)
				case <-time.After(30 * time.Second):
					assert.Fail(w, "Run does not return")
				}
			})
		})
	}
}

// Fault 24. A callback that ends its goroutine has failed: it is repeated, and it keeps no
// worker.
func TestACallbackThatEndsItsGoroutineIsRepeated(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		var once sync.Once
		paid := w.on.Paid
		w.on.Paid = func(ctx context.Context, tx *txn, c *merchant.Charge) error {
			once.Do(runtime.Goexit)
			return paid(ctx, tx, c)
		}
		w.patient()
		w.cfg.Workers = 1
		w.open()
		c, d := w.charge(pix(w.order("G2"), 700)), w.charge(pix(w.order("G3"), 800))
		for _, one := range []*merchant.Charge{c, d} {
			require.NoError(w, w.gw.Transactions.Pay(one.TransactionID))
			w.refresh(one.ID)
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
		w.Cleanup(cancel) // Run may not return, which is another fault
		go func() { _ = w.m.Run(ctx) }()
		w.soon("both orders ship", func() bool { return w.ships("G2") == 1 && w.ships("G3") == 1 })
	})
}

// Fault 24. The gateway is silent: Open waits for all accounts at once.
func TestOpenWaitsForSilentAccountsAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		for _, name := range []string{"one", "two", "three"} {
			w.cfg.Accounts = append(w.cfg.Accounts, w.account(name, "sk_test_"+name, w.gw.Secret()))
		}
		w.patient().open()
		for _, a := range w.cfg.Accounts {
			w.charge(on(a.Name, pix(w.order("S-"+a.Name), 700)))
		}
		require.NoError(w, w.gw.Faults.Add(mockserver.HangUntilTimeout().On("GET transactions.*")))
		began := time.Now()
		_, err := w.openOn(w.db, w.cfg)
		require.NoError(w, err, "a gateway that can't be reached does not keep a shop from opening")
		assert.Less(w, time.Since(began), 12*time.Second, "Open waits 5 s, not 5 s for each of four accounts")
	})
}

// Fault 24. A card that was refused is never paid late, unlike a voucher that expired.
func TestARefusedCardIsNotReadForMonths(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open()
		refused := card(w.order("C1"), 700)
		refused.Token = "pgct_refused_1"
		c := w.charge(refused)
		w.refresh(c.ID)
		require.Equal(w, merchant.Failed, w.state("C1").Charges[0].State)
		w.ages("gateway_charges", c.ID, 30*24*time.Hour)
		w.refresh(c.ID)
		_, planned := w.comparedIn("gateway_charges", c.ID)
		assert.False(w, planned, "it is not compared any more")

		v := w.charge(voucher(w.order("C2"), 700))
		require.NoError(w, w.gw.Transactions.Expire(v.TransactionID))
		w.refresh(v.ID)
		w.ages("gateway_charges", v.ID, 30*24*time.Hour)
		w.refresh(v.ID)
		_, planned = w.comparedIn("gateway_charges", v.ID)
		assert.True(w, planned, "a voucher that expired may still be paid")
	})
}

// Fault 25. Each callback reads its order, with as many workers as there are connections.
func TestCallbacksThatReadTheirOrderDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		const orders = 24
		w.reader = w.connect()
		if w.kind == pgxpools {
			w.name += "&pool_max_conns=8"
		}
		w.db = w.connect()
		w.db.SetMaxOpenConns(8)
		var failed atomic.Int64
		paid := w.on.Paid
		w.on.Paid = func(ctx context.Context, tx *txn, c *merchant.Charge) error {
			o, err := w.m.Order(ctx, c.Order)
			if err == nil && o.Left() != c.Left() {
				err = fmt.Errorf("%d are left of the order, and %d of the charge", o.Left(), c.Left())
			}
			if err != nil {
				failed.Add(1)
				return err
			}
			return paid(ctx, tx, c)
		}
		w.patient()
		w.cfg.Workers = 8
		w.open()
		w.gw.Webhooks.Hold()
		for i := range orders {
			c := w.charge(pix(w.order(fmt.Sprint("P", i)), 700))
			require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
			w.refresh(c.ID)
		}
		w.start()
		shipped := func() (n int) {
			require.NoError(w, w.reader.QueryRowContext(w.Context(), `SELECT COALESCE(SUM(ships), 0) FROM orders`).Scan(&n))
			return n
		}
		w.soon("all orders ship, or a callback fails", func() bool { return shipped() == orders || failed.Load() > 0 })
		assert.Zero(w, failed.Load(), "no callback fails because it reads its order")
		w.eventually("all orders ship", func() bool { return shipped() == orders })
	})
}
