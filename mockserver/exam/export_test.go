package exam

import (
	"testing"

	engine "github.com/gateway-go/gateway/internal/exam"
)

// Found is what an exploration has found.
type Found struct {
	Text       string
	Claims     []engine.Claim
	Deviations int
	Picks      string
	NoLap      string
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
			return list, err
		}
		for _, s := range failures {
			list = append(list, x.found(s))
		}
	}
	if x.noLap != "" {
		list = append(list, Found{NoLap: x.noLap})
	}
	return list, nil
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
