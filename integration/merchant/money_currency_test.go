package merchant_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// dollars describes a charge in US dollars.
func dollars(order string, amount int64) merchant.ChargeParams {
	p := card(order, amount)
	p.Currency = gateway.USD
	return p
}

// Fault 8. An order's sums are in one currency: that of what was asked for first, whatever
// became of it.
func TestAnOrderHasOneCurrency(t *testing.T) {
	t.Parallel()
	refused := func(order string) merchant.ChargeParams {
		p := dollars(order, 900)
		p.Token = "pgct_refused_1"
		return p
	}
	for name, first := range map[string]func(w *world){
		"a charge that is open": func(w *world) { w.charge(dollars("C1", 5000)) },
		"a charge that was paid": func(w *world) {
			w.pays(w.charge(dollars("C1", 5000)))
			w.eventually("the payment is booked", func() bool { return w.state("C1").Paid == 5000 })
		},
		"a charge that failed":       func(w *world) { w.charge(refused("C1")) },
		"a charge that was not sent": func(w *world) { w.stored(dollars("C1", 5000)) },
		"a charge that was withdrawn": func(w *world) {
			w.stored(dollars("C1", 5000))
			w.stored(dollars("C1", 6000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.patient().open()
				w.order("C1")
				first(w)
				before := w.state("C1")
				require.NotEmpty(w, before.Charges)
				rejected := func(err error) {
					w.Helper()
					require.ErrorIs(w, err, merchant.ErrCurrency)
					require.ErrorContains(w, err, "order C1 is in USD, and BRL is asked for")
					assert.Equal(w, before, w.state("C1"), "nothing is stored")
				}
				requests := w.count(`SELECT COUNT(*) FROM gateway_operations`)
				c, err := w.m.Charge(w.Context(), pix("C1", 5000))
				rejected(err)
				assert.Nil(w, c)
				_, err = w.m.Payout(w.Context(), bill("b", "C1", 1000))
				rejected(err)
				tx, err := w.begin(w.Context(), w.db, nil)
				require.NoError(w, err)
				_, err = w.m.ChargeTx(w.Context(), tx, pix("C1", 5000))
				require.ErrorIs(w, err, merchant.ErrCurrency)
				_, err = w.m.PayoutTx(w.Context(), tx, bill("b", "C1", 1000))
				require.ErrorIs(w, err, merchant.ErrCurrency)
				require.NoError(w, tx.Commit(), "it is still usable")
				rejected(merchantError(w, "C1"))
				assert.Equal(w, requests, w.count(`SELECT COUNT(*) FROM gateway_operations`))
				_, err = w.m.PayoutByID(w.Context(), "b")
				require.ErrorIs(w, err, merchant.ErrNotFound)

				_, err = w.m.Payout(w.Context(), bill("alone", "", 1000))
				require.NoError(w, err, "it belongs to no order")
			}, mockserver.WithOpeningBalance(1_000_000))
		})
	}
}

// merchantError charges an order in reais.
func merchantError(w *world, order string) error {
	w.Helper()
	_, err := w.m.Charge(w.Context(), pix(order, 100))
	return err
}

// A payout that comes first decides too, as does a charge without a currency.
func TestAPayoutSetsTheCurrencyOfItsOrder(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open()
		w.order("P1")
		w.order("P2")
		_, err := w.m.Payout(w.Context(), bill("b", "P1", 1000))
		require.NoError(w, err)
		_, err = w.m.Charge(w.Context(), dollars("P1", 5000))
		require.ErrorIs(w, err, merchant.ErrCurrency)
		require.ErrorContains(w, err, "order P1 is in BRL, and USD is asked for")
		assert.Empty(w, w.state("P1").Charges)
		w.charge(pix("P1", 5000))

		w.charge(pix("P2", 5000))
		_, err = w.m.Charge(w.Context(), dollars("P2", 5000))
		require.ErrorIs(w, err, merchant.ErrCurrency)
		assert.Equal(w, gateway.BRL, w.state("P2").Currency)
	}, mockserver.WithOpeningBalance(1_000_000))
}

// The gateway may book a payment in another currency than was asked for: that is a problem,
// and the order keeps its currency.
func TestAPaymentInAnotherCurrencyChangesNoOrder(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.rewritten(`"currency":"BRL"`, `"currency":"USD"`)
		w.patient().open()
		w.order("G1")
		c, err := w.m.Charge(w.Context(), pix("G1", 5000))
		require.NoError(w, err)
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		require.NoError(w, w.m.Refresh(w.Context(), c.ID))
		o, err := w.m.Order(w.Context(), "G1")
		require.NoError(w, err)
		assert.Equal(w, int64(5000), o.Charges[0].Paid)
		assert.Equal(w, gateway.BRL, o.Currency)
		assert.Equal(w, gateway.USD, o.Charges[0].Currency)
		assert.Zero(w, o.Paid)
		assert.NotEmpty(w, w.problems())
		_, err = w.m.Charge(w.Context(), dollars("G1", 5000))
		require.ErrorIs(w, err, merchant.ErrCurrency, "what was asked for decides")
	})
}
