package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// storeTimeout bounds the note of what became of an event: it must be written
// also when the handler has used up the sender's patience.
const storeTimeout = 10 * time.Second

type claimKey struct{}

// ClaimFromContext returns the claim under which a handler runs. A store uses
// it to complete the event in the handler's own transaction.
func ClaimFromContext(ctx context.Context) (*Claim, bool) {
	c, ok := ctx.Value(claimKey{}).(*Claim)
	return c, ok
}

// patience is how long a delivery waits while another event of its resource is
// being handled.
const (
	patience  = 2 * time.Second
	firstLook = 5 * time.Millisecond
	lastLook  = 200 * time.Millisecond
)

// handleNow claims the event and handles it, in Sync mode. An event of the same
// resource that is being handled is waited for.
func (rx *Receiver) handleNow(ctx context.Context, key string, rec Record) result {
	giveUp := time.NewTimer(patience)
	defer giveUp.Stop()
	for look := firstLook; ; look = min(2*look, lastLook) {
		claim, state, err := rx.cfg.Store.Claim(ctx, key, rx.cfg.Lease)
		switch {
		case err != nil:
			return storeError(rec, err)
		case claim != nil:
			// The sender may hang up; what was begun is finished all the same.
			return rx.attend(context.WithoutCancel(ctx), claim, rx.handle)
		case state == StateDone || state == StateDead:
			return outcome(rec, OutcomeDuplicate)
		}
		pause := time.NewTimer(look)
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

// handle runs the handler of a claimed event and notes what became of it.
func (rx *Receiver) handle(ctx context.Context, c *Claim) result {
	r := outcome(c.Record, OutcomeHandled)
	r.Attempt = c.Attempt
	e, err := rx.restore(c)
	switch {
	case err != nil:
		r.Err = Permanent(err)
	case c.Attempt > rx.cfg.MaxAttempts:
		r.Err = Permanent(fmt.Errorf("webhook: given up after %d attempts, the last of which never ended", c.Attempt-1))
	case e.Stale && overtaken(e.Kind) && !rx.cfg.HandleStale:
		r.Outcome = OutcomeStale
	default:
		if h := rx.route(e); h != nil {
			r.Err = rx.call(ctx, c, e, h)
		} else {
			r.Outcome = OutcomeUnhandled
		}
	}
	rx.settle(ctx, c, &r)
	return r
}

// restore makes the event of a claim again.
func (rx *Receiver) restore(c *Claim) (*Event, error) {
	e, err := Parse(c.Body)
	if err != nil {
		return nil, err
	}
	e.Signed, e.KeyID, e.Source, e.Attempt = c.Signed, c.KeyID, c.Source, c.Attempt
	e.Stale = c.Late || (c.Position > 0 && c.Position < c.Latest)
	if e.confirmed, err = decodeResource(e.Family, c.Confirmed); err != nil {
		return nil, err
	}
	e.ConfirmedStatus = e.confirmed.status()
	return e, nil
}

// call runs the handler within its time, and keeps the lease alive meanwhile.
func (rx *Receiver) call(ctx context.Context, c *Claim, e *Event, h *handler) error {
	timeout := cmp.Or(h.timeout, rx.cfg.HandlerTimeout)
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, claimKey{}, c), timeout)
	defer cancel()
	rx.runs.expect(c, timeout+graceOf(timeout))
	defer rx.runs.expect(c, storeTimeout+longestGrace) // what remains is to note the result
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	end := rx.keepLease(ctx, c, lose)
	defer end()
	err := rx.safely(ctx, e, h.run)
	if err != nil && errors.Is(context.Cause(ctx), ErrShutdown) {
		return fmt.Errorf("%w: %w", ErrShutdown, err)
	}
	return err
}

// keepLease extends the lease until the returned function is called, also for
// a handler that outstays its context: as long as it runs, nobody else may.
func (rx *Receiver) keepLease(ctx context.Context, c *Claim, lose context.CancelCauseFunc) (end func()) {
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
				abort = nil // the lease is kept until the handler has noticed
				continue
			case <-tick.C:
			}
			// Any other error may pass before the lease does.
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

// settle writes down what became of the event, and corrects the outcome where
// that fails.
func (rx *Receiver) settle(ctx context.Context, c *Claim, r *result) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := rx.note(ctx, c, r)
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

func (rx *Receiver) note(ctx context.Context, c *Claim, r *result) error {
	var hopeless *permanentError
	var later *retryAfterError
	store := rx.cfg.Store
	switch {
	case r.Err == nil:
		return rx.complete(ctx, c)
	case errors.Is(r.Err, ErrShutdown), errors.Is(r.Err, ErrPaused):
		r.Outcome = OutcomeReleased
		return store.Release(ctx, c)
	case errors.As(r.Err, &hopeless), c.Attempt >= rx.cfg.MaxAttempts:
		r.Outcome = OutcomeDead
		return store.Bury(ctx, c, reason(r.Err))
	case errors.As(r.Err, &later):
		r.Outcome, r.retryAfter = OutcomeFailed, later.delay
		return store.Retry(ctx, c, later.delay, reason(r.Err))
	default:
		r.Outcome = OutcomeFailed
		return store.Retry(ctx, c, rx.backoff(ctx, c.Attempt), reason(r.Err))
	}
}

// complete tries more than once: the handler's effects are there, and an event
// that is not noted as done would be handled again.
func (rx *Receiver) complete(ctx context.Context, c *Claim) error {
	if c.Completed {
		return nil
	}
	for pause := 100 * time.Millisecond; ; pause *= 3 {
		err := rx.cfg.Store.Complete(ctx, c)
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
