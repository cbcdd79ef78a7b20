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

// Transfer returns e as the event of a transfer. The errors are those of
// [Event.Transaction].
func (e *Event) Transfer() (*TransferEvent, error) {
	data, err := typed(e, FamilyTransfer, readTransferData)
	if err != nil {
		return nil, err
	}
	t := &TransferEvent{Event: e, Data: data}
	if e.confirmed != nil {
		t.Confirmed = e.confirmed.transfer
	}
	return t, nil
}

func readTransferData(o object) TransferData {
	// What is under "object" counts more than what is beside it: it comes last.
	if inner, ok := o.object("object"); ok {
		o.to = inner.to
	}
	d := TransferData{
		ID:            o.text("id"),
		Status:        gateway.TransferStatus(o.text("status")),
		Type:          o.text("type"),
		Amount:        o.amount("amount"),
		Fee:           o.amount("fee"),
		NetAmount:     o.amount("net_amount", "netAmount"),
		ExternalRef:   o.text("external_ref", "externalRef", "correlation_id", "correlationId"),
		TransferredAt: o.timestamp("transferred_at", "transferredAt"),
	}
	d.Extra = o.rest()
	return d
}
