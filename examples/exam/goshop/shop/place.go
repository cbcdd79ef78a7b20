package shop

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/gateway-go/gateway"
)

// PlaceRequest is an order that a buyer places.
type PlaceRequest struct {
	ID        string           `json:"id"`
	Amount    int64            `json:"amount"` // cents
	Currency  gateway.Currency `json:"currency"`
	Method    gateway.Method   `json:"method"`
	Buyer     json.RawMessage  `json:"buyer"` // as in the interface
	CardToken string           `json:"card_token"`
}

func (r *PlaceRequest) check() error {
	switch {
	case r.ID == "":
		return invalid("id is required")
	case r.Amount <= 0:
		return invalid("amount must be positive, in cents")
	case r.Method != gateway.Pix && r.Method != gateway.Voucher && r.Method != gateway.CreditCard:
		return invalid("method must be pix, voucher or credit_card")
	}
	return nil
}

// Place places an order and charges it. A repeat with the same id, such as a second
// click, returns the first order and charges it if that has not been done. The
// order's Status says how it went: Pending or Paid, Failed, or Unknown or Review.
func (s *Shop) Place(ctx context.Context, req PlaceRequest) (*Order, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	if s.mistake != DoubleClick {
		unlock, err := s.lock(ctx, req.ID)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	o := s.order(req.ID)
	if o != nil && (o.Amount != req.Amount || o.Method != req.Method) {
		return nil, conflict("another order has this id")
	}
	if o == nil || s.mistake == DoubleClick {
		var err error
		if o, err = s.newOrder(ctx, req); err != nil {
			return nil, err
		}
	}
	if o.Status == Unknown && o.Tx == "" {
		return s.charge(ctx, o, false)
	}
	return o, nil
}

func (s *Shop) newOrder(ctx context.Context, req PlaceRequest) (*Order, error) {
	o := &Order{
		ID: req.ID, Amount: req.Amount, Currency: gateway.BRL, Method: req.Method, Buyer: req.Buyer, CardToken: req.CardToken,
		Ref: refPrefix + req.ID, Books: Books{Status: Unknown},
	}
	if req.Currency != "" {
		o.Currency = req.Currency
	}
	if s.mistake == DoubleClick {
		o.Ref += "-" + uuid.NewString()
	}
	if s.mistake == AcksUnknownOrder {
		return s.chargeFirst(ctx, o)
	}
	return s.insert(o)
}

func (s *Shop) insert(o *Order) (*Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o.clone(), s.commit(Record{Order: o})
}

// chargeFirst is a mistake: what happens before the order is stored is forgotten.
func (s *Shop) chargeFirst(ctx context.Context, o *Order) (*Order, error) {
	params, err := s.params(o)
	if err != nil {
		return nil, err
	}
	tx, err := s.client.Transactions.Create(ctx, params, gateway.MaxAttempts(1))
	if err != nil {
		return nil, err
	}
	if _, err := s.insert(o); err != nil {
		return nil, err
	}
	return s.book(o.ID, booking{tx: tx})
}

// refPrefix begins the references, which are derived from the ids.
const refPrefix = "shop-"

func metadata(id string) string { return url.Values{"order": {id}}.Encode() }

func (s *Shop) params(o *Order) (gateway.TransactionParams, error) {
	p := gateway.TransactionParams{
		ExternalRef: o.Ref, Amount: o.Amount, Currency: o.Currency, Method: o.Method, Token: gateway.CardToken(o.CardToken),
		Metadata: metadata(o.ID),
	}
	if s.mistake == FloatCents {
		price := float64(o.Amount) / 100
		p.Amount = int64(price * 100)
	}
	p.Products = []gateway.Product{{Name: "Order " + o.ID, Price: p.Amount}}
	if len(o.Buyer) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(o.Buyer, &p.Buyer); err != nil {
		return p, invalid("buyer: " + err.Error())
	}
	return p, nil
}

// charge creates the order's charge, or finds it. Every attempt has the same
// reference, so there is never a second one. settled says that an earlier request
// is so old that it is not executed any more: then a rejection is definite.
func (s *Shop) charge(ctx context.Context, o *Order, settled bool) (*Order, error) {
	params, err := s.params(o)
	if err != nil {
		return s.fail(o)
	}
	var opts []gateway.RequestOption
	if !o.Sent.IsZero() && !settled {
		opts = append(opts, gateway.FirstSent(o.Sent))
	}
	if s.mistake == TimeoutIsFailure || s.mistake == NewRef {
		opts = append(opts, gateway.MaxAttempts(1))
	}
	if o.Sent.IsZero() {
		if o, err = s.update(o.ID, "", func(o *Order) { o.Sent = time.Now() }); err != nil {
			return nil, err
		}
	}
	tx, err := s.client.Transactions.Create(ctx, params, opts...)
	for attempt := 0; s.mistake == NewRef && errors.Is(err, gateway.ErrOutcomeUnknown) && attempt < 2; attempt++ {
		params.ExternalRef = refPrefix + o.ID + "-" + uuid.NewString()
		if o, err = s.update(o.ID, "", func(o *Order) { o.Ref = params.ExternalRef }); err != nil {
			return nil, err
		}
		tx, err = s.client.Transactions.Create(ctx, params, gateway.MaxAttempts(1))
	}
	switch {
	case err == nil:
		return s.book(o.ID, booking{tx: tx})
	case errors.Is(err, gateway.ErrDuplicate): // our own charge, or someone else's
		find := gateway.FindOptions{MaxPages: 10}
		if e, ok := errors.AsType[*gateway.Error](err); ok {
			find.ID = e.ResourceID
		}
		if tx, err := s.client.Transactions.FindByExternalRef(ctx, params.ExternalRef, find); err == nil {
			return s.book(o.ID, booking{tx: tx})
		}
	case isRejection(err), s.mistake == TimeoutIsFailure && errors.Is(err, gateway.ErrOutcomeUnknown):
		return s.fail(o)
	}
	return s.order(o.ID), nil // unknown; a webhook may have booked it meanwhile
}

// isRejection reports whether the gateway rejected the request for good. That the
// outcome is unknown matches none of these.
func isRejection(err error) bool {
	for _, definite := range []error{
		gateway.ErrValidation, gateway.ErrUnauthorized, gateway.ErrForbidden, gateway.ErrNotFound, gateway.ErrConflict, gateway.ErrRetired,
	} {
		if errors.Is(err, definite) {
			return true
		}
	}
	return false
}

func (s *Shop) fail(o *Order) (*Order, error) {
	return s.update(o.ID, "", func(o *Order) {
		if o.Tx == "" || s.mistake == TimeoutIsFailure {
			o.Status = Failed
		}
	})
}
