package webhook

import (
	"encoding/json"

	"github.com/gateway-go/gateway"
)

// TransferEvent is an event of a transfer.
type TransferEvent struct {
	*Event

	// Data is the event's own view of the transfer.
	Data TransferData

	// Confirmed is the transfer as the API had it when the event was accepted,
	// nil where the API was not asked.
	Confirmed *gateway.Transfer
}

// State returns the best that is known of the transfer's state: the confirmed
// one, or the event's own.
func (e *TransferEvent) State() gateway.TransferStatus {
	if e.Confirmed != nil {
		return e.Confirmed.Status
	}
	return e.Data.Status
}

// TransferData is the data of a transfer's event, whether it came flat or
// under "object". Amounts are in cents; what the event left out is zero.
type TransferData struct {
	ID            string
	Status        gateway.TransferStatus
	Type          string // "pix"
	Amount        int64
	Fee           int64
	NetAmount     int64
	ExternalRef   string
	TransferredAt gateway.Timestamp

	// Extra is as in [TransactionData].
	Extra map[string]json.RawMessage
}

// Transfer returns e as the event of a transfer; it is false for the events of
// other families.
func (e *Event) Transfer() (*TransferEvent, bool) {
	if e.Family != FamilyTransfer {
		return nil, false
	}
	typed := &TransferEvent{Event: e, Data: readTransferData(e.data())}
	if e.confirmed != nil {
		typed.Confirmed = e.confirmed.transfer
	}
	return typed, true
}

func readTransferData(m members) TransferData {
	if o := m.object("object"); o != nil {
		m = append(o, beside(m, o)...)
	}
	d := TransferData{
		ID:            m.text("id"),
		Status:        gateway.TransferStatus(m.text("status")),
		Type:          m.text("type"),
		Amount:        m.amount("amount"),
		Fee:           m.amount("fee"),
		NetAmount:     m.amount("net_amount", "netAmount"),
		ExternalRef:   m.text("external_ref", "externalRef", "correlation_id", "correlationId"),
		TransferredAt: m.moment("transferred_at", "transferredAt"),
	}
	d.Extra = m.rest()
	return d
}

// beside returns the members of the data that stand beside the object and not
// in it: they are not lost.
func beside(data, object members) (rest members) {
	for _, d := range data {
		if !d.taken && object.find(string(d.name)) == nil {
			rest = append(rest, d)
		}
	}
	return rest
}
