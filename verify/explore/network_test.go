package explore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/gateway-go/gateway"
)

// fault says what happens to one request.
type fault struct {
	name    string
	applied bool // the gateway executes the request
	final   bool // the client gives up, or must not retry
	late    late // when the gateway executes the request
	see     view
}

// view returns what the client sees, given the gateway's response if the request
// was executed in time.
type view func(r *http.Request, real *http.Response) (*http.Response, error)

// late says when a request arrives.
type late int

const (
	inTime       late = iota
	beforeNext        // just before the next request
	afterTheCall      // after the call has returned
)

const (
	shortRetryAfter = "2"
	longRetryAfter  = "3600"
)

// writeFaults are the possible faults of an attempt to create or refund.
func writeFaults() []fault {
	reset := func(*http.Request, *http.Response) (*http.Response, error) { return nil, syscall.ECONNRESET }
	closed := func(*http.Request, *http.Response) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
	return []fault{
		{name: "", applied: true, see: pass},
		{name: "connection refused", see: func(*http.Request, *http.Response) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}},
		{name: "lost request", see: closed},
		{name: "lost response", applied: true, see: closed},
		{name: "reset", see: reset},
		{name: "503, not applied", see: reply(503, "")},
		{name: "500, applied", applied: true, see: reply(500, "")},
		{name: "429", see: reply(429, "")},
		{name: "429, Retry-After: 2", see: reply(429, shortRetryAfter)},
		{name: "429, Retry-After: 3600", final: true, see: reply(429, longRetryAfter)},
		{name: "408, not applied", see: reply(408, "")},
		{name: "408, applied", applied: true, see: reply(408, "")},
		{name: "truncated body", applied: true, see: truncated},
		{name: "bad JSON", applied: true, final: true, see: badJSON},
		{name: "empty body", applied: true, final: true, see: emptyBody},
		{name: "HTML page with 502", see: page(502)},
		{name: "HTML page with 200", final: true, see: page(200)},
		{name: "404 page of an ingress", see: page(404)},
		{name: "403 from a proxy, applied", applied: true, see: foreign(403, `{"message":"Forbidden"}`)},
		{name: "redirect, applied", applied: true, see: foreign(302, "")},
		{name: "499, applied", applied: true, see: foreign(499, `{"status":499}`)},
		{name: "409 key in progress, applied", applied: true, see: foreign(409, `{"status":409,"code":"IDEMPOTENCY_KEY_IN_USE"}`)},
		{name: "success:false with 504, applied", applied: true, final: true, see: foreign(200, `{"success":false,"status":504}`)},
		{name: "hang", see: hang},
		{name: "hang, applied", applied: true, see: hang},
		{name: "reset, arrives before the next request", late: beforeNext, see: reset},
		{name: "reset, arrives after the call", late: afterTheCall, see: reset},
	}
}

// readFaults are the possible faults of a read that searches for a lost create.
func readFaults() []fault {
	return []fault{
		{name: "", applied: true, see: pass},
		{name: "reset", see: func(*http.Request, *http.Response) (*http.Response, error) { return nil, syscall.ECONNRESET }},
		{name: "503", see: reply(503, "")},
		{name: "429", see: reply(429, "")},
		{name: "404 page of an ingress", see: page(404)},
		{name: "truncated body", applied: true, see: truncated},
		{name: "bad JSON", applied: true, see: badJSON},
		{name: "HTML page with 200", see: page(200)},
		{name: "hang", see: hang},
		{name: staleRead, applied: true, see: pass}, // must be the last one: see schedule.fault
	}
}

const staleRead = "stale read"

func pass(_ *http.Request, real *http.Response) (*http.Response, error) { return real, nil }

func respond(r *http.Request, status int, header http.Header, body io.Reader, length int) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(body), ContentLength: int64(length), Request: r,
	}
}

func reply(status int, retryAfter string) view {
	return func(r *http.Request, _ *http.Response) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/problem+json"}}
		if retryAfter != "" {
			header.Set("Retry-After", retryAfter)
		}
		body := fmt.Sprintf(`{"status":%d}`, status)
		return respond(r, status, header, strings.NewReader(body), len(body)), nil
	}
}

// foreign is a response of something between the client and the gateway, or of the
// gateway about another request.
func foreign(status int, body string) view {
	return func(r *http.Request, _ *http.Response) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}, "Location": {"https://login.example/"}}
		return respond(r, status, header, strings.NewReader(body), len(body)), nil
	}
}

func page(status int) view {
	const text = "<html><body>nginx</body></html>"
	return func(r *http.Request, _ *http.Response) (*http.Response, error) {
		return respond(r, status, http.Header{"Content-Type": {"text/html"}}, strings.NewReader(text), len(text)), nil
	}
}

// half returns the first half of the real response's body, and the length of the
// whole body.
func half(real *http.Response) (body []byte, length int) {
	b, _ := io.ReadAll(real.Body)
	return b[:len(b)/2], len(b)
}

func truncated(r *http.Request, real *http.Response) (*http.Response, error) {
	body, length := half(real)
	return respond(r, real.StatusCode, real.Header, io.MultiReader(bytes.NewReader(body), broken{}), length), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func badJSON(r *http.Request, real *http.Response) (*http.Response, error) {
	body, _ := half(real)
	return respond(r, real.StatusCode, http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(body), len(body)), nil
}

func emptyBody(r *http.Request, real *http.Response) (*http.Response, error) {
	return respond(r, real.StatusCode, http.Header{}, http.NoBody, 0), nil
}

func hang(r *http.Request, _ *http.Response) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Events that can happen around a request, besides its fault.
const (
	nothing = iota
	rivalSendsSame
	rivalSendsOther
	contextEnds
	processCrashes
	contextEndsInWait
)

var eventNames = [...]string{
	"", "a rival sends the same", "a rival sends another with the reference", "the context ends", "the process crashes",
	"the context ends during the wait after it",
}

// network sends the requests of a call to the mock and applies the schedule's
// fault to each.
type network struct{ s *schedule }

// RoundTrip implements http.RoundTripper.
func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	s := n.s
	out, err := copyOf(r)
	if err != nil {
		return nil, err
	}
	row := s.newRow(r)
	s.arrive(beforeNext)
	if err := n.event(row, "before: ", s.before()); err != nil {
		return nil, err
	}
	f := s.fault(isWrite(r))
	row.fault = f.name
	real := n.execute(f, out)
	if err := n.event(row, "after: ", s.after(f)); err != nil {
		return nil, err
	}
	resp, err := f.see(r, real)
	s.saw(row, resp, err)
	return resp, err
}

func isWrite(r *http.Request) bool { return r.Method != http.MethodGet }

// copyOf returns a copy of the request for the gateway, independent of the client's
// context.
func copyOf(r *http.Request) (*http.Request, error) {
	out := r.Clone(context.WithoutCancel(r.Context()))
	if r.Body == nil {
		return out, nil
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.ContentLength = int64(len(body))
	return out, err
}

// event makes an event happen around a request. It returns the error of a
// canceled context. If the process crashes, it does not return.
func (n network) event(row *row, when string, event int) error {
	s := n.s
	if event != nothing {
		row.events = append(row.events, when+eventNames[event])
	}
	switch event {
	case rivalSendsSame:
		s.rival(s.operation.amount)
	case rivalSendsOther:
		s.rival(otherAmount)
	case contextEnds:
		s.cancel()
		row.seen = context.Canceled.Error()
		return context.Canceled
	case contextEndsInWait:
		s.timers = append(s.timers, time.AfterFunc(time.Millisecond, s.cancel))
	case processCrashes:
		row.seen = "(no client)"
		runtime.Goexit()
	}
	return nil
}

// execute sends the request to the gateway, immediately or later.
func (n network) execute(f fault, out *http.Request) *http.Response {
	s := n.s
	if f.late != inTime {
		s.inFlight = append(s.inFlight, delayed{f.late, s.process, out})
		return nil
	}
	if !f.applied {
		return nil
	}
	if f.name == staleRead {
		makeStale(out)
	}
	return s.deliver(s.process, out)
}

// makeStale makes a read return the state before the call: an empty list, or no
// resource.
func makeStale(r *http.Request) {
	if strings.Count(r.URL.Path, "/") == 2 {
		r.Header.Set("Authorization", "Bearer sk_test_untouched")
		return
	}
	r.Header.Set("X-Mock-Fault", "stale-read")
}

// delayed is a request that has not arrived yet.
type delayed struct {
	until   late
	process int
	request *http.Request
}

// deliver lets the gateway execute a request of a process, and records what the
// request created.
func (s *schedule) deliver(process int, r *http.Request) *http.Response {
	resp, err := s.mock.RoundTrip(r)
	if err != nil {
		s.violated("the mock failed: " + err.Error())
		return respond(r, http.StatusInternalServerError, http.Header{}, http.NoBody, 0)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if isWrite(r) && resp.StatusCode < 300 {
		s.recordCreated(process, body)
	}
	return resp
}

// recordCreated records which process created a resource: the first one whose
// request returned it.
func (s *schedule) recordCreated(process int, body []byte) {
	var created struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &created) != nil || created.Data.ID == "" {
		return
	}
	if _, known := s.creators[created.Data.ID]; !known {
		s.creators[created.Data.ID] = process
	}
}

// arrive delivers the requests that were delayed until now.
func (s *schedule) arrive(until late) {
	var rest []delayed
	for _, d := range s.inFlight {
		if d.until != until {
			rest = append(rest, d)
			continue
		}
		_ = s.deliver(d.process, d.request).Body.Close()
	}
	s.inFlight = rest
}

// saw records what the client sees and when it may retry.
func (s *schedule) saw(row *row, resp *http.Response, err error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		row.seen = "a timeout"
	case err != nil:
		row.seen = err.Error()
	default:
		row.status = resp.StatusCode
	}
	if resp == nil {
		return
	}
	switch resp.Header.Get("Retry-After") {
	case shortRetryAfter:
		s.notBefore = time.Now().Add(2 * time.Second)
	case longRetryAfter:
		s.notBefore = time.Now().Add(time.Hour)
	}
}

// newRow records a request and checks that it was not sent too early or too often.
func (s *schedule) newRow(r *http.Request) *row {
	op, _ := gateway.OperationFromContext(r.Context())
	row := &row{process: s.process, operation: op.Name}
	s.rows = append(s.rows, row)
	if time.Now().Before(s.notBefore) {
		s.violated("a request was sent before Retry-After had passed")
	}
	if s.sent[op.Name]++; s.sent[op.Name] > maxAttempts && op.Name == s.operation.op {
		s.violated("more attempts than allowed")
	}
	return row
}
