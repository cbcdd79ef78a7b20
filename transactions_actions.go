package gateway

import (
	"encoding/json"

	"github.com/gateway-go/gateway/internal/rules"
	"github.com/gateway-go/gateway/internal/wire"
)

// RefundParams says how much is paid back: an Amount, or all that is left.
// There is no zero that means all: exactly one of the two must be set.
type RefundParams struct {
	Amount int64  `json:"amount,omitzero"` // cents, at least 1
	Full   bool   `json:"-"`               // everything that is left
	Reason string `json:"reason,omitzero"` // at most 500 characters
}

// Validate checks p as the gateway would; see [ValidationError].
func (p RefundParams) Validate() error {
	if err := p.choice(""); err != nil {
		return err
	}
	return validate(p, rules.Refund)
}

func (p RefundParams) choice(op string) error {
	if (p.Amount == 0) == p.Full {
		return nil
	}
	message := "is required, unless Full is set"
	if p.Full {
		message = "must not be set together with Full"
	}
	return &ValidationError{Op: op, Fields: []FieldError{{Field: "amount", Message: message, Code: rules.CodeRequired}}}
}

// Refund is what a refund did. Amounts are in cents.
type Refund struct {
	Message          string `json:"message"`
	AmountRefunded   int64  `json:"amount_refunded"` // by this call
	RemainingBalance int64  `json:"remaining_balance"`
	IsFullRefund     bool   `json:"is_full_refund"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes r as the gateway would.
func (r Refund) MarshalJSON() ([]byte, error) {
	type plain Refund
	return wire.Marshal((*plain)(&r))
}

// DeliveryStatus is how far the goods are.
type DeliveryStatus string

// The delivery states.
const (
	DeliveryWaiting   DeliveryStatus = "waiting"
	DeliveryInTransit DeliveryStatus = "in_transit"
	DeliveryDelivered DeliveryStatus = "delivered"
)

// Known reports whether the interface names s.
func (s DeliveryStatus) Known() bool { return rules.DeliveryStatuses.Has(string(s)) }

// DeliveryParams is the tracking of a transaction's goods. What is not sent
// stays as it is; [Null] clears it.
type DeliveryParams struct {
	TrackingCode    string         `json:"tracking_code"`             // 1 to 255 characters; required
	DeliveryStatus  DeliveryStatus `json:"delivery_status,omitzero"`  // in_transit at first
	TrackingURL     Opt[string]    `json:"tracking_url,omitzero"`     // http or https, at most 255 characters
	TrackingCompany Opt[string]    `json:"tracking_company,omitzero"` // 1 to 64 characters

	// IfMatch is the ETag of the read that the update is based on
	// ([Response.Header]); the update is refused with status 412 where the
	// transaction changed since.
	IfMatch string `json:"-"`
}

// Validate checks p as the gateway would; see [ValidationError].
func (p DeliveryParams) Validate() error { return validate(p, rules.Delivery) }

// Delivery is the tracking as the gateway keeps it.
type Delivery struct {
	Status     DeliveryStatus `json:"status"`
	Code       string         `json:"code"`
	URL        string         `json:"url"`     // nullable
	Company    string         `json:"company"` // nullable
	LastUpdate Timestamp      `json:"last_update"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes d as the gateway would.
func (d Delivery) MarshalJSON() ([]byte, error) {
	type plain Delivery
	return wire.Marshal((*plain)(&d))
}

// SandboxStatusParams names the state that a sandbox transaction is put into.
type SandboxStatusParams struct {
	Status TransactionStatus `json:"status"` // required
}

// Validate checks p as the gateway would; see [ValidationError].
func (p SandboxStatusParams) Validate() error { return validate(p, rules.LiveSandboxStatus) }

type sandboxAnswer struct {
	Transaction SandboxTransaction `json:"transaction"`
}

// SandboxTransaction is what a change of state in the sandbox answers.
type SandboxTransaction struct {
	ID          string            `json:"id"`
	Status      TransactionStatus `json:"status"`
	Method      Method            `json:"method"`
	Amount      int64             `json:"amount"` // cents
	Currency    Currency          `json:"currency"`
	ExternalRef string            `json:"external_ref"` // nullable

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes t as the gateway would.
func (t SandboxTransaction) MarshalJSON() ([]byte, error) {
	type plain SandboxTransaction
	return wire.Marshal((*plain)(&t))
}
