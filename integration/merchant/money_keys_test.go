package merchant_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// Fault 18. A refund, a payout, a subscription and an order have one ID. Each has its own
// problems and facts: none hides that of another one.
func TestRecordsWithOneIDHaveTheirOwnProblems(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.reports().patient().open()
		w.order("D1")
		w.pays(w.charge(pix("D1", 900)))
		require.NoError(w, w.m.Refresh(w.Context(), "shop-D1-1"))
		_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "D1", Order: "D1", Amount: 100})
		require.NoError(w, err)
		p, err := w.m.Payout(w.Context(), bill("D1", "D1", 300))
		require.NoError(w, err)
		_, err = w.m.Subscribe(w.Context(), w.member1("D1"))
		require.NoError(w, err)
		second := w.charge(pix(w.order("D2"), 800))

		w.handledAll()

		// Then the responses were lost, and a person must decide about each.
		for table, id := range map[string]string{
			"gateway_charges": second.ID, "gateway_refunds": "D1", "gateway_payouts": "D1", "gateway_subscriptions": "D1",
		} {
			w.records(table, id, func(r map[string]any) {
				if books, ok := r["Books"].(map[string]any); ok {
					r = books
				}
				for _, known := range []string{"TransactionID", "SubscriptionID", "TransferID", "Status"} {
					delete(r, known)
				}
				r["Operation"], r["State"] = "sent", "unknown"
			})
		}
		for _, key := range []string{second.ID, "D1", p.Ref, "shop-D1"} {
			w.exec(`UPDATE gateway_operations SET state = 'ambiguous' WHERE key = ? AND kind <> 'customers.create'`, key)
		}
		for _, id := range []string{"shop-D1-1", second.ID, "D1"} {
			require.NoError(w, w.m.Refresh(w.Context(), id))
		}
		records := w.strings(`SELECT record FROM gateway_problems WHERE kind = 'ambiguous'`)
		slices.Sort(records)
		assert.Equal(w, []string{"D1", "D1", "D1", second.ID}, records)
		w.start()
		w.soon("each problem is reported once", func() bool {
			return w.count(`SELECT COUNT(*) FROM gateway_facts WHERE delivered_at IS NULL AND callback = 'problem'`) == 0
		})
		reported, listed := w.reportedProblems(), w.ids()
		slices.Sort(reported)
		slices.Sort(listed)
		assert.Len(w, listed, 4)
		assert.Equal(w, listed, reported, "each by the ID with which a person resolves it")
	}, mockserver.WithOpeningBalance(1_000_000))
}
