package mockserver

import (
	"context"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
)

// Clock is the gateway's own time. It stands still until it is advanced and
// never goes back.
type Clock struct{ server *Server }

// Timer is something that becomes due: an expiry, a renewal, a redelivery.
type Timer struct {
	At   time.Time
	Kind string // "transaction.expire"
	ID   string // of the resource
}

// Now returns the moment, in UTC.
func (c *Clock) Now() time.Time { return c.server.clock.Now() }

// Advance moves the clock by d. What becomes due on the way happens in the
// order of its moments.
func (c *Clock) Advance(d time.Duration) error {
	return c.server.advance(context.Background(), admin.Step{By: d})
}

// AdvanceTo moves the clock to t; see [Clock.Advance].
func (c *Clock) AdvanceTo(t time.Time) error {
	return c.server.advance(context.Background(), admin.Step{To: t})
}

// Next moves the clock to the next timer and does all that is due then. It
// reports whether there was one.
func (c *Clock) Next() (bool, error) { return c.server.next(context.Background()) }

// Timers lists what will become due, the earliest first: an expiry of what has
// been paid is not among it.
func (c *Clock) Timers() []Timer {
	waiting := c.server.clock.Timers()
	timers := make([]Timer, len(waiting))
	for i, t := range waiting {
		timers[i] = Timer{At: t.At, Kind: t.Kind, ID: t.ID}
	}
	return timers
}
