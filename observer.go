package gateway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gateway-go/gateway/internal/transport"
)

// Observer is notified of every call of a client and of every request that a
// call makes, for traces and metrics; see [WithObserver]. Either function may
// be nil. They run on the caller's goroutine, concurrently for concurrent
// calls, and must not block.
//
// Each returns a context derived from ctx, with which the call or attempt
// continues, and a function that is called once when it ends. That function may
// be nil.
type Observer struct {
	// Call is called at the start of each call. The function that it returns
	// gets what [ResponseInto] would store and the error that the method
	// returns, even if nothing was sent. Every page of a list is a call, and so
	// is every read of a method that makes several, such as Wait. When a create
	// looks up a resource whose response was lost, those reads are calls within
	// the create's context.
	Call func(ctx context.Context, op Operation) (context.Context, func(Response, error))

	// Attempt is called before each request of a call; ctx is derived from the
	// call's. The function that it returns is called when the attempt has ended
	// and the client has decided whether to retry. The transport of
	// [WithHTTPClient] gets the context that Attempt returns.
	Attempt func(ctx context.Context, a Attempt) (context.Context, func(AttemptResult))
}

// Attempt is one request of a call. Like [Operation], it contains no ids.
type Attempt struct {
	Operation

	Number int    // from 1
	Scheme string // "https"
	Host   string // as in the base URL: with the port, if it has one
}

// AttemptResult is the outcome of an attempt.
type AttemptResult struct {
	StatusCode int           // 0 if there was no response
	RequestID  string        // the gateway's trace id
	Err        error         // why there is no complete response; contains no URL or credential
	RetryAfter time.Duration // the wait that the response requests
	Retry      bool          // another attempt follows
	Wait       time.Duration // until that attempt
}

// WithObserver reports every call and every attempt to o. It replaces an observer
// set before. The module contrib/otel has an observer for OpenTelemetry.
func WithObserver(o Observer) Option {
	return func(s *settings) error {
		s.observer = o
		return nil
	}
}

// Gate decides before each attempt of a client's calls whether it is made now, below the
// client's retries: for a circuit breaker or a limit on the rate; see [WithGate].
//
// It runs on the caller's goroutine, concurrently for concurrent calls, and may wait, until ctx
// ends at the latest. If it returns an error, nothing is sent, and the call ends: after a first
// attempt with [ErrNotSent], which wraps the error, after another one with the outcome of the
// attempts before. Otherwise the function that it returns is called once when the attempt has
// ended. It gets the outcome, without Retry and Wait, and returns whether the call may
// make another attempt. If the transport panics, the result is empty. The function may be nil.
type Gate interface {
	Enter(ctx context.Context, a Attempt) (leave func(AttemptResult) (more bool), err error)
}

// WithGate makes every attempt ask g. Gates add up: an attempt is made if each of them admits
// it. They are asked in the order in which they were added.
func WithGate(g Gate) Option {
	return func(s *settings) error {
		if g == nil {
			return errors.New("gateway: WithGate needs a gate")
		}
		s.gates = append(slices.Clip(s.gates), g)
		return nil
	}
}

// gate adapts the gates to the transport.
func (s *settings) gate() transport.Gate {
	if len(s.gates) == 0 {
		return nil
	}
	gates := s.gates
	return func(ctx context.Context, a transport.Attempt) (func(transport.AttemptResult) bool, error) {
		var entered []func(AttemptResult) bool
		leave := func(res AttemptResult) bool {
			more := true
			for _, f := range entered {
				more = f(res) && more
			}
			return more
		}
		for _, g := range gates {
			f, err := g.Enter(ctx, Attempt{Operation: Operation(a.Operation), Number: a.Number, Scheme: a.Scheme, Host: a.Host})
			if err != nil {
				leave(AttemptResult{})
				return nil, err
			}
			if f != nil {
				entered = append(entered, f)
			}
		}
		return func(res transport.AttemptResult) bool { return leave(AttemptResult(res)) }, nil
	}
}

// begin notifies the observer that the call begins.
func (r *request) begin(ctx context.Context) context.Context {
	observe := r.client.settings.observer.Call
	if observe == nil {
		return ctx
	}
	if r.o.response == nil {
		r.o.response = &Response{}
	}
	ctx, r.ended = observe(ctx, r.operation())
	return ctx
}

// end notifies the observer that the call has ended. It is not deferred, because
// it would report a call that panics as a success.
func (r *request) end(err error) {
	if r.ended != nil {
		r.ended(*r.o.response, err)
	}
}

// operation identifies the call in logs and spans, with the path of [Named] if it
// is set.
func (r *request) operation() Operation {
	return Operation{Name: r.op.Name, Method: r.op.Method, Path: cmp.Or(r.o.operation.Path, r.op.Path)}
}

// observeAttempts adapts the observer's Attempt to the transport.
func (s *settings) observeAttempts() transport.Observe {
	observe := s.observer.Attempt
	if observe == nil {
		return nil
	}
	return func(ctx context.Context, a transport.Attempt) (context.Context, func(transport.AttemptResult)) {
		ctx, end := observe(ctx, Attempt{Operation: Operation(a.Operation), Number: a.Number, Scheme: a.Scheme, Host: a.Host})
		if end == nil {
			return ctx, nil
		}
		return ctx, func(res transport.AttemptResult) { end(AttemptResult(res)) }
	}
}
