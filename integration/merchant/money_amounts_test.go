package merchant_test

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// problemOverpaid is the kind of problem of a charge that was paid more than the order costs.
const problemOverpaid merchant.ProblemKind = "overpaid"

// Fault 7. A gateway that reports no paid_amount: what is left after a refund of a part goes
// back too.
func TestAFullRefundWithoutAPaidAmountRefundsWhatIsLeft(t *testing.T) {
	t.Parallel()
	for shape, rest := range map[string]merchant.RefundParams{
		"zero-paid-amount": {ID: "r2", Full: true}, "no-paid-amount": {ID: "r2", Full: true},
	} {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.patient().open().start()
				require.NoError(w, w.gw.Faults.Add(mockserver.Shape(shape)))
				c := w.charge(pix(w.order("Z1"), 10000))
				require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
				w.reaches("Z1", "paid "+c.ID+" 10000")
				_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "r1", Charge: c.ID, Amount: 3000})
				require.NoError(w, err)
				w.reaches("Z1", "paid "+c.ID+" 10000", "refunded r1 3000")
				p := rest
				p.Charge = c.ID
				_, err = w.m.Refund(w.Context(), p)
				require.NoError(w, err)
				w.reaches("Z1", "paid "+c.ID+" 10000", "refunded r1 3000", "refunded r2 7000")
				w.gw.Faults.Clear()
				tx, err := w.gw.Client().Transactions.Get(w.Context(), c.TransactionID)
				require.NoError(w, err)
				assert.Equal(w, int64(10000), tx.RefundedAmount, "at the gateway")
				assert.Zero(w, w.state("Z1").Left())
			})
		})
	}
}

// Fault 9. The buyer pays 1500 for 1000.
func TestAnOverpaidChargeIsAProblem(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.rewritten(`"paid_amount":1000`, `"paid_amount":1500`)
		w.patient().open().start()
		order := w.order("O1")
		c := w.charge(pix(order, 1000))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.eventually("the order is paid", func() bool { return slices.Contains(w.calls(order), "paid "+c.ID+" 1500") })
		w.overpaid(order, c.ID, 1000, 1500)
	})
}

// Fault 9. The cart became cheaper before its first code was paid.
func TestACartThatBecameCheaperBeforeItWasPaidIsOverpaid(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		order := w.order("O2")
		dear := w.charge(pix(order, 1500))
		cheap := w.charge(pix(order, 1000))
		require.NotEqual(w, dear.ID, cheap.ID)
		require.NoError(w, w.gw.Transactions.Pay(dear.TransactionID))
		w.eventually("the order is paid", func() bool { return slices.Contains(w.calls(order), "paid "+dear.ID+" 1500") })
		w.overpaid(order, dear.ID, 1000, 1500)
	})
}

// overpaid checks that a person hears of an overpaid charge, which says what the order
// wanted and what was paid.
func (w *world) overpaid(order, charge string, requested, paid int64) {
	w.Helper()
	for _, c := range w.state(order).Charges {
		if c.ID == charge {
			assert.Equal(w, []int64{requested, paid}, []int64{c.Requested, c.Paid}, "Requested and Paid")
		}
	}
	assert.Len(w, w.listed(problemOverpaid, charge), 1, "it is a problem as soon as it is booked")
	assert.Len(w, w.problems(), 1)
	assert.Equal(w, 1, w.ships(order))
}

// Fault 9. What is not overpaid.
func TestAChargeThatWasPaidAsRequestedIsNotOverpaid(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		interest := card(w.order("O3"), 1100) // of 1000
		interest.Installments, interest.InterestRate = 3, gateway.Some(10.0)
		grown := w.charge(pix(w.order("O4"), 1000))
		w.charge(pix("O4", 1500))
		again := w.charge(pix("O4", 1000))
		require.Equal(w, grown.ID, again.ID)
		require.NoError(w, w.gw.Transactions.Pay(again.TransactionID))
		w.pays(w.charge(interest))
		w.reaches("O4", "paid "+grown.ID+" 1000")
		w.reaches("O3", "paid shop-O3-1 1100")
		assert.Empty(w, w.problems())
	})
}

// Fault 10. A part is paid, and later all of it: the problem that asked for a decision ends.
func TestAnUnderpaidChargeThatIsPaidInFullIsNoProblemAnyMore(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		order := w.order("V1")
		c := w.charge(pix(order, 1000))
		w.becomes(c.TransactionID, gateway.TransactionPartiallyPaid)
		w.refresh(c.ID)
		p := w.problem()
		require.Equal(w, []any{merchant.ProblemUnderpaid, c.ID}, []any{p.Kind, p.Record})
		require.Equal(w, int64(500), w.state(order).Paid)
		w.becomes(c.TransactionID, gateway.TransactionPaid)
		w.refresh(c.ID)
		w.eventually("the order ships", func() bool { return w.ships(order) == 1 })
		require.Equal(w, int64(1000), w.state(order).Paid)
		assert.Empty(w, w.problems(), "there is nothing left to accept")
		require.ErrorIs(w, w.m.Resolve(w.Context(), p.ID, by(merchant.Accept)), merchant.ErrNotFound)
		assert.Equal(w, 1, w.ships(order))
	}, mockserver.WithDialect(mockserver.Live))
}

// Fault 10. A charge is underpaid and disputed, another charge pays the order, and the
// dispute is won: the order does not need that money.
func TestAnUnderpaidChargeWhoseDisputeIsWonIsPaidAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		order := w.order("V2")
		part := w.charge(pix(order, 400))
		full := w.charge(pix(order, 1000))
		require.NoError(w, w.gw.Transactions.Pay(part.TransactionID))
		w.eventually("it is underpaid", func() bool { return len(w.listed(merchant.ProblemUnderpaid, part.ID)) == 1 })
		w.pass(time.Second)
		require.NoError(w, w.gw.Transactions.OpenDispute(part.TransactionID))
		w.refresh(part.ID)
		require.Equal(w, int64(400), w.state(order).Disputed)
		require.NoError(w, w.gw.Transactions.Pay(full.TransactionID))
		w.eventually("the order is paid", func() bool { return w.ships(order) == 1 })
		w.pass(time.Second)
		require.NoError(w, w.gw.Transactions.WinDispute(part.TransactionID))
		w.refresh(part.ID)
		require.Zero(w, w.state(order).Disputed)
		require.Equal(w, int64(1400), w.state(order).Left())
		w.soon("the order does not need the 400", func() bool { return slices.Contains(w.calls(order), "paid_again "+part.ID+" 400") })
		w.soon("there is nothing left to accept", func() bool { return len(w.listed(merchant.ProblemUnderpaid, part.ID)) == 0 })
		assert.Equal(w, 1, w.ships(order))
	}, mockserver.WithDialect(mockserver.Live))
}

// Fault 10. The same without a dispute, as a gateway that reports the rest later.
func TestAPartPaidChargeIsCompletedByALaterReading(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		var complete atomic.Bool
		w.through(roundTripper(func(r *http.Request) (*http.Response, error) {
			if complete.Load() {
				return w.gw.Transport().RoundTrip(r)
			}
			return replaced(w.gw.Transport(), r, "/v2/transactions/", `"paid_amount":1000`, `"paid_amount":400`)
		}))
		w.patient().open().start()
		order := w.order("V3")
		c := w.charge(pix(order, 1000))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		p := w.problem()
		require.Equal(w, merchant.ProblemUnderpaid, p.Kind)
		complete.Store(true)
		w.refresh(c.ID)
		w.eventually("the order ships", func() bool { return w.ships(order) == 1 })
		assert.Empty(w, w.problems())
	})
}
