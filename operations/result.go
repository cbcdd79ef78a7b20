package operations

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/doubt"
	"github.com/gateway-go/gateway/internal/sqldb"
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
	o.handlers[op.identity().kind] = func(ctx context.Context, in sqldb.Tx, entry *Entry, params Operation, out *outcome) error {
		tx, r := sqldb.User[TX](in), Result[O, R]{Entry: entry}
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

type handler func(ctx context.Context, tx sqldb.Tx, entry *Entry, op Operation, out *outcome) error

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

// kindOf returns the kind of a target of errors.Is, or "" if it is no rejection.
func kindOf(target error) string {
	if errors.Is(target, ErrAbandoned) {
		return "abandoned"
	}
	return doubt.Sentinel(target)
}

// rejectionOf returns err as a rejection, or nil if it is not conclusive.
func rejectionOf(err error) *RejectedError {
	r := &RejectedError{Kind: doubt.Kind(err), Text: err.Error()}
	if r.Kind == "" {
		return nil
	}
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
	kind := doubt.KindOfRepeat(err)
	e, ok := errors.AsType[*gateway.Error](err)
	if !ok || kind == "" {
		return nil
	}
	return &RejectedError{
		Kind: kind, Text: e.Error(), StatusCode: e.StatusCode, Code: e.Code, Fields: e.Fields, RequestID: e.RequestID, ResourceID: e.ResourceID,
	}
}
