package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// SubscriptionStatus is a state of a subscription. A response may have a state
// that this version does not define; it is kept unchanged.
type SubscriptionStatus string

// The states of a subscription.
const (
	// SubscriptionIncomplete is waiting for the payer to authorize a Pix
	// Automatico or to pass the 3-D Secure challenge of the first card charge
	// (see [SubscriptionsService.PendingChallenge]). A subscription whose
	// first card charge was refused is also incomplete.
	SubscriptionIncomplete SubscriptionStatus = "incomplete"
	// SubscriptionTrialing has not been charged yet; the first charge is at
	// TrialEnd. To validate a card, the gateway may charge a small amount at once
	// and refund it.
	SubscriptionTrialing SubscriptionStatus = "trialing"
	// SubscriptionActive is paid for the current period.
	SubscriptionActive SubscriptionStatus = "active"
	// SubscriptionPastDue has a failed renewal that is being retried.
	SubscriptionPastDue SubscriptionStatus = "past_due"
	// SubscriptionCancelScheduled runs until the current period or trial ends, and
	// is not charged again.
	SubscriptionCancelScheduled SubscriptionStatus = "cancel_scheduled"
	// SubscriptionCanceled has ended permanently.
	SubscriptionCanceled SubscriptionStatus = "canceled"
)

// Running reports whether the customer has access: trialing, active, or
// cancel_scheduled, which runs until its period or trial ends. Whether a
// past_due customer has access is your decision.
func (s SubscriptionStatus) Running() bool {
	return s == SubscriptionTrialing || s == SubscriptionActive || s == SubscriptionCancelScheduled
}

// Final reports whether s never changes again: canceled.
func (s SubscriptionStatus) Final() bool { return s == SubscriptionCanceled }

// SubscriptionMethod is how a subscription is paid.
type SubscriptionMethod string

// The payment methods of a subscription.
const (
	// SubscriptionCreditCard charges a card, using a token from the client-side
	// payment element. It is the default.
	SubscriptionCreditCard SubscriptionMethod = "credit_card"
	// SubscriptionPixAutomatic debits the payer's account after the payer has
	// authorized this in a banking app.
	SubscriptionPixAutomatic SubscriptionMethod = "pix_automatic"
)

// Interval is the unit of a billing period.
type Interval string

// The intervals. Monthly periods end on the day of the month on which the
// billing began, or on the last day of a shorter month.
const (
	IntervalDay   Interval = "day"
	IntervalWeek  Interval = "week"
	IntervalMonth Interval = "month"
)

// FailurePolicy is what the gateway does when a renewal fails.
type FailurePolicy string

// The failure policies.
const (
	// ImmediateCancel ends the subscription at the first failed charge.
	ImmediateCancel FailurePolicy = "immediate_cancel"
	// RetryThenCancel retries on the days in RetryOffsetsDays and ends the
	// subscription if the last retry fails. It is the default.
	RetryThenCancel FailurePolicy = "retry_then_cancel"
)

// CancellationReason is why a subscription ended or will end.
type CancellationReason string

// The cancellation reasons. The interface document names only user_requested.
const (
	CancellationUserRequested  CancellationReason = "user_requested"
	CancellationPaymentFailure CancellationReason = "payment_failure"
	CancellationChargeback     CancellationReason = "chargeback"
	CancellationSystem         CancellationReason = "system"
)

// AuthorizationStatus is a state of a Pix Automatico authorization.
type AuthorizationStatus string

// The states of an authorization. The interface document names only pending.
const (
	AuthorizationPending  AuthorizationStatus = "pending"
	AuthorizationApproved AuthorizationStatus = "approved"
	AuthorizationRejected AuthorizationStatus = "rejected"
	AuthorizationExpired  AuthorizationStatus = "expired"
	AuthorizationCanceled AuthorizationStatus = "canceled"
)

// Subscription is a recurring charge as the gateway stores it. Amounts are in
// cents. Null strings decode to "", null numbers to 0, null objects to nil, and
// null timestamps to the zero [Timestamp].
type Subscription struct {
	ID                 string             `json:"id"`
	CustomerID         string             `json:"customerId"`
	Status             SubscriptionStatus `json:"status"`
	PaymentMethod      SubscriptionMethod `json:"paymentMethod"`
	BillingModel       string             `json:"billingModel"`               // such as "merchant_initiated"
	BillingDayOfMonth  int                `json:"billingDayOfMonth,omitzero"` // nullable
	Interval           Interval           `json:"interval"`
	IntervalCount      int                `json:"intervalCount"` // intervals per period
	Amount             int64              `json:"amount"`        // charged every period
	Currency           Currency           `json:"currency"`
	TrialEnd           Timestamp          `json:"trialEnd"`           // nullable
	CurrentPeriodStart Timestamp          `json:"currentPeriodStart"` // nullable
	CurrentPeriodEnd   Timestamp          `json:"currentPeriodEnd"`   // nullable
	CancelAtPeriodEnd  bool               `json:"cancelAtPeriodEnd"`
	CanceledAt         Timestamp          `json:"canceledAt"` // nullable
	FailurePolicy      FailurePolicy      `json:"failurePolicy"`
	RetryOffsetsDays   []int              `json:"retryOffsetsDays"`   // days after the first failure
	CancellationReason CancellationReason `json:"cancellationReason"` // nullable
	CustomerEmail      string             `json:"customerEmail"`
	CardLast4          string             `json:"cardLast4"` // nullable, "" for Pix Automatico
	Metadata           Metadata           `json:"metadata"`  // nullable; an object, see [Metadata.Decode]
	Informations       []Information      `json:"informations"`

	Products []SubscriptionProduct `json:"products"`

	// RecurringAuthorization is the payer's authorization of a Pix Automatico;
	// nil for a card.
	RecurringAuthorization *RecurringAuthorization `json:"recurringAuthorization"`

	// Authorization is what the payer needs to authorize a Pix Automatico. The
	// response to a create has it; later responses may have it until the payer
	// decides. [Subscription.AuthorizationQRCode] returns the code from either
	// field.
	Authorization *RecurringAuthorization `json:"authorization,omitzero"`

	// Transactions are the charges. Only responses to
	// [SubscriptionsService.Get] have them; otherwise the slice is nil.
	Transactions []SubscriptionTransaction `json:"transactions,omitzero"`

	CreatedAt Timestamp       `json:"createdAt"`
	UpdatedAt Timestamp       `json:"updatedAt"`
	Raw       json.RawMessage `json:"-"` // the JSON as received, with what this version has no field for; not printed
}

// MarshalJSON writes s in the gateway's format.
func (s Subscription) MarshalJSON() ([]byte, error) {
	type plain Subscription
	return wire.Marshal((*plain)(&s))
}

// AuthorizationQRCode returns the code with which the payer authorizes a Pix
// Automatico: show it as a QR code, which package pix draws, and as text to copy.
// It is "" for a card, and once the payer has decided.
func (s *Subscription) AuthorizationQRCode() string {
	for _, a := range [...]*RecurringAuthorization{s.Authorization, s.RecurringAuthorization} {
		if a != nil && a.QRCode != "" {
			return a.QRCode
		}
	}
	return ""
}

// SubscriptionProduct is a product of a subscription in a response.
type SubscriptionProduct struct {
	Name     string `json:"name"`
	Price    int64  `json:"price"` // unit price in cents
	Quantity int    `json:"quantity"`
	Tangible bool   `json:"tangible"`
}

// RecurringAuthorization is the payer's authorization of a Pix Automatico.
type RecurringAuthorization struct {
	Status         AuthorizationStatus `json:"status"`                    // "" if the gateway does not report it
	QRCode         string              `json:"qr_code"`                   // nullable
	ExpirationDate Timestamp           `json:"expiration_date"`           // nullable; live gateways also call it expires_at
	PaymentLinkURL string              `json:"payment_link_url,omitzero"` // a page on which the payer can authorize; only some live gateways have one

	renamed bool          // ExpirationDate was received as expires_at
	unread  []wire.Unread // what was left out
}

// plainAuthorization is a RecurringAuthorization without methods.
type plainAuthorization RecurringAuthorization

// authorizationItem is an authorization on the wire.
type authorizationItem struct {
	plainAuthorization

	ExpiresAt Timestamp `json:"expires_at,omitzero"`
}

// UnmarshalJSON reads an object in either spelling. Its members only inform: whether the
// payer may be charged is the state of the subscription.
func (r *RecurringAuthorization) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '{' {
		return errors.New("an authorization must be an object")
	}
	var item authorizationItem
	unread, err := wire.DecodeMembers(b, &item, &spec.AuthorizationMembers)
	if err != nil {
		return err
	}
	*r = RecurringAuthorization(item.plainAuthorization)
	r.unread = unread
	if r.ExpirationDate.IsZero() && !item.ExpiresAt.IsZero() {
		r.ExpirationDate, r.renamed = item.ExpiresAt, true
	}
	return nil
}

// MarshalJSON writes r in the gateway's format.
func (r RecurringAuthorization) MarshalJSON() ([]byte, error) {
	if masking.Logging() {
		return masking.Show(plainAuthorization(r)).MarshalJSON()
	}
	item := authorizationItem{plainAuthorization: plainAuthorization(r)}
	if r.renamed {
		item.ExpiresAt, item.ExpirationDate = r.ExpirationDate, Timestamp{}
	}
	return wire.Marshal(&item)
}

// SubscriptionTransaction is a summary of one charge of a subscription; read
// the full transaction with [TransactionsService.Get]. Amounts are in cents.
type SubscriptionTransaction struct {
	ID             string            `json:"id"`
	Status         TransactionStatus `json:"status"`
	Amount         int64             `json:"amount"`
	PaidAmount     int64             `json:"paidAmount"`
	RefundedAmount int64             `json:"refundedAmount"`
	Currency       Currency          `json:"currency"`
	ExternalRef    string            `json:"externalRef"` // nullable
	CreatedAt      Timestamp         `json:"createdAt"`
	PaidAt         Timestamp         `json:"paidAt"` // nullable
}

// SubscriptionParams is the body of POST /v2/subscriptions. Fields with their
// zero value are not sent.
//
// A card subscription requires CustomerID, Amount, Interval and Token; Pix
// Automatico requires CustomerID, Amount, Interval and PaymentMethod, and no
// Token.
type SubscriptionParams struct {
	// CustomerID is the id of an existing customer; see
	// [CustomersService.Create].
	CustomerID string `json:"customer_id"`

	Amount        int64              `json:"amount"`                  // cents, 1 to 100000000, charged every period; required
	Token         CardToken          `json:"token,omitzero"`          // single-use, "pgct_…"; required for a card
	PaymentMethod SubscriptionMethod `json:"payment_method,omitzero"` // default SubscriptionCreditCard
	Interval      Interval           `json:"interval,omitzero"`       // required
	IntervalCount int                `json:"interval_count,omitzero"` // 1 to 365; default 1
	FailurePolicy FailurePolicy      `json:"failure_policy,omitzero"` // default RetryThenCancel

	// RetryOffsetsDays is when a failed renewal is retried, in days after the
	// first failure: 1 to 10 values, each 1 to 30.
	RetryOffsetsDays []int `json:"retry_offsets_days,omitzero"`

	Currency     Currency       `json:"currency,omitzero"`     // default BRL
	Metadata     map[string]any `json:"metadata,omitzero"`     // your own data; echoed in the subscription's webhooks
	Informations []Information  `json:"informations,omitzero"` // at most 50

	// IdempotencyKey, 1 to 255 characters, makes the call safe to repeat: a
	// create with the same key returns the first subscription. Store it with
	// the order before the call. If it is empty, the client generates one; see
	// [Response.Reference].
	IdempotencyKey string `json:"idempotency_key,omitzero"`

	Products []Product `json:"products,omitzero"` // at most 100

	// TrialEnd is when the trial ends and the first charge is made. It must be in
	// the future by the gateway's clock.
	TrialEnd time.Time `json:"trial_end,omitzero"`

	BillingDayOfMonth int    `json:"billing_day_of_month,omitzero"` // 1 to 31, for Pix Automatico
	Comment           string `json:"comment,omitzero"`              // at most 140 characters, for Pix Automatico
}

// Validate checks p as the gateway would, except for rules that depend on the
// gateway's clock or data; see [ValidationError].
func (p SubscriptionParams) Validate() error { return validate(p, spec.Subscription) }

// Warnings says what of the params banks don't execute: a Pix Automatico is charged
// weekly, monthly, quarterly, half-yearly or yearly, and a debit is retried at most three
// times, on different days within seven days. Gateways accept other params, so [SubscriptionParams.Validate] and Create do too;
// Create writes the warnings to the logger of [WithLogger]. It is nil for a card.
func (p SubscriptionParams) Warnings() []string {
	if p.PaymentMethod != SubscriptionPixAutomatic {
		return nil
	}
	return append(spec.PixPeriodWarnings(string(p.Interval), p.IntervalCount),
		spec.PixRetryWarnings(string(p.FailurePolicy), p.RetryOffsetsDays)...)
}

// SubscriptionUpdateParams is the body of PATCH /v2/subscriptions/{id}. It has the
// fields that can be changed. Fields with their zero value are not sent.
type SubscriptionUpdateParams struct {
	Metadata         Opt[map[string]any] `json:"metadata,omitzero"` // [Some] replaces it, [Clear] clears it
	FailurePolicy    FailurePolicy       `json:"failure_policy,omitzero"`
	RetryOffsetsDays []int               `json:"retry_offsets_days,omitzero"` // 1 to 10 values, each 1 to 30
}

// Validate checks p against the rules of the interface; see [ValidationError].
func (p SubscriptionUpdateParams) Validate() error { return validate(p, spec.SubscriptionUpdate) }

// SubscriptionCancelParams is the body of POST /v2/subscriptions/{id}/cancel;
// the zero value is valid.
type SubscriptionCancelParams struct {
	// Reason is free text according to the interface document. Live gateways
	// reject everything but the values of the [CancellationReason] constants, such
	// as "user_requested", their default.
	Reason string `json:"reason,omitzero"`
}

// Validate checks p against the rules of the interface; see [ValidationError].
func (p SubscriptionCancelParams) Validate() error { return validate(p, spec.SubscriptionCancel) }

// SubscriptionListParams is the query of GET /v2/subscriptions. A subscription
// must match all filters. Fields with their zero value are not sent.
type SubscriptionListParams struct {
	Cursor    string    `url:"cursor,omitempty"`    // from the previous page; "" for the first page
	Limit     int       `url:"limit,omitempty"`     // items per page, 1 to 100; default 20
	Direction Direction `url:"direction,omitempty"` // from the cursor; default DirectionNext

	Status        SubscriptionStatus `url:"status,omitempty"`
	CustomerEmail string             `url:"customer_email,omitempty"`
	CreatedAfter  time.Time          `url:"created_after,omitempty" layout:"2006-01-02T15:04:05.999Z07:00"`
	CreatedBefore time.Time          `url:"created_before,omitempty" layout:"2006-01-02T15:04:05.999Z07:00"`
}

// SubscriptionsService manages recurring charges by card or Pix Automatico:
// /v2/subscriptions. If subscriptions are not enabled for the account, every call
// returns [ErrForbidden].
type SubscriptionsService struct{ client *Client }

var createSubscription = keyedCreate[SubscriptionParams, Subscription]{
	operation: &spec.Subscriptions.Create,
	field:     "idempotency_key",
	automatic: true,
	reference: func(p *SubscriptionParams) *string { return &p.IdempotencyKey },
	differing: differingSubscription,
	compared:  []string{"customerId", "paymentMethod", "interval", "intervalCount", "trialEnd", "currentPeriodStart"},
}

// differingSubscription checks whether s matches p, rather than being an older
// subscription with the same key: live gateways return that one whatever p says.
func differingSubscription(p *SubscriptionParams, s *Subscription) (d differences) {
	d.unless(agrees(strings.ToLower(p.CustomerID), strings.ToLower(s.CustomerID)), "customer_id")
	d.unless(agrees(p.Amount, s.Amount), "amount")
	d.unless(agrees(p.Currency, s.Currency), "currency")
	d.unless(agrees(cmp.Or(p.PaymentMethod, SubscriptionCreditCard), s.PaymentMethod), "payment_method")
	d.unless(agrees(p.Interval, s.Interval), "interval")
	d.unless(agrees(max(p.IntervalCount, 1), s.IntervalCount), "interval_count")
	d.unless(agreesOnTrial(p.TrialEnd, s), "trial_end")
	return d
}

// agreesOnTrial reports whether s has the requested trial, whose end a gateway may
// round to a day, or none if none was requested.
func agreesOnTrial(end time.Time, s *Subscription) bool {
	const rounding = 24 * time.Hour
	switch {
	case end.IsZero():
		return s.Status != SubscriptionTrialing
	case !s.TrialEnd.IsZero():
		return end.Sub(s.TrialEnd.Time).Abs() <= rounding
	default: // a period that is paid before the trial would end
		return s.Status != SubscriptionActive || s.CurrentPeriodStart.IsZero() || end.Sub(s.CurrentPeriodStart.Time) <= rounding
	}
}

// Create creates a subscription: POST /v2/subscriptions.
//
// A card is charged immediately, and the state is [SubscriptionActive]. With a
// TrialEnd the state is [SubscriptionTrialing], and the card is charged at
// TrialEnd. If the issuer refuses the first charge or requires 3-D Secure, the
// state is [SubscriptionIncomplete]; see
// [SubscriptionsService.PendingChallenge]. A Pix Automatico is incomplete until
// the payer authorizes it with [Subscription.AuthorizationQRCode].
//
// If the response is lost, the client repeats the call with the same
// IdempotencyKey, and you can do the same. If the key belongs to a different
// subscription, the error is [ErrDuplicate]; live gateways return that subscription,
// which is then [Error.Existing], and the error names what differs. The error is [ErrNotFound] if the
// customer is unknown.
func (s *SubscriptionsService) Create(ctx context.Context, params SubscriptionParams, opts ...RequestOption) (*Subscription, error) {
	for _, warning := range params.Warnings() {
		if logger := s.client.settings.logger; logger != nil {
			logger.WarnContext(ctx, "gateway: banks don't execute this Pix Automatico as requested", slog.String("warning", warning), slog.String("op", createSubscription.operation.Name))
		}
	}
	return create(ctx, s.client, &createSubscription, &params, opts)
}

// Get reads a subscription with its charges: GET /v2/subscriptions/{id}. The
// error is [ErrNotFound] if the id is unknown.
func (s *SubscriptionsService) Get(ctx context.Context, id string, opts ...RequestOption) (*Subscription, error) {
	return call[Subscription](ctx, s.client, &spec.Subscriptions.Get, nil, opts, id)
}

// List reads one page of subscriptions, newest first and without their charges:
// GET /v2/subscriptions.
func (s *SubscriptionsService) List(ctx context.Context, params SubscriptionListParams, opts ...RequestOption) (*Page[Subscription], error) {
	return listPage[Subscription](ctx, s.client, &spec.Subscriptions.List, &params, opts)
}

// Pages iterates over the pages of a list, starting at the page in params. It
// ends at the first error.
func (s *SubscriptionsService) Pages(
	ctx context.Context, params SubscriptionListParams, opts ...RequestOption,
) iter.Seq2[*Page[Subscription], error] {
	return listPages[Subscription](ctx, s.client, &spec.Subscriptions.List, &params, opts)
}

// All iterates over the subscriptions of all pages. It ends at the first
// error.
func (s *SubscriptionsService) All(ctx context.Context, params SubscriptionListParams, opts ...RequestOption) iter.Seq2[*Subscription, error] {
	return items(s.Pages(ctx, params, opts...))
}

// Update changes the metadata or the failure policy: PATCH
// /v2/subscriptions/{id}. Nothing else in a subscription can be changed. The
// error is [ErrConflict] if the subscription is canceled.
//
// The call is not retried if it may have been applied. After [ErrOutcomeUnknown]
// you may call it again: the result is the same, but a second
// subscription.updated webhook may be sent.
func (s *SubscriptionsService) Update(
	ctx context.Context, id string, params SubscriptionUpdateParams, opts ...RequestOption,
) (*Subscription, error) {
	return call[Subscription](ctx, s.client, &spec.Subscriptions.Update, &params, opts, id)
}

// Cancel cancels a subscription: POST /v2/subscriptions/{id}/cancel. A card
// subscription runs until the end of the paid period or the trial, in the state
// [SubscriptionCancelScheduled]. Any other subscription (a Pix Automatico, a
// past-due or an incomplete one) is [SubscriptionCanceled] immediately. The
// error is [ErrConflict] if it is already canceled or scheduled to be.
//
// Without [WithIdempotencyKeys], the call is not retried if it may have been
// applied. After [ErrOutcomeUnknown], read the subscription.
func (s *SubscriptionsService) Cancel(
	ctx context.Context, id string, params SubscriptionCancelParams, opts ...RequestOption,
) (*Subscription, error) {
	return call[Subscription](ctx, s.client, &spec.Subscriptions.Cancel, &params, opts, id)
}

// PendingChallenge returns the 3-D Secure challenge that a subscription is
// waiting for, or nil and no error if there is none. Pass its ClientSecret to the
// client-side payment element. A subscription does not contain its challenge, so
// the method reads the subscription and then its unpaid charges.
func (s *SubscriptionsService) PendingChallenge(ctx context.Context, id string, opts ...RequestOption) (*NextAction, error) {
	sub, err := s.Get(ctx, id, opts...)
	if err != nil {
		return nil, err
	}
	for _, charge := range sub.Transactions {
		if charge.Status != TransactionPending && charge.Status != TransactionThreeDSRequired {
			continue
		}
		tx, err := s.client.Transactions.Get(ctx, charge.ID, opts...)
		if err != nil {
			return nil, err
		}
		if tx.NextAction != nil {
			return tx.NextAction, nil
		}
	}
	return nil, nil
}
