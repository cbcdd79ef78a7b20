package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// PixKeyType is the kind of a Pix key.
type PixKeyType string

// The kinds of Pix keys.
const (
	PixKeyCPF   PixKeyType = "CPF"   // a person's document: 11 digits, or 000.000.000-00
	PixKeyCNPJ  PixKeyType = "CNPJ"  // a company's: 14 digits or capital letters, or 00.000.000/0000-00
	PixKeyEmail PixKeyType = "EMAIL" // an e-mail address
	PixKeyPhone PixKeyType = "PHONE" // +5511987654321, or 10 or 11 digits, with or without the prefix 55
	PixKeyEVP   PixKeyType = "EVP"   // a random key: a UUID
)

// PixKey is a receiver's Pix key. It marshals unchanged and prints masked, since
// it may be a document number, an e-mail address or a phone number. Use
// string(key) for its text.
type PixKey string

// String returns a mask, or "" for an empty key.
func (k PixKey) String() string {
	if k == "" {
		return ""
	}
	return "***"
}

// Format writes the result of String for every verb.
func (k PixKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// MarshalJSON writes the key, or in a log of log/slog the result of String.
func (k PixKey) MarshalJSON() ([]byte, error) { return marshalText(string(k), k) }

// LogValue returns the same as String.
func (k PixKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// TransferStatus is a state of a transfer. A response may have a state that
// this version does not define; it is kept unchanged.
type TransferStatus string

// The states of a transfer. Only live gateways send the second group. Note the
// spelling: a transfer is cancelled, a transaction canceled.
const (
	TransferPending    TransferStatus = "pending"
	TransferInAnalysis TransferStatus = "in_analysis"
	TransferProcessing TransferStatus = "processing" // the bank has accepted it; it can no longer be cancelled
	TransferPaid       TransferStatus = "paid"
	TransferError      TransferStatus = "error" // the bank refused it; the webhook is payout.failed
	TransferCancelled  TransferStatus = "cancelled"

	TransferScheduled TransferStatus = "scheduled"
	TransferRejected  TransferStatus = "rejected"
	TransferUnknown   TransferStatus = "unknown"
)

// Final reports whether s is paid, error, cancelled or rejected. Of these, only
// paid moves money.
func (s TransferStatus) Final() bool {
	switch s {
	case TransferPaid, TransferError, TransferCancelled, TransferRejected:
		return true
	default:
		return false
	}
}

// TransferParams is the body of POST /v2/transfers. Fields with their zero value
// are not sent.
type TransferParams struct {
	PixKeyType  PixKeyType `json:"pix_key_type"`  // required
	PixKeyValue PixKey     `json:"pix_key_value"` // required; 1 to 77 characters, in the format of its type
	Amount      int64      `json:"amount"`        // cents, at least 1; live gateways require 1000; required

	Description string `json:"description,omitzero"` // at most 140 characters

	// ExternalRef is the reference in your own system, at most 100 characters,
	// and the idempotency key: it keeps a repeated payout from being paid twice.
	// Store it with the payout before the call, and send it again when you repeat
	// the call. If it is empty, the client generates one; see
	// [Response.Reference].
	ExternalRef string `json:"external_ref,omitzero"`

	NotifyURL string `json:"notify_url,omitzero"` // https, at most 2048 characters
	Origin    string `json:"origin,omitzero"`     // at most 50 characters
}

// Validate checks p against the rules of the interface; see [ValidationError].
// A CPF or CNPJ with a wrong check digit is rejected here, before anything is
// sent.
func (p TransferParams) Validate() error { return validate(p, spec.Transfer) }

// TransferCancelParams is the body of POST /v2/transfers/{id}/cancel.
type TransferCancelParams struct {
	Reason string `json:"reason,omitzero"` // at most 250 characters
}

// Validate checks p against the rules of the interface; see [ValidationError].
func (p TransferCancelParams) Validate() error { return validate(p, spec.TransferCancel) }

// Transfer is a Pix payout. Amounts are in cents, including those that live
// gateways send as strings. Null strings decode to "", null timestamps to the
// zero [Timestamp].
type Transfer struct {
	ID            string          `json:"id"`
	Amount        int64           `json:"amount"` // the requested amount
	Fee           int64           `json:"fee"`    // what the gateway charges; webhooks also have net_amount, which is Amount minus Fee
	Type          string          `json:"type"`   // "pix"
	PixKey        PixKey          `json:"pix_key"`
	PixKeyType    PixKeyType      `json:"pix_key_type"`
	Status        TransferStatus  `json:"status"`
	Description   string          `json:"description"`    // nullable
	ExternalRef   string          `json:"external_ref"`   // nullable
	ProcessedAt   Timestamp       `json:"processed_at"`   // nullable; when the bank accepted it
	TransferredAt Timestamp       `json:"transferred_at"` // nullable; when the receiver was paid
	CreatedAt     Timestamp       `json:"created_at"`
	UpdatedAt     Timestamp       `json:"updated_at"`
	Raw           json.RawMessage `json:"-"` // the JSON as received, with what this version has no field for; not printed
}

// MarshalJSON writes t in the gateway's format: every field that was received, null
// for the empty ones.
func (t Transfer) MarshalJSON() ([]byte, error) {
	type plain Transfer
	return wire.Marshal((*plain)(&t))
}

// TransferListParams is the query of GET /v2/transfers. Fields with their zero
// value are not sent.
type TransferListParams struct {
	Cursor    string         `url:"cursor,omitempty"` // of another page; see [Page.NextCursor]
	Limit     int            `url:"limit,omitempty"`  // 1 to 100; default 20
	Direction Direction      `url:"direction,omitempty"`
	Status    TransferStatus `url:"status,omitempty"`
}

// TransfersService manages Pix payouts: /v2/transfers.
type TransfersService struct{ client *Client }

var createTransfer = keyedCreate[TransferParams, Transfer]{
	operation: &spec.Transfers.Create,
	field:     "external_ref",
	automatic: true,
	reference: func(p *TransferParams) *string { return &p.ExternalRef },
	differing: differingTransfer,
	compared:  []string{"pix_key_type", "pix_key"},
	get:       &spec.Transfers.Get,
	stored:    func(t *Transfer) string { return t.ExternalRef },
	search: func(ctx context.Context, c *Client, reference string, age time.Duration, opts []RequestOption) (string, error) {
		pages := c.Transfers.Pages(ctx, TransferListParams{Limit: spec.MaxPageSize}, opts...)
		return searchNewest(pages, age, reference, func(t *Transfer) (string, string, time.Time) {
			return t.ID, t.ExternalRef, t.CreatedAt.Time
		})
	},
}

// differingTransfer checks whether t pays the amount of p to the key of p. The key may
// be returned in another format: without punctuation, or with a country code.
func differingTransfer(p *TransferParams, t *Transfer) (d differences) {
	requested, _ := spec.NormalPixKey(string(p.PixKeyType), string(p.PixKeyValue))
	returned, _ := spec.NormalPixKey(string(p.PixKeyType), string(t.PixKey))
	d.unless(agrees(p.Amount, t.Amount), "amount")
	d.unless(agrees(p.PixKeyType, t.PixKeyType), "pix_key_type")
	d.unless(agrees(requested, returned), "pix_key_value")
	return d
}

// Create creates a Pix payout: POST /v2/transfers. Without an ExternalRef the
// client generates one, so that a lost response does not lead to a second payout;
// see [Response.Reference].
//
// If the ExternalRef was used before, some gateways reject the call, which
// returns [ErrDuplicate], and others respond with the first transfer. If that
// transfer pays the same amount to the same key, Create returns it and sets
// [Response.Existing]. Otherwise the error is [ErrDuplicate], and
// [Error.Existing] is the first transfer.
//
// Errors: [ErrValidation] if params are invalid, in most cases before anything is
// sent; [ErrDuplicate]; [ErrOutcomeUnknown] if the transfer may have been created:
// see [OutcomeError] before you try again.
func (s *TransfersService) Create(ctx context.Context, params TransferParams, opts ...RequestOption) (*Transfer, error) {
	return create(ctx, s.client, &createTransfer, &params, opts)
}

// Get reads a transfer: GET /v2/transfers/{id}. The error is [ErrNotFound] if the
// id is unknown.
func (s *TransfersService) Get(ctx context.Context, id string, opts ...RequestOption) (*Transfer, error) {
	return call[Transfer](ctx, s.client, &spec.Transfers.Get, nil, opts, id)
}

// Cancel cancels a transfer that is pending or in analysis, that is, before the
// bank accepts it: POST /v2/transfers/{id}/cancel. The error is [ErrConflict] if
// it is too late or the transfer is already cancelled. After [ErrOutcomeUnknown],
// read the transfer.
func (s *TransfersService) Cancel(ctx context.Context, id string, params TransferCancelParams, opts ...RequestOption) (*Transfer, error) {
	return call[Transfer](ctx, s.client, &spec.Transfers.Cancel, &params, opts, id)
}

// List reads one page of transfers, newest first: GET /v2/transfers.
func (s *TransfersService) List(ctx context.Context, params TransferListParams, opts ...RequestOption) (*Page[Transfer], error) {
	return listPage[Transfer](ctx, s.client, &spec.Transfers.List, &params, opts)
}

// Pages iterates over the pages of a list, starting at the page in params. It
// ends at the first error.
func (s *TransfersService) Pages(ctx context.Context, params TransferListParams, opts ...RequestOption) iter.Seq2[*Page[Transfer], error] {
	return listPages[Transfer](ctx, s.client, &spec.Transfers.List, &params, opts)
}

// All iterates over the transfers of all pages.
func (s *TransfersService) All(ctx context.Context, params TransferListParams, opts ...RequestOption) iter.Seq2[*Transfer, error] {
	return items(s.Pages(ctx, params, opts...))
}
