package gateway

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/gateway-go/gateway/internal/rules"
)

// TransactionsService holds the calls about transactions.
type TransactionsService struct{ client *Client }

const (
	transactionsPath = "/v2/transactions"
	transactionPath  = transactionsPath + "/{id}"
)

var (
	getTransaction    = endpoint("transactions.get", http.MethodGet, transactionPath, classSafe, nil)
	listTransactions  = endpoint("transactions.list", http.MethodGet, transactionsPath, classSafe, rules.TransactionList)
	refundTransaction = endpoint("transactions.refund", http.MethodPut, transactionPath+"/refund", classUnsafe, rules.Refund)
	updateDelivery    = endpoint("transactions.update_delivery", http.MethodPut, transactionPath+"/delivery", classSafe, rules.Delivery)
	setSandboxStatus  = endpoint("transactions.set_sandbox_status", http.MethodPut, transactionPath, classSafe, rules.LiveSandboxStatus)

	createTransaction = keyedCreate[TransactionParams, Transaction]{
		operation: endpoint("transactions.create", http.MethodPost, transactionsPath, classKeyed, rules.Transaction),
		member:    "external_ref",
		automatic: true,
		reference: func(p *TransactionParams) string { return p.ExternalRef },
		same: func(p *TransactionParams, t *Transaction) bool {
			return agrees(p.Amount, t.Amount) && agrees(p.Method, t.Method) && agrees(p.currency(), t.Currency)
		},
		get: func(ctx context.Context, c *Client, id string, opts []RequestOption) (*Transaction, string, error) {
			t, err := c.Transactions.Get(ctx, id, opts...)
			if err != nil {
				return nil, "", err
			}
			return t, t.ExternalRef, nil
		},
		search: func(ctx context.Context, c *Client, reference string, age time.Duration, opts []RequestOption) (string, error) {
			pages := c.Transactions.Pages(ctx, TransactionListParams{Limit: rules.MaxPageSize}, opts...)
			return searchNewest(pages, age, reference, (*TransactionSummary).listed)
		},
	}
)

// Create makes a transaction: POST /v2/transactions. Without an ExternalRef
// the client makes one, so that lost answers don't pay twice; see
// [Response.Reference].
//
// Errors: [ErrValidation] where a rule is broken, found before anything is
// sent as far as it can be; [ErrDuplicate] where the ExternalRef was used
// before; [ErrNotFound] for an unknown buyer id; [ErrOutcomeUnknown] where it
// may have been made all the same: see [OutcomeError] before you try again.
func (s *TransactionsService) Create(ctx context.Context, params TransactionParams, opts ...RequestOption) (*Transaction, error) {
	return create(ctx, s.client, &createTransaction, &params, opts)
}

// Get reads a transaction: GET /v2/transactions/{id}. An unknown id is
// [ErrNotFound].
func (s *TransactionsService) Get(ctx context.Context, id string, opts ...RequestOption) (*Transaction, error) {
	return call[Transaction](ctx, s.client, &getTransaction, nil, opts, id)
}

// List reads one page of transactions, newest first: GET /v2/transactions.
func (s *TransactionsService) List(ctx context.Context, params TransactionListParams, opts ...RequestOption) (*Page[TransactionSummary], error) {
	return listPage[TransactionSummary](ctx, s.client, &listTransactions, &params, opts)
}

// Pages ranges over the pages of a list from the one that params ask for. An
// error comes once and ends it.
func (s *TransactionsService) Pages(ctx context.Context, params TransactionListParams, opts ...RequestOption) iter.Seq2[*Page[TransactionSummary], error] {
	return listPages[TransactionSummary](ctx, s.client, &listTransactions, &params, opts)
}

// All ranges over the transactions of all pages.
func (s *TransactionsService) All(ctx context.Context, params TransactionListParams, opts ...RequestOption) iter.Seq2[*TransactionSummary, error] {
	return items(s.Pages(ctx, params, opts...))
}

// Refund pays a transaction back, whole or in part: PUT
// /v2/transactions/{id}/refund. [ErrConflict]: it is not in a state to be
// refunded. A refund has no reference: on [ErrOutcomeUnknown] read the
// transaction and look at its RefundedAmount before you try again, or use a
// gateway with [WithIdempotencyKeys] and repeat it with its key.
func (s *TransactionsService) Refund(ctx context.Context, id string, params RefundParams, opts ...RequestOption) (*Refund, error) {
	if err := params.choice(refundTransaction.Name); err != nil {
		return nil, err
	}
	return call[Refund](ctx, s.client, &refundTransaction, &params, opts, id)
}

// UpdateDelivery keeps the tracking of a paid transaction's goods: PUT
// /v2/transactions/{id}/delivery. [ErrConflict]: the status would go back
// from delivered, or IfMatch no longer matches. [ErrOutcomeUnknown]: call it
// again, or with IfMatch read the transaction first.
func (s *TransactionsService) UpdateDelivery(ctx context.Context, id string, params DeliveryParams, opts ...RequestOption) (*Delivery, error) {
	op := updateDelivery
	if params.IfMatch != "" {
		op.class = classUnsafe // the second one would no longer match
		opts = append(opts[:len(opts):len(opts)], Header("If-Match", params.IfMatch))
	}
	return call[Delivery](ctx, s.client, &op, &params, opts, id)
}

// SetSandboxStatus puts a transaction of the sandbox into a state, with its
// webhook: PUT /v2/transactions/{id}. With a production key it is
// [ErrForbidden]. [ErrOutcomeUnknown]: read the transaction.
func (s *TransactionsService) SetSandboxStatus(ctx context.Context, id string, params SandboxStatusParams, opts ...RequestOption) (*SandboxTransaction, error) {
	answer, err := call[sandboxAnswer](ctx, s.client, &setSandboxStatus, &params, opts, id)
	if err != nil {
		return nil, err
	}
	return &answer.Transaction, nil
}
