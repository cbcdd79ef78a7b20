// Package clock is the mock gateway's virtual clock: manual or running at a multiple
// of wall time, with a queue of timers.
//
// Timers are data, not functions, so that a snapshot is the time and the list;
// the owner of a timer recognises it by kind and id when it fires.
package clock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// DefaultMaxTimers is how many timers one advance may fire beyond those that
// were waiting when it began.
const DefaultMaxTimers = 1_000_000

// MaxSpeed is the greatest useful speed: some three thousand years a day.
const MaxSpeed = 1_000_000

// LastYear is the year with which the clock ends: the longest duration, 292 years, that
// begins in 9999, the last year of timestamps, must end before.
const LastYear = 9599

// end is the last moment of the clock.
var end = time.Date(LastYear, time.December, 31, 23, 59, 59, 0, time.UTC)

// Errors of an advance.
var (
	// ErrBackwards: the clock never goes back; a snapshot does.
	ErrBackwards = errors.New("the clock can't go backwards; restore a snapshot to return to an earlier time")
	// ErrAdvancing: another advance has not returned yet.
	ErrAdvancing = errors.New("the clock is already being advanced; " +
		"advance it from the test, not from inside a webhook handler or a second goroutine")
	// ErrRunaway: timers kept making timers.
	ErrRunaway = errors.New("the advance was stopped")
	// ErrFire: a timer could not do what it is for, and stays due.
	ErrFire = errors.New("a due timer failed and will be tried again")
	// ErrRange: beyond the last year.
	ErrRange = fmt.Errorf("the clock ends with the year %d", LastYear)
)

// Timer is a moment at which something becomes due.
type Timer struct {
	At      time.Time
	Account string // whose it is; "" for the server's own
	Kind    string // "transaction.expire"
	ID      string // of the resource
}

// Config is what a Clock needs.
type Config struct {
	// Start is the first moment.
	Start time.Time
	// Speed is virtual seconds per second of wall time, at most MaxSpeed; 0 is
	// a manual clock.
	Speed float64
	// Fire runs a due timer, on one goroutine at a time, with no lock held; it may add
	// timers. After an error the timer stays due and blocks those behind it: an advance
	// returns the error, a running clock tries again every second.
	Fire func(Timer) error
	// Settle waits until what the timers caused (webhooks) has been done. An advance calls it
	// before the first timer and after each. Nil settles nothing.
	Settle func(context.Context) error
	// Refuse says why an advance must not begin now, or returns nil. Nil
	// refuses nothing.
	Refuse func() error
	// StillApplies reports whether a timer will do anything when it fires, so that the
	// others are not shown and not waited for. Nil is all.
	StillApplies func(Timer) bool
	// Moved is notified of an advance that has moved the clock. Nil is not.
	Moved func(from, to time.Time)
	// MaxTimers guards against timers that make timers forever; 0 is
	// DefaultMaxTimers.
	MaxTimers int
}

// Clock is one server's time. Its methods are safe for concurrent use.
type Clock struct {
	cfg  Config
	turn chan struct{} // held by whoever fires timers

	// firing is held from the moment a timer leaves the queue until it has done what
	// it is for. It is taken after turn and before every lock that Fire takes.
	firing sync.Mutex

	mu        sync.Mutex
	now       time.Time // the moment, or of a running clock the moment at base
	base      time.Time // wall time at which now was true; zero while standing
	timers    queue
	failures  uint64 // of Fire so far
	advancing bool

	wake chan struct{} // tells the runner that an earlier timer came
	stop context.CancelFunc
	done chan struct{}
}

// New returns a standing clock. A clock with a speed begins to run with
// [Clock.Run].
func New(cfg Config) *Clock {
	if cfg.MaxTimers == 0 {
		cfg.MaxTimers = DefaultMaxTimers
	}
	cfg.Speed = min(cfg.Speed, MaxSpeed)
	return &Clock{
		cfg:  cfg,
		turn: make(chan struct{}, 1),
		now:  cfg.Start.UTC().Round(0),
		wake: make(chan struct{}, 1),
	}
}

// Now returns the current virtual time, in UTC.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moment()
}

// moment is Now for callers that hold the lock.
func (c *Clock) moment() time.Time {
	if c.base.IsZero() {
		return c.now
	}
	passed := min(float64(time.Since(c.base))*c.cfg.Speed, float64(2*maxStretch))
	return earlier(c.now.Add(time.Duration(passed)), end)
}

// Add puts timers into the queue. Those of equal moments fire in the order in
// which they were added; one whose moment has passed is due at once.
func (c *Clock) Add(timers ...Timer) {
	c.mu.Lock()
	for _, t := range timers {
		c.timers.push(t)
	}
	c.mu.Unlock()
	c.nudge()
}

// Drop removes the timers that match, for a record or an account that is gone.
func (c *Clock) Drop(match func(Timer) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers.drop(match)
}

// Timers lists what is waiting, in the order in which it will fire.
func (c *Clock) Timers() []Timer {
	c.mu.Lock()
	list := c.timers.list()
	c.mu.Unlock()
	if c.cfg.StillApplies != nil {
		list = slices.DeleteFunc(list, func(t Timer) bool { return !c.cfg.StillApplies(t) })
	}
	return list
}

// Upcoming lists the first n timers, in the order in which they will fire, less
// those that will do nothing. It takes as long for a million timers as for a few.
func (c *Clock) Upcoming(n int) []Timer {
	c.mu.Lock()
	list := c.timers.first(n)
	c.mu.Unlock()
	if c.cfg.StillApplies != nil {
		list = slices.DeleteFunc(list, func(t Timer) bool { return !c.cfg.StillApplies(t) })
	}
	return list
}

// Len returns how many timers wait, those that will do nothing among them.
func (c *Clock) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers.items)
}

// Failures returns how often a due timer has failed so far.
func (c *Clock) Failures() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures
}

// Advance moves the clock by d, firing the timers on its way.
func (c *Clock) Advance(ctx context.Context, d time.Duration) error {
	if d < 0 {
		return ErrBackwards
	}
	return c.advance(ctx, func(now time.Time) time.Time { return now.Add(d) })
}

// AdvanceTo moves the clock to a moment, firing the timers on its way.
func (c *Clock) AdvanceTo(ctx context.Context, to time.Time) error {
	return c.advance(ctx, func(time.Time) time.Time { return to })
}

// Next moves the clock to the next timer's moment and fires all that are due
// then. It reports whether there was one.
func (c *Clock) Next(ctx context.Context) (moved bool, err error) {
	err = c.advance(ctx, func(now time.Time) time.Time {
		timers := c.Timers()
		if moved = len(timers) > 0; !moved {
			return now
		}
		return later(now, timers[0].At)
	})
	return moved, err
}

// advance fires, in order, what is due until the moment that target names, and
// ends there. An error leaves the clock where it was met.
func (c *Clock) advance(ctx context.Context, target func(now time.Time) time.Time) error {
	err := c.turnTo(ctx, target)
	if err == nil {
		c.RunDue() // what a request made due meanwhile
	}
	return err
}

func (c *Clock) turnTo(ctx context.Context, target func(now time.Time) time.Time) error {
	if c.cfg.Refuse != nil {
		if err := c.cfg.Refuse(); err != nil {
			return err
		}
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer c.finish()
	if err := c.settle(ctx); err != nil {
		return err
	}
	from := c.Now()
	to := target(from).UTC()
	switch {
	case to.Before(from):
		return ErrBackwards
	case to.After(end):
		return ErrRange
	}
	err := c.fireUntil(ctx, to)
	if now := c.Now(); c.cfg.Moved != nil && now.After(from) {
		c.cfg.Moved(from, now)
	}
	return err
}

// begin takes the turn and stands the clock still.
func (c *Clock) begin(ctx context.Context) error {
	c.mu.Lock()
	if c.advancing {
		c.mu.Unlock()
		return ErrAdvancing
	}
	c.advancing = true
	c.mu.Unlock()
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		c.mu.Lock()
		c.advancing = false
		c.mu.Unlock()
		return ctx.Err()
	}
	c.mu.Lock()
	c.now, c.base = c.moment(), time.Time{}
	c.mu.Unlock()
	return nil
}

// finish gives the turn back and lets a running clock run on.
func (c *Clock) finish() {
	c.mu.Lock()
	c.advancing = false
	if c.done != nil {
		c.base = time.Now()
	}
	c.mu.Unlock()
	<-c.turn
	c.nudge()
}

// RunDue fires the timers that are due on a manual clock: a change may have made
// some. It does nothing on a running clock, or while timers are being fired. Call it
// without a lock that Fire takes.
func (c *Clock) RunDue() {
	for fired := 0; c.standingDue() && fired < c.cfg.MaxTimers; {
		select {
		case c.turn <- struct{}{}:
		default:
			return
		}
		for fired < c.cfg.MaxTimers && c.standingDue() {
			if _, err := c.fireNext(c.Now(), fired, c.cfg.MaxTimers); err != nil {
				<-c.turn
				return
			}
			fired++
		}
		<-c.turn
	}
}

func (c *Clock) standingDue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base.IsZero() && len(c.timers.items) > 0 && !c.timers.items[0].At.After(c.now)
}

func (c *Clock) fireUntil(ctx context.Context, to time.Time) error {
	c.mu.Lock()
	budget := len(c.timers.items) + c.cfg.MaxTimers
	c.mu.Unlock()
	for fired := 0; ; fired++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		due, err := c.fireNext(to, fired, budget)
		if err != nil {
			return err
		}
		if !due {
			return nil
		}
		if err := c.settle(ctx); err != nil {
			return err
		}
	}
}

// fireNext fires the next timer that is due by to, and reports whether there is
// one. It fires no more than budget.
func (c *Clock) fireNext(to time.Time, fired, budget int) (due bool, err error) {
	c.firing.Lock()
	defer c.firing.Unlock()
	t, due := c.pop(to)
	if !due {
		return false, nil
	}
	if fired == budget {
		c.putBack(t)
		return true, fmt.Errorf("%w at %s after %d timers, the last a %s of %s: advance in smaller steps, "+
			"or look for timers that keep making timers", ErrRunaway, t.At.Format(time.RFC3339), fired, t.Kind, t.ID)
	}
	return true, c.fire(t)
}

// fire runs a due timer. One that fails is put back in its place.
func (c *Clock) fire(t item) error {
	err := c.cfg.Fire(t.Timer)
	if err == nil {
		return nil
	}
	c.putBack(t)
	c.mu.Lock()
	c.failures++
	c.mu.Unlock()
	return fmt.Errorf("%w: %s of %s, due at %s: %w", ErrFire, t.Kind, t.ID, t.At.Format(time.RFC3339), err)
}

// putBack returns a timer to where it was in the queue.
func (c *Clock) putBack(t item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers.insert(t)
}

// pop takes the next timer that is due by to and moves the clock to it, or,
// if none is left, to the end.
func (c *Clock) pop(to time.Time) (item, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers.items) == 0 || c.timers.items[0].At.After(to) {
		c.now = later(c.now, to)
		return item{}, false
	}
	t := c.timers.pop()
	c.now = later(c.now, t.At)
	return t, true
}

func (c *Clock) settle(ctx context.Context) error {
	if c.cfg.Settle == nil {
		return nil
	}
	return c.cfg.Settle(ctx)
}

// State is a clock as a snapshot keeps it.
type State struct {
	Now    time.Time
	Timers []Timer // in firing order
}

// State returns the moment and the timers.
func (c *Clock) State() State { return c.Capture()() }

// Capture copies the moment and the timers, and returns what puts them in order:
// with a million timers that takes a second, for which no caller's lock need be held.
func (c *Clock) Capture() (state func() State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, timers := c.moment(), queue{items: slices.Clone(c.timers.items)}
	return func() State { return State{Now: now, Timers: timers.list()} }
}

// Still runs do while no timer is being fired: each is either waiting, or has done
// what it is for.
func (c *Clock) Still(do func()) {
	c.firing.Lock()
	defer c.firing.Unlock()
	do()
}

// Restore sets the moment and the timers, and may go back in time. It fails
// while an advance runs.
func (c *Clock) Restore(s State) error {
	c.mu.Lock()
	defer c.nudge()
	defer c.mu.Unlock()
	if c.advancing {
		return ErrAdvancing
	}
	c.now = s.Now.UTC()
	if c.done != nil {
		c.base = time.Now()
	}
	c.timers = queue{}
	for _, t := range s.Timers {
		c.timers.push(t)
	}
	return nil
}

// Resume moves a clock that does not run yet to a later moment and fires nothing.
func (c *Clock) Resume(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = later(c.now, at.UTC())
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
