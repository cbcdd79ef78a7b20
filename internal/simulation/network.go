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

// storm plans the faults of the next month: faults of single requests and webhooks,
// and, in some months, a gateway that is down for hours or for more than a day.
func (w *World) storm() error {
	if err := w.gw.Faults.Add(weather()...); err != nil {
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
	w.agenda.add(from, life, func(context.Context) {
		w.note("gateway", "down for %s", length)
		w.gw.Down()
	})
	w.agenda.add(from.Add(length), wire, func(context.Context) { w.gw.Up() })
	return nil
}

func weather() []mockserver.Fault {
	var list []mockserver.Fault
	some := func(probability float64, faults ...mockserver.Fault) {
		for _, f := range faults {
			list = append(list, f.Probability(probability))
		}
	}
	some(0.015, mockserver.LoseResponse(), mockserver.ResetBefore(), mockserver.Status(500).Applied(), mockserver.Status(503))
	some(0.010, mockserver.Status(429).RetryAfter(2*time.Second), mockserver.Truncate(), mockserver.HTMLPage().Applied())
	some(0.003, mockserver.Status(408), mockserver.EmptyBody(), mockserver.BadJSON(), mockserver.ExtraField(), mockserver.Status(403))
	some(0.002, mockserver.HangUntilTimeout(), mockserver.HangUntilTimeout().Applied())
	webhooks := func(probability float64, faults ...mockserver.Fault) {
		for _, f := range faults {
			for _, family := range []string{"transaction.*", "subscription.*", "payout.*"} {
				some(probability, f.On(family))
			}
		}
	}
	webhooks(0.03, mockserver.DropWebhook(), mockserver.DuplicateWebhook())
	webhooks(0.02, mockserver.DelayWebhook(7*time.Minute), mockserver.DelayWebhook(9*time.Hour))
	webhooks(0.01, mockserver.CorruptSignature(), mockserver.StaleTimestamp())
	return list
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

// chance reports true with probability 1/n, and never while a month is being
// closed.
func (w *World) chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 && !w.calm }

// route carries the requests of a process to the gateway.
type route struct {
	p    *process
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (n route) RoundTrip(r *http.Request) (*http.Response, error) {
	w, p := n.p.m.w, n.p
	if p.dead {
		return nil, errDied
	}
	if err := n.latency(r.Context()); err != nil {
		return nil, err
	}
	w.counts.Requests++
	what := r.Method + " " + r.URL.Path
	if p.mayDie("before " + what) {
		return nil, errDied
	}
	if r.Method != http.MethodGet && w.chance(w.network, 100) {
		return nil, n.late(r, what)
	}
	resp, err := n.next.RoundTrip(r)
	p.failed = err != nil || resp.StatusCode >= 400
	if err != nil {
		w.note(p.name(), "%s: %v", what, err)
		return nil, err
	}
	w.note(p.name(), "%s: %d", what, resp.StatusCode)
	if p.mayDie("after " + what) {
		_ = resp.Body.Close()
		return nil, errDied
	}
	return resp, nil
}

// latency delays a request, except while a month is being closed, so that both
// sides are compared at the same time.
func (n route) latency(ctx context.Context) error {
	w := n.p.m.w
	if w.calm {
		return nil
	}
	wait := between(w.network, 20*time.Millisecond, 400*time.Millisecond)
	if n.p.failed && w.inside == 0 { // in place of the client's own backoff, whose jitter has no seed
		wait += between(w.network, 500*time.Millisecond, 8*time.Second)
	}
	if err := w.sleep(ctx, wait); err != nil {
		return err
	}
	return w.catchUp() //nolint:contextcheck // the clock takes none
}

// late lets a request arrive minutes after its sender has given up.
func (n route) late(r *http.Request, what string) error {
	w := n.p.m.w
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	header, url, method := r.Header.Clone(), r.URL.String(), r.Method
	w.agenda.add(time.Now().Add(between(w.network, time.Second, 20*time.Minute)), wire, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // the gateway may not respond
		defer cancel()
		again, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body)) //nolint:gosec // it goes to the mock, in memory
		if err != nil {
			return
		}
		again.Header = header
		resp, err := n.next.RoundTrip(again)
		if err != nil {
			w.note(n.p.name(), "%s arrives: %v", what, err)
			return
		}
		_ = resp.Body.Close()
		w.note(n.p.name(), "%s arrives: %d", what, resp.StatusCode)
	})
	w.note(n.p.name(), "%s: delayed", what)
	n.p.failed = true
	return syscall.ECONNRESET
}

// waiting is a delivery that is not acknowledged yet.
type waiting struct {
	id    string
	until time.Time
}

// redeliveries is longer than the gateway's schedule of redeliveries.
const redeliveries = 26 * time.Hour

// deliver makes every delivery that is due, one after the other, and reports whether there
// was one. The gateway numbers its deliveries.
func (w *World) deliver(ctx context.Context) (some bool, err error) {
	for {
		next := waiting{fmt.Sprintf("dlv_%d", w.offered+1), time.Now().Add(redeliveries)}
		made, err := w.release(ctx, next.id)
		if err != nil && strings.Contains(err.Error(), "no delivery has this id") {
			break
		}
		if err != nil {
			return some, err
		}
		w.offered++
		some = some || made
		if !made || !w.acked {
			w.underway = append(w.underway, next)
		}
	}
	rest := w.underway[:0]
	for _, d := range w.underway {
		made, err := w.release(ctx, d.id)
		if err != nil {
			return some, err
		}
		some = some || made
		if (!made || !w.acked) && time.Now().Before(d.until) {
			rest = append(rest, d)
		}
	}
	w.underway = rest
	return some, nil
}

// release makes one attempt of a delivery, unless it is not due.
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

// ServeHTTP is the merchant's webhook endpoint: a delivery that survives the network's
// faults reaches the live process.
func (m *merchant) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := m.w
	w.inside++
	defer func() { w.inside-- }()
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
		w.agenda.add(time.Now().Add(between(w.network, time.Second, 8*time.Minute)), wire, func(ctx context.Context) {
			w.inside++
			defer func() { w.inside-- }()
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

// receive hands a delivery to the process.
func (p *process) receive(ctx context.Context, sent webhook.Delivery) (status int, err error) {
	if p.dead {
		return 0, errDied
	}
	event, err := webhook.Parse(sent.Body)
	if err != nil {
		return 0, err
	}
	status = p.rx.Receive(ctx, sent).Status
	p.m.w.note(p.name(), "webhook %s %s %s: %d", event.ID, event.Kind, event.ResourceID, status)
	if p.dead {
		return 0, errDied
	}
	return status, nil
}

var errDied = errors.New("the process has died")
