package storm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// specVariable is the environment variable with the configuration of a process.
const specVariable = "GATEWAY_TEST_PROCESS"

// Main is the TestMain of a package whose tests start fleets. The processes of a
// fleet run the test binary again, and Main then calls run instead of the tests.
// The context ends at SIGTERM.
func Main[Spec any](m *testing.M, run func(ctx context.Context, spec Spec) error) {
	text := os.Getenv(specVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var spec Spec
	err := json.Unmarshal([]byte(text), &spec)
	if err == nil {
		err = run(ctx, spec)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the process ends, so stop need not be called
	}
}

// Serve serves handler on a free port, prints the address, which the fleet reads,
// and shuts down when ctx ends.
func Serve(ctx context.Context, handler http.Handler) error {
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

// Die kills the current process with SIGKILL.
func Die() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}

// Fleet is a set of processes that serve HTTP. A killed process is restarted.
type Fleet struct {
	t       *testing.T
	spec    any
	watches sync.WaitGroup

	mu      sync.Mutex
	ended   bool
	kills   int                  // processes ended by SIGKILL, including their own
	members map[*exec.Cmd]string // the processes that serve, and their addresses
	changed chan struct{}        // closed when a process begins to serve
}

// StartFleet starts n processes, each configured by spec.
func StartFleet(t *testing.T, n int, spec any) *Fleet {
	t.Helper()
	f := &Fleet{t: t, spec: spec, members: make(map[*exec.Cmd]string), changed: make(chan struct{})}
	for range n {
		require.NoError(t, f.start())
	}
	return f
}

// StartProcess starts a process configured by spec (see [Main]) and also returns
// its standard output.
func StartProcess(spec any) (*exec.Cmd, io.Reader, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), specVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return cmd, out, cmd.Start()
}

// start starts a process and waits until it serves or was killed.
func (f *Fleet) start() error {
	cmd, out, err := StartProcess(f.spec)
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return errors.Join(err, cmd.Wait())
	}
	if err == nil {
		f.mu.Lock()
		f.members[cmd] = strings.TrimSpace(line)
		close(f.changed)
		f.changed = make(chan struct{})
		if f.ended {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
		f.mu.Unlock()
	}
	f.watches.Go(func() { f.watch(cmd) })
	return nil
}

// watch waits until a process ends, and restarts it if it was killed.
func (f *Fleet) watch(cmd *exec.Cmd) {
	err := cmd.Wait()
	killed := WasKilled(err)
	f.mu.Lock()
	delete(f.members, cmd)
	ended := f.ended
	if killed {
		f.kills++
	}
	f.mu.Unlock()
	switch {
	case killed && !ended:
		assert.NoError(f.t, f.start(), "a process did not restart")
	case !killed:
		assert.NoError(f.t, err, "a process failed")
		assert.True(f.t, ended, "a process ended too early")
	}
}

// WasKilled reports whether a process that ended with err was killed by SIGKILL.
func WasKilled(err error) bool { return EndedBy(err, syscall.SIGKILL) }

// EndedBy reports whether a process that ended with err was ended by a signal that
// it did not handle.
func EndedBy(err error, sent syscall.Signal) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == sent
}

// Addr returns the address of a random process that serves. If there is none, it
// waits for one, like a load balancer whose health checks all fail.
func (f *Fleet) Addr(ctx context.Context) (string, error) {
	for {
		f.mu.Lock()
		n, changed := len(f.members), f.changed
		if n > 0 {
			defer f.mu.Unlock()
			i := rand.IntN(n)
			for _, addr := range f.members {
				if i == 0 {
					return addr, nil
				}
				i--
			}
		}
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// Kill kills a random process.
func (f *Fleet) Kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for cmd := range f.members { // in random order
		_ = cmd.Process.Kill() // it may have ended already
		return
	}
}

// Kills returns how many processes were killed.
func (f *Fleet) Kills() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kills
}

// Stop shuts every process down gracefully.
func (f *Fleet) Stop() {
	f.mu.Lock()
	f.ended = true
	for cmd := range f.members {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	f.mu.Unlock()
	f.watches.Wait()
}
