package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/webhook"
)

// shop is the same shop on package merchant, with the same table.
type shop struct {
	*merchant.Merchant[*sql.Tx]

	db *sql.DB
}

func openShop(ctx context.Context, file string, client *gateway.Client, secret gateway.Secret, rate int) (*shop, error) {
	db, err := openDB(ctx, file)
	if err != nil {
		return nil, err
	}
	old := &oldShop{db, client}
	m, err := merchant.Open(ctx, database.SQLite(db), merchant.Config{
		Accounts: []merchant.Account{{Name: "shop", Client: client, Keys: []webhook.SigningKey{{Key: secret}}, Zone: time.UTC}},
		// Events of what is not in the books yet are the old code's.
		Other:  func(ctx context.Context, _ string, e *webhook.Event) error { return old.handle(ctx, e) },
		Logger: slog.New(slog.DiscardHandler), // each kill would be logged
		// Short, to keep the example fast. The defaults suit a real gateway.
		SendTimeout: time.Second / 2, SettleAfter: 2 * time.Second, CallbackTimeout: time.Second, Lease: time.Second, PollInterval: time.Second / 10,
		AdoptRate: rate,
	}, merchant.Callbacks[*sql.Tx]{Goods: goods, Refunded: refunded})
	return &shop{Merchant: m, db: db}, err
}

// goods ships an order, unless the old code has.
func goods(ctx context.Context, tx *sql.Tx, g *merchant.Goods) error {
	if g.State != merchant.Paid {
		return nil // a parcel that is on its way comes back by itself
	}
	return ship(ctx, tx, g.Order)
}

func refunded(ctx context.Context, tx *sql.Tx, r *merchant.Refund) error {
	return merchant.One(tx.ExecContext(ctx, `UPDATE orders SET refunded = ? WHERE id = ?`, r.Order.Refunded, r.Order.ID))
}

// pay shows the code with which an order is paid: also that of an order whose code is the old
// shop's, which is adopted then.
func (s *shop) pay(ctx context.Context, order string) (string, error) {
	amount, err := amountOf(ctx, s.db, order)
	if err != nil {
		return "", err
	}
	c, err := s.Charge(ctx, merchant.ChargeParams{Order: order, TransactionParams: pix(amount)})
	if err != nil {
		return "", err
	}
	return c.TransactionID, nil // a real page shows c.QR()
}

// giveBack refunds an order in full.
func (s *shop) giveBack(ctx context.Context, order string) (string, error) {
	_, err := s.Refund(ctx, merchant.RefundParams{ID: "return-" + order, Order: order, Full: true})
	return "done", err
}

// handler has the pages of buyers, and the webhooks.
func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	page := func(pattern string, do func(ctx context.Context, order string) (text string, err error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			text, err := do(r.Context(), r.PathValue("id"))
			if err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
				text = err.Error()
			}
			_, _ = fmt.Fprint(w, text)
		})
	}
	page("POST /orders/{id}", s.pay)
	page("POST /orders/{id}/return", s.giveBack)
	mux.Handle("POST /webhooks", s.Webhook("shop"))
	return mux
}
