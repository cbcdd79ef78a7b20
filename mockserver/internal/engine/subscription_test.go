package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/pix"
)

// Edits of a request for a subscription.

func inTrial(days int) func(*engine.NewSubscription) {
	return func(in *engine.NewSubscription) { in.TrialEnd = start().AddDate(0, 0, days) }
}

func byPix(in *engine.NewSubscription) { in.PaymentMethod, in.Token = "pix_automatic", "" }

func immediateCancel(in *engine.NewSubscription) { in.FailurePolicy = "immediate_cancel" }

func daily(in *engine.NewSubscription) { in.Interval = "day" }

type subMove func(engine.Env, *engine.Subscription) (engine.Change, *engine.Refusal)

func failNext(count int) subMove {
	return func(env engine.Env, s *engine.Subscription) (engine.Change, *engine.Refusal) {
		return engine.FailNextCharges(env, s, count)
	}
}

// turn is one step in the life of a subscription: a transition of the subscription
// or of its latest transaction, or the passage of time.
type turn struct {
	move   subMove
	charge transition
	days   float64
}

func does(m subMove) turn       { return turn{move: m} }
func charged(m transition) turn { return turn{charge: m} }
func after(days float64) turn   { return turn{days: days} }

func (w *world) take(id string, s turn) *engine.Refusal {
	w.tb.Helper()
	switch {
	case s.move != nil:
		c, refusal := s.move(w.env, w.sub(id))
		if refusal == nil {
			w.apply(c)
		}
		return refusal
	case s.charge != nil:
		return w.move(w.sub(id).Latest.ID, s.charge)
	}
	w.advance(time.Duration(s.days * 24 * float64(time.Hour)))
	return nil
}

// Every subscription here is created on 4 January 2027, so its first month has 31
// days.
const month = 31

var (
	subCancel    subMove = cancelFor("")
	subAuthorize subMove = engine.AuthorizeSubscription
	subReject    subMove = engine.RejectSubscription
	subRevoke    subMove = engine.RevokeSubscription

	subCancelDebit subMove = engine.CancelDebit
)

func cancelFor(reason string) subMove {
	return func(env engine.Env, s *engine.Subscription) (engine.Change, *engine.Refusal) {
		return engine.CancelSubscription(env, s, reason)
	}
}

func subUpdate(env engine.Env, s *engine.Subscription) (engine.Change, *engine.Refusal) {
	return engine.UpdateSubscription(env, s, engine.SubscriptionPatch{FailurePolicy: "immediate_cancel"})
}

func edits(list ...func(*engine.NewSubscription)) []func(*engine.NewSubscription) { return list }

func inOrder(list ...string) []string { return list }

// TestSubscriptionRows takes a new subscription through steps, the last of which is
// the trigger of the row. The final state and the events of the last step must be
// those of the row.
func TestSubscriptionRows(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		token  string
		edit   []func(*engine.NewSubscription)
		steps  []turn
		want   string // the final state
		events []string
	}{
		{
			"S1 card, first charge succeeds", "pgct_ok", nil, nil,
			"active", inOrder("subscription.created", "subscription.started", "transaction.created", "transaction.paid"),
		},
		{
			"S2 card, first charge refused", "pgct_refused_insufficient_funds", nil, nil,
			"incomplete", inOrder("subscription.created", "subscription.payment_failed", "transaction.created"),
		},
		{
			"S2 a refused first charge changes but is not paid", "pgct_refused", nil,
			[]turn{charged(setStatus("canceled"))},
			"incomplete", inOrder("transaction.cancelled"),
		},
		{
			"S2 card that always fails", "pgct_always_fails", nil, nil,
			"incomplete", inOrder("subscription.created", "subscription.payment_failed", "transaction.created"),
		},
		{
			"S2b first charge needs 3DS", "pgct_3ds", nil, nil,
			"incomplete", inOrder("subscription.created", "transaction.created", "transaction.three_ds_required"),
		},
		{
			"S2b challenge passed", "pgct_3ds", nil,
			[]turn{charged(engine.PassChallenge)},
			"active", inOrder("transaction.paid", "subscription.started"),
		},
		{
			"S2b challenge failed", "pgct_3ds", nil,
			[]turn{charged(engine.FailChallenge)},
			"incomplete", inOrder("subscription.payment_failed"),
		},
		{
			"S2b challenge expired", "pgct_3ds", nil,
			[]turn{after(0.02)},
			"incomplete", inOrder("transaction.cancelled", "subscription.payment_failed"),
		},
		{
			"S2b a new challenge", "pgct_3ds", nil,
			[]turn{charged(setStatus("three_ds_required"))},
			"incomplete", inOrder("transaction.three_ds_required"),
		},
		{
			"S2b trial", "pgct_3ds", edits(inTrial(10)), nil,
			"incomplete", inOrder("subscription.created", "transaction.created", "transaction.three_ds_required"),
		},
		{
			"S2b trial, challenge passed", "pgct_3ds", edits(inTrial(10)),
			[]turn{charged(engine.PassChallenge)},
			"trialing", inOrder("transaction.paid"),
		},
		{
			"S3 card with a trial", "pgct_ok", edits(inTrial(10)), nil,
			"trialing", inOrder("subscription.created"),
		},
		{
			"S3 card with a trial, refused", "pgct_refused", edits(inTrial(10)), nil,
			"incomplete", inOrder("subscription.created", "subscription.payment_failed"),
		},
		{
			"S4 Pix Automatico", "", edits(byPix), nil,
			"incomplete", inOrder("subscription.created"),
		},
		{
			"S5 payer authorizes", "", edits(byPix),
			[]turn{does(subAuthorize)},
			"active", inOrder("subscription.started"),
		},
		{
			"S5 first debit not paid", "", edits(byPix),
			[]turn{does(failNext(1)), does(subAuthorize)},
			"incomplete", inOrder("subscription.payment_failed"),
		},
		{
			"S5 second attempt at the first debit paid", "", edits(byPix),
			[]turn{does(failNext(1)), does(subAuthorize), does(subAuthorize)},
			"active", inOrder("subscription.started"),
		},
		{
			"S5 trial that is over, first debit set to paid", "", edits(byPix, func(in *engine.NewSubscription) {
				in.TrialEnd = start().Add(time.Hour)
			}),
			[]turn{after(0.5), does(failNext(1)), does(subAuthorize), charged(setStatus("paid"))},
			"active", inOrder("transaction.paid", "subscription.started"),
		},
		{
			"S6 payer authorizes a trial", "", edits(byPix, inTrial(10)),
			[]turn{does(subAuthorize)},
			"trialing", inOrder("subscription.updated"),
		},
		{
			"S7 payer rejects", "", edits(byPix),
			[]turn{does(subReject)},
			"canceled", inOrder("subscription.canceled"),
		},
		{
			"S7 24 hours pass", "", edits(byPix),
			[]turn{after(1)},
			"canceled", inOrder("subscription.canceled"),
		},
		{
			"S7 not after the authorization", "", edits(byPix),
			[]turn{does(subAuthorize), after(1)},
			"active", nil,
		},
		{
			"S8 three days before", "pgct_ok", edits(inTrial(10)),
			[]turn{after(7)},
			"trialing", inOrder("subscription.trial_will_end"),
		},
		{
			"S8 at once if it is nearer", "pgct_ok", edits(inTrial(3)), nil,
			"trialing", inOrder("subscription.created", "subscription.trial_will_end"),
		},
		{
			"S8 at the authorization of a Pix Automatico", "", edits(byPix, inTrial(2)),
			[]turn{does(subAuthorize)},
			"trialing", inOrder("subscription.updated", "subscription.trial_will_end"),
		},
		{
			"S9 the trial ends", "pgct_ok", edits(inTrial(10)),
			[]turn{after(9), after(1)},
			"active", inOrder("subscription.started", "transaction.created", "transaction.paid"),
		},
		{
			"S9 the first charge is not a renewal", "pgct_renewal_fails", edits(inTrial(10)),
			[]turn{after(9), after(1)},
			"active", inOrder("subscription.started", "transaction.created", "transaction.paid"),
		},
		{
			"S10 trialing, immediate_cancel", "pgct_always_fails", edits(inTrial(10), immediateCancel),
			[]turn{after(9), after(1)},
			"canceled", inOrder("subscription.payment_failed", "subscription.canceled", "transaction.created"),
		},
		{
			"S10 active, immediate_cancel", "pgct_renewal_fails", edits(immediateCancel),
			[]turn{after(month)},
			"canceled", inOrder("subscription.payment_failed", "subscription.canceled", "transaction.created"),
		},
		{
			"S11 trialing, retry_then_cancel", "pgct_always_fails", edits(inTrial(10)),
			[]turn{after(9), after(1)},
			"past_due", inOrder("subscription.payment_failed", "subscription.past_due", "transaction.created"),
		},
		{
			"S11 active, retry_then_cancel", "pgct_renewal_fails", nil,
			[]turn{after(month)},
			"past_due", inOrder("subscription.payment_failed", "subscription.past_due", "transaction.created"),
		},
		{
			"S12 active, period ends", "pgct_ok", nil,
			[]turn{after(month)},
			"active", inOrder("subscription.renewed", "transaction.created", "transaction.paid"),
		},
		{
			"S12 a challenge is passed once", "pgct_3ds", nil,
			[]turn{charged(engine.PassChallenge), after(month)},
			"active", inOrder("subscription.renewed", "transaction.created", "transaction.paid"),
		},
		{
			"S12 Pix Automatico, period ends", "", edits(byPix),
			[]turn{does(subAuthorize), after(month)},
			"active", inOrder("subscription.renewed"),
		},
		{
			"S13 a retry succeeds", "pgct_renewal_fails_2", nil,
			[]turn{after(month), after(3), after(2)},
			"active", inOrder("subscription.renewed", "transaction.created", "transaction.paid"),
		},
		{
			"S14 a retry fails, more left", "pgct_renewal_fails", nil,
			[]turn{after(month), after(3)},
			"past_due", inOrder("subscription.payment_failed", "transaction.created"),
		},
		{
			"S14 a failed attempt changes but is not paid", "pgct_renewal_fails", nil,
			[]turn{after(month), charged(setStatus("canceled"))},
			"past_due", inOrder("transaction.cancelled"),
		},
		{
			"S14 the last retry fails", "pgct_renewal_fails", nil,
			[]turn{after(month), after(6), after(1)},
			"canceled", inOrder("subscription.payment_failed", "subscription.canceled", "transaction.created"),
		},
		{
			"S15 active, cancel", "pgct_ok", nil,
			[]turn{does(subCancel)},
			"cancel_scheduled", inOrder("subscription.updated"),
		},
		{
			"S15 trialing, cancel", "pgct_ok", edits(inTrial(10)),
			[]turn{does(subCancel)},
			"cancel_scheduled", inOrder("subscription.updated"),
		},
		{
			"S16 period ends", "pgct_ok", nil,
			[]turn{does(subCancel), after(month)},
			"canceled", inOrder("subscription.canceled"),
		},
		{
			"S16 the trial ends, without a charge", "pgct_ok", edits(inTrial(10)),
			[]turn{does(subCancel), after(10)},
			"canceled", inOrder("subscription.canceled"),
		},
		{
			"S17 past_due", "pgct_renewal_fails", nil,
			[]turn{after(month), does(subCancel)},
			"canceled", inOrder("subscription.canceled"),
		},
		{
			"S17 incomplete", "pgct_refused", nil,
			[]turn{does(subCancel)},
			"canceled", inOrder("subscription.canceled"),
		},
		{
			"S17 incomplete with an open challenge", "pgct_3ds", nil,
			[]turn{does(subCancel)},
			"canceled", inOrder("subscription.canceled", "transaction.cancelled"),
		},
		{
			"S17 Pix Automatico, active", "", edits(byPix),
			[]turn{does(subAuthorize), does(subCancel)},
			"canceled", inOrder("subscription.canceled"),
		},
		{
			"S17 Pix Automatico, trialing", "", edits(byPix, inTrial(10)),
			[]turn{does(subAuthorize), does(subCancel)},
			"canceled", inOrder("subscription.canceled"),
		},
		{
			"S17 Pix Automatico, incomplete", "", edits(byPix),
			[]turn{does(subCancel)},
			"canceled", inOrder("subscription.canceled"),
		},
		{
			"S19 incomplete", "pgct_refused", nil,
			[]turn{does(subUpdate)},
			"incomplete", inOrder("subscription.updated"),
		},
		{
			"S19 active", "pgct_ok", nil,
			[]turn{does(subUpdate)},
			"active", inOrder("subscription.updated"),
		},
		{
			"S19 cancel_scheduled", "pgct_ok", nil,
			[]turn{does(subCancel), does(subUpdate)},
			"cancel_scheduled", inOrder("subscription.updated"),
		},
		{
			"S20 active", "pgct_ok", nil,
			[]turn{charged(engine.Chargeback)},
			"canceled", inOrder("transaction.chargedback", "subscription.chargeback_received", "subscription.canceled"),
		},
		{
			"S20 by the test token, a day later", "pgct_chargeback", nil,
			[]turn{after(1)},
			"canceled", inOrder("transaction.chargedback", "subscription.chargeback_received", "subscription.canceled"),
		},
		{
			"S20 cancel_scheduled", "pgct_ok", nil,
			[]turn{does(subCancel), charged(engine.Chargeback)},
			"canceled", inOrder("transaction.chargedback", "subscription.chargeback_received", "subscription.canceled"),
		},
		{
			"S20 not when already canceled", "pgct_ok", nil,
			[]turn{does(subCancel), after(month), charged(engine.Chargeback)},
			"canceled", inOrder("transaction.chargedback"),
		},
		{
			"S21 active", "", edits(byPix),
			[]turn{does(subAuthorize), does(subRevoke)},
			"canceled", inOrder("subscription.canceled"),
		},
		{
			"S21 trialing", "", edits(byPix, inTrial(10)),
			[]turn{does(subAuthorize), does(subRevoke)},
			"canceled", inOrder("subscription.canceled"),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.subscribe(test.token, test.edit...)
			for _, s := range test.steps {
				w.emitted()
				require.Nil(t, w.take(id, s))
			}
			assert.Equal(t, test.want, w.sub(id).Status)
			assert.Equal(t, test.events, w.emitted())
		})
	}
}

func TestCancellationReasons(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		token string
		edit  []func(*engine.NewSubscription)
		steps []turn
		want  string
	}{
		{"S7 payer rejects", "", edits(byPix), []turn{does(subReject)}, "system"},
		{"S10 immediate_cancel", "pgct_renewal_fails", edits(immediateCancel), []turn{after(month)}, "payment_failure"},
		{"S14 the last retry fails", "pgct_renewal_fails", nil, []turn{after(month + 7)}, "payment_failure"},
		{"S16 period ends", "pgct_ok", nil, []turn{does(subCancel), after(month)}, "user_requested"},
		{"S17 canceled at once", "", edits(byPix), []turn{does(subCancel)}, "user_requested"},
		{"S20 chargeback", "pgct_ok", nil, []turn{charged(engine.Chargeback)}, "chargeback"},
		{"S21 payer revokes", "", edits(byPix), []turn{does(subAuthorize), does(subRevoke)}, "user_requested"},
	} {
		w := newWorld(t)
		id := w.subscribe(test.token, test.edit...)
		for _, s := range test.steps {
			require.Nil(t, w.take(id, s))
		}
		assert.Equal(t, "canceled", w.sub(id).Status, test.name)
		assert.Equal(t, test.want, w.sub(id).CancellationReason, test.name)
	}
}

// Every event names the state before its transition, or "" if the transition
// creates the subscription.
func TestPreviousStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.subscribe("pgct_renewal_fails")
	require.Nil(t, w.take(id, after(month)))
	require.Nil(t, w.take(id, does(subCancel)))
	w.subscribe("pgct_refused")
	var got []string
	for _, e := range w.events {
		if e.Subscription != nil {
			got = append(got, e.Kind+" "+e.PreviousStatus)
		}
	}
	assert.Equal(t, inOrder(
		"subscription.created ", "subscription.started ",
		"subscription.payment_failed active", "subscription.past_due active",
		"subscription.canceled past_due",
		"subscription.created ", "subscription.payment_failed ",
	), got)
}

// The sandbox can set any attempt of a dunning to paid. That pays the period, which
// is not charged again. Charges from before the dunning don't count.
func TestAnyAttemptOfADunningPaysItsPeriod(t *testing.T) {
	t.Parallel()
	for attempt := 1; attempt <= 2; attempt++ {
		w := newWorld(t)
		id := w.subscribe("pgct_renewal_fails_2")
		w.take(id, after(month))
		w.take(id, after(3))
		charges := w.sub(id).ChargeIDs
		require.Len(t, charges, 3)
		require.Equal(t, "past_due", w.sub(id).Status)
		require.Nil(t, w.move(charges[0], func(env engine.Env, tx *engine.Transaction) (engine.Change, *engine.Refusal) {
			return engine.Refund(env, tx, engine.RefundRequest{Amount: 10})
		}))
		require.Equal(t, "past_due", w.sub(id).Status, "a refund of last month's charge pays nothing")
		w.emitted()
		require.Nil(t, w.move(charges[attempt], setStatus("paid")))
		assert.Equal(t, "active", w.sub(id).Status)
		assert.Equal(t, charges[attempt], w.sub(id).Latest.ID)
		assert.Equal(t, inOrder("transaction.paid", "subscription.renewed"), w.emitted())
		w.take(id, after(7))
		assert.Len(t, w.sub(id).ChargeIDs, 3, "no further attempt")
		assert.Empty(t, w.emitted())
	}
}

// A dunning is paid, and the next period's charge fails at the same instant. Nothing
// that happens to the paid charge pays the period that failed.
func TestAPaidChargeDoesNotPayThePeriodThatFailedAtTheSameInstant(t *testing.T) {
	t.Parallel()
	refund := func(env engine.Env, tx *engine.Transaction) (engine.Change, *engine.Refusal) {
		return engine.Refund(env, tx, engine.RefundRequest{Amount: 1})
	}
	for name, moves := range map[string][]transition{
		"refund in part":         {refund},
		"refund in full, undone": {setStatus("refunded"), setStatus("paid")},
		"dispute won":            {setStatus("in_protest"), setStatus("paid")},
		"captured":               {setStatus("captured")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.subscribe("pgct_renewal_fails_2_x1", daily, func(in *engine.NewSubscription) { in.RetryOffsetsDays = []int{2, 2, 9} })
			w.take(id, does(failNext(1)))
			var paid *engine.Transaction
			for day := 0; paid == nil && day < 60; day++ {
				w.take(id, after(1))
				s := w.sub(id)
				if s.Status != "past_due" || len(s.ChargeIDs) < 3 {
					continue
				}
				last := w.transactions.rows[s.ChargeIDs[len(s.ChargeIDs)-2]]
				if last.Status == "paid" && last.CreatedAt.Equal(s.FirstFailedAt) {
					paid = last
				}
			}
			require.NotNil(t, paid, "a period was paid when the next one failed")
			charges := w.sub(id).ChargeIDs
			w.emitted()
			for _, do := range moves {
				require.Nil(t, w.move(paid.ID, do))
			}
			w.advance(0)
			s := w.sub(id)
			assert.Equal(t, "past_due", s.Status)
			assert.Equal(t, charges, s.ChargeIDs, "nothing is charged today")
			assert.NotContains(t, w.emitted(), "subscription.renewed")
		})
	}
}

// A payer who cancels one debit stays subscribed: its retry is paid, and so is the next one.
func TestAPayerCancelsOneDebit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit []func(*engine.NewSubscription)
		days float64 // until the debit
		at   string  // the state after it
		then []turn
		ends string
		want []string
	}{
		"active": {edits(byPix), 31, "past_due", []turn{after(3)}, "active", inOrder("subscription.renewed")},
		"retry": {
			edits(byPix), 31, "past_due",
			[]turn{does(subCancelDebit), after(3), after(2)},
			"active",
			inOrder("subscription.payment_failed", "subscription.renewed"),
		},
		"trialing": {edits(byPix, inTrial(10)), 10, "past_due", []turn{after(3)}, "active", inOrder("subscription.renewed")},
		"canceled": {edits(byPix, immediateCancel), 31, "canceled", nil, "canceled", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.subscribe("", test.edit...)
			require.Nil(t, w.take(id, does(subAuthorize)))
			require.Nil(t, w.take(id, does(subCancelDebit)))
			assert.Equal(t, "approved", w.sub(id).Authorization.Status)
			require.Nil(t, w.take(id, after(test.days)))
			s := w.sub(id)
			assert.Equal(t, test.at, s.Status)
			assert.False(t, s.DebitCanceled)
			assert.Equal(t, "refused", s.Latest.Status)
			assert.Equal(t, "canceled_by_payer", s.Latest.Informations[0].Value)
			w.emitted()
			for _, step := range test.then {
				require.Nil(t, w.take(id, step))
			}
			assert.Equal(t, test.ends, w.sub(id).Status)
			sent := w.emitted()
			for _, kind := range test.want {
				assert.Contains(t, sent, kind)
			}
		})
	}
}

func TestOnlyADebitCanBeCanceled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refusal := w.take(w.subscribe("pgct_ok"), does(subCancelDebit))
	require.NotNil(t, refusal)
	assert.Contains(t, refusal.Detail, "can't have a debit canceled.")
}

// A debit that the payer canceled does not use up the failures that a test has asked for.
func TestACanceledDebitComesBeforeFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.subscribe("", byPix)
	for _, step := range []turn{does(subAuthorize), does(failNext(1)), does(subCancelDebit), after(31)} {
		require.Nil(t, w.take(id, step))
	}
	assert.Equal(t, "canceled_by_payer", w.sub(id).Latest.Informations[0].Value)
	require.Nil(t, w.take(id, after(3)))
	assert.Equal(t, "declined", w.sub(id).Latest.Informations[0].Value)
	require.Nil(t, w.take(id, after(2)))
	assert.Equal(t, "active", w.sub(id).Status)
}

func TestRejectedSubscriptionTransitions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		token string
		edit  []func(*engine.NewSubscription)
		steps []turn // the last one is rejected
	}{
		{"S5 by card", "pgct_refused", nil, []turn{does(subAuthorize)}},
		{"S5 twice", "", edits(byPix), []turn{does(subAuthorize), does(subAuthorize)}},
		{"S7 by card", "pgct_3ds", nil, []turn{does(subReject)}},
		{"S7 after the authorization", "", edits(byPix), []turn{does(subAuthorize), does(subReject)}},
		{"S18 cancel_scheduled", "pgct_ok", nil, []turn{does(subCancel), does(subCancel)}},
		{"S18 canceled", "pgct_refused", nil, []turn{does(subCancel), does(subCancel)}},
		{"S19 canceled", "pgct_refused", nil, []turn{does(subCancel), does(subUpdate)}},
		{"S21 by card", "pgct_ok", nil, []turn{does(subRevoke)}},
		{"S21 incomplete", "", edits(byPix), []turn{does(subRevoke)}},
		{"S21 canceled", "", edits(byPix), []turn{does(subCancel), does(subRevoke)}},
		{"cancel-debit by card", "pgct_ok", nil, []turn{does(subCancelDebit)}},
		{"cancel-debit incomplete", "", edits(byPix), []turn{does(subCancelDebit)}},
		{"cancel-debit canceled", "", edits(byPix), []turn{does(subAuthorize), does(subRevoke), does(subCancelDebit)}},
		{"fail-next when canceled", "pgct_refused", nil, []turn{does(subCancel), does(failNext(1))}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.subscribe(test.token, test.edit...)
			last := len(test.steps) - 1
			for _, s := range test.steps[:last] {
				require.Nil(t, w.take(id, s))
			}
			before := w.sub(id)
			w.emitted()
			refusal := w.take(id, test.steps[last])
			require.NotNil(t, refusal)
			assert.Equal(t, "INVALID_STATE", refusal.Code)
			assert.Same(t, before, w.sub(id), "nothing changed")
			assert.Empty(t, w.emitted())
		})
	}
}

func TestSubscriptionCreateChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	customer := w.customer()
	request := func(edit func(in *engine.NewSubscription)) engine.NewSubscription {
		in := engine.NewSubscription{Token: "pgct_ok"}
		in.Amount, in.Interval, in.IdempotencyKey, in.BodyHash = 4990, "month", "key", "hash"
		edit(&in)
		return in
	}
	c, refusal := engine.CreateSubscription(w.env, request(func(*engine.NewSubscription) {}),
		engine.ExistingForSubscription{Customer: customer})
	w.do(c, refusal)
	first := c.Subscriptions[0]

	live := w.env
	live.Dialect = spec.DocumentDialect.With(spec.RepeatedSubscription)
	other := request(func(in *engine.NewSubscription) { in.BodyHash = "other" })
	c, refusal = engine.CreateSubscription(live, other, engine.ExistingForSubscription{Key: first})
	assert.Nil(t, refusal, "S22 other body, live: the first subscription is returned")
	assert.Empty(t, c)

	tests := []struct {
		name     string
		edit     func(in *engine.NewSubscription)
		existing engine.ExistingForSubscription
		want     *engine.Refusal // nil if the first subscription is returned
	}{
		{
			"S22 same body", func(*engine.NewSubscription) {},
			engine.ExistingForSubscription{Key: first, TokenSpent: true},
			nil,
		},
		{
			"S22 same body, when its trial is over", func(in *engine.NewSubscription) { in.TrialEnd = start() },
			engine.ExistingForSubscription{Key: first},
			nil,
		},
		{
			"S22 other body", func(in *engine.NewSubscription) { in.BodyHash = "other" },
			engine.ExistingForSubscription{Key: first},
			&engine.Refusal{Code: "IDEMPOTENCY_KEY_REUSED", Instance: "/v2/subscriptions/" + first.ID},
		},
		{
			"trial_end now", func(in *engine.NewSubscription) { in.TrialEnd = start() },
			engine.ExistingForSubscription{},
			&engine.Refusal{Code: "VALIDATION_ERROR", Fields: invalid("trial_end")},
		},
		{
			"unknown customer, before a spent token", func(*engine.NewSubscription) {},
			engine.ExistingForSubscription{TokenSpent: true},
			&engine.Refusal{Code: "NOT_FOUND"},
		},
		{
			"spent token", func(*engine.NewSubscription) {},
			engine.ExistingForSubscription{Customer: customer, TokenSpent: true},
			&engine.Refusal{Code: "TOKEN_ALREADY_USED", Fields: invalid("token")},
		},
		{
			"unknown customer of a Pix Automatico", func(in *engine.NewSubscription) { in.PaymentMethod = "pix_automatic" },
			engine.ExistingForSubscription{TokenSpent: true},
			&engine.Refusal{Code: "NOT_FOUND"},
		},
		{
			"used token", func(in *engine.NewSubscription) { in.Token = "pgct_used" },
			engine.ExistingForSubscription{Customer: customer},
			&engine.Refusal{Code: "TOKEN_ALREADY_USED", Fields: invalid("token")},
		},
		{
			"expired token", func(in *engine.NewSubscription) { in.Token = "pgct_expired" },
			engine.ExistingForSubscription{Customer: customer},
			&engine.Refusal{Code: "TOKEN_EXPIRED", Fields: invalid("token")},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, refusal := engine.CreateSubscription(w.env, request(test.edit), test.existing)
			assert.Empty(t, c)
			if test.want == nil {
				assert.Nil(t, refusal)
				return
			}
			require.NotNil(t, refusal)
			assert.NotEmpty(t, refusal.Detail)
			if refusal.Code == engine.CodeNotFound {
				assert.Equal(t, "There is no customer with this id.", refusal.Detail)
			}
			refusal.Detail = ""
			for i := range refusal.Fields {
				assert.NotEmpty(t, refusal.Fields[i].Message)
				refusal.Fields[i].Message = ""
			}
			assert.Equal(t, test.want, refusal)
		})
	}
}

func TestAPixAutomaticoNeedsNoToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := engine.NewSubscription{}
	in.Amount, in.Interval, in.PaymentMethod = 4990, "month", "pix_automatic"
	_, refusal := engine.CreateSubscription(w.env, in, engine.ExistingForSubscription{Customer: w.customer(), TokenSpent: true})
	assert.Nil(t, refusal)
}

func TestNewSubscriptions(t *testing.T) {
	t.Parallel()
	t.Run("card", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		book := []engine.Product{{Name: "Book", Price: 4990, Quantity: 1}}
		s := w.sub(w.subscribe("pgct_ok", func(in *engine.NewSubscription) { in.Products = book }))
		assert.Equal(t, "credit_card", s.PaymentMethod)
		assert.Equal(t, "BRL", s.Currency)
		assert.Equal(t, 1, s.IntervalCount)
		assert.Equal(t, "retry_then_cancel", s.FailurePolicy)
		assert.Equal(t, []int{3, 5, 7}, s.RetryOffsetsDays)
		assert.Equal(t, start(), s.CurrentPeriodStart)
		assert.Equal(t, start().AddDate(0, 1, 0), s.CurrentPeriodEnd)
		assert.Equal(t, 4, s.BillingDayOfMonth())
		assert.Equal(t, map[string]bool{"pgct_ok": true}, w.spent)

		tx := w.transactions.rows[s.ChargeIDs[0]]
		assert.Same(t, tx, s.Latest)
		assert.Equal(t, "paid", tx.Status)
		assert.Equal(t, "credit_card", tx.Method)
		assert.Equal(t, int64(4990), tx.PaidAmount)
		assert.Equal(t, s.ID, tx.SubscriptionID)
		assert.Equal(t, s.Customer, tx.Buyer)
		assert.Equal(t, "BRL", tx.Currency)
		assert.Equal(t, 1, tx.Installments)
		assert.Equal(t, book, tx.Products)
		assert.Equal(t, int64(4990-149), w.balance, "the gateway keeps the fee")
	})
	t.Run("the latest transaction is in its current state", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.subscribe("pgct_ok")
		w.emitted()
		require.Nil(t, w.take(id, charged(setStatus("partially_refunded"))))
		assert.Equal(t, "partially_refunded", w.sub(id).Latest.Status)
		assert.Equal(t, inOrder("transaction.refunded"), w.emitted())
	})
	t.Run("captured", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		assert.Equal(t, "captured", w.sub(w.subscribe("pgct_captured")).Latest.Status)
	})
	t.Run("trial", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := w.sub(w.subscribe("pgct_ok", inTrial(10)))
		assert.Equal(t, "refunded", s.Latest.Status)
		assert.Equal(t, int64(100), s.Latest.Amount)
		assert.Equal(t, int64(100), s.Latest.RefundedAmount)
		assert.Zero(t, w.balance)
		assert.Equal(t, start(), s.CurrentPeriodStart)
		assert.Equal(t, start().AddDate(0, 0, 10), s.CurrentPeriodEnd)
		w.advance(10 * 24 * time.Hour)
		s = w.sub(s.ID)
		assert.Equal(t, start().AddDate(0, 0, 10), s.CurrentPeriodStart)
		assert.Equal(t, start().AddDate(0, 1, 10), s.CurrentPeriodEnd)
		assert.Equal(t, int64(4990), s.Latest.PaidAmount)
	})
	t.Run("trial with a challenge does not change the balance", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := w.sub(w.subscribe("pgct_3ds", inTrial(10)))
		require.Nil(t, w.move(s.Latest.ID, engine.PassChallenge))
		assert.Equal(t, "refunded", w.sub(s.ID).Latest.Status)
		assert.Zero(t, w.balance)
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := w.sub(w.subscribe("pgct_refused_insufficient_funds"))
		failure := w.events[1]
		assert.Equal(t, "subscription.payment_failed", failure.Kind)
		assert.Equal(t, 1, failure.Attempt)
		assert.Equal(t, "insufficient_funds", failure.FailureReason)
		assert.Equal(t, "refused", s.Latest.Status)
		assert.Zero(t, w.balance)
	})
	t.Run("Pix Automatico", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.subscribe("", byPix)
		s := w.sub(id)
		assert.Nil(t, s.Latest)
		assert.Empty(t, s.ChargeIDs)
		assert.Equal(t, "pending", s.Authorization.Status)
		code, err := pix.Decode(s.Authorization.QRCode)
		require.NoError(t, err)
		assert.Contains(t, code.RecurrenceURL, "/rec/"+id, "authorizes the debits")
		assert.Contains(t, code.URL, "/v2/", "and pays the first period")
		assert.Equal(t, s.Amount, code.Amount)
		code, err = pix.Decode(w.sub(w.subscribe("", byPix, inTrial(10))).Authorization.QRCode)
		require.NoError(t, err)
		assert.Contains(t, code.RecurrenceURL, "/rec/")
		assert.Empty(t, code.URL, "nothing is paid at the authorization of a trial")
		assert.Zero(t, code.Amount)
		assert.Equal(t, start().Add(24*time.Hour), s.Authorization.ExpirationDate)
		assert.True(t, s.CurrentPeriodEnd.IsZero())
		w.advance(3 * time.Hour)
		require.Nil(t, w.take(id, does(subAuthorize)))
		s = w.sub(id)
		assert.Equal(t, "approved", s.Authorization.Status)
		assert.Equal(t, "pix", s.Latest.Method)
		assert.Equal(t, "paid", s.Latest.Status)
		assert.NotEmpty(t, s.Latest.Pix.EndToEndID)
		assert.Empty(t, s.Latest.QRCode(), "the payer of a debit needs no code")
		assert.Equal(t, w.env.Now, s.CurrentPeriodStart, "the first period starts with the first debit")
		require.Nil(t, w.take(id, does(subRevoke)))
		assert.Equal(t, "canceled", w.sub(id).Authorization.Status)
		unauthorized := w.subscribe("", byPix)
		require.Nil(t, w.take(unauthorized, does(subCancel)))
		assert.Equal(t, "canceled", w.sub(unauthorized).Authorization.Status)
	})
	t.Run("Pix Automatico whose first debit is not paid", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.subscribe("", byPix)
		require.Nil(t, w.take(id, does(failNext(2))))
		for range 2 {
			require.Nil(t, w.take(id, does(subAuthorize)))
			failure := w.events[len(w.events)-1]
			assert.Equal(t, "subscription.payment_failed", failure.Kind)
			assert.Equal(t, 1, failure.Attempt, "each authorization is a first attempt")
			assert.Equal(t, "declined", failure.FailureReason)
		}
	})
	t.Run("authorization rejected and expired", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		rejected, expired := w.subscribe("", byPix), w.subscribe("", byPix)
		require.Nil(t, w.take(rejected, does(subReject)))
		w.advance(24 * time.Hour)
		assert.Equal(t, "rejected", w.sub(rejected).Authorization.Status)
		assert.Equal(t, "system", w.sub(rejected).CancellationReason)
		assert.Equal(t, "expired", w.sub(expired).Authorization.Status)
		assert.Equal(t, "system", w.sub(expired).CancellationReason)
	})
}

func TestSubscriptionPatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.subscribe("pgct_ok", func(in *engine.NewSubscription) { in.Metadata = `{"plan":"gold"}` })
	text := func(s string) *string { return &s }
	patch := func(in engine.SubscriptionPatch) *engine.Subscription {
		c, refusal := engine.UpdateSubscription(w.env, w.sub(id), in)
		w.do(c, refusal)
		return w.sub(id)
	}
	s := patch(engine.SubscriptionPatch{})
	assert.JSONEq(t, `{"plan":"gold"}`, s.Metadata)
	s = patch(engine.SubscriptionPatch{Metadata: text(`{"plan":"silver"}`), RetryOffsetsDays: []int{30, 1}})
	assert.JSONEq(t, `{"plan":"silver"}`, s.Metadata)
	assert.Equal(t, []int{30, 1}, s.RetryOffsetsDays)
	s = patch(engine.SubscriptionPatch{Metadata: text(""), FailurePolicy: "immediate_cancel"})
	assert.Empty(t, s.Metadata)
	assert.Equal(t, []int{30, 1}, s.RetryOffsetsDays)
	assert.Equal(t, "immediate_cancel", s.FailurePolicy)
	s = patch(engine.SubscriptionPatch{RetryOffsetsDays: []int{2}})
	assert.Equal(t, []int{2}, s.RetryOffsetsDays)
}

func TestTheEndOfATrialIsAnnouncedThreeDaysAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.subscribe("pgct_ok", inTrial(10))
	w.emitted()
	w.advance(7*24*time.Hour - time.Millisecond)
	assert.Empty(t, w.emitted())
	w.advance(time.Millisecond)
	assert.Equal(t, inOrder("subscription.trial_will_end"), w.emitted())
}

func TestCancelingASubscriptionCancelsItsPendingCharge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.subscribe("pgct_3ds")
	require.Nil(t, w.take(id, does(subCancel)))
	s := w.sub(id)
	assert.Equal(t, "canceled", s.Latest.Status)
	assert.Same(t, w.transactions.rows[s.Latest.ID], s.Latest)
}

// A change to a charge that was paid long ago does not affect its subscription.
func TestAnEarlierChargeDoesNotChangeItsSubscription(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.subscribe("pgct_ok", daily)
	w.advance(24 * time.Hour)
	s := w.sub(id)
	require.Len(t, s.ChargeIDs, 2)
	before := w.transactions.rows[s.ChargeIDs[0]]
	c, refusal := engine.Refund(w.env, before, engine.RefundRequest{})
	require.Nil(t, refusal)
	assert.True(t, engine.FollowSubscription(w.env, s, before, c.Transactions[0]).Empty())
}

// When a timer fires, the current state decides, not the state in which it was
// set.
func TestOutdatedSubscriptionTimers(t *testing.T) {
	t.Parallel()
	t.Run("a changed policy applies to the next failure", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.subscribe("pgct_renewal_fails")
		w.advance(month * 24 * time.Hour)
		require.Nil(t, w.take(id, does(subUpdate)))
		w.emitted()
		w.advance(3 * 24 * time.Hour)
		assert.Equal(t, inOrder("subscription.payment_failed", "subscription.canceled", "transaction.created"), w.emitted())
	})
	t.Run("changed offsets apply from the next failure on", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.subscribe("pgct_renewal_fails")
		w.advance(month * 24 * time.Hour)
		c, refusal := engine.UpdateSubscription(w.env, w.sub(id), engine.SubscriptionPatch{RetryOffsetsDays: []int{1, 10}})
		w.do(c, refusal)
		w.emitted()
		w.advance(9 * 24 * time.Hour) // the retry of day 3 was already scheduled
		assert.Equal(t, inOrder("subscription.payment_failed", "transaction.created"), w.emitted())
		w.advance(24 * time.Hour)
		assert.Equal(t, "canceled", w.sub(id).Status)
	})
	t.Run("no timer fires too early or in the wrong state", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.subscribe("pgct_renewal_fails")
		assert.Empty(t, engine.FireSubscription(w.env, w.sub(id), engine.TimerPeriodEnd), "the period has not ended")
		w.advance(month * 24 * time.Hour)
		assert.Empty(t, engine.FireSubscription(w.env, w.sub(id), engine.TimerRetry), "the retry is three days away")
		w.env.Now = w.sub(id).CurrentPeriodEnd
		assert.Empty(t, engine.FireSubscription(w.env, w.sub(id), engine.TimerPeriodEnd), "a period in dunning does not end")
		assert.Empty(t, engine.FireSubscription(w.env, w.sub(id), engine.TimerTrialWillEnd))
		assert.Empty(t, engine.FireSubscription(w.env, w.sub(id), engine.TimerPay))
	})
	t.Run("a cancellation at the end of the period", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.subscribe("pgct_ok")
		w.advance(time.Hour)
		require.Nil(t, w.take(id, does(subCancel)))
		s := w.sub(id)
		assert.True(t, s.CancelAtPeriodEnd)
		assert.True(t, s.CanceledAt.IsZero())
		assert.Equal(t, "user_requested", s.CancellationReason)
		assert.Equal(t, w.env.Now, s.UpdatedAt)
		w.advance(month * 24 * time.Hour)
		assert.Equal(t, start().AddDate(0, 1, 0), w.sub(id).CanceledAt)
	})
	t.Run("no trial notice after a cancellation", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.subscribe("pgct_ok", inTrial(10))
		require.Nil(t, w.take(id, does(subCancel)))
		w.emitted()
		w.advance(9 * 24 * time.Hour)
		assert.Empty(t, w.emitted())
	})
	t.Run("no charge after a cancellation while past due", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.subscribe("pgct_renewal_fails")
		w.advance(month * 24 * time.Hour)
		require.Nil(t, w.take(id, does(subCancel)))
		charges := len(w.sub(id).ChargeIDs)
		w.advance(365 * 24 * time.Hour)
		assert.Len(t, w.sub(id).ChargeIDs, charges)
	})
}
