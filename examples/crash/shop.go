package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/webhook"
)

const schema = `CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, shipped INTEGER NOT NULL DEFAULT 0, credited INTEGER NOT NULL DEFAULT 0)`

const price, credit = 2_000, 500 // cents, of an order and of a return

// shop sells by Pix, ships what is paid, and takes returns.
type shop struct {
	*merchant.Merchant[*sql.Tx]

	db *sql.DB
}

func openShop(ctx context.Context, file string, client *gateway.Client, secret gateway.Secret) (*shop, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(16)
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, err
	}
	m, err := merchant.Open(ctx, database.SQLite(db), merchant.Config{
		Accounts: []merchant.Account{{Name: "shop", Client: client, Keys: []webhook.SigningKey{{Key: secret}}, Zone: time.UTC}},
		Logger:   slog.New(slog.DiscardHandler), // each kill would be logged
		// Short, to keep the example fast. The defaults suit a real gateway.
		SendTimeout: time.Second / 2, SettleAfter: 2 * time.Second, CallbackTimeout: time.Second, Lease: time.Second, PollInterval: time.Second / 10,
	}, merchant.Callbacks[*sql.Tx]{Goods: goods, Refunded: refunded})
	return &shop{Merchant: m, db: db}, err
}

// goods ships an order, and refunded credits a return. What they write in tx commits once,
// together with the mark that the fact was delivered. Nothing is disputed here: a shop whose
// payments may be has a state, as in examples/merchant.
func goods(ctx context.Context, tx *sql.Tx, g *merchant.Goods) error {
	if g.State != merchant.Paid {
		return nil // all of it went back
	}
	return merchant.One(tx.ExecContext(ctx, `UPDATE orders SET shipped = shipped + 1 WHERE id = ?`, g.Order))
}

func refunded(ctx context.Context, tx *sql.Tx, r *merchant.Refund) error {
	return merchant.One(tx.ExecContext(ctx, `UPDATE orders SET credited = credited + 1 WHERE id = ?`, r.Order.ID))
}

// order stores an order together with its charge, and sends the charge. Calling it again
// is safe.
func (s *shop) order(ctx context.Context, id string) (*merchant.Charge, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	c, err := s.ChargeTx(ctx, tx, merchant.ChargeParams{Order: id, TransactionParams: gateway.TransactionParams{
		Amount: price, Method: gateway.Pix, Products: []gateway.Product{{Name: "Mug", Price: price}},
		Buyer: gateway.BuyerParams{Name: "Maria Oliveira", Email: "maria@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"}},
	}})
	if err == nil { // package merchant comes first: it locks the order before a callback locks this row
		_, err = tx.ExecContext(ctx, `INSERT INTO orders (id) VALUES (?) ON CONFLICT DO NOTHING`, id)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return nil, err
	}
	return s.Send(ctx, c.ID)
}

// giveBack refunds a return. The webhook of the payment may be lost, so the charge is read
// first.
func (s *shop) giveBack(ctx context.Context, order string) error {
	o, err := s.Order(ctx, order)
	if err == nil && o.Current() != nil {
		err = s.Refresh(ctx, o.Current().ID)
	}
	if err == nil {
		_, err = s.Refund(ctx, merchant.RefundParams{ID: "return-" + order, Order: order, Amount: credit})
	}
	return err
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
	page("POST /orders/{id}", func(ctx context.Context, id string) (string, error) {
		c, err := s.order(ctx, id)
		if err != nil {
			return "", err
		}
		return c.TransactionID, nil // a real page shows c.QR()
	})
	page("POST /orders/{id}/return", func(ctx context.Context, id string) (string, error) { return "done", s.giveBack(ctx, id) })
	mux.Handle("POST /webhooks", s.Webhook("shop"))
	return mux
}
