package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// The code of others that runs on the receiver's goroutines, where a panic
// would end the process: Store, Backoff, Now, Observe, Logger, the API client's
// transport. A handler's panic is a failure of its event, see safely.

// guarded calls fn and returns its panic as an error. The stack is logged.
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

// protected calls fn and turns its panic into a result. What the store has
// claimed is handled again when the lease has expired.
func (rx *Receiver) protected(ctx context.Context, rec Record, fn func() result) (r result) {
	err := rx.guarded(ctx, "a callback of the receiver", func() error {
		r = fn()
		return nil
	})
	if err != nil {
		r = outcome(rec, OutcomePanicked)
		r.Err = err
	}
	return r
}

// slowObserver is how long Observe may take before the log says so: it holds a
// worker or a delivery.
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

func (rx *Receiver) backoff(ctx context.Context, attempt int) time.Duration {
	delay := defaultBackoff(attempt)
	_ = rx.guarded(ctx, "Backoff", func() error { // logged; the default is as good
		delay = rx.cfg.Backoff(attempt)
		return nil
	})
	return delay
}

// quietHandler is a slog.Handler whose panics are dropped: there is no place to
// report them.
type quietHandler struct{ slog.Handler }

// Handle is as in [slog.Handler].
func (h quietHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("webhook: the log handler panicked: %v", p)
		}
	}()
	return h.Handler.Handle(ctx, r)
}

// Enabled is as in [slog.Handler].
func (h quietHandler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer func() { _ = recover() }() // not enabled
	return h.Handler.Enabled(ctx, level)
}
