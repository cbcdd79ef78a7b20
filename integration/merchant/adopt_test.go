package merchant_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// oldShop is code that charges, without this package.
type oldShop struct {
	*world

	client *gateway.Client
}

func (w *world) oldShop() *oldShop {
	return &oldShop{w, w.gw.Account(w.gw.Key()).Client()}
}

// charges makes a Pix charge.
func (o *oldShop) charges(order string, amount int64) *gateway.Transaction {
	o.Helper()
	p := pix("", amount).TransactionParams
	p.ExternalRef = "old-" + order
	t, err := o.client.Transactions.Create(o.Context(), p)
	require.NoError(o, err)
	return t
}

// sells makes one that is paid.
func (o *oldShop) sells(order string, amount int64) *gateway.Transaction {
	o.Helper()
	t := o.charges(order, amount)
	require.NoError(o, o.gw.Transactions.Pay(t.ID))
	return t
}

// adopts adopts a transaction for an order.
func (w *world) adopts(order, transaction string) *merchant.Record {
	w.Helper()
	r, err := w.m.Adopt(w.Context(), merchant.Adoption{Transaction: transaction, Order: order})
	require.NoError(w, err)
	return r
}

// each yields adoptions without an error.
func adoptions(list ...merchant.Adoption) iter.Seq2[merchant.Adoption, error] {
	return func(yield func(merchant.Adoption, error) bool) {
		for _, a := range list {
			if !yield(a, nil) {
				return
			}
		}
	}
}

// What other code has charged is in the books after its adoption, whatever its state, and the
// merchant is told nothing of what it has done. What happens later is told.
func TestWhatOtherCodeChargedIsAdopted(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.told()
		old := w.oldShop()
		paid, open, part, gone := old.sells("A1", 1000), old.charges("A2", 700), old.sells("A3", 900), old.sells("A4", 500)
		for transaction, amount := range map[string]int64{part.ID: 300, gone.ID: 500} {
			_, err := old.client.Transactions.Refund(w.Context(), transaction, gateway.RefundParams{Amount: amount})
			require.NoError(w, err)
		}
		disputed := old.sells("A5", 800)
		require.NoError(w, w.gw.Transactions.OpenDispute(disputed.ID))
		w.open().start()
		w.settled()
		for i, tx := range []*gateway.Transaction{paid, open, part, gone, disputed} {
			order := w.order(fmt.Sprint("A", i+1))
			for range 2 { // the second time changes nothing
				r := w.adopts(order, tx.ID)
				require.Len(w, r.Order.Charges, 1)
				c := r.Order.Charges[0]
				assert.Equal(w, order, r.Order.ID)
				assert.Equal(w, strings.ToLower(tx.ID), c.ID)
				assert.Equal(w, merchant.FromAdoption, c.Origin)
				assert.WithinDuration(w, tx.CreatedAt.Time, c.CreatedAt, time.Second)
			}
		}
		states := make(map[string]merchant.State)
		for i := range 5 {
			o := w.state(fmt.Sprint("A", i+1))
			states[o.ID] = o.Charges[0].State
		}
		assert.Equal(w, map[string]merchant.State{
			"A1": merchant.Paid, "A2": merchant.Pending, "A3": merchant.Paid, "A4": merchant.Refunded, "A5": merchant.Disputed,
		}, states)
		o := w.state("A3")
		assert.Equal(w, [...]int64{900, 300, 600}, [...]int64{o.Paid, o.Refunded, o.Left()})
		assert.NotEmpty(w, w.state("A2").Current().PixCode)
		require.NoError(w, w.m.Idle(w.Context()))
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM calls`), "the old code has done what follows")
		assert.Zero(w, w.health().Unknown, "all are in the books")

		// What happens later is told.
		require.NoError(w, w.gw.Transactions.Pay(open.ID))
		w.eventually("told", func() bool { return len(w.goods("A2")) == 1 })
		_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "R1", Order: "A1", Full: true})
		require.NoError(w, err)
		w.eventually("told", func() bool { return len(w.goods("A1")) == 1 })
		require.NoError(w, w.gw.Transactions.WinDispute(disputed.ID))
		w.refresh(strings.ToLower(disputed.ID))
		w.eventually("told", func() bool { return len(w.goods("A5")) == 1 })
		assert.Equal(w, []string{"goods refunded A1 0"}, w.goods("A1"))
		assert.Equal(w, []string{"goods paid A2 700"}, w.goods("A2"))
		assert.Equal(w, []string{"goods paid A5 800"}, w.goods("A5"))
		assert.Equal(w, []string{"refunded R1 1000"}, w.calls("A1"))
		assert.Equal(w, 1, w.ships("A2"))
		assert.Zero(w, w.ships("A1"))

		// The books equal the gateway's.
		_, differences, err := w.m.CheckMonth(w.Context(), "shop", time.Now().UTC().Format("2006-01"))
		require.NoError(w, err)
		assert.Empty(w, differences)
	}, mockserver.WithDialect(mockserver.Live))
}

// With Call, all is told as if it happened now.
func TestAnAdoptionMayCall(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.told()
		old := w.oldShop()
		tx := old.sells("A1", 1000)
		w.open().start()
		w.order("A1")
		_, err := w.m.Adopt(w.Context(), merchant.Adoption{Transaction: tx.ID, Order: "A1", Call: true})
		require.NoError(w, err)
		w.eventually("told", func() bool { return len(w.goods("A1")) == 1 })
		require.NoError(w, w.m.Idle(w.Context()))
		assert.Equal(w, 1, w.ships("A1"))
	})
}

// The buyer with an open Pix of the old code gets that one, and doesn't pay twice.
func TestAnOpenPixOfOtherCodeIsShownAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		old := w.oldShop()
		open := old.charges("A1", 700)
		other := old.charges("A2", 700)
		w.open()
		w.order("A1")
		w.order("A2")
		n, err := w.m.AdoptAll(w.Context(), adoptions(
			merchant.Adoption{Transaction: open.ID, Order: "A1"}, merchant.Adoption{Transaction: other.ID, Order: "A2"},
		))
		require.NoError(w, err)
		assert.Equal(w, 2, n)
		err = w.in(w.db, 0, func(tx *txn) error {
			_, err := w.m.ChargeTx(w.Context(), tx, pix("A1", 700))
			return err
		})
		require.ErrorIs(w, err, merchant.ErrAdopting)
		c := w.charge(pix("A1", 700))
		assert.Equal(w, strings.ToLower(open.ID), c.ID)
		assert.Equal(w, open.Pix.QRCode, c.PixCode)
		assert.Len(w, w.made(""), 2, "nothing was created")

		c = w.charge(pix("A2", 800)) // another amount is another charge
		assert.Equal(w, "shop-A2-2", c.ID)
		waiting, done, failed, err := w.m.Adoptions(w.Context(), "")
		require.NoError(w, err)
		assert.Equal(w, [...]int{0, 2, 0}, [...]int{waiting, done, failed})
	})
}

// The event of what an adoption found comes after it: no callback reports that, so the old code gets
// the event. What happened later is reported here alone.
func TestOtherGetsTheEventOfWhatAnAdoptionFound(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members()
		old := w.oldShop()
		var mu sync.Mutex
		got := make(map[string]string)
		w.cfg.Other = func(_ context.Context, _ string, e *webhook.Event) error {
			mu.Lock()
			defer mu.Unlock()
			got[e.ResourceID] += " " + e.Status
			return nil
		}
		of := func(id string) string {
			mu.Lock()
			defer mu.Unlock()
			return got[id]
		}
		w.open().start()
		w.gw.Webhooks.Hold()
		silent, called, open := old.sells("A1", 700), old.sells("A2", 800), old.charges("A3", 900)
		payout, err := old.client.Transfers.Create(w.Context(), gateway.TransferParams{
			Amount: 500, ExternalRef: "old-p1", PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@example.com",
		})
		require.NoError(w, err)
		for _, step := range []func(string) error{w.gw.Transfers.Analyse, w.gw.Transfers.Process, w.gw.Transfers.Settle} {
			require.NoError(w, step(payout.ID))
		}
		p := w.member("M1", "pgct_ok_1")
		customer, err := old.client.Customers.Create(w.Context(), p.Customer)
		require.NoError(w, err)
		p.SubscriptionParams.CustomerID, p.SubscriptionParams.IdempotencyKey = customer.ID, "old-1"
		sub, err := old.client.Subscriptions.Create(w.Context(), p.SubscriptionParams)
		require.NoError(w, err)
		sub, err = old.client.Subscriptions.Get(w.Context(), sub.ID)
		require.NoError(w, err)
		require.NotEmpty(w, sub.Transactions)
		w.order("A2")
		w.adopts("A1", silent.ID)
		_, err = w.m.Adopt(w.Context(), merchant.Adoption{Transaction: called.ID, Order: "A2", Call: true})
		require.NoError(w, err)
		w.adopts("A3", open.ID)
		_, err = w.m.Adopt(w.Context(), merchant.Adoption{Transfer: payout.ID, ID: "P1"})
		require.NoError(w, err)
		_, err = w.m.Adopt(w.Context(), merchant.Adoption{Subscription: sub.ID, ID: "M1"})
		require.NoError(w, err)
		w.eventually("A2 is reported", func() bool { return w.ships("A2") == 1 })
		require.NoError(w, w.gw.Webhooks.Release())
		require.NoError(w, w.gw.Wait(w.Context()))
		w.quiet(`SELECT COUNT(*) FROM gateway_webhook_events WHERE state IN (1, 2)`)
		assert.Contains(w, of(silent.ID), "paid")
		assert.Empty(w, of(called.ID))
		assert.NotContains(w, of(open.ID), "paid")
		assert.Contains(w, of(payout.ID), "paid")
		assert.Contains(w, of(sub.ID), string(gateway.SubscriptionActive))
		assert.Contains(w, of(sub.Transactions[0].ID), "paid", "a charge of the subscription")

		w.order("A3")
		require.NoError(w, w.gw.Transactions.Pay(open.ID))
		w.eventually("A3 is reported", func() bool { return w.ships("A3") == 1 })
		_, err = w.m.Refund(w.Context(), merchant.RefundParams{ID: "r1", Order: "A1", Full: true})
		require.NoError(w, err)
		require.NoError(w, w.gw.Wait(w.Context()))
		w.quiet(`SELECT COUNT(*) FROM gateway_webhook_events WHERE state IN (1, 2)`)
		assert.NotContains(w, of(open.ID), "paid")
		assert.NotContains(w, of(silent.ID), "refunded")
	})
}

// An order that waits is refunded once its charges are known: all of them, so that a full refund
// leaves nothing.
func TestAnOrderThatWaitsIsRefundedAfterItsAdoption(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		old := w.oldShop()
		first, second := old.sells("A1", 700), old.sells("A2", 900)
		w.open()
		w.order("A2")
		n, err := w.m.AdoptAll(w.Context(), adoptions(
			merchant.Adoption{Transaction: first.ID, Order: "A1"}, merchant.Adoption{Transaction: second.ID, Order: "A2"},
		))
		require.NoError(w, err)
		require.Equal(w, 2, n)
		full := func(order string) merchant.RefundParams {
			return merchant.RefundParams{ID: "r-" + order, Order: order, Full: true}
		}
		err = w.in(w.db, 0, func(tx *txn) error {
			_, err := w.m.RefundTx(w.Context(), tx, full("A1"))
			return err
		})
		require.ErrorIs(w, err, merchant.ErrAdopting)
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_refunds`))
		assert.Equal(w, 2, w.health().Accounts[0].Adopting)
		for _, order := range []string{"A1", "A2", "A1"} {
			r, err := w.m.Refund(w.Context(), full(order))
			require.NoError(w, err)
			assert.Equal(w, merchant.Done, r.State)
		}
		t, err := w.gw.Client().Transactions.Get(w.Context(), first.ID)
		require.NoError(w, err)
		assert.Equal(w, int64(700), t.RefundedAmount)
		_, err = w.m.Refund(w.Context(), full("A3"))
		require.ErrorIs(w, err, merchant.ErrNotFound)
	})
}

// While the gateway can't be read, an order that waits is not charged.
func TestAnOrderThatWaitsForItsAdoptionIsNotCharged(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		old := w.oldShop()
		open := old.charges("A1", 700)
		var down atomic.Bool
		down.Store(true)
		w.rejecting(func(r *http.Request) bool { return down.Load() && r.Method == http.MethodGet })
		w.open()
		w.order("A1")
		require.NoError(w, w.adoptsTx(merchant.Adoption{Transaction: open.ID, Order: "A1"}))
		_, err := w.m.Charge(w.Context(), pix("A1", 700))
		require.ErrorIs(w, err, merchant.ErrAdopting)
		down.Store(false)
		assert.Equal(w, strings.ToLower(open.ID), w.charge(pix("A1", 700)).ID)
	})
}

func (w *world) adoptsTx(a merchant.Adoption) error {
	w.Helper()
	return w.in(w.db, 0, func(tx *txn) error { return w.m.AdoptTx(w.Context(), tx, a) })
}

// A list is adopted by the process that runs. It may be given again, also after it was cut off;
// what can't be adopted is a problem until it is adopted as it is right.
func TestAListIsAdopted(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.AdoptRate = 100
		old := w.oldShop()
		var list []merchant.Adoption
		for i := range 12 {
			order := fmt.Sprint("A", i)
			list = append(list, merchant.Adoption{Transaction: old.sells(order, int64(1000+i)).ID, Order: w.order(order)})
		}
		wrong := merchant.Adoption{Transaction: "9d2a3c1e-0000-7000-8000-000000000000", Order: w.order("A99")}
		list = append(list, wrong)
		w.open()
		cut := errors.New("the old database is gone")
		_, err := w.m.AdoptAll(w.Context(), func(yield func(merchant.Adoption, error) bool) {
			for _, a := range list[:5] {
				if !yield(a, nil) {
					return
				}
			}
			yield(merchant.Adoption{}, cut)
		})
		require.ErrorIs(w, err, cut)
		n, err := w.m.AdoptAll(w.Context(), adoptions(list...))
		require.NoError(w, err)
		assert.Equal(w, len(list), n)
		n, err = w.m.AdoptAll(w.Context(), adoptions(list...))
		require.NoError(w, err)
		assert.Zero(w, n)
		w.start()
		progress := func() (all [3]int) {
			waiting, done, failed, err := w.m.Adoptions(w.Context(), "shop")
			require.NoError(w, err)
			return [...]int{waiting, done, failed}
		}
		w.soon("adopted", func() bool { return progress() == [...]int{1, 12, 0} })
		// The gateway may not show it yet.
		later := `UPDATE gateway_adoptions SET due_at = 0, since = 0 WHERE attempts = 1`
		w.soon("tried", func() bool { return w.count(`SELECT COUNT(*) FROM gateway_adoptions WHERE attempts = 1`) == 1 })
		w.exec(later)
		w.soon("given up", func() bool { return progress() == [...]int{0, 12, 1} })
		for i := range 12 {
			assert.Equal(w, int64(1000+i), w.state(fmt.Sprint("A", i)).Paid)
		}
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM calls WHERE name NOT LIKE 'problem%'`))
		p := w.problem()
		assert.Equal(w, merchant.ProblemAdoption, p.Kind)
		assert.Equal(w, "A99", p.Order)
		assert.Equal(w, wrong.Transaction, p.Record)
		assert.Contains(w, p.Text, "has no transaction")

		// It was the ID of another one.
		n, err = w.m.AdoptAll(w.Context(), adoptions(list...))
		require.NoError(w, err)
		assert.Equal(w, 1, n, "it is tried once more")
		w.soon("tried", func() bool { return w.count(`SELECT COUNT(*) FROM gateway_adoptions WHERE attempts = 1`) == 1 })
		w.exec(later)
		w.soon("given up", func() bool { return progress() == [...]int{0, 12, 1} })
		assert.Equal(w, int64(1), w.charge(pix("A99", 1)).Requested, "an order whose adoption has failed can be charged")
	})
}

// What can't be meant is an error, and nothing is stored.
func TestAnAdoptionThatDoesNotFitIsRejected(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		old := w.oldShop()
		tx, other := old.sells("A1", 1000), old.sells("A2", 1000)
		w.open()
		w.start()
		w.adopts(w.order("A1"), tx.ID)
		adopt := func(a merchant.Adoption) error {
			_, err := w.m.Adopt(w.Context(), a)
			return err
		}
		for field, a := range map[string]merchant.Adoption{
			"transaction": {}, "id": {Subscription: "S1"}, "order": {Subscription: "S1", ID: "M1", Order: "A1"},
			"cost": {Transaction: tx.ID, Cost: 5}, "transfer": {Transfer: " x", ID: "P1"},
		} {
			err := adopt(a)
			require.ErrorIs(w, err, gateway.ErrValidation, field)
			require.ErrorContains(w, err, field)
			_, err = w.m.AdoptAll(w.Context(), adoptions(merchant.Adoption{Transaction: other.ID, Order: "A2"}, a))
			require.ErrorIs(w, err, gateway.ErrValidation, field)
			require.ErrorContains(w, err, "adoption 2 of the list")
			require.ErrorIs(w, w.adoptsTx(a), gateway.ErrValidation)
		}
		require.ErrorIs(w, adopt(merchant.Adoption{Transaction: tx.ID, Order: "A2"}), merchant.ErrReused, "it is of another order")
		require.ErrorIs(w, adopt(merchant.Adoption{Transaction: tx.ID}), merchant.ErrReused, "it is no sale by link")
		err := adopt(merchant.Adoption{Transaction: "9d2a3c1e-0000-7000-8000-000000000000", Order: "A2"})
		require.ErrorIs(w, err, gateway.ErrNotFound)
		require.ErrorContains(w, err, "the account shop has no transaction")
		require.ErrorIs(w, adopt(merchant.Adoption{Transaction: tx.ID, Order: "A1", Account: "another"}), merchant.ErrAccount)
		w.exec(`UPDATE gateway_orders SET currency = 'USD' WHERE subject = 'order/A1'`)
		require.ErrorIs(w, adopt(merchant.Adoption{Transaction: other.ID, Order: "A1"}), merchant.ErrCurrency)
		// The same resource for two orders.
		_, err = w.m.AdoptAll(w.Context(), adoptions(
			merchant.Adoption{Transaction: other.ID, Order: "A2"}, merchant.Adoption{Transaction: strings.ToUpper(other.ID), Order: "A3"},
		))
		require.ErrorIs(w, err, merchant.ErrReused)
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_adoptions`))
		assert.Equal(w, 1, w.count(`SELECT COUNT(*) FROM gateway_charges`))
		require.NoError(w, w.adoptsTx(merchant.Adoption{Transaction: other.ID, Order: "A2"}))
		require.ErrorIs(w, w.adoptsTx(merchant.Adoption{Transaction: other.ID, Order: "A3"}), merchant.ErrReused)
		require.NoError(w, w.adoptsTx(merchant.Adoption{Transaction: strings.ToUpper(other.ID), Order: "A2"}), "it is the same")
		require.NoError(w, w.adoptsTx(merchant.Adoption{Transaction: other.ID, Order: "A2", Call: true}), "the first one counts")
		require.ErrorIs(w, w.adoptsTx(merchant.Adoption{Transaction: other.ID, Order: "A2", Cost: 7}), merchant.ErrReused)
		assert.Equal(w, 1, w.count(`SELECT COUNT(*) FROM gateway_adoptions`))
	})
}

// The buyer paid the old code and this one: a person hears of it.
func TestASecondPaymentToOtherCodeIsAProblem(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		old := w.oldShop()
		tx := old.sells("A1", 1000)
		w.open().start()
		ours := w.paysWith(pix("A1", 1000))
		w.eventually("paid", func() bool { return w.ships("A1") == 1 })
		w.adopts("A1", tx.ID)
		assert.Equal(w, int64(1000), w.state("A1").Excess())
		p := w.problem()
		assert.Equal(w, merchant.ProblemPaidAgain, p.Kind)
		assert.Equal(w, strings.ToLower(tx.ID), p.Record)
		assert.Equal(w, 1, w.ships("A1"))
		assert.NotEqual(w, ours.ID, p.Record)
	})
}

// Many adopt one transaction at once: it is booked once.
func TestATransactionIsAdoptedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.AdoptRate = 100
		old := w.oldShop()
		tx := old.sells("A1", 1000)
		w.open().start()
		w.order("A1")
		other := w.process()
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				m := w.m
				if i%2 == 1 {
					m = other
				}
				if i < 2 {
					_, err := m.AdoptAll(w.Context(), adoptions(merchant.Adoption{Transaction: tx.ID, Order: "A1"}))
					assert.NoError(w, err)
					return
				}
				_, err := m.Adopt(w.Context(), merchant.Adoption{Transaction: tx.ID, Order: "A1"})
				assert.NoError(w, err)
			})
		}
		all.Wait()
		w.soon("adopted", func() bool {
			waiting, _, _, err := w.m.Adoptions(w.Context(), "")
			return err == nil && waiting == 0
		})
		assert.Equal(w, int64(1000), w.state("A1").Paid)
		assert.Equal(w, 1, w.count(`SELECT COUNT(*) FROM gateway_facts WHERE kind = 'paid'`))
		assert.Zero(w, w.ships("A1"))
	})
}

// Payouts and subscriptions are adopted too.
func TestPayoutsAndSubscriptionsAreAdopted(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members()
		w.on.Access = func(ctx context.Context, tx *txn, a *merchant.Access) error {
			return w.called(ctx, tx, "access", a.ID, a.ID, 0)
		}
		old := w.oldShop()
		transfer, err := old.client.Transfers.Create(w.Context(), gateway.TransferParams{
			PixKeyType: gateway.PixKeyEmail, PixKeyValue: "b@example.com", Amount: 100, ExternalRef: "old-payout",
		})
		require.NoError(w, err)
		p := w.member("M1", "pgct_ok_1")
		customer, err := old.client.Customers.Create(w.Context(), p.Customer)
		require.NoError(w, err)
		p.SubscriptionParams.CustomerID = customer.ID
		p.SubscriptionParams.IdempotencyKey = "old-1"
		sub, err := old.client.Subscriptions.Create(w.Context(), p.SubscriptionParams)
		require.NoError(w, err)
		w.open().start()
		w.settled()
		r, err := w.m.Adopt(w.Context(), merchant.Adoption{Transfer: transfer.ID, ID: "bill-1"})
		require.NoError(w, err)
		require.Len(w, r.Order.Payouts, 1)
		assert.Equal(w, int64(100), r.Order.PaidOut)
		r, err = w.m.Adopt(w.Context(), merchant.Adoption{Subscription: sub.ID, ID: "M1"})
		require.NoError(w, err)
		require.NotNil(w, r.Subscription)
		assert.Equal(w, merchant.State(gateway.SubscriptionActive), r.Subscription.State)
		assert.Equal(w, int64(2990), r.Order.Paid)
		require.NoError(w, w.m.Idle(w.Context()))
		assert.Empty(w, w.calls("M1"))
		for _, again := range []merchant.Adoption{{Transfer: transfer.ID, ID: "bill-1"}, {Subscription: sub.ID, ID: "M1"}} {
			_, err = w.m.Adopt(w.Context(), again)
			require.NoError(w, err)
		}
		for _, other := range []merchant.Adoption{{Transfer: transfer.ID, ID: "bill-2"}, {Subscription: sub.ID, ID: "M2"}} {
			_, err = w.m.Adopt(w.Context(), other)
			require.ErrorIs(w, err, merchant.ErrReused)
		}
		for _, step := range []func(string) error{w.gw.Transfers.Analyse, w.gw.Transfers.Process, w.gw.Transfers.Settle} {
			require.NoError(w, step(transfer.ID))
		}
		w.pass(month + time.Hour)
		w.soon("renewed", func() bool { return slices.Contains(w.calls("M1"), "renewed renewed 2990") })
		assert.NotContains(w, strings.Join(w.calls("M1"), " "), "started")
		w.soon("paid out", func() bool { return w.count(`SELECT COUNT(*) FROM calls WHERE name = 'payout paid'`) == 1 })
	})
}

// Two adopt one transaction for different orders at once: one of them is told.
func TestATransactionIsAdoptedForOneOrder(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		old := w.oldShop()
		w.open()
		for round := range 5 {
			tx := old.sells(fmt.Sprint("A", round), 1000)
			var all sync.WaitGroup
			errs := make(chan error, 4)
			for i := range cap(errs) {
				all.Go(func() {
					_, err := w.m.Adopt(w.Context(), merchant.Adoption{Transaction: tx.ID, Order: fmt.Sprint("A", round, "-", i)})
					errs <- err
				})
			}
			all.Wait()
			done := 0
			for range cap(errs) {
				err := <-errs
				if err == nil {
					done++
					continue
				}
				require.ErrorIs(w, err, merchant.ErrReused)
			}
			assert.Equal(w, 1, done)
		}
		assert.Equal(w, 5, w.count(`SELECT COUNT(*) FROM gateway_facts WHERE kind = 'paid'`))
	})
}
