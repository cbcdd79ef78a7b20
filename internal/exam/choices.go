package exam

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gateway-go/gateway/internal/explore/fault"
)

// Schedule makes the choices of a white box: what happens to each message, and which
// one goes on.
type Schedule interface {
	// Choose returns one of n options, from 0; 0 is the default, in which nothing
	// fails. what names the choice.
	Choose(what string, n int) int
	// Hold returns when a delivery may go on.
	Hold(what string)
	// Overlap says whether the program may get a message while it handles another.
	Overlap(on bool)
}

// choices are the choices of one play of a life. A nil value, that of a black box, makes
// none.
type choices struct {
	schedule Schedule
	exam     *Exam

	on     atomic.Bool
	narrow atomic.Bool // only the deliveries of paid are chosen
	play   *Play       // whose choices are made while on

	mu       sync.Mutex
	verb     int // how often the program became quiet
	inFlight []flight
	late     []lateDelivery
}

// flight is a request that has not arrived yet.
type flight struct {
	until  fault.Late
	arrive func()
}

// lateDelivery is a delivery that is made after the next verb.
type lateDelivery struct {
	verb int
	d    *Delivery
}

// begin makes choices from now on.
func (c *choices) begin(p *Play) {
	if c == nil {
		return
	}
	c.play = p
	c.on.Store(true)
}

// end makes no more choices. What is late arrives when the program is quiet.
func (c *choices) end() {
	if c == nil {
		return
	}
	c.on.Store(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.late {
		c.late[i].verb = -1
	}
}

// prelude plays what another life has in full. Unless everything is explored, only
// what can still matter after it is chosen: how paid is delivered. The other choices have
// one option, so that the numbers of a schedule mean the same.
func (c *choices) prelude(play func()) {
	if c != nil && !c.exam.cfg.Everything {
		c.narrow.Store(true)
		defer c.narrow.Store(false)
	}
	play()
}

func (c *choices) choose(what string, n int) int {
	if c == nil || !c.on.Load() {
		return 0
	}
	return c.schedule.Choose(what, n)
}

// whether chooses whether something happens.
func (c *choices) whether(what string) bool {
	if c != nil && c.narrow.Load() {
		return c.choose(what, 1) == 1
	}
	return c.choose(what, 2) == 1
}

func (c *choices) hold(what string) {
	if c != nil {
		c.schedule.Hold(what)
	}
}

// request chooses what happens to a request of the program. Nil is nothing.
func (c *choices) request(op string, write, keyed bool) *Rule {
	if c == nil || !c.on.Load() {
		return nil
	}
	c.arrive(fault.BeforeNext)
	if c.narrow.Load() {
		c.choose(op, 1)
		return nil
	}
	rules := c.rules(op, write, keyed)
	return rules[c.choose(op, len(rules))]
}

func (c *choices) rules(op string, write, keyed bool) []*Rule {
	p := c.play
	cases := fault.Reads()
	if write {
		cases = fault.Writes()
	}
	rules := []*Rule{nil}
	for _, f := range cases[1:] {
		if f.Keyed && !keyed {
			continue
		}
		rules = append(rules, &Rule{Case: f, Stale: f.Name == fault.StaleRead, Defer: func(arrive func()) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.inFlight = append(c.inFlight, flight{f.Late, arrive})
		}})
	}
	rules = append(rules, &Rule{Before: p.Kill, Case: named1(fault.Case{See: fault.Reset}, "killed before it")})
	if write {
		rules = append(rules, &Rule{After: p.Kill, Case: named1(fault.LostResponse(), "killed after it")})
	}
	if op == create {
		rules = append(rules,
			&Rule{Case: named1(fault.None(), "its reference is taken"), Seen: func(body []byte) {
				for _, o := range p.orders {
					o.ambiguous = true
				}
				p.takeReference(body)
				p.payForeign()
			}},
			&Rule{Case: named1(fault.None(), "paid before the response"), After: func() {
				c.schedule.Overlap(true)
				defer c.schedule.Overlap(false)
				p.payNewest()
				p.deliveries(2 * deliveryTimeout)
			}})
	}
	return rules
}

// deliver delivers an event in the way that is chosen.
func (c *choices) deliver(d *Delivery) int {
	if c == nil || !c.on.Load() {
		return d.Send("")
	}
	if c.narrow.Load() && d.Kind != "transaction.paid" {
		c.choose(d.Kind, 1)
		return d.Send("")
	}
	p := c.play
	ways := []func() int{
		func() int { return d.Send("") },
		func() int { return d.lose("does not arrive, comes again later") },
		func() int {
			first := d.Send("")
			d.Send("again")
			return first
		},
		func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.late = append(c.late, lateDelivery{c.verb, d})
			return http.StatusOK
		},
		func() int {
			d.Rerendered()
			return d.Send("")
		},
		func() int {
			first := d.Send("")
			d.Renamed("evt_" + p.exam.name("again"))
			return first
		},
		func() int {
			var acked atomic.Bool
			p.together(c.schedule, func() {
				if ok(d.Send("twice at once")) {
					acked.Store(true)
				}
			})
			if !acked.Load() {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		},
		func() int {
			if !ok(d.Send("")) {
				return http.StatusServiceUnavailable
			}
			p.Crash()
			d.Send("again, after the restart")
			return http.StatusOK
		},
	}
	if p.exam.Has(NeedsTick) {
		ways = append(ways, func() int {
			p.verdict.eventsLost = true
			return d.Swallow()
		})
	}
	return ways[c.choose(d.Kind, len(ways))]()
}

// lose keeps the delivery from the program, and lets the gateway try again.
func (d *Delivery) lose(how string) int {
	d.relay.log(Message{Direction: ToShop, What: d.Kind, Fault: how})
	return http.StatusServiceUnavailable
}

// together calls the program twice at once.
func (p *Play) together(s Schedule, call func()) {
	s.Overlap(true)
	defer s.Overlap(false)
	p.Together(2, func(int) { call() })
}

// act calls a hook once, or twice at once.
func (p *Play) act(what string, call func()) {
	if c := p.exam.choices; c.whether(what) {
		p.event("twice at once")
		p.together(c.schedule, call)
		return
	}
	call()
}

// arrive executes the requests that were to arrive until now.
func (c *choices) arrive(until ...fault.Late) (arrived bool) {
	c.mu.Lock()
	var due []flight
	c.inFlight = slices.DeleteFunc(c.inFlight, func(f flight) bool {
		if !slices.Contains(until, f.until) {
			return false
		}
		due = append(due, f)
		return true
	})
	c.mu.Unlock()
	for _, f := range due {
		f.arrive()
	}
	return len(due) > 0
}

// quiet lets arrive what is late. It is called when the program has become quiet.
func (c *choices) quiet(p *Play) {
	if c == nil {
		return
	}
	for c.arrive(fault.BeforeNext, fault.AfterTheCall) || c.deliverLate() {
		p.exam.stage.Settle(p.ctx, p.exam.act.state)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verb++
}

// deliverLate makes the deliveries that were kept back before this verb. What is not
// acknowledged is delivered again after the next one.
func (c *choices) deliverLate() (delivered bool) {
	c.mu.Lock()
	var due []*Delivery
	c.late = slices.DeleteFunc(c.late, func(l lateDelivery) bool {
		if l.verb >= c.verb {
			return false
		}
		due = append(due, l.d)
		return true
	})
	c.mu.Unlock()
	for _, d := range due {
		if !ok(d.Send("late")) {
			c.mu.Lock()
			c.late = append(c.late, lateDelivery{c.verb, d})
			c.mu.Unlock()
		}
	}
	return len(due) > 0
}

// Choose makes a choice of the white box's own, such as whether the program dies. It
// returns false while no choices are made.
func (e *Exam) Choose(what string) bool { return e.choices.whether(what) }

// Died records that the program was killed by a choice of the white box's own.
func (e *Exam) Died(where string) {
	e.mu.Lock()
	p := e.play
	e.mu.Unlock()
	if p != nil {
		p.event("the program is killed %s", where)
	}
}
