package simulation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gateway-go/gateway/mockserver"
)

// Fate is how a gateway or a clock behaves for a whole year, beside the faults of single
// requests, also while a month is compared. Live gateways were seen to behave like this.
type Fate string

// The fates.
const (
	Lags            Fate = "reads and lists are 45 s behind"
	ForbidsReads    Fate = "reads are forbidden for hours"
	HidesResources  Fate = "what exists is not found for hours"
	OmitsPaidAmount Fate = "paid_amount is omitted"
	MasksPersons    Fate = "documents, e-mail addresses and phones are masked"
	CountsSeconds   Fate = "updated_at has whole seconds"
	StopsUpdates    Fate = "updated_at stays at the creation"
	ClockAhead      Fate = "the database's clock is ahead of the shop's"
	ClockBehind     Fate = "the database's clock is behind the shop's"
	ClockSetBack    Fate = "the database's clock is set back again and again"
)

// Fates are all fates.
func Fates() []Fate {
	return []Fate{
		Lags, ForbidsReads, HidesResources, OmitsPaidAmount, MasksPersons, CountsSeconds, StopsUpdates, ClockAhead, ClockBehind, ClockSetBack,
	}
}

// Window is a time in a month in which a fate shows. Most fates show all the time.
type Window struct {
	From, Length time.Duration // since the month began
	Skew         time.Duration // of the database's clock from then on
}

// maxWindow is the longest time for which reads fail: a shop that sees nothing for longer
// can't know what happened.
const maxWindow = 6 * time.Hour

// Windows returns the windows of a month, which depend only on the seed: equal seeds have
// equal ones. There are at most twelve, none of which begins after day 20.
func (c *YearConfig) Windows(month int) []Window {
	r := stream(c.Seed, fmt.Sprint("fate ", month))
	var list []Window
	for range 8 + r.IntN(5) {
		w := Window{From: between(r, 0, 20*day), Length: between(r, time.Minute, maxWindow)}
		if c.Fate == ClockSetBack {
			w.Skew = between(r, -time.Hour, 0)
		}
		list = append(list, w)
	}
	return list
}

// always returns the faults of a fate that shows all the time.
func (f Fate) always() []mockserver.Fault {
	shape := func(form string) []mockserver.Fault { return []mockserver.Fault{mockserver.Shape(form)} }
	switch f { //nolint:exhaustive // others show in windows, or in the database
	case Lags:
		return []mockserver.Fault{mockserver.Lag(45 * time.Second)}
	case OmitsPaidAmount:
		list := shape("no-paid-amount")
		for _, family := range []string{"transaction.*", "subscription.*"} {
			list = append(list, mockserver.ShapeWebhook("no-paid-amount").On(family))
		}
		return list
	case MasksPersons:
		return shape("masked")
	case CountsSeconds:
		return shape("whole-seconds")
	case StopsUpdates:
		return shape("stopped-updates")
	}
	return nil
}

// window returns the fault of a fate that shows in a window, if it is one of the gateway.
func (f Fate) window(w Window) (fault mockserver.Fault, ok bool) {
	switch f { //nolint:exhaustive // others show all the time
	case ForbidsReads:
		return mockserver.Status(403).On("GET *").For(w.Length), true
	case HidesResources:
		return mockserver.Status(404).On("GET *").For(w.Length), true
	}
	return fault, false
}

// planFate plans what the fate does in a month, after the faults of single requests: the
// first fault of a request is the one that happens.
func (y *Year) planFate(month int) error {
	for _, w := range y.cfg.Windows(month) {
		fault, ok := y.cfg.Fate.window(w)
		if !ok && y.cfg.Fate != ClockSetBack {
			continue
		}
		y.agenda.add(time.Now().Add(w.From), decision, func(context.Context) {
			y.note("fate", "%s: %+v", y.cfg.Fate, w)
			y.skew.Store(int64(w.Skew))
			if !ok {
				return
			}
			if err := y.befall(fault); err != nil {
				y.note("fate", "%v", err)
			}
		})
	}
	return y.befall(y.cfg.Fate.always()...)
}

// showsUpdates reports whether a fault may return a resource; a response to a read is never lost.
// Only one fault of a request happens, so that in a year in which updated_at stays at the creation,
// such a response would show one that has moved, and the next one would show it moved back. The
// books take what is older by updated_at for a reading that was overtaken, and a person is told
// after a day.
func showsUpdates(f mockserver.Fault) bool {
	for _, kind := range []mockserver.Fault{mockserver.StaleRead(), mockserver.ExtraField(), mockserver.LoseResponse()} {
		if strings.HasPrefix(f.String(), kind.String()) {
			return true
		}
	}
	return false
}

// befall adds faults of the fate.
func (y *Year) befall(list ...mockserver.Fault) error {
	for _, f := range list {
		y.fated[f.String()] = true
	}
	return y.gw.Faults.Add(list...)
}

// countFaults counts what happened since the faults were cleared.
func (y *Year) countFaults() {
	for _, f := range y.gw.Faults.Reports() {
		y.counts.Faults += f.Fired
		if y.fated[f.Fault.String()] {
			y.counts.Fate += f.Fired
		}
	}
}

// startSkew is how far the database's clock differs when the year begins.
func (f Fate) startSkew() time.Duration {
	switch f { //nolint:exhaustive // other clocks agree
	case ClockAhead:
		return 5 * time.Minute
	case ClockBehind:
		return -5 * time.Minute
	}
	return 0
}

// skewed makes a statement of the shop use the time of a clock that differs.
func (y *Year) skewed(statement string) string {
	skew := time.Duration(y.skew.Load())
	if skew == 0 {
		return statement
	}
	if strings.Contains(statement, `julianday('now')`) {
		y.shown.Add(1)
	}
	return strings.ReplaceAll(statement, `julianday('now')`, fmt.Sprintf(`(julianday('now') + %.9f)`, skew.Hours()/24))
}
