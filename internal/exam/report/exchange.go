package report

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/exam"
)

// line is a message of a minimized exchange.
type line struct {
	exam.Message
	Count int
}

var round = strings.NewReplacer("h0m0s"+later, "h"+later, "m0s"+later, "m"+later)

// Text is the message without its response.
func (l line) Text() string {
	text := l.What
	if l.Fault != "" {
		text += ", " + l.Fault
	}
	if l.Count > 1 {
		text += " (" + strconv.Itoa(l.Count) + " times)"
	}
	return clean(round.Replace(text))
}

// minimized returns the messages that explain a failure: without hooks and reads of the
// orders of earlier scenarios, and with each read that got the same response only once.
// Steps of the clock with nothing between them are added up.
func minimized(o *exam.Outcome, earlier map[string]bool) []line {
	var lines []line
	reads := map[exam.Message]int{}
	for _, m := range o.Exchange {
		if elsewhere(m, o.Orders) || m.Fault == "" && earlier[m.What] {
			continue
		}
		key := exam.Message{Direction: m.Direction, What: m.What, Fault: m.Fault, Answer: m.Answer}
		if i, seen := reads[key]; seen {
			lines[i].Count++
			continue
		}
		if isRead(m) {
			reads[key] = len(lines)
		}
		if n := len(lines); n > 0 {
			if d, ok := sum(lines[n-1].Message, m); ok {
				lines[n-1].What = d.String() + later
				continue
			}
		}
		lines = append(lines, line{m, 1})
	}
	return lines
}

// readsOf returns the reads of single transactions in the outcomes before a scenario. A
// program's jobs repeat them in the scenarios after it, for all open orders.
func readsOf(outcomes []exam.Outcome, before string) map[string]bool {
	reads := map[string]bool{}
	for _, o := range outcomes {
		if o.Scenario == before {
			break
		}
		for _, m := range o.Exchange {
			if op, id, _ := strings.Cut(m.What, " "); strings.HasSuffix(op, ".get") && id != "" {
				reads[m.What] = true
			}
		}
	}
	return reads
}

const later = " later"

// sum adds two steps of the clock.
func sum(a, b exam.Message) (total time.Duration, ok bool) {
	if a.Direction != exam.Event || b.Direction != exam.Event {
		return 0, false
	}
	for _, m := range []exam.Message{a, b} {
		text, found := strings.CutSuffix(m.What, later)
		d, err := time.ParseDuration(text)
		if !found || err != nil {
			return 0, false
		}
		total += d
	}
	return total, true
}

// isRead reports whether a message changes nothing: a GET of the gateway or of a hook.
func isRead(m exam.Message) bool {
	op, _, _ := strings.Cut(m.What, " ")
	switch m.Direction {
	case exam.ToGateway:
		return strings.HasSuffix(op, ".get") || strings.HasSuffix(op, ".list") || op == "GET"
	case exam.Hooked:
		return op == "GET"
	case exam.ToShop, exam.Event:
	}
	return false
}

var hooked = regexp.MustCompile(`^[A-Z]+ (?:orders|subscriptions|payouts)/([^/]+)`)

// elsewhere reports whether a message is a hook of an order of another scenario.
func elsewhere(m exam.Message, orders []exam.OrderBooks) bool {
	found := hooked.FindStringSubmatch(m.What)
	return m.Direction == exam.Hooked && found != nil && len(orders) > 0 &&
		!slices.ContainsFunc(orders, func(o exam.OrderBooks) bool { return o.ID == found[1] })
}
