package exam

import (
	"testing"

	engine "github.com/gateway-go/gateway/internal/exam"
)

// Found is what an exploration has found.
type Found struct {
	Text       string
	Claims     []engine.Claim
	Life       string
	Deviations int
	Picks      string
	Played     int
	NoLap      string
}

// Find explores like [Explore], and returns the first schedule that fails instead of failing
// the test.
func Find(t *testing.T, start StartFunc, opts ...Option) (Found, error) {
	t.Helper()
	x := &explorer{t: t, tmp: t.TempDir(), start: start, settings: newSettings(opts)}
	lives, err := x.lives()
	if err != nil {
		return Found{}, err
	}
	for _, life := range lives {
		s, err := x.explore(life)
		if err != nil {
			return Found{Played: x.played, NoLap: x.noLap}, err
		}
		if s != nil {
			return x.found(s), nil
		}
	}
	return Found{Played: x.played, NoLap: x.noLap}, nil
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
	f := Found{Text: s.String(), Claims: s.claims(), Life: s.life.Name, Picks: s.number(), Played: x.played, NoLap: x.noLap}
	for _, pick := range s.picks {
		if pick > 0 {
			f.Deviations++
		}
	}
	return f
}
