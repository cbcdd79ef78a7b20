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
	picks   []int // first those of the tree or the replay, then those made in this run
	options []int // the number of options of each choice
	at      int   // the number of choices made
	lenient bool  // for a replay, whose picks may be out of range
}

// Choose returns which of n options this run takes, from 0 to n-1.
func (r *Run) Choose(n int) int {
	i := r.at
	r.at++
	if i == len(r.options) {
		r.options = append(r.options, n)
	} else if r.options[i] != n {
		panic(fmt.Sprintf("explore: the test is not deterministic: choice %d had %d options and now has %d", i+1, r.options[i], n))
	}
	if i == len(r.picks) {
		r.picks = append(r.picks, 0)
	}
	if r.picks[i] >= n {
		if !r.lenient {
			panic(fmt.Sprintf("explore: choice %d has %d options and can't be %d", i+1, n, r.picks[i]))
		}
		r.picks[i] = 0
	}
	return r.picks[i]
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
		for made > 0 && t.last.picks[made-1]+1 == t.last.options[made-1] {
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
