// Package shop is a small merchant on the SDK that loses no money: an example to
// copy, and the Go program that sits the exam. What makes it correct:
//
//   - An order is stored before it is charged, and charged with a reference that is
//     derived from its id, so every repeat finds the first charge.
//   - No response, a 5xx or an unreadable body means "unknown", never "failed".
//   - book is the only writer of an order's state. It takes a transaction that was
//     read from the gateway, never sets the state back, and ships in the same commit.
//   - A webhook is only a hint to read the transaction. It gets 5xx until it is booked.
//   - A refund whose outcome is unknown is not repeated, but looked for, minutes later.
package shop

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
)

// Status is the state of an order in a report.
type Status string

// The states of an order.
const (
	Unknown           Status = "unknown" // the shop will find out whether there is a charge
	Review            Status = "review"  // a person must look
	Pending           Status = "pending"
	Failed            Status = "failed"
	Paid              Status = "paid"
	PartiallyRefunded Status = "partially_refunded"
	Refunded          Status = "refunded"
	ChargedBack       Status = "charged_back"
)

// rank orders the states: an order never goes back.
func (s Status) rank() int {
	return max(0, slices.Index([]Status{Pending, Failed, Paid, PartiallyRefunded, Refunded, ChargedBack}, s))
}

// Order is an order as it is stored. Amounts are in cents.
type Order struct {
	ID        string           `json:"id"`
	Amount    int64            `json:"amount"`
	Currency  gateway.Currency `json:"currency"`
	Method    gateway.Method   `json:"method"`
	Buyer     json.RawMessage  `json:"buyer,omitempty"` // as in the interface
	CardToken string           `json:"card_token,omitempty"`

	Ref     string    `json:"ref"`           // the external_ref
	Sent    time.Time `json:"sent,omitzero"` // when a charge was first requested
	Tx      string    `json:"tx,omitempty"`  // the id of the charge
	Created time.Time `json:"made,omitzero"` // when it was created, by the gateway's clock
	Refunds []Refund  `json:"refunds,omitempty"`
	Books
}

// Books are the state of an order: what the gateway had when it was last read.
type Books struct {
	Status      Status `json:"status"`
	Paid        int64  `json:"paid"` // everything that came in
	Refunded    int64  `json:"refunded"`
	ChargedBack int64  `json:"charged_back"`
	Shipped     int    `json:"shipped"` // how often the parcel left
}

// Refund is a refund that an operator asked for.
type Refund struct {
	ID     string      `json:"id"`
	Amount int64       `json:"amount"`
	State  RefundState `json:"state"`
	Before int64       `json:"before"`         // what was refunded when it was sent
	Since  time.Time   `json:"since,omitzero"` // when a job first found its outcome unknown
}

// RefundState is the state of a refund.
type RefundState string

// The states of a refund.
const (
	RefundSent     RefundState = "sent" // or about to be
	RefundDone     RefundState = "done"
	RefundRejected RefundState = "rejected"
	RefundReview   RefundState = "review" // someone else refunded, too: a person must look
)

// Shop is the merchant. Its methods may be called at the same time.
type Shop struct {
	store   Store
	client  *gateway.Client
	secret  gateway.Secret
	mistake Mistake

	mu            sync.Mutex // guards what follows, and is held during a commit
	orders        map[string]*Order
	placed        []string // ids in order of their creation
	events        map[string]bool
	subscriptions map[string]*Subscription
	payouts       map[string]*Payout
	busy          map[string]chan struct{}
	seen          map[string]bool // only for MemoryDedup
}

// ClientOptions are the options of the client that the shop should have: a buyer
// waits for a charge, so an attempt may not take long.
func ClientOptions() []gateway.Option {
	return []gateway.Option{
		gateway.WithAttemptTimeout(1500 * time.Millisecond), gateway.WithMaxAttempts(3), gateway.WithBackoff(200*time.Millisecond, time.Second),
	}
}

// New returns a shop with what the store has.
func New(store Store, client *gateway.Client, secret gateway.Secret, mistake Mistake) (*Shop, error) {
	if err := mistake.check(); err != nil {
		return nil, err
	}
	s := &Shop{
		store: store, client: client, secret: secret, mistake: mistake,
		orders: map[string]*Order{}, events: map[string]bool{}, busy: map[string]chan struct{}{}, seen: map[string]bool{},
		subscriptions: map[string]*Subscription{}, payouts: map[string]*Payout{},
	}
	return s, store.Load(s.apply)
}

func (s *Shop) apply(r Record) {
	if o := r.Order; o != nil {
		if s.orders[o.ID] == nil {
			s.placed = append(s.placed, o.ID)
		}
		s.orders[o.ID] = o
	}
	if r.Subscription != nil {
		s.subscriptions[r.Subscription.ID] = r.Subscription
	}
	if r.Payout != nil {
		s.payouts[r.Payout.ID] = r.Payout
	}
	if r.Event != "" {
		s.events[r.Event] = true
	}
}

// commit stores a record and then shows it to everybody. Its caller holds mu.
func (s *Shop) commit(r Record) error {
	if err := s.store.Append(r); err != nil {
		return err
	}
	s.apply(r)
	return nil
}

// order returns a copy of an order, or nil.
func (s *Shop) order(id string) *Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orders[id].clone()
}

func (o *Order) clone() *Order {
	if o == nil {
		return nil
	}
	c := *o
	c.Refunds = slices.Clone(o.Refunds)
	return &c
}

// update changes an order in one commit, and returns it as it is then.
func (s *Shop) update(id, event string, change func(*Order)) (*Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[id].clone()
	change(o)
	return o.clone(), s.commit(Record{Order: o, Event: event})
}

// lock admits one charge or refund of an order at a time. Webhooks don't take it:
// they arrive while a charge is made. It is a channel, so that a waiting request
// can give up.
func (s *Shop) lock(ctx context.Context, id string) (unlock func(), err error) {
	s.mu.Lock()
	if s.busy[id] == nil {
		s.busy[id] = make(chan struct{}, 1)
	}
	c := s.busy[id]
	s.mu.Unlock()
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// booking is a transaction that was read, or an event that a mistaken shop believes.
type booking struct {
	tx    *gateway.Transaction
	event string
	ship  *bool // nil is right: the state decides; see wrongShip
	late  bool  // only for LateOverwrites
}

// book books what the gateway has. Reads and events may be older than what is
// booked, so nothing is set back.
func (s *Shop) book(id string, b booking) (*Order, error) {
	return s.update(id, b.event, func(o *Order) {
		if o.Tx != "" && o.Tx != b.tx.ID {
			return // another charge with the reference
		}
		if !s.isOurs(o, b.tx) {
			if o.Tx == "" {
				o.Status = Review
			}
			return
		}
		o.Tx, o.Created = b.tx.ID, cmp.Or(b.tx.CreatedAt.Time, o.Created)
		now := s.books(o, b.tx)
		if cmp.Or(cmp.Compare(now.Status.rank(), o.Status.rank()), cmp.Compare(now.Refunded, o.Refunded)) >= 0 || b.late {
			now.Shipped = o.Shipped
			o.Books = now
		}
		ship := o.Shipped == 0
		if b.ship != nil {
			ship = *b.ship
		}
		if ship && (o.Status == Paid || o.Status == PartiallyRefunded) {
			o.Shipped++ // here the parcel leaves
		}
		for i, r := range o.Refunds {
			if r.State == RefundSent && o.Refunded == r.Before+r.Amount {
				o.Refunds[i].State = RefundDone
			}
		}
	})
}

// isOurs reports whether a transaction is the order's charge. Someone else may have
// used the reference: then it has another amount, or not our metadata.
func (s *Shop) isOurs(o *Order, tx *gateway.Transaction) bool {
	if s.mistake == NoAmountCheck {
		return true
	}
	return tx.ExternalRef == o.Ref && tx.Charged() == o.Amount && tx.Currency == o.Currency && tx.Method == o.Method && named(tx.Metadata, o.ID)
}

// named reports whether the metadata names the order. A live gateway returns the
// string "order=x1" as an object.
func named(m gateway.Metadata, id string) bool {
	var object struct{ Order string }
	return m.Text() == metadata(id) || m.Decode(&object) == nil && object.Order == id
}

// books returns the state of an order that the transaction means.
func (s *Shop) books(o *Order, tx *gateway.Transaction) Books {
	status, paid, refunded := tx.Status, tx.Charged(), tx.RefundedAmount
	if s.mistake == ChargebackIgnored && status == gateway.TransactionChargedback {
		status = gateway.TransactionPaid
	}
	if s.mistake == AnyRefundIsFull && refunded > 0 {
		refunded = paid
	}
	if s.mistake == NoAmountCheck {
		paid = o.Amount
	}
	switch status {
	case gateway.TransactionRefused, gateway.TransactionExpired, gateway.TransactionCanceled:
		return Books{Status: Failed}
	case gateway.TransactionChargedback:
		return Books{Status: ChargedBack, Paid: paid, Refunded: refunded, ChargedBack: paid - refunded}
	case gateway.TransactionPaid, gateway.TransactionCaptured, gateway.TransactionPartiallyRefunded, gateway.TransactionRefunded,
		gateway.TransactionMED, gateway.TransactionInProtest, gateway.TransactionPreChargedback: // disputed, and not lost yet
		switch {
		case refunded >= paid:
			return Books{Status: Refunded, Paid: paid, Refunded: refunded}
		case refunded > 0:
			return Books{Status: PartiallyRefunded, Paid: paid, Refunded: refunded}
		}
		return Books{Status: Paid, Paid: paid}
	default:
		return Books{Status: Pending}
	}
}

// read books the order's charge as it is now.
func (s *Shop) read(ctx context.Context, o *Order) (*Order, error) {
	tx, err := s.client.Transactions.Get(ctx, o.Tx)
	if err != nil {
		return nil, err
	}
	return s.book(o.ID, booking{tx: tx})
}
