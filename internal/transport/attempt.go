package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/spec"
)

// maxBody is the maximum length of a response. A list page of 100 transactions
// is about 200 KiB.
const maxBody = 64 << 20

var (
	errTooLong    = fmt.Errorf("the response is longer than %d bytes", maxBody)
	errNoResponse = errors.New("the RoundTripper returned neither a response nor an error")
)

// WrapClient returns a copy of client that makes attempts: it reads every response
// completely and never follows a redirect, which would carry the apiKey header and
// session tokens to another host. The copy has no CloseIdleConnections, so that
// the caller's pool outlives a failed call.
func WrapClient(client *http.Client) *http.Client {
	wrapped := *client
	base := client.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	wrapped.Transport = attempts{base}
	wrapped.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &wrapped
}

type attempts struct{ base http.RoundTripper }

// RoundTrip makes one attempt and stores its outcome in the call's state.
func (a attempts) RoundTrip(req *http.Request) (*http.Response, error) {
	c, _ := req.Context().Value(contextKey{}).(*call)
	caller := c.request.Context() // the http.Client's timeout may end req's context sooner
	if caller.Err() != nil {
		c.outcome = unsent
		return nil, caller.Err()
	}
	leave, err := c.enter(req.Context())
	if err != nil {
		return nil, err
	}
	panicked := true
	defer func() { leave(panicked) }()
	c.begin()
	_, own := a.base.(*http.Transport)
	c.foreign = !own
	timed, cancel := context.WithDeadline(c.observe(req.Context()), c.began.Add(c.req.AttemptTimeout))
	defer cancel()
	out := req.WithContext(timed)
	if err := c.prepare(timed, out); err != nil {
		c.outcome, c.result.Err, panicked = permanent, err, false
		return nil, err
	}
	resp, err := a.base.RoundTrip(out)
	if err == nil {
		err = c.read(resp)
	}
	if err != nil {
		c.fail(caller, timed, err)
	} else {
		c.outcome = outcomeOfResponse(c.req.Method, c.result.Status, c.result.Body)
	}
	panicked = false
	c.result.MayHaveApplied = c.result.MayHaveApplied || c.outcome == unknown || c.replayed()
	if c.result.Status == 0 {
		return nil, c.result.Err
	}
	resp.Body = http.NoBody
	return resp, nil
}

// begin clears the response of the previous attempt.
func (c *call) begin() {
	c.began, c.hasRetryAfter = time.Now(), false
	c.connections.reset()
	r := &c.result
	r.Status, r.Header, r.Body, r.Err, r.RetryAfter, r.requestID = 0, nil, nil, nil, 0, ""
	r.Attempts++
}

// prepare sets the attempt's body, its credential and a copy of the headers; the
// connection of an earlier attempt may still be reading its own copy.
func (c *call) prepare(ctx context.Context, out *http.Request) error {
	header := make(http.Header, len(c.req.Header)+2)
	maps.Copy(header, c.req.Header)
	maps.Copy(header, out.Header)
	out.Header = header
	if err := c.req.Credential.Authorize(ctx, header); err != nil {
		return err
	}
	c.result.Secrets.learn(header)
	// net/http does not replay a request that has a Body, even an empty one, but no
	// GetBody.
	once := c.req.Class == spec.Unsafe && replayable(header)
	if c.req.Body == nil && !once {
		return nil
	}
	out.ContentLength = int64(len(c.req.Body))
	if !once {
		out.GetBody = c.body
	}
	var err error
	out.Body, err = c.body()
	return err
}

// body returns a reader of the request's body. Its type makes net/http send
// headers and body in one write.
func (c *call) body() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(c.req.Body)), nil
}

// read reads the complete response.
func (c *call) read(resp *http.Response) error {
	if resp == nil {
		return errNoResponse
	}
	r := &c.result
	r.Status, r.Header = resp.StatusCode, resp.Header
	if header := resp.Header.Get("Retry-After"); header != "" {
		r.RetryAfter, c.hasRetryAfter = retryAfter(header, time.Now())
	}
	if resp.Body == nil {
		return nil
	}
	defer func() { _ = resp.Body.Close() }() // the body was read to its end, or reading it failed
	var err error
	r.Body, err = readAll(resp.Body, resp.ContentLength)
	if err == nil && resp.ContentLength > int64(len(r.Body)) && !resp.Uncompressed && c.req.Method != http.MethodHead {
		err = io.ErrUnexpectedEOF
	}
	r.Body = jsonread.WithoutMark(r.Body) // a create whose response begins with one is a success
	return err
}

// maxBuffer limits the memory that is allocated for an announced
// Content-Length.
const maxBuffer = 1 << 20

func readAll(body io.Reader, length int64) ([]byte, error) {
	// One byte more than the response, so that the read that returns EOF has room.
	buf := make([]byte, 0, min(max(length, 511), maxBuffer)+1)
	for {
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return buf, err
		case len(buf) > maxBody:
			return nil, errTooLong
		case len(buf) == cap(buf):
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// fail records why an attempt has no complete response.
func (c *call) fail(caller, timed context.Context, err error) {
	r := &c.result
	if r.Status != 0 && (r.Status < 200 || r.Status > 299) {
		// What was read of a truncated body can be enough to know a rejection.
		c.outcome = outcomeOfResponse(c.req.Method, r.Status, r.Body)
		return
	}
	c.outcome = c.outcomeOfError(timed, err)
	switch {
	case caller.Err() != nil:
		r.Err = ended(caller)
	case timed.Err() != nil:
		r.Err = &TimeoutError{After: min(c.req.AttemptTimeout, time.Since(c.began))}
	default:
		r.Err = r.Secrets.HideErr(withoutURL(err))
	}
}

// TimeoutError means that an attempt exceeded its timeout. It is not
// [context.DeadlineExceeded], because the caller's context has not ended.
type TimeoutError struct{ After time.Duration }

// Error returns a message with the timeout.
func (e *TimeoutError) Error() string { return fmt.Sprintf("no response within %s", e.After) }

// Timeout returns true, as the timeout errors of package net do.
func (*TimeoutError) Timeout() bool { return true }

// ended returns the context's error together with its cause.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
