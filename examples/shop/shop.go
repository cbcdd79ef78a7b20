// Package shop is a small merchant that can be tested: it charges orders by
// Pix, ships them when a webhook says that they are paid, and has members who
// pay every month. The tests beside it are those of docs/testing.md.
package shop

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// Order is what a buyer wants. A shop keeps it before it charges.
type Order struct {
	ID    string // also the external_ref, so that no order is charged twice
	Cents int64
	Buyer gateway.BuyerParams
}

// Shop is a merchant over the gateway.
type Shop struct {
	gateway *gateway.Client

	mu      sync.Mutex
	shipped map[string]int       // by order
	members map[string]time.Time // by e-mail: paid until
}

// New returns a shop. Its tests hand it the client of a mock, and production
// one of [gateway.New]: it can't tell them apart.
func New(client *gateway.Client) *Shop {
	return &Shop{gateway: client, shipped: map[string]int{}, members: map[string]time.Time{}}
}

// Charge asks the buyer for the order's money and returns the transaction, with
// the Pix code to show. It may be called again for the same order, such as when
// the page is reloaded, or when its outcome was unknown.
func (s *Shop) Charge(ctx context.Context, o Order) (*gateway.Transaction, error) {
	tx, err := s.gateway.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef: o.ID,
		Amount:      o.Cents,
		Method:      gateway.Pix,
		Buyer:       o.Buyer,
		Products:    []gateway.Product{{Name: "Order " + o.ID, Price: o.Cents}},
	})
	if errors.Is(err, gateway.ErrDuplicate) {
		return s.gateway.Transactions.FindByExternalRef(ctx, o.ID, gateway.FindOptions{})
	}
	return tx, err
}

// Join makes a customer a member, who pays every month by card.
func (s *Shop) Join(ctx context.Context, customerID, cardToken string) (*gateway.Subscription, error) {
	return s.gateway.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID:    customerID,
		Amount:        4990,
		Interval:      gateway.IntervalMonth,
		Token:         gateway.CardToken(cardToken),
		FailurePolicy: gateway.ImmediateCancel,
	})
}

// Receiver returns what the shop mounts at its webhook address.
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shipped[e.Data.CorrelationID]++
	return nil
}

func (s *Shop) renewed(_ context.Context, e *webhook.SubscriptionEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[e.Data.CustomerEmail] = e.Data.CurrentPeriodEnd.Time
	return nil
}

// Shipped returns how many parcels an order has become: it must never be 2.
func (s *Shop) Shipped(orderID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shipped[orderID]
}

// PaidUntil returns until when a member has paid.
func (s *Shop) PaidUntil(email string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members[email]
}
