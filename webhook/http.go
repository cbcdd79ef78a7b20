package webhook

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
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
	in, err := rx.admit(w, r)
	if err != nil {
		return rx.reject(ctx, refused(err))
	}
	memory := &bodyMemory{pool: rx.untrustedBodies}
	if in.plausible {
		memory.pool = rx.signedBodies
	}
	defer memory.release()
	body, err := rx.readBody(w, r, memory)
	switch {
	case errors.Is(err, errBodyMemory):
		return rx.reject(ctx, busy(err))
	case err != nil:
		return rx.reject(ctx, refused(err))
	}
	return rx.deliver(ctx, Delivery{Path: r.URL.Path, Header: r.Header, Body: body}, in.json)
}

// reject responds to a request that never becomes a delivery.
func (rx *Receiver) reject(ctx context.Context, r result) Response {
	rx.report(ctx, r.Observation)
	return responseOf(r)
}

// intake is what is known of a request before its body is read.
type intake struct {
	json      bool // the headers announce JSON
	plausible bool // the signature headers have the form of valid ones
}

// admit rejects a request whose body need not be read.
func (rx *Receiver) admit(w http.ResponseWriter, r *http.Request) (in intake, err error) {
	in.json = announcesJSON(r.Header)
	if rx.needsSignature(r.Header) {
		var s stamp
		s, err = rx.verifier.stampOf(r.Header)
		in.plausible = err == nil && rx.verifier.plausible(s)
	}
	switch {
	case !rx.secretPathMatches(r.URL.Path):
		err = errNotFound
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		err = errMethod
	case !in.json && !in.plausible:
		err = errMediaType
	case r.ContentLength > rx.cfg.MaxBody:
		err = errTooLarge
	}
	if err != nil && r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // don't read the body
	}
	return in, err
}

// announcesJSON reports whether a body is JSON according to its headers, or has
// no content type. Proxies repeat these headers and add malformed parameters
// and charsets. With a valid signature the headers do not matter: the body is
// what the gateway signed, whatever they say.
func announcesJSON(h http.Header) bool {
	for encoding := range elements(h, "Content-Encoding") {
		switch strings.ToLower(encoding) {
		case "identity", "utf-8", "utf8":
		default:
			return false // a signature covers the bytes as they are, so a compressed body is rejected
		}
	}
	for media := range elements(h, "Content-Type") {
		media, _, _ = strings.Cut(media, ";")
		media = strings.ToLower(strings.TrimSpace(media))
		switch {
		case media == "application/json", media == "text/json":
		case strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"):
		default:
			return false
		}
	}
	return true
}

// elements yields the elements of a header, whether they are in one line or in
// several.
func elements(h http.Header, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range values(h, name) {
			for element := range strings.SplitSeq(line, ",") {
				if element = strings.TrimSpace(element); element != "" && !yield(element) {
					return
				}
			}
		}
	}
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
