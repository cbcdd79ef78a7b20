package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
)

// exam adds the hooks of docs/exam.md, which call what the pages call.
func (s *Shop) exam(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.HandleFunc("POST /exam/orders", hook(func(ctx context.Context, _ string, in examOrder) (int, any, error) {
		if in.Method == gateway.Voucher || in.Currency != gateway.BRL {
			return http.StatusNotImplemented, nil, nil
		}
		document := ""
		if in.Buyer.Document != nil {
			document = in.Buyer.Document.Number
		}
		if _, err := s.db.ExecContext(ctx, `INSERT INTO orders (id, product, price, name, email, cpf) VALUES (?, 'Book', ?, ?, ?, ?)
			ON CONFLICT DO NOTHING`, in.ID, in.Amount, in.Buyer.Name, in.Buyer.Email, document); err != nil {
			return 0, nil, err
		}
		c, err := s.pay(ctx, in.ID, in.Token)
		if err != nil {
			return 0, nil, err
		}
		return placed(c.State), nil, nil
	}))
	mux.HandleFunc("GET /exam/orders/{id}", hook(func(ctx context.Context, id string, _ struct{}) (int, any, error) {
		o, err := s.Order(ctx, id)
		if err != nil || len(o.Charges) == 0 {
			return http.StatusNotFound, nil, err
		}
		report := examReport{ID: id, Status: status(o), Paid: o.Paid, Refunded: o.Refunded, ChargedBack: o.Disputed}
		if err := s.pack(ctx); err != nil {
			return 0, nil, err
		}
		err = s.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM exam_parcels WHERE id = ?`, id).Scan(&report.Shipped)
		return http.StatusOK, report, err
	}))
	mux.HandleFunc("POST /exam/orders/{id}/refunds", hook(func(ctx context.Context, id string, in examRefund) (int, any, error) {
		r, err := s.Refund(ctx, merchant.RefundParams{ID: in.ID, Order: id, Amount: in.Amount})
		switch {
		case errors.Is(err, merchant.ErrLeft), errors.Is(err, merchant.ErrState), err == nil && r.State == merchant.Rejected:
			return http.StatusConflict, nil, nil
		case err != nil:
			return 0, nil, err
		case r.State == merchant.Done || r.State == merchant.Accepted:
			return http.StatusOK, nil, nil
		}
		return http.StatusAccepted, nil, nil
	}))
	mux.HandleFunc("POST /exam/subscriptions", hook(func(ctx context.Context, _ string, in examSubscription) (int, any, error) {
		who := gateway.CustomerParams{Name: in.Buyer.Name, Email: in.Buyer.Email, Phone: "11987654321"}
		m, err := s.join(ctx, in.ID, who, in.Amount, in.Token)
		if err != nil {
			return 0, nil, err
		}
		return placed(m.State), nil, nil
	}))
	mux.HandleFunc("GET /exam/subscriptions/{id}", hook(func(ctx context.Context, id string, _ struct{}) (int, any, error) {
		m, err := s.Subscription(ctx, id)
		if errors.Is(err, merchant.ErrNotFound) {
			return http.StatusNotFound, nil, nil
		}
		if err != nil {
			return 0, nil, err
		}
		state, periods := "unknown", 0 // until the callback access was called
		err = s.db.QueryRowContext(ctx, `SELECT state FROM members WHERE id = ?`, id).Scan(&state)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return 0, nil, err
		}
		for _, c := range m.Charges {
			if c.Paid > 0 {
				periods++
			}
		}
		return http.StatusOK, map[string]any{"id": id, "status": state, "paid": m.Order.Paid, "periods": periods}, nil
	}))
	mux.HandleFunc("POST /exam/payouts", hook(func(ctx context.Context, _ string, in examPayout) (int, any, error) {
		p, err := s.payBill(ctx, in.ID, in.Key, in.Amount)
		if err != nil {
			return 0, nil, err
		}
		return placed(p.State), nil, nil
	}))
	mux.HandleFunc("GET /exam/payouts/{id}", hook(func(ctx context.Context, id string, _ struct{}) (int, any, error) {
		state, paid := "pending", int64(0)
		err := s.db.QueryRowContext(ctx, `SELECT state, CASE state WHEN 'paid' THEN amount ELSE 0 END FROM bills WHERE id = ?`, id).Scan(&state, &paid)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return 0, nil, err
		}
		return http.StatusOK, map[string]any{"id": id, "status": state, "paid": paid}, nil
	}))
	mux.HandleFunc("POST /exam/tick", hook(func(ctx context.Context, _ string, _ struct{}) (int, any, error) {
		_ = s.Reconcile(ctx) // what can't be read is compared at the next tick
		return http.StatusOK, nil, s.Idle(ctx)
	}))
	return mux
}

// pack is the warehouse: it sends what is to be packed. The database counts the parcels of each
// order, so that a second one would be seen.
func (s *Shop) pack(ctx context.Context) error {
	if _, err := s.db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS exam_parcels (id TEXT);
		CREATE TRIGGER IF NOT EXISTS exam_parcel AFTER UPDATE OF sent_at ON orders
		BEGIN INSERT INTO exam_parcels VALUES (new.id); END`); err != nil {
		return err
	}
	for {
		var id string
		err := s.db.QueryRowContext(ctx, `SELECT id FROM to_pack LIMIT 1`).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.send(ctx, id); err != nil && !errors.Is(err, sql.ErrNoRows) { // not to be sent any more
			return err
		}
	}
}

type examOrder struct {
	ID       string              `json:"id"`
	Amount   int64               `json:"amount"`
	Currency gateway.Currency    `json:"currency"`
	Method   gateway.Method      `json:"method"`
	Buyer    gateway.BuyerParams `json:"buyer"`
	Token    gateway.CardToken   `json:"card_token"`
}

type examRefund struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
}

type examReport struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	Paid        int64  `json:"paid"`
	Refunded    int64  `json:"refunded"`
	ChargedBack int64  `json:"charged_back"`
	Shipped     int    `json:"shipped"`
}

type examSubscription struct {
	ID     string              `json:"id"`
	Amount int64               `json:"amount"`
	Buyer  gateway.BuyerParams `json:"buyer"`
	Token  gateway.CardToken   `json:"card_token"`
}

type examPayout struct {
	ID     string         `json:"id"`
	Amount int64          `json:"amount"`
	Key    gateway.PixKey `json:"pix_key"`
}

// placed is what the buyer or the operator is told.
func placed(state merchant.State) int {
	switch state {
	case merchant.New, merchant.Unknown, merchant.Ambiguous:
		return http.StatusAccepted
	case merchant.Failed, merchant.Rejected, merchant.Withdrawn:
		return http.StatusPaymentRequired
	}
	return http.StatusCreated
}

// status returns the state of an order as the exam calls it.
func status(o *merchant.Order) string {
	switch {
	case o.Disputed > 0:
		return "charged_back"
	case o.Paid > 0 && o.Left() == 0:
		return "refunded"
	case o.Paid > 0 && !o.Settled:
		return "review"
	case o.Refunded > 0:
		return "partially_refunded"
	case o.Paid > 0:
		return "paid"
	}
	switch c := o.Current(); {
	case c == nil:
		return "failed"
	case c.State == merchant.Ambiguous:
		return "review"
	case c.State == merchant.Pending:
		return "pending"
	}
	return "unknown"
}

// hook decodes a request of the exam and encodes its response.
func hook[T any](next func(ctx context.Context, id string, in T) (int, any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in T
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 25*time.Second)
		defer cancel()
		code, value, err := next(ctx, r.PathValue("id"), in)
		switch {
		case errors.Is(err, gateway.ErrValidation):
			code = http.StatusUnprocessableEntity
		case errors.Is(err, merchant.ErrUnknown):
			code = http.StatusAccepted
		case err != nil:
			code, value = http.StatusInternalServerError, err.Error()
		case code == 0:
			code = http.StatusCreated
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(value)
	}
}
