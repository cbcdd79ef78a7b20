// Package tale runs the examples that tell a story in the terminal.
package tale

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

// Story is an example: it narrates its steps and returns the first expectation
// that failed.
type Story func(ctx context.Context, t *Teller) error

// Main runs the story and writes it to standard output. If an expectation
// failed, it prints which one and exits with 1.
func Main(name string, story Story) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	err := story(ctx, New(os.Stdout))
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

// Teller writes the narration. It may be called concurrently, from webhook
// handlers too.
type Teller struct {
	mu   sync.Mutex
	out  io.Writer
	step int
}

// New returns a teller that writes to out.
func New(out io.Writer) *Teller { return &Teller{out: out} }

// Title begins a step.
func (t *Teller) Title(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.step++
	_, _ = fmt.Fprintf(t.out, "\n%d. %s\n", t.step, fmt.Sprintf(format, args...))
}

// Say writes one or more lines.
func (t *Teller) Say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range strings.SplitSeq(strings.TrimSuffix(fmt.Sprintf(format, args...), "\n"), "\n") {
		_, _ = fmt.Fprintln(t.out, strings.TrimRight("   "+line, " "))
	}
}
