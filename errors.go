package gateway

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// sentinelError is what errors.Is compares with. The sentinels are constants,
// so that no package can change them.
type sentinelError string

func (e sentinelError) Error() string { return "gateway: " + string(e) }

// What went wrong and so what to do, for errors.Is. Every error of every method
// is exactly one of them, but for ErrDuplicate, which is ErrConflict too. The
// manual says what to do for each.
const (
	// ErrOutcomeUnknown is a write that was sent and may have been applied; see
	// [OutcomeError]. What the gateway said is in the [Error] that it wraps; no
	// other sentinel matches, so that "rejected" is never read into it.
	ErrOutcomeUnknown sentinelError = "it is not known whether the request was applied"
	// ErrNotSent is a request that never left: the gateway could not be reached
	// (dial, DNS, TLS, proxy), there was no credential for it, or the context
	// ended first. Nothing was applied.
	ErrNotSent sentinelError = "the request was not sent"

	ErrValidation   sentinelError = "the request breaks a rule"                      // 400, 422, another 4xx, or found before it was sent
	ErrUnauthorized sentinelError = "the credentials are missing or invalid"         // 401
	ErrForbidden    sentinelError = "the resource is forbidden to these credentials" // 403
	ErrNotFound     sentinelError = "there is no such resource"                      // 404
	ErrDuplicate    sentinelError = "the reference was used before"                  // 409 of a reference or an idempotency key
	ErrConflict     sentinelError = "the resource's state does not allow it"         // any 409, and 412
	ErrRetired      sentinelError = "the endpoint is retired"                        // 410
	ErrRateLimited  sentinelError = "too many requests"                              // 429
	// ErrServer is a gateway that failed: 5xx, 408, no response to a read, or a
	// response that the interface does not define, such as a redirect.
	ErrServer sentinelError = "the gateway failed"
)

// Error is a call that failed: rejected by the gateway, or without a response.
// errors.Is tells the kinds apart with the Err… constants; errors.As gives
// the details.
type Error struct {
	Op         string // the operation: "transactions.create"
	StatusCode int    // of the answer; 0 where there was none

	// What the body says. Each is "" where the body does not say it.
	Type     string // a URI that names the kind of problem
	Title    string
	Detail   string
	Instance string
	Code     string // machine-readable: DUPLICATE_EXTERNAL_REF
	Fields   []FieldError

	RequestID  string        // the gateway's trace id, for its support
	Reference  string        // the reference that was sent, also one that the client made
	RetryAfter time.Duration // how long the gateway asks to wait; 0 where it does not
	Attempts   int           // how many requests were made
	Header     http.Header   // of the answer, those that hold no secret
	Body       []byte        // of the answer, at most 4 KiB; it may hold personal data

	// Existing is the older resource that has the reference, where the gateway
	// returned it: a *[Transaction], *[Transfer], … as the call returns it.
	Existing any
	// ResourceID is the id of the resource that has the reference, where a 409
	// names it: read it instead of creating it again.
	ResourceID string

	// Err is why there is no response, or the error of the context that ended
	// the call; nil where the gateway rejected it.
	Err error

	duplicate bool // a 409 of a reference
	otherBody bool // a 409 of an idempotency key that was used with another body
	notSent   bool // no attempt left
	unknown   bool // inside an OutcomeError: what was said settles nothing
	hopeless  bool // another call would fail alike
	kind      int  // the status that the sentinels match, where it is not StatusCode
}

// Error says on one line what failed. It holds no secrets and no query.
func (e *Error) Error() string {
	parts := []string{"gateway: " + e.Op}
	if e.StatusCode != 0 {
		parts = append(parts, strconv.Itoa(e.StatusCode)+" "+cmp.Or(e.Title, http.StatusText(e.StatusCode)))
	}
	if e.Code != "" {
		parts[len(parts)-1] += " (" + e.Code + ")"
	}
	fields := joinFields(e.Fields)
	if said := parts[len(parts)-1] + " " + fields; !strings.Contains(said, strings.TrimRight(e.Detail, ".")) {
		parts = append(parts, e.Detail)
	}
	if fields != "" {
		parts[len(parts)-1] = strings.TrimRight(parts[len(parts)-1], ".")
		parts = append(parts, fields)
	}
	if e.Err != nil {
		parts = append(parts, strings.TrimPrefix(e.Err.Error(), "gateway: "))
	}
	return oneLine(mask(strings.Join(parts, ": ")) + e.context())
}

// context returns what helps to find the call again.
func (e *Error) context() string {
	var parts []string
	if e.Attempts > 1 {
		parts = append(parts, strconv.Itoa(e.Attempts)+" attempts")
	}
	if e.RetryAfter > 0 {
		parts = append(parts, "retry after "+e.RetryAfter.String())
	}
	if e.Reference != "" {
		parts = append(parts, "reference "+e.Reference)
	}
	if e.RequestID != "" {
		parts = append(parts, "request id "+e.RequestID)
	}
	if len(parts) == 0 {
		return ""
	}
	return " [" + strings.Join(parts, ", ") + "]"
}

// Unwrap returns Err, so that errors.Is finds context.Canceled and the like.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether e is of the kind that target names.
func (e *Error) Is(target error) bool {
	if e.unknown {
		return false
	}
	sentinel := e.sentinel()
	return target == sentinel || target == ErrConflict && sentinel == ErrDuplicate
}

func (e *Error) sentinel() sentinelError {
	switch status := e.status(); {
	case e.duplicate:
		return ErrDuplicate
	case e.notSent:
		return ErrNotSent
	case status == http.StatusUnauthorized:
		return ErrUnauthorized
	case status == http.StatusForbidden:
		return ErrForbidden
	case status == http.StatusNotFound:
		return ErrNotFound
	case status == http.StatusConflict, status == http.StatusPreconditionFailed:
		return ErrConflict
	case status == http.StatusGone:
		return ErrRetired
	case status == http.StatusTooManyRequests:
		return ErrRateLimited
	case status >= 400 && status <= 499 && status != http.StatusRequestTimeout:
		return ErrValidation
	default:
		return ErrServer
	}
}

// status is the one that the sentinels go by.
func (e *Error) status() int { return cmp.Or(e.kind, e.StatusCode) }

// LogValue groups what a log may show.
func (e *Error) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("op", e.Op),
		slog.Int("status", e.StatusCode),
		slog.String("code", e.Code),
		slog.String("request_id", e.RequestID),
		slog.String("reference", e.Reference),
		slog.Int("attempts", e.Attempts),
		slog.String("error", e.Error()),
	)
}

// OutcomeError is a write that was sent and may have been applied: the response
// was lost or unreadable, the gateway failed, or it rejected a repeat for a
// reason that the first request may have caused. Do not send it again with
// another reference: that may pay twice.
//
//   - A create: find it by Reference ([TransactionsService.FindByExternalRef]),
//     or repeat it with the same reference, which the gateway rejects as
//     [ErrDuplicate] where the first one was applied.
//   - A write with an IdempotencyKey, of a client with [WithIdempotencyKeys]:
//     repeat it with that key and the same params.
//   - Any other write: read the resource and see whether it changed.
//
// errors.Is(err, [ErrOutcomeUnknown]) holds and no other sentinel does;
// errors.As finds the [*Error] with what the gateway said.
type OutcomeError struct {
	Op             string
	Reference      string // the reference that was sent, also one that the client made
	IdempotencyKey string // the header that was sent, also one that the client made; "" for none
	ResourceID     string // where a response names what has the reference: an older one too
	ResourceStatus string // as ResourceID
	Err            error  // an *Error
}

// Error says what is not known, and why.
func (e *OutcomeError) Error() string {
	text := "gateway: " + e.Op + ": the outcome is unknown"
	if e.ResourceID != "" {
		text += ", the response names the resource " + e.ResourceID
	}
	if e.Err != nil {
		text += ": " + strings.TrimPrefix(e.Err.Error(), "gateway: "+e.Op+": ")
	}
	if e.IdempotencyKey != "" {
		text += " [idempotency key " + e.IdempotencyKey + "]"
	}
	return oneLine(text)
}

// Unwrap returns what went wrong.
func (e *OutcomeError) Unwrap() error { return e.Err }

// Is reports whether target is [ErrOutcomeUnknown].
func (*OutcomeError) Is(target error) bool { return target == ErrOutcomeUnknown }

// LogValue groups what a log may show.
func (e *OutcomeError) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("op", e.Op),
		slog.String("reference", e.Reference),
		slog.String("idempotency_key", e.IdempotencyKey),
		slog.String("resource_id", e.ResourceID),
		slog.String("error", e.Error()),
	)
}

// FieldError is one broken rule of a request, found by the gateway or, before
// anything was sent, by Validate.
type FieldError struct {
	Field   string `json:"field"`   // the member: "amount", "buyer.address.city", "products[0].name"
	Message string `json:"message"` // the rule in words
	Code    string `json:"code"`    // required, invalid_type, too_small, too_big, invalid_string, invalid_enum_value
}

// ValidationError says which members of a request break which rules. It is
// found before anything is sent; errors.Is(err, [ErrValidation]) holds for it
// as for the gateway's own refusal.
type ValidationError struct {
	Op     string       // the operation: "transactions.create"; "" from Validate
	Fields []FieldError // at least one
}

// Error lists every member and its rule on one line.
func (e *ValidationError) Error() string {
	op := e.Op
	if op != "" {
		op += ": "
	}
	return "gateway: " + op + "invalid request: " + joinFields(e.Fields)
}

// Is reports whether target is [ErrValidation].
func (*ValidationError) Is(target error) bool { return target == ErrValidation }

func joinFields(fields []FieldError) string {
	parts := make([]string, 0, len(fields))
	for i, f := range fields {
		if i == 20 {
			parts = append(parts, fmt.Sprintf("and %d more", len(fields)-i))
			break
		}
		parts = append(parts, strings.TrimSpace(f.Field+" "+f.Message))
	}
	return strings.Join(parts, "; ")
}
