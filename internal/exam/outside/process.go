// Package outside examines a program that runs as a process: it starts and kills
// it, and stands between its sockets and the mock gateway's.
package outside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// process is one start of the program.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
	err   error         // of its end; set before ended is closed
}

// start starts a command in a process group of its own.
func start(command, env []string, output io.Writer) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the user's own command; kill ends it with its children
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = time.Second // of children that keep its output open
	own(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	adopt(cmd)
	go func() {
		defer close(p.ended)
		if err := cmd.Wait(); !errors.Is(err, exec.ErrWaitDelay) {
			p.err = err
		}
	}()
	return p, nil
}

// kill ends the process and its children at once, and waits for that.
func (p *process) kill() {
	killGroup(p.cmd)
	<-p.ended
}

// end describes how the process ended by itself.
func (p *process) end() string {
	if p.err == nil {
		return "it exited with 0"
	}
	return "it ended: " + p.err.Error()
}

// await waits until the program responds to HTTP at the address, for at most limit.
func (p *process) await(ctx context.Context, client *http.Client, base string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	const poll = 10 * time.Millisecond
	var last error
	for {
		err := probe(ctx, client, base)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s before it responded at %s", p.end(), base)
		case <-ctx.Done():
			return fmt.Errorf("it did not respond HTTP at %s within %s: %w; it must listen on 127.0.0.1 at the port in PORT", base, limit, last)
		case <-time.After(poll):
		}
	}
}

func probe(ctx context.Context, client *http.Client, base string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/exam/orders/none", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// tail keeps the last bytes of what the program prints, and passes it on.
type tail struct {
	to io.Writer // may be nil

	mu   sync.Mutex
	text []byte
}

const keptOutput = 16 << 10

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if drop := len(t.text) - keptOutput; drop > 0 {
		t.text = append(t.text[:0], t.text[drop:]...)
	}
	if t.to != nil {
		_, _ = t.to.Write(b)
	}
	return len(b), nil
}

// String returns the last lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.text), "\uFFFD")
}

// environment is that of the exam with the given variables instead of its own.
func environment(set map[string]string) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if _, replaced := set[name]; !replaced && !strings.HasPrefix(name, "MOCKGATEWAY_") {
			env = append(env, entry)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}
