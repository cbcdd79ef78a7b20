package main

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
)

func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/gateway", s.Webhook("shop")) // before anything that reads bodies
	mux.HandleFunc("PUT /orders/{id}", endpoint(s, s.putOrder))
	mux.HandleFunc("GET /orders/{id}", endpoint(s, s.getOrder))
	mux.HandleFunc("PUT /refunds/{id}", s.operator(endpoint(s, s.putRefund)))
	mux.HandleFunc("GET /shipments", s.operator(endpoint(s, s.getShipments)))
	mux.HandleFunc("PUT /shipments/{id}/sent", s.operator(endpoint(s, s.putSent)))
	mux.HandleFunc("PUT /members/{id}", endpoint(s, s.putMember))
	mux.HandleFunc("GET /members/{id}", endpoint(s, s.getMember))
	mux.HandleFunc("DELETE /members/{id}", s.operator(endpoint(s, s.leave)))
	mux.HandleFunc("PUT /payouts/{id}", s.operator(endpoint(s, s.putPayout)))
	mux.HandleFunc("GET /payouts/{id}", s.operator(endpoint(s, s.getPayout)))
	mux.HandleFunc("POST /links/{id}", s.operator(endpoint(s, s.postLink)))
	mux.HandleFunc("GET /problems", s.operator(endpoint(s, s.getProblems)))
	mux.HandleFunc("GET /healthz", endpoint(s, func(ctx context.Context, _ string, _ none) (any, error) {
		return none{}, s.db.PingContext(ctx)
	}))
	return mux
}

// buyer is who pays an order or a membership, and the card.
type buyer struct {
	Name     string            `json:"name"`
	Email    string            `json:"email"`
	Document *gateway.Document `json:"document"`
	Token    gateway.CardToken `json:"token"`
}

type orderRequest struct {
	buyer

	SKU      string         `json:"sku"`
	Quantity int64          `json:"quantity"`
	Method   gateway.Method `json:"method"`
}

func (s *shop) putOrder(ctx context.Context, id string, in orderRequest) (any, error) {
	item, ok := catalog()[in.SKU]
	switch {
	case !ok:
		return nil, invalid("sku: is not in the catalog")
	case in.Quantity < 1 || in.Quantity > 100:
		return nil, invalid("quantity: must be from 1 to 100")
	case in.Document == nil && in.Method == gateway.Pix:
		return nil, invalid("document: is required for pix")
	}
	if err := s.place(ctx, id, in.SKU, in.Quantity, gateway.TransactionParams{
		Amount: item.Price * in.Quantity, Method: in.Method, Token: in.Token,
		Buyer: gateway.BuyerParams{Name: in.Name, Email: in.Email, Document: in.Document},
	}); err != nil {
		return nil, err
	}
	return s.getOrder(ctx, id, none{})
}

// record is an order, refund, membership or payout as a response has it. The states are
// those of docs/merchant.md.
type record struct {
	ID        string              `json:"id"`
	Amount    int64               `json:"amount"` // cents
	State     merchant.State      `json:"state"`
	Reason    string              `json:"reason,omitempty"`
	Refunded  int64               `json:"refunded,omitzero"`
	PixCode   string              `json:"pix_code,omitempty"`
	Challenge *gateway.NextAction `json:"challenge,omitempty"` // 3-D Secure, for the payment element
	PaidUntil time.Time           `json:"paid_until,omitzero"`
}

func (s *shop) getOrder(ctx context.Context, id string, _ none) (any, error) {
	v := record{ID: id}
	if err := s.db.QueryRowContext(ctx, `SELECT amount FROM orders WHERE id = $1`, v.ID).Scan(&v.Amount); err != nil {
		return nil, err
	}
	o, err := s.Order(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	c := o.Current()
	if c == nil { // every attempt has failed
		c = o.Charges[len(o.Charges)-1]
	}
	v.State, v.Reason, v.Refunded, v.Challenge = c.State, c.Reason, o.Refunded, c.Challenge
	if c.State == merchant.Pending {
		v.PixCode = c.PixCode
	}
	return v, nil
}

type refundRequest struct {
	Order string `json:"order"`
	UpTo  int64  `json:"up_to"` // cents that are refunded afterwards; 0 means all
}

func (s *shop) putRefund(ctx context.Context, id string, in refundRequest) (any, error) {
	f, err := s.Refund(ctx, merchant.RefundParams{ID: id, Order: in.Order, UpTo: in.UpTo, Full: in.UpTo == 0})
	if err != nil {
		return nil, err
	}
	return record{ID: f.ID, Amount: f.Amount, State: f.State, Reason: f.Reason}, nil
}

// shipment is a task of the warehouse: send, or ask_back if it was sent and is not owed any more.
type shipment struct {
	ID       string `json:"id"`
	Task     string `json:"task"`
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
	Name     string `json:"name"`
	Email    string `json:"email"`
}

func (s *shop) getShipments(ctx context.Context, _ string, _ none) (any, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, task, sku, quantity, name, email FROM shipments
		WHERE task <> 'none' ORDER BY created_at, id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err has the errors that matter
	list := []shipment{}
	for rows.Next() {
		var is shipment
		if err := rows.Scan(&is.ID, &is.Task, &is.SKU, &is.Quantity, &is.Name, &is.Email); err != nil {
			return nil, err
		}
		list = append(list, is)
	}
	return list, rows.Err()
}

func (s *shop) putSent(ctx context.Context, id string, _ none) (any, error) {
	return none{}, s.send(ctx, id)
}

func (s *shop) putMember(ctx context.Context, id string, in buyer) (any, error) {
	who := gateway.CustomerParams{Name: in.Name, Email: in.Email, Document: in.Document}
	return shown(s.join(ctx, id, who, membershipPrice, in.Token))
}

func (s *shop) getMember(ctx context.Context, id string, _ none) (any, error) {
	return shown(s.Subscription(ctx, id))
}

func (s *shop) leave(ctx context.Context, id string, _ none) (any, error) {
	return shown(s.CancelSubscription(ctx, id, ""))
}

func shown(m *merchant.Subscription, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return record{
		ID: m.ID, Amount: m.Amount, State: m.State, Reason: m.Reason, PaidUntil: m.PaidUntil, Challenge: m.Challenge,
	}, nil
}

type payoutRequest struct {
	Amount   int64              `json:"amount"`
	KeyType  gateway.PixKeyType `json:"key_type"`
	KeyValue gateway.PixKey     `json:"key_value"`
}

func (s *shop) putPayout(ctx context.Context, id string, in payoutRequest) (any, error) {
	p, err := s.payBill(ctx, id, gateway.TransferParams{
		PixKeyType: in.KeyType, PixKeyValue: in.KeyValue, Amount: in.Amount,
	})
	if err != nil {
		return nil, err
	}
	return record{ID: p.ID, Amount: p.Requested, State: p.State, Reason: p.Reason}, nil
}

func (s *shop) getPayout(ctx context.Context, id string, _ none) (any, error) {
	var v record
	err := s.db.QueryRowContext(ctx, `SELECT id, amount, state, reason FROM payouts WHERE id = $1`, id).
		Scan(&v.ID, &v.Amount, &v.State, &v.Reason)
	return v, err
}

func (s *shop) postLink(ctx context.Context, id string, _ none) (any, error) {
	item, ok := catalog()[id]
	if !ok {
		return nil, sql.ErrNoRows
	}
	l, err := s.Link(ctx, merchant.LinkParams{ID: id, CheckoutLinkParams: gateway.CheckoutLinkParams{
		Products: []gateway.CheckoutProduct{item},
	}})
	if err != nil {
		return nil, err
	}
	return map[string]string{"id": l.ID, "url": l.URL}, nil
}

func (s *shop) getProblems(ctx context.Context, _ string, _ none) (any, error) {
	problems, err := s.Problems(ctx)
	list := make([]map[string]any, len(problems))
	for i, p := range problems {
		list[i] = map[string]any{
			"id": p.ID, "kind": p.Kind, "order": p.Order, "record": p.Record, "text": p.Text, "since": p.Since,
		}
	}
	return list, err
}

// operator requires the operator's token.
func (s *shop) operator(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.adminToken.Reveal())) != 1 {
			s.respond(w, r, nil, &httpError{http.StatusUnauthorized, "an operator's token is required"})
			return
		}
		next(w, r)
	}
}

// none is the body of a request that has none.
type none struct{}

// requestTime limits a request, including its calls to the gateway. What it interrupts is
// stored, and goes on.
const requestTime = 40 * time.Second

// idRule keeps ids usable in references. The client chooses them, so that it can repeat a
// request.
var idRule = regexp.MustCompile(`^[A-Za-z0-9-]{8,40}$`)

// endpoint decodes a request and encodes its response.
func endpoint[In any](s *shop, next func(ctx context.Context, id string, in In) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// A buyer who closes the page does not cancel a charge.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestTime)
		defer cancel()
		var in In
		var value any
		err := decode(w, r, &in)
		if err == nil {
			value, err = next(ctx, r.PathValue("id"), in)
		}
		s.respond(w, r, value, err)
	}
}

func decode(w http.ResponseWriter, r *http.Request, into any) error {
	if r.Method == http.MethodPut && !idRule.MatchString(r.PathValue("id")) {
		return invalid("id: must be 8 to 40 letters, digits and hyphens")
	}
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	body.DisallowUnknownFields()
	if err := body.Decode(into); err != nil && !errors.Is(err, io.EOF) { // no body is one without members
		return invalid("the body is not the expected JSON")
	}
	return nil
}

// httpError is an error whose text is returned to the caller.
type httpError struct {
	status int
	text   string
}

func (e *httpError) Error() string { return e.text }

func invalid(text string) error { return &httpError{http.StatusUnprocessableEntity, text} }

func (s *shop) respond(w http.ResponseWriter, r *http.Request, value any, err error) {
	status := http.StatusOK
	if err != nil {
		switch status = statusOf(err); status {
		case http.StatusServiceUnavailable:
			err = errors.New("this may have been stored: repeat the request with the same id, nothing happens twice")
		case http.StatusInternalServerError:
			s.log.ErrorContext(r.Context(), "request failed", slog.String("route", r.Pattern), slog.Any("error", err))
			err = errors.New("internal error")
		}
		value = map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) //nolint:errchkjson // fails if the caller has gone
}

func statusOf(err error) int {
	known := new(httpError)
	switch {
	case errors.As(err, &known):
		return known.status
	case errors.Is(err, merchant.ErrMaybeStored): // before the errors that it may wrap
		return http.StatusServiceUnavailable
	case errors.Is(err, gateway.ErrValidation):
		return http.StatusUnprocessableEntity
	case errors.Is(err, merchant.ErrNotFound), errors.Is(err, sql.ErrNoRows):
		return http.StatusNotFound
	case errors.Is(err, merchant.ErrReused), errors.Is(err, merchant.ErrCurrency), errors.Is(err, merchant.ErrLeft),
		errors.Is(err, merchant.ErrState), errors.Is(err, merchant.ErrUnknown):
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}
