package gateway

import (
	"encoding/json"

	"github.com/gateway-go/gateway/internal/rules"
)

// PixKeyType is the kind of a Pix key.
type PixKeyType string

// The kinds of Pix keys.
const (
	PixKeyCPF   PixKeyType = "CPF"   // a person's document: 11 digits, or 000.000.000-00
	PixKeyCNPJ  PixKeyType = "CNPJ"  // a company's: 14 digits or capital letters, or 00.000.000/0000-00
	PixKeyEmail PixKeyType = "EMAIL" // an e-mail address
	PixKeyPhone PixKeyType = "PHONE" // +5511987654321, or 10 or 11 digits in Brazil with or without 55
	PixKeyEVP   PixKeyType = "EVP"   // a random key: a UUID
)

// Known reports whether the interface names t.
func (t PixKeyType) Known() bool { return rules.PixKeyTypes.Has(string(t)) }

// TransferStatus is a state of a transfer. An answer may hold states that this
// version does not know; they are kept as they came.
type TransferStatus string

// The states of a transfer. The second group is sent by the live gateway only.
// Mind the spelling: a transfer is cancelled, a transaction canceled.
const (
	TransferPending    TransferStatus = "pending"
	TransferInAnalysis TransferStatus = "in_analysis"
	TransferProcessing TransferStatus = "processing" // the bank has it; it can no longer be cancelled
	TransferPaid       TransferStatus = "paid"
	TransferError      TransferStatus = "error" // the bank refused it; webhooks call this payout.failed
	TransferCancelled  TransferStatus = "cancelled"

	TransferScheduled TransferStatus = "scheduled"
	TransferRejected  TransferStatus = "rejected"
	TransferUnknown   TransferStatus = "unknown"
)

// Known reports whether this version knows s.
func (s TransferStatus) Known() bool { return rules.LiveTransferStatuses.Has(string(s)) }

// Final reports whether the transfer ended: paid, or error, cancelled or
// rejected, in which no money left.
func (s TransferStatus) Final() bool {
	switch s {
	case TransferPaid, TransferError, TransferCancelled, TransferRejected:
		return true
	default:
		return false
	}
}

// TransferParams is the body of POST /v2/transfers. A member at its zero value
// is not sent.
type TransferParams struct {
	PixKeyType  PixKeyType `json:"pix_key_type"`  // required
	PixKeyValue string     `json:"pix_key_value"` // required; 1 to 77 characters, of the form of its type
	Amount      int64      `json:"amount"`        // cents, at least 1; the live gateway wants 1000; required

	Description string `json:"description,omitzero"` // at most 140 characters

	// ExternalRef is the reference of your own system, at most 100 characters,
	// and the idempotency key: it is what keeps a repeated payout from being
	// paid twice. Keep it with the payout, before the call, and use it again
	// when you repeat the call. Where it is empty the client makes one; see
	// [Response.Reference].
	ExternalRef string `json:"external_ref,omitzero"`

	NotifyURL string `json:"notify_url,omitzero"` // https, at most 2048 characters
	Origin    string `json:"origin,omitzero"`     // at most 50 characters
}

// Validate checks p as the gateway would; see [ValidationError]. A CPF or CNPJ
// with a wrong check digit is refused here, before money is on its way.
func (p TransferParams) Validate() error { return validate(p, rules.Transfer) }

// TransferCancelParams is the body of POST /v2/transfers/{id}/cancel.
type TransferCancelParams struct {
	Reason string `json:"reason,omitzero"` // at most 250 characters
}

// Validate checks p as the gateway would; see [ValidationError].
func (p TransferCancelParams) Validate() error { return validate(p, rules.TransferCancel) }

// Transfer is a Pix payout. Amounts are in cents, whether the gateway writes
// them as numbers or, as the live one does, as texts. Nullable texts are "",
// nullable moments the zero [Timestamp].
type Transfer struct {
	ID            string         `json:"id"`
	Amount        int64          `json:"amount"` // what the receiver gets
	Fee           int64          `json:"fee"`    // what the gateway takes on top
	Type          string         `json:"type"`   // "pix"
	PixKey        string         `json:"pix_key"`
	PixKeyType    PixKeyType     `json:"pix_key_type"`
	Status        TransferStatus `json:"status"`
	Description   string         `json:"description"`    // nullable
	ExternalRef   string         `json:"external_ref"`   // nullable
	ProcessedAt   Timestamp      `json:"processed_at"`   // nullable; when the bank took it
	TransferredAt Timestamp      `json:"transferred_at"` // nullable; when the receiver got it
	CreatedAt     Timestamp      `json:"created_at"`
	UpdatedAt     Timestamp      `json:"updated_at"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}
