package webhook

import (
	"encoding/json"

	"github.com/gateway-go/gateway"
)

// TransactionEvent is an event of a transaction.
type TransactionEvent struct {
	*Event

	// Data is the event's own view of the transaction.
	Data TransactionData

	// Confirmed is the transaction as the API had it when the event was
	// accepted, nil where the API was not asked.
	Confirmed *gateway.Transaction
}

// State returns the best that is known of the transaction's state: the
// confirmed one, or the event's own.
func (e *TransactionEvent) State() gateway.TransactionStatus {
	if e.Confirmed != nil {
		return e.Confirmed.Status
	}
	return e.Data.Status
}

// TransactionData is the data of a transaction's event. Amounts are in cents;
// what the event left out is zero.
type TransactionData struct {
	ID            string
	EventType     Kind
	CorrelationID string // the external_ref
	Method        gateway.Method
	Status        gateway.TransactionStatus
	Amount        int64
	Currency      gateway.Currency
	PaidAt        gateway.Timestamp
	Customer      EventCustomer
	Products      []EventProduct
	Informations  []gateway.Information

	// Extra holds the members that this version does not know or that came in
	// another form than expected.
	Extra map[string]json.RawMessage
}

// EventCustomer is the buyer as an event names them.
type EventCustomer struct {
	Name  string
	Email string
	Phone string

	// Extra is as in [TransactionData].
	Extra map[string]json.RawMessage
}

// EventProduct is a product as an event names it.
type EventProduct struct {
	Title     string
	UnitPrice int64 // cents
	Quantity  int

	// Extra is as in [TransactionData].
	Extra map[string]json.RawMessage
}

// Transaction returns e as the event of a transaction. It is an error if e
// belongs to another family, or if an amount or a quantity of its data can't be
// read: the error names the member.
func (e *Event) Transaction() (*TransactionEvent, error) {
	data, err := typed(e, FamilyTransaction, readTransactionData)
	if err != nil {
		return nil, err
	}
	t := &TransactionEvent{Event: e, Data: data}
	if e.confirmed != nil {
		t.Confirmed = e.confirmed.transaction
	}
	return t, nil
}

func readTransactionData(o object) TransactionData {
	d := TransactionData{
		ID:            o.text("id"),
		EventType:     Kind(o.text("event_type", "eventType")),
		CorrelationID: o.text("correlation_id", "correlationId", "external_ref"),
		Method:        gateway.Method(o.text("method")),
		Status:        gateway.TransactionStatus(o.text("status")),
		Amount:        o.amount("amount"),
		Currency:      gateway.Currency(o.text("currency")),
		PaidAt:        o.timestamp("paid_at", "paidAt"),
	}
	if c, ok := o.object("customer"); ok {
		d.Customer = EventCustomer{Name: c.text("name"), Email: c.text("email"), Phone: c.text("phone"), Extra: c.rest()}
	}
	d.Products = listOf(o, "products", readEventProduct)
	d.Informations = listOf(o, "informations", func(i object) gateway.Information {
		return gateway.Information{Key: i.text("key"), Value: i.text("value")}
	})
	d.Extra = o.rest()
	return d
}

func readEventProduct(o object) EventProduct {
	return EventProduct{
		Title:     o.text("title", "name"),
		UnitPrice: o.amount("unit_price", "unitPrice", "price"),
		Quantity:  o.count("quantity"),
		Extra:     o.rest(),
	}
}
