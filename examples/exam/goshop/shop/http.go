package shop

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// refusal is an error with the status of its response.
type refusal struct {
	status int
	text   string
}

func (r refusal) Error() string { return r.text }

func invalid(text string) error  { return refusal{http.StatusUnprocessableEntity, text} }
func conflict(text string) error { return refusal{http.StatusConflict, text} }
func notFound(text string) error { return refusal{http.StatusNotFound, text} }

const maxBody = 1 << 20

// Handler serves the webhooks, and in an exam the hooks.
func (s *Shop) Handler(hooks bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhooks", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil {
			err = s.Webhook(r.Context(), r.Header, body)
		}
		respond(w, http.StatusOK, map[string]bool{"received": true}, err)
	})
	if !hooks {
		return mux
	}
	mux.HandleFunc("POST /exam/orders", hook(func(ctx context.Context, _ string, req PlaceRequest) (int, any, error) {
		o, err := s.Place(ctx, req)
		if err != nil {
			return 0, nil, err
		}
		return placed(o.Status), o.report(), nil
	}))
	mux.HandleFunc("GET /exam/orders/{id}", hook(func(ctx context.Context, id string, _ none) (int, any, error) {
		r, err := s.Report(ctx, id)
		return http.StatusOK, r, err
	}))
	mux.HandleFunc("POST /exam/orders/{id}/refunds", hook(func(ctx context.Context, id string, req RefundRequest) (int, any, error) {
		r, err := s.Refund(ctx, id, req)
		if err != nil {
			return 0, nil, err
		}
		return refunded(r.State), r, nil
	}))
	mux.HandleFunc("POST /exam/orders/{id}/return", hook(func(ctx context.Context, id string, _ none) (int, any, error) {
		o, err := s.Return(ctx, id)
		if err != nil {
			return 0, nil, err
		}
		return http.StatusOK, o.report(), nil
	}))
	mux.HandleFunc("POST /exam/tick", hook(func(ctx context.Context, _ string, req struct{ Now time.Time }) (int, any, error) {
		if req.Now.IsZero() {
			return 0, nil, invalid("now is required")
		}
		return http.StatusOK, none{}, s.Tick(ctx, req.Now)
	}))
	mux.HandleFunc("POST /exam/subscriptions", hook(func(ctx context.Context, _ string, req Subscription) (int, any, error) {
		sub, err := s.Subscribe(ctx, req)
		if err != nil {
			return 0, nil, err
		}
		return placed(Status(sub.Status)), sub.report(), nil
	}))
	mux.HandleFunc("GET /exam/subscriptions/{id}", hook(func(_ context.Context, id string, _ none) (int, any, error) {
		sub := s.subscription(id)
		if sub == nil {
			return 0, nil, notFound("no such subscription")
		}
		return http.StatusOK, sub.report(), nil
	}))
	mux.HandleFunc("POST /exam/payouts", hook(func(ctx context.Context, _ string, req Payout) (int, any, error) {
		p, err := s.PayOut(ctx, req)
		if err != nil {
			return 0, nil, err
		}
		return placed(Status(p.Status)), p.report(), nil
	}))
	mux.HandleFunc("GET /exam/payouts/{id}", hook(func(_ context.Context, id string, _ none) (int, any, error) {
		p := s.payout(id)
		if p == nil {
			return 0, nil, notFound("no such payout")
		}
		return http.StatusOK, p.report(), nil
	}))
	return mux
}

// placed is the status of the response to an order, a subscription or a payout.
func placed(status Status) int {
	switch status {
	case Failed:
		return http.StatusPaymentRequired
	case Unknown, Review:
		return http.StatusAccepted
	default:
		return http.StatusCreated
	}
}

func refunded(state RefundState) int {
	switch state {
	case RefundDone:
		return http.StatusOK
	case RefundRejected:
		return http.StatusConflict
	default:
		return http.StatusAccepted
	}
}

// none is a body without members.
type none struct{}

// hook decodes the body of a request and encodes what the shop returns.
func hook[T any](call func(ctx context.Context, id string, req T) (int, any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req T
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&req); err != nil {
				respond(w, 0, nil, refusal{http.StatusBadRequest, "the body must be a JSON object: " + err.Error()})
				return
			}
		}
		status, answer, err := call(r.Context(), r.PathValue("id"), req)
		respond(w, status, answer, err)
	}
}

func respond(w http.ResponseWriter, status int, answer any, err error) {
	if err != nil {
		status, answer = http.StatusServiceUnavailable, map[string]string{"error": err.Error()}
		if r, ok := errors.AsType[refusal](err); ok {
			status = r.status
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) //nolint:errchkjson // the connection may be gone
}
