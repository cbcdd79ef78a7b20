package merchant_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/merchant"
)

// The ID of a refund or payout belongs to a record of another account. The caller takes the
// error for "it is done already", and commits: nothing may be sent for it.
func TestAnIDInUseSendsNothingAlthoughTheCallerCommits(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.two()
		w.order("U1")
		w.order("U2")
		for account, key := range map[string]string{"shop": w.gw.Key(), "other": "sk_test_other"} {
			order := map[string]string{"shop": "U1", "other": "U2"}[account]
			c := w.charge(on(account, pix(order, 900)))
			require.NoError(w, w.gw.Account(key).Transactions.Pay(c.TransactionID))
			require.NoError(w, w.m.Refresh(w.Context(), c.ID))
		}
		_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "r1", Order: "U1", Amount: 100})
		require.NoError(w, err)
		first := bill("b", "U1", 1000)
		first.Account = "shop"
		_, err = w.m.Payout(w.Context(), first)
		require.NoError(w, err)

		requests := func() int { return w.count(`SELECT COUNT(*) FROM gateway_operations WHERE account = 'other'`) }
		before := requests()
		tx, err := w.begin(w.Context(), w.db, nil)
		require.NoError(w, err)
		_, err = w.m.RefundTx(w.Context(), tx, merchant.RefundParams{ID: "r1", Order: "U2", Full: true})
		require.ErrorIs(w, err, merchant.ErrReused)
		second := bill("b", "U2", 1000)
		second.Account = "other"
		_, err = w.m.PayoutTx(w.Context(), tx, second)
		require.ErrorIs(w, err, merchant.ErrReused)
		require.NoError(w, tx.Commit())
		assert.Equal(w, before, requests(), "no request is stored")
		assert.Empty(w, w.state("U2").Refunds)
		assert.Equal(w, int64(900), w.state("U2").Left())
	})
}
