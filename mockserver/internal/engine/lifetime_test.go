package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// eventLog formats the events since it was last called as lines: the day, the kind
// and the state.
func (w *world) eventLog() []string {
	var lines []string
	for _, e := range w.events[w.read:] {
		line := e.at.Format("2006-01-02 ") + e.Kind
		switch {
		case e.Kind == "subscription.payment_failed":
			line += fmt.Sprintf(" attempt %d %s", e.Attempt, e.FailureReason)
		case e.Subscription != nil:
			line += fmt.Sprintf(" %s cycle %d", e.Subscription.Status, e.Subscription.Cycle)
		case e.Transaction != nil:
			line += fmt.Sprintf(" %s %d", e.Transaction.Status, e.Transaction.Amount)
		}
		lines = append(lines, line)
	}
	w.read = len(w.events)
	return lines
}

// Three years of a monthly subscription that was created on a 31st: every date,
// every charge and every webhook, in order. In the cycles listed below, the first
// charge fails, or both the first charge and the retry on day 3.
func TestThreeYearsOfAMonthlySubscription(t *testing.T) {
	t.Parallel()
	failures := map[int]int{3: 1, 9: 2, 14: 1, 25: 2, 36: 1} // attempts that fail, by cycle
	retries := []int{3, 5, 7}

	w := newWorld(t)
	created := time.Date(2027, time.January, 31, 12, 0, 0, 0, time.UTC)
	w.env.Now = created
	id := w.subscribe("pgct_ok")
	want := []string{
		"2027-01-31 subscription.created active cycle 1",
		"2027-01-31 subscription.started active cycle 1",
		"2027-01-31 transaction.created paid 4990",
		"2027-01-31 transaction.paid paid 4990",
	}
	charges, paid := 1, 1
	for cycle := 2; cycle <= 36; cycle++ {
		due := monthsAfter(created, cycle-1)
		failed := failures[cycle]
		for attempt := range failed {
			at := due
			if attempt > 0 {
				at = due.AddDate(0, 0, retries[attempt-1])
			}
			day := at.Format("2006-01-02 ")
			want = append(want, fmt.Sprintf("%ssubscription.payment_failed attempt %d declined", day, attempt+1))
			if attempt == 0 {
				want = append(want, fmt.Sprintf("%ssubscription.past_due past_due cycle %d", day, cycle))
			}
			want = append(want, day+"transaction.created refused 4990")
			charges++
		}
		at := due
		if failed > 0 {
			at = due.AddDate(0, 0, retries[failed-1])
		}
		day := at.Format("2006-01-02 ")
		want = append(want,
			fmt.Sprintf("%ssubscription.renewed active cycle %d", day, cycle),
			day+"transaction.created paid 4990", day+"transaction.paid paid 4990")
		charges++
		paid++
	}

	for cycle := 2; cycle <= 36; cycle++ {
		if n := failures[cycle]; n > 0 {
			require.Nil(t, w.take(id, does(failNext(n))))
		}
		w.advance(monthsAfter(created, cycle).Sub(w.env.Now) - time.Second)
	}

	assert.Equal(t, want, w.eventLog())
	s := w.sub(id)
	assert.Len(t, s.ChargeIDs, charges)
	assert.Equal(t, monthsAfter(created, 35), s.CurrentPeriodStart)
	assert.Equal(t, monthsAfter(created, 36), s.CurrentPeriodEnd)
	assert.Equal(t, int64(paid)*(4990-149), w.balance)
}

// monthsAfter is implemented differently from the engine: it steps back from days
// that the month does not have.
func monthsAfter(t time.Time, n int) time.Time {
	for day := t.Day(); ; day-- {
		at := time.Date(t.Year(), t.Month()+time.Month(n), day, t.Hour(), 0, 0, 0, time.UTC)
		if at.Day() == day {
			return at
		}
	}
}

// Periods that start while an earlier one is in dunning are not charged until the
// dunning succeeds. Then each of them is charged once.
func TestDunningLongerThanThePeriod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.subscribe("pgct_ok", daily)
	require.Nil(t, w.take(id, does(failNext(2)))) // day 1 and the retry of day 4
	w.advance(6*24*time.Hour - time.Second)
	assert.Equal(t, 2, w.sub(id).Cycle, "the next period waits")
	assert.Equal(t, "past_due", w.sub(id).Status)
	w.emitted()
	w.eventLog()
	w.advance(time.Second)
	day := "2027-01-10 "
	renewed := func(cycle int) []string {
		return []string{
			fmt.Sprintf("%ssubscription.renewed active cycle %d", day, cycle),
			day + "transaction.created paid 4990", day + "transaction.paid paid 4990",
		}
	}
	var want []string
	for cycle := 2; cycle <= 7; cycle++ {
		want = append(want, renewed(cycle)...)
	}
	assert.Equal(t, want, w.eventLog())
	s := w.sub(id)
	assert.Equal(t, start().AddDate(0, 0, 6), s.CurrentPeriodStart, "dunning does not move the periods")
	assert.Equal(t, start().AddDate(0, 0, 7), s.CurrentPeriodEnd)
}

func TestRetryOffsetsInAnyOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.subscribe("pgct_renewal_fails", func(in *engine.NewSubscription) { in.RetryOffsetsDays = []int{10, 2, 2, 30} })
	w.advance(month * 24 * time.Hour)
	w.eventLog()
	w.advance(60 * 24 * time.Hour)
	assert.Equal(t, []string{
		"2027-02-06 subscription.payment_failed attempt 2 declined",
		"2027-02-06 transaction.created refused 4990",
		"2027-02-14 subscription.payment_failed attempt 3 declined",
		"2027-02-14 transaction.created refused 4990",
		"2027-03-06 subscription.payment_failed attempt 4 declined",
		"2027-03-06 subscription.canceled canceled cycle 2",
		"2027-03-06 transaction.created refused 4990",
	}, w.eventLog())
	assert.Equal(t, "payment_failure", w.sub(id).CancellationReason)
	assert.Equal(t, []int{10, 2, 2, 30}, w.sub(id).RetryOffsetsDays, "stored as sent")
}

// The test token fails the first two attempts of every renewal.
func TestTwoRenewalAttemptsFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.subscribe("pgct_renewal_fails_2")
	w.advance(2*month*24*time.Hour + 10*24*time.Hour)
	s := w.sub(id)
	assert.Equal(t, "active", s.Status)
	assert.Equal(t, 3, s.Cycle)
	assert.Len(t, s.ChargeIDs, 7, "1 + 3 + 3")
}
