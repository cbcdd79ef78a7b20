package main

import (
	"context"
	"database/sql"
	"errors"
	"html/template"
	"net/http"
	"strconv"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/webhook"
)

const schema = `CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, product TEXT, amount INTEGER, name TEXT, email TEXT, cpf TEXT, state TEXT, ships INTEGER);
CREATE TABLE IF NOT EXISTS sales (charge TEXT PRIMARY KEY, link TEXT, amount INTEGER, email TEXT); CREATE TABLE IF NOT EXISTS bills (id TEXT PRIMARY KEY, state TEXT, amount INTEGER);
CREATE TABLE IF NOT EXISTS members (id TEXT PRIMARY KEY, state TEXT, paid_until INTEGER, failed INTEGER, periods INTEGER NOT NULL DEFAULT 0)`

// Shop sells by Pix and by card, has members, sells by link and pays suppliers.
type Shop struct {
	*merchant.Merchant[*sql.Tx]

	db *sql.DB
}

// Open opens the shop's database, and the merchant's side of the gateway in it.
func Open(ctx context.Context, db *sql.DB, client *gateway.Client, secret gateway.Secret, cfg merchant.Config) (*Shop, error) {
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, err
	}
	cfg.SecondPayment = merchant.RefundSecondPayment
	cfg.Accounts = []merchant.Account{{Name: "shop", Client: client, Keys: []webhook.SigningKey{{Key: secret}}, Links: true}}
	m, err := merchant.Open(ctx, database.SQLite(db), cfg, merchant.Callbacks[*sql.Tx]{
		Paid: paid, Refunded: refunded, Disputed: disputed, Subscription: renewed, Payout: paidOut,
	})
	return &Shop{Merchant: m, db: db}, err
}

// paid and the next four are called once for each fact, and commit together with it.
func paid(ctx context.Context, tx *sql.Tx, c *merchant.Charge) error {
	switch {
	case c.Left() < min(c.Requested, c.Paid): // a person may have accepted less
		return nil // refunded or disputed since
	case c.Origin == merchant.FromLink:
		return merchant.One(tx.ExecContext(ctx, `INSERT INTO sales VALUES (?, ?, ?, ?)`, c.ID, c.Link, c.Paid, c.Buyer.Email))
	}
	return merchant.One(tx.ExecContext(ctx, `UPDATE orders SET state = 'paid', ships = ships + 1 WHERE id = ?`, c.Order))
}

func refunded(ctx context.Context, tx *sql.Tx, r *merchant.Refund) error {
	if r.Order.ID == "" || r.Order.Left() > 0 {
		return nil // a sale by link or a period; a part, or one of two payments
	}
	return merchant.One(tx.ExecContext(ctx, `UPDATE orders SET state = 'refunded' WHERE id = ?`, r.Order.ID))
}

func disputed(ctx context.Context, tx *sql.Tx, c *merchant.Charge) error {
	_, err := tx.ExecContext(ctx, `UPDATE orders SET ships = CASE WHEN ?1 > 0 AND ?2 THEN MAX(ships, 1) ELSE ships END, state = CASE WHEN ?1 > 0 AND (?2 OR ships > 0)
		THEN 'paid' WHEN ?3 > 0 THEN 'disputed' ELSE 'underpaid' END WHERE id = ?4`, c.OrderLeft, c.State == merchant.Paid, c.Disputed, c.Order) // won, or paid twice
	return err
}

func renewed(ctx context.Context, tx *sql.Tx, s *merchant.Subscription) error { // started, renewed, failed, past due, ended
	paid := s.Event == merchant.Started || s.Event == merchant.Renewed
	return merchant.One(tx.ExecContext(ctx, `INSERT INTO members VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (id) DO UPDATE
		SET state = ?2, paid_until = ?3, failed = ?4, periods = periods + ?5`, s.ID, string(s.State), s.PaidUntil.Unix(), s.FailedAttempts, paid))
}

func paidOut(ctx context.Context, tx *sql.Tx, p *merchant.Payout) error {
	return merchant.One(tx.ExecContext(ctx, `INSERT INTO bills VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE SET state = ?2`, p.ID, string(p.State), p.Requested))
}

// pay and the next three may be called again: a second click, a card after a Pix. Not to
// know the outcome yet is a state of the record.
func (s *Shop) pay(ctx context.Context, order string, card gateway.CardToken) (*merchant.Charge, error) {
	p := merchant.ChargeParams{Order: order}
	p.Method, p.Token = gateway.Pix, card
	if card != "" {
		p.Method = gateway.CreditCard // a 3-D Secure challenge appears on the page
	}
	p.Buyer.Document, p.Products = &gateway.Document{Type: gateway.CPF}, make([]gateway.Product, 1)
	if err := s.db.QueryRowContext(ctx, `SELECT name, email, cpf, product, amount, amount FROM orders WHERE id = ?`, order).
		Scan(&p.Buyer.Name, &p.Buyer.Email, &p.Buyer.Document.Number, &p.Products[0].Name, &p.Products[0].Price, &p.Amount); err != nil {
		return nil, err
	}
	return s.Charge(ctx, p)
}

func (s *Shop) join(ctx context.Context, id string, who gateway.CustomerParams, monthly int64, card gateway.CardToken) (*merchant.Subscription, error) {
	return s.Subscribe(ctx, merchant.SubscribeParams{
		ID: id, Customer: who, SubscriptionParams: gateway.SubscriptionParams{Amount: monthly, Interval: gateway.IntervalMonth, Token: card},
	})
}

func (s *Shop) payBill(ctx context.Context, id string, to gateway.PixKey, cents int64) (*merchant.Payout, error) {
	return s.Payout(ctx, merchant.PayoutParams{ID: id, TransferParams: gateway.TransferParams{PixKeyType: gateway.PixKeyEmail, PixKeyValue: to, Amount: cents}})
}

// Offer sells a product by link.
func (s *Shop) Offer(ctx context.Context, sku, name string, price int64) (*merchant.Link, error) {
	return s.Link(ctx, merchant.LinkParams{ID: sku, CheckoutLinkParams: gateway.CheckoutLinkParams{
		Products: []gateway.CheckoutProduct{{ExternalID: sku, Name: name, Price: price}},
	}})
}

var page = template.Must(template.New("").Parse(`<!doctype html><title>{{.Product}}</title><h1>{{.Product}}: {{.State}}</h1>
{{if eq .State "new"}}{{with .Charge}}{{.QR}}<p>{{.PixCode}}</p>{{with .Challenge}}<payment-element client-secret="{{.ClientSecret.Reveal}}"></payment-element>{{end}}{{end}}<form method="post" action="/orders/{{.ID}}/pay"><button>Pay by Pix</button></form>{{end}}`))

func (s *Shop) show(w http.ResponseWriter, r *http.Request) {
	v := struct {
		ID, Product, State string
		Charge             *merchant.Charge
	}{ID: r.PathValue("id")}
	err := s.db.QueryRowContext(r.Context(), `SELECT product, state FROM orders WHERE id = ?`, v.ID).Scan(&v.Product, &v.State)
	o, err2 := s.Order(r.Context(), v.ID)
	if err := errors.Join(err, err2); err != nil {
		http.Error(w, "this order can't be shown", http.StatusNotFound)
		return
	}
	v.Charge = o.Current()
	_ = page.Execute(w, v)
}

// Handler serves the shop. The refund page belongs behind your login.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	form := func(pattern string, do func(r *http.Request, order string) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
			if _, err := do(r, r.PathValue("id")); err != nil {
				http.Error(w, "that did not work: try again", http.StatusBadGateway)
				return
			}
			http.Redirect(w, r, "/orders/"+r.PathValue("id"), http.StatusSeeOther)
		})
	}
	form("POST /orders/{id}/pay", func(r *http.Request, order string) (any, error) {
		return s.pay(r.Context(), order, gateway.CardToken(r.FormValue("token")))
	})
	form("POST /admin/orders/{id}/refund", func(r *http.Request, order string) (any, error) {
		total, _ := strconv.ParseInt(r.FormValue("total"), 10, 64)
		return s.Refund(r.Context(), merchant.RefundParams{ID: r.FormValue("return"), Order: order, UpTo: total})
	})
	mux.HandleFunc("GET /orders/{id}", s.show)
	mux.Handle("POST /webhooks", s.Webhook("shop"))
	return mux
}
