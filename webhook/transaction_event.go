package webhook

import (
	"bytes"
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

// Transaction returns e as the event of a transaction; it is false for the
// events of other families.
func (e *Event) Transaction() (*TransactionEvent, bool) {
	if e.Family != FamilyTransaction {
		return nil, false
	}
	typed := &TransactionEvent{Event: e, Data: readTransactionData(e.data())}
	if e.confirmed != nil {
		typed.Confirmed = e.confirmed.transaction
	}
	return typed, true
}

// data returns the members of the event's data.
func (e *Event) data() members {
	data := readMembers(bytes.TrimLeft(e.Raw, " \t\r\n")).find("data")
	if data == nil {
		return members{}
	}
	return readMembers(data.raw)
}

func readTransactionData(m members) TransactionData {
	d := TransactionData{
		ID:            m.text("id"),
		EventType:     Kind(m.text("event_type", "eventType")),
		CorrelationID: m.text("correlation_id", "correlationId", "external_ref"),
		Method:        gateway.Method(m.text("method")),
		Status:        gateway.TransactionStatus(m.text("status")),
		Amount:        m.amount("amount"),
		Currency:      gateway.Currency(m.text("currency")),
		PaidAt:        m.moment("paid_at", "paidAt"),
	}
	if c := m.object("customer"); c != nil {
		d.Customer = EventCustomer{Name: c.text("name"), Email: c.text("email"), Phone: c.text("phone"), Extra: c.rest()}
	}
	for _, p := range m.objects("products") {
		d.Products = append(d.Products, EventProduct{
			Title:     p.text("title", "name"),
			UnitPrice: p.amount("unit_price", "unitPrice", "price"),
			Quantity:  p.count("quantity"),
			Extra:     p.rest(),
		})
	}
	for _, i := range m.objects("informations") {
		d.Informations = append(d.Informations, gateway.Information{Key: i.text("key"), Value: i.text("value")})
	}
	d.Extra = m.rest()
	return d
}
