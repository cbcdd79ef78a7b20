package webhook

import (
	"context"
	"errors"
	"net/http"
	"time"
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

// comeBack is what a sender is asked to wait where nobody knows better.
const comeBack = time.Second

// answerOf turns a result into what the sender gets.
func answerOf(r result) Answer {
	a := Answer{Outcome: r.Outcome}
	switch {
	case r.Outcome.settled():
		a.Status, a.Body = http.StatusOK, []byte(`{"received":true}`)
		return a
	case r.Outcome == OutcomeRefused:
		a.Status, a.Body = refusalOf(r.Err)
		return a
	case r.Outcome == OutcomeUnconfirmed:
		a.Status, a.Body, a.RetryAfter = http.StatusServiceUnavailable, errorBody(ErrNotConfirmedYet), 5*comeBack
		return a
	case r.Outcome == OutcomeFailed && r.retryAfter == 0:
		a.Status, a.Body = http.StatusInternalServerError, errorBody("handler_failed")
		return a
	case r.Outcome == OutcomeFailed, r.Outcome == OutcomeBackoff:
		a.Status, a.Body, a.RetryAfter = http.StatusServiceUnavailable, errorBody("handler_failed"), r.retryAfter
		return a
	default:
		a.Status, a.Body, a.RetryAfter = http.StatusServiceUnavailable, errorBody("unavailable"), comeBack
		return a
	}
}

func refusalOf(err error) (status int, body []byte) {
	var why DeliveryError
	if !errors.As(err, &why) {
		why = ErrInvalidJSON
	}
	switch why {
	case ErrMissingSignature, ErrInvalidSignature, ErrStaleTimestamp, ErrUnconfirmed:
		status = http.StatusUnauthorized
	case errNotFound:
		status = http.StatusNotFound
	case errMethod:
		status = http.StatusMethodNotAllowed
	case errMediaType:
		status = http.StatusUnsupportedMediaType
	case errTooLarge:
		status = http.StatusRequestEntityTooLarge
	case errSlowSender:
		status = http.StatusRequestTimeout
	default:
		status = http.StatusBadRequest
	}
	return status, errorBody(why)
}

// errorBody writes a code that needs no escaping.
func errorBody(code DeliveryError) []byte { return []byte(`{"error":"` + string(code) + `"}`) }

// refuse answers a request that never becomes a delivery.
func (rx *Receiver) refuse(ctx context.Context, err error) Answer {
	r := refused(err)
	rx.report(ctx, r.Observation)
	return answerOf(r)
}

// overloaded answers a request that there is no capacity for.
func (rx *Receiver) overloaded(ctx context.Context, err error) Answer {
	r := result{Observation: Observation{Outcome: OutcomeBusy, Err: err}}
	rx.report(ctx, r.Observation)
	return answerOf(r)
}
