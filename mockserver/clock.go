package mockserver

import (
	"context"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
)

// Clock is the gateway's virtual clock. It moves only when it is advanced,
// unless [WithRealtime] lets it run. Only [Server.Restore] can set it back.
type Clock struct{ clock *clock.Clock }

// Timer is a scheduled event, such as an expiry, a renewal or a redelivery.
type Timer struct {
	At   time.Time
	Kind string // "transaction.expire"
	ID   string // of the resource
}

// Now returns the current virtual time, in UTC.
func (c *Clock) Now() time.Time { return c.clock.Now() }

// Advance moves the clock by d, and fires all timers that become due, in
// order.
func (c *Clock) Advance(d time.Duration) error {
	return c.clock.Advance(context.Background(), d)
}

// AdvanceTo moves the clock to t; see [Clock.Advance].
func (c *Clock) AdvanceTo(t time.Time) error {
	return c.clock.AdvanceTo(context.Background(), t)
}

// Next moves the clock to the next timer, and fires everything that is due at
// that time. It reports whether there was a timer.
func (c *Clock) Next() (bool, error) {
	return c.clock.Next(context.Background())
}

// Timers lists the pending timers, the earliest first. It omits timers without
// an effect, such as the expiry of a paid transaction.
func (c *Clock) Timers() []Timer {
	waiting := c.clock.Timers()
	timers := make([]Timer, len(waiting))
	for i, t := range waiting {
		timers[i] = Timer{At: t.At, Kind: t.Kind, ID: t.ID}
	}
	return timers
}
