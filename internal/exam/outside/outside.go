package outside

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/mockserver"
)

// Config configures a black box exam.
type Config struct {
	Command []string          // of the program, or
	URL     string            // its address, if it runs already
	Env     map[string]string // more variables; {base_url}, {key}, {secret}, {port}, {dir} are replaced

	Addr   string // of the gateway; "" is a free port
	Key    string // the program's API key; "" is a new one
	Secret string // of the webhooks; "" is a new one
	Path   string // of the program's webhooks

	Options      []mockserver.Option // dialect, profile
	Scenarios    []*exam.Scenario
	Seed         uint64
	Budget       time.Duration
	Grace        time.Duration
	Hang         time.Duration
	StartTimeout time.Duration

	Output  io.Writer              // of the program; nil drops it
	Started func(s *exam.Scenario) // before a scenario; may be nil
	Ended   func(o exam.Outcome)   // after it; may be nil
	Random  time.Duration          // how long random schedules are played after the list
}

// StartError means that the program could not be examined.
type StartError struct {
	Err    error
	Output string // the end of what it printed
}

// Error returns what is wrong.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// stage runs the program as a process, or knows where it runs.
type stage struct {
	cfg    Config
	ctx    context.Context //nolint:containedctx // of the exam
	env    []string
	base   string // of the program
	client *http.Client
	output tail
	quiet  func(ctx context.Context) error // waits for the gateway's deliveries

	mu     sync.Mutex
	now    *process
	starts int
	noisy  int // how often in a row the program did not become quiet
}

// Shop implements exam.Stage.
func (s *stage) Shop(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Host, out.Host = strings.TrimPrefix(s.base, "http://"), ""
	return s.client.Do(out) //nolint:gosec // the program's own address
}

// CanRestart implements exam.Stage.
func (s *stage) CanRestart() bool { return s.cfg.URL == "" }

// Kill implements exam.Stage.
func (s *stage) Kill() {
	s.mu.Lock()
	p := s.now
	s.now = nil
	s.mu.Unlock()
	if p != nil {
		p.kill()
		s.client.CloseIdleConnections()
	}
}

// Dead implements exam.Stage.
func (s *stage) Dead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.URL == "" && s.now == nil
}

// Restart implements exam.Stage.
func (s *stage) Restart(ctx context.Context) error {
	s.Kill()
	p, err := start(s.cfg.Command, s.env, &s.output)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.now = p
	s.starts++
	s.mu.Unlock()
	return p.await(ctx, s.client, s.base, s.cfg.StartTimeout)
}

const (
	calm      = 120 * time.Millisecond // without a message
	calmWait  = 4 * time.Second
	noisyWait = time.Second // for a program that was not quiet twice in a row
	poll      = 5 * time.Millisecond
)

// Settle implements exam.Stage.
func (s *stage) Settle(ctx context.Context, state func() (bool, time.Time)) bool {
	limit := calmWait
	if s.noisy > 1 {
		limit = noisyWait
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	for {
		// The gateway is asked first: a payment by a control has no message yet.
		if s.quiet(ctx) != nil {
			s.noisy++
			return false
		}
		busy, last := state()
		if last.Before(began) {
			last = began.Add(-calm / 2) // what the verb before caused may still come
		}
		if !busy && time.Since(last) >= calm {
			s.noisy = 0
			return true
		}
		s.Sleep(poll)
		if ctx.Err() != nil {
			s.noisy++
			return false
		}
	}
}

// Sleep implements exam.Stage.
func (s *stage) Sleep(d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(d):
	}
}

// Run examines a program. The error is a [StartError] if the program could not be
// examined at all.
func Run(ctx context.Context, cfg Config) (*exam.Result, error) {
	result := &exam.Result{Command: cfg.Command, Seed: cfg.Seed, Started: time.Now()}
	opts := append([]mockserver.Option{
		mockserver.WithStart(result.Started), mockserver.WithConsole(false), mockserver.WithOpeningBalance(1_000_000_00), mockserver.WithSeed(cfg.Seed),
	}, cfg.Options...)
	gw, err := mockserver.New(opts...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = gw.Close() }()
	dir, err := os.MkdirTemp("", "exam")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s := &stage{cfg: cfg, ctx: ctx, client: newClient(), quiet: gw.Wait}
	s.output.to = cfg.Output
	defer s.client.CloseIdleConnections()
	port, release, err := s.address()
	if err != nil {
		return nil, err
	}
	defer release()
	if cfg.Key == "" {
		cfg.Key = "sk_test_exam_" + random()
	}
	if cfg.Secret == "" {
		cfg.Secret = "whsec_" + random()
	}
	e, err := exam.New(exam.Config{
		Stage: s, Gateway: gw, Key: cfg.Key, Secret: gateway.NewSecret(cfg.Secret), Path: cfg.Path,
		Host: strings.TrimPrefix(s.base, "http://"), Seed: cfg.Seed, Hang: cfg.Hang, Grace: cfg.Grace,
	})
	if err != nil {
		return nil, err
	}
	base, closeFront, err := listen(ctx, cfg.Addr, front{e.Front()})
	if err != nil {
		return nil, err
	}
	defer closeFront()
	s.env = cfg.environment(base, strconv.Itoa(port), dir)
	defer s.Kill()
	if cfg.URL == "" {
		began := time.Now()
		if err := s.Restart(ctx); err != nil {
			return nil, &StartError{err, s.output.String()}
		}
		e.Slow(time.Since(began) > slowStart)
		result.Slow = time.Since(began) > slowStart
	}
	if err := e.Probe(ctx); err != nil {
		return nil, &StartError{err, s.output.String()}
	}
	play(ctx, e, s, cfg, result)
	result.Took, result.Output = time.Since(result.Started), s.output.String()
	s.mu.Lock()
	result.Starts = s.starts
	s.mu.Unlock()
	return result, nil
}

// slowStart is how long a start may take before crashes are tried less often.
const slowStart = 2 * time.Second

func play(ctx context.Context, e *exam.Exam, s *stage, cfg Config, result *exam.Result) {
	for _, scenario := range cfg.Scenarios {
		if cfg.Started != nil {
			cfg.Started(scenario)
		}
		var o exam.Outcome
		switch why := s.unable(ctx, e, cfg, result.Started); why {
		case "":
			o = e.Run(ctx, scenario)
			s.revive(ctx, e, &o)
		default:
			o = exam.Outcome{Scenario: scenario.Name, About: scenario.About, Claims: scenario.Claims, Status: exam.NotRun, Why: why}
		}
		result.Outcomes = append(result.Outcomes, o)
		if cfg.Ended != nil {
			cfg.Ended(o)
		}
	}
	playRandom(ctx, e, s, cfg, result)
}

// playRandom plays random schedules for a time. Of a failure it keeps the smallest
// schedule that still fails.
func playRandom(ctx context.Context, e *exam.Exam, s *stage, cfg Config, result *exam.Result) {
	picks := mathrand.New(mathrand.NewPCG(cfg.Seed, 2)) //nolint:gosec // reproducible
	run := func(scenario *exam.Scenario) exam.Outcome {
		o := e.Run(ctx, scenario)
		s.revive(ctx, e, &o)
		return o
	}
	for began := time.Now(); time.Since(began) < cfg.Random && ctx.Err() == nil && !e.Gone(); {
		scenario := e.Random(picks)
		if cfg.Started != nil {
			cfg.Started(scenario)
		}
		o := run(scenario)
		for smaller := exam.Smaller(scenario); o.Status == exam.Failed && len(smaller) > 0 && !e.Gone(); {
			try := run(smaller[0])
			smaller = smaller[1:]
			if try.Status == exam.Failed {
				o = try
				if next, err := exam.Scenarios([]string{try.Scenario}, nil); err == nil {
					smaller = exam.Smaller(next[0])
				}
			}
		}
		if o.Status == exam.Passed {
			result.Random++
			continue // thousands of lines would hide the list
		}
		result.Outcomes = append(result.Outcomes, o)
		if cfg.Ended != nil {
			cfg.Ended(o)
		}
	}
}

// unable says why no more scenarios can be run.
func (s *stage) unable(ctx context.Context, e *exam.Exam, cfg Config, began time.Time) string {
	switch {
	case ctx.Err() != nil:
		return "the exam was ended"
	case e.Gone():
		return "the program did not come back"
	case time.Since(began) > cfg.Budget:
		return "the budget of " + cfg.Budget.String() + " was used up"
	}
	return ""
}

// revive starts the program again if the scenario left it dead, or if it has ended by
// itself.
func (s *stage) revive(ctx context.Context, e *exam.Exam, o *exam.Outcome) {
	if s.cfg.URL != "" || ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	p := s.now
	s.mu.Unlock()
	if p != nil {
		select {
		case <-p.ended:
			o.Warnings = append(o.Warnings, "the program ended by itself: "+p.end())
		default:
			return
		}
	}
	if err := s.Restart(ctx); err != nil {
		e.Lost()
		o.Status = exam.Failed
		o.Failures = append(o.Failures, exam.Finding{Claim: exam.Restarts, Text: "the program did not come back: " + err.Error()})
	}
}

func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.Proxy = nil
	transport.MaxIdleConnsPerHost = 16
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// address chooses the program's address, which no other exam takes until release.
func (s *stage) address() (port int, release func(), err error) {
	if s.cfg.URL != "" {
		s.base = strings.TrimRight(s.cfg.URL, "/")
		return 0, func() {}, nil
	}
	if port, release, err = ReservePort(s.ctx); err != nil {
		return 0, nil, err
	}
	s.base = "http://127.0.0.1:" + strconv.Itoa(port)
	return port, release, nil
}

// ReservePort returns a port on which nothing listens. It is below those that systems
// give to connections, and to listeners that ask for any: they can't take it while the
// program is down. Neither can another exam until release: the same port for UDP, which
// the program does not use, is the sign that it is taken.
func ReservePort(ctx context.Context) (port int, release func(), err error) {
	const lowest, ports, tries = 20_000, 10_000, 100
	var lc net.ListenConfig
	for range tries {
		port = lowest + mathrand.IntN(ports) //nolint:gosec // not secret
		addr := "127.0.0.1:" + strconv.Itoa(port)
		var sign net.PacketConn
		if sign, err = lc.ListenPacket(ctx, "udp", addr); err != nil {
			continue
		}
		var l net.Listener
		if l, err = lc.Listen(ctx, "tcp", addr); err != nil {
			_ = sign.Close()
			continue
		}
		return port, func() { _ = sign.Close() }, l.Close()
	}
	return 0, nil, fmt.Errorf("no free port: %w", err)
}

// listen serves the front.
func listen(ctx context.Context, addr string, h http.Handler) (base string, stop func(), err error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = srv.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = srv.Close() }, nil
}

// environment returns the program's variables.
func (c *Config) environment(base, port, dir string) []string {
	set := map[string]string{
		"EXAM": "1", "PORT": port, "GATEWAY_BASE_URL": base, "GATEWAY_API_KEY": c.Key, "GATEWAY_WEBHOOK_SECRET": c.Secret,
		"EXAM_DATA_DIR": filepath.Clean(dir),
	}
	values := strings.NewReplacer("{base_url}", base, "{key}", c.Key, "{secret}", c.Secret, "{port}", port, "{dir}", dir)
	for name, value := range c.Env {
		set[name] = values.Replace(value)
	}
	return environment(set)
}

func random() string {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(fmt.Sprintf("no randomness: %v", err)) // never happens, see crypto/rand
	}
	return hex.EncodeToString(b[:])
}
