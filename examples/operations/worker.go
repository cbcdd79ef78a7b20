package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"strings"
)

// The environment variables that configure the worker's process.
const (
	roleVariable    = "OPERATIONS_EXAMPLE_ROLE"
	gatewayVariable = "OPERATIONS_EXAMPLE_GATEWAY"
	keyVariable     = "OPERATIONS_EXAMPLE_KEY"
	lostVariable    = "OPERATIONS_EXAMPLE_LOST"   // the worker dies after sending the refund of this transaction
	unsentVariable  = "OPERATIONS_EXAMPLE_UNSENT" // and before sending the refund of this one
)

func isWorker() bool { return os.Getenv(roleVariable) == "worker" }

// mainWorker is the worker's process. It ends when its input does.
func mainWorker() {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := runWorker(ctx); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func runWorker(ctx context.Context) error {
	line := &badLine{lost: os.Getenv(lostVariable), unsent: os.Getenv(unsentVariable), held: make(chan struct{})}
	client, err := newClient(os.Getenv(gatewayVariable), os.Getenv(keyVariable), line)
	if err != nil {
		return err
	}
	s, err := openShop(ctx, os.Getenv("DATABASE_URL"), client)
	if err != nil {
		return err
	}
	defer s.db.Close()
	return s.work(ctx)
}

// badLine is a transport that kills its own process at the worst time: one
// refund was sent and has no response yet, and the other is about to be sent.
type badLine struct {
	lost, unsent string
	held         chan struct{} // closed when the second one is about to be sent
}

// RoundTrip implements http.RoundTripper.
func (l *badLine) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case l.lost == "" || req.Method != http.MethodPut:
	case strings.Contains(req.URL.Path, l.unsent):
		close(l.held)
		select {} // the process dies here
	case strings.Contains(req.URL.Path, l.lost):
		<-l.held
		trace := &httptrace.ClientTrace{GotFirstResponseByte: die}
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
	}
	return http.DefaultTransport.RoundTrip(req)
}

// die kills this process with SIGKILL: nothing is flushed, no handler runs.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// process is a running worker.
type process struct {
	command *exec.Cmd
	stdin   io.Closer
	ended   chan error
}

// start runs this program as a worker.
func start(ctx context.Context, environment ...string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program) //nolint:gosec // it is this program
	command.Env = append(os.Environ(), append(environment, roleVariable+"=worker")...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &process{command: command, stdin: stdin, ended: make(chan error, 1)}
	go func() { p.ended <- command.Wait() }()
	return p, nil
}

// stop shuts the process down gracefully.
func (p *process) stop() error {
	if err := p.stdin.Close(); err != nil {
		return err
	}
	return <-p.ended
}
