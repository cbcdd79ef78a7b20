package main

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
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

func open(
	ctx context.Context, db *sql.DB, client *gateway.Client, cfg config, c merchant.Config, log *slog.Logger,
) (*shop, error) {
	if _, err := db.ExecContext(ctx, schema); err != nil { // in one transaction
		return nil, err
	}
	c.Logger = log
	c.Accounts = []merchant.Account{{
		Name: "shop", Client: client, Keys: []webhook.SigningKey{{Key: cfg.webhookSecret}}, Links: true,
	}}
	c.SecondPayment = merchant.RefundSecondPayment
	m, err := merchant.Open(ctx, database.Postgres(db), c, merchant.Callbacks[*sql.Tx]{
		Goods: goods, Access: access, Subscription: invoice, Payout: paidOut,
	})
	return &shop{Merchant: m, db: db, adminToken: cfg.adminToken, log: log}, err
}

// goods decides what the warehouse may send: it has the state of the shipment, see schema.sql.
func goods(ctx context.Context, tx *sql.Tx, g *merchant.Goods) error {
	if sale := g.Sale; sale != nil {
		return merchant.One(tx.ExecContext(ctx, `INSERT INTO shipments (id, state, sku, quantity, name, email)
			VALUES ($1, $2, $3, 1, $4, $5) ON CONFLICT (id) DO UPDATE SET state = excluded.state`,
			sale.ID, g.State, sale.Link, sale.Buyer.Name, sale.Buyer.Email))
	}
	return merchant.One(tx.ExecContext(ctx, `INSERT INTO shipments (id, state, sku, quantity, name, email)
		SELECT id, $2, sku, quantity, name, email FROM orders WHERE id = $1
		ON CONFLICT (id) DO UPDATE SET state = excluded.state`, g.Order, g.State))
}

// access lets a member in until the end of the last month whose payment the shop has.
func access(ctx context.Context, tx *sql.Tx, a *merchant.Access) error {
	return merchant.One(tx.ExecContext(ctx, `UPDATE members SET state = $2, ends = $3, access_until = $4 WHERE id = $1`,
		a.ID, a.State, a.Ends, sql.NullTime{Time: a.Until, Valid: !a.Until.IsZero()}))
}

// invoice makes an invoice of each month that was paid.
func invoice(ctx context.Context, tx *sql.Tx, m *merchant.Subscription) error {
	if m.Event != merchant.Started && m.Event != merchant.Renewed {
		return nil // a mail about a card that was refused would go here
	}
	return merchant.One(tx.ExecContext(ctx, `INSERT INTO invoices (charge, member_id, amount) VALUES ($1, $2, $3)`,
		m.Charge.ID, m.ID, m.Charge.Paid))
}

func paidOut(ctx context.Context, tx *sql.Tx, p *merchant.Payout) error {
	return merchant.One(tx.ExecContext(ctx, `UPDATE payouts SET state = $2, reason = $3 WHERE id = $1`,
		p.ID, p.State, p.Reason))
}

// send marks a shipment as sent, just before it leaves.
func (s *shop) send(ctx context.Context, id string) error {
	result, err := s.db.ExecContext(ctx, `UPDATE shipments SET sent_at = now()
		WHERE id = $1 AND state = 'paid' AND sent_at IS NULL`, id)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 { // its label was printed before the payment was refunded or disputed, or twice
		err = &httpError{http.StatusConflict, "this shipment must not be sent, or was sent already"}
	}
	return err
}

// catalog has what the shop sells. The shop sets the prices, in cents: a browser sends
// what to buy, never the amount.
func catalog() map[string]gateway.CheckoutProduct {
	return map[string]gateway.CheckoutProduct{
		"mug":    {ExternalID: "mug", Name: "Mug", Price: 3990},
		"coffee": {ExternalID: "coffee", Name: "Café em grãos, 500 g", Price: 4290},
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
		return same(tx.QueryRowContext(ctx, `INSERT INTO orders (id, sku, quantity, amount, name, email)
			VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (id) DO UPDATE SET id = excluded.id RETURNING sku = $2 AND quantity = $3 AND amount = $4`,
			id, sku, quantity, p.Amount, p.Buyer.Name, p.Buyer.Email))
	})
	if err == nil && c.State == merchant.New {
		_, err = s.Send(ctx, c.ID) // after an error, Run sends it
	}
	return err
}

// join creates a member who pays every month by card. It may be called again.
func (s *shop) join(
	ctx context.Context, id string, who gateway.CustomerParams, price int64, token gateway.CardToken,
) (*merchant.Subscription, error) {
	p := merchant.SubscribeParams{ID: id, Customer: who, SubscriptionParams: gateway.SubscriptionParams{
		Amount: price, Interval: gateway.IntervalMonth, Token: token,
	}}
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
		_, err := tx.ExecContext(ctx, `INSERT INTO payouts (id, amount) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`,
			id, transfer.Amount)
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
	if err := tx.Commit(); err != nil { // the response may have been lost after the commit
		return fmt.Errorf("%w: %w", merchant.ErrMaybeStored, err)
	}
	return nil
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
