package gateway

import (
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
		problem = wire.DecodeProblem(res.Body)
	}
	e := r.newError(res, problem)
	switch {
	case r.class == transport.Safe, !res.Maybe && !isSuccess(res.Status):
		return e
	case e.Is(ErrValidation), e.duplicate:
		// The gateway judged these very bytes, so the attempt before was refused
		// too, or made what the reference names.
		return e
	default:
		return r.unknown(res, e)
	}
}

func isSuccess(status int) bool { return status >= 200 && status <= 299 }

// undecodable returns the error of a 2xx answer that can't be read.
func (r *request) undecodable(res *transport.Result, err error) error {
	if errors.Is(err, wire.ErrFailed) {
		problem := wire.DecodeProblem(res.Body)
		e := r.newError(res, problem)
		e.kind = problem.Status
		e.duplicate = problem.Status == http.StatusConflict && r.isDuplicate(problem.Code)
		return e
	}
	e := r.newError(res, wire.Problem{Title: "unreadable answer", RequestID: wire.DecodeProblem(res.Body).RequestID})
	e.Err = wire.DescribeError(err)
	if isRead(r.op.Method) {
		return e
	}
	return r.unknown(res, e)
}

// unknown returns the error of a write that may have been applied.
func (r *request) unknown(res *transport.Result, e *Error) error {
	o := &OutcomeError{Op: e.Op, Reference: e.Reference, Err: e}
	if isSuccess(res.Status) {
		o.ResourceID, o.ResourceStatus = wire.Salvage(res.Body)
	}
	return o
}

func (r *request) newError(res *transport.Result, p wire.Problem) *Error {
	r.answered(res, p.RequestID)
	e := &Error{
		Op: r.op.Name, StatusCode: res.Status,
		Type: p.Type, Title: p.Title, Detail: p.Detail, Instance: p.Instance, Code: p.Code,
		RequestID: firstOf(transport.RequestID(res.Header), p.RequestID), Reference: r.reference,
		RetryAfter: res.RetryAfter, Attempts: res.Attempts,
		Header: allowedHeader(res.Header), Err: res.Err, hopeless: res.Hopeless,
	}
	if res.Ended != nil {
		e.Err = res.Ended
	}
	for _, f := range p.Fields {
		e.Fields = append(e.Fields, FieldError(f))
	}
	if body := res.Body[:min(len(res.Body), maxErrorBody)]; len(body) > 0 {
		e.Body = append([]byte(nil), body...)
	}
	e.duplicate = res.Status == http.StatusConflict && r.isDuplicate(p.Code)
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
		RequestID:  firstOf(transport.RequestID(res.Header), requestID),
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
