package webhook

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"time"
)

var _ http.Handler = (*Receiver)(nil)

// ServeHTTP responds to a delivery:
//
//	200 {"received":true}   handled, stored, a duplicate, or an event that needs no handling
//	400 {"error":"invalid_json"|"missing_event_id"|"body_not_received"}
//	401 {"error":"missing_signature"|"invalid_signature"|"stale_timestamp"|"unconfirmed_event"}
//	404                     the path does not end in Config.SecretPath
//	405, 408, 413, 415      not a POST; the body is too slow, too large, or announced as something other than JSON
//	500                     a handler failed, in Sync mode; 503 if it returned RetryAfter
//	503 with Retry-After    redeliver: busy, paused, shutting down, in backoff, not confirmed yet, or the store failed
//
// Mount it at a path of its own:
//
//	http.Handle("POST /webhooks/gateway", rx)
func (rx *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response := rx.serve(w, r)
	maps.Copy(w.Header(), response.Header())
	w.WriteHeader(response.Status)
	_, _ = w.Write(response.Body) // if this fails, the sender has disconnected and will retry
}

func (rx *Receiver) serve(w http.ResponseWriter, r *http.Request) Response {
	ctx := rx.opened(r.Context(), nil)
	memory := &bodyMemory{}
	defer memory.release()
	body, json, err := rx.intake.read(w, r, memory)
	switch {
	case errors.Is(err, errBodyMemory):
		return rx.reject(ctx, busy(err))
	case err != nil:
		return rx.reject(ctx, refused(err))
	}
	return rx.deliver(ctx, Delivery{Path: r.URL.Path, Header: r.Header, Body: body}, json)
}

// reject responds to a request that never becomes a delivery.
func (rx *Receiver) reject(ctx context.Context, r result) Response {
	rx.report(ctx, r.Observation)
	return responseOf(r)
}

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

// retrySoon is the default Retry-After.
const retrySoon = time.Second

// responseOf converts a result to a response.
func responseOf(r result) Response {
	unavailable := func(code DeliveryError, retryAfter time.Duration) Response {
		return Response{http.StatusServiceUnavailable, errorBody(code), retryAfter, r.Outcome}
	}
	switch {
	case r.pending:
		return unavailable("unavailable", retrySoon)
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

// errorBody returns the body for a code that needs no escaping.
func errorBody(code DeliveryError) []byte { return []byte(`{"error":"` + string(code) + `"}`) }
