package merchant_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// backup copies the database while it is used, and returns the copy's data source.
func (w *world) backup() string {
	w.Helper()
	file := filepath.Join(w.TempDir(), "backup.db")
	w.exec(`VACUUM INTO '` + file + `'`)
	_, settings, _ := strings.Cut(w.name, "?")
	return "file:" + file + "?" + settings
}

// restore opens the merchant's side on a backup. The gateway sends none of the webhooks
// that it has sent before again.
func (w *world) restore(backup string) {
	w.Helper()
	w.name = backup
	w.db = w.connect()
	w.reader = w.db
	var err error
	w.m, err = w.openOn(w.db, w.cfg)
	require.NoError(w, err)
}

// moved is the money that the gateway has moved.
func (w *world) moved() (list []string) {
	w.Helper()
	for _, tx := range w.made("shop-") {
		list = append(list, fmt.Sprintf("%s paid %d refunded %d", tx.ExternalRef, tx.PaidAmount, tx.RefundedAmount))
	}
	for _, out := range w.transfers() {
		list = append(list, fmt.Sprintf("%s transferred %d", out.ExternalRef, out.Amount))
	}
	return list
}

// refund stores a refund, which a process that runs sends.
func (w *world) refund(p merchant.RefundParams) {
	w.Helper()
	w.tx(func(tx *txn) error {
		_, err := w.m.RefundTx(w.Context(), tx, p)
		return err
	})
}

// A shop that is restored from a backup sends the requests again that the gateway applied
// since, and moves nothing twice. Its books catch up.
func TestAShopIsRestoredFromABackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite, mockserver.WithOpeningBalance(1_000_000))
	w.on.PaidAgain, w.cfg.SecondPayment = nil, merchant.RefundSecondPayment
	w.patient().open()
	stop := w.start()
	for _, id := range []string{"upto", "full", "lost-refund", "twice"} {
		w.sold(id, 1000)
		w.reaches(id, "paid shop-"+id+"-1 1000")
	}
	pending := w.charge(pix(w.order("pending"), 1000))
	stop()
	w.refund(merchant.RefundParams{ID: "r-upto", Order: "upto", UpTo: 300})
	w.refund(merchant.RefundParams{ID: "r-full", Order: "full", Full: true})
	w.stored(pix(w.order("waiting"), 1000))
	w.tx(func(tx *txn) error {
		_, err := w.m.PayoutTx(w.Context(), tx, bill("bill", "", 5000))
		return err
	})
	backup := w.backup()

	stop = w.open().start()
	w.pays(pending)
	w.eventually("the charge is sent", func() bool { return w.state("waiting").Charges[0].State == merchant.Pending })
	w.pays(w.state("waiting").Charges[0])
	w.refund(merchant.RefundParams{ID: "r-lost", Order: "lost-refund", UpTo: 400})
	w.sold("lost", 700)
	w.eventually("the payout is sent", func() bool { return len(w.transfers()) == 1 })
	w.settle(w.transfers()[0].ID)
	before := make(map[string]*merchant.Order)
	known := []string{"pending", "upto", "full", "waiting", "lost-refund", "twice"}
	for id, calls := range map[string]int{"pending": 1, "waiting": 1, "upto": 2, "full": 2, "lost-refund": 2} {
		w.eventually("all is called back for "+id, func() bool { return len(w.calls(id)) == calls })
	}
	require.NoError(t, w.m.Idle(t.Context()))
	stop()
	for _, id := range known {
		before[id] = w.state(id)
	}
	moved := w.moved()

	w.restore(backup)
	require.NoError(t, w.m.Reconcile(t.Context()))
	assert.Equal(t, moved, w.moved(), "to reconcile sends nothing")
	assert.Equal(t, before["pending"].Left(), w.state("pending").Left())
	assert.Equal(t, before["lost-refund"].Left(), w.state("lost-refund").Left())
	stop = w.start()
	require.NoError(t, w.m.Idle(t.Context()))
	stop()
	assert.Equal(t, moved, w.moved(), "nothing is moved twice")
	for _, id := range known {
		after := w.state(id)
		assert.Equal(t, before[id].Left(), after.Left(), id)
		assert.Equal(t, before[id].Refunded, after.Refunded, id)
		assert.Equal(t, before[id].Net(), after.Net(), id)
		assert.Equal(t, 1, w.ships(id), id)
	}
	out, err := w.m.Payout(t.Context(), bill("bill", "", 5000))
	require.NoError(t, err)
	assert.Equal(t, merchant.Paid, out.State)
	assert.Equal(t, []string{"paid shop-lost-refund-1 1000", "refunded  400"}, w.calls("lost-refund"), "the refund is found, without its ID")
	assert.Empty(t, w.problems())

	// The order that was made after the backup has no record: the comparison names it.
	_, differences, err := w.m.CheckMonth(t.Context(), "shop", time.Now().UTC().Format("2006-01"))
	require.NoError(t, err)
	require.Len(t, differences, 1)
	assert.Equal(t, merchant.DiffMissingHere, differences[0].Kind)
	assert.Equal(t, int64(700), differences[0].There)
}

// A refund of an Amount that waited in the backup, and was made after it, is not made
// again: the gateway shows that more was refunded than the backup knows of. So it is even
// if the shop runs before it has compared anything.
func TestARefundOfAnAmountThatWaitedInTheBackup(t *testing.T) {
	t.Parallel()
	for _, compared := range []bool{false, true} {
		t.Run(fmt.Sprint("compared before ", compared), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sqlite)
			w.patient().open()
			stop := w.start()
			w.sold("A1", 1000)
			w.reaches("A1", "paid shop-A1-1 1000")
			stop()
			w.refund(merchant.RefundParams{ID: "r1", Order: "A1", Amount: 300})
			w.refund(merchant.RefundParams{ID: "r2", Order: "A1", Amount: 300})
			backup := w.backup()
			stop = w.open().start()
			w.eventually("the refunds are made", func() bool { return len(w.calls("A1")) == 3 })
			stop()
			moved := w.moved()

			w.restore(backup)
			if compared {
				require.NoError(t, w.m.Reconcile(t.Context()))
				assert.Equal(t, int64(600), w.state("A1").Refunded, "it looks like someone else's")
			}
			stop = w.start()
			require.NoError(t, w.m.Idle(t.Context()))
			require.NoError(t, w.m.Refresh(t.Context(), "shop-A1-1"))
			require.NoError(t, w.m.Idle(t.Context()))
			stop()
			assert.Equal(t, moved, w.moved())
			assert.Equal(t, int64(600), w.state("A1").Refunded)
			for _, id := range []string{"r1", "r2"} {
				r, err := w.m.Refund(t.Context(), merchant.RefundParams{ID: id, Order: "A1", Amount: 300})
				require.NoError(t, err)
				assert.Equal(t, merchant.Rejected, r.State)
				assert.Contains(t, r.Reason, "refunded_amount is 600")
			}
			assert.ElementsMatch(t, []string{"paid shop-A1-1 1000", "refunded  600", "refund_rejected r1 0", "refund_rejected r2 0"}, w.calls("A1"))
		})
	}
}

// The reference of a charge is made of the order's ID. If a database counts orders, a
// restored one counts from the backup again, and an order gets the payment of a lost one,
// because the gateway has only one transaction for each reference: let the count begin
// above the lost IDs.
func TestAnOrderIDThatIsUsedAgainAfterARestoreGetsTheEarlierPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite)
	w.patient().open()
	backup := w.backup()
	stop := w.start()
	lost := w.sold("17", 1000)
	stop()
	w.restore(backup)
	stop = w.start()
	c := w.charge(pix(w.order("17"), 1000))
	assert.Equal(t, lost.TransactionID, c.TransactionID)
	assert.Equal(t, int64(1000), c.Paid)
	next := w.charge(pix(w.order("1000017"), 1000))
	assert.NotEqual(t, lost.TransactionID, next.TransactionID)
	assert.Zero(t, next.Paid)
	stop()
}
