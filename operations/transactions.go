package operations

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/doubt"
	"github.com/gateway-go/gateway/internal/refund"
	"github.com/gateway-go/gateway/internal/spec"
)

const (
	kindCreateTransaction = "transactions.create"
	kindRefund            = "transactions.refund"
)

// CreateTransaction charges a buyer: POST /v2/transactions. ExternalRef is
// required and is its key.
//
// A card token expires after minutes. If the operation waits longer, for
// example while the gateway is down, the gateway rejects it.
type CreateTransaction gateway.TransactionParams

// TransactionResult is the outcome of a [CreateTransaction]. The transaction is
// as the create returned it, which is usually pending.
type TransactionResult = Result[CreateTransaction, gateway.Transaction]

// Validate implements [Operation].
func (c CreateTransaction) Validate() error {
	return errors.Join(checkIdentity(c, "external_ref", ""), gateway.TransactionParams(c).Validate())
}

func (c CreateTransaction) identity() identity {
	return identity{kind: kindCreateTransaction, key: c.ExternalRef}
}

func (CreateTransaction) repeat() repeatability        { return byReference }
func (CreateTransaction) result() *gateway.Transaction { return new(gateway.Transaction) }

func (CreateTransaction) begin(context.Context, *session) (snapshot, any, error) {
	return snapshot{}, nil, nil
}

func (c CreateTransaction) send(ctx context.Context, s *session, _ *snapshot) (any, error) {
	return s.client.Transactions.Create(ctx, gateway.TransactionParams(c), s.options...)
}

const (
	clockSkew = doubt.ClockSkew  // how far the gateway's clock may be behind the database's
	usualSkew = 10 * time.Second // how far the two usually differ
)

// look searches the seconds around the requests first: on a busy account, everything
// since then may be thousands of pages.
func (c CreateTransaction) look(ctx context.Context, s *session, _ *snapshot) (verdict, error) {
	if !s.search.Wide {
		v, err := c.find(ctx, s, gateway.TransactionListParams{From: s.since.Add(-usualSkew), To: s.sent.Add(s.timeout + usualSkew)})
		if err != nil || v.finding != notApplied {
			return v, err
		}
		s.search.Wide, s.search.Cursor = true, ""
	}
	return c.find(ctx, s, gateway.TransactionListParams{From: s.since.Add(-clockSkew)})
}

// find searches a list. A 404 for a transaction in it does not mean that there is
// none: it may come from a proxy, or from a replica that lags behind the list.
func (c CreateTransaction) find(ctx context.Context, s *session, list gateway.TransactionListParams) (v verdict, err error) {
	pages := func(ctx context.Context, cursor string) iter.Seq2[*gateway.Page[gateway.Transaction], error] {
		list.Limit, list.Cursor = spec.MaxPageSize, cursor
		return s.client.Transactions.Pages(ctx, list, s.readPages()...)
	}
	err = searchList(ctx, s, pages, func(listed *gateway.Transaction) (bool, error) {
		if listed.ExternalRef != c.ExternalRef {
			s.search.Oldest = listed.CreatedAt.Time
			return false, nil
		}
		t, err := s.client.Transactions.Get(ctx, listed.ID, s.read()...)
		if err != nil {
			return true, err
		}
		v = verdict{finding: applied, result: t}
		if why := c.differs(t); why != "" {
			v = verdict{finding: unclear, why: why}
		}
		return true, nil
	})
	return v, err
}

func (c CreateTransaction) differs(value any) string {
	t, ok := value.(*gateway.Transaction)
	if !ok {
		return "it is no transaction"
	}
	params := gateway.TransactionParams(c)
	return doubt.TransactionDiffers(&params, t)
}

func (CreateTransaction) decided(ctx context.Context, s *session, _ *snapshot, id string) (any, error) {
	return s.client.Transactions.Get(ctx, id, s.read()...)
}

// Refund refunds a transaction in full or in part: PUT
// /v2/transactions/{id}/refund. Exactly one of Amount, UpTo and Full is set.
//
// UpTo and Full set a target, so they are safer than Amount: earlier refunds
// count towards it, and the outcome can always be determined. Full is the
// safest: the gateway itself rejects refunding more than was paid. UpTo is sent
// as the difference from the amount just read, so a simultaneous manual refund
// comes on top of it.
type Refund struct {
	Key           string `json:"key"`
	TransactionID string `json:"transaction_id"`

	Amount int64  `json:"amount,omitzero"` // cents, in addition to what was refunded before
	UpTo   int64  `json:"up_to,omitzero"`  // cents, including what was refunded before
	Full   bool   `json:"full,omitzero"`   // everything that is left
	Reason string `json:"reason,omitzero"` // at most 500 characters

	// RefundedAtMost, with Amount, is the most that may have been refunded before, in
	// cents, earlier refunds of this outbox included. If the transaction shows more
	// before the refund is sent, someone else refunded, or a database that was restored
	// from a backup does not know that this refund was made: nothing is sent, and the
	// outcome matches [gateway.ErrConflict]. Nil allows any amount.
	RefundedAtMost *int64 `json:"refunded_at_most,omitempty"`
}

// RefundUpTo refunds a transaction until total cents of it are refunded. It does
// nothing if they already are.
func RefundUpTo(key, transactionID string, total int64) Refund {
	return Refund{Key: key, TransactionID: transactionID, UpTo: total}
}

// RefundResult is the outcome of a [Refund]. AmountRefunded is 0 if the target
// was already reached. Message is "" if the outcome was found by reading the
// transaction.
type RefundResult = Result[Refund, gateway.Refund]

// Validate implements [Operation].
func (r Refund) Validate() error {
	set := 0
	for _, is := range [...]bool{r.Amount != 0, r.UpTo != 0, r.Full} {
		if is {
			set++
		}
	}
	err := checkIdentity(r, "key", "transaction_id")
	switch {
	case set != 1:
		err = errors.Join(err, invalid(kindRefund, "amount", "is required unless up_to or full is set, and only one of the three may be set"))
	case r.UpTo < 0:
		err = errors.Join(err, invalid(kindRefund, "up_to", "must be at least 1"))
	case r.RefundedAtMost != nil && r.Amount == 0:
		err = errors.Join(err, invalid(kindRefund, "refunded_at_most", "may be set only with amount: up_to and full count what was refunded before"))
	case r.RefundedAtMost != nil && *r.RefundedAtMost < 0:
		err = errors.Join(err, invalid(kindRefund, "refunded_at_most", "must be at least 0"))
	}
	return errors.Join(err, gateway.RefundParams{
		Amount: r.Amount, Full: r.Amount == 0, Reason: r.Reason,
	}.Validate())
}

func (r Refund) identity() identity {
	return identity{kind: kindRefund, key: r.Key, resource: resource("transactions", r.TransactionID)}
}

func (Refund) repeat() repeatability   { return byIdempotencyKey }
func (Refund) result() *gateway.Refund { return new(gateway.Refund) }

// fresh reads the transaction. refunded_amount never decreases, so a read with
// a lower value than the known one is stale.
func (r Refund) fresh(ctx context.Context, s *session, atLeast int64) (*gateway.Transaction, error) {
	t, err := s.client.Transactions.Get(ctx, r.TransactionID, s.read()...)
	if err == nil && t.RefundedAmount < atLeast {
		return nil, errStale
	}
	return t, err
}

func (r Refund) begin(ctx context.Context, s *session) (snapshot, any, error) {
	t, err := r.fresh(ctx, s, s.refunded)
	if err != nil {
		return snapshot{}, nil, err
	}
	if most := r.RefundedAtMost; most != nil && s.unsent && t.RefundedAmount > *most {
		return snapshot{}, nil, &RejectedError{Kind: "conflict", Text: fmt.Sprintf(
			"refunded_amount is %d, but the refund allows at most %d before it: it was not sent, because it, or another one, may have been made already",
			t.RefundedAmount, *most)}
	}
	before := snapshot{
		Status: string(t.Status), RefundedAmount: t.RefundedAmount,
		Refund: r.goal().Missing(t), Full: r.Full, Reached: r.goal().Reached(t),
	}
	if before.Reached {
		return before, before.refund(t, 0), nil
	}
	return before, nil, nil
}

// refund returns the refund as the gateway's response would have shown it.
func (*snapshot) refund(t *gateway.Transaction, amount int64) *gateway.Refund {
	return &gateway.Refund{AmountRefunded: amount, RemainingBalance: refund.Left(t), IsFullRefund: refund.Goal{Full: true}.Reached(t)}
}

func (r Refund) send(ctx context.Context, s *session, before *snapshot) (any, error) {
	params := gateway.RefundParams{Amount: before.Refund, Reason: r.Reason}
	if r.Full {
		params.Amount, params.Full = 0, true
	}
	return s.client.Transactions.Refund(ctx, r.TransactionID, params, s.options...)
}

func (r Refund) goal() refund.Goal { return refund.Goal{Amount: r.Amount, UpTo: r.UpTo, Full: r.Full} }

func (r Refund) look(ctx context.Context, s *session, before *snapshot) (verdict, error) {
	t, err := r.fresh(ctx, s, max(s.refunded, before.RefundedAmount))
	if err != nil {
		return verdict{}, err
	}
	switch r.goal().Compare(t, before.RefundedAmount, before.Refund) {
	case refund.NotApplied:
		return verdict{finding: notApplied}, nil
	case refund.Unclear:
		return verdict{finding: unclear, why: fmt.Sprintf(
			"refunded_amount was %d before this refund of %d was sent, and is %d now: someone else refunded too, so it is unclear whether this refund was applied",
			before.RefundedAmount, before.Refund, t.RefundedAmount)}, nil
	default:
		return verdict{finding: applied, result: before.refund(t, r.moved(t, before))}, nil
	}
}

// moved returns the cents that this refund moved. A full one moved everything that was
// left: the read before it may be older than the payment, and have no amount.
func (r Refund) moved(t *gateway.Transaction, before *snapshot) int64 {
	if r.Full {
		return t.RefundedAmount - before.RefundedAmount
	}
	return before.Refund
}

// differs has nothing to compare: decided rejects a transaction of which less was
// refunded.
func (Refund) differs(any) string { return "" }

func (r Refund) decided(ctx context.Context, s *session, before *snapshot, _ string) (any, error) {
	t, err := r.fresh(ctx, s, before.RefundedAmount)
	if err == nil && r.goal().Compare(t, before.RefundedAmount, before.Refund) == refund.NotApplied {
		err = errStale
	}
	if err != nil {
		return nil, err
	}
	return before.refund(t, r.moved(t, before)), nil
}
