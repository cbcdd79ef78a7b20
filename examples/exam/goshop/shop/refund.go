package shop

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gateway-go/gateway"
)

// settleTime is how long a request that got no response may still be executed.
const settleTime = 5 * time.Minute

// RefundRequest is a refund that an operator asks for.
type RefundRequest struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"` // cents
}

// Refund refunds a part of an order. A repeat with the same id refunds nothing
// more. The error says why nothing was refunded; the refund's State is RefundSent
// while the outcome is not known.
func (s *Shop) Refund(ctx context.Context, orderID string, req RefundRequest) (*Refund, error) {
	if req.ID == "" || req.Amount <= 0 {
		return nil, invalid("id and a positive amount in cents are required")
	}
	unlock, err := s.lock(ctx, orderID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	o := s.order(orderID)
	if o == nil {
		return nil, notFound("no such order")
	}
	if known := o.refund(req.ID); known != nil {
		if known.Amount != req.Amount {
			return nil, conflict("another refund has this id")
		}
		if read, err := s.read(ctx, o); err == nil { // else the outcome is as it was
			o = read
		}
		return o.refund(req.ID), nil
	}
	if slices.ContainsFunc(o.Refunds, func(r Refund) bool { return r.State == RefundSent || r.State == RefundReview }) {
		return nil, conflict("the outcome of another refund is not known yet")
	}
	if o.Tx == "" {
		return nil, conflict("the order is not paid")
	}
	if o, err = s.read(ctx, o); err != nil {
		return nil, err
	}
	if (o.Status != Paid && o.Status != PartiallyRefunded) || req.Amount > o.Paid-o.Refunded {
		return nil, conflict("there is not so much to refund")
	}
	o, err = s.update(o.ID, "", func(o *Order) {
		o.Refunds = append(o.Refunds, Refund{ID: req.ID, Amount: req.Amount, State: RefundSent, Before: o.Refunded})
	})
	if err != nil {
		return nil, err
	}
	if err := s.sendRefund(ctx, o, req.ID); err != nil {
		return nil, err
	}
	return s.order(orderID).refund(req.ID), nil
}

func (o *Order) refund(id string) *Refund {
	for i := range o.Refunds {
		if o.Refunds[i].ID == id {
			return &o.Refunds[i]
		}
	}
	return nil
}

// decide sets the state, unless a webhook has shown meanwhile that the refund was made.
func (r *Refund) decide(state RefundState) {
	if r.State == RefundSent {
		r.State = state
	}
}

// sendRefund sends a refund once. Not every gateway honors the key, so an unknown
// outcome is left to settleRefund.
func (s *Shop) sendRefund(ctx context.Context, o *Order, id string) error {
	var opts []gateway.RequestOption
	if s.mistake != RefundRepeated {
		opts = append(opts, gateway.IdempotencyKey("refund-"+o.Ref+"-"+id))
	}
	params := gateway.RefundParams{Amount: o.refund(id).Amount}
	_, err := s.client.Transactions.Refund(ctx, o.Tx, params, opts...)
	for attempt := 0; s.mistake == RefundRepeated && errors.Is(err, gateway.ErrOutcomeUnknown) && attempt < 2; attempt++ {
		_, err = s.client.Transactions.Refund(ctx, o.Tx, params, opts...)
	}
	state := RefundSent // unknown
	switch {
	case err == nil:
		state = RefundDone
	case isRejection(err):
		state = RefundRejected
	}
	if _, err := s.update(o.ID, "", func(o *Order) { o.refund(id).decide(state) }); err != nil {
		return err
	}
	if state == RefundDone {
		_, _ = s.read(ctx, o) // else the webhook or a job books it
	}
	return nil
}

// settleRefund finds out whether a refund was made: by what the transaction had
// before and has now.
func (s *Shop) settleRefund(ctx context.Context, o *Order, id string, now time.Time) error {
	o, err := s.read(ctx, o)
	if err != nil || o.refund(id).State != RefundSent {
		return err
	}
	since, again := o.refund(id).Since, false
	o, err = s.update(o.ID, "", func(o *Order) {
		r := o.refund(id)
		switch {
		case since.IsZero():
			r.Since = now
		case now.Sub(since) < settleTime:
		case o.Refunded != r.Before:
			r.State = RefundReview
		case o.Status == ChargedBack: // the money is gone
			r.State = RefundRejected
		default:
			r.Since, again = time.Time{}, true
		}
	})
	if err != nil || !again {
		return err
	}
	return s.sendRefund(ctx, o, id)
}
