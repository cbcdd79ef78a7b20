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
	Retry      bool
	Wait       time.Duration
}

// observe notifies the engine's observer that an attempt begins.
func (c *call) observe(ctx context.Context) context.Context {
	if c.engine.Observe == nil {
		return ctx
	}
	ctx, c.ended = c.engine.Observe(ctx, Attempt{
		Operation: c.req.Operation, Number: c.result.Attempts, Scheme: c.req.URL.Scheme, Host: c.req.URL.Host,
	})
	return ctx
}

// observed notifies the observer of the end of the attempt, if one began.
func (c *call) observed(retry bool) {
	if c.ended == nil {
		return
	}
	r := &c.result
	c.ended(AttemptResult{StatusCode: r.Status, RequestID: r.RequestID(), Err: r.Err, Retry: retry, Wait: c.wait})
	c.ended = nil
}
