package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// receive creates the webhook receiver. Events are stored before they are
// acknowledged, and each effect is committed together with the completion of
// its event.
func (s *shop) receive() (err error) {
	s.receiver, err = webhook.New(webhook.Config{
		Keys:    []webhook.SigningKey{{Key: s.cfg.webhookSecret}},
		API:     s.gateway,
		Store:   s.events,
		Mode:    webhook.Inbox,
		Backoff: s.cfg.backoff,
		Lease:   s.cfg.lease,
		Logger:  s.log,
	})
	if err != nil {
		return err
	}
	webhook.OnTransaction(s.receiver, webhook.AnyKind, s.readRefund(sqlstore.HandleTx(s.events, s.onTransaction)))
	webhook.OnSubscription(s.receiver, webhook.AnyKind, sqlstore.HandleTx(s.events, s.onSubscription))
	webhook.OnTransfer(s.receiver, webhook.AnyKind, s.onTransfer)
	return nil
}

// ownID removes the prefix from a reference. A resource without the prefix
// belongs to another system of the account.
func ownID(prefix, ref string) (id string, ours bool) { return strings.CutPrefix(ref, prefix) }

// later returns the error for an event whose record does not exist yet: a
// webhook can arrive before the request that caused it is committed. The
// receiver retries the event with its backoff, for about half a day.
func later(what string) error { return fmt.Errorf("%s is not stored yet", what) }

// readRefund reads the transaction of a refund before its event is handled in a database
// transaction: no event says how much was refunded.
func (s *shop) readRefund(next func(context.Context, *webhook.TransactionEvent) error) func(context.Context, *webhook.TransactionEvent) error {
	return func(ctx context.Context, e *webhook.TransactionEvent) error {
		if e.Confirmed != nil || e.Kind != webhook.TransactionRefunded && e.Kind != webhook.TransactionPartiallyRefunded {
			return next(ctx, e)
		}
		tx, err := s.gateway.Transactions.Get(ctx, e.ResourceID)
		if err != nil {
			return err
		}
		if tx.RefundedAmount == 0 {
			return errors.New("the transaction was read as it was before the refund")
		}
		read := *e
		read.Confirmed = tx
		return next(ctx, &read)
	}
}

// onTransaction handles the payment of an order. A charge of a subscription is
// a transaction too, and has no reference: it is counted by onSubscription.
func (s *shop) onTransaction(ctx context.Context, tx *sql.Tx, e *webhook.TransactionEvent) error {
	id, ours := ownID(orderPrefix, e.CorrelationID)
	if !ours {
		return nil
	}
	p := payment{id: e.ResourceID, status: e.State(), amount: e.Data.Charged(), matches: e.Data.AmountIs, currency: e.Data.Currency}
	if e.Confirmed != nil {
		p = paymentOf(e.Confirmed)
	}
	_, err := s.apply(ctx, tx, id, p)
	if errors.Is(err, sql.ErrNoRows) {
		return later("order " + id)
	}
	return err
}

// onSubscription handles the events of a membership. Its metadata names the
// member, and latest_transaction the charge.
func (s *shop) onSubscription(ctx context.Context, tx *sql.Tx, e *webhook.SubscriptionEvent) error {
	id := memberIn(e.Data.Metadata)
	if id == "" {
		return nil // belongs to another system
	}
	r := renewal{member: id, subscription: e.ResourceID, state: e.State(), late: e.Stale}
	if e.Kind == webhook.SubscriptionStarted || e.Kind == webhook.SubscriptionRenewed {
		if e.Data.Amount != membershipPrice || e.Data.Currency != gateway.BRL {
			return webhook.Permanent(fmt.Errorf("member %s was charged %s", id, gateway.FormatAmount(e.Data.Amount, e.Data.Currency)))
		}
		r.paidUntil, r.amount = e.Data.CurrentPeriodEnd.Time, e.Data.Amount
		if last := e.Data.LatestTransaction; last != nil && last.Status.Settled() {
			r.charge = last.ID
		}
	}
	err := s.renew(ctx, tx, r)
	if errors.Is(err, errNoRow) {
		return later("member " + id)
	}
	return err
}

// onTransfer handles the events of a payout. Finding the payout may need an
// API call, which is made before the database transaction begins.
func (s *shop) onTransfer(ctx context.Context, e *webhook.TransferEvent) error {
	id, err := s.payoutOf(ctx, e.ResourceID)
	switch {
	case errors.Is(err, errNoRow):
		return later("payout " + id)
	case err != nil || id == "":
		return err
	}
	settle := sqlstore.HandleTx(s.events, func(ctx context.Context, tx *sql.Tx, e *webhook.TransferEvent) error {
		return s.settlePayout(ctx, tx, e.ResourceID, e.State())
	})
	return settle(ctx, e)
}
