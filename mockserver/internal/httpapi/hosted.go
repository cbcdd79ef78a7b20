package httpapi

import (
	"strconv"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// The hosted page's endpoints. Clients can call them only in the live dialect;
// the page of package hosted calls them in both.

type hostedSessionBody struct {
	ReferrerURL string `json:"referrer_url"` // accepted and not stored
}

// hostedSession is the data of a new session.
type hostedSession struct {
	SessionToken string `json:"session_token"`
	ExpiresAt    stamp  `json:"expires_at"`
}

func (a *API) openHosted(rq *request, _ *hostedSessionBody) (any, *engine.Refusal) {
	c, refusal := rq.account.Link(rq.param, func(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
		return engine.OpenSession(d.Env, l, nil)
	})
	if refusal != nil {
		return nil, refusal
	}
	return hostedSession{SessionToken: c.Sessions[0].Token, ExpiresAt: stamp(c.Sessions[0].ExpiresAt)}, nil
}

// hostedPaymentBody is the body of a payment. Members that the session already
// has may be omitted.
type hostedPaymentBody struct {
	sessionBody

	SessionToken   string `json:"session_token"`
	Currency       string `json:"currency"`
	Amount         int64  `json:"amount"`
	Token          string `json:"token"`
	Installments   int    `json:"installments"`
	IdempotencyKey string `json:"idempotency_key"`
}

// hostedPayment is the data of a payment.
type hostedPayment struct {
	Transaction *transactionView `json:"transaction"`
}

func (a *API) payHosted(rq *request, in *hostedPaymentBody) (any, *engine.Refusal) {
	var t *engine.Transaction
	_, refusal := rq.account.Link(rq.param, func(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
		s := d.Sessions.ByRef(in.SessionToken)
		if s != nil && s.Slug == l.Slug { // the attempt exists: buyer and method can no longer change
			if t = d.Transactions.Get(s.PaymentWith(in.IdempotencyKey)); t != nil {
				return engine.Change{}, nil
			}
		}
		c, refusal := in.pay(d, l, s)
		if refusal == nil {
			t = c.Transactions[0]
			c = d.Exhaust(c)
		}
		return c, refusal
	})
	if refusal != nil {
		return nil, refusal
	}
	return hostedPayment{Transaction: a.viewTransaction(t)}, nil
}

// pay fills in the session and starts its payment.
func (in *hostedPaymentBody) pay(d *store.Data, l *engine.Link, s *engine.Session) (engine.Change, *engine.Refusal) {
	filled, refusal := engine.UpdateSession(d.Env, l, s, in.update())
	if refusal != nil {
		return engine.Change{}, refusal
	}
	s = filled.Sessions[0]
	if wrong := append(engine.Missing(d.Env, s), in.contradictions(d, l, s)...); len(wrong) > 0 {
		return engine.Change{}, engine.InvalidFields(wrong)
	}
	payment, refusal := engine.StartPayment(d.Env, l, s, d.Catalog(), engine.Payment{
		Key: in.IdempotencyKey, Token: in.Token, TokenSpent: d.Spent(in.Token), Installments: in.Installments,
	})
	return filled.And(payment), refusal
}

// contradictions lists the members that do not match the payment: the price may
// have changed since the buyer saw it.
func (in *hostedPaymentBody) contradictions(d *store.Data, l *engine.Link, s *engine.Session) (wrong []spec.Violation) {
	refuse := func(field, code, message string) {
		wrong = append(wrong, spec.Violation{Field: field, Code: code, Message: message})
	}
	if total := l.Total(d.Catalog()); in.Amount != 0 && in.Amount != total {
		refuse("amount", spec.CodeInvalid, "must be "+strconv.FormatInt(total, 10)+", the amount of the checkout link")
	}
	if in.Currency != "" && in.Currency != l.Currency {
		refuse("currency", spec.CodeInvalid, "must be "+l.Currency+", the currency of the checkout link")
	}
	if in.Token == "" && engine.ByCard(s) {
		refuse("token", spec.CodeRequired, "is required")
	}
	return wrong
}
