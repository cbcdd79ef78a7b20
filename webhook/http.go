package webhook

import (
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

var _ http.Handler = (*Receiver)(nil)

// ServeHTTP responds to a delivery:
//
//	200 {"received":true}   handled, stored, a duplicate, or an event that needs no handling
//	400 {"error":"invalid_json"|"missing_event_id"|"body_not_received"}
//	401 {"error":"missing_signature"|"invalid_signature"|"stale_timestamp"|"unconfirmed_event"}
//	404                     the path does not end in Config.SecretPath
//	405, 408, 413, 415      not a POST; the body is too slow, too large, or not JSON
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
	switch {
	case !rx.secretPathMatches(r.URL.Path):
		return rx.reject(ctx, refused(errNotFound))
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return rx.reject(ctx, refused(errMethod))
	case !acceptable(r.Header):
		return rx.reject(ctx, refused(errMediaType))
	case r.ContentLength > rx.cfg.MaxBody:
		w.Header().Set("Connection", "close") // don't read the rest of the body
		return rx.reject(ctx, refused(errTooLarge))
	}
	body, err := rx.readBody(w, r)
	defer rx.bodies.resize(cap(body), 0)
	switch {
	case errors.Is(err, errBodyMemory):
		w.Header().Set("Connection", "close")
		return rx.reject(ctx, busy(err))
	case err != nil:
		return rx.reject(ctx, refused(err))
	}
	return rx.deliver(ctx, Delivery{Path: r.URL.Path, Header: r.Header, Body: body})
}

// reject responds to a request that never becomes a delivery.
func (rx *Receiver) reject(ctx context.Context, r result) Response {
	rx.report(ctx, r.Observation)
	return responseOf(r)
}

// acceptable requires JSON, or no content type. A signature covers the bytes as
// they are, so a compressed body is rejected.
func acceptable(h http.Header) bool {
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return false
	}
	claim := h.Get("Content-Type")
	if claim == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(claim)
	return err == nil && (media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"))
}

// readBody reads the whole body within the limits of size, time and memory. It
// returns the body even with an error, because the caller must release its
// memory.
func (rx *Receiver) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	// Recorders and cloud function adapters support no deadlines, but have no
	// slow senders.
	_ = control.SetReadDeadline(time.Now().Add(rx.cfg.ReadTimeout))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()

	body, err := rx.readAll(http.MaxBytesReader(w, r.Body, rx.cfg.MaxBody), r.ContentLength)
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return body, errTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return body, errSlowSender
	case err != nil && !errors.Is(err, errBodyMemory):
		return body, errBodyLost
	}
	return body, err
}

// readAll is io.ReadAll into a slice that grows with the received bytes,
// regardless of the announced length.
func (rx *Receiver) readAll(r io.Reader, announced int64) ([]byte, error) {
	b := make([]byte, 0, rx.capacity(0, announced))
	for {
		if len(b) == cap(b) {
			larger := rx.capacity(cap(b), announced)
			if !rx.bodies.resize(cap(b), larger) {
				return b, errBodyMemory
			}
			b = append(make([]byte, 0, larger), b...)
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// capacity returns the next capacity of a body. One byte more than the length
// is enough to detect the end without growing.
func (rx *Receiver) capacity(now int, announced int64) int {
	next := min(int64(max(2*now, firstBody)), rx.cfg.MaxBody+1)
	if announced >= int64(now) && announced < next {
		next = announced + 1
	}
	return int(next)
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
