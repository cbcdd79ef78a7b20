package merchant

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/gateway-go/gateway/internal/sqldb"
)

// courier calls the callbacks of facts, at most workers at a time. A callback that takes
// long keeps its own order waiting and one worker, and no other order.
type courier struct {
	m       *core
	workers int
	due     []int64        // facts that are due
	busy    map[int64]bool // facts whose callbacks run here
	shared  bool           // another process delivers too
	skipAt  time.Time      // when facts without a callback are given up next
	ended   chan delivered
}

// delivered is the end of an attempt. If the fact is as it was, another process has it, or
// another transaction has its order.
type delivered struct {
	seq                      int64
	changed, elsewhere, busy bool
}

// firstLook is when the courier looks for a fact of a transaction whose commit it does not see.
// Then it looks after twice the time, and so on.
const firstLook = 5 * time.Millisecond

// newCourier returns a courier whose callbacks leave a connection of the pool: one that reads
// beside its transaction would otherwise wait for itself.
func newCourier(m *core) *courier {
	workers := m.cfg.Workers
	if limit := m.db.Limit(); limit > 0 {
		workers = max(1, min(workers, limit-1))
	}
	return &courier{m: m, workers: workers, busy: make(map[int64]bool), ended: make(chan delivered, workers)}
}

// run calls the callbacks until ctx ends. A callback that has begun may end.
func (c *courier) run(ctx context.Context) {
	pause, look := c.m.cfg.PollInterval, true
	for ctx.Err() == nil {
		if look && len(c.due) == 0 {
			look = false
			if err := errors.Join(c.skip(ctx), c.look(ctx)); err != nil && ctx.Err() == nil {
				c.m.fail(ctx, "the facts that are due could not be read", err)
			}
		}
		c.begin(ctx)
		timer := time.NewTimer(pause)
		select {
		case d := <-c.ended:
			// There may be more, or the next one of the same order.
			look = c.end(d) || look
			if d.busy && pause >= c.m.cfg.PollInterval { // soon: a transaction rarely keeps an order for long
				pause = firstLook
			}
		case <-c.m.due:
			look = true
		case <-c.m.coming:
			pause = firstLook
		case <-timer.C:
			pause, look = min(2*pause, c.m.cfg.PollInterval), true
		case <-ctx.Done():
		}
		timer.Stop()
	}
	late := time.NewTimer(c.m.cfg.CallbackTimeout)
	defer late.Stop()
	for len(c.busy) > 0 {
		select {
		case d := <-c.ended:
			c.end(d)
		case <-late.C:
			for seq := range c.busy {
				c.m.fail(ctx, "a callback did not return before Run did", context.DeadlineExceeded, slog.Int64("fact", seq))
			}
			return
		}
	}
}

// looked is how many facts a look finds. It reads the whole queue, so there are few looks.
const looked = 512

// look finds facts that are due, at most one of each order. Other processes may have some: not
// in the same order, so that they don't try the same ones all the time.
func (c *courier) look(ctx context.Context) error {
	facts, err := c.m.outside().Due(ctx, c.m.names(), c.m.heard, looked+len(c.busy))
	if c.shared {
		rand.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
	}
	for _, seq := range facts {
		if !c.busy[seq] {
			c.due = append(c.due, seq)
		}
	}
	return err
}

// A fact whose callback is nil waits for a process that has it, as during a deployment. Then it
// is given up.
const (
	skipAfter   = time.Hour
	skipEvery   = time.Minute
	skipAtOnce  = 500
	skippedDays = 7 // for which Health counts them
)

// skip gives up facts for which no process has had a callback.
func (c *courier) skip(ctx context.Context) error {
	if len(c.m.unheard) == 0 || time.Now().Before(c.skipAt) {
		return nil
	}
	late, err := c.m.outside().Late(ctx, c.m.names(), c.m.unheard, skipAfter, skipAtOnce)
	if err != nil {
		return err
	}
	if len(late) < skipAtOnce { // else there may be more
		c.skipAt = time.Now().Add(skipEvery)
	}
	if len(late) == 0 {
		return nil
	}
	return c.m.db.Transaction(ctx, func(tx sqldb.Tx) error { return c.m.ledger(tx).Skip(ctx, late) })
}

// begin starts as many deliveries as there are free workers.
func (c *courier) begin(ctx context.Context) {
	for len(c.due) > 0 && len(c.busy) < c.workers {
		seq := c.due[0]
		c.due = c.due[1:]
		c.busy[seq] = true
		go func() {
			late := time.AfterFunc(c.m.cfg.CallbackTimeout, func() {
				c.m.fail(ctx, "a callback did not return in time and keeps a worker", context.DeadlineExceeded, slog.Int64("fact", seq))
			})
			defer late.Stop()
			is := delivered{seq: seq}
			defer func() { c.ended <- is }() // also if the callback ends its goroutine
			is.changed, is.elsewhere = c.m.deliverOne(ctx, seq)
			is.busy = !is.changed && !is.elsewhere
		}()
	}
}

func (c *courier) end(d delivered) (changed bool) {
	delete(c.busy, d.seq)
	c.shared = c.shared || d.elsewhere
	return d.changed
}
