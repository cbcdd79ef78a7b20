package gateway

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/gateway-go/gateway/internal/rules"
	"github.com/gateway-go/gateway/internal/wire"
)

// Method is how a transaction is paid.
type Method string

// The payment methods. A voucher is every local payment instruction (Boleto,
// SPEI, PSE, …): the provider's own name is never sent.
const (
	Pix        Method = "pix"
	Voucher    Method = "voucher"
	CreditCard Method = "credit_card"
)

// Known reports whether the interface names m.
func (m Method) Known() bool { return rules.Methods.Has(string(m)) }

// TransactionStatus is a state of a transaction. An answer may hold states that
// this version does not know; they are kept as they came.
type TransactionStatus string

// The states of a transaction. The second group is sent by the live gateway
// only.
const (
	TransactionPending           TransactionStatus = "pending"
	TransactionPaid              TransactionStatus = "paid"
	TransactionExpired           TransactionStatus = "expired"
	TransactionCanceled          TransactionStatus = "canceled"
	TransactionRefused           TransactionStatus = "refused"
	TransactionRefunded          TransactionStatus = "refunded"
	TransactionPartiallyRefunded TransactionStatus = "partially_refunded"
	TransactionChargedback       TransactionStatus = "chargedback"
	TransactionCaptured          TransactionStatus = "captured" // a card's "paid"

	TransactionAuthorized      TransactionStatus = "authorized"
	TransactionThreeDSRequired TransactionStatus = "three_ds_required"
	TransactionInProtest       TransactionStatus = "in_protest"
	TransactionPartiallyPaid   TransactionStatus = "partially_paid"
	TransactionProcessing      TransactionStatus = "processing"
	TransactionProcessed       TransactionStatus = "processed"
	TransactionMED             TransactionStatus = "med" // Pix special refund under dispute
)

// Known reports whether this version knows s.
func (s TransactionStatus) Known() bool { return rules.LiveTransactionStatuses.Has(string(s)) }

// Settled reports whether the money was paid: paid or captured. Goods may be
// handed over; test this rather than one state, since cards end in captured.
func (s TransactionStatus) Settled() bool {
	return s == TransactionPaid || s == TransactionCaptured
}

// Final reports whether s can no longer turn into a payment: refused, canceled,
// expired, refunded or chargedback. An expired voucher can still be paid late.
func (s TransactionStatus) Final() bool {
	switch s {
	case TransactionRefused, TransactionCanceled, TransactionExpired, TransactionRefunded, TransactionChargedback:
		return true
	default:
		return false
	}
}

// TransactionParams is the body of POST /v2/transactions. A member at its zero
// value is not sent.
type TransactionParams struct {
	// ExternalRef is the reference of your own system and the idempotency key:
	// a second create with it is refused with [ErrDuplicate]. Keep it with the
	// order, before the call, and use it again when you repeat the call. Where
	// it is empty the client makes one; see [Response.Reference].
	ExternalRef string `json:"external_ref,omitzero"`

	Amount       int64        `json:"amount"`                 // cents, 1 to 100000000; required
	Currency     Currency     `json:"currency,omitzero"`      // BRL where it is not sent
	Method       Method       `json:"method,omitzero"`        // required
	Installments int          `json:"installments,omitzero"`  // 1 to 12
	InterestRate Opt[float64] `json:"interest_rate,omitzero"` // 0 to 100 percent, already inside Amount
	Buyer        BuyerParams  `json:"buyer"`                  // required
	Products     []Product    `json:"products"`               // 1 to 100; required
	Token        CardToken    `json:"token,omitzero"`         // required for CreditCard
	NotifyURL    string       `json:"notify_url,omitzero"`    // https, at most 2048 characters
	Metadata     string       `json:"metadata,omitzero"`      // free text of yours
	Traceable    bool         `json:"traceable,omitzero"`     // for fraud or risk analysis
	IPAddress    string       `json:"ip_address,omitzero"`    // IPv4 or IPv6, of the buyer
}

// Validate checks p as the gateway would; see [ValidationError].
func (p TransactionParams) Validate() error { return validate(p, rules.Transaction) }

// currency returns what the gateway takes the currency for.
func (p TransactionParams) currency() Currency {
	if p.Currency == "" {
		return BRL
	}
	return p.Currency
}

// BuyerParams names who pays: either the ID of an existing buyer or customer,
// or Name and Email.
type BuyerParams struct {
	ID        BuyerID   `json:"id,omitzero"`
	Name      string    `json:"name,omitzero"`
	Email     string    `json:"email,omitzero"`
	Phone     string    `json:"phone,omitzero"`
	BirthDate string    `json:"birth_date,omitzero"`
	Document  *Document `json:"document,omitzero"` // gateways in use want it for Pix
	Address   *Address  `json:"address,omitzero"`  // required for Voucher
}

// BuyerID identifies an existing buyer: a UUID, or the integer of older
// accounts in decimal, which is sent as a JSON number.
type BuyerID string

// MarshalJSON writes an integer as a number and all else as a string.
func (id BuyerID) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(string(id), 10, 64); err == nil && strconv.FormatInt(n, 10) == string(id) {
		return []byte(id), nil
	}
	return json.Marshal(string(id))
}

// UnmarshalJSON reads a number or a string.
func (id *BuyerID) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '"' {
		if string(b) == "null" {
			*id = ""
			return nil
		}
		*id = BuyerID(b)
		return nil
	}
	return json.Unmarshal(b, (*string)(id))
}

// Transaction is a payment as the gateway keeps it. Amounts are in cents.
// Nullable texts are "", nullable objects nil, nullable moments the zero
// [Timestamp].
type Transaction struct {
	ID             string            `json:"id"`
	Amount         int64             `json:"amount"`
	Currency       Currency          `json:"currency"`
	Method         Method            `json:"method"`
	Status         TransactionStatus `json:"status"`
	ExternalRef    string            `json:"external_ref"` // nullable
	Buyer          Buyer             `json:"buyer"`
	Fee            *Fee              `json:"fee"`
	Installments   int               `json:"installments,omitzero"` // nullable
	Informations   []Information     `json:"informations"`
	PaidAmount     int64             `json:"paid_amount"`
	RefundedAmount int64             `json:"refunded_amount"`
	PaidAt         Timestamp         `json:"paid_at"`  // nullable
	Pix            *PixDetails       `json:"pix"`      // nil unless paid by Pix
	Voucher        *VoucherDetails   `json:"voucher"`  // nil unless a voucher
	Products       []ProductLine     `json:"products"` //
	Metadata       Metadata          `json:"metadata"` // nullable
	Traceable      bool              `json:"traceable"`
	IPAddress      string            `json:"ip_address"` // nullable
	Splits         []Split           `json:"splits"`
	NextAction     *NextAction       `json:"next_action"` // set where a card needs 3-D Secure
	CreatedAt      Timestamp         `json:"created_at"`
	UpdatedAt      Timestamp         `json:"updated_at"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// Settled reports whether the money was paid; see [TransactionStatus.Settled].
func (t *Transaction) Settled() bool { return t.Status.Settled() }

// RefusalReason returns why a card was refused, such as "insufficient_funds": the
// information "refusal_reason". It is "" where the gateway gives no reason.
func (t *Transaction) RefusalReason() string {
	for _, i := range t.Informations {
		if i.Key == "refusal_reason" {
			return i.Value
		}
	}
	return ""
}

// MarshalJSON writes t as the gateway would: every member that was read, null
// for what is nullable and empty.
func (t Transaction) MarshalJSON() ([]byte, error) {
	type plain Transaction
	return wire.Marshal((*plain)(&t))
}

// Buyer is the buyer as the gateway keeps it. Every member but ID, Name and
// Email is nullable.
type Buyer struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Email     string    `json:"email"`
	Phone     string    `json:"phone"`
	BirthDate string    `json:"birth_date"`
	Document  *Document `json:"document"`
	Address   *Address  `json:"address"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes b as the gateway would.
func (b Buyer) MarshalJSON() ([]byte, error) {
	type plain Buyer
	return wire.Marshal((*plain)(&b))
}

// Fee is what the gateway keeps of a transaction, in cents.
type Fee struct {
	NetAmount    int64 `json:"net_amount"`
	EstimatedFee int64 `json:"estimated_fee"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes f as the gateway would.
func (f Fee) MarshalJSON() ([]byte, error) {
	type plain Fee
	return wire.Marshal((*plain)(&f))
}

// Information is a key and a text, such as the reason of a refusal.
type Information struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// PixDetails is what the payer of a Pix needs and what proves the payment.
type PixDetails struct {
	QRCode         string    `json:"qr_code"` // the copy-paste text, also drawn as the QR picture; null for what charges itself
	ExpirationDate Timestamp `json:"expiration_date"`
	EndToEndID     string    `json:"end_to_end_id"` // nullable, set when paid
	ReceiptURL     string    `json:"receipt_url"`   // nullable

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes p as the gateway would.
func (p PixDetails) MarshalJSON() ([]byte, error) {
	type plain PixDetails
	return wire.Marshal((*plain)(&p))
}

// VoucherDetails is a local payment instruction. Every member is nullable; in
// other currencies than BRL there is no barcode.
type VoucherDetails struct {
	Barcode        string    `json:"barcode"`
	DigitableLine  string    `json:"digitable_line"`
	URL            string    `json:"url"`
	ExpirationDate Timestamp `json:"expiration_date"`
	Instructions   string    `json:"instructions"`
	ReceiptURL     string    `json:"receipt_url"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes v as the gateway would.
func (v VoucherDetails) MarshalJSON() ([]byte, error) {
	type plain VoucherDetails
	return wire.Marshal((*plain)(&v))
}

// ProductLine is a product in an answer.
type ProductLine struct {
	Name     string `json:"name"`
	Price    int64  `json:"price"` // unit price in cents
	Quantity int    `json:"quantity"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes p as the gateway would.
func (p ProductLine) MarshalJSON() ([]byte, error) {
	type plain ProductLine
	return wire.Marshal((*plain)(&p))
}

// Split is a recipient's share of a transaction, in cents.
type Split struct {
	RecipientID         string `json:"recipient_id"`
	Amount              int64  `json:"amount"`
	ChargeProcessingFee bool   `json:"charge_processing_fee"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes s as the gateway would.
func (s Split) MarshalJSON() ([]byte, error) {
	type plain Split
	return wire.Marshal((*plain)(&s))
}

// NextAction is what the payer must do before a card is charged: hand
// ClientSecret to the client-side payment element, which shows the challenge.
type NextAction struct {
	Type               string       `json:"type"` // "three_ds_challenge"
	ChallengeSessionID string       `json:"challenge_session_id"`
	ClientSecret       ClientSecret `json:"client_secret"` // for the payer's browser
	ExpiresAt          Timestamp    `json:"expires_at"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes a as the gateway would, with the client secret.
func (a NextAction) MarshalJSON() ([]byte, error) {
	type plain NextAction
	return wire.Marshal((*plain)(&a))
}

// Format writes what the action is and when it expires, whatever the verb.
func (a NextAction) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{%s %s expires %s}", a.Type, a.ClientSecret, a.ExpiresAt)
}
