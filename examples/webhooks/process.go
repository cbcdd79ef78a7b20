package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"
)

// process is a running receiver.
type process struct {
	command *exec.Cmd
	stdin   io.Closer
	address string
	output  chan string   // the lines it writes
	ended   chan struct{} // closed when it has exited
	err     error         // how it ended
}

// start runs this program as a receiver.
func start(ctx context.Context, environment ...string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program) //nolint:gosec // it is this program
	command.Env = append(os.Environ(), append(environment, roleVariable+"=receiver")...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &process{command: command, stdin: stdin, output: make(chan string, 4), ended: make(chan struct{})}
	go p.watch(stdout)
	select {
	case line := <-p.output:
		p.address = strings.TrimPrefix(line, "listens ")
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("the receiver did not start: %w", p.err)
	}
}

// watch reads the output of the process until it exits.
func (p *process) watch(stdout io.Reader) {
	for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
		p.output <- scanner.Text()
	}
	p.err = p.command.Wait()
	close(p.ended)
}

// kill sends SIGKILL. It returns when the process has exited.
func (p *process) kill() error {
	err := p.command.Process.Kill()
	<-p.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// stop shuts the process down gracefully.
func (p *process) stop() error {
	err := p.stdin.Close()
	<-p.ended
	return errors.Join(err, p.err)
}

// front is a load balancer for the receivers: its address stays the same when a
// process is replaced.
type front struct {
	target atomic.Pointer[url.URL]
	taken  atomic.Int64 // deliveries that returned 200
	failed atomic.Int64 // deliveries that reached no process
	denied atomic.Int64 // rejected deliveries
	proxy  httputil.ReverseProxy
}

func newFront() *front {
	f := &front{}
	f.proxy = httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(f.target.Load())
			r.Out.URL.Path = "/webhooks/gateway"
		},
		ModifyResponse: func(r *http.Response) error {
			switch r.StatusCode {
			case http.StatusOK:
				f.taken.Add(1)
			case http.StatusUnauthorized:
				f.denied.Add(1)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			f.failed.Add(1)
			w.WriteHeader(http.StatusBadGateway)
		},
		// A connection to a killed process can't be reused.
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	return f
}

func (f *front) point(address string) { f.target.Store(&url.URL{Scheme: "http", Host: address}) }

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.proxy.ServeHTTP(w, r) }

// until waits until a condition is true.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		switch ok, err := done(); {
		case err != nil:
			return fmt.Errorf("%s: %w", what, err)
		case ok:
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
}
