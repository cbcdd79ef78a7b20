package main

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
)

// requestTime limits a request, including its calls to the gateway. A create
// that it interrupts has an unknown outcome, which the reconciler resolves.
const requestTime = 40 * time.Second

const maxBody = 64 << 10

func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/gateway", s.receiver) // before anything that reads bodies
	mux.HandleFunc("PUT /orders/{id}", s.respond(s.putOrder))
	mux.HandleFunc("GET /orders/{id}", s.respond(func(ctx context.Context, r *http.Request) (any, error) {
		o, err := s.order(ctx, r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return s.show(ctx, o)
	}))
	mux.HandleFunc("PUT /members/{id}", s.respond(s.putMember))
	mux.HandleFunc("GET /members/{id}", s.respond(func(ctx context.Context, r *http.Request) (any, error) {
		return s.member(ctx, r.PathValue("id"))
	}))
	mux.HandleFunc("POST /orders/{id}/refund", s.respond(s.admin(func(ctx context.Context, r *http.Request) (any, error) {
		return s.refund(ctx, r.PathValue("id"))
	})))
	mux.HandleFunc("PUT /payouts/{id}", s.respond(s.admin(s.putPayout)))
	mux.HandleFunc("GET /payouts/{id}", s.respond(s.admin(func(ctx context.Context, r *http.Request) (any, error) {
		return s.payout(ctx, r.PathValue("id"))
	})))
	mux.HandleFunc("GET /healthz", s.respond(func(ctx context.Context, _ *http.Request) (any, error) {
		return s.receiver.Counts(ctx) // reads the database; alert on Dead and Oldest
	}))
	if s.cfg.exam {
		s.exam(mux)
	}
	return mux
}

// endpoint returns the response to a request, or an error.
type endpoint func(ctx context.Context, r *http.Request) (any, error)

func (s *shop) putOrder(ctx context.Context, r *http.Request) (any, error) {
	var in struct {
		SKU      string            `json:"sku"`
		Quantity int64             `json:"quantity"`
		Method   gateway.Method    `json:"method"`
		Token    gateway.CardToken `json:"token"`
		Name     string            `json:"name"`
		Email    string            `json:"email"`
		Document *struct {
			Type   gateway.DocumentType `json:"type"`
			Number string               `json:"number"`
		} `json:"document"`
	}
	id, err := read(r, &in)
	if err != nil {
		return nil, err
	}
	item, ok := catalog()[in.SKU]
	switch {
	case !ok:
		return nil, invalid("sku: is not in the catalog")
	case in.Quantity < 1 || in.Quantity > 100:
		return nil, invalid("quantity: must be from 1 to 100")
	case in.Method != gateway.Pix && in.Method != gateway.CreditCard:
		return nil, invalid("method: must be pix or credit_card")
	case in.Document == nil && in.Method == gateway.Pix:
		return nil, invalid("document: is required for pix")
	case in.Document != nil && !validDocument(in.Document.Type, in.Document.Number):
		return nil, invalid("document: must be a CPF of 11 digits, or a CNPJ of 14 letters and digits, without punctuation")
	}
	o := order{ID: id, Amount: item.price * in.Quantity, Method: in.Method}
	o.buyer = gateway.BuyerParams{Name: in.Name, Email: in.Email}
	if in.Document != nil {
		o.buyer.Document = &gateway.Document{Type: in.Document.Type, Number: in.Document.Number}
	}
	return s.place(ctx, o, in.Token)
}

var (
	cpfRule  = regexp.MustCompile(`^[0-9]{11}$`)
	cnpjRule = regexp.MustCompile(`^[0-9A-Z]{12}[0-9]{2}$`)
)

func validDocument(kind gateway.DocumentType, number string) bool {
	return kind == gateway.CPF && cpfRule.MatchString(number) || kind == gateway.CNPJ && cnpjRule.MatchString(number)
}

func (s *shop) putMember(ctx context.Context, r *http.Request) (any, error) {
	var in struct {
		Name  string            `json:"name"`
		Email string            `json:"email"`
		Token gateway.CardToken `json:"token"`
	}
	id, err := read(r, &in)
	if err != nil {
		return nil, err
	}
	return s.join(ctx, member{ID: id, name: in.Name, email: in.Email}, in.Token)
}

func (s *shop) putPayout(ctx context.Context, r *http.Request) (any, error) {
	var in struct {
		Amount   int64              `json:"amount"`
		KeyType  gateway.PixKeyType `json:"key_type"`
		KeyValue string             `json:"key_value"`
	}
	id, err := read(r, &in)
	if err != nil {
		return nil, err
	}
	return s.pay(ctx, payout{ID: id, Amount: in.Amount, keyType: in.KeyType, keyValue: in.KeyValue})
}

// admin requires the operator's token.
func (s *shop) admin(next endpoint) endpoint {
	return func(ctx context.Context, r *http.Request) (any, error) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(token), []byte(s.cfg.adminToken.Reveal())) != 1 {
			return nil, &httpError{status: http.StatusUnauthorized, text: "an operator's token is required"}
		}
		return next(ctx, r)
	}
}

// idRule keeps ids usable as references.
var idRule = regexp.MustCompile(`^[A-Za-z0-9-]{8,40}$`)

// read returns the id from the path and decodes the body. The client chooses the
// id, so that it can repeat the request.
func read(r *http.Request, into any) (id string, err error) {
	id = r.PathValue("id")
	if !idRule.MatchString(id) {
		return "", invalid("id: must be 8 to 40 letters, digits and hyphens")
	}
	body := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody))
	body.DisallowUnknownFields()
	if err := body.Decode(into); err != nil {
		return "", invalid("the body is not the expected JSON")
	}
	return id, nil
}

// httpError is an error whose text is returned to the caller.
type httpError struct {
	status int
	text   string
}

func (e *httpError) Error() string { return e.text }

func invalid(text string) error {
	return &httpError{status: http.StatusUnprocessableEntity, text: text}
}
func conflict(text string) error { return &httpError{status: http.StatusConflict, text: text} }

func (s *shop) respond(next endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// A buyer who closes the page does not cancel a charge.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestTime)
		defer cancel()
		value, err := next(ctx, r)
		status := http.StatusOK
		if err != nil {
			var known *httpError
			switch {
			case errors.As(err, &known):
			case errors.Is(err, sql.ErrNoRows):
				known = &httpError{status: http.StatusNotFound, text: "not found"}
			default:
				s.log.ErrorContext(ctx, "request failed", slog.String("route", r.Pattern), slog.Any("error", err))
				known = &httpError{status: http.StatusInternalServerError, text: "internal error"}
			}
			status, value = known.status, map[string]string{"error": known.text}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(value); err != nil {
			s.log.DebugContext(ctx, "response not written", slog.Any("error", err))
		}
	}
}
