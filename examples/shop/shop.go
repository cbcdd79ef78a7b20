// Package shop is a small merchant that can be tested: it charges orders by
// Pix, ships them when a webhook reports that they are paid, and has members
// who pay every month. Its tests are those of docs/testing.md.
package shop

import (
	"cmp"
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
	ID     string // also the external_ref, so that no order is charged twice
	Cents  int64
	Buyer  gateway.BuyerParams
	Method gateway.Method    // Pix if it is empty
	Token  gateway.CardToken // of a card
}

// Shop is a merchant that uses the gateway.
type Shop struct {
	gateway *gateway.Client

	mu      sync.Mutex
	orders  map[string]*record   // by order: what was stored before the charge
	members map[string]time.Time // by e-mail: paid until
}

// record is what the shop stores about an order.
type record struct {
	order Order
	since time.Time
	books Books
}

// Books are what the shop knows about an order. Amounts are in cents.
type Books struct {
	Status                      gateway.TransactionStatus // "" until the charge is known to exist
	Charge                      string                    // the transaction
	Paid, Refunded, ChargedBack int64
	Shipped                     int  // parcels; it must never be more than one
	Review                      bool // someone else's charge has the reference: a person must look
}

// ErrOtherCharge means that the order's reference belongs to a charge of another
// system.
var ErrOtherCharge = errors.New("the reference belongs to a charge that is not the order's")

// New returns a shop. Tests pass the client of a mock, production code one from
// [gateway.New].
func New(client *gateway.Client) *Shop {
	return &Shop{gateway: client, orders: map[string]*record{}, members: map[string]time.Time{}}
}

// Charge charges the order and returns the transaction, with the Pix code to
// show. It may be called again for the same order, such as when the page is
// reloaded, or when its outcome was unknown.
func (s *Shop) Charge(ctx context.Context, o Order) (*gateway.Transaction, error) {
	o.Method = cmp.Or(o.Method, gateway.Pix)
	first, since := s.store(o)
	var opts []gateway.RequestOption
	if !first { // an earlier call may have charged it, so a rejection would prove nothing
		opts = append(opts, gateway.FirstSent(since))
	}
	tx, err := s.gateway.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef: o.ID,
		Amount:      o.Cents,
		Method:      o.Method,
		Token:       o.Token,
		Buyer:       o.Buyer,
		Products:    []gateway.Product{{Name: "Order " + o.ID, Price: o.Cents}},
	}, opts...)
	var rejected *gateway.Error
	if errors.Is(err, gateway.ErrDuplicate) && errors.As(err, &rejected) {
		tx, err = s.gateway.Transactions.FindByExternalRef(ctx, o.ID, gateway.FindOptions{ID: rejected.ResourceID})
	}
	if err != nil {
		return nil, err
	}
	return tx, s.book(o.ID, tx)
}

// store stores an order before it is charged. It reports whether this is the first
// time, and when that was.
func (s *Shop) store(o Order) (first bool, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.orders[o.ID]
	if r == nil {
		first = true
		r = &record{order: o, since: time.Now()}
		s.orders[o.ID] = r
	}
	return first, r.since
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
	receiver, err := webhook.New(webhook.Config{
		Keys:    []webhook.SigningKey{{Key: secret}},
		Backoff: func(int) time.Duration { return time.Millisecond }, // the gateway's own schedule spaces the attempts
	})
	if err != nil {
		return nil, err
	}
	for _, kind := range []webhook.Kind{
		webhook.TransactionPaid, webhook.TransactionCancelled, webhook.TransactionRefunded, webhook.TransactionPartiallyRefunded, webhook.TransactionChargedback,
	} {
		webhook.OnTransaction(receiver, kind, s.changed)
	}
	webhook.OnSubscription(receiver, webhook.SubscriptionStarted, s.renewed)
	webhook.OnSubscription(receiver, webhook.SubscriptionRenewed, s.renewed)
	return receiver, nil
}

// changed reads the transaction that an event is about: no event says how much was
// refunded.
func (s *Shop) changed(ctx context.Context, e *webhook.TransactionEvent) error {
	if e.CorrelationID == "" {
		return nil // the charge of a membership, which renewed counts
	}
	tx, err := s.gateway.Transactions.Get(ctx, e.ResourceID)
	if err != nil {
		return err // the gateway delivers the event again
	}
	if progress(tx.Status) < progress(e.State()) {
		return fmt.Errorf("the transaction was read as %s before it became %s", tx.Status, e.State())
	}
	if err := s.book(e.CorrelationID, tx); !errors.Is(err, ErrOtherCharge) {
		return err
	}
	return nil // a retry would not make it the order's charge
}

// book writes what the gateway has to the order, and ships it when it is paid.
// Reads arrive in any order, so nothing is set back.
func (s *Shop) book(orderID string, tx *gateway.Transaction) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.orders[orderID]
	if r == nil { // not stored yet: the error causes a retry
		return fmt.Errorf("no order %q", orderID)
	}
	b := &r.books
	if b.Charge == "" && (!tx.AmountIs(r.order.Cents) || tx.Currency != gateway.BRL || tx.Method != r.order.Method) {
		b.Review = true
		return ErrOtherCharge
	}
	if b.Charge != "" && b.Charge != tx.ID {
		return ErrOtherCharge
	}
	b.Charge = tx.ID
	if progress(tx.Status) < progress(b.Status) || tx.RefundedAmount < b.Refunded {
		return nil
	}
	b.Status, b.Refunded = tx.Status, tx.RefundedAmount
	if !tx.PaidAt.IsZero() {
		b.Paid = tx.Charged()
	}
	if tx.Status == gateway.TransactionChargedback {
		b.ChargedBack = b.Paid - b.Refunded
	}
	if tx.Settled() && b.Shipped == 0 {
		b.Shipped++ // here the parcel leaves
	}
	return nil
}

// How far a transaction is: its events arrive in any order.
const (
	waiting = iota
	failed  // a voucher can still be paid late
	paid
	refundedInPart
	refunded
	chargedBack
)

func progress(status gateway.TransactionStatus) int {
	switch status {
	case gateway.TransactionExpired, gateway.TransactionRefused, gateway.TransactionCanceled:
		return failed
	case gateway.TransactionPaid, gateway.TransactionCaptured:
		return paid
	case gateway.TransactionPartiallyRefunded:
		return refundedInPart
	case gateway.TransactionRefunded:
		return refunded
	case gateway.TransactionChargedback:
		return chargedBack
	default:
		return waiting
	}
}

func (s *Shop) renewed(_ context.Context, e *webhook.SubscriptionEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := e.Data.CurrentPeriodEnd.Time; until.After(s.members[e.Data.CustomerEmail]) { // a late event must not set it back
		s.members[e.Data.CustomerEmail] = until
	}
	return nil
}

// Books returns what the shop knows about an order.
func (s *Shop) Books(orderID string) (b Books, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, known := s.orders[orderID]
	if known {
		b = r.books
	}
	return b, known
}

// Shipped returns how many parcels were sent for an order. It must never be more
// than one.
func (s *Shop) Shipped(orderID string) int {
	b, _ := s.Books(orderID)
	return b.Shipped
}

// PaidUntil returns the end of the period that a member has paid for.
func (s *Shop) PaidUntil(email string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members[email]
}
