package webhook

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Response is the HTTP response to a [Delivery].
type Response struct {
	Status     int
	Body       []byte        // JSON
	RetryAfter time.Duration // 0 without that header
	Outcome    Outcome
}

// Header returns the response's headers.
func (r Response) Header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	if r.RetryAfter > 0 {
		seconds := (r.RetryAfter + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	return h
}

// retrySoon is the Retry-After of a response without a better one.
const retrySoon = time.Second

// responseOf turns a result into what the sender gets.
func responseOf(r result) Response {
	unavailable := func(code DeliveryError, retryAfter time.Duration) Response {
		return Response{http.StatusServiceUnavailable, errorBody(code), retryAfter, r.Outcome}
	}
	switch {
	case r.Outcome.settled():
		return Response{http.StatusOK, []byte(`{"received":true}`), 0, r.Outcome}
	case r.Outcome == OutcomeRefused:
		status, body := refusalOf(r.Err)
		return Response{status, body, 0, r.Outcome}
	case r.Outcome == OutcomeUnconfirmed:
		return unavailable(ErrNotConfirmedYet, 5*retrySoon)
	case r.Outcome == OutcomeFailed && r.retryAfter == 0:
		return Response{http.StatusInternalServerError, errorBody("handler_failed"), 0, r.Outcome}
	case r.Outcome == OutcomeFailed, r.Outcome == OutcomeBackoff:
		return unavailable("handler_failed", r.retryAfter)
	default:
		return unavailable("unavailable", retrySoon)
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
