package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/webhook"
)

// shop is the same shop on package merchant, with the same table.
type shop struct {
	*merchant.Merchant[*sql.Tx]

	db    *sql.DB
	old   *oldShop
	ready atomic.Bool // all orders of the old code are to be adopted, so that buyers may come
}

func openShop(
	ctx context.Context, db *sql.DB, client *gateway.Client, secret gateway.Secret, rate int,
) (*shop, error) {
	old := &oldShop{db, client}
	m, err := merchant.Open(ctx, database.SQLite(db), merchant.Config{
		Accounts: []merchant.Account{{
			Name: "shop", Client: client, Keys: []webhook.SigningKey{{Key: secret}}, Zone: time.UTC,
		}},
		// Events of what is not in the books yet are the old code's.
		Other: func(ctx context.Context, _ string, e *webhook.Event) error {
			return old.handle(ctx, e)
		},
		AdoptRate: rate,
		Logger:    slog.New(slog.DiscardHandler), // each kill would be logged
		// Short, to keep the example fast. The defaults suit a real gateway.
		SendTimeout: time.Second / 2, SettleAfter: 2 * time.Second, CallbackTimeout: time.Second,
		Lease: time.Second, PollInterval: time.Second / 10,
	}, merchant.Callbacks[*sql.Tx]{Goods: goods, Refunded: refunded})
	return &shop{Merchant: m, db: db, old: old}, err
}

// goods ships an order, unless the old code has.
func goods(ctx context.Context, tx *sql.Tx, g *merchant.Goods) error {
	if g.State != merchant.Paid {
		return nil // a parcel that has left comes back by itself
	}
	return ship(ctx, tx, g.Order)
}

func refunded(ctx context.Context, tx *sql.Tx, r *merchant.Refund) error {
	return store(ctx, tx, &r.Order)
}

// store stores in the shop's own columns what the books have of an order, whatever they had.
func store(ctx context.Context, db execer, o *merchant.Order) error {
	return merchant.One(db.ExecContext(ctx, `UPDATE orders SET refunded = ? WHERE id = ?`, o.Refunded, o.ID))
}

// storeAll does so for orders that were adopted: no callback reports what was so before.
func (s *shop) storeAll(ctx context.Context, orders iter.Seq[string]) error {
	for id := range orders {
		o, err := s.Order(ctx, id)
		if err == nil {
			err = store(ctx, s.db, o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// adoptions lists the orders of the old code, which keep their IDs. What it has not shipped is
// reported: a buyer may pay meanwhile, or has paid and the old code has missed it.
func adoptions(ctx context.Context, db *sql.DB) iter.Seq2[merchant.Adoption, error] {
	return func(yield func(merchant.Adoption, error) bool) {
		rows, err := db.QueryContext(ctx,
			`SELECT id, transaction_id, shipped = 0 FROM orders WHERE transaction_id IS NOT NULL ORDER BY id`)
		if err != nil {
			yield(merchant.Adoption{}, err)
			return
		}
		defer rows.Close() //nolint:errcheck // the error is that of Err
		for rows.Next() {
			var a merchant.Adoption
			if err := rows.Scan(&a.Order, &a.Transaction, &a.Call); !yield(a, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(merchant.Adoption{}, err)
		}
	}
}

// oldCheckout is what is left of the old code: it charges itself, and has the charge adopted.
func (s *shop) oldCheckout(ctx context.Context, order string, amount int64) (transaction string, err error) {
	if transaction, err = s.old.create(ctx, order, amount); err != nil {
		return "", err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer tx.Rollback() //nolint:errcheck // after the commit there is nothing to roll back
	// Package merchant first: it locks the order.
	if err := s.AdoptTx(ctx, tx, merchant.Adoption{Order: order, Transaction: transaction, Call: true}); err != nil {
		return "", err
	}
	if err := insert(ctx, tx, order, amount, transaction); err != nil {
		return "", err
	}
	return transaction, tx.Commit()
}

// moveIn stores that the orders of the old code are to be adopted: those that are not stored yet. Run
// adopts them. Before it has returned, no order is charged or refunded here: the old code may have an
// open charge for it.
func (s *shop) moveIn(ctx context.Context) error {
	if _, err := s.AdoptAll(ctx, adoptions(ctx, s.db)); err != nil {
		return err
	}
	s.ready.Store(true)
	return nil
}

var errNotReady = errors.New("the shop is moving")

// pay shows the code with which an order is paid. If the old code has made one that is open and
// asks for the same, it is that one.
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

// giveBack refunds what is left of an order.
func (s *shop) giveBack(ctx context.Context, order string) (string, error) {
	_, err := s.Refund(ctx, merchant.RefundParams{ID: "return-" + order, Order: order, Full: true})
	return "done", err
}

// handler has the pages of buyers, and the webhooks.
func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	page := func(pattern string, do func(ctx context.Context, order string) (text string, err error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			err := errNotReady
			var text string
			if s.ready.Load() {
				text, err = do(r.Context(), r.PathValue("id"))
			}
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
