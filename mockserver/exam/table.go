package exam

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	engine "github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/exam/report"
)

// failed reports whether money or goods were lost or doubled, or the program broke.
func (s *schedule) failed() bool { return s.outcome.Status == engine.Failed || len(s.problem) > 0 }

// claims are those that failed.
func (s *schedule) claims() (list []engine.Claim) {
	for _, f := range s.outcome.Failures {
		if !slices.Contains(list, f.Claim) {
			list = append(list, f.Claim)
		}
	}
	return list
}

// failsLike reports whether everything that fails here fails in the other, too.
func (s *schedule) failsLike(other *schedule) bool {
	if len(s.problem) > 0 && len(other.problem) == 0 || !s.failed() {
		return false
	}
	return !slices.ContainsFunc(s.claims(), func(c engine.Claim) bool { return !slices.Contains(other.claims(), c) })
}

// deviations counts the choices that are not the default.
func (s *schedule) deviations() (n int) {
	for _, pick := range s.picks {
		if pick > 0 {
			n++
		}
	}
	return n
}

// number returns the schedule as [Replay] reads it.
func (s *schedule) number() string {
	index := slices.IndexFunc(engine.Lives(), func(life *engine.Scenario) bool { return life.Name == s.life.Name })
	text := strconv.AppendInt(nil, int64(index), 10)
	picks := s.picks
	for len(picks) > 0 && picks[len(picks)-1] == 0 {
		picks = picks[:len(picks)-1]
	}
	for _, pick := range picks {
		text = strconv.AppendInt(append(text, '.'), int64(pick), 10)
	}
	return string(text)
}

// String returns the messages of the schedule, and what failed.
func (s *schedule) String() string {
	var b strings.Builder
	status := "ok  "
	if s.failed() {
		status = "FAIL"
	}
	fmt.Fprintf(&b, "%s %s  %s   %s\n", status, s.life.Name, joined(s.claims()), s.life.About)
	for _, err := range s.problem {
		fmt.Fprintf(&b, "  =>   %v\n", err)
	}
	b.WriteString(report.Explain(&s.outcome, fmt.Sprintf("exam.Replay(t, start, %q)", s.number())))
	return b.String()
}

func joined(claims []engine.Claim) string {
	var list []string
	for _, c := range claims {
		list = append(list, string(c))
	}
	return strings.Join(list, " ")
}
