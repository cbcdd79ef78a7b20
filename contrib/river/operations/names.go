package operations

import (
	"context"

	"github.com/gateway-go/gateway/operations"
	"github.com/jackc/pgx/v5"
)

// Operation and the other types are those of package
// github.com/gateway-go/gateway/operations.
type (
	Operation = operations.Operation
	Entry     = operations.Entry
	Note      = operations.Note
	State     = operations.State

	CreateTransaction  = operations.CreateTransaction
	Refund             = operations.Refund
	CreateTransfer     = operations.CreateTransfer
	CancelTransfer     = operations.CancelTransfer
	CreateSubscription = operations.CreateSubscription
	UpdateSubscription = operations.UpdateSubscription
	CancelSubscription = operations.CancelSubscription

	TransactionResult        = operations.TransactionResult
	RefundResult             = operations.RefundResult
	TransferResult           = operations.TransferResult
	CancelTransferResult     = operations.CancelTransferResult
	SubscriptionResult       = operations.SubscriptionResult
	UpdateSubscriptionResult = operations.UpdateSubscriptionResult
	CancelSubscriptionResult = operations.CancelSubscriptionResult
	RejectedError            = operations.RejectedError

	Query      = operations.Query
	Decision   = operations.Decision
	Resolution = operations.Resolution

	Event       = operations.Event
	Observation = operations.Observation
)

// Returning is operations.Returning.
type Returning[R any] = operations.Returning[R]

// Result is operations.Result.
type Result[O Operation, R any] = operations.Result[O, R]

// The states of an operation.
const (
	Waiting   = operations.Waiting
	Working   = operations.Working
	Sent      = operations.Sent
	Ambiguous = operations.Ambiguous
	Decided   = operations.Decided
	Dead      = operations.Dead
	Done      = operations.Done
	Canceled  = operations.Canceled
)

// The decisions.
const (
	Applied   = operations.Applied
	SendAgain = operations.SendAgain
	Abandoned = operations.Abandoned
)

// The events.
const (
	EventDone          = operations.EventDone
	EventRejected      = operations.EventRejected
	EventRetry         = operations.EventRetry
	EventUnknown       = operations.EventUnknown
	EventSearching     = operations.EventSearching
	EventNotApplied    = operations.EventNotApplied
	EventAmbiguous     = operations.EventAmbiguous
	EventSendLimit     = operations.EventSendLimit
	EventHandlerFailed = operations.EventHandlerFailed
	EventDead          = operations.EventDead
	EventUnhandled     = operations.EventUnhandled
	EventLate          = operations.EventLate
)

// The errors.
var (
	ErrAccountConflict = operations.ErrAccountConflict
	ErrKeyReused       = operations.ErrKeyReused
	ErrNotFound        = operations.ErrNotFound
	ErrSendLimit       = operations.ErrSendLimit
	ErrMismatch        = operations.ErrMismatch
	ErrState           = operations.ErrState
	ErrAbandoned       = operations.ErrAbandoned
)

// RefundUpTo is operations.RefundUpTo.
func RefundUpTo(key, transactionID string, total int64) Refund {
	return operations.RefundUpTo(key, transactionID, total)
}

// OnResult registers the handler of a kind of operation, by the type of its
// result:
//
//	operations.OnResult(outbox, func(ctx context.Context, tx pgx.Tx, r operations.RefundResult) error { … })
//
// Register handlers before the River client starts. See operations.OnResult for what a
// handler must know.
func OnResult[O Returning[R], R any](o *Outbox, handle func(ctx context.Context, tx pgx.Tx, r Result[O, R]) error) {
	operations.OnResult(o.Outbox, handle)
}
