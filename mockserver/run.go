package mockserver

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// TB is the part of *testing.T and *testing.B that [Run] uses.
type TB interface {
	Helper()
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Run returns a gateway that is closed when the test ends. If the test has
// failed, it prints the latest requests and webhooks.
func Run(tb TB, opts ...Option) *Server {
	tb.Helper()
	s, err := New(opts...)
	if err != nil {
		tb.Fatalf("%v", err)
		return nil
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("%s", s.report())
		}
		if err := s.Close(); err != nil {
			tb.Logf("mockserver: closing: %v", err)
		}
	})
	return s
}

// reported is the number of requests and webhooks that a failed test prints.
const reported = 20

// report describes the latest requests and webhooks, masked.
func (s *Server) report() string {
	var b strings.Builder
	requests, deliveries := s.Requests.All(), s.Webhooks.Deliveries()
	fmt.Fprintf(&b, "mockserver: the clock is at %s; %d requests (latest last):\n", s.Clock.Now().Format(time.RFC3339), len(requests))
	for _, r := range requests[max(0, len(requests)-reported):] {
		fmt.Fprintf(&b, "  %s\n", r.line())
	}
	fmt.Fprintf(&b, "%d webhooks (latest last):\n", len(deliveries))
	for _, d := range deliveries[max(0, len(deliveries)-reported):] {
		fmt.Fprintf(&b, "  %s\n", d.line())
	}
	return b.String()
}

func (r Request) line() string {
	text := fmt.Sprintf("%s %s -> %d", r.Method, r.Path, r.Status)
	if r.Fault != "" {
		text += " fault " + r.Fault
	}
	if r.Broken {
		text += " (connection broken)"
	}
	if r.Status >= 400 {
		text += " " + r.Response
	}
	return text
}

func (d Delivery) line() string {
	text := d.Kind + " of " + d.ResourceID
	if d.Endpoint != "" {
		text += " to " + d.Endpoint
	}
	text += fmt.Sprintf(": %s, attempts: %d", d.State, len(d.Attempts))
	if n := len(d.Attempts); n > 0 && d.Attempts[n-1].Error != "" {
		text += ", " + d.Attempts[n-1].Error
	}
	return text
}

// Wait returns when the webhooks that are due have been delivered, or an
// attempt to deliver them has failed, and those that their receivers caused
// meanwhile. It does not wait for held deliveries or later attempts. Inside a
// webhook handler it returns an error. [Account.Wait] waits only for those of
// one account.
func (s *Server) Wait(ctx context.Context) error { return s.core.Sender.Wait(ctx, "") }

// Wait is [Server.Wait] for the account's webhooks: those of other accounts
// don't delay it.
func (a *Account) Wait(ctx context.Context) error {
	return a.server.core.Sender.Wait(ctx, a.key.Reveal())
}
