package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/gate"
)

// storeTimeout limits storing the outcome of an event: it must be stored even
// if the sender has timed out.
const storeTimeout = 10 * time.Second

type claimKey struct{}

// ClaimFromContext returns the claim of the event that a handler is handling.
// A store uses it to complete the event in the handler's own transaction.
func ClaimFromContext(ctx context.Context) (*Claim, bool) {
	c, ok := ctx.Value(claimKey{}).(*Claim)
	return c, ok
}

// busyTimeout is how long a delivery waits while another event of its resource is
// being handled.
const (
	busyTimeout = 2 * time.Second
	firstPoll   = 5 * time.Millisecond
	lastPoll    = 200 * time.Millisecond
)

// handleNow claims the event and handles it, in Sync mode. It waits for an event
// of the same resource that is being handled, but not for a backoff. Deliveries
// do not shorten a backoff, since an attacker can repeat them at will.
func (rx *Receiver) handleNow(ctx context.Context, key string, rec Record, handle func(context.Context, *Claim) result) result {
	giveUp := time.NewTimer(busyTimeout)
	defer giveUp.Stop()
	for interval := firstPoll; ; interval = min(2*interval, lastPoll) {
		claim, entry, err := rx.cfg.Store.Claim(ctx, key, rx.cfg.Lease)
		switch {
		case err != nil:
			return storeError(rec, err)
		case claim != nil:
			// The handler finishes even if the sender disconnects.
			return rx.supervise(context.WithoutCancel(ctx), claim, handle)
		case entry.State == StateDone || entry.State == StateDead:
			return duplicate(rec, entry.State)
		case entry.Wait > 0:
			r := outcome(rec, OutcomeBackoff)
			r.retryAfter = entry.Wait
			return r
		}
		pause := time.NewTimer(interval)
		select {
		case <-pause.C:
			continue
		case <-giveUp.C:
		case <-rx.quit:
		case <-ctx.Done():
		}
		pause.Stop()
		return outcome(rec, OutcomeBusy)
	}
}

// handle runs the handler of an event that the receiver itself retries, and
// stores the outcome.
func (rx *Receiver) handle(ctx context.Context, c *Claim) result {
	if c.Attempt > rx.cfg.MaxAttempts {
		r := failure(c.Record, OutcomeDead, Permanent(fmt.Errorf("webhook: gave up after %d attempts; the last one did not finish", c.Attempt-1)))
		r.Attempt = c.begun()
		rx.settle(ctx, c, &r, true)
		return r
	}
	return rx.run(ctx, c, c.Attempt >= rx.cfg.MaxAttempts)
}

// syncRetryPeriod is the minimum time for which deliveries cause retries,
// regardless of the number of attempts: almost as long as the gateway
// redelivers. Without it an attacker who repeats deliveries would use up the
// attempts.
const syncRetryPeriod = 23 * time.Hour

// handleDelivered is handle for Sync mode, where the gateway retries. In a memory store
// an event never becomes a dead letter: a restart would forget it.
func (rx *Receiver) handleDelivered(ctx context.Context, c *Claim) result {
	return rx.run(ctx, c, rx.cfg.Store.Durable() && c.Attempt >= rx.cfg.MaxAttempts && c.Age >= syncRetryPeriod)
}

// run runs the handler. After the last attempt an error is final.
func (rx *Receiver) run(ctx context.Context, c *Claim, last bool) result {
	r := outcome(c.Record, OutcomeHandled)
	r.Attempt = c.begun()
	e, err := rx.restore(c)
	switch {
	case err != nil:
		r.Err = Permanent(&unreadableError{err})
	default:
		rx.dispatch(ctx, c, e, &r)
	}
	freeWorker(ctx)
	rx.settle(ctx, c, &r, last)
	return r
}

// dispatch calls the handler of an event. It skips late events, and reports
// events without a handler.
func (rx *Receiver) dispatch(ctx context.Context, c *Claim, e *Event, r *result) {
	family := routeFamily(e)
	h := rx.route(family, e.Kind)
	switch {
	case h == nil:
		r.Outcome, r.family = OutcomeUnhandled, family
		rx.missing(ctx, family, e.Kind)
	case e.Stale && e.Kind.skippedLate() && !rx.cfg.HandleStale:
		r.Outcome = OutcomeStale
	case h.ignored:
		r.Outcome = OutcomeIgnored
	default:
		r.Err = rx.call(ctx, c, e, h)
	}
}

// call runs the handler with its timeout, and extends the lease until it
// returns.
func (rx *Receiver) call(ctx context.Context, c *Claim, e *Event, h *handler) error {
	timeout := cmp.Or(h.timeout, rx.cfg.HandlerTimeout)
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, claimKey{}, c), timeout)
	defer cancel()
	rx.runs.expect(c, timeout+min(longestGrace, timeout))
	defer rx.runs.expect(c, storeTimeout+longestGrace) // all that is left is to store the result
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	end := rx.renewLease(ctx, c, lose)
	defer end()
	err := rx.safely(ctx, e, h.run)
	if err != nil && errors.Is(context.Cause(ctx), ErrShutdown) {
		return fmt.Errorf("%w: %w", ErrShutdown, err)
	}
	return err
}

// renewLease extends the lease until the returned function is called, even if
// the handler continues after its context ended: while it runs, no other handler
// may run.
func (rx *Receiver) renewLease(ctx context.Context, c *Claim, lose context.CancelCauseFunc) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(rx.cfg.Lease / 3)
		defer tick.Stop()
		abort := rx.abort
		for {
			select {
			case <-ctx.Done():
				return
			case <-abort:
				lose(ErrShutdown)
				abort = nil // the lease is kept until the handler has stopped
				continue
			case <-tick.C:
			}
			// Any other error may be temporary.
			err := rx.guarded(ctx, "Store.Extend", func() error { return rx.cfg.Store.Extend(ctx, c, rx.cfg.Lease) })
			if errors.Is(err, ErrClaimLost) {
				lose(ErrClaimLost)
				return
			}
		}
	}()
	return func() {
		cancel()
		<-stopped
	}
}

// safely turns a handler's panic into an error.
func (rx *Receiver) safely(ctx context.Context, e *Event, h Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("webhook: the handler panicked: %v", p)
			rx.cfg.Logger.LogAttrs(ctx, slog.LevelError, "webhook: a handler panicked",
				slog.String("kind", string(e.Kind)), errorAttr(err), slog.String("stack", string(debug.Stack())))
		}
	}()
	return h(ctx, e)
}

// settle stores the outcome of the event, and corrects it if that fails.
func (rx *Receiver) settle(ctx context.Context, c *Claim, r *result, last bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := rx.persist(ctx, c, r, last)
	switch {
	case err == nil:
	case errors.Is(err, ErrClaimLost):
		if r.Outcome = OutcomeLost; !errors.Is(r.Err, err) {
			r.Err = errors.Join(r.Err, err)
		}
	default:
		r.Outcome, r.Err = OutcomeStoreError, errors.Join(r.Err, err)
	}
}

func (rx *Receiver) persist(ctx context.Context, c *Claim, r *result, last bool) error {
	var hopeless *permanentError
	var later *retryAfterError
	var d Disposition
	switch {
	case r.Outcome == OutcomeUnhandled:
		d = Disposition{State: StateUnhandled, Family: r.family}
	case r.Err == nil:
		return rx.complete(ctx, c)
	case errors.Is(r.Err, ErrShutdown), errors.Is(r.Err, ErrPaused), gate.Refused(r.Err): // the last one was kept waiting
		r.Outcome = OutcomeReleased
		d = released
	case errors.As(r.Err, &hopeless) && !rx.redeliverable(r.Err), last:
		r.Outcome = OutcomeDead
		d = Disposition{State: StateDead, Reason: reason(r.Err)}
	case errors.As(r.Err, &later):
		r.Outcome, r.retryAfter = OutcomeFailed, later.delay
		d = Disposition{State: StateWaiting, Delay: later.delay, Reason: reason(r.Err)}
	default:
		r.Outcome = OutcomeFailed
		d = Disposition{State: StateWaiting, Delay: rx.backoff(ctx, c.Attempt), Reason: reason(r.Err)}
	}
	return rx.cfg.Store.Settle(ctx, c, d)
}

var (
	done     = Disposition{State: StateDone}
	released = Disposition{State: StateWaiting, Released: true}
)

// unreadableError is the error of an event that this version can't read. It is
// kept as a dead letter, because a later version may be able to.
type unreadableError struct{ err error }

func (u *unreadableError) Error() string { return u.err.Error() }
func (u *unreadableError) Unwrap() error { return u.err }

// redeliverable reports whether an event that can't be read must be redelivered: a
// memory store would lose it with the process, before a later version can read
// it.
func (rx *Receiver) redeliverable(err error) bool {
	return rx.cfg.Mode == Sync && !rx.cfg.Store.Durable() && errors.As(err, new(*unreadableError))
}

// complete tries more than once: the handler's effects exist, and an event that
// is not marked as done would be handled again.
func (rx *Receiver) complete(ctx context.Context, c *Claim) error {
	if c.Completed {
		return nil
	}
	for pause := 100 * time.Millisecond; ; pause *= 3 {
		err := rx.cfg.Store.Settle(ctx, c, done)
		if err == nil || errors.Is(err, ErrClaimLost) || pause > time.Second {
			return err
		}
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return err
		}
	}
}

// The user's callbacks run on the receiver's goroutines, where a panic would
// end the process: Store, Backoff, Now, Begin, Trace, Observe, Logger and the
// API client's transport. A handler's panic is a failure of its event; see
// safely.

// guarded calls fn, and returns a panic as an error. The stack is logged.
func (rx *Receiver) guarded(ctx context.Context, what string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = rx.panicked(ctx, what, p)
		}
	}()
	return fn()
}

func (rx *Receiver) panicked(ctx context.Context, what string, p any) error {
	err := fmt.Errorf("webhook: %s panicked: %v", what, p)
	rx.cfg.Logger.LogAttrs(ctx, slog.LevelError, "webhook: a panic", errorAttr(err), slog.String("stack", string(debug.Stack())))
	return err
}

// protected calls fn, and turns a panic into a result. Events that the store
// has claimed are handled again when their leases expire.
func (rx *Receiver) protected(ctx context.Context, rec Record, fn func() result) (r result) {
	if err := rx.guarded(ctx, "a callback of the receiver", func() error { r = fn(); return nil }); err != nil {
		return failure(rec, OutcomePanicked, err)
	}
	return r
}

// slowObserver is how long Observe may take before an error is logged, because
// it blocks a worker or a delivery.
const slowObserver = 5 * time.Second

func (rx *Receiver) observe(ctx context.Context, o Observation) {
	alarm := time.AfterFunc(slowObserver, func() {
		rx.cfg.Logger.LogAttrs(ctx, slog.LevelError, "webhook: Observe does not return",
			slog.String("outcome", string(o.Outcome)), slog.String("event_id", o.EventID))
	})
	defer alarm.Stop()
	_ = rx.guarded(ctx, "Observe", func() error { // logged
		rx.cfg.Observe(ctx, o)
		return nil
	})
}

// opened returns the context of a delivery or a run, as returned by Begin.
func (rx *Receiver) opened(ctx context.Context, c *Claim) context.Context {
	if rx.cfg.Begin == nil {
		return ctx
	}
	return cmp.Or(rx.begun(ctx, c), ctx)
}

// begun calls Begin. It returns nil if Begin panics.
func (rx *Receiver) begun(ctx context.Context, c *Claim) context.Context {
	defer func() {
		if p := recover(); p != nil {
			_ = rx.panicked(ctx, "Begin", p) // logged
		}
	}()
	return rx.cfg.Begin(ctx, c)
}

const maxTrace = 255

// trace returns the trace that is stored with an event.
func (rx *Receiver) trace(ctx context.Context) (trace string) {
	if rx.cfg.Trace == nil {
		return ""
	}
	_ = rx.guarded(ctx, "Trace", func() error { // logged
		trace = rx.cfg.Trace(ctx)
		return nil
	})
	if len(trace) > maxTrace || strings.ContainsFunc(trace, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return trace
}

func (rx *Receiver) backoff(ctx context.Context, attempt int) time.Duration {
	delay := defaultBackoff(attempt)
	_ = rx.guarded(ctx, "Backoff", func() error { // logged; the default is used
		delay = rx.cfg.Backoff(attempt)
		return nil
	})
	return delay
}

// quietHandler is a slog.Handler that drops panics, since they can't be
// reported.
type quietHandler struct{ slog.Handler }

func (h quietHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("webhook: the log handler panicked: %v", p)
		}
	}()
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer func() { _ = recover() }() // not enabled
	return h.Handler.Enabled(ctx, level)
}
