package books_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/merchant/internal/books"
)

// What an absence means, for every witness, every age around the lag and every lag.
func TestWhatAnAbsenceMeans(t *testing.T) {
	t.Parallel()
	const lag = 2 * time.Minute
	type cell struct {
		verdict books.Verdict
		wait    time.Duration
	}
	gone, silent := cell{books.Gone, 0}, cell{books.Silent, 0}
	notYet := func(wait time.Duration) cell { return cell{books.NotYet, wait} }
	cells := 0
	for _, row := range []struct {
		age, lag time.Duration
		want     cell // if the witness can say anything
	}{
		{0, lag, notYet(lag)},
		{1, lag, notYet(lag - 1)},
		{time.Minute, lag, notYet(time.Minute)},
		{lag - 1, lag, notYet(1)},
		{lag, lag, gone},
		{lag + 1, lag, gone},
		{math.MaxInt64, lag, gone},
		// A clock is ahead: the thing can't be from the future.
		{-1, lag, notYet(lag)},
		{-time.Hour, lag, notYet(lag)},
		{math.MinInt64, lag, notYet(lag)},
		{math.MinInt64, math.MaxInt64, notYet(math.MaxInt64)},
		// A gateway that never lags.
		{0, 0, gone},
		{1, 0, gone},
		{-1, 0, notYet(0)},
		{0, -time.Hour, gone},
		{math.MaxInt64, math.MinInt64, gone},
		{-time.Hour, -time.Hour, notYet(0)},
		{math.MinInt64, math.MinInt64, notYet(0)},
	} {
		for witness, can := range map[books.Witness]bool{
			books.ByList: true, books.ByNotFound: true, books.ByOlder: true, books.ByForbidden: false, 0: false, 99: false,
		} {
			cells++
			want := row.want
			if !can {
				want = silent
			}
			verdict, wait := books.Absence(witness, row.age, row.lag)
			assert.Equal(t, want, cell{verdict, wait}, "witness %d, age %d, lag %d", witness, row.age, row.lag)
		}
	}
	t.Logf("%d cells", cells)
	assert.NotEqual(t, books.Gone, books.Verdict(0), "a verdict that was forgotten is no fact")
}

// Asking again after the wait gives a fact: no caller asks for ever.
func TestAnAbsenceIsDecidedAfterTheWait(t *testing.T) {
	t.Parallel()
	const lag = 2 * time.Minute
	for age := -10 * time.Second; age < 3*lag; age += time.Second {
		verdict, wait := books.Absence(books.ByList, age, lag)
		if verdict == books.NotYet {
			verdict, _ = books.Absence(books.ByList, max(age, 0)+wait, lag)
		}
		assert.Equal(t, books.Gone, verdict, age)
	}
}
