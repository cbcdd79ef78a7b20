package merchant_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// A mock's clock begins where it was told to, so it is far from that of the database. A shop's tests
// need not set it: what is paid, refunded, disputed, sold by link and paid out is booked.
func TestAMockOfAnotherTime(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]time.Time{
		"two years behind": time.Now().AddDate(-2, 0, 0),
		"two years ahead":  time.Now().AddDate(2, 0, 0),
		"the mock's own":   mockserver.Run(t).Clock.Now(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.cfg.SendTimeout, w.cfg.SettleAfter = time.Second, 2*time.Second
				w.linked().members().open().start()
				c := w.paysWith(pix("A1", 1000))
				later := func() { // or updated_at does not move, and the change happened when it was read
					require.NoError(w, w.gw.Clock.Advance(time.Second))
				}
				later()
				_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "r1", Charge: c.ID, Amount: 300})
				require.NoError(w, err)
				w.soon("the refund is booked", func() bool { return w.state("A1").Refunded == 300 })

				// A dispute of a Pix has no webhook.
				disputed := w.paysWith(pix("A2", 700))
				later()
				require.NoError(w, w.gw.Transactions.OpenDispute(disputed.TransactionID))
				require.NoError(w, w.m.Reconcile(w.Context()))
				assert.Equal(w, int64(700), w.state("A2").Disputed)

				// The transaction of a response that is lost is found, and nothing is charged twice.
				require.NoError(w, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.create").Times(1)))
				order := w.order("A3")
				w.charge(pix(order, 500))
				w.soon("the charge is found", func() bool { return w.state(order).Charges[0].TransactionID != "" })
				assert.Len(w, w.state(order).Charges, 1)

				// Whether a sale by link is a subscription's charge is known after SettleAfter.
				w.subscribe(w.member("M1", "pgct_ok_1"))
				w.soon("the first period is paid", func() bool { return w.subscription("M1").Order.Paid == 2990 })
				sale := w.buy(w.link(mug("mug-1", 1500)))
				w.soon("the sale is booked", func() bool {
					hits, err := w.m.Find(w.Context(), sale)
					require.NoError(w, err)
					return len(hits) > 0
				})
				out := w.sent(bill("b1", "", 5000))
				require.Equal(w, merchant.Pending, out.State, out.Reason)
				w.settle(out.TransferID)
				w.soon("the payout is paid", func() bool {
					p, err := w.m.PayoutByID(w.Context(), "b1")
					require.NoError(w, err)
					return p.State == merchant.Paid
				})

				// The entries are in the month of the mock's clock.
				s, err := w.m.Month(w.Context(), "shop", w.gw.Clock.Now().UTC().Format("2006-01"))
				require.NoError(w, err)
				mugs := w.salePaid(sale)
				assert.Equal(w, []int64{1000 + 700 + 2990 + mugs, 300, 700, 5000}, []int64{s.Paid, s.Refunded, s.Disputed, s.PaidOut})
				_, differences, err := w.m.CheckMonth(w.Context(), "shop", s.Month)
				require.NoError(w, err)
				assert.Empty(w, differences)
				assert.Empty(w, w.problems())
			}, mockserver.WithStart(start), mockserver.WithDialect(mockserver.Live), mockserver.WithOpeningBalance(1_000_000))
		})
	}
}

// salePaid returns what was paid for a sale by link.
func (w *world) salePaid(transaction string) int64 {
	w.Helper()
	r, err := w.m.Record(w.Context(), "", "charge", transaction)
	require.NoError(w, err)
	return r.Order.Paid
}
