// Package clock implements the mock gateway's virtual clock and its queue of
// timers. The clock is either advanced manually or runs at a multiple of wall
// time.
//
// Timers are data rather than functions, so a snapshot needs only the time and
// the list of timers. When a timer fires, its kind and id identify the action.
package clock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/stored"
)

// DefaultMaxTimers is how many timers one advance may fire beyond those that
// were pending when it began.
const DefaultMaxTimers = 1_000_000

// MaxSpeed is the maximum speed: about three thousand years per day.
const MaxSpeed = 1_000_000

// LastYear is the last year that the clock can reach. The longest duration, 292
// years, added to it still gives a year before 9999, the last one that a
// timestamp can have.
const LastYear = 9599

// firstYear is the first year in which a clock can start.
const firstYear = 1970

// end is the latest time that the clock can reach.
var end = time.Date(LastYear, time.December, 31, 23, 59, 59, 0, time.UTC)

// Errors of an advance.
var (
	// ErrBackwards means that the target of an advance is in the past.
	ErrBackwards = errors.New("the clock can't go backwards; restore a snapshot to return to an earlier time")
	// ErrAdvancing means that another advance is in progress.
	ErrAdvancing = errors.New("the clock is already being advanced; " +
		"advance it from the test, not from inside a webhook handler or a second goroutine")
	// ErrRunaway means that timers kept creating timers.
	ErrRunaway = errors.New("the advance was stopped")
	// ErrFire means that a timer's action failed. The timer stays due.
	ErrFire = errors.New("a due timer failed and will be retried")
	// ErrRange means that the target of an advance is after LastYear.
	ErrRange = fmt.Errorf("the clock can't go past the year %d", LastYear)
)

// Timer is an action that is due at a given time.
type Timer struct {
	At      time.Time
	Account string // "" if it belongs to the server itself
	Kind    string // "transaction.expire"
	ID      string // of the resource
}

// Config configures a Clock.
type Config struct {
	// Start is the initial time.
	Start time.Time
	// Speed is the number of virtual seconds per second of wall time, at most
	// MaxSpeed; 0 means a manual clock.
	Speed float64
	// Fire runs a due timer. It is called by one goroutine at a time, which
	// holds no lock that Add takes, so it may add timers. After an error the
	// timer stays due and blocks the timers behind it: an advance returns the
	// error, and a running clock retries every second.
	Fire func(Timer) error
	// Settle waits until the effects of timers (webhooks) are complete. An
	// advance calls it before the first timer and after each timer. It may be
	// nil.
	Settle func(context.Context) error
	// Refuse returns an error if an advance must not start now. It may be nil.
	Refuse func() error
	// StillApplies reports whether a timer will have an effect when it fires;
	// other timers are neither listed nor waited for. If it is nil, every timer
	// has an effect.
	StillApplies func(Timer) bool
	// Moved is called after an advance has moved the clock, which returns its error. It
	// may be nil.
	Moved func(from, to time.Time) error
	// MaxTimers guards against timers that create timers forever; 0 means
	// DefaultMaxTimers.
	MaxTimers int
}

// Clock is a server's virtual clock. It is safe for concurrent use.
type Clock struct {
	cfg  Config
	turn chan struct{} // held while timers are fired

	// firing is held from the time a timer leaves the queue until its action
	// is complete. It is locked after turn and before every lock that Fire
	// takes.
	firing sync.Mutex

	mu        sync.Mutex
	now       time.Time // the virtual time; on a running clock, as of base
	base      time.Time // the wall time that corresponds to now; zero while the clock is stopped
	timers    queue
	failures  uint64 // failures of Fire so far
	advancing bool

	wake chan struct{} // makes the loop of a running clock check its timers
	stop context.CancelFunc
	done chan struct{}
}

// New returns a stopped clock. [Clock.Run] starts it if it has a speed.
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
	return c.nowLocked()
}

// nowLocked is like Now, for callers that hold mu.
func (c *Clock) nowLocked() time.Time {
	if c.base.IsZero() {
		return c.now
	}
	passed := min(float64(time.Since(c.base))*c.cfg.Speed, float64(2*maxStep))
	return earlier(c.now.Add(time.Duration(passed)), end)
}

// Add adds timers to the queue. Timers with the same time fire in the order in
// which they were added; a timer in the past is due immediately.
func (c *Clock) Add(timers ...Timer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.timers.count
	for _, t := range timers {
		c.timers.push(t)
	}
	if len(c.timers.items) > 0 && c.timers.items[0].seq >= known { // otherwise a running clock wakes early enough
		c.nudge()
	}
}

// Drop removes the timers that match, such as those of a deleted account.
func (c *Clock) Drop(match func(Timer) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers.drop(match)
}

// Timers lists the pending timers in firing order, except those that will have
// no effect.
func (c *Clock) Timers() []Timer {
	c.mu.Lock()
	list := c.timers.list()
	c.mu.Unlock()
	if c.cfg.StillApplies != nil {
		list = slices.DeleteFunc(list, func(t Timer) bool { return !c.cfg.StillApplies(t) })
	}
	return list
}

// Upcoming lists the first n timers in firing order, except those that will
// have no effect. Its cost depends on n, not on the number of pending timers.
func (c *Clock) Upcoming(n int) []Timer {
	c.mu.Lock()
	list := c.timers.first(n)
	c.mu.Unlock()
	if c.cfg.StillApplies != nil {
		list = slices.DeleteFunc(list, func(t Timer) bool { return !c.cfg.StillApplies(t) })
	}
	return list
}

// Len returns the number of pending timers, including those that will have no
// effect.
func (c *Clock) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers.items)
}

// Failures returns how many times a due timer has failed so far.
func (c *Clock) Failures() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures
}

// Advance moves the clock by d, and fires the timers that become due.
func (c *Clock) Advance(ctx context.Context, d time.Duration) error {
	if d < 0 {
		return ErrBackwards
	}
	return c.advance(ctx, func(now time.Time) time.Time { return now.Add(d) })
}

// AdvanceTo moves the clock to the given time, and fires the timers that
// become due.
func (c *Clock) AdvanceTo(ctx context.Context, to time.Time) error {
	return c.advance(ctx, func(time.Time) time.Time { return to })
}

// Next moves the clock to the next timer's time, and fires all timers that are
// due at that time. It reports whether a timer was pending.
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

// advance fires, in order, the timers due up to the time that target returns,
// and sets the clock to that time. After an error the clock stays at the time of
// the error.
func (c *Clock) advance(ctx context.Context, target func(now time.Time) time.Time) error {
	err := c.moveTo(ctx, target)
	if err == nil {
		c.RunDue() // timers that requests have added in the meantime
	}
	return err
}

func (c *Clock) moveTo(ctx context.Context, target func(now time.Time) time.Time) error {
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
		err = errors.Join(err, c.cfg.Moved(from, now))
	}
	return err
}

// begin takes the turn and stops the clock.
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
	c.now, c.base = c.nowLocked(), time.Time{}
	c.mu.Unlock()
	return nil
}

// finish releases the turn and lets a running clock continue.
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

// RunDue fires the due timers of a manual clock, after a change that may have
// added some. It does nothing on a running clock, or while timers are being
// fired. Don't call it while holding a lock that Fire takes.
func (c *Clock) RunDue() {
	for fired := 0; c.stoppedAndDue() && fired < c.cfg.MaxTimers; {
		select {
		case c.turn <- struct{}{}:
		default:
			return
		}
		for fired < c.cfg.MaxTimers && c.stoppedAndDue() {
			if _, err := c.fireNext(c.Now(), fired, c.cfg.MaxTimers); err != nil {
				<-c.turn
				return
			}
			fired++
		}
		<-c.turn
	}
}

func (c *Clock) stoppedAndDue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base.IsZero() && len(c.timers.items) > 0 && !c.timers.items[0].At.After(c.now)
}

func (c *Clock) fireUntil(ctx context.Context, limit time.Time) error {
	c.mu.Lock()
	budget := len(c.timers.items) + c.cfg.MaxTimers
	c.mu.Unlock()
	for fired := 0; ; fired++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		due, err := c.fireNext(limit, fired, budget)
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

// fireNext fires the next timer that is due by limit, and reports whether there
// was one. It returns an error if the budget is used up.
func (c *Clock) fireNext(limit time.Time, fired, budget int) (due bool, err error) {
	c.firing.Lock()
	defer c.firing.Unlock()
	t, due := c.pop(limit)
	if !due {
		return false, nil
	}
	if fired == budget {
		c.putBack(t)
		return true, fmt.Errorf("%w at %s after %d timers, the last being %s of %s: advance in smaller steps, "+
			"or look for timers that keep creating timers", ErrRunaway, t.At.Format(time.RFC3339), fired, t.Kind, t.ID)
	}
	return true, c.fire(t)
}

// fire runs a due timer, and puts it back if it fails.
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

// putBack returns a timer to its original place in the queue.
func (c *Clock) putBack(t item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers.insert(t)
}

// pop removes the next timer that is due by limit, and moves the clock to its
// time. If no timer is due, the clock moves to limit.
func (c *Clock) pop(limit time.Time) (item, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers.items) == 0 || c.timers.items[0].At.After(limit) {
		c.now = later(c.now, limit)
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

// State is the state of a clock in a snapshot.
type State struct {
	Now    time.Time
	Timers []Timer // in firing order
}

// State returns the time and the timers.
func (c *Clock) State() State { return c.Capture()() }

// Capture copies the time and the timers, and returns a function that sorts
// the copy. The function takes no lock: sorting a million timers takes a second.
func (c *Clock) Capture() (state func() State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, timers := c.nowLocked(), queue{items: slices.Clone(c.timers.items)}
	return func() State { return State{Now: now, Timers: timers.list()} }
}

// BetweenTimers runs do while no timer is being fired, so that every timer is
// either pending or complete.
func (c *Clock) BetweenTimers(do func()) {
	c.firing.Lock()
	defer c.firing.Unlock()
	do()
}

// Check returns an error if s is not the state of a clock.
func (s State) Check() error {
	return stored.Rules{"State.Now": stored.Years(firstYear, LastYear)}.Check("Clock", s)
}

// Restore sets the time and the timers, and may go back in time. It fails
// during an advance.
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

// Resume moves the clock forward without firing timers. Call it before [Clock.Run].
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
