package operations

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/gateway-go/gateway/operations"
)

// These types are those of package github.com/gateway-go/gateway/operations.

type (
	// Config is operations.Config; see [New].
	Config = operations.Config
	// Operation is operations.Operation.
	Operation = operations.Operation
	// Entry is operations.Entry.
	Entry = operations.Entry
	// Claim is operations.Claim. With River, an operation is never stored as sent.
	Claim = operations.Claim
	// Note is operations.Note.
	Note = operations.Note
	// State is operations.State.
	State = operations.State
	// CreateTransaction is operations.CreateTransaction.
	CreateTransaction = operations.CreateTransaction
	// Refund is operations.Refund.
	Refund = operations.Refund
	// CreateTransfer is operations.CreateTransfer.
	CreateTransfer = operations.CreateTransfer
	// CancelTransfer is operations.CancelTransfer.
	CancelTransfer = operations.CancelTransfer
	// CreateCustomer is operations.CreateCustomer.
	CreateCustomer = operations.CreateCustomer
	// CreateSubscription is operations.CreateSubscription.
	CreateSubscription = operations.CreateSubscription
	// UpdateSubscription is operations.UpdateSubscription.
	UpdateSubscription = operations.UpdateSubscription
	// CancelSubscription is operations.CancelSubscription.
	CancelSubscription = operations.CancelSubscription
	// TransactionResult is operations.TransactionResult.
	TransactionResult = operations.TransactionResult
	// RefundResult is operations.RefundResult.
	RefundResult = operations.RefundResult
	// TransferResult is operations.TransferResult.
	TransferResult = operations.TransferResult
	// CancelTransferResult is operations.CancelTransferResult.
	CancelTransferResult = operations.CancelTransferResult
	// CustomerResult is operations.CustomerResult.
	CustomerResult = operations.CustomerResult
	// SubscriptionResult is operations.SubscriptionResult.
	SubscriptionResult = operations.SubscriptionResult
	// UpdateSubscriptionResult is operations.UpdateSubscriptionResult.
	UpdateSubscriptionResult = operations.UpdateSubscriptionResult
	// CancelSubscriptionResult is operations.CancelSubscriptionResult.
	CancelSubscriptionResult = operations.CancelSubscriptionResult
	// RejectedError is operations.RejectedError.
	RejectedError = operations.RejectedError
	// Reader is operations.Reader.
	Reader = operations.Reader
	// Query is operations.Query.
	Query = operations.Query
	// Decision is operations.Decision.
	Decision = operations.Decision
	// Resolution is operations.Resolution.
	Resolution = operations.Resolution
	// Event is operations.Event.
	Event = operations.Event
	// Observation is operations.Observation.
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
	ErrKeyReused = operations.ErrKeyReused
	ErrNotFound  = operations.ErrNotFound
	ErrSendLimit = operations.ErrSendLimit
	ErrMismatch  = operations.ErrMismatch
	ErrState     = operations.ErrState
	ErrAbandoned = operations.ErrAbandoned
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
