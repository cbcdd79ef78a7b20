package operations

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/wire"
)

// Result is the outcome of an operation, for its handler.
type Result[O Operation, R any] struct {
	Entry     *Entry
	Operation O
	Value     *R    // what the gateway returned; nil if Err is set
	Err       error // a [*RejectedError]; nil if the operation was applied
}

// OnResult registers the handler of a kind of operation, by the type of its
// result:
//
//	operations.OnResult(outbox, func(ctx context.Context, tx *sql.Tx, r operations.RefundResult) error { … })
//
// The handler runs once the outcome is known, in a transaction that also marks
// the operation as done: its effects in tx happen exactly once. It gets
// rejections too, in Err: a failed validation, a conflict, an unknown resource.
// It must not commit or roll back tx. An error or a panic rolls back, and the
// handler runs again later with the same outcome; nothing is sent again. The commit
// erases the operation and its result: store what you need later.
//
// An operation without a handler is not sent by this process. Register
// handlers before workers start; a later handler of a kind replaces
// an earlier one.
func OnResult[O Returning[R], R, TX any](o *Outbox[TX], handle func(ctx context.Context, tx TX, r Result[O, R]) error) {
	var op O
	o.handlers[op.identity().kind] = func(ctx context.Context, tx TX, entry *Entry, params Operation, out *outcome) error {
		r := Result[O, R]{Entry: entry}
		r.Operation, _ = params.(O) // the kind determines the type
		if out.Rejection != nil {
			r.Err = out.Rejection
			return handle(ctx, tx, r)
		}
		r.Value = op.result()
		if err := json.Unmarshal(out.Value, r.Value, lenient()); err != nil {
			return fmt.Errorf("operations: the stored result can't be decoded: %w", err)
		}
		return handle(ctx, tx, r)
	}
}

// lenient decodes and encodes responses as the client does: an invalid
// character in a name must not hide a payment.
func lenient() json.Options {
	return json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func encodeResult(value any) (jsontext.Value, error) {
	encoded, err := json.Marshal(value, lenient())
	if err != nil {
		return nil, fmt.Errorf("operations: the result can't be encoded: %w", err)
	}
	return encoded, nil
}

type handler[TX any] func(ctx context.Context, tx TX, entry *Entry, op Operation, out *outcome) error

// outcome is the outcome of an operation.
type outcome struct {
	Value     jsontext.Value `json:"value,omitzero"`
	Rejection *RejectedError `json:"rejection,omitzero"`
}

// RejectedError reports why an operation was not applied and never will be. It
// matches the same sentinels as the client's own errors, such as
// [gateway.ErrConflict], or [ErrAbandoned] if a person abandoned the
// operation.
type RejectedError struct {
	Kind       string               `json:"kind"`
	Text       string               `json:"text"`
	StatusCode int                  `json:"status_code,omitzero"`
	Code       string               `json:"code,omitzero"`
	Fields     []gateway.FieldError `json:"fields,omitzero"`
	RequestID  string               `json:"request_id,omitzero"`
	ResourceID string               `json:"resource_id,omitzero"` // the existing resource with the same reference
}

// ErrAbandoned reports that a person resolved the operation with [Abandoned].
var ErrAbandoned = errors.New("operations: a person abandoned the operation")

// Error returns the gateway's message.
func (r *RejectedError) Error() string { return r.Text }

// Is reports whether target is the sentinel for r's kind.
func (r *RejectedError) Is(target error) bool {
	kind := kindOf(target)
	return kind != "" && (kind == r.Kind || kind == "conflict" && r.Kind == "duplicate")
}

// kindOf returns the name of the sentinel that err matches, or "" if err is not
// conclusive.
func kindOf(err error) string {
	switch {
	case errors.Is(err, gateway.ErrDuplicate):
		return "duplicate"
	case errors.Is(err, gateway.ErrConflict):
		return "conflict"
	case errors.Is(err, gateway.ErrValidation):
		return "validation"
	case errors.Is(err, gateway.ErrNotFound):
		return "not_found"
	case errors.Is(err, gateway.ErrRetired):
		return "retired"
	case errors.Is(err, ErrAbandoned):
		return "abandoned"
	default:
		return ""
	}
}

// rejectionOf returns err as a rejection, or nil if it is not conclusive.
func rejectionOf(err error) *RejectedError {
	r := &RejectedError{Kind: kindOf(err)}
	if r.Kind == "" || !byGateway(err) {
		return nil
	}
	r.Text = err.Error()
	if e, ok := errors.AsType[*gateway.Error](err); ok {
		r.StatusCode, r.Code, r.Fields, r.RequestID, r.ResourceID = e.StatusCode, e.Code, e.Fields, e.RequestID, e.ResourceID
	}
	if e, ok := errors.AsType[*gateway.ValidationError](err); ok {
		r.Fields = e.Fields
	}
	return r
}

// rejectionIn returns the error of a repeat as a rejection, or nil if the
// repeat was not rejected for good. The outcome of the first request is
// unknown.
func rejectionIn(err error) *RejectedError {
	e, ok := errors.AsType[*gateway.Error](err)
	if !ok || !byGateway(err) {
		return nil
	}
	r := &RejectedError{Text: e.Error(), StatusCode: e.StatusCode, Code: e.Code, Fields: e.Fields, RequestID: e.RequestID, ResourceID: e.ResourceID}
	switch status := e.StatusCode; {
	case status == 404:
		r.Kind = "not_found"
	case status == 409:
		r.Kind = "conflict"
	case status == 410:
		r.Kind = "retired"
	case status == 0 && len(e.Fields) > 0: // by the client, whose rules are stricter than those of the release that inserted it
		r.Kind = "validation"
	case status == 400, status == 422:
		r.Kind = "validation"
	default:
		return nil
	}
	return r
}

// byGateway reports whether the gateway itself, or the client before it sent
// anything, rejected the call. A proxy's page says nothing about the operation,
// and a key that is in use says that a request with it is.
func byGateway(err error) bool {
	e, ok := errors.AsType[*gateway.Error](err)
	if !ok {
		return errors.Is(err, gateway.ErrValidation) || errors.Is(err, ErrAbandoned)
	}
	if e.StatusCode == 0 {
		return true
	}
	inside, formatted := readRejection(e.Body)
	status := e.StatusCode
	if status < 300 { // with "success": false
		status = inside
	}
	switch status {
	case 400, 404, 409, 410, 422:
		return formatted && !strings.HasPrefix(strings.ToUpper(e.Code), "IDEMPOTENCY_KEY")
	}
	return false
}

// readRejection reports whether a body has one of the gateway's formats for
// errors, and the status that it contains. "message", "status" and an "error" in words
// are what proxies send too; an "error" that is a code is not.
func readRejection(body []byte) (status int, formatted bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(body), lenient())
	if dec.PeekKind() != '{' {
		return 0, false
	}
	_, _ = dec.ReadToken()
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			break
		}
		member, kind := name.String(), dec.PeekKind()
		value, err := dec.ReadValue()
		switch {
		case err != nil: // the body may have been cut
			return status, formatted
		case member == "status" && kind == '0':
			status, _ = strconv.Atoi(string(value))
		case member == "error" && kind == '"':
			code, _ := jsontext.AppendUnquote(nil, value)
			formatted = formatted || wire.IsCode(string(code))
		case member == "error" && kind == '{':
			inside, ok := readRejection(value)
			status, formatted = cmp.Or(status, inside), formatted || ok
		case slices.Contains([]string{"type", "title", "code", "errors", "validation_errors", "success"}, member):
			formatted = true
		}
	}
	return status, formatted
}
