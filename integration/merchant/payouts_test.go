package merchant_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// bill describes a payout.
func bill(id, order string, amount int64) merchant.PayoutParams {
	p := merchant.PayoutParams{ID: id, Order: order}
	p.PixKeyType, p.PixKeyValue, p.Amount = gateway.PixKeyEmail, "supplier@example.com", amount
	return p
}

// pay pays out.
func (w *world) pay(p merchant.PayoutParams) *merchant.Payout {
	w.Helper()
	out, err := w.m.Payout(w.Context(), p)
	require.NoError(w, err)
	return out
}

// sent pays out and waits until the outcome of the request is known, for which Run must
// run: on a busy machine a request may time out.
func (w *world) sent(p merchant.PayoutParams) (out *merchant.Payout) {
	w.Helper()
	w.eventually("the payout is sent", func() bool {
		out = w.pay(p)
		return out.State != merchant.New && out.State != merchant.Unknown
	})
	return out
}

// settle makes the bank pay a transfer.
func (w *world) settle(id string) {
	w.Helper()
	require.NoError(w, w.gw.Transfers.Process(id))
	require.NoError(w, w.gw.Transfers.Settle(id))
}

// transfers returns the transfers of the gateway.
func (w *world) transfers() []gateway.Transfer {
	w.Helper()
	list, err := gateway.Collect(w.gw.Client().Transfers.All(w.Context(), gateway.TransferListParams{}), 100)
	require.NoError(w, err)
	return list
}

// balance checks that the money of what belongs to no order is the sum of its facts, and
// returns what was paid out of it.
func (w *world) balance(subject string) (paidOut int64) {
	w.Helper()
	var net, sum int64
	require.NoError(w, w.db.QueryRowContext(w.Context(), w.sql(`SELECT paid - fee - refunded - disputed - paid_out, paid_out,
		(SELECT COALESCE(SUM(amount), 0) FROM gateway_facts WHERE book = o.book AND subject = o.subject)
		FROM gateway_orders AS o WHERE subject = ?`), subject).Scan(&net, &paidOut, &sum))
	assert.Equal(w, sum, net, "the money is the sum of the facts")
	return paidOut
}

func TestAPayoutIsPaid(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		order := w.order("P1")
		c := w.charge(pix(order, 9000))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.reaches(order, "paid shop-P1-1 9000")

		p := w.sent(bill("seller-1", order, 5000))
		assert.Equal(w, merchant.Pending, p.State)
		assert.Equal(w, "shop-seller-1-payout", p.Ref)
		assert.NotEmpty(w, p.TransferID)
		assert.Equal(w, int64(5000), p.Amount)
		assert.Equal(w, int64(50), p.Fee)
		o := w.state(order)
		assert.Equal(w, int64(5000), o.PaidOut, "the amount has left the balance")
		assert.Equal(w, o.Left()-o.Fee-5000, o.Net())

		w.settle(p.TransferID)
		w.reaches(order, "paid shop-P1-1 9000", "payout paid seller-1 5000")
		o = w.state(order)
		require.Len(w, o.Payouts, 1)
		assert.Equal(w, merchant.Paid, o.Payouts[0].State)
		assert.False(w, o.Payouts[0].PaidAt.IsZero())
		assert.Equal(w, order, o.Payouts[0].Order)

		again := w.sent(bill("seller-1", order, 5000))
		assert.Equal(w, merchant.Paid, again.State, "a repeated call returns the payout")
		assert.Equal(w, p.TransferID, again.TransferID)
		assert.Len(w, w.transfers(), 1)
	})
}

func TestAPayoutOfNoOrder(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		p := w.sent(bill("rent", "", 70000))
		w.settle(p.TransferID)
		w.eventually("it is paid", func() bool {
			p, err := w.m.PayoutByID(w.Context(), "rent")
			require.NoError(w, err)
			return p.State == merchant.Paid
		})
		assert.Empty(w, p.Order)
		_, err := w.m.PayoutByID(w.Context(), "another")
		require.ErrorIs(w, err, merchant.ErrNotFound)
		require.ErrorIs(w, w.m.Refresh(w.Context(), "another"), merchant.ErrNotFound)
		assert.Equal(w, int64(70000), w.balance("payout/rent"))
		w.reaches("", "payout paid rent 70000")
	})
}

func TestThePayoutOfAnIDIsMadeOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		order := w.order("P2")
		w.sent(bill("b", order, 1000))
		other := bill("b", order, 1000)
		other.PixKeyValue = "someone-else@example.com"
		described := bill("b", order, 1000)
		described.Description = "rent"
		for name, p := range map[string]merchant.PayoutParams{
			"another amount": bill("b", order, 1001), "another order": bill("b", "P3", 1000), "no order": bill("b", "", 1000),
			"another key": other, "another description": described,
		} {
			_, err := w.m.Payout(w.Context(), p)
			require.ErrorIs(w, err, merchant.ErrReused, name)
		}
		// Many calls at once make one payout.
		ended := make(chan error, 8)
		for range 8 {
			go func() {
				_, err := w.m.Payout(w.Context(), bill("c", order, 2000))
				ended <- err
			}()
		}
		for range 8 {
			require.NoError(w, <-ended)
		}
		w.eventually("both are sent", func() bool { return len(w.transfers()) >= 2 && w.state(order).PaidOut == 3000 })
		assert.Len(w, w.transfers(), 2)
	})
}

func TestAPayoutThatIsInvalidIsNotStored(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		referenced, wrong := bill("x", "", 100), bill("x", "", 100)
		referenced.ExternalRef = "mine"
		wrong.PixKeyType, wrong.PixKeyValue = gateway.PixKeyCPF, "12345678900"
		for field, p := range map[string]merchant.PayoutParams{
			"id": bill("", "", 100), "order": bill("x", " A", 100), "external_ref": referenced, "amount": bill("x", "", 0), "pix_key_value": wrong,
		} {
			_, err := w.m.Payout(w.Context(), p)
			var invalid *gateway.ValidationError
			require.ErrorAs(w, err, &invalid, field)
			assert.Equal(w, field, invalid.Fields[0].Field)
		}
		_, err := w.m.Payout(w.Context(), bill(strings.Repeat("x", 89), "", 100))
		require.ErrorIs(w, err, gateway.ErrValidation)
		w.pay(bill("x", "", 100)) // the ID is not used up
	})
}

// A payout belongs to the transaction that decides to make it.
func TestAPayoutIsRolledBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		order := w.order("P4")
		tx, err := w.begin(w.Context(), w.db, nil)
		require.NoError(w, err)
		p, err := w.m.PayoutTx(w.Context(), tx, bill("b", order, 1000))
		require.NoError(w, err)
		assert.Equal(w, merchant.New, p.State)
		require.NoError(w, tx.Rollback())
		w.tx(func(tx *txn) error {
			_, err := w.m.PayoutTx(w.Context(), tx, bill("b", order, 1500))
			return err
		})
		w.eventually("Run sends it", func() bool { return w.state(order).PaidOut == 1500 })
		list := w.transfers()
		require.Len(w, list, 1)
		assert.Equal(w, int64(1500), list[0].Amount)
	})
}

// The bank refuses the payout: the money is back.
func TestAPayoutFails(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		order := w.order("P5")
		p := w.sent(bill("b", order, 1000))
		require.NoError(w, w.gw.Transfers.Process(p.TransferID))
		require.NoError(w, w.gw.Transfers.Fail(p.TransferID))
		w.reaches(order, "payout failed b 1000")
		o := w.state(order)
		assert.Zero(w, o.PaidOut)
		assert.Equal(w, merchant.Failed, o.Payouts[0].State)
		assert.Equal(w, "error", o.Payouts[0].Reason)
		var entries int
		require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT COUNT(*) FROM gateway_facts WHERE kind = 'paid_out'`).Scan(&entries))
		assert.Equal(w, 2, entries, "it left and came back")
	})
}

// Someone cancels the transfer in the gateway's dashboard.
func TestAPayoutIsCanceledAtTheGateway(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		order := w.order("P6")
		p := w.sent(bill("b", order, 1000))
		_, err := w.gw.Client().Transfers.Cancel(w.Context(), p.TransferID, gateway.TransferCancelParams{})
		require.NoError(w, err)
		w.reaches(order, "payout canceled b 1000")
		assert.Zero(w, w.state(order).PaidOut)
	})
}

// returning makes the gateway report a transfer that was paid as returned by the bank.
type returning struct {
	base http.RoundTripper
	on   atomic.Bool
}

func (r *returning) RoundTrip(req *http.Request) (*http.Response, error) {
	if !r.on.Load() {
		return r.base.RoundTrip(req)
	}
	return replaced(r.base, req, "/v2/transfers/", `"status":"paid"`, `"status":"error"`, `"updated_at":"20`, `"updated_at":"21`)
}

// replaced sends a request and, if its path contains a text, replaces texts in the body of
// the response.
func replaced(base http.RoundTripper, req *http.Request, path string, oldnew ...string) (*http.Response, error) {
	res, err := base.RoundTrip(req)
	if err != nil || !strings.Contains(req.URL.Path, path) {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	text := strings.NewReplacer(oldnew...).Replace(string(body))
	res.Body, res.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	res.Header.Del("Content-Length")
	return res, nil
}

// A payout that was paid is returned: no webhook says so, and a comparison finds it.
func TestAPayoutIsReturned(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		transport := &returning{base: w.gw.Transport()}
		w.through(transport)
		w.cfg.CompareEvery = 50 * time.Millisecond
		w.open().start()
		order := w.order("P7")
		p := w.sent(bill("b", order, 1000))
		w.settle(p.TransferID)
		w.reaches(order, "payout paid b 1000")
		transport.on.Store(true)
		w.reaches(order, "payout paid b 1000", "payout failed b 1000", "problem reversed b 0")
		assert.Zero(w, w.state(order).PaidOut)
	})
}

// The gateway rejects the request.
func TestAPayoutIsRejected(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		order := w.order("P8")
		require.NoError(w, w.gw.Faults.Add(mockserver.Status(http.StatusUnprocessableEntity).On("transfers.create")))
		p := w.sent(bill("b", order, 1000))
		assert.Equal(w, merchant.Rejected, p.State)
		assert.NotEmpty(w, p.Reason)
		w.reaches(order, "payout rejected b 0")
		w.gw.Faults.Clear()
		assert.Equal(w, merchant.Rejected, w.pay(bill("b", order, 1000)).State, "it is not sent again")
		assert.Zero(w, w.state(order).PaidOut)
		assert.Empty(w, w.transfers())
	})
}

// The response to the create is lost. One payout is made, whether a webhook, which has no
// reference, or the outbox finds it first.
func TestAPayoutWhoseResponseIsLost(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		order := w.order("P9")
		require.NoError(w, w.gw.Faults.Add(mockserver.LoseResponse().On("transfers.create").Times(1)))
		p := w.pay(bill("b", order, 1000))
		if p.State != merchant.Pending { // unless the webhook was handled already
			assert.Equal(w, merchant.Unknown, p.State)
		}
		assert.Empty(w, w.calls(order))
		w.start()
		w.eventually("the outcome is found", func() bool { return w.state(order).PaidOut == 1000 })
		list := w.transfers()
		require.Len(w, list, 1)
		w.settle(list[0].ID)
		w.reaches(order, "payout paid b 1000")
		assert.Len(w, w.transfers(), 1)
	})
}

// slow holds the responses to creates.
type slow struct {
	base    http.RoundTripper
	created chan struct{}
}

func (s *slow) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := s.base.RoundTrip(req)
	if err == nil && req.Method == http.MethodPost && req.URL.Path == "/v2/transfers" {
		<-s.created
	}
	return res, err
}

// The webhook of a payout arrives before the response to its create.
func TestTheWebhookOfAPayoutIsEarly(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		transport := &slow{base: w.gw.Transport(), created: make(chan struct{})}
		w.through(transport)
		w.cfg.SendTimeout, w.cfg.SettleAfter = 20*time.Second, 40*time.Second
		w.open()
		order := w.order("P10")
		ended := make(chan *merchant.Payout)
		go func() { ended <- w.pay(bill("b", order, 1000)) }()
		w.eventually("the gateway has the transfer", func() bool { return len(w.transfers()) == 1 })
		w.settle(w.transfers()[0].ID)
		w.start()
		w.reaches(order, "payout paid b 1000")
		assert.Equal(w, int64(1000), w.state(order).PaidOut)
		close(transport.created)
		assert.Equal(w, merchant.Paid, (<-ended).State)
		w.reaches(order, "payout paid b 1000")
	})
}

// No webhook arrives: a comparison finds the end.
func TestAPayoutIsCompared(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		w.gw.Webhooks.Hold()
		order := w.order("P11")
		p := w.sent(bill("b", order, 1000))
		w.settle(p.TransferID)
		w.exec(`UPDATE gateway_checks SET check_at = 0 WHERE kind = 'payout'`)
		w.reaches(order, "payout paid b 1000")
		assert.Equal(w, int64(1000), w.state(order).PaidOut)
	})
}

// A transfer that another system of the account made is ignored.
func TestATransferOfAnotherSystem(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		for _, ref := range []string{"", "erp-7", "shop-B7-1"} {
			transfer, err := w.gw.Client().Transfers.Create(w.Context(), gateway.TransferParams{
				PixKeyType: gateway.PixKeyEmail, PixKeyValue: "other@example.com", Amount: 500, ExternalRef: ref,
			})
			require.NoError(w, err)
			w.settle(transfer.ID)
		}
		w.handled()
		var records int
		require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT (SELECT COUNT(*) FROM gateway_payouts) + (SELECT COUNT(*) FROM gateway_facts)`).Scan(&records))
		assert.Zero(w, records)
	})
}

// handled waits until every event was handled.
func (w *world) handled() {
	w.Helper()
	w.eventually("the events are handled", func() bool {
		var events, open int // handled events have the state 3, accounts 0
		require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT COUNT(*), COALESCE(SUM(CASE WHEN state IN (0, 3) THEN 0 ELSE 1 END), 0) FROM gateway_webhook_events`).Scan(&events, &open))
		return events > 0 && open == 0
	})
}

// Two accounts pay out the same: each with its own transfer, event and reference.
func TestPayoutsOfTwoAccounts(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		second := w.gw.Account("sk_test_other")
		w.cfg.Accounts = append(w.cfg.Accounts, w.account("other", "sk_test_other", w.gw.Secret()))
		w.open().start()
		order := w.order("P12")
		_, err := w.m.Payout(w.Context(), bill("a", order, 1000))
		require.ErrorIs(w, err, merchant.ErrAccount)
		first, other := bill("a", order, 1000), bill("b", order, 2000)
		first.Account, other.Account = "shop", "other"
		p, q := w.sent(first), w.sent(other)
		first.Account = "other"
		_, err = w.m.Payout(w.Context(), first)
		require.ErrorIs(w, err, merchant.ErrReused)
		require.NoError(w, second.Transfers.Process(q.TransferID))
		require.NoError(w, second.Transfers.Fail(q.TransferID))
		w.reaches(order, "payout failed b 2000")
		w.settle(p.TransferID)
		w.reaches(order, "payout failed b 2000", "payout paid a 1000")
		assert.Equal(w, int64(1000), w.state(order).PaidOut)
		assert.Equal(w, "other-b-payout", q.Ref)
		assert.Len(w, w.transfers(), 1)
	})
}

// A callback that fails is called again, and the books don't wait for it.
func TestThePayoutsCallbackFails(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		order := w.order("P13")
		w.fails("payout paid", 2)
		w.start()
		p := w.sent(bill("b", order, 1000))
		w.settle(p.TransferID)
		w.reaches(order, "payout paid b 1000")
	})
}
