package clock

import (
	"context"
	"math"
	"time"
)

// maxStep is the longest virtual time for which a running clock sleeps before it
// checks its timers again. Twice as long still fits in a Duration.
const maxStep = 50 * 365 * 24 * time.Hour

// retryAfter is how long a running clock waits, in wall time, after a timer
// has failed.
const retryAfter = time.Second

// Run starts a clock that has a speed, and returns immediately. The clock fires
// timers as they become due until Close. It does not wait for webhooks: a
// receiver that hangs must not stop the clock.
func (c *Clock) Run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.Speed <= 0 || c.done != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop, c.done = stop, make(chan struct{})
	c.base = time.Now()
	go c.loop(ctx)
}

// Close stops a running clock and waits until no timer is being fired.
func (c *Clock) Close() {
	c.mu.Lock()
	stop, done := c.stop, c.done
	c.mu.Unlock()
	if done == nil {
		return
	}
	stop()
	<-done
}

func (c *Clock) loop(ctx context.Context) {
	defer close(c.done)
	for {
		wait := retryAfter
		if c.fireDue(ctx) == nil {
			wait = c.untilNext()
		}
		if !c.sleep(ctx, wait) {
			return
		}
	}
}

// fireDue fires the due timers until one fails or the clock is closed.
func (c *Clock) fireDue(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	for ctx.Err() == nil {
		if due, err := c.fireRunning(); !due || err != nil {
			return err
		}
	}
	return ctx.Err()
}

// fireRunning fires the next due timer of a running clock, and reports whether
// there is one.
func (c *Clock) fireRunning() (due bool, err error) {
	c.firing.Lock()
	defer c.firing.Unlock()
	c.mu.Lock()
	due = len(c.timers.items) > 0 && !c.timers.items[0].At.After(c.nowLocked())
	var t item
	if due {
		t = c.timers.pop()
	}
	c.mu.Unlock()
	if !due {
		return false, nil
	}
	return true, c.fire(t)
}

// untilNext returns the wall time until the next timer or the next check,
// rounded up so that the timer is due by then.
func (c *Clock) untilNext() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.base = c.nowLocked(), time.Now()
	virtual := maxStep
	if len(c.timers.items) > 0 {
		virtual = min(virtual, c.timers.items[0].At.Sub(c.now))
	}
	wall := math.Ceil(float64(virtual) / c.cfg.Speed)
	return time.Duration(min(max(wall, 0), float64(24*time.Hour)))
}

// sleep waits for d or a nudge. It returns false when the clock is closed.
func (c *Clock) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.wake:
	case <-ctx.Done():
		return false
	}
	return true
}

// nudge makes a running clock check its timers again.
func (c *Clock) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
