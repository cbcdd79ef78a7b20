package clock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
)

var start = time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC)

// recorder is a clock that records which timers fired and when.
type recorder struct {
	*clock.Clock

	mu    sync.Mutex
	log   []string
	react func(clock.Timer)
	fails func(clock.Timer) error // nil: no timer fails
}

func (r *recorder) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, line)
}

// fired returns the lines recorded since the last call.
func (r *recorder) fired() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log
	r.log = nil
	return log
}

func newRecorder(cfg clock.Config) *recorder {
	r := &recorder{}
	cfg.Start = start
	cfg.Fire = func(t clock.Timer) error {
		if r.fails != nil {
			if err := r.fails(t); err != nil {
				return err
			}
		}
		r.note(fmt.Sprintf("%s@%s", t.ID, r.Now().Sub(start)))
		if r.react != nil {
			r.react(t)
		}
		return nil
	}
	r.Clock = clock.New(cfg)
	return r
}

func after(d time.Duration, id string) clock.Timer {
	return clock.Timer{At: start.Add(d), Account: "acc", Kind: "test", ID: id}
}

func TestAdvanceFiresTimersInOrderAtTheirTimes(t *testing.T) {
	t.Parallel()
	r := newRecorder(clock.Config{})
	r.Add(after(2*time.Second, "c"), after(time.Second, "a"), after(time.Second, "b"), after(time.Minute, "late"))

	require.NoError(t, r.Advance(t.Context(), 10*time.Second))

	assert.Equal(t, []string{"a@1s", "b@1s", "c@2s"}, r.fired())
	assert.Equal(t, start.Add(10*time.Second), r.Now())
	assert.Equal(t, []clock.Timer{after(time.Minute, "late")}, r.Timers())
}

func TestTimersAddedWhileAdvancingFireInTheSameAdvance(t *testing.T) {
	t.Parallel()
	r := newRecorder(clock.Config{})
	r.react = func(tm clock.Timer) {
		if tm.ID == "renewal" {
			r.Add(clock.Timer{At: tm.At.Add(time.Hour), ID: "retry"})
		}
	}
	r.Add(after(time.Hour, "renewal"), after(3*time.Hour, "end"))

	require.NoError(t, r.AdvanceTo(t.Context(), start.Add(3*time.Hour)))

	assert.Equal(t, []string{"renewal@1h0m0s", "retry@2h0m0s", "end@3h0m0s"}, r.fired())
}

func TestATimerInThePastFiresWithoutTurningTheClockBack(t *testing.T) {
	t.Parallel()
	r := newRecorder(clock.Config{})
	r.Add(after(-time.Hour, "overdue"))

	require.NoError(t, r.Advance(t.Context(), 0))

	assert.Equal(t, []string{"overdue@0s"}, r.fired())
	assert.Equal(t, start, r.Now())
}

func TestNext(t *testing.T) {
	t.Parallel()
	r := newRecorder(clock.Config{})
	r.Add(after(time.Hour, "a"), after(time.Hour, "b"), after(2*time.Hour, "c"))

	moved, err := r.Next(t.Context())
	require.NoError(t, err)
	assert.True(t, moved)
	assert.Equal(t, []string{"a@1h0m0s", "b@1h0m0s"}, r.fired())

	_, err = r.Next(t.Context())
	require.NoError(t, err)
	moved, err = r.Next(t.Context())
	require.NoError(t, err)
	assert.False(t, moved, "no timer is left")
	assert.Equal(t, start.Add(2*time.Hour), r.Now())
}

func TestTimersWithoutEffectAreNeitherShownNorWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRecorder(clock.Config{StillApplies: func(tm clock.Timer) bool { return tm.ID != "paid" }})
	r.Add(after(time.Hour, "paid"), after(2*time.Hour, "open"))
	assert.Equal(t, []clock.Timer{after(2*time.Hour, "open")}, r.Timers())
	assert.Equal(t, 2, r.Len())
	assert.Len(t, r.State().Timers, 2, "a snapshot contains every timer")

	moved, err := r.Next(t.Context())
	require.NoError(t, err)
	assert.True(t, moved)
	assert.Equal(t, []string{"paid@1h0m0s", "open@2h0m0s"}, r.fired(), "the timer without an effect still fires")
	r.Add(after(3*time.Hour, "paid"))
	moved, err = r.Next(t.Context())
	require.NoError(t, err)
	assert.False(t, moved)
}

func TestManyTimersFireInOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var last time.Time
	count := 0
	c := clock.New(clock.Config{Start: start, Fire: func(tm clock.Timer) error {
		assert.False(t, tm.At.Before(last))
		last = tm.At
		count++
		return nil
	}})
	for i := range 5000 {
		c.Add(after(time.Duration(random.IntN(1000))*time.Second, strconv.Itoa(i)))
	}
	c.Drop(func(tm clock.Timer) bool { n, _ := strconv.Atoi(tm.ID); return n%5 == 0 })

	require.NoError(t, c.Advance(t.Context(), time.Hour))

	assert.Equal(t, 4000, count)
	assert.Empty(t, c.Timers())
}

func TestRejectedAdvances(t *testing.T) {
	t.Parallel()
	r := newRecorder(clock.Config{})

	require.ErrorIs(t, r.Advance(t.Context(), -1), clock.ErrBackwards)
	require.ErrorIs(t, r.AdvanceTo(t.Context(), start.Add(-time.Second)), clock.ErrBackwards)
	require.ErrorIs(t, r.AdvanceTo(t.Context(), start.AddDate(9000, 0, 0)), clock.ErrRange)
	assert.Equal(t, start, r.Now())

	inHandler := errors.New("inside a handler")
	r = newRecorder(clock.Config{Refuse: func() error { return inHandler }})
	require.ErrorIs(t, r.Advance(t.Context(), time.Second), inHandler)
	assert.Equal(t, start, r.Now())
}

func TestAdvanceInsideAFiringTimerIsAnError(t *testing.T) {
	t.Parallel()
	r := newRecorder(clock.Config{})
	var inner, restored error
	r.react = func(clock.Timer) {
		inner = r.Advance(t.Context(), time.Hour)
		restored = r.Restore(clock.State{})
	}
	r.Add(after(time.Second, "a"))

	require.NoError(t, r.Advance(t.Context(), time.Minute))

	require.ErrorIs(t, inner, clock.ErrAdvancing)
	require.ErrorIs(t, restored, clock.ErrAdvancing)
	assert.Equal(t, start.Add(time.Minute), r.Now())
	require.NoError(t, r.Advance(t.Context(), time.Minute), "the clock is usable afterwards")
}

func TestARunawayTimerIsStopped(t *testing.T) {
	t.Parallel()
	r := newRecorder(clock.Config{MaxTimers: 100})
	r.react = func(tm clock.Timer) { r.Add(clock.Timer{At: tm.At, Kind: "renewal", ID: "sub_1"}) }
	r.Add(after(time.Second, "a"))

	err := r.Advance(t.Context(), time.Hour)

	require.ErrorIs(t, err, clock.ErrRunaway)
	require.ErrorContains(t, err, "renewal of sub_1")
	assert.Equal(t, start.Add(time.Second), r.Now())
	assert.Len(t, r.fired(), 101)
	assert.Len(t, r.Timers(), 1, "the timer that did not fire is still pending")
}

func TestAdvanceSettlesBeforeTheFirstTimerAndAfterEach(t *testing.T) {
	t.Parallel()
	var r *recorder
	r = newRecorder(clock.Config{Settle: func(context.Context) error {
		r.note("settled")
		return nil
	}})
	r.Add(after(time.Second, "a"), after(2*time.Second, "b"))

	require.NoError(t, r.Advance(t.Context(), time.Minute))

	assert.Equal(t, []string{"settled", "a@1s", "settled", "b@2s", "settled"}, r.fired())
}

func TestACanceledAdvanceStopsAtTheLastTimerFired(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := newRecorder(clock.Config{})
	r.react = func(clock.Timer) { cancel() }
	r.Add(after(time.Second, "a"), after(2*time.Second, "b"))

	require.ErrorIs(t, r.Advance(ctx, time.Minute), context.Canceled)

	assert.Equal(t, start.Add(time.Second), r.Now())
	assert.Len(t, r.Timers(), 1)
}

func TestStateAndRestore(t *testing.T) {
	t.Parallel()
	r := newRecorder(clock.Config{})
	r.Add(after(2*time.Second, "c"), after(time.Second, "a"), after(time.Second, "b"))
	state := r.State()
	require.NoError(t, r.Advance(t.Context(), time.Hour))
	first := r.fired()

	require.NoError(t, r.Restore(state))
	assert.Equal(t, start, r.Now())
	require.NoError(t, r.Advance(t.Context(), time.Hour))

	assert.Equal(t, first, r.fired())
}

func TestARunningClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(clock.Config{Speed: 60})
		r.Add(after(time.Hour, "hour"))
		r.Run()
		defer r.Close()
		r.Add(after(time.Minute, "minute"))

		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"minute@1m0s"}, r.fired())

		r.Add(after(2*time.Hour, "two hours"), after(2*time.Minute, "two minutes")) // the clock sleeps until the hour
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"two minutes@2m0s"}, r.fired())

		time.Sleep(58 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"hour@1h0m0s"}, r.fired())
		assert.Equal(t, start.Add(time.Hour), r.Now())
	})
}

func TestARunningClockCanBeAdvanced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(clock.Config{Speed: 1})
		r.Run()
		defer r.Close()
		r.Add(after(time.Hour, "hour"), after(2*time.Hour+time.Second, "later"))

		require.NoError(t, r.Advance(t.Context(), 2*time.Hour))
		assert.Equal(t, []string{"hour@1h0m0s"}, r.fired())

		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"later@2h0m1s"}, r.fired())
	})
}

func TestARunningClockNeverLeavesItsRange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(clock.Config{Speed: clock.MaxSpeed})
		r.Run()
		defer r.Close()
		before := r.Now()
		for range 100 {
			time.Sleep(time.Hour)
			now := r.Now()
			assert.False(t, now.Before(before))
			before = now
		}
		assert.Equal(t, clock.LastYear, r.Now().Year())
	})
}

func TestCloseStopsARunningClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(*testing.T) { // fails if a goroutine leaks
		r := newRecorder(clock.Config{Speed: 1})
		r.Run()
		r.Close()
		r.Close()
	})
	manual := clock.New(clock.Config{Start: start})
	manual.Run()
	manual.Close()
}

// A renewal that is due while the memory limit is reached must not be lost.
func TestAFailedTimerStaysDueAndKeepsItsPlace(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	r := newRecorder(clock.Config{})
	r.fails = func(tm clock.Timer) error {
		if tm.ID == "renewal" {
			return full
		}
		return nil
	}
	r.Add(after(time.Second, "first"), after(time.Minute, "renewal"), after(time.Minute, "next"))

	err := r.Advance(t.Context(), time.Hour)
	require.ErrorIs(t, err, clock.ErrFire)
	require.ErrorIs(t, err, full)
	require.ErrorContains(t, err, "renewal")
	assert.Equal(t, []string{"first@1s"}, r.fired())
	assert.Equal(t, start.Add(time.Minute), r.Now(), "the clock stops where the timer failed")
	assert.Equal(t, []clock.Timer{after(time.Minute, "renewal"), after(time.Minute, "next")}, r.Timers())

	r.RunDue()
	assert.Empty(t, r.fired(), "no later timer fires before it")
	assert.EqualValues(t, 2, r.Failures())

	r.fails = nil
	require.NoError(t, r.Advance(t.Context(), time.Hour))
	assert.Equal(t, []string{"renewal@1m0s", "next@1m0s"}, r.fired())
	assert.Empty(t, r.Timers())
}

func TestARunningClockRetriesAFailedTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(clock.Config{Speed: 1})
		r.fails = func(clock.Timer) error {
			if r.Failures() < 3 {
				return errors.New("full")
			}
			return nil
		}
		r.Add(after(time.Second, "renewal"))
		r.Run()
		defer r.Close()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"renewal@4s"}, r.fired(), "after three failures, a second apart")
	})
}

func TestUpcomingListsTheFirstTimers(t *testing.T) {
	t.Parallel()
	c := clock.New(clock.Config{Start: start})
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		c.Add(clock.Timer{At: start.Add(time.Duration(random.IntN(50)) * time.Minute), ID: strconv.Itoa(i)})
	}
	for _, n := range []int{0, 1, 7, 499, 500, 501} {
		want := c.Timers()
		assert.Equal(t, want[:min(n, len(want))], append([]clock.Timer{}, c.Upcoming(n)...))
	}
	assert.Empty(t, clock.New(clock.Config{Start: start}).Upcoming(3))
}
