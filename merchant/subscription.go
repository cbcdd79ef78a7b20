package merchant

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html/template"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
)

// SubscribeParams describes a subscription and its customer.
type SubscribeParams struct {
	ID      string // of the membership, unique among the subscriptions of the account's book; required
	Account string // optional if there is only one

	// Customer describes the payer. Each subscription has a customer of its own.
	// ExternalRef must be empty: it is the account's prefix and the ID, such as
	// "shop-M17", so the ID must not be personal data.
	Customer gateway.CustomerParams

	// SubscriptionParams describes what is charged. CustomerID and IdempotencyKey must be
	// empty: they follow from the ID.
	gateway.SubscriptionParams
}

// Subscription is a subscription of one of your customers. Amounts are in cents of
// Currency.
type Subscription struct {
	ID             string // yours
	Book           string // see [Account]
	Account        string
	CustomerID     string // at the gateway; "" until the customer was created
	SubscriptionID string // at the gateway; "" until the subscription was created

	// State is a [gateway.SubscriptionStatus] or, before the gateway created the
	// subscription, New, Unknown, Ambiguous, Rejected or Withdrawn.
	State     State
	Canceling bool              // a cancellation was asked for, and its outcome is not known yet
	Event     SubscriptionEvent // what [Callbacks.Subscription] reports; "" elsewhere

	Amount         int64 // charged every period
	Currency       gateway.Currency
	PaidUntil      time.Time // the end of the last period that was paid; zero before, never goes back
	FailedAttempts int       // since the last charge that was paid
	Reason         string    // why it was rejected, ended or will end, such as a [gateway.CancellationReason]

	// Charge is the one that Event is about: nil for PastDue and Ended. Charge.Reason says
	// why it failed.
	Charge  *Charge
	Charges []*Charge // the oldest first; nil in a callback
	Order   Order     // the money of all charges; its ID is ""

	Challenge         *gateway.NextAction // the 3-D Secure challenge of a charge, nil unless one is open
	AuthorizationCode string              // with which the payer authorizes a Pix Automatico; "" unless it is incomplete
	CreatedAt         time.Time           // by the database's clock
	Erased            time.Time           // since when nothing is kept of the payer, see [Merchant.Erase]; zero if something is
}

// QR returns the authorization code as an SVG picture for a page, "" if there is none.
func (s *Subscription) QR() template.HTML { return (&Charge{PixCode: s.AuthorizationCode}).QR() }

// SubscriptionEvent says what happened to a subscription.
type SubscriptionEvent string

// The events of a subscription.
const (
	Started       SubscriptionEvent = "started"        // the first period was paid, after the trial if there is one
	Renewed       SubscriptionEvent = "renewed"        // a further period was paid
	PaymentFailed SubscriptionEvent = "payment_failed" // a charge failed
	PastDue       SubscriptionEvent = "past_due"       // a renewal failed and is tried again; not reported if that is over when it is read
	ChargedBack   SubscriptionEvent = "charged_back"   // the payment of a period was charged back
	Ended         SubscriptionEvent = "ended"          // it is canceled, or was rejected; it is not charged again
)

func (p *SubscribeParams) validate(a *account) error {
	if err := identify(kindSubscribe, "id", p.ID, "your membership"); err != nil {
		return err
	}
	switch {
	case len(p.ID) > maxOrder:
		return invalid(kindSubscribe, "id", fmt.Sprintf("must have at most %d bytes", maxOrder))
	case p.Customer.ExternalRef != "":
		return invalid(kindCustomer, "externalRef", "must be empty: it is made of the ID of the subscription")
	case p.CustomerID != "":
		return invalid(kindSubscribe, "customer_id", "must be empty: the customer is created with the subscription")
	case p.IdempotencyKey != "":
		return invalid(kindSubscribe, "idempotency_key", "must be empty: it is made of the ID of the subscription")
	}
	return errors.Join(p.customer(a).Validate(), p.create(a).Validate())
}

func (p *SubscribeParams) customer(a *account) operations.CreateCustomer {
	params := p.Customer
	params.ExternalRef = a.Prefix + p.ID
	return operations.CreateCustomer(params)
}

// create returns the operation that creates the subscription. Its customer is not known
// yet.
func (p *SubscribeParams) create(a *account) operations.CreateSubscription {
	params := p.SubscriptionParams
	params.CustomerID, params.IdempotencyKey = "unknown", a.Prefix+p.ID
	return operations.CreateSubscription(params)
}

// asked returns what recognizes a subscription that is asked for again. A token is used
// once, and the end of a trial may be computed from the time of the call.
func (p *SubscribeParams) asked() asked {
	return asked{
		Amount: p.Amount, Currency: cmp.Or(p.Currency, gateway.BRL), Method: cmp.Or(p.PaymentMethod, gateway.SubscriptionCreditCard),
		Interval: p.Interval, IntervalCount: max(p.IntervalCount, 1),
	}
}

// encodedCreate returns the request for the subscription as it is stored until the
// customer exists. The outbox would reject then what this rejects now.
func encodedCreate(op operations.CreateSubscription) (string, error) {
	params, err := json.Marshal(op, json.Deterministic(true))
	if err != nil {
		return "", invalid(kindSubscribe, "params", "must be encodable as JSON: "+err.Error())
	}
	if bytes.Contains(params, []byte(`\u0000`)) {
		return "", invalid(kindSubscribe, "params", "must not contain the character U+0000, which PostgreSQL can't store")
	}
	var back operations.CreateSubscription
	err = json.Unmarshal(params, &back)
	if again, err2 := json.Marshal(back, json.Deterministic(true)); errors.Join(err, err2) != nil || !bytes.Equal(params, again) {
		return "", invalid(kindSubscribe, "params", "must not change when encoded and decoded: write large numbers in metadata as strings")
	}
	return string(params), nil
}

// SubscribeTx stores a subscription and its customer in your transaction. [Merchant.Run]
// creates the customer after the commit, then the subscription, each at most once, and
// calls [Callbacks.Subscription].
//
// Calling it again with the same ID returns the existing subscription, whatever its state
// is: to try another card after a refusal, cancel the subscription and use another ID. The
// error is [ErrReused] if the account, amount, currency, payment method or interval
// differ, [ErrAccount] if there is no such account, and [gateway.ErrValidation] if a
// parameter breaks a rule of the gateway. Then nothing was stored. About your COMMIT see
// [ErrMaybeStored].
func (m *Merchant[TX]) SubscribeTx(ctx context.Context, tx TX, p SubscribeParams) (*Subscription, error) {
	return m.subscribeTx(ctx, m.in(tx), p, nil)
}

func (m *core) subscribeTx(ctx context.Context, tx sqldb.Tx, p SubscribeParams, by *sender) (*Subscription, error) {
	a, err := m.account(p.Account)
	if err != nil {
		return nil, err
	}
	if err := p.validate(a); err != nil {
		return nil, err
	}
	params, err := encodedCreate(p.create(a))
	if err != nil {
		return nil, err
	}
	var added *Subscription
	at := place{subject: ledger.SubscriptionSubject(a.Book, p.ID), lock: ledger.New}
	if err := m.on(ctx, tx, at, func(b *bench) error {
		switch s := b.subscription; {
		case s == nil && b.order.ErasedAt != 0:
			return b.checkErased()
		case s == nil:
			b.subscription = &subscription{
				base: base{account: a, Row: ledger.Row{
					Kind: ledger.Subscriptions, ID: p.ID, Account: a.Name, Subject: b.order.Subject(), Ref: a.Prefix + p.ID, Params: params, Created: b.now,
				}},
				subscriptionRecord: subscriptionRecord{asked: p.asked(), Books: books.Subscription{ID: p.ID, Operation: books.Waiting, State: New}},
			}
			document := ""
			if d := p.Customer.Document; d != nil {
				document = d.Number
			}
			b.belongsTo(a, ofSubscription, p.ID, document, p.Customer.Email)
			added = b.subscription.shown(&Order{})
			b.sends = append(b.sends, send{a, p.customer(a), "the reference " + a.Prefix + p.ID + " was used for another customer", by})
			return nil
		case s.account != a || s.asked != p.asked():
			return fmt.Errorf("%w: subscription %s", ErrReused, p.ID)
		default:
			s.touched = true
			return nil
		}
	}); err != nil || added != nil {
		return added, err
	}
	return m.showSubscription(ctx, m.ledger(tx), at.subject, true)
}

// Subscribe is [Merchant.SubscribeTx] in a transaction of its own. It creates the customer
// and the subscription at once and reads the subscription, so that Challenge or
// AuthorizationCode can be shown. Not to know the outcome is no error: the state is
// [Unknown], or [New] if it is that of the customer. If the subscription was stored and
// can't be created now, it is returned without an error: [Merchant.Run] creates it. After
// [ErrMaybeStored] call it again; after any other error nothing is stored.
func (m *core) Subscribe(ctx context.Context, p SubscribeParams) (*Subscription, error) {
	var s *Subscription
	by := &sender{}
	if err := m.sends(ctx, by, func(ctx context.Context, tx sqldb.Tx) (err error) {
		s, err = m.subscribeTx(ctx, tx, p, by)
		return err
	}); err != nil {
		return nil, err
	}
	if s.State != New && !by.lost {
		return s, nil
	}
	a := m.accounts[s.Account]
	err := m.sendBy(ctx, a, by, kindCustomer, a.Prefix+s.ID)
	if err == nil { // it is not stored unless the customer was created
		err = m.send(ctx, a, kindSubscribe, a.Prefix+s.ID)
	}
	return m.sentSubscription(ctx, s, err)
}

// sentSubscription reads a subscription whose request was sent, and returns it as it is
// then. The request is stored: a failure is only logged.
func (m *core) sentSubscription(ctx context.Context, stored *Subscription, err error) (*Subscription, error) {
	if err == nil {
		err = m.look(ctx, ledger.Subscriptions, stored.Book, stored.ID, books.FromResponse)
	}
	s, err2 := m.bound(stored.Book).Subscription(ctx, stored.ID)
	if err2 != nil {
		s = stored
	}
	if err := errors.Join(err, err2); err != nil {
		m.fail(ctx, "the request for a subscription was stored and could not be sent or read at once", err)
	}
	return s, nil
}

// Subscription returns a subscription with its charges and their money. The error is
// [ErrNotFound] if there is none with the ID, and [ErrAccount] if there are several books, see
// [Merchant.Book].
func (m *reading) Subscription(ctx context.Context, id string) (*Subscription, error) {
	book, err := m.oneBook(ctx)
	if err != nil {
		return nil, err
	}
	return m.showSubscription(ctx, m.outside(), ledger.SubscriptionSubject(book, id), true)
}

// CancelSubscriptionTx cancels a subscription in your transaction. [Merchant.Run] sends the
// request after the commit, or as soon as it is known that the subscription was created. A
// subscription that was not sent yet is [Withdrawn], and has no event.
//
// A card subscription runs until the end of the paid period, any other one ends at once,
// see [gateway.SubscriptionsService.Cancel]; then the event is [Ended]. If the gateway
// rejects the request, there is a [Problem], and you may call it again.
//
// Leave the reason empty, or use a [gateway.CancellationReason]: live gateways reject any
// other text. If the subscription is canceled, was never made, or a cancellation is under
// way, the call changes nothing. The error is [ErrNotFound] if there is none with the ID,
// and [gateway.ErrValidation] if the reason is invalid. Then nothing was stored. About your
// COMMIT see [ErrMaybeStored].
func (m *Merchant[TX]) CancelSubscriptionTx(ctx context.Context, tx TX, id, reason string) (*Subscription, error) {
	return m.cancelSubscriptionTx(ctx, m.in(tx), id, reason, "")
}

// cancelSubscriptionTx is [Merchant.CancelSubscriptionTx]. A call that is not "" makes one
// request, even if it is repeated after that one was rejected.
func (m *core) cancelSubscriptionTx(ctx context.Context, tx sqldb.Tx, id, reason, call string) (*Subscription, error) {
	if err := (operations.CancelSubscription{Key: "1", SubscriptionID: "1", Reason: reason}).Validate(); err != nil {
		return nil, err
	}
	book, err := m.oneBook(ctx)
	if err != nil {
		return nil, err
	}
	l := m.ledger(tx)
	row, err := l.Row(ctx, ledger.Subscriptions, book, id)
	if err != nil {
		return nil, err
	}
	if err := m.on(ctx, tx, place{subject: row.Subject}, func(b *bench) error {
		b.subscription.touched = true
		return b.cancel(ctx, reason, call)
	}); err != nil {
		return nil, err
	}
	return m.showSubscription(ctx, l, row.Subject, true)
}

// CancelSubscription is [Merchant.CancelSubscriptionTx] in a transaction of its own. It
// sends the request at once and reads the subscription. If the request was stored and
// can't be sent now, it returns the subscription, with Canceling set, without an error. After
// [ErrMaybeStored] call it again; after any other error nothing is stored.
func (m *core) CancelSubscription(ctx context.Context, id, reason string) (*Subscription, error) {
	var s *Subscription
	call, lost := rand.Text(), false
	if err := m.stored(ctx, func(ctx context.Context, tx sqldb.Tx, again bool) (err error) {
		lost = again
		s, err = m.cancelSubscriptionTx(ctx, tx, id, reason, call)
		return err
	}); err != nil {
		return nil, err
	}
	if !s.Canceling && !lost {
		return s, nil
	}
	stored, err := m.loadSubscription(ctx, m.outside(), s.Book, id)
	if err == nil && stored.Cancels > 0 {
		err = m.send(ctx, stored.account, kindCancel, stored.cancelKey())
	}
	return m.sentSubscription(ctx, s, err)
}

// cancel cancels the subscription, or its creation.
func (b *bench) cancel(ctx context.Context, reason, call string) error {
	s := b.subscription
	switch status := s.Books.Status; {
	case call != "" && s.CancelCall == call, s.Canceling, s.notMade(), status.Final(), status == gateway.SubscriptionCancelScheduled:
		return nil
	case s.Books.SubscriptionID == "":
		withdrawn, err := b.withdrawCreate(ctx)
		if err != nil || withdrawn {
			return err
		}
	}
	s.Canceling, s.CancelReason, s.CancelCall = true, reason, call
	b.sendCancel()
	return nil
}

// withdrawCreate cancels the request for the subscription, unless it was sent or a worker is
// about to send it. Without the subscription its customer is not needed.
func (b *bench) withdrawCreate(ctx context.Context) (withdrawn bool, err error) {
	s, kind := b.subscription, kindSubscribe
	if s.Params != "" {
		kind = kindCustomer
	}
	err = b.requests.withdraw(ctx, s.account, kind, s.Ref)
	switch {
	case err == nil, s.Params != "" && errors.Is(err, operations.ErrState):
		s.Params = ""
		b.subscriptionIs(books.Abandoned, "")
		return true, nil
	case errors.Is(err, operations.ErrState):
		return false, nil
	}
	return false, err
}

// sendCancel stores the request that cancels the subscription, if it is known.
func (b *bench) sendCancel() {
	s := b.subscription
	if s.Books.SubscriptionID == "" {
		return // its outcome stores the request
	}
	s.Cancels++
	b.sends = append(b.sends, send{s.account, operations.CancelSubscription{
		Key: s.cancelKey(), SubscriptionID: s.Books.SubscriptionID, Reason: s.CancelReason,
	}, "the key " + s.cancelKey(), nil})
}

// cancelKey is the key of the last request that cancels the subscription: after a rejection
// there may be another one.
func (s *subscription) cancelKey() string { return s.Ref + "-" + strconv.Itoa(s.Cancels) }
