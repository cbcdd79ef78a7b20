// Package fault lists what can happen to a request between a client and the
// gateway: whether the gateway executes it, when, and what the client sees.
package fault

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
)

// Case is what happens to one request.
type Case struct {
	Name    string
	Applied bool // the gateway executes the request
	Final   bool // the client gives up, or must not retry
	Late    Late // when the gateway executes the request
	Keyed   bool // happens only to a request with an Idempotency-Key
	See     View
}

// View returns what the client sees, given the gateway's response if the request
// was executed in time.
type View func(r *http.Request, real *http.Response) (*http.Response, error)

// Late says when a request arrives.
type Late int

// The times at which a request arrives.
const (
	InTime       Late = iota
	BeforeNext        // just before the next request
	AfterTheCall      // after the call has returned
)

// The values of Retry-After in the cases of a 429.
const (
	ShortRetryAfter = "2"
	LongRetryAfter  = "3600"
)

// None is the case in which nothing fails.
func None() Case { return Case{Applied: true, See: pass} }

// LostResponse is a request that is executed and whose connection is reset.
func LostResponse() Case { return Case{Name: "lost response", Applied: true, See: Reset} }

// LateRequest is a connection that is reset before the request arrives at the gateway.
func LateRequest() Case {
	return Case{Name: "reset, arrives after the call", Late: AfterTheCall, See: Reset}
}

// HalfABody is a response that ends in the middle.
func HalfABody() Case { return Case{Name: "truncated body", Applied: true, See: truncated} }

// Page is an HTML page of a proxy that has passed the request on or not.
func Page(status int, applied bool) Case {
	name := fmt.Sprintf("HTML page with %d", status)
	if applied {
		name += ", applied"
	}
	return Case{Name: name, Applied: applied, Final: status < 300, See: page(status)}
}

// Status is a response of the gateway that has not executed the request. retryAfter
// may be "".
func Status(status int, retryAfter string) Case {
	return Case{Name: fmt.Sprintf("%d, not applied", status), See: reply(status, retryAfter)}
}

// Writes are the cases of an attempt to create or refund.
func Writes() []Case {
	return []Case{
		None(),
		{Name: "connection refused", See: func(*http.Request, *http.Response) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}},
		{Name: "lost request", See: closed},
		{Name: "lost response", Applied: true, See: closed},
		{Name: "reset", See: Reset},
		Status(503, ""),
		{Name: "500, applied", Applied: true, See: reply(500, "")},
		{Name: "429", See: reply(429, "")},
		{Name: "429, Retry-After: 2", See: reply(429, ShortRetryAfter)},
		{Name: "429, Retry-After: 3600", Final: true, See: reply(429, LongRetryAfter)},
		Status(408, ""),
		{Name: "408, applied", Applied: true, See: reply(408, "")},
		HalfABody(),
		{Name: "bad JSON", Applied: true, Final: true, See: badJSON},
		{Name: "empty body", Applied: true, Final: true, See: emptyBody},
		Page(502, false),
		Page(200, false),
		{Name: "404 page of an ingress", See: page(404)},
		{Name: "403 from a proxy, applied", Applied: true, See: foreign(403, `{"message":"Forbidden"}`)},
		{Name: "redirect, applied", Applied: true, See: foreign(302, "")},
		{Name: "499, applied", Applied: true, See: foreign(499, `{"status":499}`)},
		{Name: "409 key in progress, applied", Applied: true, Keyed: true, See: foreign(409, `{"status":409,"code":"IDEMPOTENCY_KEY_IN_USE"}`)},
		{Name: "success:false with 504, applied", Applied: true, Final: true, See: foreign(200, `{"success":false,"status":504}`)},
		{Name: "hang", See: hang},
		{Name: "hang, applied", Applied: true, See: hang},
		{Name: "reset, arrives before the next request", Late: BeforeNext, See: Reset},
		LateRequest(),
	}
}

// Reads are the cases of a read that searches for a lost create.
func Reads() []Case {
	return []Case{
		None(),
		{Name: "reset", See: Reset},
		{Name: "503", See: reply(503, "")},
		{Name: "429", See: reply(429, "")},
		{Name: "404 page of an ingress", See: page(404)},
		HalfABody(),
		{Name: "bad JSON", Applied: true, See: badJSON},
		{Name: "HTML page with 200", See: page(200)},
		{Name: "hang", See: hang},
		{Name: StaleRead, Applied: true, See: pass}, // must be the last one: a schedule may leave it out
	}
}

// Fates are what live gateways were seen to do to a read of what exists.
func Fates() []Case {
	return []Case{
		{Name: "403 of the gateway", See: reply(http.StatusForbidden, "")},
		{Name: "404 of the gateway", See: reply(http.StatusNotFound, "")},
		{Name: "without a paid_amount", Applied: true, See: withoutPaidAmount},
	}
}

var paidAmount = regexp.MustCompile(`"paid_amount":\s*\d+`)

func withoutPaidAmount(r *http.Request, real *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(real.Body)
	if err != nil {
		return nil, err
	}
	body = paidAmount.ReplaceAll(body, []byte(`"paid_amount":0`))
	return Respond(r, real.StatusCode, http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(body), len(body)), nil
}

// StaleRead is the name of a read of the state before the call.
const StaleRead = "stale read"

func pass(_ *http.Request, real *http.Response) (*http.Response, error) { return real, nil }

// Reset is the error of a connection that was reset.
func Reset(*http.Request, *http.Response) (*http.Response, error) { return nil, syscall.ECONNRESET }

func closed(*http.Request, *http.Response) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }

// Respond returns a response with a body of the given length.
func Respond(r *http.Request, status int, header http.Header, body io.Reader, length int) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(body), ContentLength: int64(length), Request: r,
	}
}

func reply(status int, retryAfter string) View {
	return func(r *http.Request, _ *http.Response) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/problem+json"}}
		if retryAfter != "" {
			header.Set("Retry-After", retryAfter)
		}
		body := fmt.Sprintf(`{"status":%d}`, status)
		return Respond(r, status, header, strings.NewReader(body), len(body)), nil
	}
}

// foreign is a response of something between the client and the gateway, or of the
// gateway about another request.
func foreign(status int, body string) View {
	return func(r *http.Request, _ *http.Response) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}, "Location": {"https://login.example/"}}
		return Respond(r, status, header, strings.NewReader(body), len(body)), nil
	}
}

func page(status int) View {
	const text = "<html><body>nginx</body></html>"
	return func(r *http.Request, _ *http.Response) (*http.Response, error) {
		return Respond(r, status, http.Header{"Content-Type": {"text/html"}}, strings.NewReader(text), len(text)), nil
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
	return Respond(r, real.StatusCode, real.Header, io.MultiReader(bytes.NewReader(body), broken{}), length), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func badJSON(r *http.Request, real *http.Response) (*http.Response, error) {
	body, _ := half(real)
	return Respond(r, real.StatusCode, http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(body), len(body)), nil
}

func emptyBody(r *http.Request, real *http.Response) (*http.Response, error) {
	return Respond(r, real.StatusCode, http.Header{}, http.NoBody, 0), nil
}

func hang(r *http.Request, _ *http.Response) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}
