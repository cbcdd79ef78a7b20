package shop

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/gateway-go/gateway"
)

// Exam returns the hooks with which an exam buys and compares the books: see
// docs/exam.md. Production must not serve them.
func (s *Shop) Exam() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /exam/orders", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ID     string              `json:"id"`
			Amount int64               `json:"amount"` // cents
			Method gateway.Method      `json:"method"`
			Buyer  gateway.BuyerParams `json:"buyer"`
			Token  gateway.CardToken   `json:"card_token"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, err := s.Charge(r.Context(), Order{in.ID, in.Amount, in.Buyer, in.Method, in.Token}) // what the checkout page calls
		w.WriteHeader(s.placed(in.ID, err))                                                     // 201, 202 if the outcome is unknown, 4xx if nothing was charged
	})
	mux.HandleFunc("GET /exam/orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		b, known := s.Books(id)
		if !known {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": id, "status": b.word(), "paid": b.Paid, "refunded": b.Refunded, "charged_back": b.ChargedBack, "shipped": b.Shipped,
		})
	})
	return mux
}

// placed is what the buyer is told.
func (s *Shop) placed(id string, err error) int {
	b, _ := s.Books(id)
	switch {
	case err == nil && b.word() == "failed":
		return http.StatusPaymentRequired
	case err == nil:
		return http.StatusCreated
	case errors.Is(err, gateway.ErrValidation):
		return http.StatusUnprocessableEntity
	}
	return http.StatusAccepted // the outcome is not known
}

// word is the status of the order in the exam's words.
func (b Books) word() string {
	switch {
	case b.Review:
		return "review"
	case b.Charge == "":
		return "unknown"
	case progress(b.Status) == failed:
		return "failed"
	case progress(b.Status) == paid:
		return "paid"
	case progress(b.Status) == chargedBack:
		return "charged_back"
	}
	return string(b.Status) // pending, partially_refunded or refunded
}
