package merchant_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

func TestAnOrderIsPaidShippedAndRefunded(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		order := w.order("A17")
		c := w.charge(pix(order, 5000))
		assert.Equal(w, merchant.Pending, c.State)
		assert.Equal(w, "shop-A17-1", c.ID)
		assert.NotEmpty(w, c.PixCode)
		assert.Contains(w, string(c.QR()), "<svg")
		again := w.charge(pix(order, 5000))
		assert.Equal(w, c.TransactionID, again.TransactionID, "a reload of the page makes no second charge")

		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.reaches(order, "paid shop-A17-1 5000")
		assert.Equal(w, 1, w.ships(order))
		o := w.state(order)
		assert.True(w, o.Settled)
		assert.Equal(w, int64(5000), o.Paid)
		assert.Equal(w, merchant.Paid, o.Current().State)
		assert.NotEmpty(w, o.Current().EndToEndID)
		assert.Equal(w, merchant.Paid, w.charge(pix(order, 5000)).State, "an order that is paid is not charged again")

		r, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "return-1", Order: order, UpTo: 2000, Reason: "damaged"})
		require.NoError(w, err)
		assert.Equal(w, merchant.Done, r.State)
		assert.Equal(w, int64(2000), r.Amount)
		_, err = w.m.Refund(w.Context(), merchant.RefundParams{ID: "return-1", Order: order, UpTo: 2001, Reason: "damaged"})
		require.ErrorIs(w, err, merchant.ErrReused)
		_, err = w.m.Refund(w.Context(), merchant.RefundParams{ID: "return-2", Order: order, Amount: 3001})
		require.ErrorIs(w, err, merchant.ErrLeft)
		_, err = w.m.Refund(w.Context(), merchant.RefundParams{ID: "return-3", Order: order, Full: true})
		require.NoError(w, err)
		w.reaches(order, "paid shop-A17-1 5000", "refunded return-1 2000", "refunded return-3 3000")
		o = w.state(order)
		assert.Zero(w, o.Left())
		assert.Equal(w, merchant.Refunded, o.Charges[0].State)
		problems, err := w.m.Problems(w.Context())
		require.NoError(w, err)
		assert.Empty(w, problems)
	})
}

// The buyer pays the second charge of an order, and then the first one too.
func TestTheSecondPaymentOfAnOrderIsReported(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.on.PaidAgain, w.cfg.SecondPayment = nil, merchant.RefundSecondPayment
		w.open().start()
		order := w.order("B1")
		first := w.charge(pix(order, 700))
		p := pix(order, 700)
		p.Method, p.Token = gateway.CreditCard, "pgct_test_visa"
		second, err := w.m.Charge(w.Context(), p)
		require.NoError(w, err)
		require.Equal(w, "shop-B1-2", second.ID)
		if second.State != merchant.Paid {
			require.NoError(w, w.gw.Transactions.Pay(second.TransactionID))
		}
		w.reaches(order, "paid shop-B1-2 700")
		require.NoError(w, w.gw.Transactions.Pay(first.TransactionID))
		w.eventually("the second payment is refunded", func() bool { return w.state(order).Refunded == 700 })
		assert.Equal(w, 1, w.ships(order))
		o := w.state(order)
		assert.Equal(w, int64(700), o.Left())
		assert.Equal(w, "shop-B1-2", o.Current().ID)
		w.reaches(order, "paid shop-B1-2 700", "refunded again-"+first.TransactionID+"-700 700")
	})
}

// A transaction that is rolled back sends nothing; one that is committed is sent by Run.
func TestAChargeBelongsToItsTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		order := w.order("C1")
		tx, err := w.begin(w.Context(), w.db, nil)
		require.NoError(w, err)
		c, err := w.m.ChargeTx(w.Context(), tx, pix(order, 100))
		require.NoError(w, err)
		assert.Equal(w, merchant.New, c.State)
		require.NoError(w, tx.Rollback())
		o := w.state(order)
		assert.Empty(w, o.Charges)

		tx, err = w.begin(w.Context(), w.db, nil)
		require.NoError(w, err)
		_, err = w.m.ChargeTx(w.Context(), tx, pix(order, 200))
		require.NoError(w, err)
		require.NoError(w, tx.Commit())
		w.eventually("Run sends the charge", func() bool { return w.state(order).Charges[0].State == merchant.Pending })
		list, err := gateway.Collect(w.gw.Client().Transactions.All(w.Context(), gateway.TransactionListParams{}), 10)
		require.NoError(w, err)
		require.Len(w, list, 1)
		assert.Equal(w, int64(200), list[0].Amount)
	})
}

// A callback that fails or panics is called again, and the books don't wait for it.
func TestACallbackThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		order := w.order("D1")
		w.fails("paid", 2)
		w.start()
		c := w.charge(pix(order, 300))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.eventually("the payment is booked", func() bool { return w.state(order).Paid == 300 })
		r, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "r1", Charge: c.ID, Full: true})
		require.NoError(w, err)
		assert.Equal(w, merchant.Done, r.State)
		w.reaches(order, "paid shop-D1-1 300", "refunded r1 300")
	})
}

// The response to a create is lost: the charge is unknown, and then found.
func TestAnUnknownOutcomeIsAState(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		order := w.order("E1")
		w.gw.Webhooks.Hold()
		require.NoError(w, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.create").Times(1)))
		c := w.charge(pix(order, 400))
		assert.Equal(w, merchant.Unknown, c.State)
		assert.Equal(w, merchant.Unknown, w.charge(pix(order, 400)).State, "a reload shows the same charge")
		other := pix(order, 500)
		_, err := w.m.Charge(w.Context(), other)
		require.ErrorIs(w, err, merchant.ErrUnknown)
		w.start()
		w.eventually("the outcome is found", func() bool { return w.state(order).Charges[0].State == merchant.Pending })
		list, err := gateway.Collect(w.gw.Client().Transactions.All(w.Context(), gateway.TransactionListParams{}), 10)
		require.NoError(w, err)
		assert.Len(w, list, 1)
	})
}

// An order that is closed takes no more money.
func TestAClosedOrderIsPaidAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.on.PaidAgain = nil
		w.open().start()
		order := w.order("F1")
		c := w.charge(pix(order, 600))
		w.tx(func(tx *txn) error { return w.m.CloseOrderTx(w.Context(), tx, order) })
		_, err := w.m.Charge(w.Context(), pix(order, 600))
		require.ErrorIs(w, err, merchant.ErrState)
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.reaches(order, "problem paid_again shop-F1-1 0")
		assert.Zero(w, w.ships(order))
		problems, err := w.m.Problems(w.Context())
		require.NoError(w, err)
		require.Len(w, problems, 1)
		w.resolve(problems[0], by(merchant.Dismiss))
		w.ends(problems[0])
	})
}

// A cart that grew after its first Pix code was shown is not paid by that code.
func TestAnEarlierChargeOfALowerAmountDoesNotPayTheOrder(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		order := w.order("G1")
		cheap := w.charge(pix(order, 100))
		w.charge(pix(order, 9900))
		require.NoError(w, w.gw.Transactions.Pay(cheap.TransactionID))
		w.reaches(order, "problem underpaid shop-G1-1 0")
		assert.Zero(w, w.ships(order))
		assert.Equal(w, merchant.Underpaid, w.state(order).Charges[0].State)
	})
}

// The cart grows and shrinks again: what the buyer is shown last pays the order.
func TestACartThatGrowsAndShrinksIsPaidByWhatIsShown(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		order := w.order("I1")
		first := w.charge(pix(order, 100))
		second := w.charge(pix(order, 200))
		require.NotEqual(w, first.ID, second.ID)
		assert.Equal(w, second.ID, w.state(order).Current().ID)
		again := w.charge(pix(order, 100))
		assert.Equal(w, first.ID, again.ID)
		assert.Equal(w, int64(100), again.Requested)
		assert.Equal(w, first.ID, w.state(order).Current().ID, "the page shows what the buyer chose last")
		require.NoError(w, w.gw.Transactions.Pay(first.TransactionID))
		w.reaches(order, "paid "+first.ID+" 100")
		assert.Equal(w, 1, w.ships(order))
	})
}

// A payment made before the cart grew does not pay the order; once another charge does, it
// is not needed.
func TestAPaymentBeforeTheCartGrewIsPaidAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.on.PaidAgain, w.cfg.SecondPayment = nil, merchant.RefundSecondPayment
		w.open().start()
		order := w.order("J2")
		w.gw.Webhooks.Hold()
		early := w.charge(pix(order, 100))
		require.NoError(w, w.gw.Transactions.Pay(early.TransactionID))
		full := w.charge(pix(order, 200))
		require.NoError(w, w.gw.Webhooks.Release())
		w.eventually("the early payment is booked", func() bool { return w.state(order).Paid == 100 })
		require.NoError(w, w.gw.Transactions.Pay(full.TransactionID))
		w.eventually("the early payment goes back", func() bool { return w.state(order).Refunded == 100 })
		assert.Equal(w, 1, w.ships(order))
		assert.Equal(w, int64(200), w.state(order).Left())
		problems, err := w.m.Problems(w.Context())
		require.NoError(w, err)
		assert.Empty(w, problems)
	})
}

// Without a callback for it, a refund that is rejected is a problem: the money of a buyer
// who paid twice must not stay unnoticed.
func TestARejectedRefundIsAProblem(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.on.PaidAgain, w.on.RefundRejected, w.cfg.SecondPayment = nil, nil, merchant.RefundSecondPayment
		w.open().start()
		order := w.order("K1")
		first, second := w.charge(pix(order, 100)), w.charge(pix(order, 101))
		require.NoError(w, w.gw.Transactions.Pay(second.TransactionID))
		w.eventually("the order is paid", func() bool { return w.state(order).Settled })
		require.NoError(w, w.gw.Faults.Add(mockserver.Status(422).On("transactions.refund")))
		require.NoError(w, w.gw.Transactions.Pay(first.TransactionID))
		w.eventually("a person is told", func() bool {
			problems, err := w.m.Problems(w.Context())
			require.NoError(w, err)
			return len(problems) == 1 && problems[0].Kind == merchant.ProblemRefundRejected
		})
	})
}

// Another system of the account has used the references of a charge and of a payout.
func TestWhatAnotherSystemMadeWithAReferenceIsNotBooked(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		order := w.order("H1")
		client := w.gw.Client()
		foreign := pix(order, 100).TransactionParams
		foreign.ExternalRef = "shop-H1-1"
		taken, err := client.Transactions.Create(w.Context(), foreign)
		require.NoError(w, err)
		transfer := gateway.TransferParams{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "a@example.com", Amount: 100, ExternalRef: "shop-bill-payout"}
		_, err = client.Transfers.Create(w.Context(), transfer)
		require.NoError(w, err)

		c := w.charge(pix(order, 5000))
		require.NoError(w, w.gw.Transactions.Pay(taken.ID))
		transfer.Amount, transfer.ExternalRef = 900, ""
		_, err = w.m.Payout(w.Context(), merchant.PayoutParams{ID: "bill", Order: order, TransferParams: transfer})
		require.NoError(w, err)
		require.NoError(w, w.gw.Wait(w.Context()))
		require.NoError(w, w.m.Idle(w.Context()))
		o := w.state(order)
		assert.Zero(w, o.Paid, c.State)
		assert.Zero(w, o.PaidOut)
		assert.Zero(w, w.ships(order))
	}, mockserver.WithOpeningBalance(1_000_000))
}

// tx runs a transaction of the shop.
func (w *world) tx(run func(tx *txn) error) {
	w.Helper()
	tx, err := w.begin(w.Context(), w.db, nil)
	require.NoError(w, err)
	defer func() { _ = tx.Rollback() }()
	require.NoError(w, run(tx))
	require.NoError(w, tx.Commit())
}
