package gateway

import (
	"encoding/json"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/rules"
	"github.com/gateway-go/gateway/internal/wire"
)

// TransactionListParams is the query of GET /v2/transactions. Where several
// values are given for one member, a transaction needs one of them.
type TransactionListParams struct {
	Cursor    string    `url:"cursor,omitempty"` // of another page; see [Page.NextCursor]
	Limit     int       `url:"limit,omitempty"`  // 1 to 100; 20 where it is not sent
	Direction Direction `url:"direction,omitempty"`

	ID             []string            `url:"id,comma,omitempty"`
	Methods        []Method            `url:"paymentMethods,comma,omitempty"`
	Currencies     []Currency          `url:"currency,comma,omitempty"`
	Statuses       []TransactionStatus `url:"status,comma,omitempty"`
	DeliveryStatus []DeliveryStatus    `url:"deliveryStatus,comma,omitempty"`
	Installments   []int               `url:"installments,comma,omitempty"`
	Name           string              `url:"name,omitempty"`           // of the buyer
	Email          string              `url:"email,omitempty"`          // of the buyer
	DocumentNumber string              `url:"documentNumber,omitempty"` // of the buyer
	Phone          string              `url:"phone,omitempty"`          // of the buyer
	Products       []string            `url:"products,comma,omitempty"` // names
	Traceable      Opt[bool]           `url:"traceable,omitempty"`
	From           time.Time           `url:"dateFrom,omitempty"` // created at or after
	To             time.Time           `url:"dateTo,omitempty"`   // created at or before
}

// Validate checks p as the gateway would; see [ValidationError].
func (p TransactionListParams) Validate() error { return validateQuery(p, rules.TransactionList) }

// TransactionSummary is a transaction in a list. The gateway writes list items
// in two shapes, like a read transaction or with the payment in an object of
// its own; both are read into this one. What a shape does not have is at its
// zero value: read the transaction itself where that matters.
type TransactionSummary struct {
	ID             string            `json:"id"`
	Amount         int64             `json:"amount"` // cents
	Currency       Currency          `json:"currency"`
	Method         Method            `json:"method"`
	Status         TransactionStatus `json:"status"`
	ExternalRef    string            `json:"external_ref"` // nullable
	Buyer          Buyer             `json:"buyer"`
	Installments   int               `json:"installments,omitzero"` // nullable
	PaidAmount     int64             `json:"paid_amount,omitzero"`
	RefundedAmount int64             `json:"refunded_amount,omitzero"`
	PaidAt         Timestamp         `json:"paid_at"` // nullable
	Products       []ProductLine     `json:"products"`
	CreatedAt      Timestamp         `json:"created_at"`
	UpdatedAt      Timestamp         `json:"updated_at"`

	// Extra holds all other members, also those of a read transaction that a
	// list seldom has.
	Extra map[string]json.RawMessage `json:",embed"`
}

// Settled reports whether the money was paid; see [TransactionStatus.Settled].
func (t *TransactionSummary) Settled() bool { return t.Status.Settled() }

func (t *TransactionSummary) identity() (id, reference string, created time.Time) {
	return t.ID, t.ExternalRef, t.CreatedAt.Time
}

var _ = wire.Marshal
var _ jsontext.Value
