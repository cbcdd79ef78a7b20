package webhooks_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fleet is a number of receiver processes. One that is killed is started again.
type fleet struct {
	t       *testing.T
	spec    processSpec
	members []*member
	restart sync.WaitGroup

	mu    sync.Mutex
	ended bool
	kills int // processes that ended by SIGKILL, whoever sent it
}

type member struct {
	mu   sync.Mutex
	cmd  *exec.Cmd
	addr string
}

func startFleet(t *testing.T, n int, spec processSpec) *fleet {
	t.Helper()
	f := &fleet{t: t, spec: spec}
	for range n {
		m := &member{}
		require.NoError(t, f.start(m))
		f.members = append(f.members, m)
	}
	return f
}

// start runs a process and reads the address that it listens on.
func (f *fleet) start(m *member) error {
	spec, err := json.Marshal(f.spec)
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), processVariable+"="+string(spec))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return errors.Join(err, cmd.Wait())
	}
	m.mu.Lock()
	m.cmd, m.addr = cmd, strings.TrimSpace(line)
	m.mu.Unlock()
	f.restart.Go(func() { f.watch(m, cmd) })
	return nil
}

// watch starts a process again when it was killed.
func (f *fleet) watch(m *member, cmd *exec.Cmd) {
	err := cmd.Wait()
	var exit *exec.ExitError
	killed := false
	if errors.As(err, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		killed = ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	}
	f.mu.Lock()
	ended := f.ended
	if killed {
		f.kills++
	}
	f.mu.Unlock()
	switch {
	case killed && !ended:
		assert.NoError(f.t, f.start(m))
	case !killed:
		assert.NoError(f.t, err, "a process ended by itself, or badly")
		assert.True(f.t, ended, "a process ended too early")
	}
}

// addr returns the address of some process.
func (f *fleet) addr() string {
	m := f.members[rand.IntN(len(f.members))]
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.addr
}

// killNow and then kills some process from outside until ctx ends.
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
	f.restart.Wait()
}
