package exam

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/gateway-go/gateway"
	engine "github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/mockserver/internal/memory"
)

// Process is one start of the program, which ends with the schedule or when the program is
// killed. After that, everything that it offers ends the goroutine that calls it, as a
// crash does.
type Process struct {
	stage  *stage
	ctx    context.Context //nolint:containedctx // of the process's life
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	dir    string
	onExit []func() error
}

// Context returns a context that ends with the process, for its goroutines.
func (p *Process) Context() context.Context { return p.ctx }

// Dir returns the folder in which the program keeps what survives a crash. It is empty at
// the start of each schedule. What a killed program still writes is lost: its successor
// gets a copy of the folder as it was, in another place.
func (p *Process) Dir() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" {
		p.dir = p.stage.newDir()
	}
	return p.dir
}

// Client returns a client of the program's account whose requests pass the exam. The
// options are applied after its own.
func (p *Process) Client(opts ...gateway.Option) *gateway.Client {
	own := []gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: p.Transport()})}
	c, err := gateway.New(p.BaseURL(), gateway.BearerToken(p.Key().Reveal()), append(own, opts...)...)
	if err != nil {
		panic("exam: " + err.Error())
	}
	return c
}

// Transport returns the transport to the gateway, for a client of your own. The host of a
// request does not matter. Give the client a timeout: some requests never get a response.
func (p *Process) Transport() http.RoundTripper { return transport{p} }

// BaseURL returns the gateway's address, for a client of your own. Nothing listens there.
func (p *Process) BaseURL() string { return mockserver.BaseURL }

// Key returns the API key of the program's account.
func (p *Process) Key() gateway.Secret { return gateway.NewSecret(key) }

// Secret returns the secret that signs the webhooks.
func (p *Process) Secret() gateway.Secret { return gateway.NewSecret(secret) }

const (
	key    = "sk_test_exam"
	secret = "whsec_exam" //nolint:gosec // of a mock
)

// Step is a moment at which the process may die, or another message may go on: call it
// before and after each change of a store. Requests are such moments, too. It must not be
// called while a [sync.Mutex] is held that another goroutine may want; see
// [Process.CrashPoint].
func (p *Process) Step() {
	p.pass("   step")
	p.CrashPoint()
}

// CrashPoint is a moment at which the process may die. Nothing else goes on there, so it may
// be called while a mutex is held.
func (p *Process) CrashPoint() {
	if p.dead() {
		runtime.Goexit()
	}
	if p.stage.exam.Choose("step") {
		p.stage.exam.Died("at a step")
		p.kill()
		runtime.Goexit()
	}
}

// OnExit runs f when the process has ended, also after a crash, such as to close a
// database. The functions run in reverse order. An error fails the test if the process was
// not killed.
func (p *Process) OnExit(f func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onExit = append(p.onExit, f)
}

// pass waits until a message may go on, and ends the goroutine if the process is dead.
func (p *Process) pass(text string) {
	if p.dead() || !p.stage.gate.hold(text, false, p.ctx.Done()) {
		runtime.Goexit()
	}
}

func (p *Process) dead() bool { return p.ctx.Err() != nil }

// kill ends the process: its folder is copied for its successor, and what it does from now
// on has no effect.
func (p *Process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead() {
		return
	}
	if p.dir != "" {
		survived := p.stage.newDir()
		if err := os.CopyFS(survived, os.DirFS(p.dir)); err != nil {
			p.stage.problem(fmt.Errorf("copying the folder of a process that was killed: %w", err))
		}
		p.stage.setSurvived(survived)
	}
	p.cancel(syscall.ECONNRESET)
}

// bury waits until the goroutines of a process that has ended have ended, and runs its
// OnExit functions.
func (p *Process) bury(killed bool) {
	p.cancel(syscall.ECONNRESET)
	p.mu.Lock()
	functions := p.onExit
	p.onExit = nil
	p.mu.Unlock()
	for i := len(functions) - 1; i >= 0; i-- {
		err := guarded("an OnExit function", functions[i])
		if err != nil && !killed {
			p.stage.problem(fmt.Errorf("OnExit: %w", err))
		}
	}
}

// patience is longer than anything that a program may wait for, in the bubble's time.
const patience = 10 * time.Minute

// guarded runs a function of the program on its own goroutine, as it may panic, end its
// goroutine or never return.
func guarded(name string, f func() error) (err error) {
	ended := make(chan error, 1)
	go func() {
		returned := false
		defer func() {
			if v := recover(); v != nil {
				ended <- fmt.Errorf("%s panicked: %v\n%s", name, v, debug.Stack())
			} else if !returned {
				ended <- fmt.Errorf("%s ended its goroutine, as t.FailNow does: %w", name, errGoexit)
			}
		}()
		err := f()
		returned = true
		ended <- err
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return fmt.Errorf("%s does not return", name)
	}
}

// transport passes a process's requests to the exam.
type transport struct{ p *Process }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	p := t.p
	p.pass("  -> " + r.Method + " " + r.URL.RequestURI())
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(p.ctx, cancel) //nolint:contextcheck // the process may end before the request
	defer cancel()
	defer stop()
	resp, err := p.stage.exam.Front().RoundTrip(r.WithContext(ctx))
	if p.dead() {
		runtime.Goexit()
	}
	return resp, err
}

// stage runs the program in a bubble.
type stage struct {
	start  StartFunc
	tmp    string // of all schedules
	gate   *gate
	exam   *engine.Exam
	server *mockserver.Server

	mu       sync.Mutex
	now      *Process
	handler  http.Handler
	survived string
	dirs     []string
	starts   int
	problems []error // of the program, that are no claims
}

func (s *stage) problem(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, err)
}

func (s *stage) newDir() string {
	dir, err := os.MkdirTemp(s.tmp, "process")
	if err != nil {
		s.problem(err)
		return filepath.Join(s.tmp, "missing")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirs = append(s.dirs, dir)
	return dir
}

func (s *stage) setSurvived(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.survived = dir
}

func (s *stage) current() (*Process, http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.handler
}

// Shop implements exam.Stage.
func (s *stage) Shop(r *http.Request) (*http.Response, error) {
	text := " >>  " + r.Method + " " + r.URL.Path
	if !s.gate.hold(text, true, r.Context().Done()) {
		return nil, context.Cause(r.Context())
	}
	defer s.gate.leave()
	p, handler := s.current()
	if p == nil || p.dead() {
		return nil, syscall.ECONNREFUSED
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(p.ctx, func() { cancel(syscall.ECONNRESET) }) //nolint:contextcheck // the process may end before the request
	defer stop()
	defer cancel(nil)
	watched := &watched{Handler: handler, stage: s, p: p}
	resp, err := (&memory.Transport{Handler: watched}).RoundTrip(r.WithContext(ctx))
	if err == nil && (p.dead() || !watched.returned) {
		err = syscall.ECONNRESET
	}
	return resp, err
}

// watched is the program's handler. It records how a call ended.
type watched struct {
	http.Handler

	stage    *stage
	p        *Process
	returned bool
}

// ServeHTTP implements http.Handler.
func (h *watched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		v := recover()
		switch {
		case v == nil && !h.returned && !h.p.dead():
			h.stage.problem(fmt.Errorf("the handler of %s %s ended its goroutine, as t.FailNow does", r.Method, r.URL.Path))
		case v != nil && v != http.ErrAbortHandler: //nolint:errorlint // net/http compares the panic's value in the same way
			h.stage.problem(fmt.Errorf("the handler of %s %s panicked: %v\n%s", r.Method, r.URL.Path, v, debug.Stack()))
		}
		if v != nil {
			panic(http.ErrAbortHandler) // a server closes the connection
		}
	}()
	h.Handler.ServeHTTP(w, r)
	h.returned = true
}

// Kill implements exam.Stage.
func (s *stage) Kill() {
	if p, _ := s.current(); p != nil {
		p.kill()
	}
}

// Dead implements exam.Stage.
func (s *stage) Dead() bool {
	p, _ := s.current()
	return p == nil || p.dead()
}

// CanRestart implements exam.Stage.
func (s *stage) CanRestart() bool { return true }

// Restart implements exam.Stage.
func (s *stage) Restart(context.Context) error {
	for {
		if p, _ := s.current(); p != nil {
			p.kill()
			p.bury(true)
		}
		p := s.newProcess()
		var handler http.Handler
		err := guarded("the start function", func() (err error) {
			handler, err = s.start(p)
			if err == nil && handler == nil {
				err = errNoHandler
			}
			return err
		})
		s.mu.Lock()
		s.now, s.handler = p, handler
		s.starts++
		s.mu.Unlock()
		if !p.dead() { // it may die while it starts
			return err
		}
	}
}

func (s *stage) newProcess() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Process{stage: s, dir: s.survived}
	s.survived = ""
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

const (
	calm     = 120 * time.Millisecond // without a message
	calmWait = 10 * time.Minute
)

// Settle implements exam.Stage. In a bubble, a goroutine wakes from its sleep only when
// all others are blocked.
func (s *stage) Settle(ctx context.Context, state func() (bool, time.Time)) bool {
	for began := time.Now(); time.Since(began) < calmWait; {
		if s.server.Wait(ctx) != nil {
			return false
		}
		_, before := state()
		s.Sleep(calm)
		if busy, last := state(); !busy && last.Equal(before) {
			return true
		}
	}
	return false
}

// Sleep implements exam.Stage.
func (s *stage) Sleep(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}

// close ends the program and the gateway.
func (s *stage) close() {
	p, _ := s.current()
	if p != nil {
		killed := p.dead()
		p.bury(killed)
	}
	if err := s.server.Close(); err != nil {
		s.problem(err)
	}
	s.Sleep(patience) // for timers of what is over
	close(s.gate.stop)
	for _, dir := range s.dirs {
		if err := os.RemoveAll(dir); err != nil {
			s.problem(err)
		}
	}
}
