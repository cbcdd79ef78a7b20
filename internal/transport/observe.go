package transport

import (
	"context"
	"time"
)

// Observe is called at the start of every attempt. It returns the attempt's
// context and a function to call at its end, which may be nil.
type Observe func(ctx context.Context, a Attempt) (context.Context, func(AttemptResult))

// Attempt is one request of a call.
type Attempt struct {
	Operation

	Number int // from 1
	Scheme string
	Host   string
}

// AttemptResult is the outcome of an attempt.
type AttemptResult struct {
	StatusCode int
	RequestID  string
	Err        error
	RetryAfter time.Duration
	Retry      bool
	Wait       time.Duration
}

// Gate is asked before every attempt. If it returns an error, the attempt is not made, and
// the call ends. Otherwise the function that it returns gets the attempt's outcome, without
// Retry and Wait, and returns whether the call may go on with another attempt. It is called
// once, with an empty result if the RoundTripper panics; it may be nil.
type Gate func(ctx context.Context, a Attempt) (func(AttemptResult) bool, error)

// observe notifies the engine's observer that an attempt begins.
func (c *call) observe(ctx context.Context) context.Context {
	if c.engine.Observe == nil {
		return ctx
	}
	ctx, c.ended = c.engine.Observe(ctx, c.attempt(c.result.Attempts))
	return ctx
}

func (c *call) attempt(number int) Attempt {
	return Attempt{Operation: c.req.Operation, Number: number, Scheme: c.req.URL.Scheme, Host: c.req.URL.Host}
}

// enter asks the gate whether the next attempt may be made, and returns a function to call at
// its end. If it may not, the result of the call is that of the last attempt.
func (c *call) enter(ctx context.Context) (leave func(panicked bool), err error) {
	c.stop = false
	if c.engine.Gate == nil {
		return func(bool) {}, nil
	}
	report, err := c.engine.Gate(ctx, c.attempt(c.result.Attempts+1))
	if err != nil {
		c.refused, c.outcome = true, c.before
		if c.result.Attempts == 0 {
			c.outcome, c.result.Err = unsent, err
		}
		return nil, err
	}
	return func(panicked bool) {
		r := &c.result
		switch {
		case report == nil:
		case panicked:
			report(AttemptResult{})
		default:
			c.stop = !report(AttemptResult{StatusCode: r.Status, RequestID: r.RequestID(), Err: r.Err, RetryAfter: r.RetryAfter})
		}
	}, nil
}

// observed notifies the observer of the end of the attempt, if one began.
func (c *call) observed(retry bool) {
	if c.ended == nil {
		return
	}
	r := &c.result
	c.ended(AttemptResult{StatusCode: r.Status, RequestID: r.RequestID(), Err: r.Err, RetryAfter: r.RetryAfter, Retry: retry, Wait: c.wait})
	c.ended = nil
}
