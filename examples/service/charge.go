package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway"
)

// product is a line of the catalog. The shop sets the prices: a browser sends
// what to buy, never the amount.
type product struct {
	name  string
	price int64
}

func catalog() map[string]product {
	return map[string]product{
		"mug":    {name: "Mug", price: 3990},
		"coffee": {name: "Café em grãos, 500 g", price: 4290},
	}
}

// place stores an order and charges it. It may be called again with the same
// id: when the page is reloaded, or the outcome was unknown.
func (s *shop) place(ctx context.Context, wanted order, token gateway.CardToken) (order, error) {
	o, repeated, err := s.insertOrder(ctx, wanted)
	if err != nil {
		return order{}, err
	}
	if o.Amount != wanted.Amount || o.Method != wanted.Method {
		return order{}, conflict("another order has this id")
	}
	if o.State == orderNew {
		return s.charge(ctx, o, token, repeatOf(repeated, o.createdAt)...)
	}
	return s.show(ctx, o)
}

// show returns an order with what the buyer needs to pay. An order whose create
// got no response is known only from its webhooks, which have no Pix code and
// no challenge.
func (s *shop) show(ctx context.Context, o order) (order, error) {
	if o.State != orderPending || o.PixCode != "" || o.Challenge != "" {
		return o, nil
	}
	tx, err := s.gateway.Transactions.Get(ctx, o.transactionID)
	if err != nil {
		return o, s.undecided(ctx, "order", o.ID, err)
	}
	return s.settle(ctx, o.ID, tx)
}

// charge creates the order's transaction, if it does not exist yet: the
// reference comes from the order, so that no repeat charges twice.
func (s *shop) charge(ctx context.Context, o order, token gateway.CardToken, opts ...gateway.RequestOption) (order, error) {
	ref := orderPrefix + o.ID
	tx, err := s.gateway.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef: ref,
		Amount:      o.Amount,
		Currency:    gateway.BRL,
		Method:      o.Method,
		Token:       token,
		Buyer:       o.buyer,
		Products:    []gateway.Product{{Name: "Order " + o.ID, Price: o.Amount}},
	}, opts...)
	switch outcomeOf(err) {
	case existing:
		tx, err = s.gateway.Transactions.FindByExternalRef(ctx, ref, gateway.FindOptions{Since: o.createdAt.Add(-time.Hour)})
		if err != nil {
			return o, s.undecided(ctx, "order", o.ID, err)
		}
	case unknown:
		return o, s.undecided(ctx, "order", o.ID, err)
	case rejected:
		s.log.WarnContext(ctx, "charge rejected", slog.String("order", o.ID), slog.Any("error", err))
		if err := s.failOrder(ctx, o.ID, "not accepted"); err != nil {
			return order{}, err
		}
		return s.order(ctx, o.ID)
	case applied:
	}
	return s.settle(ctx, o.ID, tx)
}

// undecided logs an unknown outcome. For the caller it is not a failure: the
// record stays open until a webhook, the reconciler or a repeat of the request
// closes it.
func (s *shop) undecided(ctx context.Context, kind, id string, err error) error {
	s.log.WarnContext(ctx, "outcome unknown", slog.String(kind, id), slog.Any("error", err))
	return nil
}

// refund refunds an order in full. The state is written first, so that after a
// crash the reconciler finds the order. A repeat can't refund twice: nothing is
// left to refund.
func (s *shop) refund(ctx context.Context, id string) (order, error) {
	o, err := scanOrder(s.db.QueryRowContext(ctx, `UPDATE orders SET state = 'refunding'
		WHERE id = $1 AND state IN ('paid', 'refunding') RETURNING `+orderColumns, id))
	if errors.Is(err, sql.ErrNoRows) {
		return order{}, conflict("the order is not paid")
	}
	if err != nil {
		return order{}, err
	}
	_, err = s.gateway.Transactions.Refund(ctx, o.transactionID, gateway.RefundParams{Full: true})
	if err != nil && !errors.Is(err, gateway.ErrOutcomeUnknown) && !errors.Is(err, gateway.ErrConflict) {
		// Nothing was refunded.
		back := changesOne(ctx, s.db, `UPDATE orders SET state = 'paid' WHERE id = $1 AND state = 'refunding'`, id)
		return order{}, errors.Join(fmt.Errorf("refund of order %s: %w", id, err), back)
	}
	tx, err := s.gateway.Transactions.Get(ctx, o.transactionID)
	if err != nil {
		return o, s.undecided(ctx, "order", id, err)
	}
	return s.settle(ctx, id, tx)
}
