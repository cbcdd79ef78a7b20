package explore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/explore/fault"
)

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
	s.arrive(fault.BeforeNext)
	if err := n.event(row, "before: ", s.before()); err != nil {
		return nil, err
	}
	f := s.fault(isWrite(r))
	row.fault = f.Name
	real := n.execute(f, out)
	if err := n.event(row, "after: ", s.after(f)); err != nil {
		return nil, err
	}
	resp, err := f.See(r, real)
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
func (n network) execute(f fault.Case, out *http.Request) *http.Response {
	s := n.s
	if f.Late != fault.InTime {
		s.inFlight = append(s.inFlight, delayed{f.Late, s.process, out})
		return nil
	}
	if !f.Applied {
		return nil
	}
	if f.Name == fault.StaleRead {
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
	until   fault.Late
	process int
	request *http.Request
}

// deliver lets the gateway execute a request of a process, and records what the
// request created.
func (s *schedule) deliver(process int, r *http.Request) *http.Response {
	resp, err := s.mock.RoundTrip(r)
	if err != nil {
		s.violated("the mock failed: " + err.Error())
		return fault.Respond(r, http.StatusInternalServerError, http.Header{}, http.NoBody, 0)
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
func (s *schedule) arrive(until fault.Late) {
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
	case fault.ShortRetryAfter:
		s.notBefore = time.Now().Add(2 * time.Second)
	case fault.LongRetryAfter:
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
