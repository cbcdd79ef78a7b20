package gateway

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/go-querystring/query"

	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/transport"
	"github.com/gateway-go/gateway/internal/wire"
)

// sentinelError is the type of the sentinel errors. They are constants, so that
// no package can change them.
type sentinelError string

func (e sentinelError) Error() string { return "gateway: " + string(e) }

// The kinds of errors, for errors.Is. The package documentation says how to
// handle each of them. Every error matches exactly one, except that a duplicate
// matches both ErrDuplicate and ErrConflict.
const (
	// ErrOutcomeUnknown means that a write was sent and may have been applied;
	// see [OutcomeError]. The [Error] that it wraps has the gateway's
	// response. No other sentinel matches such an error, so it can't be mistaken
	// for a rejection.
	ErrOutcomeUnknown sentinelError = "it is not known whether the request was applied"
	// ErrNotSent means that the request was not sent: the gateway could not be
	// reached (dial, DNS, TLS, proxy), there was no credential for it, a [Gate]
	// refused it, or the context ended first. Nothing was applied.
	ErrNotSent sentinelError = "the request was not sent"

	ErrValidation   sentinelError = "the request is invalid"                 // 400, 422, or detected before sending
	ErrUnauthorized sentinelError = "the credentials are missing or invalid" // 401
	ErrForbidden    sentinelError = "the credentials do not allow access"    // 403
	ErrNotFound     sentinelError = "there is no such resource"              // 404
	ErrDuplicate    sentinelError = "the reference was used before"          // 409 for a reused reference or idempotency key
	ErrConflict     sentinelError = "the resource's state does not allow it" // any 409, and 412
	ErrRetired      sentinelError = "the endpoint is retired"                // 410, also for a checkout link or session that has ended
	ErrRateLimited  sentinelError = "too many requests"                      // 429
	// ErrServer means that the gateway failed or could not be reached: 5xx, no
	// response to a read, or a response that the interface does not define, such
	// as a redirect or the page of a proxy.
	ErrServer sentinelError = "the gateway failed"
)

// Error reports a call that was rejected by the gateway or got no response.
// Use errors.Is with the Err… constants for its kind, and errors.As for the
// details.
type Error struct {
	Op         string // the operation: "transactions.create"
	StatusCode int    // of the response; 0 if there was none

	// From the body; "" if missing.
	Type     string // a URI that names the kind of problem
	Title    string
	Detail   string
	Instance string
	Code     string // machine-readable: DUPLICATE_EXTERNAL_REF
	Fields   []FieldError

	RequestID  string        // the gateway's trace id, for support requests
	Reference  string        // the reference that was sent, even if it was generated
	RetryAfter time.Duration // from the Retry-After header; 0 without one, at most 24 hours
	Attempts   int           // how many requests were made
	Header     http.Header   // of the response, without secrets
	Body       []byte        // of the response, at most 4 KiB; it may contain personal data

	// Existing is the resource that already has the reference, if the gateway
	// returned it. It has the type that the call returns, such as
	// *[Transaction] or *[Transfer].
	Existing any
	// ResourceID is the id of the resource that already has the reference, if a
	// 409 names it. Read that resource instead of creating another. Live
	// gateways name no id, and ResourceID is "". Pass it to [FindOptions] in
	// either case: without an id, [TransactionsService.FindByExternalRef]
	// searches for the reference.
	ResourceID string

	// Err is the reason why there is no response, or the error of the context
	// that ended the call; nil if the gateway rejected the call.
	Err error

	duplicate bool // a 409 for a reused reference
	otherBody bool // a 409 for an idempotency key that was used with another body
	notSent   bool // no attempt was sent
	unknown   bool // inside an OutcomeError: the response is inconclusive
	permanent bool // a repeat of the call would fail too
	kind      int  // the status that the sentinels match, if it is not StatusCode

	sent *masking.Sent // the values of the request; nil if the response echoes none
}

// Error returns a one-line message without secrets or queries.
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
		parts[len(parts)-1] = strings.TrimRight(parts[len(parts)-1], ".")
		parts = append(parts, strings.TrimPrefix(e.Err.Error(), "gateway: "))
	}
	return oneLine(e.sent.Text(strings.Join(parts, ": "), masking.Message) + e.context())
}

// context returns the details that identify the call.
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

// Unwrap returns Err, so that errors.Is matches context.Canceled and the like.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether e is an error of the kind target.
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

// status is the status that decides which sentinel matches.
func (e *Error) status() int { return cmp.Or(e.kind, e.StatusCode) }

// LogValue returns the attributes that are safe to log.
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

// Format writes the result of Error, for every verb.
func (e Error) Format(f fmt.State, verb rune) { formatError(f, verb, e.Error()) }

// MarshalJSON writes the exported fields, in a log of log/slog only the text of
// the error.
func (e Error) MarshalJSON() ([]byte, error) {
	if masking.Logging() {
		return json.Marshal(e.Error())
	}
	type plain Error
	return json.Marshal((*plain)(&e)) //nolint:musttag // an error has no wire format
}

// formatError writes an error's text, in quotes for %q.
func formatError(f fmt.State, verb rune, text string) {
	if verb == 'q' {
		text = strconv.Quote(text)
	}
	_, _ = io.WriteString(f, text)
}

// OutcomeError reports a write that was sent and may have been applied: the
// response was lost or unreadable, the gateway failed, or it rejected a retry
// for a reason that the first request may have caused. Repeating the write with
// another reference may pay twice. Instead:
//
//   - Repeat a create with the same params and [RepeatOf], or in another process
//     with the same reference and [FirstSent]; or look a transaction up by its
//     Reference with [TransactionsService.FindByExternalRef].
//   - If the client uses [WithIdempotencyKeys], repeat a POST or PUT on v2
//     with the same params and [RepeatOf], or with the same IdempotencyKey.
//   - After any other write, wait a few minutes, because it may still be
//     applied. Then read the resource and check whether it changed.
//
// It matches [ErrOutcomeUnknown] and no other sentinel; errors.As finds the
// [*Error] with the gateway's response.
type OutcomeError struct {
	Op             string
	Reference      string    // the reference that was sent, even if it was generated
	IdempotencyKey string    // the key that was sent in the header, even if it was generated; "" for none
	ResourceID     string    // of the resource that a response named, which may be an older one with the same reference
	ResourceStatus string    // the status of that resource
	Sent           time.Time // when the write was first sent, by this machine's clock: see FirstSent
	Err            error     // an *Error

	account Account // of the client
}

// Error returns a one-line message with the operation and the reason.
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

// Unwrap returns Err.
func (e *OutcomeError) Unwrap() error { return e.Err }

// Is reports whether target is [ErrOutcomeUnknown].
func (*OutcomeError) Is(target error) bool { return target == ErrOutcomeUnknown }

// LogValue returns the attributes that are safe to log.
func (e *OutcomeError) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("op", e.Op),
		slog.String("reference", e.Reference),
		slog.String("idempotency_key", e.IdempotencyKey),
		slog.String("resource_id", e.ResourceID),
		slog.String("error", e.Error()),
	)
}

// FieldError is an invalid field of a request, reported by the gateway or,
// before anything is sent, by Validate.
type FieldError struct {
	Field   string `json:"field"`   // "amount", "buyer.address.city", "products[0].name"
	Message string `json:"message"` // the rule in words
	Code    string `json:"code"`    // such as required, invalid_type, too_small, too_big, invalid_string or invalid_enum_value
}

// ValidationError lists the invalid fields of a request that was not sent. Like
// a rejection by the gateway, it matches [ErrValidation].
type ValidationError struct {
	Op     string       // the operation: "transactions.create"; "" from Validate
	Fields []FieldError // at least one
}

// Error returns a one-line message with the fields and the rules they break.
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

// maxErrorBody is the maximum size of Error.Body.
const maxErrorBody = 4 << 10

// failure returns the error for a response, or for its absence; nil for a
// complete 2xx response.
func (r *request) failure(res *transport.Result) error {
	if res.Err == nil && res.Ended == nil && isSuccess(res.Status) {
		return nil
	}
	problem := wire.Problem{}
	if !isSuccess(res.Status) {
		problem = wire.DecodeProblem(concealed(res))
	}
	e := r.newError(res, problem)
	if isSuccess(res.Status) { // and its body is incomplete
		return r.inconclusive(res, e)
	}
	return r.rejected(res, e)
}

// rejected returns the error for a response that rejects the request. Only the
// last attempt is certain to have had no effect: an earlier attempt may have been
// applied and have caused the rejection (a used token, a spent balance), whatever
// the status.
func (r *request) rejected(res *transport.Result, e *Error) error {
	if res.MayHaveApplied && !e.otherBody {
		return r.inconclusive(res, e)
	}
	return e
}

// inconclusive returns e for a read, and an OutcomeError for a write.
func (r *request) inconclusive(res *transport.Result, e *Error) error {
	if isRead(r.op.Method) {
		return e
	}
	e.unknown = true
	o := &OutcomeError{Op: e.Op, Reference: e.Reference, IdempotencyKey: r.key, ResourceID: e.ResourceID, Sent: res.Started, Err: e, account: r.client.Account()}
	if isSuccess(res.Status) {
		o.ResourceID, o.ResourceStatus = wire.ExtractIdentity(res.Body)
	}
	return o
}

func isSuccess(status int) bool { return status >= 200 && status <= 299 }

// undecodable returns the error for a 2xx response without a resource.
func (r *request) undecodable(res *transport.Result, err error) error {
	if errors.Is(err, wire.ErrFailed) {
		problem := wire.DecodeProblem(concealed(res))
		e := r.newError(res, problem)
		if !transport.Rejection(&problem) { // the gateway failed, or does not say why
			e.kind = http.StatusBadGateway
			return r.inconclusive(res, e)
		}
		return r.rejected(res, e)
	}
	e := r.newError(res, wire.Problem{Title: "unreadable response", RequestID: wire.DecodeProblem(concealed(res)).RequestID})
	e.Err = wire.DescribeError(err)
	return r.inconclusive(res, e)
}

func (r *request) newError(res *transport.Result, p wire.Problem) *Error {
	r.fillResponse(res, p.RequestID)
	e := &Error{
		Op: r.op.Name, StatusCode: res.Status,
		Type: p.Type, Title: p.Title, Detail: p.Detail, Instance: p.Instance, Code: p.Code,
		RequestID: cmp.Or(res.RequestID(), p.RequestID), Reference: r.reference,
		RetryAfter: res.RetryAfter, Attempts: res.Attempts,
		Header: allowedHeader(res.Header), Err: res.Err, permanent: res.Permanent,
		notSent: res.Status == 0 && !res.MayHaveApplied,
	}
	switch {
	case isSuccess(res.Status):
		e.kind = p.Status // an error in the body of a 200 may have its own status
	case res.Status != 0 && !res.Definite:
		e.kind = http.StatusBadGateway
		if !wire.FromGateway(res.Body) && res.Status < 500 {
			e.Detail = strings.TrimSuffix("the response does not have the format of the gateway ("+
				cmp.Or(res.Header.Get("Content-Type"), "no Content-Type")+"), so it may come from a proxy: "+e.Detail, ": ")
		}
	}
	if res.Ended != nil {
		e.Err = res.Ended
	}
	for _, f := range p.Fields {
		e.Fields = append(e.Fields, FieldError(f))
	}
	if body := concealed(res); len(body) > 0 {
		e.Body = append([]byte(nil), body[:min(len(body), maxErrorBody)]...)
	}
	if e.status() == http.StatusConflict {
		e.ResourceID = idIn(p.Instance, r.op.Path)
		e.otherBody = r.key != "" && strings.HasPrefix(p.Code, "IDEMPOTENCY_KEY")
		e.duplicate = e.otherBody || r.reference != "" || strings.HasPrefix(p.Code, "DUPLICATE") // a 409 about the reference
	}
	if e.otherBody && (e.Detail == "" || e.Detail == e.Title) {
		e.Detail = "the idempotency key " + r.key + " was used before with another request: " +
			"repeat that one unchanged, or use a new key for a new request"
	}
	e.conceal(&res.Secrets)
	e.maskEchoes(r)
	return e
}

// maskEchoes masks the personal data of the request wherever the gateway repeats it:
// what was sent is known, whatever its form. References stay readable.
func (e *Error) maskEchoes(r *request) {
	e.sent = new(masking.Sent)
	e.sent.Learn(r.body)
	for name, values := range r.query {
		for _, value := range values {
			e.sent.LearnParameter(name, value)
		}
	}
	texts := []*string{&e.Title, &e.Detail, &e.Instance}
	for i := range e.Fields {
		texts = append(texts, &e.Fields[i].Field, &e.Fields[i].Message)
	}
	for _, text := range texts {
		*text = e.sent.Text(*text, func(s string) string { return s })
	}
}

// fillResponse fills the Response of [ResponseInto], if there is one.
func (r *request) fillResponse(res *transport.Result, requestID string) {
	if r.o.response == nil {
		return
	}
	*r.o.response = Response{
		StatusCode: res.Status,
		RequestID:  cmp.Or(res.RequestID(), res.Secrets.Hide(requestID)),
		Header:     res.Header,
		Attempts:   res.Attempts,
		Reference:  r.reference,
	}
}

// allowedHeader copies the headers that can't contain a secret.
func allowedHeader(from http.Header) http.Header {
	to := http.Header{}
	for _, name := range [...]string{
		"Allow", "Content-Type", "Date", "Etag", "Retry-After", "Server", "Via", "X-Request-Id",
		"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
	} {
		if values := from[name]; len(values) > 0 {
			to[name] = values
		}
	}
	return to
}

// validate checks params in their encoded form, which is exactly what would be
// sent.
func validate(params any, rule spec.Rule) error {
	body, err := encodeRequest(params)
	if err != nil {
		return err
	}
	found, err := spec.Check(body, rule, spec.Variant{Dialect: spec.ClientDialect})
	if err != nil {
		return err
	}
	return violations("", found)
}

// queryOf returns params as a query. The gateway splits lists at commas, so a
// value that contains one would be read as two.
func queryOf(op string, params any) (url.Values, error) {
	var found []spec.Violation
	for name, list := range joinedLists(params) {
		for i, value := range list {
			if strings.Contains(value, ",") {
				found = append(found, spec.Violation{
					Field: fmt.Sprintf("%s[%d]", name, i), Code: spec.CodeInvalid,
					Message: "must not contain a comma: the gateway splits the list of values at commas",
				})
			}
		}
	}
	if len(found) > 0 {
		return nil, violations(op, found)
	}
	values, err := query.Values(params)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return values, nil
}

// joinedLists iterates over the lists of strings in params that are sent as one
// comma-separated parameter.
func joinedLists(params any) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		v := reflect.Indirect(reflect.ValueOf(params))
		if v.Kind() != reflect.Struct {
			return
		}
		for i := range v.NumField() {
			name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("url"), ",")
			f := v.Field(i)
			if f.Kind() != reflect.Slice || f.Type().Elem().Kind() != reflect.String || !strings.Contains(options, "comma") {
				continue
			}
			list := make([]string, f.Len())
			for n := range list {
				list[n] = f.Index(n).String()
			}
			if !yield(name, list) {
				return
			}
		}
	}
}

// violations returns the violations as an error, or nil if there are none.
func violations(op string, found []spec.Violation) error {
	if len(found) == 0 {
		return nil
	}
	e := &ValidationError{Op: op, Fields: make([]FieldError, len(found))}
	for i, v := range found {
		e.Fields[i] = FieldError(v)
	}
	return e
}

// oneLine makes a string safe for one line of a log.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// concealed returns a copy of a response's body without the credentials of the request.
// They are removed before the body is truncated, so that no part of one remains.
func concealed(res *transport.Result) []byte { return []byte(res.Secrets.Hide(string(res.Body))) }

// conceal removes the request's credentials from e: a gateway or a proxy may echo
// a header in its response.
func (e *Error) conceal(secrets *transport.Secrets) {
	texts := []*string{&e.Type, &e.Title, &e.Detail, &e.Instance, &e.Code, &e.RequestID}
	for i := range e.Fields {
		f := &e.Fields[i]
		texts = append(texts, &f.Field, &f.Message, &f.Code)
	}
	for _, text := range texts {
		*text = secrets.Hide(*text)
	}
	for name, values := range e.Header {
		shown := make([]string, len(values))
		for i, value := range values {
			shown[i] = secrets.Hide(value)
		}
		e.Header[name] = shown
	}
	e.Err = secrets.HideErr(e.Err)
}
