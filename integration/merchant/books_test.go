package merchant_test

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// month returns the statement of a month of the account shop.
func (w *world) month(month string) *merchant.Statement {
	w.Helper()
	s, err := w.m.Month(w.Context(), "shop", month)
	require.NoError(w, err)
	return s
}

// sold sells an order, which is paid in full.
func (w *world) sold(id string, amount int64) *merchant.Charge {
	w.Helper()
	return w.paysWith(pix(id, amount))
}

func (w *world) paysWith(p merchant.ChargeParams) *merchant.Charge {
	w.Helper()
	id, amount := w.order(p.Order), p.Amount
	c := w.charge(p)
	if c.State != merchant.Paid {
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
	}
	w.eventually("the payment is booked", func() bool { return w.state(id).Paid == amount })
	return w.state(id).Charges[0]
}

// An entry belongs to the month in which it happened at the gateway, in the account's
// zone.
func TestAStatementIsTheSumOfItsMonth(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		zone, err := time.LoadLocation("America/Sao_Paulo")
		require.NoError(w, err)
		w.cfg.Accounts[0].Zone = zone
		w.patient().open().start()
		first := w.sold("M1", 5000) // still in November there
		require.NoError(w, w.gw.Clock.AdvanceTo(time.Date(2026, 12, 1, 3, 30, 0, 0, time.UTC)))
		second := w.sold("M2", 700)
		_, err = w.m.Refund(w.Context(), merchant.RefundParams{ID: "r1", Charge: first.ID, UpTo: 2000})
		require.NoError(w, err)
		w.eventually("the refund is booked", func() bool { return w.state("M1").Refunded == 2000 })

		november := w.month("2026-11")
		assert.Equal(w, &merchant.Statement{
			Account: "shop", Month: "2026-11", Currency: gateway.BRL, Paid: 5000, Fee: first.Fee, Closing: 5000 - first.Fee,
		}, november)
		closing := november.Closing + 700 - second.Fee - 2000
		december := &merchant.Statement{
			Account: "shop", Month: "2026-12", Currency: gateway.BRL, Opening: november.Closing, Paid: 700, Fee: second.Fee, Refunded: 2000, Closing: closing,
		}
		assert.Equal(w, december, w.month("2026-12"))
		assert.Equal(w, &merchant.Statement{Account: "shop", Month: "2027-01", Currency: gateway.BRL, Opening: closing, Closing: closing}, w.month("2027-01"))
		assert.Equal(w, &merchant.Statement{Account: "shop", Month: "2026-10", Currency: gateway.BRL}, w.month("2026-10"))
		assert.Equal(w, closing, w.state("M1").Net()+w.state("M2").Net())

		for _, month := range []string{"2026-11", "2026-12"} {
			s, differences, err := w.m.CheckMonth(w.Context(), "", month)
			require.NoError(w, err)
			assert.Equal(w, w.month(month), s)
			assert.Empty(w, differences)
		}
		for _, month := range []string{"", "2026", "2026-13", "2026-11-01", "11-2026"} {
			_, err := w.m.Month(w.Context(), "shop", month)
			require.ErrorIs(w, err, gateway.ErrValidation, month)
			_, _, err = w.m.CheckMonth(w.Context(), "shop", month)
			require.ErrorIs(w, err, gateway.ErrValidation, month)
		}
		_, err = w.m.Month(w.Context(), "other", "2026-11")
		require.ErrorIs(w, err, merchant.ErrAccount)
	}, mockserver.WithStart(time.Date(2026, 12, 1, 2, 30, 0, 0, time.UTC)))
}

func TestMoneyInAnotherCurrencyHasItsOwnStatement(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		c := w.sold("X1", 500)
		month := time.Now().UTC().Format("2006-01")
		s := w.month(month)
		w.exec(`INSERT INTO gateway_facts (key, account, book, stream, subject, record, charge, kind, amount, currency, about, at, month, source, created_at, callback, delivered_at, due_at, attempts, error)
			SELECT 'usd', account, book, stream, subject, record, charge, kind, 900, 'USD', about, at, month, source, created_at, callback, delivered_at, due_at, attempts, error
			FROM gateway_facts WHERE record = ? AND kind = 'paid'`, c.ID)
		s.Others = []*merchant.Statement{{Account: "shop", Month: month, Currency: gateway.USD, Paid: 900, Closing: 900}}
		assert.Equal(w, s, w.month(month))
	})
}

func TestAnAdjustmentIsAnEntry(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		w.sold("J1", 5000)
		before := w.state("J1")
		require.NoError(w, w.m.Adjust(w.Context(), merchant.AdjustParams{ID: "k1", Order: "J1", Amount: -75, By: "Rui", Why: "the fee of the contract"}))
		require.NoError(w, w.m.Adjust(w.Context(), merchant.AdjustParams{ID: "k2", Order: "J1", Amount: 5, By: "Rui", Why: "rounding"}))
		o := w.state("J1") // and the sum of its facts
		assert.Equal(w, int64(-70), o.Adjusted)
		assert.Equal(w, before.Net()-70, o.Net())
		assert.Equal(w, before.Left(), o.Left(), "the buyer's money is the same")
		story := w.story("J1")
		assert.Contains(w, story, "decision  adjusted: adjust: the fee of the contract by Rui")
		require.NoError(w, w.m.Adjust(w.Context(), merchant.AdjustParams{ID: "k3", Amount: -1000, By: "Rui", Why: "the monthly fee"}))
		month := time.Now().UTC().Format("2006-01")
		s := w.month(month)
		assert.Equal(w, int64(-1070), s.Adjusted)
		assert.Equal(w, o.Net()-1000, s.Closing)

		for _, bad := range []struct {
			p    merchant.AdjustParams
			want error
		}{
			{merchant.AdjustParams{ID: "b", Account: "other", Order: "J1", Amount: 1, By: "Rui", Why: "why"}, merchant.ErrAccount},
			{merchant.AdjustParams{ID: "b", Order: "none", Amount: 1, By: "Rui", Why: "why"}, merchant.ErrNotFound},
			{merchant.AdjustParams{ID: "b", Order: "J1", Amount: 1, Why: "why"}, gateway.ErrValidation},
			{merchant.AdjustParams{ID: "b", Order: "J1", Amount: 1, By: "Rui", Why: " "}, gateway.ErrValidation},
			{merchant.AdjustParams{ID: "b", Order: "J1", By: "Rui", Why: "why"}, gateway.ErrValidation},
			{merchant.AdjustParams{ID: "b", Order: "J1", Amount: 1 << 60, By: "Rui", Why: "why"}, gateway.ErrValidation},
			{merchant.AdjustParams{ID: "b", Order: "J1", Amount: -1 << 60, By: "Rui", Why: "why"}, gateway.ErrValidation},
			{merchant.AdjustParams{Order: "J1", Amount: 1, By: "Rui", Why: "why"}, gateway.ErrValidation},
			{merchant.AdjustParams{ID: "k1", Order: "J1", Amount: -76, By: "Rui", Why: "why"}, merchant.ErrReused},
			{merchant.AdjustParams{ID: "k1", Amount: -75, By: "Rui", Why: "why"}, merchant.ErrReused},
		} {
			require.ErrorIs(w, w.m.Adjust(w.Context(), bad.p), bad.want)
		}
		again := merchant.AdjustParams{ID: "k1", Order: "J1", Amount: -75, By: "Ana", Why: "the fee of the contract"}
		require.NoError(w, w.m.Adjust(w.Context(), again), "it is booked already")
		assert.Equal(w, s, w.month(month))
		_, differences, err := w.m.CheckMonth(w.Context(), "shop", month)
		require.NoError(w, err)
		assert.Empty(w, differences)
	})
}

// Each way in which the books and the gateway can differ is found, and named.
func TestCheckMonthFindsWhatDiffers(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		stop := w.patient().open().start()
		month := time.Now().UTC().Format("2006-01")
		right, refunded, lost, moved := w.sold("D1", 1000), w.sold("D2", 2000), w.sold("D3", 3000), w.sold("D4", 4000)
		card := pix("D5", 5000)
		card.Method, card.Token = gateway.CreditCard, "pgct_test_visa"
		disputed, assumed := w.paysWith(card), w.sold("D6", 6000)
		other := pix("", 100)
		other.ExternalRef = "another-system-1"
		foreign, err := w.gw.Client().Transactions.Create(w.Context(), other.TransactionParams)
		require.NoError(w, err)
		require.NoError(w, w.gw.Transactions.Pay(foreign.ID))
		check := func() map[string]merchant.Difference {
			_, list, err := w.m.CheckMonth(w.Context(), "shop", month)
			require.NoError(w, err)
			found := make(map[string]merchant.Difference)
			for _, d := range list {
				found[string(d.Kind)+" "+d.Order+" "+d.Resource] = d
			}
			assert.Len(w, found, len(list))
			return found
		}
		assert.Empty(w, check())

		stop()
		w.gw.Webhooks.Hold()
		_, err = w.gw.Client().Transactions.Refund(w.Context(), refunded.TransactionID, gateway.RefundParams{Amount: 500})
		require.NoError(w, err)
		require.NoError(w, w.gw.Transactions.Chargeback(disputed.TransactionID))
		gone := "00000000-0000-4000-8000-000000000000"
		w.exec(`UPDATE gateway_charges SET transaction_id = ? WHERE id = ?`, gone, lost.ID)
		w.exec(`UPDATE gateway_orders SET paid = paid + 1 WHERE subject = 'order/D4'`)
		w.exec(`UPDATE gateway_charges SET record = REPLACE(record, '"State"', '"Assumed":true,"State"') WHERE id = ?`, assumed.ID)
		found := check()
		assert.Equal(w, map[string]merchant.Difference{
			"refunded D2 " + refunded.TransactionID: {Kind: merchant.DiffRefunded, Resource: refunded.TransactionID, Record: refunded.ID, Order: "D2", There: 500},
			"disputed D5 " + disputed.TransactionID: {Kind: merchant.DiffDisputed, Resource: disputed.TransactionID, Record: disputed.ID, Order: "D5", There: 5000},
			"missing_here  " + lost.TransactionID:   {Kind: merchant.DiffMissingHere, Resource: lost.TransactionID, There: 3000},
			"missing_there D3 " + gone:              {Kind: merchant.DiffMissingThere, Resource: gone, Record: lost.ID, Order: "D3", Here: 3000},
			"order D4 ":                             {Kind: merchant.DiffOrder, Order: "D4", Here: moved.Paid - moved.Fee, There: moved.Paid - moved.Fee + 1},
			"assumed D6 " + assumed.TransactionID:   {Kind: merchant.DiffAssumed, Resource: assumed.TransactionID, Record: assumed.ID, Order: "D6", Here: 6000},
		}, found)

		// What was missed is booked by a refresh.
		require.NoError(w, w.m.Refresh(w.Context(), refunded.ID))
		require.NoError(w, w.m.Refresh(w.Context(), disputed.ID))
		require.NoError(w, w.m.Refresh(w.Context(), assumed.ID))
		w.exec(`UPDATE gateway_orders SET paid = paid - 1 WHERE subject = 'order/D4'`)
		assert.Len(w, check(), 2)
		w.exec(`UPDATE gateway_charges SET transaction_id = ? WHERE id = ?`, lost.TransactionID, lost.ID)
		assert.Empty(w, check())

		// Entries that the gateway does not know.
		w.exec(`UPDATE gateway_facts SET amount = amount + 7 WHERE record = ? AND kind = 'paid'`, right.ID)
		w.exec(`UPDATE gateway_orders SET paid = paid + 7 WHERE subject = 'order/D1'`)
		assert.Equal(w, map[string]merchant.Difference{
			"paid D1 " + right.TransactionID: {Kind: merchant.DiffPaid, Resource: right.TransactionID, Record: right.ID, Order: "D1", Here: 1007, There: 1000},
		}, check())
	})
}

// The list of the live dialect has no amounts: it does not show how much of a payment was
// refunded in part.
func TestCheckMonthReadsWhatTheListDoesNotShow(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		stop := w.patient().open().start()
		month := time.Now().UTC().Format("2006-01")
		refunded, disputed := w.sold("V1", 5000), w.sold("V2", 3000)
		for _, c := range []*merchant.Charge{refunded, disputed} {
			_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "r-" + c.ID, Charge: c.ID, UpTo: 2000})
			require.NoError(w, err)
		}
		require.NoError(w, w.gw.Transactions.OpenDispute(disputed.TransactionID))
		require.NoError(w, w.m.Refresh(w.Context(), disputed.ID))
		w.eventually("all is booked", func() bool { return w.state("V1").Refunded == 2000 && w.state("V2").Disputed == 1000 })
		_, differences, err := w.m.CheckMonth(w.Context(), "shop", month)
		require.NoError(w, err)
		assert.Empty(w, differences)

		stop()
		w.gw.Webhooks.Hold()
		_, err = w.gw.Client().Transactions.Refund(w.Context(), refunded.TransactionID, gateway.RefundParams{Amount: 500})
		require.NoError(w, err)
		_, differences, err = w.m.CheckMonth(w.Context(), "shop", month)
		require.NoError(w, err)
		assert.Equal(w, []merchant.Difference{
			{Kind: merchant.DiffRefunded, Resource: refunded.TransactionID, Record: refunded.ID, Order: "V1", Here: 2000, There: 2500},
		}, differences)
	}, mockserver.WithDialect(mockserver.Live))
}

// A refund of a payment that is older than what the gateway lists for the month.
func TestCheckMonthReadsOlderTransactions(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		stop := w.patient().open().start()
		c := w.sold("L1", 1000)
		require.NoError(w, w.gw.Clock.AdvanceTo(time.Now().AddDate(0, 5, 0)))
		r, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "r1", Order: "L1", UpTo: 400})
		require.NoError(w, err)
		require.Equal(w, merchant.Done, r.State)
		month := w.gw.Clock.Now().UTC().Format("2006-01")
		s, differences, err := w.m.CheckMonth(w.Context(), "shop", month)
		require.NoError(w, err)
		assert.Empty(w, differences)
		assert.Equal(w, int64(400), s.Refunded)
		stop() // a delivery that is still handled would write the record again
		w.exec(`UPDATE gateway_charges SET transaction_id = '00000000-0000-4000-8000-000000000000' WHERE id = ?`, c.ID)
		_, differences, err = w.m.CheckMonth(w.Context(), "shop", month)
		require.NoError(w, err)
		require.Len(w, differences, 1)
		assert.Equal(w, merchant.DiffMissingThere, differences[0].Kind)
	})
}

func TestAMonthIsExported(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		order := "E;1 \"x\""
		c := w.sold(order, 5000)
		require.NoError(w, w.m.Adjust(w.Context(), merchant.AdjustParams{ID: order, Order: order, Amount: -75, By: "Rui", Why: "the fee of the contract"}))
		now := time.Now().UTC()
		month := now.Format("2006-01")
		export := func(format merchant.Format) string {
			var text strings.Builder
			require.NoError(w, w.m.Export(w.Context(), &text, "", month, format))
			return text.String()
		}
		lines, err := csv.NewReader(strings.NewReader(export(merchant.CSV))).ReadAll()
		require.NoError(w, err)
		assert.Equal(w, []string{"at", "order", "record", "kind", "cents", "currency", "source", "key"}, lines[0])
		var sum int64
		kinds := make(map[string]int)
		for _, line := range lines[1:] {
			assert.Equal(w, order, line[1])
			cents, err := strconv.ParseInt(line[4], 10, 64)
			require.NoError(w, err)
			sum += cents
			kinds[line[3]]++
			_, err = time.Parse(time.RFC3339, line[0])
			require.NoError(w, err)
		}
		assert.Equal(w, w.month(month).Closing, sum)
		assert.Equal(w, 1, kinds["paid"])
		assert.Equal(w, 1, kinds["adjusted"])

		journal := export(merchant.Hledger)
		assert.Contains(w, journal, now.Format("2006-01-02")+" paid E 1 \"x\"  ; shop:paid/"+c.TransactionID+"/5000\n"+
			"    assets:gateway:shop  BRL 50.00\n    income:payments  BRL -50.00\n\n")
		assert.Contains(w, journal, "    assets:gateway:shop  BRL -0.75\n    expenses:adjustments  BRL 0.75\n\n")
		assert.Equal(w, len(lines)-1, strings.Count(journal, "assets:gateway:shop"))

		w.sold("=1+1", 100)
		w.sold("@x", 100)
		formulas := export(merchant.CSV)
		assert.Contains(w, formulas, ",'=1+1,")
		assert.Contains(w, formulas, ",'@x,")
		assert.NotRegexp(w, `(?m)(^|,)[=@+]`, formulas)

		require.ErrorIs(w, w.m.Export(w.Context(), io.Discard, "other", month, merchant.CSV), merchant.ErrAccount)
		require.ErrorIs(w, w.m.Export(w.Context(), io.Discard, "", "11", merchant.CSV), gateway.ErrValidation)
		require.ErrorIs(w, w.m.Export(w.Context(), io.Discard, "", month, "xlsx"), gateway.ErrValidation)
		read, closed := io.Pipe()
		require.NoError(w, read.Close())
		require.ErrorIs(w, w.m.Export(w.Context(), closed, "", month, merchant.CSV), io.ErrClosedPipe)
	})
}

// CheckMonth compares payouts with the gateway's list of transfers.
func TestCheckMonthComparesPayouts(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		stop := w.patient().open().start()
		month := time.Now().UTC().Format("2006-01")
		paid, failed, lost, moved := w.sent(bill("p1", "", 1000)), w.sent(bill("p2", "", 2000)), w.sent(bill("p3", "", 3000)), w.sent(bill("p4", "", 4000))
		foreign := bill("", "", 100).TransferParams
		foreign.ExternalRef = "another-system-1"
		_, err := w.gw.Client().Transfers.Create(w.Context(), foreign)
		require.NoError(w, err)
		w.settle(paid.TransferID)
		check := func() map[string]merchant.Difference {
			s, list, err := w.m.CheckMonth(w.Context(), "shop", month)
			require.NoError(w, err)
			found := map[string]merchant.Difference{"sum": {Here: s.PaidOut}}
			for _, d := range list {
				found[string(d.Kind)+" "+d.Resource] = d
			}
			assert.Len(w, found, len(list)+1)
			return found
		}
		assert.Equal(w, map[string]merchant.Difference{"sum": {Here: 10000}}, check())

		stop()
		w.gw.Webhooks.Hold()
		require.NoError(w, w.gw.Transfers.Process(failed.TransferID))
		require.NoError(w, w.gw.Transfers.Fail(failed.TransferID))
		gone := "00000000-0000-4000-8000-000000000000"
		w.exec(`UPDATE gateway_payouts SET transfer_id = ? WHERE id = 'p3'`, gone)
		w.exec(`UPDATE gateway_facts SET amount = amount - 7 WHERE record = 'p4'`)
		want := map[string]merchant.Difference{
			"sum":                             {Here: 10007},
			"paid_out " + failed.TransferID:   {Kind: merchant.DiffPaidOut, Resource: failed.TransferID, Record: "p2", Here: 2000},
			"missing_here " + lost.TransferID: {Kind: merchant.DiffMissingHere, Resource: lost.TransferID, There: 3000},
			"missing_there " + gone:           {Kind: merchant.DiffMissingThere, Resource: gone, Record: "p3", Here: 3000},
			"paid_out " + moved.TransferID:    {Kind: merchant.DiffPaidOut, Resource: moved.TransferID, Record: "p4", Here: 4007, There: 4000},
			"order ":                          {Kind: merchant.DiffOrder, Here: -4007, There: -4000},
		}
		assert.Equal(w, want, check())

		w.exec(`UPDATE gateway_facts SET amount = amount + 7 WHERE record = 'p4'`)
		w.exec(`UPDATE gateway_payouts SET transfer_id = ? WHERE id = 'p3'`, lost.TransferID)
		require.NoError(w, w.m.Refresh(w.Context(), "p2"))
		assert.Equal(w, map[string]merchant.Difference{"sum": {Here: 8000}}, check())
	})
}

// A payout of an earlier month that comes back, and is older than what the gateway lists.
func TestCheckMonthReadsOlderTransfers(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		stop := w.patient().open().start()
		p := w.sent(bill("rent", "", 1000))
		stop()
		w.exec(`UPDATE gateway_facts SET month = '2031-01' WHERE record = 'rent'`)
		_, differences, err := w.m.CheckMonth(w.Context(), "shop", "2031-01")
		require.NoError(w, err)
		assert.Empty(w, differences)
		w.exec(`UPDATE gateway_payouts SET transfer_id = '00000000-0000-4000-8000-000000000000' WHERE id = 'rent'`)
		_, differences, err = w.m.CheckMonth(w.Context(), "shop", "2031-01")
		require.NoError(w, err)
		assert.Equal(w, []merchant.Difference{{
			Kind: merchant.DiffMissingThere, Resource: "00000000-0000-4000-8000-000000000000", Record: "rent", Here: p.Amount,
		}}, differences)
	})
}

// CheckMonth compares the change of the account's balance with the entries.
func TestCheckMonthComparesTheBalance(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		v1, err := legacy.New(w.gw.Client(), gateway.NewSecret(w.gw.Key()))
		require.NoError(w, err)
		broken := true
		var mu sync.Mutex
		w.cfg.Accounts[0].Balance = func(ctx context.Context) (int64, gateway.Currency, error) {
			mu.Lock()
			defer mu.Unlock()
			if broken {
				broken = false
				panic("a bug in Balance")
			}
			b, err := v1.Balance(ctx)
			if err != nil {
				return 0, "", err
			}
			return b.Balance, b.Currency, nil
		}
		w.cfg.CompareEvery = 50 * time.Millisecond
		w.patient().open().start()
		notes := func() (n int) {
			require.NoError(w, w.reader.QueryRowContext(w.Context(), `SELECT COUNT(*) FROM gateway_balances`).Scan(&n))
			return n
		}
		again := func() {
			w.Helper()
			require.NoError(w, w.gw.Wait(w.Context()))
			require.NoError(w, w.m.Idle(w.Context()))
			before := notes() + 1 // one may be on its way
			w.eventually("the balance is noted again", func() bool { return notes() > before })
		}
		month := time.Now().UTC().Format("2006-01")
		check := func() []merchant.Difference {
			w.Helper()
			_, list, err := w.m.CheckMonth(w.Context(), "", month)
			require.NoError(w, err)
			for i := range list {
				assert.Regexp(w, `^between \S+Z and \S+Z the balance`, list[i].Text)
				list[i].Text = ""
			}
			return list
		}
		again()
		w.sold("B1", 10000)
		_, err = w.m.Refund(w.Context(), merchant.RefundParams{ID: "r1", Order: "B1", UpTo: 1000})
		require.NoError(w, err)
		w.sent(bill("rent", "", 3000))
		card := pix("B2", 5000)
		card.Method, card.Token = gateway.CreditCard, "pgct_test_visa"
		disputed := w.paysWith(card)
		require.NoError(w, w.gw.Transactions.Chargeback(disputed.TransactionID))
		w.eventually("it is booked", func() bool { return w.state("B2").Disputed > 0 && w.state("B1").Refunded > 0 })
		again()
		assert.Empty(w, check())

		other := pix("", 700)
		other.ExternalRef = "another-system-1"
		foreign, err := w.gw.Client().Transactions.Create(w.Context(), other.TransactionParams)
		require.NoError(w, err)
		require.NoError(w, w.gw.Transactions.Pay(foreign.ID))
		tx, err := w.gw.Client().Transactions.Get(w.Context(), foreign.ID)
		require.NoError(w, err)
		left := tx.PaidAmount - tx.Fee.EstimatedFee
		again()
		booked := w.month(month).Closing
		assert.Equal(w, []merchant.Difference{{Kind: merchant.DiffBalance, Here: booked, There: booked + left}}, check())

		require.NoError(w, w.m.Adjust(w.Context(), merchant.AdjustParams{ID: "k1", Order: "B1", Amount: left, By: "Rui", Why: "sold by the old shop"}))
		again()
		assert.Empty(w, check())

		// What is adopted changed the balance when it was paid, and not when it came into the books.
		// By the gateway's clock, which stands still, that was before the first note.
		require.NoError(w, w.m.Adjust(w.Context(), merchant.AdjustParams{ID: "k2", Order: "B1", Amount: -left, By: "Rui", Why: "it is adopted"}))
		again()
		require.Len(w, check(), 1)
		w.adopts(w.order("B3"), foreign.ID)
		again()
		require.Len(w, check(), 1)
		w.exec(`UPDATE gateway_facts SET at = (SELECT MAX(at) FROM gateway_balances) WHERE source = 'adoption'`)
		assert.Empty(w, check())
	})
}
