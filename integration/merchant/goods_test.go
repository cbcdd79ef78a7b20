package merchant_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// goods returns what the shop has heard about an order's goods.
func (w *world) goods(order string) (list []string) {
	w.Helper()
	return w.calls("shop/" + order)
}

// A shop that obeys Goods alone: it ships, stops while a dispute is open, and ships again when
// it is won. A refund of a part is its own decision.
func TestGoodsSayWhenToShipAndWhenToStop(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.told()
		w.open().start()
		c := w.charge(pix(w.order("A1"), 1000))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.eventually("told", func() bool { return len(w.goods("A1")) == 1 })
		_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "R1", Order: "A1", UpTo: 400})
		require.NoError(w, err)
		require.NoError(w, w.m.Idle(w.Context()))
		assert.Equal(w, []string{"goods paid A1 1000"}, w.goods("A1"), "a part that went back changes nothing")

		require.NoError(w, w.gw.Transactions.OpenDispute(c.TransactionID))
		w.refresh(c.ID)
		w.eventually("told", func() bool { return len(w.goods("A1")) == 2 })
		require.NoError(w, w.gw.Transactions.WinDispute(c.TransactionID))
		w.refresh(c.ID)
		w.eventually("told", func() bool { return len(w.goods("A1")) == 3 })
		_, err = w.m.Refund(w.Context(), merchant.RefundParams{ID: "R2", Order: "A1", Full: true})
		require.NoError(w, err)
		w.eventually("told", func() bool { return len(w.goods("A1")) == 4 })
		assert.Equal(w, []string{"goods paid A1 1000", "goods disputed A1 0", "goods paid A1 600", "goods refunded A1 0"}, w.goods("A1"))
	}, mockserver.WithDialect(mockserver.Live))
}

// What changed and changed back before the shop heard of it is not told, and a callback that
// fails keeps no goods waiting.
func TestGoodsAreToldAsTheyAre(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.told()
		w.fails("paid", 1000)
		w.cfg.CompareEvery = time.Hour
		w.open()
		c := w.charge(pix(w.order("A1"), 1000))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.refresh(c.ID)
		require.NoError(w, w.gw.Transactions.OpenDispute(c.TransactionID))
		w.refresh(c.ID)
		gone := w.charge(pix(w.order("A2"), 500))
		require.NoError(w, w.gw.Transactions.Pay(gone.TransactionID))
		w.refresh(gone.ID)
		w.start()
		w.eventually("told", func() bool { return len(w.goods("A2")) == 1 })
		w.eventually("nothing of goods waits", func() bool {
			return w.count(`SELECT COUNT(*) FROM gateway_facts WHERE stream = 'goods' AND delivered_at IS NULL`) == 0
		})
		assert.Empty(w, w.goods("A1"), "paid, and disputed before it was told")
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM calls WHERE name = 'paid'`), "which failed all the time")
		require.NoError(w, w.gw.Transactions.WinDispute(c.TransactionID))
		w.refresh(c.ID)
		w.eventually("told", func() bool { return len(w.goods("A1")) == 1 })
		assert.Equal(w, []string{"goods paid A1 1000"}, w.goods("A1"))
	}, mockserver.WithDialect(mockserver.Live))
}

// An order that was closed before its goods were told is not shipped: a person decides.
func TestGoodsOfAnOrderThatWasClosed(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.told()
		closed := make(chan bool, 1)
		paid := w.on.Paid
		w.on.Paid = func(ctx context.Context, tx *txn, c *merchant.Charge) error {
			closed <- c.OrderClosed
			return paid(ctx, tx, c)
		}
		w.open()
		c := w.charge(pix(w.order("A1"), 1000))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.refresh(c.ID)
		w.tx(func(tx *txn) error { return w.m.CloseOrderTx(w.Context(), tx, "A1") })
		w.start()
		require.NoError(w, w.m.Idle(w.Context()))
		assert.True(w, <-closed)
		assert.Empty(w, w.goods("A1"))
		problems := w.problems()
		require.Len(w, problems, 1)
		assert.Equal(w, []any{merchant.ProblemClosed, "A1", c.ID}, []any{problems[0].Kind, problems[0].Order, problems[0].Record})
		_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "R1", Order: "A1", Full: true})
		require.NoError(w, err)
		require.NoError(w, w.m.Idle(w.Context()))
		assert.Empty(w, w.problems(), "the money went back")
		assert.Empty(w, w.goods("A1"))
	})
}

// A sale by link has its buyer, who has no order.
func TestGoodsOfASaleByLink(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		list := w.told()
		w.onlyLinked()
		w.open().start()
		id := w.buy(w.link(mug("mug-1", 1500)))
		w.eventually("told", func() bool { return len(w.calls("shop/")) == 1 })
		require.Len(w, *list, 1)
		g := (*list)[0]
		require.NotNil(w, g.Sale)
		assert.Equal(w, []any{merchant.Paid, "", id, "mug-1"}, []any{g.State, g.Order, g.Sale.ID, g.Sale.Link})
		assert.NotEmpty(w, g.Sale.Buyer.Email)
	})
}

// A second payment is given back, also if it was withheld by a dispute when it was reported.
func TestASecondPaymentThatWasWithheldGoesBackWhenTheDisputeIsWon(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.told()
		w.cfg.SecondPayment = merchant.RefundSecondPayment
		w.open()
		first := w.charge(pix(w.order("A1"), 1000))
		second := w.charge(pix("A1", 900))
		third := w.charge(pix("A1", 1000))
		require.NotEqual(w, second.ID, third.ID)
		require.NoError(w, w.gw.Transactions.Pay(first.TransactionID))
		w.refresh(first.ID)
		require.NoError(w, w.gw.Transactions.Pay(second.TransactionID))
		w.refresh(second.ID)
		require.NoError(w, w.gw.Transactions.OpenDispute(second.TransactionID))
		w.refresh(second.ID)
		stop := w.start()
		require.NoError(w, w.m.Idle(w.Context()))
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_refunds`), "it is withheld, so nothing can be refunded")
		stop()
		w.m, _ = w.openOn(w.db, w.cfg)
		w.start()
		require.NoError(w, w.gw.Transactions.WinDispute(second.TransactionID))
		w.refresh(second.ID)
		w.eventually("it goes back", func() bool {
			o, err := w.m.Order(w.Context(), "A1")
			require.NoError(w, err)
			return o.Refunded == 900
		})
		require.NoError(w, w.m.Idle(w.Context()))
		assert.Equal(w, []string{"goods paid A1 1000"}, w.goods("A1"), "the order is paid by the other charge all the time")
		assert.Equal(w, []string{
			"paid " + first.ID + " 1000", "paid_again " + second.ID + " 900", "disputed " + second.ID + " 900", "disputed " + second.ID + " 0",
			"paid_again " + second.ID + " 900", "refunded again-" + second.TransactionID + "-900-2 900",
		}, w.calls("A1"))
	}, mockserver.WithDialect(mockserver.Live))
}

// A rolling deployment: the old release has no callback for refunds and none for goods, and
// runs first. No fact is lost.
func TestARollingDeploymentLosesNoFact(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.told()
		newer := w.on
		w.on.Goods, w.on.Refunded = nil, nil
		stopOld := w.open().start()
		old := w.m
		c := w.charge(pix(w.order("A1"), 1000))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "R1", Order: "A1", UpTo: 100})
		if err != nil { // the webhook comes first
			w.reaches("A1", "paid "+c.ID+" 1000")
			_, err = w.m.Refund(w.Context(), merchant.RefundParams{ID: "R1", Order: "A1", UpTo: 100})
		}
		require.NoError(w, err)
		// What a newer release adds is left for it, and delays nothing of this one.
		w.exec(`INSERT INTO gateway_facts (key, account, book, stream, subject, record, charge, kind, currency, about, at, month, source, created_at, callback, due_at, attempts, error)
			SELECT 'shop:news', account, book, '', subject, record, charge, 'news', currency, about, at, month, source, created_at, 'news', due_at, 0, ''
			FROM gateway_facts WHERE kind = 'settled'`)
		require.NoError(w, old.Idle(w.Context()))
		assert.Equal(w, []string{"paid " + c.ID + " 1000"}, w.calls("A1"))
		require.NoError(w, w.gw.Transactions.OpenDispute(c.TransactionID))
		w.refresh(c.ID)
		w.eventually("the old release goes on", func() bool { return len(w.calls("A1")) == 2 })

		w.on = newer
		next, err := w.openOn(w.connect(), w.cfg)
		require.NoError(w, err)
		w.m = next
		w.start()
		w.eventually("the new release hears both", func() bool { return len(w.calls("A1")) == 3 })
		require.NoError(w, next.Idle(w.Context()))
		assert.Equal(w, []string{"paid " + c.ID + " 1000", "disputed " + c.ID + " 900", "refunded R1 100"}, w.calls("A1"))
		assert.Empty(w, w.goods("A1"), "paid, and disputed before anyone could be told")
		stopOld()
		assert.Equal(w, 1, w.count(`SELECT COUNT(*) FROM gateway_facts WHERE delivered_at IS NULL`), "that of a release which does not run")
	}, mockserver.WithDialect(mockserver.Live))
}

// A callback that no process has is given up after an hour, and counted.
func TestAFactWithoutACallbackIsGivenUpAndCounted(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		c := w.charge(pix(w.order("A1"), 1000))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.refresh(c.ID)
		stop := w.start()
		require.NoError(w, w.m.Idle(w.Context()))
		h, err := w.m.Health(w.Context())
		require.NoError(w, err)
		assert.Nil(w, h.Skipped)
		assert.Zero(w, h.Callbacks.Waiting, "what waits for another process is not late")
		assert.Equal(w, 1, w.count(`SELECT COUNT(*) FROM gateway_facts WHERE delivered_at IS NULL AND callback = 'goods'`))
		stop()
		w.exec(`UPDATE gateway_facts SET created_at = created_at - 3600000, due_at = due_at - 3600000`)
		w.m, err = w.openOn(w.db, w.cfg)
		require.NoError(w, err)
		w.start()
		w.eventually("it is given up", func() bool {
			h, err := w.m.Health(w.Context())
			require.NoError(w, err)
			return h.Skipped["goods"] == 1 && len(h.Skipped) == 1
		})
		steps, err := w.m.Story(w.Context(), "A1")
		require.NoError(w, err)
		var texts []string
		for _, s := range steps {
			texts = append(texts, s.Text)
		}
		assert.Contains(w, texts, "goods was given up: no process had this callback")
	})
}

// Another transaction holds the order: its goods are told afterwards, and others meanwhile. It
// is no failure of the callback.
func TestGoodsOfALockedOrderWait(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		if w.dialect == database.DialectSQLite {
			w.Skip("SQLite has one writer")
		}
		w.told()
		w.open()
		for _, order := range []string{"A1", "A2"} {
			c := w.charge(pix(w.order(order), 1000))
			require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
			w.refresh(c.ID)
		}
		tx, err := w.begin(w.Context(), w.db, nil)
		require.NoError(w, err)
		_, err = tx.ExecContext(w.Context(), `SELECT 1 FROM gateway_orders WHERE subject = 'order/A1' FOR UPDATE`)
		require.NoError(w, err)
		w.start()
		w.eventually("told", func() bool { return len(w.goods("A2")) == 1 })
		assert.Empty(w, w.goods("A1"))
		require.NoError(w, tx.Rollback())
		w.eventually("told", func() bool { return len(w.goods("A1")) == 1 })
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_facts WHERE stream = 'goods' AND attempts > 0`))
	})
}

// The access of a member: its periods, a planned end, and a payment that went back.
func TestAccessFollowsThePayments(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		var list []merchant.Access
		told := make(chan merchant.Access, 100)
		w.on.Access = func(_ context.Context, _ *txn, a *merchant.Access) error {
			told <- *a
			return nil
		}
		next := func() merchant.Access {
			select {
			case a := <-told:
				list = append(list, a)
				return a
			case <-time.After(time.Minute):
				require.Fail(w, "no access was told", "%v", list)
				return merchant.Access{}
			}
		}
		w.open().start()
		p := merchant.SubscribeParams{ID: "M1", Customer: gateway.CustomerParams{
			Name: "Ana", Email: "ana@example.com", Phone: "11987654321", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		}}
		p.Amount, p.Interval, p.Token = 2990, gateway.IntervalMonth, "pgct_ok_1"
		w.subscribe(p)
		first := next()
		assert.Equal(w, []any{"shop", "M1", gateway.SubscriptionActive, false}, []any{first.Book, first.ID, first.State, first.Ends})
		assert.InDelta(w, 30, time.Until(first.Until).Hours()/24, 2)
		_, err := w.m.CancelSubscription(w.Context(), "M1", "")
		require.NoError(w, err)
		ends := next()
		assert.True(w, ends.Ends)
		assert.True(w, ends.Until.Equal(first.Until), "it was paid until then")
		s, err := w.m.Subscription(w.Context(), "M1")
		require.NoError(w, err)
		require.Len(w, s.Charges, 1)
		_, err = w.m.Refund(w.Context(), merchant.RefundParams{ID: "R1", Charge: s.Charges[0].ID, Full: true})
		require.NoError(w, err)
		back := next()
		assert.True(w, back.Until.Before(first.Until), "its payment went back")
		assert.True(w, s.PaidUntil.Equal(first.Until))
	}, mockserver.WithOpeningBalance(100_000))
}
