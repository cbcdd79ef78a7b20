package mockserver

import (
	"context"
	"errors"
	"time"
)

// Clock is the gateway's virtual clock. It does not move until it is advanced,
// and never goes back.
type Clock struct{ server *Server }

// Timer is something that becomes due: an expiry, a renewal, a redelivery.
type Timer struct {
	At   time.Time
	Kind string // "transaction.expire"
	ID   string // of the resource
}

// Now returns the current virtual time, in UTC.
func (c *Clock) Now() time.Time { return c.server.clock.Now() }

// Advance moves the clock by d and runs everything that becomes due, in order.
func (c *Clock) Advance(d time.Duration) error {
	return errors.Join(c.server.clock.Advance(context.Background(), d), c.server.data.moved())
}

// AdvanceTo moves the clock to t; see [Clock.Advance].
func (c *Clock) AdvanceTo(t time.Time) error {
	return errors.Join(c.server.clock.AdvanceTo(context.Background(), t), c.server.data.moved())
}

// Next moves the clock to the next timer and runs everything that is due then.
// It reports whether there was one.
func (c *Clock) Next() (bool, error) {
	moved, err := c.server.clock.Next(context.Background())
	return moved, errors.Join(err, c.server.data.moved())
}

// Timers lists what will become due, the earliest first. The expiry of a paid
// transaction is not listed.
func (c *Clock) Timers() []Timer {
	waiting := c.server.clock.Timers()
	timers := make([]Timer, len(waiting))
	for i, t := range waiting {
		timers[i] = Timer{At: t.At, Kind: t.Kind, ID: t.ID}
	}
	return timers
}
