// Command gatewayprobe tests a gateway's sandbox against docs/assumptions.md.
//
//	GATEWAY_API_KEY=sk_test_… go run ./cmd/gatewayprobe -base-url https://sandbox.gateway.example
//
// See docs/probe.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/gatewayprobe"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// The exit codes.
const (
	done      = 0 // the run finished
	failed    = 1 // the run could not start or was interrupted
	misused   = 2 // the flags are wrong
	different = 3 // -profile was given and the gateway differs from it
)

// run is main with its environment as arguments. It returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, out, errs io.Writer) int {
	f, code, ended := parse(args, getenv, out, errs)
	if ended {
		return code
	}
	if f.list {
		list(out, gatewayprobe.Steps(f.config.Only...))
		return done
	}
	stop, err := listen(ctx, &f)
	if err != nil {
		_, _ = fmt.Fprintln(errs, "gatewayprobe:", err)
		return failed
	}
	defer stop()
	screen := &screen{out: out, terminal: terminal(out) && getenv("TERM") != "dumb", steps: gatewayprobe.Steps(f.config.Only...)}
	f.config.Progress = screen.result
	report, err := gatewayprobe.Run(ctx, f.config)
	if report != nil {
		screen.summary(report)
		if f.json != "" {
			err = errors.Join(err, write(f.json, report))
		}
	}
	switch {
	case err != nil:
		_, _ = fmt.Fprintln(errs, err)
		return failed
	case f.profile != "" && report.Count(gatewayprobe.Differs) > 0:
		return different
	}
	return done
}

// listen starts the webhook receiver, if -listen is set.
func listen(ctx context.Context, f *flags) (stop func(), err error) {
	if f.listen == "" {
		return func() {}, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", f.listen)
	if err != nil {
		return nil, err
	}
	f.config.Receiver = &gatewayprobe.Receiver{}
	server := &http.Server{Handler: f.config.Receiver, ReadTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l) // returns when stop closes the server
	}()
	return func() {
		_ = server.Close()
		<-ended
	}, nil
}

// write writes the report to a file that only its owner can read.
func write(file string, report *gatewayprobe.Report) error {
	text, err := json.Marshal(report, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// list prints what a run would do.
func list(out io.Writer, steps []gatewayprobe.Step) {
	tested := 0
	for _, s := range steps {
		if s.Does != "" {
			tested++
			setting := ""
			if s.Setting {
				setting = " (set by mockgateway -profile)"
			}
			_, _ = fmt.Fprintf(out, "%-24s %s%s\n", s.ID, s.Does, setting)
			continue
		}
		_, _ = fmt.Fprintf(out, "%-24s not tested: %s\n", s.ID, s.Reason)
	}
	_, _ = fmt.Fprintf(out, "%d of %d rows of docs/assumptions.md are tested.\n", tested, len(steps))
}

// screen prints results as they arrive: on a terminal as a table with colors and a
// progress line, otherwise as plain lines with tab-separated columns. Unless the
// gateway agrees, it also prints the row's claim.
type screen struct {
	out      io.Writer
	terminal bool
	steps    []gatewayprobe.Step // one for each result, in the same order
	n        int                 // results so far
	untested int
}

const clearLine = "\r\x1b[K"

func (s *screen) result(r gatewayprobe.Result) {
	step := s.steps[s.n]
	s.n++
	switch {
	case step.Does == "":
		s.untested++ // -list shows the reason
	case s.terminal:
		_, _ = fmt.Fprintf(s.out, clearLine+"%s%-10s\x1b[0m  %-24s %s\n", color(r.Verdict), r.Verdict, r.ID, r.Summary())
		if r.Verdict != gatewayprobe.Agrees {
			_, _ = fmt.Fprintf(s.out, "%38s\x1b[2m%s\x1b[0m\n", "", r.Claim)
		}
	case r.Verdict == gatewayprobe.Agrees:
		_, _ = fmt.Fprintf(s.out, "%s\t%s\t%s\n", r.Verdict, r.ID, r.Summary())
	default:
		_, _ = fmt.Fprintf(s.out, "%s\t%s\t%s\t%s\n", r.Verdict, r.ID, r.Summary(), r.Claim)
	}
	if all := len(s.steps); s.terminal && s.n < all {
		_, _ = fmt.Fprintf(s.out, clearLine+"%d of %d rows", s.n, all)
	}
}

func color(v gatewayprobe.Verdict) string {
	switch v {
	case gatewayprobe.Agrees:
		return "\x1b[32m"
	case gatewayprobe.Differs:
		return "\x1b[31m"
	default:
		return "\x1b[33m"
	}
}

func (s *screen) summary(r *gatewayprobe.Report) {
	if s.terminal {
		_, _ = io.WriteString(s.out, clearLine)
	}
	_, _ = fmt.Fprintf(s.out, "%d agree, %d differ, %d inconclusive, %d can't be tested from outside (-list shows the reason); %d requests in %v\n",
		r.Count(gatewayprobe.Agrees), r.Count(gatewayprobe.Differs), r.Count(gatewayprobe.CannotTell)-s.untested, s.untested,
		r.Requests, r.Ended.Sub(r.Started).Round(time.Second))
}

// terminal reports whether w is a terminal.
func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
