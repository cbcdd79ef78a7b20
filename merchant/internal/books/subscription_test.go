package books_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// day returns a time of the histories of subscriptions.
func day(n int) time.Time { return start.AddDate(0, 0, n) }

// item is a charge of 2990 on a day.
func item(id string, status gateway.TransactionStatus, on int) gateway.SubscriptionTransaction {
	tx := gateway.SubscriptionTransaction{ID: id, Status: status, Amount: 2990, CreatedAt: gateway.TimestampOf(day(on))}
	if books.Pays(status) {
		tx.PaidAmount = 2990
	}
	return tx
}

// period returns a reading of a monthly subscription in the period that begins on a
// day, which was last changed on another.
func period(status gateway.SubscriptionStatus, begins, changed int, items ...gateway.SubscriptionTransaction) *gateway.Subscription {
	return &gateway.Subscription{
		ID: "s1", Status: status, Amount: 2990, Currency: gateway.BRL, Transactions: items,
		CurrentPeriodStart: gateway.TimestampOf(day(begins)), CurrentPeriodEnd: gateway.TimestampOf(day(begins + 30)),
		UpdatedAt: gateway.TimestampOf(day(changed)),
	}
}

// member is a subscription and what was reported about it.
type member struct {
	order        books.Order
	subscription books.Subscription
	charges      []books.Charge
	log          []string
	read         []string
	problems
}

func newMember() *member {
	return &member{
		order:        books.Order{ID: "subscription/m1"},
		subscription: books.Subscription{ID: "m1", Operation: books.Sent, State: books.Unknown},
	}
}

func (m *member) keep(r books.Result) books.Outcome {
	for _, f := range r.Facts {
		if f.Callback == books.OnSubscription {
			m.log = append(m.log, string(f.Kind)+" "+f.Charge)
		}
	}
	for _, over := range r.Over {
		m.log = append(m.log, fmt.Sprintf("over %s/%s", over.Kind, over.Record))
	}
	for _, p := range r.Problems {
		m.log = append(m.log, "problem "+p.Key)
	}
	if silent(r) {
		m.log = append(m.log, "silent")
	}
	if err := cmp.Or(m.problems.keep(r), m.remembered(m.subscription.Problems),
		m.wrongly(books.IsAmbiguous, m.subscription.ID, m.subscription.Operation == books.InDoubt && m.subscription.Status == "")); err != nil {
		m.log = append(m.log, "silent: "+err.Error())
	}
	m.read = r.Read
	return r.Outcome
}

func (m *member) apply(sub *gateway.Subscription, at time.Time) books.Outcome {
	var r books.Result
	m.subscription, m.charges, r = books.ApplySubscription(m.order, m.subscription, m.charges,
		books.Reading[gateway.Subscription]{Resource: sub, Source: books.FromWebhook, At: at})
	return m.keep(r)
}

// expect checks what was reported since the last call.
func (m *member) expect(t *testing.T, reported ...string) {
	t.Helper()
	assert.Equal(t, reported, m.log)
	m.log = nil
}

func TestASubscriptionIsPaidThenNotThenAgain(t *testing.T) {
	t.Parallel()
	m := newMember()
	assert.Equal(t, books.Changed, m.apply(period("active", 0, 0, item("a", "paid", 0)), day(0)))
	m.expect(t, "started a")
	assert.Equal(t, []string{"a"}, m.read, "its money is booked by a reading of the transaction")
	assert.Equal(t, day(30), m.subscription.PaidUntil)
	require.Len(t, m.charges, 1)
	assert.Equal(t, int64(2990), m.charges[0].Requested)
	assert.Equal(t, books.FromSubscription, m.charges[0].Origin)
	b, result := books.ApplyTransaction(books.Books{Order: m.order, Charge: m.charges[0]},
		reading(&gateway.Transaction{ID: "a", Status: "paid", Amount: 2990, PaidAmount: 2990}, 0))
	m.charges[0] = b.Charge
	assert.Equal(t, books.Paid, b.Charge.State)
	assert.Equal(t, int64(2990), b.Order.Paid)
	assert.Equal(t, "paid/a/2990 BRL 29.90\n", keys(result.Facts), "no callback Paid")
	assert.Equal(t, books.Unchanged, m.apply(period("active", 0, 0, item("a", "paid", 0)), day(0)))
	assert.Empty(t, m.read)

	unpaid := period("past_due", 30, 33, item("a", "paid", 0), item("b", "refused", 30), item("c", "refused", 33))
	m.apply(unpaid, day(33))
	m.expect(t, "payment_failed b", "payment_failed c", "past_due ")
	assert.Equal(t, 2, m.subscription.FailedAttempts)
	assert.Equal(t, day(30), m.subscription.PaidUntil, "a period begins even if its charge fails")
	assert.Equal(t, books.State("past_due"), m.subscription.State)

	m.apply(period("active", 30, 35, item("a", "paid", 0), item("b", "refused", 30), item("c", "refused", 33), item("d", "captured", 35)), day(35))
	m.expect(t, "renewed d")
	assert.Equal(t, day(60), m.subscription.PaidUntil)
	assert.Zero(t, m.subscription.FailedAttempts)
	assert.Equal(t, books.Stale, m.apply(unpaid, day(36)), "a late webhook")
	m.expect(t)
	assert.Equal(t, books.State("active"), m.subscription.State)
	assert.Equal(t, []string{"b", "c"}, m.read, "which were never read")
}

func TestMissedRenewalsAreAllReported(t *testing.T) {
	t.Parallel()
	m := newMember()
	m.apply(period("active", 60, 60, item("c", "paid", 60), item("a", "refunded", 0), item("b", "paid", 30)), day(61))
	m.expect(t, "started a", "renewed b", "renewed c")
	assert.Equal(t, []string{"a", "b", "c"}, m.read)
}

func TestAChargebackEndsASubscription(t *testing.T) {
	t.Parallel()
	m := newMember()
	m.apply(period("active", 0, 0, item("a", "paid", 0)), day(0))
	ended := period("canceled", 0, 9, item("a", "chargedback", 0))
	ended.CancellationReason = gateway.CancellationChargeback
	m.apply(ended, day(9))
	m.expect(t, "started a", "charged_back a", "ended ")
	assert.Equal(t, "chargeback", m.subscription.Reason)
	assert.Equal(t, day(30), m.subscription.PaidUntil, "it never goes back")
	assert.Equal(t, books.Unchanged, m.apply(ended, day(9)))

	m = newMember()
	m.apply(ended, day(9))
	assert.True(t, m.subscription.PaidUntil.IsZero())
}

func TestUntilWhenASubscriptionIsPaid(t *testing.T) {
	t.Parallel()
	reason := func(sub *gateway.Subscription, r gateway.CancellationReason) *gateway.Subscription {
		sub.CancellationReason = r
		return sub
	}
	for name, tc := range map[string]struct {
		sub  *gateway.Subscription
		paid bool
	}{
		"active":                {period("active", 0, 0, item("a", "paid", 0)), true},
		"active, no list":       {period("active", 0, 0), false},
		"active, not charged":   {period("active", 0, 0, item("a", "paid", -30)), false},
		"active, pending":       {period("active", 0, 0, item("a", "paid", -30), item("b", "pending", 0)), false},
		"active, refused":       {period("active", 0, 0, item("a", "paid", -30), item("b", "refused", 0)), false},
		"the next is pending":   {period("active", 0, 0, item("a", "paid", 0), item("b", "pending", 27)), true},
		"the next is paid":      {period("active", 0, 0, item("a", "paid", 0), item("b", "paid", 30)), true},
		"announced":             {period("active", 0, 0, item("a", "paid", -30), item("b", "paid", -3)), true},
		"ends with its period":  {reason(period("cancel_scheduled", 0, 0, item("a", "paid", 0)), "user_requested"), true},
		"ended at once":         {reason(period("canceled", 0, 0, item("a", "paid", 0)), "user_requested"), true},
		"ends with its trial":   {reason(period("cancel_scheduled", 0, 0), "user_requested"), false},
		"not paid":              {reason(period("canceled", 0, 0, item("a", "paid", -30), item("b", "refused", 0)), "payment_failure"), false},
		"not paid, no reason":   {period("canceled", 0, 0, item("a", "paid", -30), item("b", "refused", 0)), false},
		"charged back":          {reason(period("canceled", 0, 0, item("a", "paid", 0)), "chargeback"), false},
		"failed, but last paid": {reason(period("canceled", 0, 0, item("a", "paid", 0)), "payment_failure"), false},
		"past due":              {period("past_due", 0, 0, item("a", "paid", -30)), false},
		"trial":                 {period("trialing", 0, 0), false},
	} {
		m := newMember()
		m.apply(tc.sub, day(1))
		assert.Equal(t, tc.paid, m.subscription.PaidUntil.Equal(day(30)), name)
	}
}

func TestTheCheckOfACardIsNoPeriod(t *testing.T) {
	t.Parallel()
	trial := period("trialing", 0, 0, gateway.SubscriptionTransaction{
		ID: "check", Status: "refunded", Amount: 100, PaidAmount: 100, RefundedAmount: 100, CreatedAt: gateway.TimestampOf(day(0)),
	})
	trial.TrialEnd = gateway.TimestampOf(day(14))
	m := newMember()
	m.apply(trial, day(0))
	m.expect(t)
	assert.Equal(t, []string{"check"}, m.read, "but it is money")
	assert.True(t, m.charges[0].CardCheck)
	trial.Amount = 100 // a subscription of the same amount
	m = newMember()
	m.apply(trial, day(0))
	m.expect(t)
	trial.Status = "active"
	trial.Transactions = append(trial.Transactions, gateway.SubscriptionTransaction{ID: "first", Status: "paid", Amount: 100, PaidAmount: 100, CreatedAt: trial.TrialEnd})
	m.apply(trial, day(14))
	m.expect(t, "started first")
	assert.False(t, m.charges[1].CardCheck)
	trial.Transactions = append(trial.Transactions, gateway.SubscriptionTransaction{ID: "undated", Status: "paid", Amount: 100, PaidAmount: 100})
	m = newMember()
	m.apply(trial, day(14))
	m.expect(t, "started undated", "renewed first")
}

func TestAPartOfAPeriodIsNotAPeriod(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		tx    gateway.SubscriptionTransaction
		whole bool
	}{
		{gateway.SubscriptionTransaction{Status: "paid", Amount: 2000, PaidAmount: 2000}, false},
		{gateway.SubscriptionTransaction{Status: "partially_paid", Amount: 2990, PaidAmount: 2000}, false},
		{gateway.SubscriptionTransaction{Status: "paid", Amount: 2840, PaidAmount: 2990}, true}, // what is settled
		{gateway.SubscriptionTransaction{Status: "paid", Amount: 2990}, true},
		{gateway.SubscriptionTransaction{Status: "paid", Amount: 3100, PaidAmount: 3100}, true},
	} {
		tc.tx.ID = "a"
		m := newMember()
		m.apply(period("active", 0, 0, tc.tx), day(0))
		assert.Equal(t, tc.whole, len(m.log) == 1, tc.tx)
	}
}

func TestAChallengeThatExpiresIsAFailedCharge(t *testing.T) {
	t.Parallel()
	m := newMember()
	m.apply(period("incomplete", 0, 0, item("a", "pending", 0)), day(0))
	m.expect(t)
	m.apply(period("incomplete", 0, 0, item("a", "canceled", 0)), day(0))
	m.expect(t, "payment_failed a")
	m = newMember()
	m.apply(period("canceled", 0, 0, item("a", "canceled", 0)), day(0))
	m.expect(t, "ended ") // the merchant canceled it, and its challenge
}

func TestOrderOfReadingsOfASubscription(t *testing.T) {
	t.Parallel()
	readings := []*gateway.Subscription{
		period("incomplete", 0, 0, item("a", "pending", 0)),
		period("active", 0, 1, item("a", "paid", 0)),
		period("past_due", 30, 30, item("a", "paid", 0), item("b", "refused", 30)),
		period("active", 30, 33, item("a", "paid", 0), item("b", "refused", 30), item("c", "paid", 33)),
		period("canceled", 60, 60, item("a", "paid", 0), item("b", "refused", 30), item("c", "paid", 33), item("d", "refused", 60)),
	}
	readings[4].CancellationReason = gateway.CancellationPaymentFailure
	for _, equal := range []bool{false, true} {
		for order := range permutations(len(readings)) {
			m := newMember()
			for at, i := range append(order, order...) {
				before := *m
				sub := *readings[i]
				if equal { // then they are told apart by when they were made
					sub.UpdatedAt, at = gateway.TimestampOf(day(0)), i
				}
				m.apply(&sub, minute(at))
				assert.False(t, m.subscription.PaidUntil.Before(before.subscription.PaidUntil))
			}
			assert.Equal(t, books.State("canceled"), m.subscription.State, order)
			assert.Equal(t, day(60), m.subscription.PaidUntil, order)
			assert.Equal(t, 1, m.subscription.FailedAttempts, order)
			assert.Len(t, m.charges, 4, order)
			seen := map[string]int{}
			for _, line := range m.log {
				seen[line]++
				assert.Equal(t, 1, seen[line], "%s in the order %d", line, order)
			}
			for _, line := range []string{"started a", "payment_failed b", "renewed c", "payment_failed d", "ended "} {
				assert.Equal(t, 1, seen[line], "%s in the order %d", line, order)
			}
		}
	}
}

func TestTheGatewaysTimeCountsMoreThanThatOfTheReading(t *testing.T) {
	t.Parallel()
	m := newMember()
	m.apply(period("active", 0, 5), day(9))
	m.apply(period("past_due", 0, 6), day(1))
	assert.Equal(t, books.State("past_due"), m.subscription.State)
}

// Without updated_at, or if it is equal, the end and then the time of the reading decide.
func TestOrderOfReadingsOfASubscriptionWithEqualTimes(t *testing.T) {
	t.Parallel()
	for _, changed := range []gateway.Timestamp{{}, gateway.TimestampOf(day(1))} {
		at := func(status gateway.SubscriptionStatus) *gateway.Subscription {
			return &gateway.Subscription{ID: "s1", Status: status, Amount: 2990, UpdatedAt: changed}
		}
		m := newMember()
		m.apply(at("active"), day(2))
		assert.Equal(t, books.Stale, m.apply(at("past_due"), day(1)))
		assert.Equal(t, books.Stale, m.apply(at("past_due"), day(2)), "neither is known to be later")
		m.apply(at("past_due"), day(3))
		assert.Equal(t, books.State("past_due"), m.subscription.State)
		m.apply(at("active"), day(4))
		assert.Equal(t, books.State("active"), m.subscription.State)
		m.apply(at("canceled"), day(1))
		assert.Equal(t, books.State("canceled"), m.subscription.State)
		assert.Equal(t, books.Stale, m.apply(at("active"), day(5)))
		assert.Zero(t, m.subscription.FailedAttempts)

		m = newMember()
		m.apply(at("active"), time.Time{}) // when it was read is not known
		assert.Equal(t, books.State("active"), m.subscription.State)
	}
}

func TestWhatBecomesOfTheRequestForASubscription(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		op       books.Operation
		state    books.State
		reported []string
	}{
		{books.Waiting, books.New, nil},
		{books.InDoubt, books.Ambiguous, []string{"problem ambiguous/subscription/m1/"}},
		{books.Applied, "incomplete", nil},
		{books.Refused, books.Rejected, []string{"ended "}},
		{books.Abandoned, books.Withdrawn, nil},
	} {
		m := newMember()
		outcome := func(op books.Operation) books.Outcome {
			var r books.Result
			m.subscription, r = books.ApplySubscriptionOperation(m.order, m.subscription, op, "card expired", start)
			return m.keep(r)
		}
		assert.Equal(t, books.Unchanged, outcome(books.Sent))
		assert.Equal(t, books.Changed, outcome(tc.op))
		assert.Equal(t, tc.state, m.subscription.State)
		assert.Equal(t, tc.op == books.Refused, m.subscription.Reason == "card expired")
		m.expect(t, tc.reported...)
		outcome(books.Sent)
		assert.Equal(t, tc.op == books.Waiting || tc.op == books.InDoubt, m.subscription.State == books.Unknown)
		m.apply(period("active", 0, 0), day(0))
		assert.Equal(t, books.State("active"), m.subscription.State)
		outcome(books.Refused)
		assert.Equal(t, books.State("active"), m.subscription.State, "the reading counts more")
		assert.Empty(t, m.subscription.Reason)
	}
}

// Each of these readings shows one thing that is not booked, and nothing to report.
func TestTheOutcomeOfASubscriptionsReading(t *testing.T) {
	t.Parallel()
	refused, paid := item("t1", "refused", 0), item("t1", "paid", 0)
	longer, ends, trial := period("active", 0, 2, paid), period("active", 0, 2), period("trialing", 0, 2)
	longer.CurrentPeriodEnd, trial.TrialEnd, ends.CancelAtPeriodEnd = gateway.TimestampOf(day(31)), gateway.TimestampOf(day(14)), true
	for name, tc := range map[string]struct {
		first, then *gateway.Subscription
		at          int
		want        books.Outcome
	}{
		"the same":                  {period("active", 0, 1), period("active", 0, 1), 2, books.Unchanged},
		"older, in the same status": {period("active", 0, 3), period("active", 0, 2), 4, books.Unchanged},
		"older, in another status":  {period("active", 0, 3), period("past_due", 0, 2), 4, books.Stale},
		"another status":            {period("active", 0, 1), period("incomplete", 0, 2), 3, books.Changed},
		"another reason":            {period("cancel_scheduled", 0, 1), because(period("cancel_scheduled", 0, 2)), 3, books.Changed},
		"fewer failed attempts":     {period("incomplete", 0, 1, refused), period("incomplete", 0, 2, item("t1", "pending", 0)), 3, books.Changed},
		"paid for longer":           {period("active", 0, 1, paid), longer, 3, books.Changed},
		"it ends":                   {period("active", 0, 1), ends, 3, books.Changed},
		"a trial":                   {period("trialing", 0, 1), trial, 3, books.Changed},
		"another charge":            {period("active", 0, 1), period("active", 0, 2, item("t1", "pending", 2)), 3, books.Changed},
	} {
		m := newMember()
		m.apply(tc.first, day(1))
		m.log = nil
		assert.Equal(t, tc.want, m.apply(tc.then, day(tc.at)), name)
		m.expect(t)
	}
}

// because returns the subscription with a reason for its cancellation.
func because(sub *gateway.Subscription) *gateway.Subscription {
	sub.CancellationReason = gateway.CancellationUserRequested
	return sub
}

func TestTheRecordOfANewCharge(t *testing.T) {
	t.Parallel()
	m := newMember()
	sub := period("active", 0, 1, item("t1", "pending", 0))
	sub.Currency = ""
	m.apply(sub, day(1))
	require.Len(t, m.charges, 1)
	assert.Equal(t, books.Charge{
		ID: "t1", Origin: books.FromSubscription, TransactionID: "t1", State: books.New, Currency: gateway.BRL, Requested: 2990,
	}, m.charges[0])
}

func TestFactsOfASubscription(t *testing.T) {
	t.Parallel()
	late := period("past_due", 0, 1)
	_, _, r := books.ApplySubscription(books.Order{}, books.Subscription{ID: "m1"}, nil,
		books.Reading[gateway.Subscription]{Resource: late, Source: books.FromWebhook, At: day(2)})
	require.Len(t, r.Facts, 1)
	assert.Equal(t, fmt.Sprintf("past_due/m1/%d", late.CurrentPeriodEnd.Unix()), r.Facts[0].Key)
	assert.Equal(t, books.FromWebhook, r.Facts[0].Source)
	assert.Equal(t, late.UpdatedAt.Time, r.Facts[0].At)

	_, r = books.ApplySubscriptionOperation(books.Order{}, books.Subscription{ID: "m1", Operation: books.Sent}, books.Refused, "", start)
	require.Len(t, r.Facts, 1)
	assert.Equal(t, "ended/m1", r.Facts[0].Key)
	assert.Equal(t, books.FromOutcome, r.Facts[0].Source)
}

func TestSubscriptionsThatAreNotUnderstood(t *testing.T) {
	t.Parallel()
	m := newMember()
	m.apply(period("paused", 0, 0, item("a", "paid", 0)), day(0))
	m.expect(t, "started a", "problem unknown_state/subscription/m1/paused")
	assert.Equal(t, books.Unknown, m.subscription.State)
	assert.True(t, m.subscription.PaidUntil.IsZero())
	other := period("active", 0, 5)
	other.ID = "s2"
	m.apply(other, day(1))
	m.expect(t, "problem unmatched/subscription/m1/s2")
	assert.Equal(t, "s1", m.subscription.SubscriptionID)
	assert.Len(t, m.charges, 1, "nothing is lost")
}
