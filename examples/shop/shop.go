// Package shop is a small merchant that can be tested: it charges orders by
// Pix, ships them when a webhook reports that they are paid, and has members
// who pay every month. Its tests are those of docs/testing.md.
package shop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// Order is a buyer's order. A shop stores it before it charges it.
type Order struct {
	ID    string // also the external_ref, so that no order is charged twice
	Cents int64
	Buyer gateway.BuyerParams
}

// Shop is a merchant that uses the gateway.
type Shop struct {
	gateway *gateway.Client

	mu      sync.Mutex
	orders  map[string]int64     // cents, by order: what was stored before the charge
	shipped map[string]int       // by order
	members map[string]time.Time // by e-mail: paid until
}

// New returns a shop. Tests pass the client of a mock, production code one from
// [gateway.New].
func New(client *gateway.Client) *Shop {
	return &Shop{gateway: client, orders: map[string]int64{}, shipped: map[string]int{}, members: map[string]time.Time{}}
}

// Charge charges the order and returns the transaction, with the Pix code to
// show. It may be called again for the same order, such as when the page is
// reloaded, or when its outcome was unknown.
func (s *Shop) Charge(ctx context.Context, o Order) (*gateway.Transaction, error) {
	s.mu.Lock()
	s.orders[o.ID] = o.Cents
	s.mu.Unlock()
	tx, err := s.gateway.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef: o.ID,
		Amount:      o.Cents,
		Method:      gateway.Pix,
		Buyer:       o.Buyer,
		Products:    []gateway.Product{{Name: "Order " + o.ID, Price: o.Cents}},
	})
	var rejected *gateway.Error
	if errors.Is(err, gateway.ErrDuplicate) && errors.As(err, &rejected) {
		return s.gateway.Transactions.FindByExternalRef(ctx, o.ID, gateway.FindOptions{ID: rejected.ResourceID})
	}
	return tx, err
}

// Join makes a customer a member who pays every month by card.
func (s *Shop) Join(ctx context.Context, customerID, cardToken string) (*gateway.Subscription, error) {
	return s.gateway.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID:    customerID,
		Amount:        4990,
		Interval:      gateway.IntervalMonth,
		Token:         gateway.CardToken(cardToken),
		FailurePolicy: gateway.ImmediateCancel,

		IdempotencyKey: "membership-" + customerID, // one per customer, however often Join is called
	})
}

// Receiver returns the handler that the shop mounts at its webhook address.
func (s *Shop) Receiver(secret gateway.Secret) (*webhook.Receiver, error) {
	receiver, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: secret}}})
	if err != nil {
		return nil, err
	}
	webhook.OnTransaction(receiver, webhook.TransactionPaid, s.paid)
	webhook.OnSubscription(receiver, webhook.SubscriptionStarted, s.renewed)
	webhook.OnSubscription(receiver, webhook.SubscriptionRenewed, s.renewed)
	return receiver, nil
}

func (s *Shop) paid(_ context.Context, e *webhook.TransactionEvent) error {
	if e.CorrelationID == "" {
		return nil // the charge of a membership, which renewed counts
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cents, ok := s.orders[e.CorrelationID]
	switch {
	case !ok: // not stored yet: the error causes a retry
		return fmt.Errorf("no order %q", e.CorrelationID)
	case !e.Data.AmountIs(cents) || e.Data.Currency != gateway.BRL:
		return webhook.Permanent(fmt.Errorf("order %q was paid with %s", e.CorrelationID, gateway.FormatAmount(e.Data.Charged(), e.Data.Currency)))
	}
	s.shipped[e.CorrelationID]++
	return nil
}

func (s *Shop) renewed(_ context.Context, e *webhook.SubscriptionEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := e.Data.CurrentPeriodEnd.Time; until.After(s.members[e.Data.CustomerEmail]) { // a late event must not set it back
		s.members[e.Data.CustomerEmail] = until
	}
	return nil
}

// Shipped returns how many parcels were sent for an order. It must never be more
// than one.
func (s *Shop) Shipped(orderID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shipped[orderID]
}

// PaidUntil returns the end of the period that a member has paid for.
func (s *Shop) PaidUntil(email string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members[email]
}
