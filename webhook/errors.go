package webhook

import (
	"errors"
	"time"
)

// DeliveryError is why a delivery is not accepted, a constant of this package. The response's
// body has its text: {"error":"invalid_signature"}.
type DeliveryError string

// Error returns the machine-readable code.
func (r DeliveryError) Error() string { return "webhook: " + string(r) }

// The refusals of [Parse] (400) and of [Verify] (401).
const (
	ErrInvalidJSON    DeliveryError = "invalid_json"
	ErrMissingEventID DeliveryError = "missing_event_id"

	ErrMissingSignature DeliveryError = "missing_signature"
	ErrInvalidSignature DeliveryError = "invalid_signature"
	ErrStaleTimestamp   DeliveryError = "stale_timestamp"
)

// The refusals of an event that carries no valid signature and has to be
// confirmed by the API.
const (
	ErrUnconfirmed     DeliveryError = "unconfirmed_event"       // 401: the API says otherwise
	ErrNotConfirmedYet DeliveryError = "event_not_confirmed_yet" // 503: the API is behind, or can't be asked now
)

// The refusals of ServeHTTP and of Receive that have nothing to do with the
// event.
const (
	errNotFound   DeliveryError = "not_found"
	errMethod     DeliveryError = "method_not_allowed"
	errMediaType  DeliveryError = "unsupported_media_type"
	errTooLarge   DeliveryError = "body_too_large"
	errBodyLost   DeliveryError = "body_not_received"
	errSlowSender DeliveryError = "body_too_slow"
)

// permanentError is an error that trying again does not help.
type permanentError struct{ err error }

// Permanent marks an error of a handler: trying again will not help. The event
// becomes a dead letter at once.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err: err}
}

func (p *permanentError) Error() string { return p.err.Error() }
func (p *permanentError) Unwrap() error { return p.err }

// retryAfterError asks to be run again later.
type retryAfterError struct{ delay time.Duration }

// RetryAfter is an error of a handler that asks to be run again after d, in
// place of the receiver's own backoff. It counts as an attempt. To say why,
// wrap it: fmt.Errorf("stock is locked: %w", webhook.RetryAfter(time.Minute)).
func RetryAfter(d time.Duration) error { return &retryAfterError{delay: d} }

func (r *retryAfterError) Error() string { return "try again after " + r.delay.String() }

// ErrShutdown is the cause with which a handler's context ends when the
// receiver is shut down and the time for that is over.
var ErrShutdown = errors.New("webhook: the receiver is shutting down")
