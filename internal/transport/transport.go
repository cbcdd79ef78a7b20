// Package transport sends one call of the interface in as many attempts as its
// class allows. It is the only package that uses go-retryablehttp.
//
// An attempt is a request and its complete response: a truncated body is a
// failed attempt, like a connection reset, and the attempt's timeout covers
// reading the body. Each call keeps its state in its own value; the [Engine] is
// never changed.
package transport

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/gateway-go/gateway/internal/spec"
)

// Engine is shared by all calls of a client.
type Engine struct {
	HTTP        *http.Client // from [WrapClient]
	Logger      *slog.Logger // nil logs nothing
	FirstWait   time.Duration
	LongestWait time.Duration
	Jitter      func() float64 // returns a number in [0, 1)
	Observe     Observe        // nil observes nothing
	Gate        Gate           // nil admits everything
}

// Request is one call.
type Request struct {
	Operation

	Class          spec.Class
	URL            *url.URL
	Header         http.Header // without credentials; never changed
	Body           []byte      // nil for none; the same bytes on every attempt
	Credential     Credential
	MaxAttempts    int
	AttemptTimeout time.Duration
	RepeatOf       time.Time // when an earlier call that may have been applied was sent; zero for none
}

// Credential is called before every attempt to set its headers.
type Credential interface {
	Authorize(ctx context.Context, h http.Header) error
}

// Result is the result of a call: a response, whatever its status, or an error.
type Result struct {
	Status         int         // of the last response; 0 if there is none
	Header         http.Header // of the last response
	Body           []byte      // of the last response; truncated if Err is set
	Err            error       // why there is no complete last response
	Ended          error       // the error of the caller's context, if that ended the call
	Attempts       int
	MayHaveApplied bool          // the outcome is unknown: an attempt may have been applied
	Final          bool          // the last attempt ended with a response that is not retried
	Definite       bool          // the last response is the gateway's own, accepting or rejecting the request
	Permanent      bool          // another call would fail too, for example because of a certificate or a credential
	RetryAfter     time.Duration // the wait that the last response requested
	Started        time.Time
	Secrets        Secrets // of the last attempt
	requestID      string  // cached by RequestID
}

var noHeader = http.Header{} // nothing writes to it

// Do makes the attempts. It returns when there is a final response, when the
// attempts are used up, or when ctx ends.
func (e *Engine) Do(ctx context.Context, req *Request) *Result {
	c := &call{engine: e, req: req}
	c.result.Started = time.Now()
	if !req.RepeatOf.IsZero() {
		c.result.Started, c.result.MayHaveApplied = req.RepeatOf, true
	}
	c.client = retryablehttp.Client{
		HTTPClient:   e.HTTP,
		RetryMax:     req.MaxAttempts - 1,
		CheckRetry:   c.checkRetry,
		Backoff:      c.backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	// Each attempt sets its own headers; http.Client adds only the cookies of its
	// jar here.
	r := http.Request{
		Method: req.Method, URL: req.URL, Host: req.URL.Host, Header: noHeader,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if e.HTTP.Jar != nil {
		r.Header = http.Header{}
	}
	c.trace = httptrace.ClientTrace{GetConn: c.connections.want, GotConn: c.connections.take}
	traced := httptrace.WithClientTrace(ctx, &c.trace)
	c.request.Request = r.WithContext(context.WithValue(traced, contextKey{}, c))
	// An attempt stores its response in c.result; the response here has no body.
	_, err := c.client.Do(&c.request) //nolint:bodyclose // see above
	return c.finish(ctx, err)
}

// call is the state of one call.
type call struct {
	engine        *Engine
	req           *Request
	client        retryablehttp.Client
	request       retryablehttp.Request
	result        Result
	outcome       attemptOutcome // of the last attempt
	before        attemptOutcome // of the attempt before it
	refused       bool           // the gate has refused another attempt
	stop          bool           // after the last attempt the gate allows no other one
	began         time.Time
	hasRetryAfter bool // the last response says when to retry
	wait          time.Duration
	ended         func(AttemptResult) // the observer's function for the end of the current attempt; or nil

	connections connections // of the last attempt
	foreign     bool        // the RoundTripper is not net/http's and may retry by itself
	trace       httptrace.ClientTrace
}

// checkRetry decides after an attempt whether to make another one.
func (c *call) checkRetry(ctx context.Context, _ *http.Response, err error) (bool, error) {
	if c.outcome == none {
		// net/http rejected the request before it reached a RoundTripper.
		c.result.Err, c.outcome = err, permanent
	}
	c.wait = 0
	if c.refused { // the attempts that were made are logged
		return false, nil
	}
	retry := ctx.Err() == nil && !c.stop && c.outcome.retryable(c.req.Class) && c.result.Attempts < c.req.MaxAttempts
	if retry {
		c.wait, retry = c.nextWait(ctx)
	}
	c.log(ctx, retry)
	c.observed(retry)
	return retry, nil
}

func (c *call) backoff(_, _ time.Duration, _ int, _ *http.Response) time.Duration {
	c.before, c.outcome = c.outcome, none
	if c.engine.HTTP.Jar != nil {
		c.request.Header = http.Header{} // otherwise the next attempt would also send this attempt's cookies
	}
	return c.wait
}

// finish adds the outcome of the call to the result of the last attempt.
func (c *call) finish(ctx context.Context, err error) *Result {
	r := &c.result
	if r.Status == 0 && r.Err == nil {
		r.Err = err
	}
	r.Permanent, r.Final = c.outcome == permanent, c.outcome == responded
	r.Definite = r.Final || c.outcome == rateLimited
	if ctx.Err() != nil && c.outcome != responded && c.outcome != permanent {
		r.Ended = ended(ctx)
	}
	return r
}
