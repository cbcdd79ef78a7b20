package exam_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/exam/goshop/shop"
	engine "github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/explore/fault"
	"github.com/gateway-go/gateway/mockserver/exam"
)

// around returns the shop without a mistake, whose handler is wrapped.
func around(wrap func(p *exam.Process, next http.Handler) http.Handler) exam.StartFunc {
	return func(p *exam.Process) (http.Handler, error) {
		next, err := open(shop.NoMistake)(p)
		if err != nil {
			return nil, err
		}
		return wrap(p, next), nil
	}
}

func isPlace(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == "/exam/orders"
}

// Every schedule that is promised is played: each fault of a request and a delivery, and
// the crashes.
func TestEveryFaultHappens(t *testing.T) {
	t.Parallel()
	faults, err := exam.Faults(t, open(shop.NoMistake), "pix")
	require.NoError(t, err)
	want := []string{
		"killed before it", "killed after it", "its reference is taken", "paid before the response",
		"does not arrive, comes again later", "again", "late", "as another encoder writes it", "with a new event id", "twice at once",
		"again, after the restart", "never arrives",
		"the program is killed", "the program is killed at a step", "the program is started again", "the buyer clicks again",
	}
	for _, f := range append(fault.Writes(), fault.Reads()...) {
		if !f.Keyed { // the shop sends no idempotency keys
			want = append(want, f.Name)
		}
	}
	for _, name := range want {
		assert.True(t, faults[name], "%q happens", name)
	}
}

func TestAProgramThatIsNotDeterministicIsReported(t *testing.T) {
	t.Parallel()
	var starts atomic.Int32
	_, err := exam.Find(t, around(func(p *exam.Process, next http.Handler) http.Handler {
		odd := starts.Add(1)%2 == 1
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isPlace(r) && odd {
				_, _ = p.Client().Customers.List(r.Context(), gateway.CustomerListParams{})
			}
			next.ServeHTTP(w, r)
		})
	}), exam.Lives("pix"), exam.Deviations(1))
	require.EqualError(t, err, "the program is not deterministic at request 2: with the same schedule it led to\n"+
		"  place, customers.list\nand then to\n  place, step")
}

func TestAProgramThatEndsEarlierIsReported(t *testing.T) {
	t.Parallel()
	var starts atomic.Int32
	_, err := exam.Find(t, around(func(p *exam.Process, next http.Handler) http.Handler {
		first := starts.Add(1) == 1
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			if !isPlace(r) && r.Method == http.MethodPost && first {
				p.Step()
			}
		})
	}), exam.Lives("card-refused"), exam.Deviations(1))
	require.ErrorContains(t, err, "the program is not deterministic at request")
}

func TestAProgramThatDoesNotStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		start exam.StartFunc
		says  string
	}{
		{"an error", func(*exam.Process) (http.Handler, error) { return nil, errors.New("no database") }, "the program does not start: no database"},
		{"no handler", func(*exam.Process) (http.Handler, error) { return nil, nil }, "the program does not start: the start function returned no handler"},
		{"a panic", func(*exam.Process) (http.Handler, error) { panic("no config") }, "the start function panicked: no config"},
		{"the end of its goroutine", func(*exam.Process) (http.Handler, error) { runtime.Goexit(); return nil, nil }, "the start function ended its goroutine, as t.FailNow does"},
		{"it never returns", func(p *exam.Process) (http.Handler, error) { <-p.Context().Done(); return nil, nil }, "the start function does not return"},
		{"no hooks", func(*exam.Process) (http.Handler, error) {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), nil
		}, "the report of order none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := exam.Find(t, c.start, exam.Lives("pix"))
			require.ErrorContains(t, err, c.says)
		})
	}
}

// After a crash, a program that does not come back breaks a claim.
func TestAProgramThatDoesNotComeBack(t *testing.T) {
	t.Parallel()
	all, err := exam.Find(t, func(p *exam.Process) (http.Handler, error) {
		lock := filepath.Join(p.Dir(), "lock")
		if _, err := os.Stat(lock); err == nil {
			return nil, errors.New("another process runs")
		}
		if err := os.WriteFile(lock, nil, 0o600); err != nil {
			return nil, err
		}
		p.OnExit(func() error { return os.Remove(lock) }) // too late after a crash
		return open(shop.NoMistake)(p)
	}, exam.Lives("pix"), exam.Deviations(1))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	assert.Equal(t, []engine.Claim{engine.Restarts}, all[0].Claims)
	assert.Contains(t, all[0].Text, "after a crash the program did not come back: another process runs")
}

func TestAPanicOfAHandlerFails(t *testing.T) {
	t.Parallel()
	all, err := exam.Find(t, around(func(_ *exam.Process, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/webhooks" {
				panic("the warehouse is gone")
			}
			next.ServeHTTP(w, r)
		})
	}), exam.Lives("pix"), exam.Deviations(0))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	assert.Contains(t, all[0].Text, "the handler of POST /webhooks panicked: the warehouse is gone")
	assert.Contains(t, all[0].Text, "broken_test.go", "the stack")
}

func TestAHandlerThatEndsItsGoroutineFails(t *testing.T) {
	t.Parallel()
	all, err := exam.Find(t, around(func(_ *exam.Process, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isPlace(r) {
				runtime.Goexit()
			}
			next.ServeHTTP(w, r)
		})
	}), exam.Lives("pix"), exam.Deviations(0))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	assert.Contains(t, all[0].Text, "the handler of POST /exam/orders ended its goroutine, as t.FailNow does")
}

func TestAnErrorOfOnExitFails(t *testing.T) {
	t.Parallel()
	all, err := exam.Find(t, func(p *exam.Process) (http.Handler, error) {
		p.OnExit(func() error { return errors.New("the last page was not written") })
		return open(shop.NoMistake)(p)
	}, exam.Lives("pix"), exam.Deviations(0))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	assert.Contains(t, all[0].Text, "OnExit: the last page was not written")
}

// The error of testing/synctest alone names neither the program nor the remedy. The
// goroutine stays until the test binary ends: nothing outside of the bubble can end it.
func TestAGoroutineThatIsLeftIsExplained(t *testing.T) {
	t.Parallel()
	_, err := exam.Find(t, func(p *exam.Process) (http.Handler, error) {
		never := make(chan struct{})
		go waitForever(never)
		return open(shop.NoMistake)(p)
	}, exam.Lives("pix"))
	require.ErrorContains(t, err, "the program leaves goroutines when its process has ended")
	require.ErrorContains(t, err, "Process.Context")
	require.ErrorContains(t, err, "waitForever", "its stack")
}

func waitForever(never <-chan struct{}) { <-never }

// A bubble does not end, and its time stands still, while a goroutine waits for something
// outside.
func TestAGoroutineThatWaitsForTheOutsideIsExplained(t *testing.T) {
	t.Parallel()
	outside := make(chan struct{})
	all, err := exam.Find(t, func(p *exam.Process) (http.Handler, error) {
		go waitForever(outside)
		return open(shop.NoMistake)(p)
	}, exam.Lives("pix"), exam.Stall(time.Second), exam.Watch(100*time.Millisecond))
	close(outside)
	require.ErrorContains(t, err, "waits for something outside of its bubble")
	require.ErrorContains(t, err, "waitForever")
	require.Len(t, all, 1)
	all[0].Wait()
}

// A goroutine that ends with the process is none of these.
func TestAGoroutineMayRunUntilTheProcessEnds(t *testing.T) {
	t.Parallel()
	all, err := exam.Find(t, func(p *exam.Process) (http.Handler, error) {
		var workers sync.WaitGroup
		workers.Go(func() { <-p.Context().Done() })
		p.OnExit(func() error { workers.Wait(); return nil })
		return open(shop.NoMistake)(p)
	}, exam.Lives("card-refused"), exam.Deviations(1))
	require.NoError(t, err)
	assert.Empty(t, all)
}

// What a killed process still writes does not survive.
func TestAKilledProcessWritesNothing(t *testing.T) {
	t.Parallel()
	all, err := exam.Find(t, func(p *exam.Process) (http.Handler, error) {
		name := filepath.Join(p.Dir(), "written after the end")
		if _, err := os.Stat(name); err == nil {
			return nil, errors.New("a dead process has written")
		}
		p.OnExit(func() error { return os.WriteFile(name, nil, 0o600) })
		return open(shop.NoMistake)(p)
	}, exam.Lives("card-refused"), exam.Deviations(1))
	require.NoError(t, err)
	assert.Empty(t, all)
}

// lock is a mutex that the test can open when the program has been given up, so that its
// goroutines end.
type lock struct {
	sync.Mutex

	open atomic.Bool
}

func (l *lock) with(f func()) {
	if !l.open.Load() {
		l.Lock()
		defer func() {
			if !l.open.Load() {
				l.Unlock()
			}
		}()
	}
	f()
}

// A mutex that is held during a request stops a bubble, if another goroutine waits for it.
// The schedules in which that happens are left out, and the others are played.
func TestAMutexThatIsHeldDuringARequest(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var locks []*lock
	all, err := exam.Find(t, around(func(_ *exam.Process, next http.Handler) http.Handler {
		l := &lock{}
		mu.Lock()
		locks = append(locks, l)
		mu.Unlock()
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				next.ServeHTTP(w, r)
				return
			}
			l.with(func() { next.ServeHTTP(w, r) })
		})
	}), exam.Lives("card-refused"), exam.Deviations(1), exam.Watch(100*time.Millisecond))
	require.NoError(t, err)
	require.Len(t, all, 1, "no failure")
	assert.Contains(t, all[0].NoLap, "a goroutine waits for a sync.Mutex")
	assert.Contains(t, all[0].NoLap, "(*lock).with")
	mu.Lock()
	for _, l := range locks {
		l.open.Store(true)
		if !l.TryLock() {
			l.Unlock() // the goroutine that waits goes on
		}
	}
	mu.Unlock()
	all[0].Wait()
}

func TestWrongReplays(t *testing.T) {
	t.Parallel()
	for picks, says := range map[string]string{
		"":      `a schedule is numbers with dots between them, such as 3.0.7, not ""`,
		"0.x":   `not "0.x"`,
		"-1":    `not "-1"`,
		"99.1":  "begins with the number of a life, which must be below 11",
		"0..10": `not "0..10"`,
	} {
		_, err := exam.FindAgain(t, open(shop.NoMistake), picks)
		require.ErrorContains(t, err, says)
	}
	_, err := exam.Find(t, open(shop.NoMistake), exam.Lives("cash"))
	require.EqualError(t, err, `exam: no life of an order is called "cash"`)
}

// A program without refunds is explored, and what was left out is said.
func TestHooksThatAreNotOfferedAreSkipped(t *testing.T) {
	t.Parallel()
	all, err := exam.Find(t, func(p *exam.Process) (http.Handler, error) {
		next, err := open(shop.NoMistake)(p)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if filepath.Base(r.URL.Path) == "refunds" {
				exam.Hooks{}.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		}), err
	}, exam.Lives("partial-refunds"), exam.Deviations(1))
	require.NoError(t, err)
	assert.Empty(t, all)
}
