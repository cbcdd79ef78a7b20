package merchant_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

const month = 31 * 24 * time.Hour

// members makes the shop sell memberships. Its callback has the one UPDATE that the doc
// comment promises to suffice.
func (w *world) members() *world {
	w.Helper()
	w.exec(`CREATE TABLE members (id text PRIMARY KEY, state text NOT NULL, paid_until bigint NOT NULL)`)
	w.on.Subscription = func(ctx context.Context, tx *txn, s *merchant.Subscription) error {
		amount := int64(0)
		if s.Charge != nil {
			amount = s.Charge.Paid
			if s.Charge.Subscription != s.ID || s.Charge.Order != "" {
				return fmt.Errorf("the charge belongs to order %q and subscription %q", s.Charge.Order, s.Charge.Subscription)
			}
		}
		if err := w.called(ctx, tx, string(s.Event), s.ID, string(s.Event), amount); err != nil {
			return err
		}
		return merchant.One(tx.ExecContext(ctx, w.sql(`UPDATE members SET state = ?, paid_until = ? WHERE id = ? AND paid_until <= ?`),
			string(s.State), s.PaidUntil.Unix(), s.ID, s.PaidUntil.Unix()))
	}
	w.on.Problem = func(ctx context.Context, tx *txn, p *merchant.Problem) error {
		return w.called(ctx, tx, "problem", p.Order+p.Subscription, string(p.Kind), 0)
	}
	return w
}

// member describes a membership by card.
func (w *world) member(id string, token gateway.CardToken) merchant.SubscribeParams {
	w.Helper()
	w.exec(`INSERT INTO members (id, state, paid_until) VALUES (?, 'new', ?)`, id, time.Time{}.Unix())
	return merchant.SubscribeParams{
		ID: id, Customer: gateway.CustomerParams{
			Name: "Ana", Email: "ana@example.com", Phone: "11987654321", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		SubscriptionParams: gateway.SubscriptionParams{
			Amount: 2990, Interval: gateway.IntervalMonth, Token: token, Metadata: map[string]any{"member": id},
		},
	}
}

// subscribe subscribes a member.
func (w *world) subscribe(p merchant.SubscribeParams) *merchant.Subscription {
	w.Helper()
	s, err := w.m.Subscribe(w.Context(), p)
	require.NoError(w, err)
	return s
}

// subscription returns a subscription, and checks that its money is the sum of its facts
// and that of its charges.
func (w *world) subscription(id string) *merchant.Subscription {
	w.Helper()
	var sum, net int64
	require.NoError(w, w.db.QueryRowContext(w.Context(), w.sql(`SELECT paid - fee - refunded - disputed - paid_out,
		(SELECT COALESCE(SUM(amount), 0) FROM gateway_facts WHERE subject = o.subject) FROM gateway_orders AS o WHERE subject = ?`),
		"subscription/"+id).Scan(&net, &sum))
	assert.Equal(w, sum, net, "the money is the sum of the facts")
	s, err := w.m.Subscription(w.Context(), id)
	require.NoError(w, err)
	return s
}

// reads waits until a subscription satisfies a condition.
func (w *world) reads(id, what string, holds func(s *merchant.Subscription) bool) (s *merchant.Subscription) {
	w.Helper()
	w.eventually(what, func() bool {
		s = w.subscription(id)
		return holds(s)
	})
	return s
}

// settles compares a subscription and its money with the gateway's.
func (w *world) settles(id string) {
	w.Helper()
	s := w.subscription(id)
	sub, err := w.gw.Client().Subscriptions.Get(w.Context(), s.SubscriptionID)
	require.NoError(w, err)
	assert.Equal(w, string(sub.Status), string(s.State))
	require.Len(w, s.Charges, len(sub.Transactions))
	var paid, refunded, disputed int64
	for _, c := range s.Charges {
		tx, err := w.gw.Client().Transactions.Get(w.Context(), c.ID)
		require.NoError(w, err)
		assert.Equal(w, tx.PaidAmount, c.Paid, c.ID)
		assert.Equal(w, tx.RefundedAmount, c.Refunded, c.ID)
		paid, refunded, disputed = paid+c.Paid, refunded+c.Refunded, disputed+c.Disputed
	}
	assert.Equal(w, [...]int64{paid, refunded, disputed}, [...]int64{s.Order.Paid, s.Order.Refunded, s.Order.Disputed})
	var until int64
	require.NoError(w, w.db.QueryRowContext(w.Context(), w.sql(`SELECT paid_until FROM members WHERE id = ?`), id).Scan(&until))
	if len(w.calls(id)) > 0 {
		assert.Equal(w, s.PaidUntil.Unix(), until, "the shop's own row")
	}
}

// counted returns how many customers and subscriptions the gateway has.
func (w *world) counted() (customers, subscriptions int) {
	w.Helper()
	c, err := gateway.Collect(w.gw.Client().Customers.All(w.Context(), gateway.CustomerListParams{}), 100)
	require.NoError(w, err)
	s, err := gateway.Collect(w.gw.Client().Subscriptions.All(w.Context(), gateway.SubscriptionListParams{}), 100)
	require.NoError(w, err)
	return len(c), len(s)
}

// pass moves the gateway's clock.
func (w *world) pass(d time.Duration) {
	w.Helper()
	require.NoError(w, w.gw.Clock.Advance(d))
}

func TestASubscriptionIsStartedRenewedAndCanceled(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open().start()
		p := w.member("M1", "pgct_ok_1")
		s := w.subscribe(p)
		assert.Equal(w, merchant.State("active"), s.State)
		assert.True(w, s.PaidUntil.After(w.gw.Clock.Now()))
		require.Len(w, s.Charges, 1)
		assert.Equal(w, merchant.Paid, s.Charges[0].State)
		assert.Equal(w, int64(2990), s.Order.Paid)
		w.reaches("M1", "started started 2990")

		until := s.PaidUntil
		for i := range 3 {
			w.pass(month)
			s = w.reads("M1", "the renewal is booked", func(s *merchant.Subscription) bool { return len(s.Charges) == i+2 && s.PaidUntil.After(until) })
			until = s.PaidUntil
		}
		renewed := []string{"started started 2990", "renewed renewed 2990", "renewed renewed 2990", "renewed renewed 2990"}
		w.reaches("M1", renewed...)

		again := w.subscribe(p)
		assert.Equal(w, s.SubscriptionID, again.SubscriptionID, "the same ID is the same subscription")
		other := p
		other.Amount++
		_, err := w.m.Subscribe(w.Context(), other)
		require.ErrorIs(w, err, merchant.ErrReused)
		customers, subscriptions := w.counted()
		assert.Equal(w, [...]int{1, 1}, [...]int{customers, subscriptions})

		s, err = w.m.CancelSubscription(w.Context(), "M1", "")
		require.NoError(w, err)
		assert.Equal(w, merchant.State("cancel_scheduled"), s.State)
		assert.False(w, s.Canceling)
		assert.Equal(w, until, s.PaidUntil)
		_, err = w.m.CancelSubscription(w.Context(), "M1", "")
		require.NoError(w, err, "a second cancellation changes nothing")
		w.pass(month)
		w.reaches("M1", append(renewed, "ended ended 0")...)
		s = w.subscription("M1")
		assert.Equal(w, until, s.PaidUntil)
		assert.Equal(w, int64(4*2990), s.Order.Paid)
		w.settles("M1")
		_, err = w.m.Subscription(w.Context(), "M2")
		require.ErrorIs(w, err, merchant.ErrNotFound)
		_, err = w.m.CancelSubscription(w.Context(), "M2", "")
		require.ErrorIs(w, err, merchant.ErrNotFound)
	})
}

func TestFailedRenewalsAreReportedUntilTheSubscriptionEnds(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open().start()
		s := w.subscribe(w.member("D1", "pgct_ok_1"))
		until := s.PaidUntil
		require.NoError(w, w.gw.Subscriptions.FailNextCharges(s.SubscriptionID, 2))
		require.NoError(w, w.gw.Clock.AdvanceTo(until.Add(time.Hour)))
		w.reaches("D1", "started started 2990", "payment_failed payment_failed 0", "past_due past_due 0")
		s = w.subscription("D1")
		assert.Equal(w, merchant.State("past_due"), s.State)
		assert.Equal(w, 1, s.FailedAttempts)
		assert.Equal(w, until, s.PaidUntil)
		assert.Equal(w, merchant.Failed, s.Charges[1].State)
		assert.NotEmpty(w, s.Charges[1].Reason)

		w.pass(8 * 24 * time.Hour)
		calls := []string{"started started 2990", "payment_failed payment_failed 0", "past_due past_due 0"}
		s = w.reads("D1", "the retry is booked", func(s *merchant.Subscription) bool { return s.State == "active" })
		calls = append(calls, "payment_failed payment_failed 0", "renewed renewed 2990")
		w.reaches("D1", calls...)
		assert.Zero(w, s.FailedAttempts)
		assert.True(w, s.PaidUntil.After(until))

		until = s.PaidUntil
		require.NoError(w, w.gw.Subscriptions.FailNextCharges(s.SubscriptionID, 100))
		require.NoError(w, w.gw.Clock.AdvanceTo(until.Add(time.Hour)))
		w.reads("D1", "it is past due again", func(s *merchant.Subscription) bool { return s.State == "past_due" })
		w.pass(month)
		s = w.reads("D1", "it has ended", func(s *merchant.Subscription) bool { return s.State == "canceled" })
		assert.Equal(w, string(gateway.CancellationPaymentFailure), s.Reason)
		assert.Equal(w, 4, s.FailedAttempts)
		assert.Equal(w, until, s.PaidUntil)
		w.eventually("the end is reported", func() bool { return len(w.calls("D1")) == len(calls)+6 })
		count := map[string]int{}
		for _, call := range w.calls("D1")[len(calls):] {
			count[call]++
		}
		assert.Equal(w, map[string]int{"payment_failed payment_failed 0": 4, "past_due past_due 0": 1, "ended ended 0": 1}, count)
		w.settles("D1")
	})
}

func TestAChargebackEndsASubscription(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		disputed := make(chan *merchant.Charge, 10)
		w.on.Disputed = func(_ context.Context, _ *txn, c *merchant.Charge) error {
			disputed <- c
			return nil
		}
		w.members().open().start()
		s := w.subscribe(w.member("C1", "pgct_ok_1"))
		w.pass(month)
		w.reads("C1", "the renewal is booked", func(s *merchant.Subscription) bool { return len(s.Charges) == 2 })
		require.NoError(w, w.gw.Transactions.Chargeback(s.Charges[0].ID))
		w.reaches("C1", "started started 2990", "renewed renewed 2990", "charged_back charged_back 2990", "ended ended 0")
		s = w.reads("C1", "the dispute is booked", func(s *merchant.Subscription) bool { return s.Order.Disputed == 2990 })
		assert.Equal(w, string(gateway.CancellationChargeback), s.Reason)
		assert.Equal(w, int64(2990), s.Order.Left())
		w.settles("C1")
		c := <-disputed
		assert.Equal(w, "C1", c.Subscription)
		assert.Empty(w, c.Order)
	})
}

// The chargeback has no webhook, and a subscription that has ended is not compared any
// more: its charge is.
func TestAChargebackAfterTheEndIsFound(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.CompareEvery = 100 * time.Millisecond
		w.members().open().start()
		s := w.subscribe(w.member("C2", "pgct_ok_1"))
		_, err := w.m.CancelSubscription(w.Context(), "C2", "")
		require.NoError(w, err)
		w.pass(month)
		w.reaches("C2", "started started 2990", "ended ended 0")
		w.handledAll()
		w.eventually("the subscription is not compared any more", func() (ended bool) {
			require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT COUNT(*) = 0 FROM gateway_checks WHERE kind = 'subscription'`).Scan(&ended))
			return ended
		})
		w.gw.Webhooks.Hold()
		require.NoError(w, w.gw.Transactions.Chargeback(s.Charges[0].ID))
		w.reaches("C2", "started started 2990", "ended ended 0", "charged_back charged_back 2990")
		w.settles("C2")
	})
}

func TestATrialIsPaidAfterItsEnd(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open().start()
		p := w.member("T1", "pgct_ok_1")
		p.TrialEnd = w.gw.Clock.Now().AddDate(0, 0, 14)
		s := w.subscribe(p)
		assert.Equal(w, merchant.State("trialing"), s.State)
		assert.True(w, s.PaidUntil.IsZero())
		require.Len(w, s.Charges, 1, "the check of the card")
		assert.Zero(w, s.Order.Net())
		assert.Empty(w, w.calls("T1"))
		w.settles("T1")
		w.pass(15 * 24 * time.Hour)
		w.reaches("T1", "started started 2990")
		s = w.subscription("T1")
		assert.Equal(w, merchant.State("active"), s.State)
		assert.True(w, s.PaidUntil.After(p.TrialEnd))
		assert.Equal(w, int64(2990), s.Order.Left())
		w.settles("T1")
	})
}

func TestAPixAutomaticoIsAuthorized(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open().start()
		p := w.member("P1", "")
		p.PaymentMethod = gateway.SubscriptionPixAutomatic
		s := w.subscribe(p)
		assert.Equal(w, merchant.State("incomplete"), s.State)
		assert.NotEmpty(w, s.AuthorizationCode)
		assert.Contains(w, string(s.QR()), "<svg")
		require.NoError(w, w.gw.Subscriptions.Authorize(s.SubscriptionID))
		w.reaches("P1", "started started 2990")
		s = w.subscription("P1")
		assert.Equal(w, merchant.State("active"), s.State)
		assert.Empty(w, s.AuthorizationCode)
		assert.Equal(w, gateway.Pix, s.Charges[0].Method)
		w.settles("P1")
		w.pass(month)
		w.reaches("P1", "started started 2990", "renewed renewed 2990")
		require.NoError(w, w.gw.Subscriptions.Revoke(s.SubscriptionID))
		w.reaches("P1", "started started 2990", "renewed renewed 2990", "ended ended 0")
		w.settles("P1")
	})
}

func TestTheChallengeOfASubscriptionIsShown(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		t.Run(fmt.Sprint(dialect), func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.members().open().start()
				s := w.subscribe(w.member("X1", "pgct_3ds_1"))
				assert.Equal(w, merchant.State("incomplete"), s.State)
				require.NotNil(w, s.Challenge)
				assert.NotEmpty(w, s.Challenge.ClientSecret.Reveal())
				require.NoError(w, w.gw.Transactions.PassChallenge(s.Charges[0].ID))
				w.reaches("X1", "started started 2990")
				s = w.subscription("X1")
				assert.Nil(w, s.Challenge)
				w.settles("X1")
			}, mockserver.WithDialect(dialect))
		})
	}
}

// No webhook arrives: the comparison finds each period, and the webhooks that arrive at
// last change nothing.
func TestMissedRenewalsAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.CompareEvery = 100 * time.Millisecond
		w.members().open().start()
		w.gw.Webhooks.Hold()
		s := w.subscribe(w.member("N1", "pgct_ok_1"))
		w.reaches("N1", "started started 2990")
		w.pass(3 * month)
		calls := []string{"started started 2990", "renewed renewed 2990", "renewed renewed 2990", "renewed renewed 2990"}
		w.reaches("N1", calls...)
		require.NoError(w, w.gw.Subscriptions.FailNextCharges(s.SubscriptionID, 100))
		w.pass(2 * month)
		w.reads("N1", "the end is found", func(s *merchant.Subscription) bool { return s.State == "canceled" })
		w.eventually("the end is reported", func() bool {
			list := w.calls("N1")
			return list[len(list)-1] == "ended ended 0"
		})
		before := w.calls("N1")
		w.settles("N1")
		require.NoError(w, w.gw.Webhooks.Release())
		w.handledAll()
		assert.Equal(w, before, w.calls("N1"))
		w.settles("N1")
	})
}

// One webhook is lost: the next one brings both periods.
func TestALostWebhookOfARenewalIsMadeUpFor(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open().start()
		w.subscribe(w.member("N2", "pgct_ok_1"))
		w.reaches("N2", "started started 2990")
		require.NoError(w, w.gw.Faults.Add(mockserver.DropWebhook().On("subscription.renewed").Times(1), mockserver.DropWebhook().On("transaction.*").Times(4)))
		w.pass(month)
		w.pass(month)
		w.reaches("N2", "started started 2990", "renewed renewed 2990", "renewed renewed 2990")
		w.settles("N2")
	})
}

// A subscription is read as it was before the event, like from a replica that lags behind.
func TestAnOldReadingOfASubscriptionIsRepeated(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open().start()
		w.subscribe(w.member("N3", "pgct_ok_1"))
		w.reaches("N3", "started started 2990")
		require.NoError(w, w.gw.Wait(w.Context()))
		require.NoError(w, w.gw.Faults.Add(mockserver.StaleRead().On("subscriptions.get").Times(1), mockserver.DropWebhook().On("transaction.*").Times(2)))
		w.pass(month)
		w.reaches("N3", "started started 2990", "renewed renewed 2990")
		w.settles("N3")
	})
}

// A charge is not found, but the subscription shows that it was paid: the period counts, and
// the money follows.
func TestAChargeThatIsNotFoundDoesNotHideItsPeriod(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.CompareEvery = 2 * time.Second // not while it subscribes
		w.members().open()
		w.gw.Webhooks.Hold() // only the comparison finds the money
		require.NoError(w, w.gw.Faults.Add(mockserver.Status(404).On("transactions.get").Times(1)))
		s := w.subscribe(w.member("N4", "pgct_ok_1"))
		require.Len(w, s.Charges, 1)
		assert.Equal(w, merchant.New, s.Charges[0].State)
		assert.False(w, s.PaidUntil.IsZero())
		w.start()
		w.reads("N4", "the money is booked", func(s *merchant.Subscription) bool { return s.Order.Paid == 2990 })
		w.eventually("the period is reported", func() bool { return len(w.calls("N4")) == 1 })
		w.settles("N4")
	})
}

func TestLostResponsesMakeOneSubscription(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"customers.create", "subscriptions.create"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.members().open()
				w.gw.Webhooks.Hold()
				require.NoError(w, w.gw.Faults.Add(mockserver.LoseResponse().On(lost).Times(1)))
				p := w.member("L1", "pgct_ok_1")
				s := w.subscribe(p)
				want := merchant.New
				if lost == "subscriptions.create" {
					want = merchant.Unknown
				}
				assert.Equal(w, want, s.State)
				assert.Equal(w, want, w.subscribe(p).State, "the same again")
				require.NoError(w, w.gw.Webhooks.Release())
				w.start()
				w.reaches("L1", "started started 2990")
				customers, subscriptions := w.counted()
				assert.Equal(w, [...]int{1, 1}, [...]int{customers, subscriptions})
				w.settles("L1")
			})
		})
	}
}

func TestARejectedSubscriptionEnds(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open().start()
		s := w.subscribe(w.member("R1", "pgct_used_1"))
		assert.Equal(w, merchant.Rejected, s.State)
		assert.NotEmpty(w, s.Reason)
		w.reaches("R1", "ended ended 0")

		require.NoError(w, w.gw.Faults.Add(mockserver.Status(422).On("customers.create").Times(1)))
		s = w.subscribe(w.member("R2", "pgct_ok_1"))
		assert.Equal(w, merchant.Rejected, s.State)
		w.reaches("R2", "ended ended 0")
		s, err := w.m.CancelSubscription(w.Context(), "R2", "")
		require.NoError(w, err)
		assert.Equal(w, merchant.Rejected, s.State, "there is nothing to cancel")
		_, subscriptions := w.counted()
		assert.Zero(w, subscriptions)

		s = w.subscribe(w.member("R3", "pgct_refused_1"))
		assert.Equal(w, merchant.State("incomplete"), s.State)
		w.reaches("R3", "payment_failed payment_failed 0")
		s, err = w.m.CancelSubscription(w.Context(), "R3", "")
		require.NoError(w, err)
		assert.Equal(w, merchant.State("canceled"), s.State)
		w.reaches("R3", "payment_failed payment_failed 0", "ended ended 0")
		assert.True(w, w.subscription("R3").PaidUntil.IsZero())
		w.settles("R3")
	})
}

func TestASubscriptionBelongsToItsTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open().start()
		p := w.member("B1", "pgct_ok_1")
		tx, err := w.begin(w.Context(), w.db, nil)
		require.NoError(w, err)
		s, err := w.m.SubscribeTx(w.Context(), tx, p)
		require.NoError(w, err)
		assert.Equal(w, merchant.New, s.State)
		require.NoError(w, tx.Rollback())
		_, err = w.m.Subscription(w.Context(), "B1")
		require.ErrorIs(w, err, merchant.ErrNotFound)

		p.Amount = 990
		w.tx(func(tx *txn) error {
			_, err := w.m.SubscribeTx(w.Context(), tx, p)
			return err
		})
		w.reaches("B1", "started started 990")
		customers, subscriptions := w.counted()
		assert.Equal(w, [...]int{1, 1}, [...]int{customers, subscriptions})
		var params string
		require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT params FROM gateway_subscriptions`).Scan(&params))
		assert.Empty(w, params, "the token is not kept")
		w.settles("B1")
	})
}

// A subscription is canceled before the gateway knows it.
func TestACancellationIsNotTooEarly(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open()
		w.tx(func(tx *txn) error {
			_, err := w.m.SubscribeTx(w.Context(), tx, w.member1("E1"))
			return err
		})
		s, err := w.m.CancelSubscription(w.Context(), "E1", "")
		require.NoError(w, err)
		assert.Equal(w, merchant.Withdrawn, s.State, "nothing was sent")

		require.NoError(w, w.gw.Faults.Add(mockserver.LoseResponse().On("customers.create").Times(1)))
		w.subscribe(w.member1("E2"))
		s, err = w.m.CancelSubscription(w.Context(), "E2", "")
		require.NoError(w, err)
		assert.Equal(w, merchant.Withdrawn, s.State, "only the customer may have been created")

		require.NoError(w, w.gw.Faults.Add(mockserver.LoseResponse().On("subscriptions.create").Times(1)))
		w.subscribe(w.member1("E3"))
		s, err = w.m.CancelSubscription(w.Context(), "E3", "")
		require.NoError(w, err)
		assert.Equal(w, merchant.Unknown, s.State)
		assert.True(w, s.Canceling)

		for _, id := range []string{"E1", "E2", "E3"} {
			w.exec(`INSERT INTO members (id, state, paid_until) VALUES (?, 'new', ?)`, id, time.Time{}.Unix())
		}
		w.start()
		s = w.reads("E3", "it is canceled as soon as it is known", func(s *merchant.Subscription) bool { return s.State == "cancel_scheduled" })
		assert.False(w, s.Canceling)
		w.reaches("E3", "started started 2990")
		w.eventually("the customer of E2 is found", func() bool { return w.subscription("E2").CustomerID != "" })
		customers, subscriptions := w.counted()
		assert.Equal(w, [...]int{2, 1}, [...]int{customers, subscriptions})
		assert.Equal(w, merchant.Withdrawn, w.subscription("E2").State)
		assert.Empty(w, append(w.calls("E1"), w.calls("E2")...))
		w.settles("E3")
	})
}

// member1 describes a membership of which the shop has no row yet.
func (w *world) member1(id string) merchant.SubscribeParams {
	p := merchant.SubscribeParams{ID: id, Customer: gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"}}
	p.Amount, p.Interval, p.Token = 2990, gateway.IntervalMonth, "pgct_ok_1"
	return p
}

func TestARejectedCancellationIsAProblem(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open().start()
		w.subscribe(w.member("K1", "pgct_ok_1"))
		w.reaches("K1", "started started 2990")
		s, err := w.m.CancelSubscription(w.Context(), "K1", "Ana moved away")
		require.NoError(w, err)
		assert.Equal(w, merchant.State("active"), s.State)
		w.reaches("K1", "started started 2990", "problem cancel_rejected 0")
		problems, err := w.m.Problems(w.Context())
		require.NoError(w, err)
		require.Len(w, problems, 1)
		assert.Equal(w, "K1", problems[0].Subscription)
		assert.Equal(w, "K1", problems[0].Record)
		assert.NotContains(w, problems[0].Text, "Ana")
		s, err = w.m.CancelSubscription(w.Context(), "K1", string(gateway.CancellationUserRequested))
		require.NoError(w, err)
		assert.Equal(w, merchant.State("cancel_scheduled"), s.State)
		w.settles("K1")
	}, mockserver.WithDialect(mockserver.Live))
}

// No response to the request arrives, but the gateway shows what became of it.
func TestACancellationIsKnownBeforeItsResponse(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open()
		w.subscribe(w.member("L1", "pgct_ok_1"))
		require.NoError(w, w.gw.Faults.Add(mockserver.LoseResponse().On("subscriptions.cancel").Times(100)))
		s, err := w.m.CancelSubscription(w.Context(), "L1", "")
		require.NoError(w, err)
		assert.Equal(w, merchant.State("cancel_scheduled"), s.State)
		assert.False(w, s.Canceling)
		w.start()
		w.reaches("L1", "started started 2990")
		w.settles("L1")
	})
}

func TestTheChargeOfASubscriptionIsRefunded(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		refunded := make(chan *merchant.Refund, 10)
		w.on.Refunded = func(_ context.Context, _ *txn, r *merchant.Refund) error {
			refunded <- r
			return nil
		}
		w.members().open().start()
		s := w.subscribe(w.member("F1", "pgct_ok_1"))
		r, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "f1", Charge: s.Charges[0].ID, UpTo: 1000})
		require.NoError(w, err)
		assert.Equal(w, merchant.Done, r.State)
		r = <-refunded
		assert.Equal(w, "f1", r.ID)
		assert.Empty(w, r.Order.ID)
		assert.Equal(w, int64(1990), r.Order.Left())
		w.settles("F1")
	})
}

func TestSendOfAChargeThatTheGatewayMadeSendsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open()
		s := w.subscribe(w.member("F2", "pgct_ok_1"))
		order := w.order("S1")
		w.tx(func(tx *txn) error {
			_, err := w.m.ChargeTx(w.Context(), tx, pix(order, 100))
			return err
		})
		sent, err := w.m.Send(w.Context(), s.Charges[0].ID)
		require.NoError(w, err)
		assert.Equal(w, s.Charges[0].ID, sent.ID)
		assert.Equal(w, merchant.New, w.state(order).Charges[0].State)
	})
}

func TestACallbackOfASubscriptionIsRepeated(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open()
		w.fails("started", 2)
		w.start()
		w.subscribe(w.member("G1", "pgct_ok_1"))
		w.pass(month)
		w.reaches("G1", "started started 2990", "renewed renewed 2990")
		w.settles("G1")
	})
}

func TestSubscriptionsOfTwoAccounts(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.Accounts = append(w.cfg.Accounts, w.account("sk_test_other", "sk_test_other-key", w.gw.Secret()))
		w.members()
		p := w.member("A1", "pgct_ok_1")
		w.open().start()
		_, err := w.m.Subscribe(w.Context(), p)
		require.ErrorIs(w, err, merchant.ErrAccount)
		p.Account = "sk_test_other"
		s := w.subscribe(p)
		assert.Equal(w, "sk_test_other", s.Account)
		w.reaches("A1", "started started 2990")
		p.Account = "shop"
		_, err = w.m.Subscribe(w.Context(), p)
		require.ErrorIs(w, err, merchant.ErrReused)
		customers, _ := w.counted()
		assert.Zero(w, customers, "the first account has nothing of it")
	})
}

func TestBadParametersOfASubscription(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		for field, change := range map[string]func(p *merchant.SubscribeParams){
			"id":              func(p *merchant.SubscribeParams) { p.ID = " " },
			"externalRef":     func(p *merchant.SubscribeParams) { p.Customer.ExternalRef = "x" },
			"customer_id":     func(p *merchant.SubscribeParams) { p.CustomerID = "x" },
			"idempotency_key": func(p *merchant.SubscribeParams) { p.IdempotencyKey = "x" },
			"amount":          func(p *merchant.SubscribeParams) { p.Amount = 0 },
			"email":           func(p *merchant.SubscribeParams) { p.Customer.Email = "" },
			"token":           func(p *merchant.SubscribeParams) { p.Token = "" },
			"params":          func(p *merchant.SubscribeParams) { p.Metadata = map[string]any{"n": uint64(1<<63 + 1)} },
		} {
			p := w.member1("V1")
			change(&p)
			_, err := w.m.Subscribe(w.Context(), p)
			require.ErrorIs(w, err, gateway.ErrValidation, field)
			assert.Contains(w, err.Error(), field)
		}
		_, err := w.m.Subscription(w.Context(), "V1")
		require.ErrorIs(w, err, merchant.ErrNotFound)
	})
}

// The page is sent many times at once.
func TestOneSubscriptionIsMadeOfManyCalls(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.members().open().start()
		p := w.member("Q1", "pgct_ok_1")
		var calls sync.WaitGroup
		for range 6 {
			calls.Go(func() {
				s, err := w.m.Subscribe(w.Context(), p)
				if assert.NoError(w, err) {
					assert.Equal(w, "Q1", s.ID)
				}
			})
		}
		calls.Wait()
		w.reaches("Q1", "started started 2990")
		customers, subscriptions := w.counted()
		assert.Equal(w, [...]int{1, 1}, [...]int{customers, subscriptions})
		w.settles("Q1")
	})
}

// The response is lost, and the repeats are rejected: only a person can tell whether the
// subscription that looks like it is the one.
func TestAnAmbiguousSubscriptionWaitsForAPerson(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.CompareEvery = 100 * time.Millisecond
		w.members().open()
		require.NoError(w, w.gw.Faults.Add(mockserver.LoseResponse().On("subscriptions.create").Times(1)))
		w.subscribe(w.member("U1", "pgct_ok_1"))
		require.NoError(w, w.gw.Faults.Add(mockserver.Status(422).On("subscriptions.create").Times(100)))
		w.start()
		w.reaches("U1", "problem ambiguous 0")
		s, err := w.m.CancelSubscription(w.Context(), "U1", "")
		require.NoError(w, err)
		assert.Equal(w, merchant.Ambiguous, s.State)
		assert.True(w, s.Canceling)

		list, err := gateway.Collect(w.gw.Client().Subscriptions.All(w.Context(), gateway.SubscriptionListParams{}), 10)
		require.NoError(w, err)
		require.Len(w, list, 1)
		r := by(merchant.Applied)
		r.ResourceID = list[0].ID
		require.NoError(w, w.m.Resolve(w.Context(), w.problem().ID, r))
		s = w.reads("U1", "it is canceled", func(s *merchant.Subscription) bool { return s.State == "cancel_scheduled" })
		assert.Equal(w, list[0].ID, s.SubscriptionID)
		assert.False(w, s.Canceling)
		w.reaches("U1", "problem ambiguous 0", "started started 2990")
		w.settles("U1")
	})
}

// driver returns the driver of the world's database.
func (w *world) driver() database.Driver[*txn] { return w.kind.on(w.db, w.pools[w.db]) }

// handledAll waits until all webhooks have been handled.
func (w *world) handledAll() {
	w.Helper()
	require.NoError(w, w.gw.Wait(w.Context()))
	events := sqlstore.New(w.driver()).For(w.cfg.Accounts[0].Client.Account())
	w.eventually("the webhooks are handled", func() bool {
		n, err := events.Counts(w.Context())
		require.NoError(w, err)
		return n.Waiting+n.Claimed == 0
	})
}
