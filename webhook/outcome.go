package webhook

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway/internal/truncate"
)

// Outcome is the outcome of a delivery or of a run of a handler.
type Outcome string

// The outcomes. The receiver responds to the first group with 200.
const (
	OutcomeHandled   Outcome = "handled"
	OutcomeStored    Outcome = "stored"    // in the inbox; the workers report the handler's outcome
	OutcomeDuplicate Outcome = "duplicate" // received before
	OutcomeStale     Outcome = "stale"     // late and skipped, see Config.HandleStale
	OutcomeUnhandled Outcome = "unhandled" // there is no handler; the event is kept for a process that has one
	OutcomeIgnored   Outcome = "ignored"   // dropped, see Ignore
	OutcomeConflict  Outcome = "conflict"  // a dead letter, because its id had been used for another event; 503 if only in memory
	OutcomeDead      Outcome = "dead"      // a dead letter

	OutcomeFailed      Outcome = "failed"      // the handler failed; it will be retried
	OutcomeBackoff     Outcome = "backoff"     // the handler failed recently; the retry is not due yet
	OutcomeReleased    Outcome = "released"    // interrupted by the shutdown, or the gateway is down (package merchant)
	OutcomeLost        Outcome = "lost"        // the lease expired; another process may have the event
	OutcomeBusy        Outcome = "busy"        // over a concurrency limit, or the resource is being handled
	OutcomeRefused     Outcome = "refused"     // not a valid event of the gateway
	OutcomeUnconfirmed Outcome = "unconfirmed" // the API could not confirm it yet
	OutcomeStoreError  Outcome = "store_error"
	OutcomeHung        Outcome = "hung"     // the handler did not return in time; a later outcome follows if it does
	OutcomePanicked    Outcome = "panicked" // the Store or another callback of the Config failed; see Err
)

// settled reports whether the sender need not retry the event.
func (o Outcome) settled() bool {
	switch o {
	case OutcomeHandled, OutcomeStored, OutcomeDuplicate, OutcomeStale, OutcomeUnhandled, OutcomeIgnored, OutcomeConflict, OutcomeDead:
		return true
	default:
		return false
	}
}

// Observation is one outcome. It omits the ids of a rejected delivery, since
// they come from an unauthenticated sender.
type Observation struct {
	Outcome    Outcome
	Account    string // the name of the receiver's account, "" if it has none
	EventID    string
	Kind       Kind
	Resource   string // family and id
	KeyID      string // the ID of the SigningKey that verified it, "" if none did
	Attempt    int    // the handler's attempt, 0 if none ran
	Duration   time.Duration
	Err        error // of the handler or the store, or the DeliveryError
	FromWorker bool  // a run in the background, not a delivery
}

// result is the outcome of a delivery, from which its Response is made.
type result struct {
	Observation

	retryAfter time.Duration // requested by a handler, or the rest of a backoff
	state      State         // of a duplicate, in the store
	family     Family        // of the missing handler
	pending    bool          // of a conflict: the event is neither done nor stored durably
}

func outcome(rec Record, o Outcome) result {
	return result{Observation: Observation{Outcome: o, EventID: rec.id(), Kind: rec.Kind, Resource: rec.Resource, KeyID: rec.KeyID}}
}

// failure is the outcome of an event with the error that caused it.
func failure(rec Record, o Outcome, err error) result {
	r := outcome(rec, o)
	r.Err = err
	return r
}

func duplicate(rec Record, state State) result {
	r := outcome(rec, OutcomeDuplicate)
	r.state = state
	return r
}

func storeError(rec Record, err error) result { return failure(rec, OutcomeStoreError, err) }

func refused(err error) result {
	return result{Observation: Observation{Outcome: OutcomeRefused, Err: err}}
}

// busy returns the result of a delivery that can't be processed now.
func busy(err error) result {
	return result{Observation: Observation{Outcome: OutcomeBusy, Err: err}}
}

func unconfirmed(err error) result {
	o := OutcomeUnconfirmed
	switch {
	case errors.Is(err, ErrUnconfirmed):
		o = OutcomeRefused
	case errors.Is(err, errStore):
		o = OutcomeStoreError
	}
	return result{Observation: Observation{Outcome: o, Err: err}}
}

// Stats returns how often each outcome has occurred since the receiver was
// created.
func (rx *Receiver) Stats() map[Outcome]uint64 { return rx.stats.snapshot() }

type stats struct {
	mu     sync.Mutex
	counts map[Outcome]uint64
}

func (s *stats) add(o Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = make(map[Outcome]uint64)
	}
	s.counts[o]++
}

func (s *stats) snapshot() map[Outcome]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// report counts, logs and observes an outcome, then wakes the callers of Idle.
func (rx *Receiver) report(ctx context.Context, o Observation) {
	o.Account = rx.account.Name
	rx.stats.add(o.Outcome)
	rx.log(ctx, o)
	rx.observe(context.WithoutCancel(ctx), o)
	rx.runs.notify()
}

func (rx *Receiver) log(ctx context.Context, o Observation) {
	level := levelOf(o.Outcome)
	if !rx.cfg.Logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("outcome", string(o.Outcome)), slog.Duration("duration", o.Duration))
	if o.EventID != "" {
		attrs = append(attrs, slog.String("event_id", o.EventID), slog.String("kind", string(o.Kind)),
			slog.String("resource", o.Resource))
	}
	if o.KeyID != "" {
		attrs = append(attrs, slog.String("key_id", o.KeyID))
	}
	if o.Attempt > 0 {
		attrs = append(attrs, slog.Int("attempt", o.Attempt))
	}
	if o.Err != nil {
		attrs = append(attrs, errorAttr(o.Err))
	}
	rx.cfg.Logger.LogAttrs(ctx, level, "webhook", attrs...)
}

func levelOf(o Outcome) slog.Level {
	switch o {
	case OutcomeDead, OutcomeConflict, OutcomeStoreError, OutcomeHung, OutcomePanicked:
		return slog.LevelError
	case OutcomeFailed, OutcomeLost, OutcomeUnconfirmed:
		return slog.LevelWarn
	case OutcomeRefused, OutcomeBusy, OutcomeBackoff, OutcomeReleased:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

const maxReason = 500

// reason returns an error's text, truncated for a log line or a store's row. It
// has no U+0000, which databases reject.
func reason(err error) string {
	return strings.ReplaceAll(truncate.Ellipsis(err.Error(), maxReason), "\x00", "\uFFFD")
}

func errorAttr(err error) slog.Attr { return slog.String("error", reason(err)) }

// DeliveryError is the reason why a delivery is rejected, a constant of this
// package. The response's body has its text: {"error":"invalid_signature"}.
type DeliveryError string

// Error returns the machine-readable code.
func (r DeliveryError) Error() string { return "webhook: " + string(r) }

// The errors of [Parse] (400) and of [Verify] (401).
const (
	ErrInvalidJSON    DeliveryError = "invalid_json"
	ErrMissingEventID DeliveryError = "missing_event_id"

	ErrMissingSignature DeliveryError = "missing_signature"
	ErrInvalidSignature DeliveryError = "invalid_signature"
	ErrStaleTimestamp   DeliveryError = "stale_timestamp"
)

// The errors of an event without a valid signature, which the API must confirm.
const (
	ErrUnconfirmed     DeliveryError = "unconfirmed_event"       // 401: the API contradicts the event
	ErrNotConfirmedYet DeliveryError = "event_not_confirmed_yet" // 503: the API does not confirm the event yet, or can't be reached
)

// The errors of ServeHTTP and of Receive that are not about the event.
const (
	errNotFound   DeliveryError = "not_found"
	errMethod     DeliveryError = "method_not_allowed"
	errMediaType  DeliveryError = "unsupported_media_type"
	errTooLarge   DeliveryError = "body_too_large"
	errBodyLost   DeliveryError = "body_not_received"
	errSlowSender DeliveryError = "body_too_slow"
)

// permanentError is an error that a retry can't fix.
type permanentError struct{ err error }

// Permanent marks an error that a retry can't fix. The event becomes a dead
// letter immediately.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err: err}
}

func (p *permanentError) Error() string { return p.err.Error() }
func (p *permanentError) Unwrap() error { return p.err }

// retryAfterError requests a retry after a delay.
type retryAfterError struct{ delay time.Duration }

// RetryAfter returns an error with which a handler requests a retry after d,
// instead of after the receiver's backoff. The failed attempt counts toward
// [Config.MaxAttempts]. To add a reason, wrap the error:
// fmt.Errorf("stock is locked: %w", webhook.RetryAfter(time.Minute)).
func RetryAfter(d time.Duration) error { return &retryAfterError{delay: d} }

func (r *retryAfterError) Error() string { return "try again after " + r.delay.String() }

// ErrShutdown is the cancellation cause of a handler's context when the context of
// [Receiver.Shutdown] ends before the handler returns.
var ErrShutdown = errors.New("webhook: the receiver is shutting down")
