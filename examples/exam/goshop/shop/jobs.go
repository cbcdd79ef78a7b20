package shop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gateway-go/gateway"
)

// Tick finds out what no webhook said. A shop runs it every few minutes. The error
// says what could not be found out.
func (s *Shop) Tick(ctx context.Context, now time.Time) error {
	var problems []error
	s.mu.Lock()
	ids := slices.Clone(s.placed)
	s.mu.Unlock()
	for _, id := range ids {
		unlock, err := s.lock(ctx, id)
		if err == nil {
			err = s.lookAgain(ctx, s.order(id), now)
			unlock()
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("order %s: %w", id, err))
		}
	}
	return errors.Join(append(problems, s.tickSubscriptions(ctx), s.tickPayouts(ctx))...)
}

func (s *Shop) lookAgain(ctx context.Context, o *Order, now time.Time) error {
	if o.Status == Unknown && o.Tx == "" {
		_, err := s.charge(ctx, o, true)
		return err
	}
	for _, r := range o.Refunds {
		if r.State == RefundSent {
			if err := s.settleRefund(ctx, o, r.ID, now); err != nil {
				return err
			}
		}
	}
	if o.Tx == "" || !s.mistake.reconciles() || !o.open(now) {
		return nil
	}
	_, err := s.read(ctx, o)
	return err
}

// open reports whether the state may change without a webhook.
func (o *Order) open(now time.Time) bool {
	age := now.Sub(o.Created)
	switch o.Status {
	case Pending:
		return true
	case Failed:
		return o.Method == gateway.Voucher && age < 30*24*time.Hour // may be paid late
	case Paid, PartiallyRefunded:
		return age < 24*time.Hour
	default:
		return false
	}
}

// Return is called when the buyer's browser opens the success page. What the page
// says is not looked at: anyone can open it.
func (s *Shop) Return(ctx context.Context, id string) (*Order, error) {
	o := s.order(id)
	if o == nil {
		return nil, notFound("no such order")
	}
	if o.Tx == "" {
		return o, nil
	}
	return s.read(ctx, o)
}

// Report is what the shop says about an order.
type Report struct {
	ID string `json:"id"`
	Books
	Charges []string `json:"charges"`
}

// Report returns the report of an order.
func (s *Shop) Report(_ context.Context, id string) (*Report, error) {
	o := s.order(id)
	if o == nil {
		return nil, notFound("no such order")
	}
	return o.report(), nil
}

func (o *Order) report() *Report {
	r := &Report{ID: o.ID, Books: o.Books, Charges: []string{}}
	if o.Tx != "" {
		r.Charges = append(r.Charges, o.Tx)
	}
	if slices.ContainsFunc(o.Refunds, func(r Refund) bool { return r.State == RefundReview }) {
		r.Status = Review
	}
	return r
}
