package operations

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
)

// Operation is one call to the gateway that changes something:
// [CreateTransaction], [Refund], [CreateTransfer], [CancelTransfer],
// [CreateCustomer], [CreateSubscription], [UpdateSubscription] or [CancelSubscription].
//
// You choose the key of each: the reference of a create, the Key field of the
// others. It identifies the operation ("return-17"): inserting an operation
// whose key is already in use returns the existing one.
type Operation interface {
	// Validate checks the operation as [Outbox.InsertTx] does. The error is a
	// [gateway.ValidationError].
	Validate() error

	identity() identity
	// begin reads the resource that the request will change. If there is
	// nothing left to do, it returns the result, and a [RejectedError] if the
	// operation itself forbids to send it now.
	begin(ctx context.Context, s *session) (before snapshot, already any, err error)
	// send makes the request once.
	send(ctx context.Context, s *session, before *snapshot) (any, error)
	// look finds out the outcome of a request whose response was lost.
	look(ctx context.Context, s *session, before *snapshot) (verdict, error)
	// decided returns the result of an operation that a person resolved as Applied.
	decided(ctx context.Context, s *session, before *snapshot, resourceID string) (any, error)
	// differs says how a resource differs from what the operation creates or
	// results in; "" if it does not.
	differs(value any) string
	// repeat returns how the request can be repeated safely.
	repeat() repeatability
}

// Returning is an [Operation] whose result is an R, for generic handlers.
type Returning[R any] interface {
	Operation
	result() *R
}

var (
	_ Returning[gateway.Transaction]  = CreateTransaction{}
	_ Returning[gateway.Refund]       = Refund{}
	_ Returning[gateway.Transfer]     = CreateTransfer{}
	_ Returning[gateway.Transfer]     = CancelTransfer{}
	_ Returning[gateway.Customer]     = CreateCustomer{}
	_ Returning[gateway.Subscription] = CreateSubscription{}
	_ Returning[gateway.Subscription] = UpdateSubscription{}
	_ Returning[gateway.Subscription] = CancelSubscription{}
)

// identity is the key under which an operation is stored.
type identity struct {
	kind     string // "transactions.refund"
	key      string
	resource string // "transactions/ID": operations on it are sent one at a time; "" for a create
}

// resource returns the name of the resource; operations on the same one wait
// for each other. Ids ignore case.
func resource(collection, id string) string { return collection + "/" + strings.ToLower(id) }

// repeatability is how a request can be repeated safely after a lost response.
type repeatability uint8

const (
	byReading        repeatability = iota // only after reading the resource
	byIdempotencyKey                      // with the header, if the gateway honors it
	byReference                           // with the reference in the body
)

// snapshot is stored before a request is sent: the state of the resource, and
// what the request asks for.
type snapshot struct {
	Status         string                `json:"status,omitzero"`
	RefundedAmount int64                 `json:"refunded_amount,omitzero"`
	Refund         int64                 `json:"refund,omitzero"` // requested cents; the whole remainder if Full is set
	Full           bool                  `json:"full,omitzero"`
	Reached        bool                  `json:"reached,omitzero"`  // nothing is left to refund
	Settings       *subscriptionSettings `json:"settings,omitzero"` // of a subscription
}

// reachedBy reports whether a refund that was sent in state s is in the amount
// that is refunded now.
func (s *snapshot) reachedBy(now *snapshot) bool {
	if s.Full {
		return now.RefundedAmount > s.RefundedAmount && now.Reached
	}
	return s.Refund > 0 && now.RefundedAmount >= s.RefundedAmount+s.Refund
}

// verdict is the conclusion from a read about a request whose response was
// lost.
type verdict struct {
	finding finding
	result  any    // if it was applied
	why     string // why the outcome is unclear
}

type finding uint8

const (
	notApplied finding = iota
	applied
	unclear
)

// errStale reports that a read is older than the stored state, as from a
// replica that lags behind.
var errStale = errors.New("the gateway returned an older state than in an earlier read")

// session is the context in which an operation is sent.
type session struct {
	client   *gateway.Client
	options  []gateway.RequestOption // for writes
	timeout  time.Duration
	refunded int64     // the minimum refunded_amount that the resource can have
	unsent   bool      // the operation was never sent
	since    time.Time // when the request in doubt was first sent
	sent     time.Time // when it was last sent

	search      *search
	searchUntil time.Time // when a search is left to the next attempt
	maxPages    int       // of a search
}

// read returns the options for a read.
func (s *session) read() []gateway.RequestOption {
	return []gateway.RequestOption{gateway.MaxAttempts(1), gateway.AttemptTimeout(s.timeout)}
}

// readPages returns the options for reading many pages. Each page is retried.
func (s *session) readPages() []gateway.RequestOption {
	return []gateway.RequestOption{gateway.AttemptTimeout(s.timeout)}
}

// newOperation decodes a stored operation.
func newOperation(kind string, params []byte) (Operation, error) {
	switch kind {
	case kindCreateTransaction:
		return decode[CreateTransaction](params)
	case kindRefund:
		return decode[Refund](params)
	case kindCreateTransfer:
		return decode[CreateTransfer](params)
	case kindCancelTransfer:
		return decode[CancelTransfer](params)
	case kindCreateCustomer:
		return decode[CreateCustomer](params)
	case kindCreateSubscription:
		return decode[CreateSubscription](params)
	case kindUpdateSubscription:
		return decode[UpdateSubscription](params)
	case kindCancelSubscription:
		return decode[CancelSubscription](params)
	default:
		return nil, fmt.Errorf("operations: unknown kind of operation %q: another version inserted it", kind)
	}
}

func decode[O Operation](params []byte) (Operation, error) {
	var op O
	// Sent without a member that this release does not know, it would be
	// another operation.
	if err := json.Unmarshal(params, &op, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("operations: the stored operation can't be decoded, maybe because a newer release inserted it: %w", err)
	}
	return op, nil
}

// encode returns the operation as it is stored. A value that would be decoded
// differently is an error, so that exactly the inserted operation is sent.
func encode(op Operation) ([]byte, error) {
	params, err := json.Marshal(op, json.Deterministic(true))
	if err != nil {
		return nil, invalid(op.identity().kind, "params", "must be encodable as JSON: "+err.Error())
	}
	if bytes.Contains(params, []byte(`\u0000`)) {
		return nil, invalid(op.identity().kind, "params", "must not contain the character U+0000, which PostgreSQL can't store")
	}
	back, err := newOperation(op.identity().kind, params)
	if err != nil {
		return nil, err
	}
	again, err := json.Marshal(back, json.Deterministic(true))
	if err != nil || !bytes.Equal(params, again) {
		return nil, invalid(op.identity().kind, "params", "must not change when encoded and decoded: write large numbers in metadata as strings")
	}
	return params, nil
}

func invalid(op, field, message string) error {
	return &gateway.ValidationError{Op: op, Fields: []gateway.FieldError{{Field: field, Message: message, Code: "invalid"}}}
}

// maxKey is the maximum length of a key: index entries are limited, and the
// gateway's own references are shorter.
const maxKey = 255

// checkIdentity checks the key and the resource's id.
func checkIdentity(op Operation, keyField, idField string) error {
	i := op.identity()
	_, id, _ := strings.Cut(i.resource, "/")
	switch {
	case strings.TrimSpace(i.key) == "":
		return invalid(i.kind, keyField, "is required: it identifies the operation, so that a repeat is not sent again")
	case len(i.key) > maxKey:
		return invalid(i.kind, keyField, fmt.Sprintf("must have at most %d bytes", maxKey))
	case strings.TrimSpace(i.key) != i.key, strings.ContainsFunc(i.key, unicode.IsControl), !utf8.ValidString(i.key):
		// "return-17\n" would be another refund than "return-17".
		return invalid(i.kind, keyField, "must be valid UTF-8 without control characters, and must not begin or end with a space")
	case idField != "" && (id == "" || len(id) > maxKey || strings.ContainsAny(id, "/\\ \x00") || id == "." || id == ".."):
		return invalid(i.kind, idField, "is required: pass the id as the gateway returned it")
	}
	return nil
}
