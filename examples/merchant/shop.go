package main

import (
	"context"
	"database/sql"
	"errors"
	"html/template"
	"net/http"
	"strconv"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/webhook"
)

const schema = `CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, product TEXT NOT NULL, amount INTEGER NOT NULL,
	name TEXT NOT NULL, email TEXT NOT NULL, cpf TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'new', ships INTEGER NOT NULL DEFAULT 0)`

// Shop sells by Pix and by card.
type Shop struct {
	*merchant.Merchant

	db *sql.DB
}

// Open opens the shop's database, and the merchant's side of the gateway in it.
func Open(ctx context.Context, db *sql.DB, client *gateway.Client, secret gateway.Secret, cfg merchant.Config) (*Shop, error) {
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, err
	}
	cfg.Accounts = []merchant.Account{{Name: "shop", Client: client, Keys: []webhook.SigningKey{{Key: secret}}}}
	cfg.On = merchant.Callbacks{Paid: paid, PaidAgain: merchant.RefundAgain, Refunded: refunded, Disputed: disputed}
	m, err := merchant.Open(ctx, db, cfg)
	return &Shop{Merchant: m, db: db}, err
}

// paid and the next two are called once for each fact, and commit together with it.
func paid(ctx context.Context, tx *sql.Tx, c *merchant.Charge) error {
	if c.Left() < c.Requested {
		return nil // refunded or disputed since
	}
	return merchant.One(tx.ExecContext(ctx, `UPDATE orders SET state = 'paid', ships = ships + 1 WHERE id = ?`, c.Order))
}

func refunded(ctx context.Context, tx *sql.Tx, r *merchant.Refund) error {
	if r.Order.Left() > 0 {
		return nil // a part, or one of two payments
	}
	return merchant.One(tx.ExecContext(ctx, `UPDATE orders SET state = 'refunded' WHERE id = ?`, r.Order.ID))
}

func disputed(ctx context.Context, tx *sql.Tx, c *merchant.Charge) error {
	state := "disputed"
	if c.Disputed == 0 { // won
		state = "paid"
	}
	return merchant.One(tx.ExecContext(ctx, `UPDATE orders SET state = ? WHERE id = ?`, state, c.Order))
}

// pay charges an order. To call it again is safe: a second click, a reload, a card after
// a Pix. Not to know the outcome yet is a state of the charge.
func (s *Shop) pay(ctx context.Context, order string, card gateway.CardToken) (*merchant.Charge, error) {
	p := merchant.ChargeParams{Order: order}
	p.Method, p.Token = gateway.Pix, card
	if card != "" {
		p.Method = gateway.CreditCard
	}
	p.Buyer.Document, p.Products = &gateway.Document{Type: gateway.CPF}, make([]gateway.Product, 1)
	if err := s.db.QueryRowContext(ctx, `SELECT name, email, cpf, product, amount, amount FROM orders WHERE id = ?`, order).
		Scan(&p.Buyer.Name, &p.Buyer.Email, &p.Buyer.Document.Number, &p.Products[0].Name, &p.Products[0].Price, &p.Amount); err != nil {
		return nil, err
	}
	return s.Charge(ctx, p)
}

// refund refunds an order until so many cents are refunded. id is that of the return.
func (s *Shop) refund(ctx context.Context, order, id string, total int64) (*merchant.Refund, error) {
	return s.Refund(ctx, merchant.RefundParams{ID: id, Order: order, UpTo: total})
}

var page = template.Must(template.New("").Parse(`<!doctype html><title>{{.Product}}</title><h1>{{.Product}}: {{.State}}</h1>
{{with .Charge}}{{.QR}}<p>{{.PixCode}}</p>{{with .Challenge}}<payment-element client-secret="{{.ClientSecret.Reveal}}"></payment-element>{{end}}{{end}}
{{if eq .State "new"}}<form method="post" action="/orders/{{.ID}}/pay"><button>Pay by Pix</button></form>{{end}}`))

func (s *Shop) show(w http.ResponseWriter, r *http.Request) {
	v := struct {
		ID, Product, State string
		Charge             *merchant.Charge
	}{ID: r.PathValue("id")}
	err := s.db.QueryRowContext(r.Context(), `SELECT product, state FROM orders WHERE id = ?`, v.ID).Scan(&v.Product, &v.State)
	if errors.Is(err, sql.ErrNoRows) {
		http.NotFound(w, r)
		return
	}
	o, err2 := s.Order(r.Context(), v.ID)
	if err := errors.Join(err, err2); err != nil {
		http.Error(w, "try again", http.StatusInternalServerError)
		return
	}
	if v.State == "new" {
		v.Charge = o.Current()
	}
	_ = page.Execute(w, v)
}

// Handler serves the shop. The refund page belongs behind your login.
func (s *Shop) Handler() http.Handler {
	back := func(w http.ResponseWriter, r *http.Request, err error) {
		if err != nil {
			http.Error(w, "the payment failed: try again", http.StatusBadGateway)
			return
		}
		http.Redirect(w, r, "/orders/"+r.PathValue("id"), http.StatusSeeOther)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", s.show)
	mux.HandleFunc("POST /orders/{id}/pay", func(w http.ResponseWriter, r *http.Request) {
		_, err := s.pay(r.Context(), r.PathValue("id"), gateway.CardToken(r.FormValue("token")))
		back(w, r, err)
	})
	mux.HandleFunc("POST /admin/orders/{id}/refund", func(w http.ResponseWriter, r *http.Request) {
		total, _ := strconv.ParseInt(r.FormValue("total"), 10, 64)
		_, err := s.refund(r.Context(), r.PathValue("id"), r.FormValue("return"), total)
		back(w, r, err)
	})
	mux.Handle("POST /webhooks", s.Webhook("shop"))
	return mux
}
