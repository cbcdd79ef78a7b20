package main

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"log/slog"
	"net/http"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/webhook"
)

//go:embed schema.sql
var schema string

// shop is the whole service without its listener.
type shop struct {
	*merchant.Merchant[*sql.Tx]

	db         *sql.DB
	adminToken gateway.Secret
	log        *slog.Logger
}

func open(ctx context.Context, db *sql.DB, client *gateway.Client, cfg config, c merchant.Config, log *slog.Logger) (*shop, error) {
	if _, err := db.ExecContext(ctx, schema); err != nil { // in one transaction
		return nil, err
	}
	c.Logger, c.SecondPayment = log, merchant.RefundSecondPayment
	c.Accounts = []merchant.Account{{Name: "shop", Client: client, Keys: []webhook.SigningKey{{Key: cfg.webhookSecret}}, Links: true}}
	m, err := merchant.Open(ctx, database.Postgres(db), c, merchant.Callbacks[*sql.Tx]{
		Paid: paid, Refunded: refunded, Disputed: disputed, Subscription: renewed, Payout: paidOut,
	})
	return &shop{Merchant: m, db: db, adminToken: cfg.adminToken, log: log}, err
}

// paid and the next four are called once for each fact, and commit together with it.
func paid(ctx context.Context, tx *sql.Tx, c *merchant.Charge) error {
	switch {
	case c.Left() < min(c.Requested, c.Paid): // a person may have accepted less
		return nil // refunded or disputed since
	case c.Origin == merchant.FromLink:
		return merchant.One(tx.ExecContext(ctx, `INSERT INTO shipments (id, sku, quantity, name, email) VALUES ($1, $2, 1, $3, $4)`,
			c.ID, c.Link, c.Buyer.Name, c.Buyer.Email))
	}
	return merchant.One(tx.ExecContext(ctx, `INSERT INTO shipments (id, sku, quantity, name, email)
		SELECT id, sku, quantity, name, email FROM orders WHERE id = $1`, c.Order))
}

func refunded(ctx context.Context, tx *sql.Tx, r *merchant.Refund) error {
	if r.Order.Left() > 0 {
		return nil // a part, or one of two payments
	}
	_, err := tx.ExecContext(ctx, `UPDATE shipments SET stopped = true WHERE id = $1`, cmp.Or(r.Order.ID, r.Charge))
	return err // a period of a membership has no shipment
}

func disputed(ctx context.Context, tx *sql.Tx, c *merchant.Charge) error {
	if c.Origin == merchant.FromSubscription {
		return nil // see renewed
	}
	res, err := tx.ExecContext(ctx, `UPDATE shipments SET stopped = $2 WHERE id = $1`, cmp.Or(c.Order, c.ID), c.OrderLeft == 0)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 || c.State != merchant.Paid {
		return err
	}
	return paid(ctx, tx, c) // it was won, and nothing was shipped while it was open
}

// renewed gets everything that happens to a membership: see merchant.SubscriptionEvent.
func renewed(ctx context.Context, tx *sql.Tx, s *merchant.Subscription) error {
	if s.Event == merchant.Started || s.Event == merchant.Renewed {
		if err := merchant.One(tx.ExecContext(ctx, `INSERT INTO invoices (charge, member_id, amount) VALUES ($1, $2, $3)`,
			s.Charge.ID, s.ID, s.Charge.Paid)); err != nil {
			return err
		}
	}
	return merchant.One(tx.ExecContext(ctx, `UPDATE members SET state = $2, failed_attempts = $3, paid_until = $4 WHERE id = $1`,
		s.ID, string(s.State), s.FailedAttempts, s.PaidUntil))
}

func paidOut(ctx context.Context, tx *sql.Tx, p *merchant.Payout) error {
	return merchant.One(tx.ExecContext(ctx, `UPDATE payouts SET state = $2, reason = $3 WHERE id = $1`, p.ID, string(p.State), p.Reason))
}

// catalog has what the shop sells. The shop sets the prices, in cents: a browser sends
// what to buy, never the amount.
func catalog() map[string]gateway.CheckoutProduct {
	return map[string]gateway.CheckoutProduct{
		"mug": {ExternalID: "mug", Name: "Mug", Price: 3990}, "coffee": {ExternalID: "coffee", Name: "Café em grãos, 500 g", Price: 4290},
	}
}

const membershipPrice = 4990 // cents a month

// place stores an order together with its charge, and charges it. It may be called again:
// when the page is reloaded, or with another card or method.
func (s *shop) place(ctx context.Context, id, sku string, quantity int64, p gateway.TransactionParams) error {
	p.Products = []gateway.Product{{Name: "Order " + id, Price: p.Amount}}
	var c *merchant.Charge
	err := s.inTx(ctx, func(tx *sql.Tx) (err error) {
		if c, err = s.ChargeTx(ctx, tx, merchant.ChargeParams{Order: id, TransactionParams: p}); err != nil {
			return err
		}
		return same(tx.QueryRowContext(ctx, `INSERT INTO orders (id, sku, quantity, amount, name, email) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (id) DO UPDATE SET id = excluded.id RETURNING sku = $2 AND quantity = $3 AND amount = $4`,
			id, sku, quantity, p.Amount, p.Buyer.Name, p.Buyer.Email))
	})
	if err == nil && c.State == merchant.New {
		_, err = s.Send(ctx, c.ID) // after an error, Run sends it
	}
	return err
}

// join creates a member who pays every month by card. It may be called again.
func (s *shop) join(ctx context.Context, id string, who gateway.CustomerParams, price int64, token gateway.CardToken) (*merchant.Subscription, error) {
	p := merchant.SubscribeParams{
		ID: id, Customer: who, SubscriptionParams: gateway.SubscriptionParams{Amount: price, Interval: gateway.IntervalMonth, Token: token},
	}
	if err := s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := s.SubscribeTx(ctx, tx, p); err != nil {
			return err
		}
		return same(tx.QueryRowContext(ctx, `INSERT INTO members (id, name, email) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET id = excluded.id RETURNING email = $3`, id, who.Name, who.Email))
	}); err != nil {
		return nil, err
	}
	return s.Subscribe(ctx, p) // sends what is stored
}

// payBill pays a supplier. It may be called again.
func (s *shop) payBill(ctx context.Context, id string, transfer gateway.TransferParams) (*merchant.Payout, error) {
	p := merchant.PayoutParams{ID: id, TransferParams: transfer}
	if err := s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := s.PayoutTx(ctx, tx, p); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO payouts (id, amount) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`, id, transfer.Amount)
		return err
	}); err != nil {
		return nil, err
	}
	return s.Payout(ctx, p) // sends what is stored
}

// inTx runs do in a transaction. Package merchant is called first in it: it locks its
// records before a callback locks the shop's rows, and so must everyone.
func (s *shop) inTx(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after the commit
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// same returns an error unless the row that was inserted, or existed, is the one that was
// asked for.
func same(row *sql.Row) error {
	var is bool
	if err := row.Scan(&is); err != nil || is {
		return err
	}
	return &httpError{http.StatusConflict, "the id belongs to something else"}
}
