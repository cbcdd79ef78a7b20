package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// Method is how a transaction is paid.
type Method string

// The payment methods. A voucher is any local payment instruction (Boleto,
// SPEI, PSE, …); the provider's name is never sent.
const (
	Pix        Method = "pix"
	Voucher    Method = "voucher"
	CreditCard Method = "credit_card"
)

// TransactionStatus is a state of a transaction. A response may have a state
// that this version does not define; it is kept unchanged.
type TransactionStatus string

// The states of a transaction. Only live gateways send the second group.
const (
	TransactionPending           TransactionStatus = "pending"
	TransactionPaid              TransactionStatus = "paid"
	TransactionExpired           TransactionStatus = "expired"
	TransactionCanceled          TransactionStatus = "canceled"
	TransactionRefused           TransactionStatus = "refused"
	TransactionRefunded          TransactionStatus = "refunded"
	TransactionPartiallyRefunded TransactionStatus = "partially_refunded"
	TransactionChargedback       TransactionStatus = "chargedback"
	TransactionCaptured          TransactionStatus = "captured" // a paid card

	TransactionAuthorized      TransactionStatus = "authorized"
	TransactionThreeDSRequired TransactionStatus = "three_ds_required"
	TransactionInProtest       TransactionStatus = "in_protest" // the merchant contests a dispute
	TransactionPartiallyPaid   TransactionStatus = "partially_paid"
	TransactionProcessing      TransactionStatus = "processing"
	TransactionProcessed       TransactionStatus = "processed"
	TransactionMED             TransactionStatus = "med"             // its payer disputes a Pix payment: the special refund mechanism (MED)
	TransactionPreChargedback  TransactionStatus = "pre_chargedback" // the payer will get the money back
	TransactionWaitingPayment  TransactionStatus = "waiting_payment" // a Pix or a voucher that is not paid yet, where some accounts have it instead of pending
)

// Settled reports whether s is paid or captured. Use it to decide when to ship,
// since a paid card transaction can have either status. It is false again after
// a chargeback or a refund, even a partial one. After a partial refund,
// Paid - RefundedAmount is what is left of the payment, before fees; see
// [Transaction.Paid]. A chargeback changes neither.
func (s TransactionStatus) Settled() bool {
	return s == TransactionPaid || s == TransactionCaptured
}

// Final reports whether s is refused, canceled, expired, refunded or chargedback.
// A transaction in such a state is not paid later, with one exception: an expired
// voucher can still be paid late.
func (s TransactionStatus) Final() bool {
	switch s {
	case TransactionRefused, TransactionCanceled, TransactionExpired, TransactionRefunded, TransactionChargedback:
		return true
	default:
		return false
	}
}

// TransactionParams is the body of POST /v2/transactions. Fields with their zero
// value are not sent.
type TransactionParams struct {
	// ExternalRef is the reference in your own system and the idempotency key: a
	// second create with it is rejected with [ErrDuplicate]. Store it with the
	// order before the call, and send it again when you repeat the call. If it is
	// empty, the client generates one; see [Response.Reference].
	ExternalRef string `json:"external_ref,omitzero"`

	Amount       int64        `json:"amount"`                 // cents, 1 to 100000000; required
	Currency     Currency     `json:"currency,omitzero"`      // default BRL
	Method       Method       `json:"method,omitzero"`        // required
	Installments int          `json:"installments,omitzero"`  // 1 to 12
	InterestRate Opt[float64] `json:"interest_rate,omitzero"` // 0 to 100 percent, included in Amount
	Buyer        BuyerParams  `json:"buyer"`                  // required
	Products     []Product    `json:"products"`               // 1 to 100; required
	Token        CardToken    `json:"token,omitzero"`         // required for CreditCard
	NotifyURL    string       `json:"notify_url,omitzero"`    // https, at most 2048 characters
	Metadata     string       `json:"metadata,omitzero"`      // your own string
	Traceable    bool         `json:"traceable,omitzero"`     // traceable for fraud or risk analysis
	IPAddress    string       `json:"ip_address,omitzero"`    // IPv4 or IPv6, of the buyer

	// Informations are your own keys and values, at most 50: keys of up to 64
	// characters, values of up to 255. Live gateways return them with the
	// transaction and in its webhooks; the interface document does not name them
	// here, and a gateway that follows it ignores them.
	Informations []Information `json:"informations,omitzero"`
}

// Validate checks p against the rules of the interface; see [ValidationError].
func (p TransactionParams) Validate() error { return validate(p, spec.Transaction) }

// currency returns the currency of the transaction: BRL by default.
func (p TransactionParams) currency() Currency {
	if p.Currency == "" {
		return BRL
	}
	return p.Currency
}

// BuyerParams identifies the buyer: either the ID of an existing buyer or
// customer, or Name and Email.
type BuyerParams struct {
	ID        BuyerID   `json:"id,omitzero"`
	Name      string    `json:"name,omitzero"`
	Email     string    `json:"email,omitzero"`
	Phone     string    `json:"phone,omitzero"`
	BirthDate string    `json:"birth_date,omitzero"`
	Document  *Document `json:"document,omitzero"` // live gateways require it for Pix without an ID
	Address   *Address  `json:"address,omitzero"`  // required for a voucher
}

// BuyerID identifies an existing buyer. It is a UUID or, in older accounts, a
// decimal integer, which is sent as a JSON number.
type BuyerID string

// MarshalJSON writes an integer as a number and anything else as a string.
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

// Transaction is a payment as the gateway stores it. Amounts are in cents. Null
// strings decode to "", null objects to nil, and null timestamps to the zero
// [Timestamp].
//
// Lists and [TransactionsService.SetSandboxStatus] may return a part of it: fields
// that the gateway did not send are zero. Read the transaction with
// [TransactionsService.Get] if you need them.
type Transaction struct {
	ID             string            `json:"id"`
	Amount         int64             `json:"amount"` // as requested, or what is settled; see AmountIs and Charged
	Currency       Currency          `json:"currency"`
	Method         Method            `json:"method"`
	Status         TransactionStatus `json:"status"`
	ExternalRef    string            `json:"external_ref"` // nullable
	Buyer          Buyer             `json:"buyer"`
	Fee            *Fee              `json:"fee"`
	Installments   int               `json:"installments,omitzero"` // nullable
	Informations   []Information     `json:"informations"`
	BasePrice      int64             `json:"base_price,omitzero"` // as requested; 0 if the gateway does not report it
	PaidAmount     int64             `json:"paid_amount"`         // 0 in the lists of live gateways, and if the gateway omits it; see Paid
	RefundedAmount int64             `json:"refunded_amount"`     // 0 in the lists of live gateways
	PaidAt         Timestamp         `json:"paid_at"`             // nullable
	Pix            *PixDetails       `json:"pix"`                 // nil unless Method is Pix
	Voucher        *VoucherDetails   `json:"voucher"`             // nil unless Method is Voucher
	Products       []ProductLine     `json:"products"`
	Metadata       Metadata          `json:"metadata"` // nullable
	Traceable      bool              `json:"traceable"`
	IPAddress      string            `json:"ip_address"` // nullable
	Splits         []Split           `json:"splits"`
	NextAction     *NextAction       `json:"next_action"`             // set if a card needs 3-D Secure
	Country        Country           `json:"country,omitzero"`        // of the payment; only in lists
	AttemptsCount  int               `json:"attempts_count,omitzero"` // only in lists
	CreatedAt      Timestamp         `json:"created_at"`
	UpdatedAt      Timestamp         `json:"updated_at"`
	Raw            json.RawMessage   `json:"-"` // the JSON as received, with what this version has no field for; not printed
}

// Settled reports whether the transaction is paid or captured now. It is false
// again after a refund; see [TransactionStatus.Settled].
func (t *Transaction) Settled() bool { return t.Status.Settled() }

// RefusalReason returns why a card was refused, such as "insufficient_funds". It
// is the value of "refusal_reason" in Informations, or "" if the gateway gives no
// reason.
func (t *Transaction) RefusalReason() string {
	for _, i := range t.Informations {
		if i.Key == "refusal_reason" {
			return i.Value
		}
	}
	return ""
}

// MarshalJSON writes t in the gateway's format: every field that was received, null
// for nullable fields that are empty, and the members in Raw for which there is no
// field.
func (t Transaction) MarshalJSON() ([]byte, error) {
	type plain Transaction
	return wire.MarshalWith((*plain)(&t), t.Raw, "payment") // whose members are fields of t
}

// Buyer is the buyer as the gateway stores it. All fields except ID, Name and
// Email are nullable.
type Buyer struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Email     string    `json:"email"`
	Phone     string    `json:"phone"`
	BirthDate string    `json:"birth_date"`
	Document  *Document `json:"document"`
	Address   *Address  `json:"address"`
}

// MarshalJSON writes b in the gateway's format.
func (b Buyer) MarshalJSON() ([]byte, error) {
	type plain Buyer
	return wire.Marshal((*plain)(&b))
}

// Fee is what the gateway charges for a transaction, in cents.
type Fee struct {
	NetAmount    int64 `json:"net_amount"`
	EstimatedFee int64 `json:"estimated_fee"`
}

// Information is a key and a value, such as the reason why a card was refused.
type Information struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// PixDetails is what the buyer needs to pay by Pix, and the proof of payment.
type PixDetails struct {
	QRCode         string    `json:"qr_code"` // the code to show as a QR code and as text to copy; null for a Pix Automatico
	ExpirationDate Timestamp `json:"expiration_date"`
	EndToEndID     string    `json:"end_to_end_id"` // nullable, set when paid
	ReceiptURL     string    `json:"receipt_url"`   // nullable
}

// MarshalJSON writes p in the gateway's format.
func (p PixDetails) MarshalJSON() ([]byte, error) {
	type plain PixDetails
	return wire.Marshal((*plain)(&p))
}

// VoucherDetails is a local payment instruction. All fields are nullable; only
// vouchers in BRL have a barcode.
type VoucherDetails struct {
	Barcode        string    `json:"barcode"`
	DigitableLine  string    `json:"digitable_line"`
	URL            string    `json:"url"`
	ExpirationDate Timestamp `json:"expiration_date"`
	Instructions   string    `json:"instructions"`
	ReceiptURL     string    `json:"receipt_url"`
}

// MarshalJSON writes v in the gateway's format.
func (v VoucherDetails) MarshalJSON() ([]byte, error) {
	type plain VoucherDetails
	return wire.Marshal((*plain)(&v))
}

// ProductLine is a product in a response.
type ProductLine struct {
	Name     string `json:"name"`
	Price    int64  `json:"price"` // unit price in cents
	Quantity int    `json:"quantity"`
}

// Split is a recipient's share of a transaction, in cents.
type Split struct {
	RecipientID         string `json:"recipient_id"`
	Amount              int64  `json:"amount"`
	ChargeProcessingFee bool   `json:"charge_processing_fee"`
}

// NextAction is what the buyer must do before the card is charged. Pass
// ClientSecret to the client-side payment element, which shows the challenge. To an
// element that wants the whole object, pass the NextAction as JSON: it has every member
// that the gateway sent, also those without a field, such as "three_ds_stage".
type NextAction struct {
	Type               string       `json:"type"` // "three_ds_challenge"
	ChallengeSessionID string       `json:"challenge_session_id"`
	ClientSecret       ClientSecret `json:"client_secret"` // for the payer's browser
	ExpiresAt          Timestamp    `json:"expires_at"`

	others string        // the JSON as received, if it has members without a field
	unread []wire.Unread // what was left out
}

// plainNextAction is a NextAction without methods.
type plainNextAction NextAction

// UnmarshalJSON reads an object, and keeps the members for which there is no field.
func (a *NextAction) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '{' {
		return errors.New("a next action must be an object")
	}
	var action plainNextAction
	unread, err := wire.DecodeMembers(b, &action, &spec.NextActionMembers)
	if err != nil {
		return err
	}
	*a = NextAction(action)
	a.unread = unread
	if wire.HasOthers(&action, b) {
		a.others = string(b)
	}
	return nil
}

// MarshalJSON writes a in the gateway's format, with the client secret and every other
// member that was received.
func (a NextAction) MarshalJSON() ([]byte, error) {
	return wire.MarshalWith((*plainNextAction)(&a), []byte(a.others))
}

// Format writes the action's type and expiry for every verb.
func (a NextAction) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{%s %s expires %s}", a.Type, a.ClientSecret, a.ExpiresAt)
}

// RefundParams is the body of PUT /v2/transactions/{id}/refund. Without an amount
// the gateway refunds everything that is left. So that a forgotten Amount refunds
// nothing, the client sends no amount only if Full is set. Set exactly one of
// Amount and Full.
type RefundParams struct {
	Amount int64  `json:"amount,omitzero"` // cents, at least 1
	Full   bool   `json:"-"`               // refund everything that is left
	Reason string `json:"reason,omitzero"` // at most 500 characters
}

// Validate checks p against the rules of the interface; see [ValidationError].
func (p RefundParams) Validate() error {
	if err := p.choice(""); err != nil {
		return err
	}
	return validate(p, spec.Refund)
}

func (p RefundParams) choice(op string) error {
	if (p.Amount == 0) == p.Full {
		return nil
	}
	message := "is required, unless Full is set"
	if p.Full {
		message = "must not be set together with Full"
	}
	return &ValidationError{Op: op, Fields: []FieldError{{Field: "amount", Message: message, Code: spec.CodeRequired}}}
}

// Refund is the result of a refund. Amounts are in cents.
type Refund struct {
	Message          string `json:"message"`
	AmountRefunded   int64  `json:"amount_refunded"` // by this call
	RemainingBalance int64  `json:"remaining_balance"`
	IsFullRefund     bool   `json:"is_full_refund"`
}

// MarshalJSON writes r in the gateway's format.
func (r Refund) MarshalJSON() ([]byte, error) {
	type plain Refund
	return wire.Marshal((*plain)(&r))
}

// DeliveryStatus is the delivery state of a transaction's goods.
type DeliveryStatus string

// The delivery states.
const (
	DeliveryWaiting   DeliveryStatus = "waiting"
	DeliveryInTransit DeliveryStatus = "in_transit"
	DeliveryDelivered DeliveryStatus = "delivered"
)

// DeliveryParams is the body of PUT /v2/transactions/{id}/delivery. Fields that
// are not sent keep their values; [Clear] clears them.
type DeliveryParams struct {
	TrackingCode    string         `json:"tracking_code"`             // 1 to 255 characters; required
	DeliveryStatus  DeliveryStatus `json:"delivery_status,omitzero"`  // default in_transit, or the stored one
	TrackingURL     Opt[string]    `json:"tracking_url,omitzero"`     // http or https, at most 255 characters
	TrackingCompany Opt[string]    `json:"tracking_company,omitzero"` // 1 to 64 characters

	// IfMatch is the ETag of the response that the update is based on (see
	// [Response.Header]). If the transaction has changed since, the update is
	// rejected with status 412.
	IfMatch string `json:"-"`
}

// Validate checks p against the rules of the interface; see [ValidationError].
func (p DeliveryParams) Validate() error { return validate(p, spec.Delivery) }

// Delivery is the tracking of a transaction's goods as the gateway stores it.
type Delivery struct {
	Status     DeliveryStatus `json:"status"`
	Code       string         `json:"code"`
	URL        string         `json:"url"`     // nullable
	Company    string         `json:"company"` // nullable
	LastUpdate Timestamp      `json:"last_update"`
}

// MarshalJSON writes d in the gateway's format.
func (d Delivery) MarshalJSON() ([]byte, error) {
	type plain Delivery
	return wire.Marshal((*plain)(&d))
}

// SandboxStatusParams is the body of PUT /v2/transactions/{id}: the new state of a
// sandbox transaction.
type SandboxStatusParams struct {
	Status TransactionStatus `json:"status"` // required
}

type sandboxResponse struct {
	Transaction Transaction `json:"transaction"`
}

func (a *sandboxResponse) keep(raw json.RawMessage) {
	var members struct {
		Transaction json.RawMessage `json:"transaction"`
	}
	_ = wire.Decode(raw, &members) // it was decoded before
	a.Transaction.Raw = members.Transaction
}

// TransactionsService manages payments: /v2/transactions.
type TransactionsService struct{ client *Client }

var createTransaction = keyedCreate[TransactionParams, Transaction]{
	operation: &spec.Transactions.Create,
	field:     "external_ref",
	automatic: true,
	reference: func(p *TransactionParams) *string { return &p.ExternalRef },
	differing: func(p *TransactionParams, t *Transaction) (d differences) {
		none := t.Amount == 0 && t.BasePrice == 0 && t.PaidAmount == 0
		d.unless(none || t.AmountIs(p.Amount), "amount")
		d.unless(agrees(p.Method, t.Method), "method")
		d.unless(agrees(p.currency(), t.Currency), "currency")
		return d
	},
	compared: []string{"method"},
	get:      &spec.Transactions.Get,
	stored:   func(t *Transaction) string { return t.ExternalRef },
	search: func(ctx context.Context, c *Client, reference string, age time.Duration, opts []RequestOption) (string, error) {
		if age > searchWindow {
			first := time.Now().Add(-age)
			pages := c.Transactions.Pages(ctx, TransactionListParams{
				Limit: spec.MaxPageSize, From: first.Add(-searchWindow), To: first.Add(searchWindow),
			}, opts...)
			if id, err := searchNewest(pages, age, reference, (*Transaction).listed); err == nil {
				return id, nil
			}
		}
		pages := c.Transactions.Pages(ctx, TransactionListParams{Limit: spec.MaxPageSize}, opts...)
		return searchNewest(pages, age, reference, (*Transaction).listed)
	},
}

// searchWindow is the largest expected difference between the time of a call and
// the creation of its transaction. For an older call, this window around its time
// is searched first, because the transaction may be many pages back. The newest
// pages are searched too, because the client's clock may differ from the gateway's.
const searchWindow = 5 * time.Minute

// Create creates a transaction: POST /v2/transactions. Without an ExternalRef
// the client generates one, so that a lost response does not lead to a second
// charge; see [Response.Reference].
//
// Errors: [ErrValidation] if params are invalid, in most cases before anything is
// sent; [ErrDuplicate] if the ExternalRef was used before; [ErrNotFound] for an
// unknown buyer id; [ErrOutcomeUnknown] if the transaction may have been created:
// see [OutcomeError] before you try again.
func (s *TransactionsService) Create(ctx context.Context, params TransactionParams, opts ...RequestOption) (*Transaction, error) {
	return create(ctx, s.client, &createTransaction, &params, opts)
}

// Get reads a transaction: GET /v2/transactions/{id}. The error is [ErrNotFound]
// if the id is unknown.
func (s *TransactionsService) Get(ctx context.Context, id string, opts ...RequestOption) (*Transaction, error) {
	return call[Transaction](ctx, s.client, &spec.Transactions.Get, nil, opts, id)
}

// List reads one page of transactions, newest first: GET /v2/transactions. Gateways
// send list items in one of two shapes: like that of Get, or with the payment in a
// separate object and other names for the fields of products. Both are decoded into
// a [Transaction].
func (s *TransactionsService) List(ctx context.Context, params TransactionListParams, opts ...RequestOption) (*Page[Transaction], error) {
	page, err := listPage[listedTransaction](ctx, s.client, &spec.Transactions.List, &params, opts)
	return transactions(page), err
}

// Pages iterates over the pages of a list, starting at the page in params. It
// ends at the first error.
func (s *TransactionsService) Pages(ctx context.Context, params TransactionListParams, opts ...RequestOption) iter.Seq2[*Page[Transaction], error] {
	return func(yield func(*Page[Transaction], error) bool) {
		for page, err := range listPages[listedTransaction](ctx, s.client, &spec.Transactions.List, &params, opts) {
			if !yield(transactions(page), err) {
				return
			}
		}
	}
}

// All iterates over the transactions of all pages.
func (s *TransactionsService) All(ctx context.Context, params TransactionListParams, opts ...RequestOption) iter.Seq2[*Transaction, error] {
	return items(s.Pages(ctx, params, opts...))
}

// Refund refunds a transaction, in full or in part: PUT
// /v2/transactions/{id}/refund. The error is [ErrConflict] if the transaction's
// state does not allow a refund. Refunds have no reference. After
// [ErrOutcomeUnknown] the gateway may still apply the refund: wait a few minutes,
// then read the transaction and check its RefundedAmount before you try again. If
// the client uses [WithIdempotencyKeys], repeat the refund with the same key
// instead.
func (s *TransactionsService) Refund(ctx context.Context, id string, params RefundParams, opts ...RequestOption) (*Refund, error) {
	if err := params.choice(spec.Transactions.Refund.Name); err != nil {
		return nil, err
	}
	return call[Refund](ctx, s.client, &spec.Transactions.Refund, &params, opts, id)
}

// UpdateDelivery stores the tracking of a paid transaction's goods: PUT
// /v2/transactions/{id}/delivery. The error is [ErrConflict] if the transaction
// is not paid, if the status would change from delivered to another, or if
// IfMatch no longer matches. After [ErrOutcomeUnknown], call it again; with
// IfMatch, read the transaction first.
func (s *TransactionsService) UpdateDelivery(ctx context.Context, id string, params DeliveryParams, opts ...RequestOption) (*Delivery, error) {
	op := spec.Transactions.UpdateDelivery
	if params.IfMatch != "" {
		op.Class = spec.Unsafe // a retry would no longer match
		opts = append(opts[:len(opts):len(opts)], Header("If-Match", params.IfMatch))
	}
	return call[Delivery](ctx, s.client, &op, &params, opts, id)
}

// SetSandboxStatus changes the state of a sandbox transaction, and the gateway
// sends the matching webhook: PUT /v2/transactions/{id}. With a production key the
// error is [ErrForbidden]. After [ErrOutcomeUnknown], read the transaction. The
// response has its ID, Status, Method, Amount, Currency and ExternalRef.
func (s *TransactionsService) SetSandboxStatus(ctx context.Context, id string, params SandboxStatusParams, opts ...RequestOption) (*Transaction, error) {
	op := spec.Transactions.SetSandboxStatus
	op.Rule = spec.LiveSandboxStatus
	response, err := call[sandboxResponse](ctx, s.client, &op, &params, opts, id)
	if err != nil {
		return nil, err
	}
	return &response.Transaction, nil
}

// Wait polls a transaction with GET /v2/transactions/{id} until it is settled,
// partially refunded or final, or ctx ends. Use Wait in interactive programs; in
// servers, webhooks are faster and need fewer requests.
//
// Wait polls after 1 s, then less and less often, at last every 15 s. It continues
// after transient errors, such as those of an overloaded gateway. When ctx ends,
// it returns the transaction as last read, or nil, and an error that wraps ctx's.
func (s *TransactionsService) Wait(ctx context.Context, id string, opts ...RequestOption) (*Transaction, error) {
	return s.WaitUntil(ctx, id, func(t *Transaction) bool {
		return t.Settled() || t.Status == TransactionPartiallyRefunded || t.Status.Final()
	}, opts...)
}

// WaitUntil is like [TransactionsService.Wait], but ends when done returns true.
func (s *TransactionsService) WaitUntil(ctx context.Context, id string, done func(*Transaction) bool, opts ...RequestOption) (*Transaction, error) {
	var last *Transaction
	pause := time.Second
	for {
		t, err := s.Get(ctx, id, opts...)
		if err == nil {
			last = t
		}
		if err == nil && done(t) || err != nil && !transient(ctx, err) {
			return last, err
		}
		if err := sleep(ctx, max(pause, retryAfterOf(err))); err != nil {
			return last, &Error{Op: "transactions.wait", Err: err}
		}
		pause = min(pause+pause/2, 15*time.Second)
	}
}

// transient reports whether a failed read may succeed later.
func transient(ctx context.Context, err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok || ctx.Err() != nil || e.permanent {
		return false
	}
	switch e.status() {
	case 0, http.StatusTooManyRequests, http.StatusRequestTimeout:
		return true
	default:
		return e.status() >= http.StatusInternalServerError
	}
}

func retryAfterOf(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
