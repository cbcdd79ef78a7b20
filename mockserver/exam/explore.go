package exam

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gateway-go/gateway"
	engine "github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/mockserver"
)

// StartFunc starts the program and returns its handler, which serves the webhooks at
// /webhooks and the hooks below /exam/; see [Hooks]. It is called again after a crash.
type StartFunc func(p *Process) (http.Handler, error)

var (
	errNoHandler = errors.New("the start function returned no handler")
	errGoexit    = errors.New("see the messages of the test")
)

// Option configures [Explore].
type Option func(*settings)

type settings struct {
	deviations int
	path       string
	only       []string
	gateway    []mockserver.Option
	stall      time.Duration // how long nothing may go on
	watch      time.Duration // how often that is checked
}

// Deviations sets how many things go wrong in a schedule, at most. The default is 1, and 2
// if the environment variable FULL_SIZE is set. With each more, there are a hundred times
// as many schedules.
func Deviations(n int) Option { return func(s *settings) { s.deviations = n } }

// Lives selects the lives of an order that are played, by their names, such as "pix" or
// "partial-refunds". Without it, all are.
func Lives(names ...string) Option { return func(s *settings) { s.only = names } }

// WebhookPath sets the path of the program's webhooks; default /webhooks.
func WebhookPath(path string) Option { return func(s *settings) { s.path = path } }

// Gateway adds options of the mock gateway, such as its dialect.
func Gateway(opts ...mockserver.Option) Option {
	return func(s *settings) { s.gateway = append(s.gateway, opts...) }
}

func newSettings(opts []Option) settings {
	s := settings{deviations: 1, path: "/webhooks", stall: 30 * time.Second, watch: time.Second}
	if os.Getenv("FULL_SIZE") != "" {
		s.deviations = 2
	}
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

// Explore plays the lives of an order against the program, once for each schedule with up to
// [Deviations] deviations, and fails the test if one of them loses or doubles money or goods.
// It prints the messages of such schedules, up to three of each life, reduced to the deviations
// that the failure needs, and a call of [Replay] that repeats each.
//
// A deviation is a fault of a request or a delivery, a crash at a request or a
// [Process.Step], or the buyer's second click at the same time. Everything else goes well.
func Explore(t *testing.T, start StartFunc, opts ...Option) {
	t.Helper()
	x := &explorer{t: t, tmp: t.TempDir(), start: start, settings: newSettings(opts)}
	lives, err := x.lives()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, life := range lives {
		failures, err := x.explore(life)
		for _, s := range failures {
			t.Errorf("%s", s)
		}
		if err != nil {
			t.Fatalf("exam: the life %s of an order: %v", life.Name, err)
		}
	}
	x.summarize(time.Since(began))
}

// Replay plays the one schedule that a failure of [Explore] names.
func Replay(t *testing.T, start StartFunc, picks string, opts ...Option) {
	t.Helper()
	x := &explorer{t: t, tmp: t.TempDir(), start: start, settings: newSettings(opts)}
	found, err := x.replay(picks)
	if err != nil {
		t.Fatalf("exam: %v", err)
	}
	if found.failed() {
		t.Errorf("%s", found)
		return
	}
	t.Logf("exam: this schedule loses no money:\n%s", found)
}

// explorer plays the schedules of one test.
type explorer struct {
	settings

	t        *testing.T
	tmp      string // of the folders
	start    StartFunc
	missing  []engine.Hook // hooks that are not offered
	probed   bool
	noLap    string // why messages do not overlap
	bubbles  sync.WaitGroup
	played   int
	skipped  []string // lives, with the reason
	warnings []string
}

// seed is that of the mock's ids and the exam's amounts.
const seed = 1

// lives returns the lives to play.
func (x *explorer) lives() (list []*engine.Scenario, err error) {
	all := engine.Lives()
	for _, name := range x.only {
		if !slices.ContainsFunc(all, func(s *engine.Scenario) bool { return s.Name == name }) {
			return nil, fmt.Errorf("exam: no life of an order is called %q", name)
		}
	}
	for _, life := range all {
		if len(x.only) == 0 || slices.Contains(x.only, life.Name) {
			list = append(list, life)
		}
	}
	return list, nil
}

// mostFailures is how many schedules of a life are reported. Each fails in a way in which no
// earlier one does.
const mostFailures = 3

// explore plays the schedules of a life, and returns those that fail, reduced. The error
// says why the program can't be explored.
func (x *explorer) explore(life *engine.Scenario) (failures []*schedule, err error) {
	var tree explore.Tree
	for run := tree.Next(); run != nil && len(failures) < mostFailures; run = tree.Next() {
		s, err := x.play(life, run)
		if err != nil {
			return failures, err
		}
		if s == nil {
			continue
		}
		if tree.Runs() == 1 {
			if s.outcome.Status == engine.Skipped {
				x.skipped = append(x.skipped, life.Name+": "+s.outcome.Why)
				return nil, nil
			}
			for _, w := range s.outcome.Warnings {
				if !slices.Contains(x.warnings, w) {
					x.warnings = append(x.warnings, w)
				}
			}
			if _, err := x.play(life, run.Again()); err != nil { // is it deterministic at all?
				return nil, err
			}
		}
		if !s.failed() || slices.ContainsFunc(failures, s.failsLike) {
			continue
		}
		s, err = x.minimize(life, s)
		if err != nil {
			return failures, err
		}
		failures = append(failures, s)
		if s.deviations() == 0 {
			break // so do most others
		}
	}
	return failures, nil
}

// minimize resets the deviations of a schedule that its failure does not need.
func (x *explorer) minimize(life *engine.Scenario, s *schedule) (*schedule, error) {
	if s.deviations() < 2 { // the schedule with none has passed
		return s, nil
	}
	played := x.played
	defer func() { x.played = played }()
	var failure error
	explore.Reset(s.picks, func(run *explore.Run) bool {
		if failure != nil {
			return false
		}
		smaller, err := x.play(life, run)
		if err != nil {
			failure = err
			return false
		}
		if smaller == nil || !smaller.failsLike(s) {
			return false
		}
		s = smaller
		return true
	})
	return s, failure
}

// replay plays the schedule of a text such as 3.0.7: the number of the life and its choices.
func (x *explorer) replay(text string) (*schedule, error) {
	var picks []int
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("a schedule is numbers with dots between them, such as 3.0.7, not %q", text)
		}
		picks = append(picks, n)
	}
	all := engine.Lives()
	if picks[0] >= len(all) {
		return nil, fmt.Errorf("the schedule %s begins with the number of a life, which must be below %d", text, len(all))
	}
	x.deviations = len(picks) + 1
	if _, err := x.play(all[picks[0]], explore.Replay(nil)); err != nil { // finds out which hooks there are
		return nil, err
	}
	s, err := x.play(all[picks[0]], explore.Replay(picks[1:]))
	if err == nil && s == nil {
		err = errors.New(x.noLap)
	}
	return s, err
}

// mutexError means that a schedule could not be played to its end.
type mutexError struct{ stacks string }

func (e *mutexError) Error() string {
	return "a goroutine waits for a sync.Mutex, which another one holds while it sends a request, sleeps or is in a Step: " +
		"testing/synctest can't continue then. Use a channel as a lock, or don't hold it meanwhile:\n" + e.stacks
}

// play plays one schedule. It returns nil if that can't be played since messages can't
// overlap.
func (x *explorer) play(life *engine.Scenario, run *explore.Run) (*schedule, error) {
	s := &schedule{x: x, life: life, run: run, left: x.deviations}
	err := s.perform()
	x.played++
	if stuck, ok := errors.AsType[*mutexError](err); ok && s.lapped.Load() && x.noLap == "" {
		x.noLap = "messages that overlap were not tried: " + stuck.Error()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !x.probed {
		x.probed, x.missing = true, s.missing
	}
	s.picks = run.Picks()
	return s, nil
}

// summarize logs what was played and what was not.
func (x *explorer) summarize(took time.Duration) {
	x.t.Logf("exam: %d schedules with at most %d deviation(s) each, in %s", x.played, x.deviations, took.Round(time.Millisecond))
	for _, text := range slices.Concat(x.skipped, x.warnings) {
		x.t.Logf("exam: %s", text)
	}
	if x.noLap != "" {
		x.t.Logf("exam: %s", x.noLap)
	}
}

// schedule is one play of a life.
type schedule struct {
	x       *explorer
	life    *engine.Scenario
	run     *explore.Run
	left    int // deviations
	stage   *stage
	err     error // of a choice
	picks   []int
	outcome engine.Outcome
	missing []engine.Hook
	problem []error
	lapped  atomic.Bool

	progress atomic.Int64
	bubble   atomic.Pointer[string] // its name in a stack
}

// Choose implements exam.Schedule. If no deviation is left, everything goes well.
func (s *schedule) Choose(what string, n int) int {
	if s.left == 0 || s.err != nil {
		return 0
	}
	pick, err := s.run.ChooseOf(what, n)
	if err != nil {
		s.err = err
		return 0
	}
	if pick > 0 {
		s.left--
	}
	return pick
}

// Hold implements exam.Schedule.
func (s *schedule) Hold(what string) { s.stage.gate.hold(what, false, nil) }

// Overlap implements exam.Schedule.
func (s *schedule) Overlap(on bool) {
	if s.x.noLap != "" {
		return
	}
	s.lapped.Store(true)
	s.stage.gate.setOverlap(on)
}

// perform plays the schedule in a bubble. The error says why it could not be played.
func (s *schedule) perform() (err error) {
	ended := make(chan error, 1)
	s.x.bubbles.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				ended <- s.panicked(v)
				return
			}
			ended <- nil
		}()
		synctest.Test(s.x.t, func(*testing.T) {
			s.bubble.Store(bubbleName())
			err = s.play()
		})
	})
	if broken := s.watch(ended); broken != nil {
		return broken
	}
	return err
}

// play runs in the bubble.
func (s *schedule) play() error {
	opts := append([]mockserver.Option{
		mockserver.WithConsole(false), mockserver.WithOpeningBalance(1_000_000_00), mockserver.WithSeed(seed),
	}, s.x.gateway...)
	server, err := mockserver.New(opts...)
	if err != nil {
		return err
	}
	stage := &stage{start: s.x.start, tmp: s.x.tmp, gate: newGate(&s.progress), server: server}
	s.stage = stage
	go stage.gate.run()
	defer func() { s.problem = stage.problems }()
	defer stage.close()
	stage.exam, err = engine.New(engine.Config{
		Stage: stage, Gateway: server, Key: key, Secret: gateway.NewSecret(secret), Path: s.x.path, Seed: seed,
		Hang: time.Minute, Grace: grace, Schedule: s, Everything: s.x.deviations > 1, Missing: s.x.missing,
	})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := stage.Restart(ctx); err != nil {
		return fmt.Errorf("the program does not start: %w", err)
	}
	if !s.x.probed {
		if err := stage.exam.Probe(ctx); err != nil {
			return err
		}
	}
	s.outcome = stage.exam.Run(ctx, s.life)
	s.missing = stage.exam.Missing()
	return s.deterministic()
}

// grace is how long a program without a tick may work on its own.
const grace = 3 * time.Second

// deterministic returns an error if the program behaved differently in an earlier run.
func (s *schedule) deterministic() error {
	err := s.err
	if err == nil {
		err = s.run.End()
	}
	e, ok := errors.AsType[*explore.NotDeterministicError](err)
	if !ok {
		return err
	}
	sequence := func(last string) string {
		steps := slices.Clone(e.Same)
		if last == "" {
			last = "the end"
		}
		return strings.Join(append(steps, last), ", ")
	}
	return fmt.Errorf("the program is not deterministic at request %d: with the same schedule it led to\n  %s\nand then to\n  %s",
		e.At, sequence(e.Before), sequence(e.Now))
}

// panicked explains a panic of the bubble.
func (s *schedule) panicked(v any) error {
	text := fmt.Sprint(v)
	if !strings.Contains(text, "deadlock") {
		return fmt.Errorf("panic: %s\n%s", text, debug.Stack())
	}
	return fmt.Errorf("the program leaves goroutines when its process has ended (%s). They must end when Process.Context ends, "+
		"or with a function of Process.OnExit:\n%s", text, stacks(*s.bubble.Load(), ""))
}

const mutexState = "[sync."

// watch waits until the bubble has ended. It returns an error if that is stuck: if nothing
// has gone on for a while and a goroutine waits for a mutex, or nothing for a long while.
func (s *schedule) watch(ended <-chan error) error {
	ticker := time.NewTicker(s.x.watch)
	defer ticker.Stop()
	before, suspect, since := int64(-1), "", time.Now()
	for {
		select {
		case err := <-ended:
			return err
		case <-ticker.C:
		}
		name := s.bubble.Load()
		if now := s.progress.Load(); now != before || name == nil {
			before, suspect, since = now, "", time.Now()
			continue
		}
		blocked := stacks(*name, mutexState)
		if blocked != "" && blocked == suspect {
			return &mutexError{blocked}
		}
		suspect = blocked
		if time.Since(since) >= s.x.stall {
			return fmt.Errorf("nothing has gone on for %s: a goroutine computes, or waits for something outside of its bubble, such as "+
				"a socket or a channel that was made elsewhere. Time stands still meanwhile:\n%s", s.x.stall, stacks(*name, ""))
		}
	}
}

var bubblePattern = regexp.MustCompile(`synctest bubble \d+`)

// bubbleName returns the name of this goroutine's bubble in a stack.
func bubbleName() *string {
	text := make([]byte, 256)
	name := string(bubblePattern.Find(text[:runtime.Stack(text, false)]))
	return &name
}

// stacks returns the stacks of the goroutines of a bubble whose state contains the text.
func stacks(bubble, state string) string {
	text := make([]byte, 1<<20)
	text = text[:runtime.Stack(text, true)]
	var list []string
	for stack := range strings.SplitSeq(string(text), "\n\n") {
		head, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(head, bubble+"]") && strings.Contains(head, state) {
			list = append(list, stack)
		}
	}
	return strings.Join(list, "\n\n")
}
