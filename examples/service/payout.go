package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway"
)

const payoutPrefix = "payout-"

type payout struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`

	keyType   gateway.PixKeyType
	keyValue  string
	createdAt time.Time
}

func (s *shop) payout(ctx context.Context, id string) (p payout, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT id, amount, state, reason, key_type, key_value, created_at FROM payouts WHERE id = $1`, id).
		Scan(&p.ID, &p.Amount, &p.State, &p.Reason, &p.keyType, &p.keyValue, &p.createdAt)
	return p, err
}

// pay stores a payout and sends it.
func (s *shop) pay(ctx context.Context, wanted payout) (payout, error) {
	repeated, err := exists(ctx, s.db, `INSERT INTO payouts (id, amount, key_type, key_value) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id) DO NOTHING`, wanted.ID, wanted.Amount, string(wanted.keyType), wanted.keyValue)
	if err != nil {
		return payout{}, err
	}
	p, err := s.payout(ctx, wanted.ID)
	switch {
	case err != nil:
		return payout{}, err
	case p.Amount != wanted.Amount || p.keyType != wanted.keyType || p.keyValue != wanted.keyValue:
		return payout{}, conflict("another payout has this id")
	case p.State != "new":
		return p, nil
	}
	if err := s.send(ctx, p, repeatOf(repeated, p.createdAt)...); err != nil {
		return payout{}, err
	}
	return s.payout(ctx, p.ID)
}

// send creates the payout's transfer under the payout's own reference. opts has
// FirstSent if an earlier request may have sent it: a rejection proves nothing then.
func (s *shop) send(ctx context.Context, p payout, opts ...gateway.RequestOption) error {
	transfer, err := s.gateway.Transfers.Create(ctx, gateway.TransferParams{
		PixKeyType: p.keyType, PixKeyValue: gateway.PixKey(p.keyValue), Amount: p.Amount, ExternalRef: payoutPrefix + p.ID,
	}, opts...)
	switch outcomeOf(err) {
	case applied:
		return s.linkTransfer(ctx, p.ID, transfer.ID)
	case rejected:
		s.log.WarnContext(ctx, "payout rejected", slog.String("payout", p.ID), slog.Any("error", err))
		return changesOne(ctx, s.db, `UPDATE payouts SET state = 'rejected', reason = $2 WHERE id = $1 AND state = 'new'`, p.ID, err.Error())
	default: // the reconciler finds the transfer of an earlier attempt
		return s.undecided(ctx, "payout", p.ID, err)
	}
}

// linkTransfer stores the transfer's id, by which its webhooks are matched.
func (s *shop) linkTransfer(ctx context.Context, id, transferID string) error {
	return changesOne(ctx, s.db, `UPDATE payouts SET transfer_id = $2, state = CASE state WHEN 'new' THEN 'pending' ELSE state END
		WHERE id = $1 AND COALESCE(transfer_id, $2) = $2`, id, transferID)
}

// payoutOf returns the payout that a transfer belongs to, "" for a transfer of
// another system. Webhooks of transfers have no external_ref: the id is known
// from the create, or else it is read from the transfer.
func (s *shop) payoutOf(ctx context.Context, transferID string) (id string, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT id FROM payouts WHERE transfer_id = $1`, transferID).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	transfer, err := s.gateway.Transfers.Get(ctx, transferID)
	if err != nil {
		return "", err
	}
	id, ours := ownID(payoutPrefix, transfer.ExternalRef)
	if !ours {
		return "", nil
	}
	return id, s.linkTransfer(ctx, id, transferID)
}

// settlePayout writes a transfer's state. A final state never changes: a later
// event is out of order.
func (s *shop) settlePayout(ctx context.Context, tx *sql.Tx, transferID string, status gateway.TransferStatus) error {
	state := "pending"
	switch status {
	case gateway.TransferPaid:
		state = "paid"
	case gateway.TransferError, gateway.TransferRejected:
		state = "failed"
	case gateway.TransferCancelled:
		state = "canceled"
	default:
	}
	err := changesOne(ctx, tx, `UPDATE payouts SET state = $2 WHERE transfer_id = $1 AND state IN ('new', 'pending')`, transferID, state)
	if errors.Is(err, errNoRow) {
		return nil
	}
	return err
}
