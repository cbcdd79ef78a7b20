package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// planFaults plans the faults of the next month: faults of single requests and
// webhooks, and in some months an outage of the gateway, of up to 6 hours or of 1
// to 3 days.
func (w *World) planFaults() error {
	if err := w.gw.Faults.Add(randomFaults()...); err != nil {
		return err
	}
	if w.network.IntN(3) > 0 {
		return nil
	}
	length := between(w.network, time.Minute, 6*time.Hour)
	if w.network.IntN(4) == 0 {
		length = between(w.network, day, 3*day)
	}
	from := time.Now().Add(between(w.network, 0, 20*day))
	w.agenda.add(from, decision, func(context.Context) {
		w.note("gateway", "down for %s", length)
		w.gw.Down()
	})
	w.agenda.add(from.Add(length), inFlight, func(context.Context) { w.gw.Up() })
	return nil
}

func randomFaults() []mockserver.Fault {
	var list []mockserver.Fault
	add := func(probability float64, faults ...mockserver.Fault) {
		for _, f := range faults {
			list = append(list, f.Probability(probability))
		}
	}
	add(0.015, mockserver.LoseResponse(), mockserver.ResetBefore(), mockserver.Status(500).Applied(), mockserver.Status(503))
	add(0.010, mockserver.Status(429).RetryAfter(2*time.Second), mockserver.Truncate(), mockserver.HTMLPage().Applied())
	add(0.003, mockserver.Status(408), mockserver.EmptyBody(), mockserver.BadJSON(), mockserver.ExtraField(), mockserver.Status(403))
	add(0.002, mockserver.HangUntilTimeout(), mockserver.HangUntilTimeout().Applied())
	webhooks := func(probability float64, faults ...mockserver.Fault) {
		for _, f := range faults {
			for _, family := range []string{"transaction.*", "subscription.*", "payout.*"} {
				add(probability, f.On(family))
			}
		}
	}
	webhooks(0.03, mockserver.DropWebhook(), mockserver.DuplicateWebhook())
	webhooks(0.02, mockserver.DelayWebhook(7*time.Minute), mockserver.DelayWebhook(9*time.Hour))
	webhooks(0.01, mockserver.CorruptSignature(), mockserver.StaleTimestamp())
	return list
}

func between(r *rand.Rand, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(r.Int64N(int64(hi-lo)+1))
}

// chance returns true with probability 1/n, but never while a month is being
// closed.
func (w *World) chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 && !w.closing }

// route carries the requests of a process to the gateway.
type route struct {
	p    *process
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (n route) RoundTrip(r *http.Request) (*http.Response, error) {
	w, p := n.p.m.w, n.p
	if p.crashed {
		return nil, errCrashed
	}
	if err := n.latency(r.Context()); err != nil {
		return nil, err
	}
	w.counts.Requests++
	what := r.Method + " " + r.URL.Path
	if p.mayCrash("before " + what) {
		return nil, errCrashed
	}
	if r.Method != http.MethodGet && w.chance(w.network, 100) {
		return nil, n.arriveLate(r, what)
	}
	resp, err := n.next.RoundTrip(r)
	p.failed = err != nil || resp.StatusCode >= 400
	if err != nil {
		w.note(p.name(), "%s: %v", what, err)
		return nil, err
	}
	w.note(p.name(), "%s: %d", what, resp.StatusCode)
	if p.mayCrash("after " + what) {
		_ = resp.Body.Close()
		return nil, errCrashed
	}
	return resp, nil
}

// latency delays a request, except while a month is being closed, so that both
// sides are compared as of the same time.
func (n route) latency(ctx context.Context) error {
	w := n.p.m.w
	if w.closing {
		return nil
	}
	wait := between(w.network, 20*time.Millisecond, 400*time.Millisecond)
	if n.p.failed && w.receiving == 0 { // replaces the client's own backoff, whose jitter is not seeded
		wait += between(w.network, 500*time.Millisecond, 8*time.Second)
	}
	if err := pause(ctx, wait); err != nil {
		return err
	}
	return w.catchUp() //nolint:contextcheck // the clock takes none
}

// arriveLate lets a request arrive up to 20 minutes after its sender has given up.
func (n route) arriveLate(r *http.Request, what string) error {
	w := n.p.m.w
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	header, url, method := r.Header.Clone(), r.URL.String(), r.Method
	w.agenda.add(time.Now().Add(between(w.network, time.Second, 20*time.Minute)), inFlight, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // the gateway may not respond
		defer cancel()
		late, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body)) //nolint:gosec // goes to the mock gateway, in memory
		if err != nil {
			return
		}
		late.Header = header
		resp, err := n.next.RoundTrip(late)
		if err != nil {
			w.note(n.p.name(), "%s arrives late: %v", what, err)
			return
		}
		_ = resp.Body.Close()
		w.note(n.p.name(), "%s arrives late: %d", what, resp.StatusCode)
	})
	w.note(n.p.name(), "%s: delayed", what)
	n.p.failed = true
	return syscall.ECONNRESET
}

// unackedDelivery is a delivery that was not acknowledged yet.
type unackedDelivery struct {
	id    string
	until time.Time
}

// redeliveryPeriod is longer than the gateway keeps redelivering.
const redeliveryPeriod = 26 * time.Hour

// deliver attempts every delivery that is due, one after the other, and reports
// whether there were any. The gateway numbers its deliveries.
func (w *World) deliver(ctx context.Context) (attempted bool, err error) {
	for {
		next := unackedDelivery{fmt.Sprintf("dlv_%d", w.delivered+1), time.Now().Add(redeliveryPeriod)}
		made, err := w.release(ctx, next.id)
		if err != nil && strings.Contains(err.Error(), "no delivery has this id") {
			break
		}
		if err != nil {
			return attempted, err
		}
		w.delivered++
		attempted = attempted || made
		if !made || !w.acked {
			w.unacked = append(w.unacked, next)
		}
	}
	rest := w.unacked[:0]
	for _, d := range w.unacked {
		made, err := w.release(ctx, d.id)
		if err != nil {
			return attempted, err
		}
		attempted = attempted || made
		if (!made || !w.acked) && time.Now().Before(d.until) {
			rest = append(rest, d)
		}
	}
	w.unacked = rest
	return attempted, nil
}

// release makes one attempt of a delivery if it is due.
func (w *World) release(ctx context.Context, id string) (made bool, err error) {
	w.acked = false
	err = w.gw.Webhooks.Release(id)
	if err != nil && strings.Contains(err.Error(), "not held") {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	w.counts.Deliveries++
	return true, w.gw.Wait(ctx)
}

// ServeHTTP is the merchant's webhook endpoint. Unless the network loses or
// delays a delivery, it passes it to the running process.
func (m *merchant) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := m.w
	w.receiving++
	defer func() { w.receiving-- }()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	sent := webhook.Delivery{Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	switch {
	case w.chance(w.network, 50):
		w.note(m.name, "a webhook is lost")
		panic(http.ErrAbortHandler)
	case w.chance(w.network, 50):
		w.note(m.name, "a webhook is delayed")
		w.agenda.add(time.Now().Add(between(w.network, time.Second, 8*time.Minute)), inFlight, func(ctx context.Context) {
			w.receiving++
			defer func() { w.receiving-- }()
			_, _ = m.process.receive(ctx, sent)
		})
		panic(http.ErrAbortHandler)
	}
	status, err := m.process.receive(r.Context(), sent)
	if err != nil || w.chance(w.network, 50) {
		panic(http.ErrAbortHandler) // the response is lost
	}
	w.acked = w.acked || status < 300
	rw.WriteHeader(status)
}

// receive passes a delivery to the process.
func (p *process) receive(ctx context.Context, sent webhook.Delivery) (status int, err error) {
	if p.crashed {
		return 0, errCrashed
	}
	event, err := webhook.Parse(sent.Body)
	if err != nil {
		return 0, err
	}
	status = p.rx.Receive(ctx, sent).Status
	p.m.w.note(p.name(), "webhook %s %s %s: %d", event.ID, event.Kind, event.ResourceID, status)
	if p.crashed {
		return 0, errCrashed
	}
	return status, nil
}

var errCrashed = errors.New("the process has crashed")
