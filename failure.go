package gateway

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/gateway-go/gateway/internal/transport"
	"github.com/gateway-go/gateway/internal/wire"
)

// maxErrorBody bounds what an Error keeps of a body.
const maxErrorBody = 4 << 10

// failure returns the error that an answer, or the lack of one, stands for;
// nil for a 2xx that came whole.
func (r *request) failure(res *transport.Result) error {
	if res.Err == nil && res.Ended == nil && isSuccess(res.Status) {
		return nil
	}
	problem := wire.Problem{}
	if !isSuccess(res.Status) {
		problem = wire.DecodeProblem(concealed(res))
	}
	e := r.newError(res, problem)
	if isSuccess(res.Status) { // and its body is not whole
		return r.doubt(res, e)
	}
	return r.rejected(res, e)
}

// rejected returns the error of a response that says that nothing was done. It
// says so of one attempt: where an earlier one may have been applied it may be
// just what caused the rejection (a token that is used, a balance that is
// spent), whatever the status.
func (r *request) rejected(res *transport.Result, e *Error) error {
	if res.Maybe && !e.otherBody {
		return r.doubt(res, e)
	}
	return e
}

// doubt returns e for a read, and for a write that its outcome is not known.
func (r *request) doubt(res *transport.Result, e *Error) error {
	if isRead(r.op.Method) {
		return e
	}
	e.unknown = true
	o := &OutcomeError{Op: e.Op, Reference: e.Reference, IdempotencyKey: r.key, ResourceID: e.ResourceID, Err: e}
	if isSuccess(res.Status) {
		o.ResourceID, o.ResourceStatus = wire.Salvage(res.Body)
	}
	return o
}

func isSuccess(status int) bool { return status >= 200 && status <= 299 }

// undecodable returns the error of a 2xx response that holds no resource.
func (r *request) undecodable(res *transport.Result, err error) error {
	if errors.Is(err, wire.ErrFailed) {
		problem := wire.DecodeProblem(concealed(res))
		return r.rejected(res, r.newError(res, problem))
	}
	e := r.newError(res, wire.Problem{Title: "unreadable answer", RequestID: wire.DecodeProblem(concealed(res)).RequestID})
	e.Err = wire.DescribeError(err)
	return r.doubt(res, e)
}

func (r *request) newError(res *transport.Result, p wire.Problem) *Error {
	r.answered(res, p.RequestID)
	e := &Error{
		Op: r.op.Name, StatusCode: res.Status,
		Type: p.Type, Title: p.Title, Detail: p.Detail, Instance: p.Instance, Code: p.Code,
		RequestID: cmp.Or(res.RequestID(), p.RequestID), Reference: r.reference,
		RetryAfter: res.RetryAfter, Attempts: res.Attempts,
		Header: allowedHeader(res.Header), Err: res.Err, hopeless: res.Hopeless,
		notSent: res.Status == 0 && !res.Maybe,
	}
	if isSuccess(res.Status) {
		e.kind = p.Status // a failure in a 200 may say what it is
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
		e.duplicate = e.otherBody || r.isDuplicate(p.Code)
	}
	if e.otherBody && (e.Detail == "" || e.Detail == e.Title) {
		e.Detail = "the idempotency key " + r.key + " was used before with another request: " +
			"repeat that one unchanged, or use a new key for a new request"
	}
	e.conceal(&res.Secrets)
	return e
}

// isDuplicate reports whether a 409 is about the reference.
func (r *request) isDuplicate(code string) bool {
	return r.reference != "" || strings.HasPrefix(code, "DUPLICATE")
}

// answered fills the caller's Response.
func (r *request) answered(res *transport.Result, requestID string) {
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

// allowedHeader copies the headers that hold no secret.
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
