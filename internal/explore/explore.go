// Package explore runs a test once for every sequence of choices that the test can
// make, and reduces a failing sequence to a small one. It enumerates all sequences
// instead of sampling them.
//
// A test asks its [Run] for every choice, such as which fault a request gets or
// which of two workers runs next. The test must be deterministic: the same choices
// must lead to the same next choice. Option 0 is the default, in which nothing
// fails.
//
//	for tree := (explore.Tree{}); ; {
//		run := tree.Next()
//		if run == nil {
//			break
//		}
//		…
//	}
package explore

import (
	"fmt"
	"os"
	"slices"
	"strconv"
)

// Sampled reports whether the environment variable SAMPLE, a number, selects case i as
// one of three. If it is not a number, it selects all.
func Sampled(i int) bool {
	n, err := strconv.Atoi(os.Getenv("SAMPLE"))
	return err != nil || (n+i)%3 == 0
}

// Run is one execution of a test: the choices that it has made so far.
type Run struct {
	picks   []int    // first those of the tree or the replay, then those made in this run
	options []choice // each choice of this run, or of the one whose choices it repeats
	at      int      // the number of choices made
	lenient bool     // for a replay, whose picks may be out of range
}

// choice is what a run has to choose: the number of options, and what they are about.
type choice struct {
	n    int
	what string
}

// Choose returns which of n options this run takes, from 0 to n-1. It panics if the
// test is not deterministic.
func (r *Run) Choose(n int) int {
	pick, err := r.ChooseOf("", n)
	if err != nil {
		panic(err.Error())
	}
	return pick
}

// ChooseOf is like [Run.Choose]. what names the choice. The error, a
// [NotDeterministicError], says that an earlier run with the same choices before this
// one had another choice here.
func (r *Run) ChooseOf(what string, n int) (int, error) {
	i := r.at
	now := choice{n, what}
	if i == len(r.options) {
		r.options = append(r.options, now)
	} else if r.options[i] != now {
		return 0, r.differs(&now)
	}
	r.at++
	if i == len(r.picks) {
		r.picks = append(r.picks, 0)
	}
	if r.picks[i] >= n {
		if !r.lenient {
			return 0, r.differs(&now)
		}
		r.picks[i] = 0
	}
	return r.picks[i], nil
}

// End returns a [NotDeterministicError] if the run has ended before it made all the
// choices that it had to repeat.
func (r *Run) End() error {
	if !r.lenient && r.at < len(r.options) {
		return r.differs(nil)
	}
	return nil
}

// Again returns a run that must make the same choices.
func (r *Run) Again() *Run {
	return &Run{picks: slices.Clone(r.picks[:r.at]), options: slices.Clone(r.options[:r.at])}
}

func (r *Run) differs(now *choice) error {
	e := &NotDeterministicError{At: r.at + 1}
	for _, c := range r.options[:r.at] {
		e.Same = append(e.Same, c.what)
	}
	before := r.options[r.at]
	e.Before, e.BeforeOptions = before.what, before.n
	if now != nil {
		e.Now, e.NowOptions = now.what, now.n
	}
	return e
}

// NotDeterministicError says that two runs with the same choices differ.
type NotDeterministicError struct {
	At                        int      // the number of the choice, from 1
	Same                      []string // what both chose before it
	Before, Now               string   // what the earlier run had to choose there, and this one
	BeforeOptions, NowOptions int      // 0 if this run ended before
}

// Error says what differs.
func (e *NotDeterministicError) Error() string {
	if e.NowOptions == 0 {
		return fmt.Sprintf("explore: the test is not deterministic: choice %d had %d options and is not made any more", e.At, e.BeforeOptions)
	}
	return fmt.Sprintf("explore: the test is not deterministic: choice %d had %d options and now has %d", e.At, e.BeforeOptions, e.NowOptions)
}

// Picks returns the choices that the run has made, for [Replay].
func (r *Run) Picks() []int { return slices.Clone(r.picks[:r.at]) }

// Replay returns a run that makes the given choices and then only default ones.
func Replay(picks []int) *Run { return &Run{picks: slices.Clone(picks), lenient: true} }

// Tree enumerates the runs of a test, depth first. The zero value starts with the
// run that makes only default choices.
type Tree struct {
	last *Run
	runs int
}

// Next returns the next run, or nil after the last one. The previous run must
// have ended.
func (t *Tree) Next() *Run {
	next := &Run{}
	if t.last != nil {
		made := t.last.at
		for made > 0 && t.last.picks[made-1]+1 == t.last.options[made-1].n {
			made--
		}
		if made == 0 {
			return nil
		}
		next.picks, next.options = t.last.picks[:made], t.last.options[:made]
		next.picks[made-1]++
	}
	t.last = next
	t.runs++
	return next
}

// Runs returns the number of runs so far.
func (t *Tree) Runs() int { return t.runs }

// Minimize reduces the choices of a failing run as long as it still fails: it
// removes choices or replaces them with the default. fails executes a run.
func Minimize(picks []int, fails func(*Run) bool) []int {
	picks = trimDefaults(picks)
	for {
		smaller := smallerFailing(picks, fails)
		if smaller == nil {
			return picks
		}
		picks = smaller
	}
}

// Reset is a cheap [Minimize] for long sequences: it only replaces choices with the
// default, one at a time, as long as the run still fails.
func Reset(picks []int, fails func(*Run) bool) []int {
	picks = trimDefaults(picks)
	for i := 0; i < len(picks); i++ {
		if picks[i] == 0 {
			continue
		}
		plain := slices.Clone(picks)
		plain[i] = 0
		if run := Replay(plain); fails(run) {
			picks = trimDefaults(run.Picks())
		}
	}
	return picks
}

// longestCut is the maximum number of choices removed at once. It must be at least
// the number of choices of a request.
const longestCut = 8

func smallerFailing(picks []int, fails func(*Run) bool) []int {
	try := func(smaller []int) []int {
		run := Replay(smaller)
		if !fails(run) {
			return nil
		}
		made := trimDefaults(run.Picks())
		if len(made) < len(picks) || len(made) == len(picks) && slices.Compare(made, picks) < 0 {
			return made
		}
		return nil
	}
	for n := min(longestCut, len(picks)); n > 0; n-- {
		for i := range len(picks) - n + 1 {
			if made := try(slices.Delete(slices.Clone(picks), i, i+n)); made != nil {
				return made
			}
		}
	}
	for i, pick := range picks {
		if pick == 0 {
			continue
		}
		plain := slices.Clone(picks)
		plain[i] = 0
		if made := try(plain); made != nil {
			return made
		}
	}
	return nil
}

// trimDefaults drops the default choices at the end, which every run makes anyway.
func trimDefaults(picks []int) []int {
	for len(picks) > 0 && picks[len(picks)-1] == 0 {
		picks = picks[:len(picks)-1]
	}
	return picks
}
