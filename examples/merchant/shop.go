package main

import (
	"context"
	"database/sql"
	"errors"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/webhook"
)

// schema has the shop's own tables. The state of an order or a sale says what the buyer is
// owed: 'new' before the payment, then what the callback goods is told. sent_at is when the
// parcel left. to_pack is all that the warehouse works from.
const schema = `
CREATE TABLE IF NOT EXISTS orders (
	id TEXT PRIMARY KEY, product TEXT, price INTEGER, name TEXT, email TEXT, cpf TEXT,
	state TEXT DEFAULT 'new', sent_at INTEGER
);
CREATE TABLE IF NOT EXISTS sales (charge TEXT PRIMARY KEY, link TEXT, email TEXT, state TEXT, sent_at INTEGER);
CREATE TABLE IF NOT EXISTS members (id TEXT PRIMARY KEY, state TEXT, paid_until INTEGER);
CREATE TABLE IF NOT EXISTS bills (id TEXT PRIMARY KEY, amount INTEGER, state TEXT);
CREATE VIEW IF NOT EXISTS to_pack (id, product, email) AS
	SELECT id, product, email FROM orders WHERE state = 'paid' AND sent_at IS NULL
	UNION ALL SELECT charge, link, email FROM sales WHERE state = 'paid' AND sent_at IS NULL;
`

// Shop sells by Pix and by card, has members, sells by link and pays suppliers.
type Shop struct {
	*merchant.Merchant[*sql.Tx]

	db *sql.DB
}

// Open opens the shop's database, and the merchant's side of the gateway in it.
func Open(
	ctx context.Context, db *sql.DB, client *gateway.Client, secret gateway.Secret, cfg merchant.Config,
) (*Shop, error) {
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, err
	}
	cfg.Accounts = []merchant.Account{{
		Name: "shop", Client: client, Keys: []webhook.SigningKey{{Key: secret}}, Links: true,
	}}
	cfg.SecondPayment = merchant.RefundSecondPayment
	m, err := merchant.Open(ctx, database.SQLite(db), cfg, merchant.Callbacks[*sql.Tx]{
		Goods: goods, Access: access, Payout: paidOut,
	})
	return &Shop{Merchant: m, db: db}, err
}

// goods stores what the buyer is owed, from which to_pack follows. The state becomes 'paid' when
// it is the goods, and 'disputed' or 'refunded' when it is not any more; a refund of a part
// changes nothing. If a dispute is won, it is 'paid' again: what was not sent is to be packed
// then, and what was sent before is not sent twice.
func goods(ctx context.Context, tx *sql.Tx, g *merchant.Goods) error {
	if sale := g.Sale; sale != nil {
		return merchant.One(tx.ExecContext(ctx, `INSERT INTO sales (charge, link, email, state) VALUES (?1, ?2, ?3, ?4)
			ON CONFLICT (charge) DO UPDATE SET state = ?4`, sale.ID, sale.Link, sale.Buyer.Email, g.State))
	}
	return merchant.One(tx.ExecContext(ctx, `UPDATE orders SET state = ? WHERE id = ?`, g.State, g.Order))
}

// access lets a member in until the end of the last period whose payment the shop has.
func access(ctx context.Context, tx *sql.Tx, a *merchant.Access) error {
	return merchant.One(tx.ExecContext(ctx, `INSERT INTO members (id, state, paid_until) VALUES (?1, ?2, ?3)
		ON CONFLICT (id) DO UPDATE SET state = ?2, paid_until = ?3`, a.ID, a.State, a.Until.Unix()))
}

// paidOut notes how the payment of a bill ended.
func paidOut(ctx context.Context, tx *sql.Tx, p *merchant.Payout) error {
	return merchant.One(tx.ExecContext(ctx, `INSERT INTO bills (id, amount, state) VALUES (?1, ?2, ?3)
		ON CONFLICT (id) DO UPDATE SET state = ?3`, p.ID, p.Requested, p.State))
}

// send marks a parcel as sent, just before it leaves. The error is sql.ErrNoRows if it must not
// leave: it has left already, or the payment was refunded or disputed since the label was
// printed. A parcel that is sent and in the state 'disputed' or 'refunded' is to be asked for.
func (s *Shop) send(ctx context.Context, id string) error {
	for _, mark := range []string{
		`UPDATE orders SET sent_at = ? WHERE id = ? AND state = 'paid' AND sent_at IS NULL`,
		`UPDATE sales SET sent_at = ? WHERE charge = ? AND state = 'paid' AND sent_at IS NULL`,
	} {
		result, err := s.db.ExecContext(ctx, mark, time.Now().Unix(), id)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 1 {
			return err
		}
	}
	return sql.ErrNoRows
}

// pay may be called again: after a second click, after an error, with a card after a Pix. If
// the gateway's response was lost, that is a state of the charge, and no error.
func (s *Shop) pay(ctx context.Context, order string, card gateway.CardToken) (*merchant.Charge, error) {
	var product gateway.Product
	var name, email string
	cpf := gateway.Document{Type: gateway.CPF}
	if err := s.db.QueryRowContext(ctx, `SELECT product, price, name, email, cpf FROM orders WHERE id = ?`, order).
		Scan(&product.Name, &product.Price, &name, &email, &cpf.Number); err != nil {
		return nil, err
	}
	p := merchant.ChargeParams{Order: order, TransactionParams: gateway.TransactionParams{
		Method: gateway.Pix, Amount: product.Price, Products: []gateway.Product{product},
		Buyer: gateway.BuyerParams{Name: name, Email: email, Document: &cpf},
	}}
	if card != "" {
		p.Method, p.Token = gateway.CreditCard, card // a 3-D Secure challenge appears on the page
	}
	return s.Charge(ctx, p)
}

func (s *Shop) join(
	ctx context.Context, id string, who gateway.CustomerParams, monthly int64, card gateway.CardToken,
) (*merchant.Subscription, error) {
	return s.Subscribe(ctx, merchant.SubscribeParams{ID: id, Customer: who, SubscriptionParams: gateway.SubscriptionParams{
		Amount: monthly, Interval: gateway.IntervalMonth, Token: card,
	}})
}

func (s *Shop) payBill(ctx context.Context, id string, to gateway.PixKey, cents int64) (*merchant.Payout, error) {
	return s.Payout(ctx, merchant.PayoutParams{ID: id, TransferParams: gateway.TransferParams{
		PixKeyType: gateway.PixKeyEmail, PixKeyValue: to, Amount: cents,
	}})
}

// Offer sells a product by link.
func (s *Shop) Offer(ctx context.Context, sku, name string, price int64) (*merchant.Link, error) {
	return s.Link(ctx, merchant.LinkParams{ID: sku, CheckoutLinkParams: gateway.CheckoutLinkParams{
		Products: []gateway.CheckoutProduct{{ExternalID: sku, Name: name, Price: price}},
	}})
}

var page = template.Must(template.New("").Parse(`<!doctype html>
<title>{{.Product}}</title>
<h1>{{.Product}}: {{.State}}</h1>
{{if eq .State "new"}}
	{{with .Charge}}
		{{.QR}}<p>{{.PixCode}}</p>
		{{with .Challenge}}<payment-element client-secret="{{.ClientSecret.Reveal}}"></payment-element>{{end}}
	{{end}}
	<form method="post" action="/orders/{{.ID}}/pay"><button>Pay by Pix</button></form>
{{end}}
`))

// show takes the state from the shop's own row, and what the buyer needs to pay from the charge.
func (s *Shop) show(w http.ResponseWriter, r *http.Request) {
	view := struct {
		ID, Product, State string
		Charge             *merchant.Charge
	}{ID: r.PathValue("id")}
	err := s.db.QueryRowContext(r.Context(), `SELECT product, state FROM orders WHERE id = ?`, view.ID).
		Scan(&view.Product, &view.State)
	if err != nil {
		http.Error(w, "this order can't be shown", http.StatusNotFound)
		return
	}
	order, err := s.Order(r.Context(), view.ID)
	if err != nil {
		http.Error(w, "this order can't be shown", http.StatusNotFound)
		return
	}
	view.Charge = order.Current()
	_ = page.Execute(w, view)
}

// form handles a form. Repeated with the same IDs, none does more than once.
func form(do func(r *http.Request, order string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		order := r.PathValue("id")
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		switch err := do(r, order); {
		case errors.Is(err, merchant.ErrMaybeStored):
			http.Error(w, "this may have worked: send the form again, nothing happens twice", http.StatusServiceUnavailable)
		case errors.Is(err, sql.ErrNoRows):
			http.Error(w, "there is no such order, or its parcel must not leave or has left: look at its state", http.StatusConflict)
		case err != nil:
			http.Error(w, "this did not work: try again", http.StatusBadGateway)
		case strings.HasPrefix(r.URL.Path, "/admin/parcels/"):
			w.WriteHeader(http.StatusNoContent) // the page with the parcels stays
		default:
			http.Redirect(w, r, "/orders/"+order, http.StatusSeeOther)
		}
	}
}

// Handler serves the shop. The pages below /admin/ belong behind your login.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks", s.Webhook("shop"))
	mux.HandleFunc("GET /orders/{id}", s.show)
	mux.HandleFunc("POST /orders/{id}/pay", form(func(r *http.Request, order string) error {
		_, err := s.pay(r.Context(), order, gateway.CardToken(r.FormValue("token")))
		return err
	}))
	mux.HandleFunc("POST /admin/parcels/{id}/send", form(func(r *http.Request, id string) error {
		return s.send(r.Context(), id) // of an order or of a sale
	}))
	mux.HandleFunc("POST /admin/orders/{id}/refund", form(func(r *http.Request, order string) error {
		total, err := strconv.ParseInt(r.FormValue("total"), 10, 64) // cents
		if err != nil {
			return err
		}
		_, err = s.Refund(r.Context(), merchant.RefundParams{ID: r.FormValue("return"), Order: order, UpTo: total})
		return err
	}))
	return mux
}
