package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// suite is the test binary of a package, with all mutants compiled in.
type suite struct {
	dir     string // "mockserver/internal/engine"
	tests   []test
	killers killers
}

// test is a test that passes without a mutant.
type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool // the numbers of the units that it executes
}

// slowest is the maximum duration of a test that is used. It is much longer than any
// test takes on an idle machine, so that no test is excluded, and no mutant survives,
// because the machine is busy.
const slowest = time.Minute

// fast tests, which take less than this, are run before the others.
const fast = 100 * time.Millisecond

// runner runs suites. It builds a suite when a mutant first needs it.
type runner struct {
	dir     string // for build outputs
	overlay string
	options
	mu     sync.Mutex
	suites map[string]*suite
}

func (r *runner) binary(dir string) string {
	return filepath.Join(r.dir, strings.ReplaceAll(dir, "/", "_")+".test")
}

// suite builds the test binary of a package and determines which units each of its
// tests reaches. Tests that fail in this binary, for example because they count
// allocations, are not used.
func (r *runner) suite(dir string) (*suite, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.suites[dir]; s != nil {
		return s, nil
	}
	began := time.Now()
	if _, err := command(dir, "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", r.overlay, "-o", r.binary(dir)); err != nil {
		return nil, err
	}
	built := time.Since(began)
	s := &suite{dir: dir, killers: killers{tests: map[*unit]map[string]bool{}}}
	r.suites[dir] = s
	list, err := s.command(context.Background(), r, 0, "-test.list=.").Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	for name := range strings.FieldsSeq(string(list)) {
		if !strings.HasPrefix(name, "Benchmark") {
			s.tests = append(s.tests, test{name: name})
		}
	}
	parallel(r.workers, len(s.tests), func(i int) { s.record(r, &s.tests[i]) })
	fmt.Fprintf(os.Stderr, "%s: built in %.0f s, ran %d tests without mutants in %.0f s\n", dir, built.Seconds(), len(s.tests), (time.Since(began) - built).Seconds())
	return s, nil
}

// record runs a single test and records the units that it reaches.
func (s *suite) record(r *runner, t *test) {
	ctx, cancel := context.WithTimeout(context.Background(), slowest)
	defer cancel()
	reached := filepath.Join(r.dir, "reached", s.dir, t.name)
	if err := os.MkdirAll(filepath.Dir(reached), 0o700); err != nil {
		panic(err)
	}
	cmd := s.command(ctx, r, -1, "-test.run=^"+t.name+"$")
	cmd.Env = append(cmd.Env, "MUTANT_REACHED="+reached)
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s is not used: %v\n%s\n", s.dir, t.name, err, lastLines(out))
		return
	}
	t.took, t.reaches = time.Since(began), map[int]bool{}
	units, _ := os.ReadFile(reached) //nolint:gosec // does not exist if no unit was reached
	for unit := range strings.FieldsSeq(string(units)) {
		n, _ := strconv.Atoi(unit)
		t.reaches[n] = true
	}
}

func lastLines(out []byte) []byte { return out[max(0, len(out)-600):] }

// kills reports whether a test of s fails with m. It runs fast tests first,
// starting with those that have killed another mutant of the same function.
func (s *suite) kills(r *runner, m *mutant) bool {
	var order [4][]*test
	for i := range s.tests {
		t := &s.tests[i]
		if !t.reaches[m.unit.number] {
			continue
		}
		group := 0
		if t.took >= fast {
			group = 2
		}
		if !s.killers.has(m.unit, t.name) {
			group++
		}
		order[group] = append(order[group], t)
	}
	return slices.ContainsFunc(order[:], func(tests []*test) bool { return s.fails(r, m, tests) })
}

// fails reports whether one of the tests fails because of m: it must pass
// without m and fail again with it. A test that fails because of load does not
// kill m. Without m a test has ten times as long as usual, and then four times as long
// as it just took: load neither excludes a test nor makes it fail again.
func (s *suite) fails(r *runner, m *mutant, tests []*test) bool {
	for len(tests) > 0 {
		failed := s.failed(r, m.number, tests, r.limit(usual(tests)))
		if len(failed) == 0 {
			return false
		}
		began := time.Now()
		without := s.failed(r, 0, failed, 10*r.limit(usual(failed)))
		took := max(usual(failed), time.Since(began))
		switch {
		case len(without) > 0:
			fmt.Fprintf(os.Stderr, "%s: %s also fails without a mutant\n", s.dir, names(failed))
		case len(s.failed(r, m.number, failed, r.limit(took))) > 0:
			s.killers.add(m.unit, failed)
			return true
		default:
			fmt.Fprintf(os.Stderr, "%s: %s fails only sometimes with\n%s\n", s.dir, names(failed), m.id)
		}
		tests = slices.DeleteFunc(tests, func(t *test) bool { return slices.Contains(failed, t) })
	}
	return false
}

// limit returns the timeout of tests that usually take this long.
func (o options) limit(usual time.Duration) time.Duration { return o.patience + 4*usual }

// usual returns how long tests took without mutants.
func usual(tests []*test) (sum time.Duration) {
	for _, t := range tests {
		sum += t.took
	}
	return sum
}

// failed runs tests with a mutant and returns those that failed. If the run failed
// but the output names no test, it returns all of them.
func (s *suite) failed(r *runner, mutant int, tests []*test, limit time.Duration) []*test {
	ctx, cancel := context.WithTimeout(context.Background(), limit+5*time.Second)
	defer cancel()
	out, err := s.command(ctx, r, mutant,
		"-test.run=^("+names(tests)+")$", "-test.failfast", "-test.timeout="+limit.String()).CombinedOutput()
	if err == nil {
		return nil
	}
	named := map[string]bool{}
	for _, found := range failedTest.FindAllSubmatch(out, -1) {
		named[string(found[1])] = true
	}
	failed := slices.DeleteFunc(slices.Clone(tests), func(t *test) bool { return !named[t.name] })
	if len(failed) == 0 {
		return tests
	}
	return failed
}

// names returns a pattern that matches the tests' names.
func names(tests []*test) string {
	all := make([]string, len(tests))
	for i, t := range tests {
		all[i] = t.name
	}
	return strings.Join(all, "|")
}

// failedTest finds the names of tests that failed, panicked or timed out.
var failedTest = regexp.MustCompile(`(?m)^(?:--- FAIL: |\s+)(\w+) \(`)

// killers records the tests that have killed a mutant of a function.
type killers struct {
	mu    sync.Mutex
	tests map[*unit]map[string]bool
}

func (k *killers) has(u *unit, test string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tests[u][test]
}

func (k *killers) add(u *unit, tests []*test) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tests[u] == nil {
		k.tests[u] = map[string]bool{}
	}
	for _, t := range tests {
		k.tests[u][t.name] = true
	}
}

// command returns the command that runs tests of s with a mutant. The memory limit
// stops mutants that allocate without end. Files that killed test processes leave
// behind are removed with r.dir.
func (s *suite) command(ctx context.Context, r *runner, mutant int, args ...string) *exec.Cmd {
	args = append([]string{"-c", `ulimit -v 8000000; exec "$0" "$@"`, r.binary(s.dir)}, args...)
	cmd := exec.CommandContext(ctx, "bash", args...) //nolint:gosec // runs only test binaries built here
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(mutant), "TMPDIR="+r.dir)
	cmd.WaitDelay = time.Second
	return cmd
}

// survives runs the suites of its area against m until one kills it.
func (r *runner) survives(m *mutant, suites []string) (bool, error) {
	for _, dir := range suites {
		s, err := r.suite(dir)
		if err != nil {
			return false, err
		}
		if s.kills(r, m) {
			return false, nil
		}
	}
	return true, nil
}

// parallel calls do concurrently for 0 to n-1.
func parallel(workers, n int, do func(int)) {
	next := make(chan int)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
}
