package merchant

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// comparer compares what is due with the gateway. Each lane of each account has slots of its
// own: neither routine comparisons nor an account that hangs delay anything else.
type comparer struct {
	m         *core
	slots     map[string]*[ledger.Lanes]int // that are taken, by account
	busy      int
	ended     chan compareEnd
	unplanned []compareEnd // those whose booking has not planned the next one
	suspects  map[suspect]bool
}

// suspect is a record whose last comparison got no response about it.
type suspect struct {
	kind        ledger.Kind
	account, id string
}

// mostSuspects bounds what is kept of them.
const mostSuspects = 1000

// compareEnd is the end of a comparison.
type compareEnd struct {
	claim   ledger.Claim
	account string
	booked  bool // booking it has planned the next one
	plan    ledger.Plan
	probe   bool // the gate was closed when it began
	silent  bool // it got no response about the record
}

const (
	slots        = 4                    // of a lane of an account
	routineSlots = 16                   // of the routine lane of an account
	routineAll   = 64                   // of the routine lanes together, but one for each account
	gathering    = 3 * time.Millisecond // the ends of comparisons are stored together
	busyWait     = time.Second          // after another transaction had the order, or the gate was closed
)

func newComparer(m *core) *comparer {
	c := &comparer{m: m, slots: make(map[string]*[ledger.Lanes]int), ended: make(chan compareEnd, routineAll), suspects: make(map[suspect]bool)}
	for name := range m.accounts {
		c.slots[name] = new([ledger.Lanes]int)
	}
	return c
}

// run compares what is due until ctx ends, and waits for what has begun.
func (c *comparer) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.begin(ctx); err != nil && ctx.Err() == nil {
			c.m.fail(ctx, "what is due could not be compared", err)
		}
		c.wait(ctx)
		c.release(ctx)
	}
	for c.busy > 0 {
		c.end(<-c.ended)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.m.cfg.CallbackTimeout)
	defer cancel()
	c.release(ctx)
}

// wants returns for how many comparisons there are slots.
func (c *comparer) wants() (list []ledger.Want) {
	of := [ledger.Lanes]int{slots, slots, max(1, min(routineSlots, routineAll/len(c.slots)))}
	for lane := range ledger.Lanes {
		for name, taken := range c.slots {
			if ledger.Lane(lane) == ledger.Routine && c.m.accounts[name].walking.Load() {
				continue
			}
			if n := of[lane] - taken[lane]; n > 0 {
				list = append(list, ledger.Want{Account: name, Lane: ledger.Lane(lane), N: n})
			}
		}
	}
	return list
}

// begin begins comparisons that are due, as many as there are free slots.
func (c *comparer) begin(ctx context.Context) error {
	l := c.m.outside()
	claims, err := c.claim(ctx)
	type group struct {
		kind ledger.Kind
		book string
	}
	groups := make(map[group]map[string]ledger.Claim) // an ID is unique in a book
	for _, claim := range claims {
		g := group{claim.Kind, c.m.accounts[claim.Account].Book}
		if groups[g] == nil {
			groups[g] = make(map[string]ledger.Claim)
		}
		groups[g][claim.ID] = claim
	}
	for g, byID := range groups {
		rows, failed := l.RowsOf(ctx, g.kind, g.book, slices.Collect(maps.Keys(byID)))
		err = errors.Join(err, failed) // the leases end
		for i := range rows {
			c.start(ctx, &rows[i], byID[rows[i].ID])
			delete(byID, rows[i].ID)
		}
		for _, claim := range byID { // its record was deleted by hand
			if failed == nil {
				err = errors.Join(err, l.Release(ctx, []ledger.Claim{claim}, ledger.Plan{Never: true}))
			}
		}
	}
	return err
}

// lease is how long a comparison is this process's, and the wait after one that failed.
func (c *comparer) lease() time.Duration { return max(c.m.cfg.Lease, time.Minute) }

func (c *comparer) start(ctx context.Context, row *ledger.Row, claim ledger.Claim) {
	c.busy++
	c.slots[row.Account][claim.Lane]++
	probe := c.m.accounts[row.Account].gate.State().Closed
	go func() {
		end := compareEnd{
			claim: claim, account: row.Account, plan: ledger.Plan{Wait: busyWait, Lane: claim.Lane}, probe: probe,
		}
		defer func() { c.ended <- end }()
		var booked bool
		var plan ledger.Plan
		err := c.m.guarded(ctx, "a comparison", func() (err error) {
			booked, plan, err = c.m.compare(ctx, row, claim.Lane)
			return err
		})
		switch {
		case err == nil:
			end.booked, end.plan = booked, plan
		case errors.Is(err, ledger.ErrBusy), gate.Refused(err): // soon again
		case ctx.Err() != nil: // another process does it
			end.plan.Wait = 0
		default:
			end.plan.Wait = c.lease() + rand.N(c.lease()/4) //nolint:gosec // jitter needs no secrecy
			end.silent = gate.Silent(err)
			c.m.fail(ctx, "a record could not be compared with the gateway, and will be later", err, slog.String(string(row.Kind), row.ID))
		}
	}()
}

// compare compares a record with the gateway. What shows nothing new is not booked: then it
// returns when it is compared again.
func (m *core) compare(ctx context.Context, row *ledger.Row, lane ledger.Lane) (booked bool, again ledger.Plan, err error) {
	r, err := m.recordOf(row)
	if err != nil {
		return false, again, err
	}
	booked, again, err = m.compareRecord(ctx, r, lane)
	if ch, ok := r.(*charge); ok && booked && err == nil && !ch.account.NoLists && ch.stopped(lane) {
		err = m.readSingly(ctx, ch.account, stopped(ch.seen), distrust)
	}
	return booked, again, err
}

func (m *core) compareRecord(ctx context.Context, r compared, lane ledger.Lane) (booked bool, again ledger.Plan, err error) {
	row := r.stored()
	book, err := r.read(ctx, books.FromComparison)
	if errors.Is(err, gateway.ErrNotFound) {
		age := m.clock.now().Sub(row.Created)
		if v, wait := books.Absence(books.ByNotFound, age, m.cfg.lag()); v == books.NotYet {
			return false, ledger.Plan{Wait: max(wait, time.Second), Lane: lane}, nil
		}
		p := at(row)
		p.lock = ledger.NoWait
		return true, again, m.once(ctx, p, func(b *bench) error { return b.missing(row) })
	}
	if err != nil {
		return false, again, err
	}
	if r.same(lane) {
		return false, r.next(m.clock.now(), &m.cfg), nil
	}
	return true, again, m.book(ctx, r, books.FromComparison, ledger.NoWait, book)
}

// wait waits until comparisons have ended, or something may be due.
func (c *comparer) wait(ctx context.Context) {
	timer := time.NewTimer(c.m.cfg.PollInterval)
	defer timer.Stop()
	select {
	case end := <-c.ended:
		c.end(end)
	case <-timer.C:
		return
	case <-ctx.Done():
		return
	}
	soon := time.NewTimer(gathering)
	defer soon.Stop()
	for c.busy > 0 {
		select {
		case end := <-c.ended:
			c.end(end)
		case <-soon.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *comparer) end(end compareEnd) {
	c.busy--
	c.slots[end.account][end.claim.Lane]--
	c.suspect(&end)
	if !end.booked {
		c.unplanned = append(c.unplanned, end)
	}
}

// suspect plans a comparison that got no response about the record. Usually its account fails,
// and the gate says when the next one may begin: it does soon. If the gateway fails for this
// record alone, that would close the gate again and again: from the second time on, it waits.
func (c *comparer) suspect(end *compareEnd) {
	is := suspect{end.claim.Kind, end.account, end.claim.ID}
	switch {
	case !end.silent:
		delete(c.suspects, is)
	case end.probe:
		end.plan.Wait = busyWait
	case !c.suspects[is]:
		if len(c.suspects) >= mostSuspects {
			clear(c.suspects)
		}
		c.suspects[is], end.plan.Wait = true, busyWait
	}
}

// release plans what changed nothing anew, with one statement for each wait.
func (c *comparer) release(ctx context.Context) {
	type group struct {
		kind    ledger.Kind
		account string
		lease   int64
		plan    ledger.Plan
	}
	groups := make(map[group][]ledger.Claim)
	for _, end := range c.unplanned {
		g := group{end.claim.Kind, end.claim.Account, end.claim.Lease, end.plan}
		if g.plan.Wait > time.Second { // fewer groups
			g.plan.Wait = g.plan.Wait.Round(time.Second)
		}
		groups[g] = append(groups[g], end.claim)
	}
	c.unplanned = nil
	for g, claims := range groups {
		if err := c.m.outside().Release(ctx, claims, g.plan); err != nil && ctx.Err() == nil {
			c.m.fail(ctx, "when records are compared next could not be stored", err)
		}
	}
}
