package exam

import (
	"testing"
	"time"

	engine "github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/explore"
)

// Stall sets how long nothing may go on before a schedule is given up.
func Stall(d time.Duration) Option { return func(s *settings) { s.stall = d } }

// Watch sets how often it is checked whether something goes on.
func Watch(d time.Duration) Option { return func(s *settings) { s.watch = d } }

// Found is what an exploration has found.
type Found struct {
	Text       string
	Claims     []engine.Claim
	Deviations int
	Picks      string
	NoLap      string
	Wait       func() // until the bubbles that were given up have ended
}

// Find explores like [Explore], and returns the schedules that fail instead of failing the
// test.
func Find(t *testing.T, start StartFunc, opts ...Option) ([]Found, error) {
	t.Helper()
	x := &explorer{t: t, tmp: t.TempDir(), start: start, settings: newSettings(opts)}
	lives, err := x.lives()
	if err != nil {
		return nil, err
	}
	var list []Found
	for _, life := range lives {
		failures, err := x.explore(life)
		if err != nil {
			return append(list, Found{Wait: x.bubbles.Wait}), err
		}
		for _, s := range failures {
			list = append(list, x.found(s))
		}
	}
	if x.noLap != "" {
		list = append(list, Found{NoLap: x.noLap, Wait: x.bubbles.Wait})
	}
	return list, nil
}

// Faults plays every schedule of a life, and returns what went wrong in one of them.
func Faults(t *testing.T, start StartFunc, life string) (map[string]bool, error) {
	t.Helper()
	x := &explorer{t: t, tmp: t.TempDir(), start: start, settings: newSettings([]Option{Lives(life), Deviations(1)})}
	lives, err := x.lives()
	if err != nil {
		return nil, err
	}
	faults := map[string]bool{}
	var tree explore.Tree
	for run := tree.Next(); run != nil; run = tree.Next() {
		s, err := x.play(lives[0], run)
		if err != nil {
			return nil, err
		}
		for _, m := range s.outcome.Exchange {
			faults[m.Fault] = true
			if m.Direction == engine.Event {
				faults[m.What] = true
			}
		}
	}
	return faults, nil
}

// FindAgain is [Find] for [Replay].
func FindAgain(t *testing.T, start StartFunc, picks string, opts ...Option) (Found, error) {
	t.Helper()
	x := &explorer{t: t, tmp: t.TempDir(), start: start, settings: newSettings(opts)}
	s, err := x.replay(picks)
	if err != nil {
		return Found{}, err
	}
	return x.found(s), nil
}

func (x *explorer) found(s *schedule) Found {
	return Found{Text: s.String(), Claims: s.claims(), Deviations: s.deviations(), Picks: s.number()}
}
