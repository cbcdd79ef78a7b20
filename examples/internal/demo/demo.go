// Package demo runs the examples that print their steps to the terminal.
package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"
)

// Main runs an example, which prints its steps to standard output. If an
// expectation failed, Main prints which one and exits with 1.
func Main(name string, run func(ctx context.Context, p *Printer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	err := run(ctx, New(os.Stdout))
	cancel()
	stop()
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "\n%s: %s\n", name, err)
		os.Exit(1)
	}
}

// Steps runs steps until one fails, and returns its error.
func Steps(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Printer prints the steps of an example. Webhook handlers may use it
// concurrently.
type Printer struct {
	mu   sync.Mutex
	out  io.Writer
	step int
}

// New returns a Printer that writes to out.
func New(out io.Writer) *Printer { return &Printer{out: out} }

// Title prints the numbered title of the next step.
func (p *Printer) Title(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step++
	_, _ = fmt.Fprintf(p.out, "\n%d. %s\n", p.step, fmt.Sprintf(format, args...))
}

// Printf prints one or more indented lines.
func (p *Printer) Printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.SplitSeq(strings.TrimSuffix(fmt.Sprintf(format, args...), "\n"), "\n") {
		_, _ = fmt.Fprintln(p.out, strings.TrimRight("   "+line, " "))
	}
}
