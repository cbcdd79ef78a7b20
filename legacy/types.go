package legacy

import (
	stdjson "encoding/json"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// IntegrationParams is the body of POST /v1/business/integration. Empty URLs are
// not sent. PixWebhookURL alone selects the second variant of the contract, which
// accepts only https.
type IntegrationParams struct {
	WebhookURL    string `json:"webhookUrl,omitzero"`    // receives every event
	PixWebhookURL string `json:"pixWebhookUrl,omitzero"` // receives Pix transactions and payouts
}

// Validate checks p as the gateway would; see [gateway.ValidationError].
func (p IntegrationParams) Validate() error { return validate(p, spec.LegacyIntegration) }

// Balance is the response to GET /v1/account/balance.
type Balance struct {
	Balance  int64            `json:"balance"` // cents; negative if more was paid out than was paid in
	Currency gateway.Currency `json:"currency"`
}

// PixPaymentParams is the body of POST /pix/v1/payment, without its type, which is
// always PIX. Fields with their zero value are not sent.
type PixPaymentParams struct {
	Payer       Payer       `json:"payer"`           // required
	Transaction PixCharge   `json:"transaction"`     // required
	Splits      []SplitRule `json:"splits,omitzero"` // the shares of other recipients
}

// MarshalJSON writes the fields and the type PIX.
func (p PixPaymentParams) MarshalJSON() ([]byte, error) {
	type plain PixPaymentParams
	return json.Marshal(struct {
		Type string `json:"type"`
		plain
	}{"PIX", plain(p)})
}

// Validate checks p as the gateway would; see [gateway.ValidationError].
func (p PixPaymentParams) Validate() error { return validate(p, spec.LegacyPayment) }

// Payer is the person who pays.
type Payer struct {
	FullName string  `json:"fullName,omitzero"`
	Document string  `json:"document,omitzero"` // a CPF or CNPJ
	Contact  Contact `json:"contact,omitzero"`
	Address  Address `json:"address,omitzero"`
}

// Contact has a payer's e-mail address and phone number.
type Contact struct {
	Mail  string `json:"mail,omitzero"`
	Phone string `json:"phone,omitzero"`
}

// Address is a payer's postal address. Neighborhood is sent twice, as
// neighborhood and as neighboor: the v1 contract has both spellings and does not
// say which one the gateway reads.
type Address struct {
	ZipCode      string `json:"zipCode,omitzero"`
	Street       string `json:"street,omitzero"`
	Number       string `json:"number,omitzero"`
	City         string `json:"city,omitzero"`
	State        string `json:"state,omitzero"`
	Country      string `json:"country,omitzero"`
	Neighborhood string `json:"neighborhood,omitzero"`
}

// MarshalJSON writes Neighborhood in both spellings.
func (a Address) MarshalJSON() ([]byte, error) {
	type plain Address
	return json.Marshal(struct {
		plain

		Neighboor    string `json:"neighboor,omitzero"`
		Neighborhood string `json:"neighborhood,omitzero"`
	}{plain(a), a.Neighborhood, a.Neighborhood})
}

// PixCharge is the charge of a Pix payment.
type PixCharge struct {
	// Value is the amount in cents, at least 1; required. Note the unit: the
	// contract says integer, and this package sends only integers, but another
	// description of v1 shows decimal reais. On a new account, try a small amount
	// first.
	Value int64 `json:"value"`

	Description    string `json:"description,omitzero"`
	ExpirationTime int64  `json:"expirationTime,omitzero"` // seconds; default 86400
	DueDate        string `json:"dueDate,omitzero"`
	ExternalID     string `json:"externalId,omitzero"` // your reference; not an idempotency key
}

// SplitKeyType is the kind of the Pix key of a [SplitRule].
type SplitKeyType string

// The kinds of Pix keys of a split. The contract names DOCUMENT only.
const (
	SplitDocument SplitKeyType = "DOCUMENT"
	SplitEmail    SplitKeyType = "EMAIL"
	SplitPhone    SplitKeyType = "PHONE"
	SplitRandom   SplitKeyType = "RANDOM"
)

// SplitRule gives another recipient a share of a payment: a Percent or an Amount.
type SplitRule struct {
	PixKey     gateway.PixKey `json:"pixKey,omitzero"`
	PixKeyType SplitKeyType   `json:"pixKeyType,omitzero"`
	Document   string         `json:"document,omitzero"`
	Percent    float64        `json:"percent,omitzero"` // 0 to 100
	Amount     int64          `json:"amount,omitzero"`  // cents
	ExternalID string         `json:"externalId,omitzero"`
}

// PaymentStatus is a state of a v1 payment. A response may have a state that
// this version does not define; it is kept unchanged.
type PaymentStatus string

// The states of a v1 payment. A new payment is PaymentWaitingPayment. It becomes
// PaymentPaid when it is paid, PaymentCancelled when it expires, and PaymentRefund
// when it is refunded.
const (
	PaymentInAnalysis          PaymentStatus = "IN_ANALYSIS"
	PaymentWaitingConfirmation PaymentStatus = "WAITING_CONFIRMATION"
	PaymentWaitingPayment      PaymentStatus = "WAITING_PAYMENT"
	PaymentWaitingWithdraw     PaymentStatus = "WAITING_WITHDRAW"
	PaymentWithdrawRequest     PaymentStatus = "WITHDRAW_REQUEST"
	PaymentWithdrawPaid        PaymentStatus = "WITHDRAW_PAID"
	PaymentWebhookUpdated      PaymentStatus = "WEBHOOK_UPDATED"
	PaymentWebhookError        PaymentStatus = "WEBHOOK_ERROR"
	PaymentPaid                PaymentStatus = "PAID"
	PaymentCancelled           PaymentStatus = "CANCELLED"
	PaymentReversed            PaymentStatus = "REVERSED"
	PaymentRefund              PaymentStatus = "REFUND"
	PaymentRefundIn            PaymentStatus = "REFUND_IN"
	PaymentRefundOut           PaymentStatus = "REFUND_OUT"
	PaymentSoftRefund          PaymentStatus = "SOFT_REFUND"
	PaymentError               PaymentStatus = "ERROR"
	PaymentPendingApproval     PaymentStatus = "PENDING_APPROVAL"
	PaymentApproved            PaymentStatus = "APPROVED"
	PaymentDeclined            PaymentStatus = "DECLINED"
)

// PixPayment is the response to POST /pix/v1/payment.
type PixPayment struct {
	TransactionID  string             `json:"transactionId"`
	Status         PaymentStatus      `json:"status"`
	PixQRCode      string             `json:"pixQrCode"` // a PNG image in base64
	PixCode        string             `json:"pixCode"`   // the code to copy and paste
	GenerateTime   gateway.Timestamp  `json:"generateTime"`
	ExpirationDate gateway.Timestamp  `json:"expirationDate"`
	PaymentLink    string             `json:"paymentLink"` // nullable
	Raw            stdjson.RawMessage `json:"-"`           // the JSON as received, with what this version has no field for; not printed
}

// MarshalJSON writes p in the gateway's format: every field that was received, null
// for the empty ones.
func (p PixPayment) MarshalJSON() ([]byte, error) {
	type plain PixPayment
	return wire.Marshal((*plain)(&p))
}

// PaymentToken is a card token of the retired tokenization. Existing tokens can
// still be used. Since the interface document shows no response, fields with other
// names are only in Raw.
type PaymentToken struct {
	Token    gateway.CardToken  `json:"token"`
	Brand    string             `json:"brand"`
	Last4    string             `json:"last4"`
	ExpMonth int                `json:"exp_month,omitzero"` // 1 to 12
	ExpYear  int                `json:"exp_year,omitzero"`  // four digits
	Raw      stdjson.RawMessage `json:"-"`                  // the JSON as received, with what this version has no field for; not printed
}

// MarshalJSON writes t in the gateway's format: every field that was received, null
// for the empty ones.
func (t PaymentToken) MarshalJSON() ([]byte, error) {
	type plain PaymentToken
	return wire.Marshal((*plain)(&t))
}
