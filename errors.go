package gateway

import (
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

// What went wrong, for errors.Is.
const (
	ErrValidation   sentinelError = "the request breaks a rule"                      // 400, 422, or found by Validate
	ErrUnauthorized sentinelError = "the credentials are missing or invalid"         // 401
	ErrForbidden    sentinelError = "the resource is forbidden to these credentials" // 403
	ErrNotFound     sentinelError = "there is no such resource"                      // 404
	ErrDuplicate    sentinelError = "the reference was used before"                  // 409 of a reference
	ErrConflict     sentinelError = "the resource's state does not allow it"         // any 409
	ErrRetired      sentinelError = "the endpoint is retired"                        // 410
	ErrRateLimited  sentinelError = "too many requests"                              // 429
	ErrServer       sentinelError = "the gateway failed"                             // 500 and above
	// ErrOutcomeUnknown is a write that was sent and may have been applied; see
	// [OutcomeError].
	ErrOutcomeUnknown sentinelError = "it is not known whether the request was applied"
)

// Error is a call that failed: refused by the gateway, or never answered.
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
	// answered it: a *[Transaction], *[Transfer], … as the call returns it.
	Existing any

	// Err is why there is no answer, or the error of the context that ended the
	// call; nil where the gateway refused it.
	Err error

	duplicate bool // a 409 of a reference
	hopeless  bool // another call would fail alike
	kind      int  // the status that the sentinels match, where it is not StatusCode
}

// Error says on one line what failed. It holds no secrets and no query.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("gateway: " + e.Op + ":")
	if e.StatusCode != 0 {
		b.WriteString(" " + strconv.Itoa(e.StatusCode))
		b.WriteString(" " + firstOf(e.Title, http.StatusText(e.StatusCode)))
	}
	if e.Code != "" {
		b.WriteString(" (" + e.Code + ")")
	}
	if e.Detail != "" && e.Detail != e.Title {
		b.WriteString(": " + e.Detail)
	}
	if len(e.Fields) > 0 {
		b.WriteString(": " + joinFields(e.Fields))
	}
	if e.Err != nil {
		b.WriteString(e.cause())
	}
	return oneLine(mask(b.String()) + e.context())
}

// cause returns the text of Err, as it stands behind the status.
func (e *Error) cause() string {
	text := strings.TrimPrefix(e.Err.Error(), "gateway: ")
	if e.StatusCode != 0 {
		return ": " + text
	}
	return " " + text
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
	status := e.StatusCode
	if e.kind != 0 {
		status = e.kind
	}
	switch target {
	case ErrValidation:
		return status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
	case ErrUnauthorized:
		return status == http.StatusUnauthorized
	case ErrForbidden:
		return status == http.StatusForbidden
	case ErrNotFound:
		return status == http.StatusNotFound
	case ErrDuplicate:
		return e.duplicate
	case ErrConflict:
		return status == http.StatusConflict || e.duplicate
	case ErrRetired:
		return status == http.StatusGone
	case ErrRateLimited:
		return status == http.StatusTooManyRequests
	case ErrServer:
		return status >= http.StatusInternalServerError
	default:
		return false
	}
}

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

// OutcomeError is a write that was sent and whose outcome nobody knows: the
// answer was lost, unreadable, or a failure of the gateway's. Do not simply
// send it again with another reference: that may pay twice.
//
//   - A create: find it by Reference ([TransactionsService.FindByExternalRef]),
//     or repeat it with the same reference, which the gateway refuses as
//     [ErrDuplicate] where the first one was applied.
//   - Any other write: read the resource and see whether it changed.
//
// errors.Is(err, [ErrOutcomeUnknown]) holds; errors.As finds the [*Error]
// behind it too.
type OutcomeError struct {
	Op             string
	Reference      string // the reference that was sent, also one that the client made
	ResourceID     string // where the answer, though unreadable, names what has the reference: an older one too
	ResourceStatus string // as ResourceID
	Err            error  // an *Error
}

// Error says what is not known, and why.
func (e *OutcomeError) Error() string {
	text := "gateway: " + e.Op + ": the outcome is unknown"
	if e.ResourceID != "" {
		text += ", the answer names the resource " + e.ResourceID
	}
	if e.Err != nil {
		text += ": " + strings.TrimPrefix(e.Err.Error(), "gateway: "+e.Op+": ")
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
