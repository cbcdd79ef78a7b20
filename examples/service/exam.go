package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/gateway-go/gateway"
)

// exam serves the hooks with which an exam buys and compares the books: see
// docs/exam.md. They call what the routes of http.go call.
func (s *shop) exam(mux *http.ServeMux) {
	mux.HandleFunc("POST /exam/orders", hook(s, func(ctx context.Context, _ string, in examOrder) (int, any, error) {
		if in.Method != gateway.Pix && in.Method != gateway.CreditCard {
			return 0, nil, invalid("method: must be pix or credit_card")
		}
		o, err := s.place(ctx, order{ID: in.ID, Amount: in.Amount, Method: in.Method, buyer: in.Buyer}, in.Token)
		return placed(string(o.State)), nil, err
	}))
	mux.HandleFunc("GET /exam/orders/{id}", hook(s, func(ctx context.Context, id string, _ struct{}) (int, any, error) {
		o, err := s.order(ctx, id)
		if err != nil {
			return 0, nil, err
		}
		report, err := s.books(ctx, o)
		return http.StatusOK, report, err
	}))
	mux.HandleFunc("POST /exam/payouts", hook(s, func(ctx context.Context, _ string, in examPayout) (int, any, error) {
		p, err := s.pay(ctx, payout{ID: in.ID, Amount: in.Amount, keyType: gateway.PixKeyEmail, keyValue: in.Key})
		return placed(p.State), nil, err
	}))
	mux.HandleFunc("GET /exam/payouts/{id}", hook(s, func(ctx context.Context, id string, _ struct{}) (int, any, error) {
		p, err := s.payout(ctx, id)
		report := examReport{ID: p.ID, Status: examStatus(p.State)}
		if p.State == "paid" {
			report.Paid = p.Amount
		}
		return http.StatusOK, report, err
	}))
	mux.HandleFunc("POST /exam/tick", hook(s, func(ctx context.Context, _ string, _ struct{}) (int, any, error) {
		return http.StatusOK, nil, s.tick(ctx)
	}))
}

type examOrder struct {
	ID     string              `json:"id"`
	Amount int64               `json:"amount"`
	Method gateway.Method      `json:"method"`
	Buyer  gateway.BuyerParams `json:"buyer"`
	Token  gateway.CardToken   `json:"card_token"`
}

type examPayout struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
	Key    string `json:"pix_key"`
}

type examReport struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	Paid        int64  `json:"paid"`
	Refunded    int64  `json:"refunded"`
	ChargedBack int64  `json:"charged_back"`
	Shipped     int    `json:"shipped"`
}

// books are what the shop knows about an order.
func (s *shop) books(ctx context.Context, o order) (r examReport, err error) {
	r = examReport{ID: o.ID, Status: examStatus(string(o.State))}
	switch o.State {
	case orderPaid, orderRefunding:
		r.Paid, r.Refunded = o.Amount, o.refunded
		if o.refunded > 0 {
			r.Status = "partially_refunded"
		}
	case orderRefunded:
		r.Paid, r.Refunded = o.Amount, o.Amount
	case orderChargeback:
		r.Paid, r.Refunded, r.ChargedBack = o.Amount, o.refunded, o.Amount-o.refunded
	case orderNew, orderPending, orderFailed, orderReview:
	}
	err = s.db.QueryRowContext(ctx, `SELECT count(*) FROM shipments WHERE order_id = $1`, o.ID).Scan(&r.Shipped)
	return r, err
}

// examStatus translates the state of an order or of a payout.
func examStatus(state string) string {
	switch state {
	case "new":
		return "unknown"
	case "refunding":
		return "paid"
	case "chargedback":
		return "charged_back"
	case "canceled", "rejected":
		return "failed"
	}
	return state
}

// placed is what the buyer or the operator is told.
func placed(state string) int {
	switch examStatus(state) {
	case "unknown", "review":
		return http.StatusAccepted
	case "failed":
		return http.StatusPaymentRequired
	}
	return http.StatusCreated
}

// tick does what happens every few minutes, and then waits for the events that it
// found, and for those that a killed process has left.
func (s *shop) tick(ctx context.Context) error {
	if _, err := s.reconciler.Once(ctx); err != nil {
		s.log.WarnContext(ctx, "reconciliation failed", slog.Any("error", err)) // what it could not read is left for the next round
	}
	const poll = 20 * time.Millisecond
	for {
		n, err := s.receiver.Counts(ctx)
		if err != nil || n.Waiting+n.Claimed == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
}

// hook decodes a request of the exam and encodes its response.
func hook[T any](s *shop, next func(ctx context.Context, id string, in T) (int, any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in T
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&in); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestTime)
		defer cancel()
		status, value, err := next(ctx, r.PathValue("id"), in)
		var known *httpError
		switch {
		case errors.As(err, &known):
			status = known.status
		case errors.Is(err, sql.ErrNoRows):
			status = http.StatusNotFound
		case err != nil:
			s.log.ErrorContext(ctx, "request failed", slog.String("route", r.Pattern), slog.Any("error", err))
			status = http.StatusInternalServerError
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(value)
	}
}
