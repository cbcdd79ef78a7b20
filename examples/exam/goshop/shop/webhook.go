package shop

import (
	"context"
	"net/http"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// reached is the state that an order must at least have if the event was sent.
func reached(kind webhook.Kind) Status {
	switch kind {
	case webhook.TransactionCancelled:
		return Failed
	case webhook.TransactionPaid:
		return Paid
	case webhook.TransactionRefunded:
		return PartiallyRefunded
	case webhook.TransactionChargedback:
		return ChargedBack
	default:
		return Pending
	}
}

func opens(kind webhook.Kind) bool {
	return kind == webhook.TransactionCreated || kind == webhook.TransactionPending || kind == webhook.TransactionThreeDSRequired
}

// Webhook handles a delivery. After an error that is no refusal, the gateway must
// deliver the event again.
func (s *Shop) Webhook(ctx context.Context, header http.Header, body []byte) error {
	if err := webhook.Verify(header, body, s.secret); err != nil && s.mistake != Unsigned {
		return refusal{http.StatusUnauthorized, err.Error()}
	}
	e, err := webhook.Parse(body)
	if err != nil {
		return invalid(err.Error())
	}
	switch e.Family {
	case webhook.FamilyTransaction:
		return s.transactionEvent(ctx, e)
	case webhook.FamilySubscription:
		return s.subscriptionEvent(ctx, e)
	case webhook.FamilyTransfer:
		return s.payoutEvent(ctx, e)
	}
	return nil
}

func (s *Shop) transactionEvent(ctx context.Context, e *webhook.Event) error {
	o, handled := s.find(e)
	if o == nil { // an order is stored before it is charged, so this charge is not ours
		return nil
	}
	if handled && s.mistake != NoDedup && s.mistake != MemoryDedup {
		return nil
	}
	if s.believes(e.Kind) {
		return s.believe(o, e)
	}
	if opens(e.Kind) && o.Tx != "" || s.mistake == ChargebackIgnored && e.Kind == webhook.TransactionChargedback {
		return nil // nothing new
	}
	tx, err := s.client.Transactions.Get(ctx, e.ResourceID)
	if err != nil {
		if s.mistake == SwallowErrors {
			return nil
		}
		return err
	}
	if s.books(o, tx).Status.rank() < reached(e.Kind).rank() {
		return refusal{http.StatusServiceUnavailable, "the gateway's read is older than the event"}
	}
	_, err = s.book(o.ID, booking{tx: tx, event: e.ID, ship: s.wrongShip(o, e)})
	return err
}

// find returns the order of an event, and whether the event was handled before.
func (s *Shop) find(e *webhook.Event) (o *Order, handled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.orders {
		if o.Tx != "" && o.Tx == e.ResourceID || o.Ref == e.CorrelationID {
			return o.clone(), s.events[e.ID]
		}
	}
	return nil, false
}

// believes reports whether the shop makes the mistake to take the state from the
// event, which may be forged or late.
func (s *Shop) believes(kind webhook.Kind) bool {
	return kind == webhook.TransactionPaid && s.mistake == Unsigned || (kind == webhook.TransactionPaid || opens(kind)) && s.mistake == LateOverwrites
}

func (s *Shop) believe(o *Order, e *webhook.Event) error {
	paid, err := e.Transaction()
	if err != nil {
		return err
	}
	tx := &gateway.Transaction{
		ID: e.ResourceID, ExternalRef: o.Ref, Status: paid.Data.Status, Method: paid.Data.Method, Currency: paid.Data.Currency,
		Amount: paid.Data.Charged(),
	}
	if err := tx.Metadata.UnmarshalJSON([]byte(`"` + metadata(o.ID) + `"`)); err != nil {
		return err
	}
	_, err = s.book(o.ID, booking{tx: tx, event: e.ID, late: s.mistake == LateOverwrites})
	return err
}

// wrongShip decides whether an event ships in a shop that makes one of three
// mistakes. A correct one decides in the commit, by what is booked.
func (s *Shop) wrongShip(o *Order, e *webhook.Event) *bool {
	ship := e.Kind == webhook.TransactionPaid
	switch s.mistake {
	case NoDedup:
		return &ship
	case MemoryDedup:
		s.mu.Lock()
		defer s.mu.Unlock()
		ship = ship && !s.seen[e.ID]
		s.seen[e.ID] = true
		return &ship
	case CheckThenAct:
		ship = o.Shipped == 0 // as it was before the transaction was read
		return &ship
	default:
		return nil
	}
}
