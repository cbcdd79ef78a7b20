package inbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gateway-go/gateway/webhook"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/river/inbox"
)

// A test starts its own program again as a process of the merchant, which can be
// killed.

const processVariable = "GATEWAY_TEST_RIVER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(processVariable); spec != "" {
		if err := runProcess(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// processSpec is what a process is told.
type processSpec struct {
	URL     string  `json:"url"`
	Suicide float64 `json:"suicide"` // how often a handler kills its process after its effect is written and before the commit
	Fails   float64 `json:"fails"`   // how often a handler fails after that
}

func runProcess(text string) error {
	var spec processSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, spec.URL+"&pool_max_conns=12")
	if err != nil {
		return err
	}
	in, err := inbox.New(inbox.Config{Pool: pool, Logger: quiet, SweepInterval: time.Second, StuckAfter: 3 * time.Second})
	if err != nil {
		return err
	}
	rx, err := webhook.New(webhook.Config{
		Keys: keys, Store: in, Mode: webhook.Inbox, Workers: -1, Logger: quiet, HandleStale: true,
		Lease: 3 * time.Second, Backoff: func(int) time.Duration { return 100 * time.Millisecond },
	})
	if err != nil {
		return err
	}
	webhook.OnOther(rx, inbox.HandleTx(in, spec.handle))
	config := &river.Config{
		Logger: quiet, FetchCooldown: 20 * time.Millisecond, FetchPollInterval: 200 * time.Millisecond,
		Queues: map[string]river.QueueConfig{inbox.Queue: {MaxWorkers: 8}},
	}
	if err := in.Configure(config, rx); err != nil {
		return err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return errors.Join(serve(ctx, rx), client.Stop(context.WithoutCancel(ctx)), rx.Shutdown(context.WithoutCancel(ctx)))
}

func (p *processSpec) handle(ctx context.Context, tx pgx.Tx, e *webhook.Event) error {
	_, err := tx.Exec(ctx, `INSERT INTO effects (event_id, resource) VALUES ($1, $2)`, e.ID, e.ResourceID)
	switch {
	case err != nil:
		return err
	case rand.Float64() < p.Suicide:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case rand.Float64() < p.Fails:
		return errors.New("a failure after the effect")
	}
	return nil
}

func serve(ctx context.Context, handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	fmt.Println(listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return srv.Shutdown(context.WithoutCancel(ctx))
	}
}

// fleet is a number of processes. One that is killed is started again.
type fleet struct {
	t       *testing.T
	spec    string
	members []*member
	watches sync.WaitGroup

	mu    sync.Mutex
	ended bool
	kills int
}

type member struct {
	mu   sync.Mutex
	cmd  *exec.Cmd
	addr string
}

func startFleet(t *testing.T, n int, spec processSpec) *fleet {
	t.Helper()
	text, err := json.Marshal(spec)
	require.NoError(t, err)
	f := &fleet{t: t, spec: string(text)}
	for range n {
		m := &member{}
		require.NoError(t, f.start(m))
		f.members = append(f.members, m)
	}
	return f
}

// start runs a process and reads the address that it listens on.
func (f *fleet) start(m *member) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), processVariable+"="+f.spec)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !f.wasKilled(cmd.Wait()) {
		return err
	}
	m.mu.Lock()
	m.cmd, m.addr = cmd, strings.TrimSpace(line)
	m.mu.Unlock()
	if err != nil { // killed before it listened
		return f.start(m)
	}
	f.watches.Go(func() { f.watch(m, cmd) })
	return nil
}

// watch starts a process again when it was killed.
func (f *fleet) watch(m *member, cmd *exec.Cmd) {
	err := cmd.Wait()
	killed := f.wasKilled(err)
	f.mu.Lock()
	ended := f.ended
	f.mu.Unlock()
	switch {
	case killed && ended:
	case killed:
		if err := f.start(m); err != nil {
			f.t.Error("a process did not start again:", err)
		}
	case err != nil || !ended:
		f.t.Error("a process ended badly or too early:", err)
	}
}

func (f *fleet) wasKilled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kills++
	return true
}

// addr returns the address of some process.
func (f *fleet) addr() string {
	m := f.members[rand.IntN(len(f.members))]
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.addr
}

// killNowAndThen kills some process from outside until ctx ends.
func (f *fleet) killNowAndThen(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		m := f.members[rand.IntN(len(f.members))]
		m.mu.Lock()
		_ = m.cmd.Process.Kill() // it may be dead already
		m.mu.Unlock()
	}
}

// stop ends every process in good order.
func (f *fleet) stop() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	for _, m := range f.members {
		m.mu.Lock()
		_ = m.cmd.Process.Signal(syscall.SIGTERM)
		m.mu.Unlock()
	}
	f.watches.Wait()
}
