package core

import (
	"context"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// What the clock calls.

// fire runs a due timer.
func (c *Core) fire(t clock.Timer) error {
	told := c.Events.Listening() && c.stillApplies(t)
	if told {
		c.emitTimer(t, nil)
	}
	err := c.fireTimer(t)
	if told && err != nil {
		c.emitTimer(t, err)
	}
	return err
}

func (c *Core) fireTimer(t clock.Timer) error {
	if t.Kind == deliver.TimerKind {
		c.Sender.Fire(t)
		return nil
	}
	return c.Store.Fire(t)
}

func (c *Core) emitTimer(t clock.Timer, failed error) {
	timer := events.TimerEvent{Kind: t.Kind, ID: t.ID, Due: respond.Stamp(t.At)}
	if failed != nil {
		timer.Error = failed.Error()
	}
	c.Events.Publish(t.Account, events.Event{Type: events.TypeTimer, Timer: &timer})
}

// stillApplies reports whether a timer will have an effect.
func (c *Core) stillApplies(t clock.Timer) bool {
	if t.Kind == deliver.TimerKind {
		return c.Sender.StillApplies(t)
	}
	return c.Store.StillApplies(t)
}

// settled waits for the webhooks that timers have caused.
func (c *Core) settled(ctx context.Context) error { return c.Sender.Settle(ctx) }

// refuseInside rejects an advance of the clock by a webhook handler, since it
// would wait for that handler.
func refuseInside() error {
	if deliver.Inside() {
		return deliver.ErrInside
	}
	return nil
}

// moved reports an advance of the clock, and records its time in the data file.
func (c *Core) moved(from, to time.Time) error {
	c.Events.Publish("", events.Event{Type: events.TypeClock, Clock: &events.ClockEvent{From: respond.Stamp(from), To: respond.Stamp(to)}})
	return c.data.persist(entry{})
}
