package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"

	_ "modernc.org/sqlite" // the driver

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// The table of the old shop, and what it sends.
const schema = `CREATE TABLE IF NOT EXISTS orders (
	id TEXT PRIMARY KEY, amount INTEGER NOT NULL, transaction_id TEXT UNIQUE, shipped INTEGER NOT NULL DEFAULT 0, refunded INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS parcels (n INTEGER PRIMARY KEY AUTOINCREMENT, order_id TEXT NOT NULL)`

// oldShop is a shop as many have written one: it charges with the client, and its webhook changes
// the state of the order. It knows nothing of package merchant.
type oldShop struct {
	db     *sql.DB
	client *gateway.Client
}

func openDB(ctx context.Context, file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+file+
		"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(16)
	_, err = db.ExecContext(ctx, schema)
	return db, err
}

// pix describes the payment of an order.
func pix(amount int64) gateway.TransactionParams {
	return gateway.TransactionParams{
		Amount: amount, Method: gateway.Pix, Products: []gateway.Product{{Name: "Mug", Price: amount}},
		Buyer: gateway.BuyerParams{
			Name: "Maria Oliveira", Email: "maria@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
	}
}

// create makes a Pix code for an order.
func (o *oldShop) create(ctx context.Context, id string, amount int64) (transaction string, err error) {
	p := pix(amount)
	p.ExternalRef = id
	t, err := o.client.Transactions.Create(ctx, p)
	if err != nil {
		return "", err
	}
	return t.ID, nil
}

// insert stores an order.
func insert(ctx context.Context, db execer, id string, amount int64, transaction string) error {
	_, err := db.ExecContext(ctx, `INSERT INTO orders (id, amount, transaction_id) VALUES (?, ?, ?)`, id, amount, transaction)
	return err
}

// charge makes an order with a Pix code.
func (o *oldShop) charge(ctx context.Context, id string, amount int64) (transaction string, err error) {
	if transaction, err = o.create(ctx, id, amount); err != nil {
		return "", err
	}
	return transaction, insert(ctx, o.db, id, amount, transaction)
}

// refund gives money back.
func (o *oldShop) refund(ctx context.Context, id string, amount int64) error {
	var transaction string
	if err := o.db.QueryRowContext(ctx, `SELECT transaction_id FROM orders WHERE id = ?`, id).Scan(&transaction); err != nil {
		return err
	}
	_, err := o.client.Transactions.Refund(ctx, transaction, gateway.RefundParams{Amount: amount})
	return err
}

// handle handles an event.
func (o *oldShop) handle(ctx context.Context, e *webhook.Event) error {
	if e.Family != webhook.FamilyTransaction {
		return nil
	}
	return o.update(ctx, e.ResourceID)
}

// update reads a transaction, and ships what is paid.
func (o *oldShop) update(ctx context.Context, transaction string) error {
	t, err := o.client.Transactions.Get(ctx, transaction)
	if err != nil {
		return err
	}
	if t.Settled() {
		if err := ship(ctx, o.db, t.ExternalRef); err != nil {
			return err
		}
	}
	_, err = o.db.ExecContext(ctx, `UPDATE orders SET refunded = max(refunded, ?) WHERE id = ?`, t.RefundedAmount, t.ExternalRef)
	return err
}

// execer is a database or a transaction.
type execer interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
}

// ship sends an order once, whoever asks: while the shop moves, the old code and the new one do.
func ship(ctx context.Context, db execer, order string) error {
	r, err := db.ExecContext(ctx, `UPDATE orders SET shipped = 1 WHERE id = ? AND shipped = 0`, order)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return err
	}
	_, err = db.ExecContext(ctx, `INSERT INTO parcels (order_id) VALUES (?)`, order)
	return err
}

// webhook is the old webhook URL.
func (o *oldShop) webhook(secret gateway.Secret) (http.Handler, error) {
	rx, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: secret}}, Account: "shop", Mode: webhook.Sync})
	if err != nil {
		return nil, err
	}
	webhook.OnTransaction(rx, webhook.AnyKind, func(ctx context.Context, e *webhook.TransactionEvent) error {
		return o.handle(ctx, e.Event)
	})
	return rx, nil
}

var errNoOrder = errors.New("there is no such order")

// amountOf returns what an order costs.
func amountOf(ctx context.Context, db *sql.DB, order string) (amount int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT amount FROM orders WHERE id = ?`, order).Scan(&amount)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w: %s", errNoOrder, order)
	}
	return amount, err
}
