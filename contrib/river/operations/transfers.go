package operations

import (
	"context"
	"errors"
	"time"

	"github.com/gateway-go/gateway"
)

const (
	kindCreateTransfer = "transfers.create"
	kindCancelTransfer = "transfers.cancel"
)

// CreateTransfer pays out by Pix: POST /v2/transfers. ExternalRef is required
// and is its key.
type CreateTransfer gateway.TransferParams

// TransferResult is the outcome of a [CreateTransfer]. A payout is paid later:
// a webhook reports its outcome.
type TransferResult = Result[CreateTransfer, gateway.Transfer]

// Validate implements [Operation].
func (c CreateTransfer) Validate() error {
	return errors.Join(checkIdentity(c, "external_ref", ""), gateway.TransferParams(c).Validate())
}

func (c CreateTransfer) identity() identity {
	return identity{kind: kindCreateTransfer, key: c.ExternalRef}
}

func (CreateTransfer) repeat() repeatability     { return byReference }
func (CreateTransfer) result() *gateway.Transfer { return new(gateway.Transfer) }

func (CreateTransfer) begin(context.Context, *session) (snapshot, any, error) {
	return snapshot{}, nil, nil
}

func (c CreateTransfer) send(ctx context.Context, s *session, _ *snapshot) (any, error) {
	return s.client.Transfers.Create(ctx, gateway.TransferParams(c), s.options...)
}

func (c CreateTransfer) look(ctx context.Context, s *session, _ *snapshot) (verdict, error) {
	var newest time.Time
	for t, err := range s.client.Transfers.All(ctx, gateway.TransferListParams{Limit: 100}, s.readPages()...) {
		switch {
		case err != nil:
			return verdict{}, err
		case t.ExternalRef == c.ExternalRef && t.Amount == c.Amount && t.PixKeyType == c.PixKeyType:
			return verdict{finding: applied, result: t}, nil
		case t.ExternalRef == c.ExternalRef:
			return verdict{finding: unclear, why: "the transfer " + t.ID + " has the reference but another amount or key"}, nil
		}
		if s.tooOld(&newest, t.CreatedAt.Time) {
			break
		}
	}
	return verdict{finding: notApplied}, nil
}

// tooOld reports whether an item of a list, newest first, was created long
// before the request in doubt was sent. Ages are relative to the newest item,
// so that the gateway's clock and this one need not agree.
func (s *session) tooOld(newest *time.Time, created time.Time) bool {
	if newest.IsZero() {
		*newest = created
	}
	return newest.Sub(created) > time.Since(s.since)+clockSkew
}

func (CreateTransfer) decided(ctx context.Context, s *session, _ *snapshot, id string) (any, error) {
	return s.client.Transfers.Get(ctx, id, s.read()...)
}

// CancelTransfer cancels a transfer that has not been sent to a bank yet: POST
// /v2/transfers/{id}/cancel. If it is already cancelled, the operation
// succeeds.
type CancelTransfer struct {
	Key        string `json:"key"`
	TransferID string `json:"transfer_id"`
	Reason     string `json:"reason,omitzero"` // at most 250 characters
}

// CancelTransferResult is the outcome of a [CancelTransfer].
type CancelTransferResult = Result[CancelTransfer, gateway.Transfer]

// Validate implements [Operation].
func (c CancelTransfer) Validate() error {
	return errors.Join(checkIdentity(c, "key", "transfer_id"), gateway.TransferCancelParams{Reason: c.Reason}.Validate())
}

func (c CancelTransfer) identity() identity {
	return identity{kind: kindCancelTransfer, key: c.Key, resource: resource("transfers", c.TransferID)}
}

func (CancelTransfer) repeat() repeatability     { return byIdempotencyKey }
func (CancelTransfer) result() *gateway.Transfer { return new(gateway.Transfer) }

func (c CancelTransfer) begin(ctx context.Context, s *session) (snapshot, any, error) {
	t, err := s.client.Transfers.Get(ctx, c.TransferID, s.read()...)
	switch {
	case err != nil:
		return snapshot{}, nil, err
	case t.Status == gateway.TransferCancelled:
		return snapshot{Status: string(t.Status)}, t, nil
	}
	return snapshot{Status: string(t.Status)}, nil, nil
}

func (c CancelTransfer) send(ctx context.Context, s *session, _ *snapshot) (any, error) {
	return s.client.Transfers.Cancel(ctx, c.TransferID, gateway.TransferCancelParams{Reason: c.Reason}, s.options...)
}

func (c CancelTransfer) look(ctx context.Context, s *session, _ *snapshot) (verdict, error) {
	t, err := s.client.Transfers.Get(ctx, c.TransferID, s.read()...)
	switch {
	case err != nil:
		return verdict{}, err
	case t.Status == gateway.TransferCancelled:
		return verdict{finding: applied, result: t}, nil
	}
	return verdict{finding: notApplied}, nil
}

func (c CancelTransfer) decided(ctx context.Context, s *session, _ *snapshot, _ string) (any, error) {
	return s.client.Transfers.Get(ctx, c.TransferID, s.read()...)
}
