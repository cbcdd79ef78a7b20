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

// club describes a link that sells what a membership sells.
func club() merchant.LinkParams {
	p := merchant.LinkParams{ID: "club"}
	p.Products = []gateway.CheckoutProduct{{ExternalID: "CLUB", Name: "Club", Price: 2990}}
	return p
}

// clubMember describes a membership with the product of the link.
func (w *world) clubMember(id string) merchant.SubscribeParams {
	p := w.member(id, "pgct_ok_1")
	p.Products = []gateway.Product{{Name: "Club", Price: 2990}}
	return p
}

// Fault 1. The gateway shows a subscription two seconds after its first charge: that is no
// sale by link, neither meanwhile nor later.
func TestTheFirstChargeOfASubscriptionIsNoSaleWhileTheGatewayLags(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().members().linked().open().start()
		w.link(club())
		require.NoError(w, w.gw.Faults.Add(mockserver.Lag(2*time.Second).On("GET subscriptions.*")))
		w.subscribe(w.clubMember("M1"))
		id := w.newest()
		w.eventually("the payment's event is tried", func() bool { return w.event("transaction.paid").tried() })
		w.swept()
		assert.Zero(w, w.sales(), "nothing is booked as a sale while the lists lag")
		assert.Empty(w, w.calls(id), "Paid is not called for a sale that is none")

		w.pass(2 * time.Second) // the gateway shows it
		w.refresh("M1")
		s := w.subscription("M1")
		require.Len(w, s.Charges, 1)
		assert.Equal(w, []any{id, int64(2990)}, []any{s.Charges[0].ID, s.Charges[0].Paid}, "the charge belongs to the subscription")
		w.reaches("M1", "started started 2990")
		w.swept()
		assert.Zero(w, w.sales())
		assert.Empty(w, w.calls(id))
		assert.Empty(w, w.problems())
	})
}

// Fault 1. Another system of the account subscribes a buyer. The first list of
// subscriptions is empty, because the gateway lags: that says nothing.
func TestAnEmptyListOfSubscriptionsSaysNothingWhileTheGatewayLags(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().linked().open().start()
		w.link(club())
		require.NoError(w, w.gw.Faults.Add(mockserver.Lag(2*time.Second).On("GET subscriptions.*")))
		client := w.gw.Client()
		customer, err := client.Customers.Create(w.Context(), gateway.CustomerParams{Name: "Ana Souza", Email: "ana@example.com"})
		require.NoError(w, err)
		_, err = client.Subscriptions.Create(w.Context(), gateway.SubscriptionParams{
			CustomerID: customer.ID, Amount: 2990, Interval: gateway.IntervalMonth, Token: "pgct_test_visa", Products: []gateway.Product{{Name: "Club", Price: 2990}},
		})
		require.NoError(w, err)
		w.eventually("the payment's event is tried", func() bool { return w.event("transaction.paid").tried() })
		w.swept()
		assert.Zero(w, w.sales(), "while the list lags")
		w.pass(2 * time.Second)
		w.swept()
		assert.Zero(w, w.sales(), "the list shows it")
		assert.Zero(w, w.booked())
	})
}

// Fault 1. A firewall or a key without the permission rejects the list of subscriptions:
// an account that has subscriptions in the books does not have none.
func TestAForbiddenListOfSubscriptionsIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().linked().open().start()
		w.subscribe(w.clubMember("M1"))
		w.reaches("M1", "started started 2990")
		require.NoError(w, w.gw.Faults.Add(mockserver.Status(403).On("subscriptions.list")))
		id := w.buy(w.link(club()))
		var problems []*merchant.Problem
		w.soon("the sale is a problem, or is booked", func() bool {
			problems = w.listed(merchant.ProblemUnmatched, id)
			return len(problems) > 0 || w.sales() > 0
		})
		assert.Zero(w, w.sales(), "a sale that may be a subscription's charge is not booked")
		assert.Empty(w, w.calls(id))
		require.Len(w, problems, 1)
	}, mockserver.WithStart(time.Now().Add(-25*time.Hour))) // for a day the list may be readable again
}

// late is an event that reports what reads don't show yet.
type late struct {
	kind      string // of the event
	table, id string // of the record
	lag       time.Duration
	booked    func() bool
}

// lagged waits until the event is handled in the two ways that fault 2 is about.
func (w *world) lagged(is late) {
	w.Helper()
	w.eventually("the event is tried", func() bool { return w.event(is.kind).tried() })
	e := w.retried(is.kind, 0)
	assert.False(w, e.handled(), "reads may lag for two minutes, so an event that is younger is repeated until a reading shows it, however often it was tried")
	if !e.handled() {
		w.retried(is.kind, 2*time.Minute+time.Second)
		w.eventually("the event is not repeated any more", func() bool {
			if w.event(is.kind).handled() {
				return true
			}
			w.retried(is.kind, 0)
			return w.event(is.kind).handled()
		})
	}
	wait, planned := w.comparedIn(is.table, is.id)
	assert.True(w, planned)
	assert.LessOrEqual(w, wait, time.Minute+10*time.Second, "what an event reports and no reading shows is read again soon")
	assert.False(w, is.booked())

	require.NoError(w, w.gw.Clock.Advance(is.lag)) // the gateway shows it
	w.due(is.table, is.id, 0)
	w.soon("it is booked", is.booked)
}

// Fault 2. A charge of three days ago is paid, and reads show it a minute later.
func TestAnEventIsRepeatedUntilTheGatewayShowsThePayment(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		order := w.order("L1")
		c := w.charge(pix(order, 5000))
		w.handledAll()
		w.ages("gateway_charges", c.ID, 3*24*time.Hour)
		w.pass(2 * time.Minute)
		require.NoError(w, w.gw.Faults.Add(mockserver.Lag(time.Minute).On("GET transactions.*")))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.lagged(late{
			kind: "transaction.paid", table: "gateway_charges", id: c.ID, lag: time.Minute,
			booked: func() bool { return slices.Contains(w.calls(order), "paid "+c.ID+" 5000") },
		})
	})
}

// Fault 2, payouts.
func TestAnEventIsRepeatedUntilTheGatewayShowsThePayout(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		order := w.order("L2")
		p := w.sent(bill("b", order, 1000))
		require.NoError(w, w.gw.Transfers.Process(p.TransferID))
		w.handledAll()
		w.ages("gateway_payouts", p.ID, 3*24*time.Hour)
		w.pass(time.Second)
		require.NoError(w, w.gw.Faults.Add(mockserver.Lag(time.Second).On("GET transfers.*")))
		require.NoError(w, w.gw.Transfers.Settle(p.TransferID))
		w.lagged(late{
			kind: "payout.transferred", table: "gateway_payouts", id: p.ID, lag: time.Second,
			booked: func() bool { return slices.Contains(w.calls(order), "payout paid b 1000") },
		})
	}, mockserver.WithOpeningBalance(1_000_000))
}

// Fault 2, subscriptions.
func TestAnEventIsRepeatedUntilTheGatewayShowsTheRenewal(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().members().open().start()
		s := w.subscribe(w.member("L3", "pgct_ok_1"))
		w.reaches("L3", "started started 2990")
		w.handledAll()
		require.NoError(w, w.gw.Faults.Add(mockserver.Lag(time.Minute).On("GET subscriptions.*")))
		require.NoError(w, w.gw.Clock.AdvanceTo(s.PaidUntil.Add(time.Second)))
		w.lagged(late{
			kind: "subscription.renewed", table: "gateway_subscriptions", id: "L3", lag: time.Minute,
			booked: func() bool { return slices.Contains(w.calls("L3"), "renewed renewed 2990") },
		})
	})
}

// Fault 3. The gateway confirms a refund, and its transaction never shows it, nor does its
// updated_at move: after a day a person is told.
func TestARefundThatTheGatewayNeverShowsIsAProblem(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open()
		order := w.order("R1")
		c := w.charge(pix(order, 5000))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.refresh(c.ID)
		w.pass(2 * time.Hour)
		require.NoError(w, w.gw.Faults.Add(mockserver.Lag(time.Hour).On("GET transactions.*")))
		r, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "r1", Charge: c.ID, UpTo: 2000})
		require.NoError(w, err)
		require.Equal(w, merchant.Accepted, r.State)
		w.refresh(c.ID)
		assert.Empty(w, w.problems(), "a reading may lag")

		w.records("gateway_refunds", "r1", func(record map[string]any) { // it is tomorrow
			require.Contains(w, record, "AppliedAt")
			record["AppliedAt"] = time.Now().Add(-25 * time.Hour)
		})
		w.refresh(c.ID)
		require.Len(w, w.problems(), 1)
		p := w.problems()[0]
		assert.Equal(w, []any{merchant.ProblemLower, "r1", order}, []any{p.Kind, p.Record, p.Order})
	}, mockserver.WithStart(time.Now().Add(-72*time.Hour)))
}

// Fault 4. A sale by link is paid nine days after its creation, and no webhook says so.
func TestASaleByLinkThatIsPaidNineDaysLaterIsNotLost(t *testing.T) {
	t.Parallel()
	const days = 9 * 24 * time.Hour
	each(t, func(w *world) {
		w.patient().onlyLinked().open()
		w.gw.Webhooks.Hold()
		link := w.link(mug("mug-2", 1500))
		client, slug := w.gw.Client(), (&gateway.CheckoutLink{URL: link.URL}).Slug()
		session, err := client.CheckoutSessions.Open(w.Context(), slug)
		require.NoError(w, err)
		_, err = client.CheckoutSessions.Update(w.Context(), slug, session.SessionToken, gateway.CheckoutSessionParams{
			Buyer: gateway.CheckoutBuyer{Name: "Ana Souza", Email: "ana@example.com"}, PaymentMethod: gateway.Pix,
		})
		require.NoError(w, err)
		require.NoError(w, w.gw.Checkout.Begin(slug))
		id := w.newest()
		w.pass(days)
		w.becomes(id, gateway.TransactionPaid)

		w.start()
		w.swept()
		month := time.Now().UTC().Format("2006-01")
		w.soon("the sale is booked, or is a difference of its month", func() bool {
			if hits, err := w.m.Find(w.Context(), id); !assert.NoError(w, err) || len(hits) > 0 {
				return true
			}
			_, differences, err := w.m.CheckMonth(w.Context(), "shop", month)
			require.NoError(w, err)
			return slices.ContainsFunc(differences, func(d merchant.Difference) bool { return d.Resource == id })
		})
	}, mockserver.WithStart(time.Now().Add(-days-time.Minute)))
}

// Fault 5. A shop that has just sold for the first time is restarted: its only transaction
// is not shown yet.
func TestANewShopOpensWhileItsOnlyTransactionIsNotShown(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open()
		w.charge(pix(w.order("N1"), 700))
		require.NoError(w, w.gw.Faults.Add(mockserver.Lag(2*time.Second).On("GET transactions.*")))
		_, err := w.openOn(w.db, w.cfg)
		require.NoError(w, err, "a transaction that was made a moment ago may be 404")
	})
}

// Fault 6. A dispute is opened and won within what the gateway counts: both readings have
// the same updated_at.
func TestADisputeThatIsWonAtTheSameTimeIsBooked(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]string{"whole seconds": "whole-seconds", "a stopped clock": "stopped-updates"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.patient().open()
				require.NoError(w, w.gw.Faults.Add(mockserver.Shape(shape)))
				c := w.charge(pix(w.order("D1"), 5000))
				require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
				w.refresh(c.ID)
				require.NoError(w, w.gw.Transactions.OpenDispute(c.TransactionID))
				w.refresh(c.ID)
				require.Equal(w, int64(5000), w.state("D1").Disputed)
				require.NoError(w, w.gw.Transactions.WinDispute(c.TransactionID))
				w.refresh(c.ID)
				o := w.state("D1")
				assert.Zero(w, o.Disputed, "the money is back")
				assert.Equal(w, merchant.Paid, o.Charges[0].State)
				assert.Equal(w, int64(5000), o.Left())
			}, mockserver.WithDialect(mockserver.Live))
		})
	}
}

// Fault 6, payouts. A payout is returned, and the gateway shows no other updated_at.
func TestAPayoutThatIsReturnedAtTheSameTimeIsBooked(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		var returned atomic.Bool
		w.through(roundTripper(func(r *http.Request) (*http.Response, error) {
			if !returned.Load() {
				return w.gw.Transport().RoundTrip(r)
			}
			return replaced(w.gw.Transport(), r, "/v2/transfers/", `"status":"paid"`, `"status":"error"`)
		}))
		w.patient().open().start()
		order := w.order("D2")
		p := w.sent(bill("b", order, 1000))
		w.settle(p.TransferID)
		w.reaches(order, "payout paid b 1000")
		returned.Store(true)
		w.refresh(p.ID)
		w.reaches(order, "payout paid b 1000", "payout failed b 1000", "problem reversed b 0")
		assert.Zero(w, w.state(order).PaidOut)
	}, mockserver.WithOpeningBalance(1_000_000))
}
