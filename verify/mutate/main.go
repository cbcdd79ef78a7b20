// Command mutate tests the tests of the code that handles money: it makes one
// small change to the code at a time and reports the changes that no test detects.
//
//	go run -C verify ./mutate                          # every mutant
//	go run -C verify ./mutate -sample 200 -seed x      # some, chosen by the seed
//	go run -C verify ./mutate -area engine -match Pay  # those whose description matches
//
// All mutants of a file are compiled into one binary, and the environment
// variable MUTANT selects one, so each test binary is built once and not once
// per mutant. A mutant is run with the tests that reach its function, starting
// with those of its own package. A test kills a mutant if it fails with the mutant,
// passes without it and fails with it again, so flaky tests kill no mutants.
//
// survivors.txt lists the mutants that may survive, each with a reason. The
// command fails if any other mutant survives, or if the file lists a mutant
// that does not exist or that a test kills.
package main

import (
	"crypto/sha256"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// area is a set of files to mutate, and the packages whose tests must detect
// the mutants. The tests may be in another module than the files.
type area struct {
	name   string
	files  []string
	suites []string
}

func areas() []area {
	return []area{
		{"rules", []string{"internal/spec/*.go"}, []string{
			"internal/spec", "mockserver/internal/openapi",
		}},
		// Without stored.go: TestRestoreChecksEachMember tests its rules member by
		// member, at full size (see .ci/run chaos).
		{"engine", []string{
			"mockserver/internal/engine/[a-rt-z]*.go", "mockserver/internal/engine/s[a-su-z]*.go", "mockserver/internal/engine/st[a-np-z]*.go",
		}, []string{
			"mockserver/internal/engine", "mockserver/internal/store", "mockserver/internal/hosted", "mockserver/internal/httpapi",
			"mockserver",
		}},
		{"retry", []string{"internal/transport/*.go", "call.go", "errors.go", "reference.go"}, []string{
			"internal/transport", ".", "verify/explore",
		}},
		{"signature", []string{"webhook/signature.go"}, []string{"webhook"}},
		{"books", []string{"merchant/internal/books/*.go"}, []string{"merchant/internal/books"}},
	}
}

// has reports whether a file belongs to the area.
func (a area) has(name string) bool {
	return slices.ContainsFunc(a.files, func(pattern string) bool { ok, _ := filepath.Match(pattern, name); return ok })
}

// survivors maps the descriptions of mutants that may survive to the reasons.
type survivors map[string]string

// parseSurvivors reads survivors.txt.
func parseSurvivors(text string) (survivors, error) {
	known := survivors{}
	for block := range strings.SplitSeq(text, "\n\n") {
		block = strings.TrimSpace(block)
		if block == "" || strings.HasPrefix(block, "#") {
			continue
		}
		lines := strings.Split(block, "\n")
		reason := lines[len(lines)-1]
		if len(lines) != 4 || !isEquivalent(reason) && !strings.HasPrefix(reason, "accepted: ") {
			return nil, fmt.Errorf("survivors.txt: want the three lines of a mutant, and a reason that starts with \"equivalent: \" or \"accepted: \":\n%s", block)
		}
		known[strings.Join(lines[:3], "\n")] = reason
	}
	return known, nil
}

// isEquivalent reports whether a mutant is listed as equivalent to the code,
// so that no test can detect it.
func isEquivalent(reason string) bool { return strings.HasPrefix(reason, "equivalent: ") }

// options select the mutants to run.
type options struct {
	area, match, seed string // "" for all
	sample, workers   int
	patience          time.Duration // see [options.limit]
}

//go:embed survivors.txt
var survivorsFile string

func main() {
	o := options{patience: 5 * time.Second}
	flag.StringVar(&o.area, "area", "", "comma-separated `names` of the areas to mutate: rules, engine, retry, signature, books (default all)")
	flag.StringVar(&o.match, "match", "", "run only the mutants whose description matches this regular `expression`")
	flag.IntVar(&o.sample, "sample", 0, "run only this `number` of mutants per area, chosen from those that survivors.txt does not list")
	flag.StringVar(&o.seed, "seed", "", "the `seed` that chooses the sample")
	flag.IntVar(&o.workers, "workers", 2, "the `number` of mutants to run at the same time")
	flag.Parse()
	known, err := parseSurvivors(survivorsFile)
	if err == nil {
		err = enterRoot()
	}
	if err == nil {
		err = run(os.Stdout, areas(), known, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// enterRoot changes to the folder of the root module, which the areas' paths start from.
func enterRoot() error {
	root, err := command(".", "list", "-m", "-f", "{{.Dir}}", "github.com/gateway-go/gateway")
	if err != nil {
		return err
	}
	return os.Chdir(strings.TrimSpace(string(root)))
}

// run runs the mutants of the areas and prints the survivors.
func run(out io.Writer, areas []area, known survivors, o options) error {
	m, err := load(areas)
	if err != nil {
		return err
	}
	problems := stale(out, m, known)
	chosen := map[string][]*mutant{}
	for _, a := range areas {
		if o.area == "" || slices.Contains(strings.Split(o.area, ","), a.name) {
			chosen[a.name] = o.choose(m.of(a), known)
		}
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r := &runner{dir: dir, options: o, suites: map[string]*suite{}}
	if r.overlay, err = m.writeOverlay(dir, slices.Concat(slices.Collect(maps.Values(chosen))...)); err != nil {
		return err
	}
	for _, a := range areas {
		if len(chosen[a.name]) == 0 {
			continue
		}
		survived, err := r.try(a, chosen[a.name], func(m *mutant) {
			if known[m.id] == "" {
				_, _ = fmt.Fprintf(out, "survived:\n%s\n\n", m.id)
			}
		})
		if err != nil {
			return err
		}
		problems += report(out, a.name, chosen[a.name], survived, known)
	}
	if problems > 0 {
		return fmt.Errorf("%d mutants need a test or an entry in verify/mutate/survivors.txt", problems)
	}
	return nil
}

// choose returns the mutants of an area to run. The same seed always selects the
// same mutants.
func (o options) choose(mutants []*mutant, known survivors) []*mutant {
	match := regexp.MustCompile(o.match)
	chosen := slices.DeleteFunc(mutants, func(m *mutant) bool {
		return !match.MatchString(m.id) || o.sample > 0 && known[m.id] != ""
	})
	if o.sample == 0 {
		return chosen
	}
	key := func(m *mutant) string {
		sum := sha256.Sum256([]byte(o.seed + "\n" + m.id))
		return string(sum[:])
	}
	slices.SortFunc(chosen, func(a, b *mutant) int { return strings.Compare(key(a), key(b)) })
	return chosen[:min(len(chosen), o.sample)]
}

// try runs mutants and returns those that survive. It reports each one immediately,
// because a run may take long.
func (r *runner) try(a area, mutants []*mutant, reported func(*mutant)) ([]*mutant, error) {
	var (
		mu       sync.Mutex
		survived []*mutant
		failed   error
	)
	if _, err := r.suite(a.suites[0]); err != nil {
		return nil, err
	}
	parallel(r.workers, len(mutants), func(i int) {
		survives, err := r.survives(mutants[i], a.suites)
		mu.Lock()
		defer mu.Unlock()
		failed = errors.Join(failed, err)
		if survives {
			reported(mutants[i])
			survived = append(survived, mutants[i])
		}
	})
	return survived, failed
}

// report prints the outcome of an area and returns how many of its mutants
// contradict survivors.txt.
func report(out io.Writer, name string, tried, survived []*mutant, known survivors) (problems int) {
	var equivalent, accepted int
	for _, m := range tried {
		reason, survives := known[m.id], slices.Contains(survived, m)
		switch {
		case survives && isEquivalent(reason):
			equivalent++
		case survives && reason != "":
			accepted++
		case survives:
			problems++
		case reason != "":
			problems++
			_, _ = fmt.Fprintf(out, "in survivors.txt, but killed by a test:\n%s\n\n", m.id)
		}
	}
	killed, counted := len(tried)-len(survived), len(tried)-equivalent
	_, _ = fmt.Fprintf(out, "%-10s %4d mutants tried, %4d killed, %3d survived, %3d equivalent: %.1f %%\n",
		name, len(tried), killed, len(survived)-equivalent, equivalent, 100*float64(killed)/float64(max(1, counted)))
	return problems
}

// stale prints the listed mutants that do not exist and returns their number.
func stale(out io.Writer, m *module, known survivors) (n int) {
	exists := map[string]bool{}
	for _, m := range m.mutants {
		exists[m.id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if !exists[id] {
			n++
			_, _ = fmt.Fprintf(out, "in survivors.txt, but does not exist:\n%s\n\n", id)
		}
	}
	return n
}
