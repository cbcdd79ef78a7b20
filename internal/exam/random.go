package exam

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/explore/fault"
)

// A random schedule is the life of an order with two mishaps. Its name has the
// picks, so that it can be replayed: random-2.14.31.

const randomPrefix = "random-"

// life is what an order goes through when nothing fails.
type life struct {
	about string
	needs []Hook
	play  func(p *Play)
}

func lives() []life {
	return []life{
		{"Pix, paid", nil, func(p *Play) { p.buyAndPay() }},
		{"card, paid", nil, func(p *Play) {
			o := p.Order(gateway.CreditCard)
			p.Buy(o)
			p.PayIfCharged(o)
			p.Quiet()
		}},
		{"Pix, paid and refunded in part, twice", []Hook{NeedsRefund}, func(p *Play) {
			o := p.BigOrder()
			p.buyWherever(o)
			if len(p.chargesOf(o)) == 0 {
				return
			}
			for _, id := range []string{"r1", "r2"} {
				if status := p.Refund(o, id, 20_000); status == 0 {
					p.revived()
				}
				p.Quiet()
			}
		}},
	}
}

// buyWherever is Buy and Pay for an order whose program may die.
func (p *Play) buyWherever(o *Order) {
	p.Buy(o)
	p.PayIfCharged(o)
	p.Quiet()
	p.revived()
}

// revived starts the program again if a mishap has killed it.
func (p *Play) revived() {
	if p.exam.stage.Dead() {
		p.Restart()
		p.Quiet()
	}
}

// mishap is one thing that goes wrong.
type mishap struct {
	about string
	needs []Hook
	set   func(p *Play)
}

func mishaps() []mishap {
	var list []mishap
	add := func(about string, needs []Hook, set func(p *Play)) { list = append(list, mishap{about, needs, set}) }
	for _, op := range []string{create, refundOp} {
		for _, c := range fault.Writes()[1:] {
			r, possible := outsideCase(op, c)
			if possible {
				add(op+": "+c.Name, nil, func(p *Play) { p.On(new(Rule{On: r.On, Times: 1, Case: r.Case, Late: r.Late, Hang: r.Hang})) })
			}
		}
		for _, after := range []bool{false, true} {
			about := op + ": killed before it"
			if after {
				about = op + ": killed after it"
			}
			add(about, []Hook{NeedsRestart}, func(p *Play) {
				r := &Rule{On: op, Times: 1, Case: named1(fault.Case{See: fault.Reset}, "killed before it"), Before: p.Kill}
				if after {
					r = &Rule{On: op, Times: 1, Case: named1(fault.LostResponse(), "killed after it"), After: p.Kill}
				}
				p.On(r)
			})
		}
	}
	for _, c := range fault.Reads()[1:] {
		r, possible := outsideCase("reads", c)
		if possible {
			add("a read: "+c.Name, nil, func(p *Play) { p.On(new(Rule{On: r.On, Times: 1, Case: r.Case, Hang: r.Hang, Stale: r.Stale})) })
		}
	}
	for _, c := range fault.Fates() {
		add("a read: "+c.Name, nil, func(p *Play) { p.On(&Rule{On: "reads", Times: 1, Case: c}) })
	}
	for kind, name := range map[string]string{"transaction.paid": "paid", "transaction.refunded": "refunded"} {
		for about, send := range map[string]func(p *Play, d *Delivery) int{
			"twice": func(_ *Play, d *Delivery) int {
				first := d.Send("")
				d.Send("again")
				return first
			},
			"its response is lost": func(_ *Play, d *Delivery) int {
				d.send("its response is lost", d.Header, d.Body)
				return http.StatusGatewayTimeout
			},
			"the first attempt is lost":    func(*Play, *Delivery) int { return http.StatusGatewayTimeout },
			"as another encoder writes it": func(_ *Play, d *Delivery) int { return acked(d, d.Rerendered()) },
			"again with a new id": func(p *Play, d *Delivery) int {
				first := d.Send("")
				d.Renamed("evt_" + p.exam.name("again"))
				return first
			},
			"killed after its response": func(p *Play, d *Delivery) int {
				if !p.exam.stage.CanRestart() {
					return d.Send("")
				}
				d.send("killed after its response", d.Header, d.Body)
				p.Kill()
				return 0
			},
		} {
			add(name+": "+about, nil, func(p *Play) { p.Deliver(kind, 1, func(d *Delivery) int { return send(p, d) }) })
		}
	}
	slices.SortFunc(list, func(a, b mishap) int { return strings.Compare(a.about, b.about) })
	return list
}

// acked acknowledges a delivery that was sent in another form.
func acked(d *Delivery, status int) int {
	if ok(status) {
		d.relay.acknowledge(d.EventID)
	}
	return status
}

// outsideCase makes a rule of a case. A case that would last longer than an exam is
// not possible.
func outsideCase(op string, c fault.Case) (r Rule, possible bool) {
	r = Rule{On: op, Case: c}
	switch {
	case strings.Contains(c.Name, fault.LongRetryAfter), c.Late == fault.BeforeNext:
		return r, false
	case strings.HasPrefix(c.Name, "hang"):
		r.Hang, r.Case.See = shortHang, fault.Reset
	case c.Late != fault.InTime:
		r.Late = lateBy
	case c.Name == fault.StaleRead:
		r.Stale = true
	}
	return r, true
}

// shortHang is longer than a program's pause between attempts.
const shortHang = 3 * lateBy

// Random returns a random schedule.
func (e *Exam) Random(r *rand.Rand) *Scenario {
	for {
		picks := []int{r.IntN(len(lives()))}
		all := len(mishaps())
		for range 2 {
			picks = append(picks, r.IntN(all))
		}
		if s, err := schedule(picks); err == nil && e.able(s) {
			return s
		}
	}
}

func (e *Exam) able(s *Scenario) bool {
	return !slices.ContainsFunc(s.Needs, func(h Hook) bool { return !e.Has(h) || h == NeedsRestart && !e.stage.CanRestart() })
}

// schedule returns the scenario of picks: a life, then mishaps.
func schedule(picks []int) (*Scenario, error) {
	all, bad := mishaps(), mishaps()
	if len(picks) == 0 || picks[0] >= len(lives()) || slices.ContainsFunc(picks[1:], func(i int) bool { return i >= len(bad) }) {
		return nil, fmt.Errorf("there is no such schedule")
	}
	l := lives()[picks[0]]
	s := &Scenario{Claims: []Claim{ChargedOnce, NothingLost, ShippedOnce, RefundedOnce, BooksAgree, TrueAnswers}, Needs: slices.Clone(l.needs)}
	abouts := []string{l.about}
	names := []string{strconv.Itoa(picks[0])}
	for _, i := range picks[1:] {
		abouts = append(abouts, all[i].about)
		names = append(names, strconv.Itoa(i))
		s.Needs = append(s.Needs, all[i].needs...)
	}
	s.Name, s.About = randomPrefix+strings.Join(names, "."), strings.Join(abouts, "; ")
	s.play = func(p *Play) {
		p.lenient = true
		for _, i := range picks[1:] {
			all[i].set(p)
		}
		l.play(p)
		p.revived()
	}
	return s, nil
}

// parseSchedule returns the scenario of a name such as random-0.3.14.
func parseSchedule(name string) (*Scenario, error) {
	text, ok := strings.CutPrefix(name, randomPrefix)
	if !ok {
		return nil, fmt.Errorf("not a random schedule")
	}
	var picks []int
	for part := range strings.SplitSeq(text, ".") {
		i, err := strconv.Atoi(part)
		if err != nil || i < 0 {
			return nil, fmt.Errorf("%q is not a number", part)
		}
		picks = append(picks, i)
	}
	return schedule(picks)
}

// Smaller returns the schedules with one mishap less.
func Smaller(s *Scenario) (list []*Scenario) {
	parts := strings.Split(strings.TrimPrefix(s.Name, randomPrefix), ".")
	for i := 1; i < len(parts) && len(parts) > 1; i++ {
		if smaller, err := parseSchedule(randomPrefix + strings.Join(slices.Delete(slices.Clone(parts), i, i+1), ".")); err == nil {
			list = append(list, smaller)
		}
	}
	return list
}
