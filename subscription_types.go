package gateway

import (
	"encoding/json"

	"github.com/gateway-go/gateway/internal/rules"
	"github.com/gateway-go/gateway/internal/wire"
)

// SubscriptionStatus is a state of a subscription. An answer may hold states
// that this version does not know; they are kept as they came.
type SubscriptionStatus string

// The states of a subscription.
const (
	// SubscriptionIncomplete waits for the payer: for the authorisation of a Pix
	// Automatico, or for the 3-D Secure challenge of the first card charge (see
	// [SubscriptionsService.PendingChallenge]). A card whose first charge was
	// refused stays here too.
	SubscriptionIncomplete SubscriptionStatus = "incomplete"
	// SubscriptionTrialing has charged nothing yet and will at TrialEnd.
	SubscriptionTrialing SubscriptionStatus = "trialing"
	// SubscriptionActive is paid for the current period.
	SubscriptionActive SubscriptionStatus = "active"
	// SubscriptionPastDue had a renewal fail and is being retried.
	SubscriptionPastDue SubscriptionStatus = "past_due"
	// SubscriptionCancelScheduled is paid for the current period and ends with it.
	SubscriptionCancelScheduled SubscriptionStatus = "cancel_scheduled"
	// SubscriptionCanceled has ended and never comes back.
	SubscriptionCanceled SubscriptionStatus = "canceled"
)

// Known reports whether this version knows s.
func (s SubscriptionStatus) Known() bool { return rules.SubscriptionStatuses.Has(string(s)) }

// Running reports whether the customer has what was subscribed for: trialing,
// active, or cancel_scheduled, which is paid to the end of its period. Whether
// past_due still counts is your own decision.
func (s SubscriptionStatus) Running() bool {
	return s == SubscriptionTrialing || s == SubscriptionActive || s == SubscriptionCancelScheduled
}

// Final reports whether s never changes again: canceled.
func (s SubscriptionStatus) Final() bool { return s == SubscriptionCanceled }

// SubscriptionMethod is how a subscription is paid.
type SubscriptionMethod string

// The payment methods of a subscription.
const (
	// SubscriptionCreditCard charges a card by a token of the client-side
	// payment element. It is the default.
	SubscriptionCreditCard SubscriptionMethod = "credit_card"
	// SubscriptionPixAutomatic debits the payer's account once the payer has
	// authorised it in the bank's app.
	SubscriptionPixAutomatic SubscriptionMethod = "pix_automatic"
)

// Known reports whether the interface names m.
func (m SubscriptionMethod) Known() bool { return rules.SubscriptionMethods.Has(string(m)) }

// Interval is the unit of a billing period.
type Interval string

// The intervals. A month keeps the day on which the subscription began, or the
// month's last day where it has no such day.
const (
	IntervalDay   Interval = "day"
	IntervalWeek  Interval = "week"
	IntervalMonth Interval = "month"
)

// Known reports whether the interface names i.
func (i Interval) Known() bool { return rules.Intervals.Has(string(i)) }

// FailurePolicy is what the gateway does when a renewal fails.
type FailurePolicy string

// The failure policies.
const (
	// ImmediateCancel ends the subscription at the first failed charge.
	ImmediateCancel FailurePolicy = "immediate_cancel"
	// RetryThenCancel tries again on the days of RetryOffsetsDays and ends the
	// subscription when the last try fails. It is the default.
	RetryThenCancel FailurePolicy = "retry_then_cancel"
)

// Known reports whether the interface names p.
func (p FailurePolicy) Known() bool { return rules.FailurePolicies.Has(string(p)) }

// CancellationReason is why a subscription ended, or will end.
type CancellationReason string

// The cancellation reasons. The interface document names user_requested only.
const (
	CancellationUserRequested  CancellationReason = "user_requested"
	CancellationPaymentFailure CancellationReason = "payment_failure"
	CancellationChargeback     CancellationReason = "chargeback"
	CancellationSystem         CancellationReason = "system"
)

// Known reports whether this version knows r.
func (r CancellationReason) Known() bool { return rules.CancellationReasons.Has(string(r)) }

// AuthorizationStatus is a state of a Pix Automatico's authorisation.
type AuthorizationStatus string

// The states of an authorisation. The interface document names pending only.
const (
	AuthorizationPending  AuthorizationStatus = "pending"
	AuthorizationApproved AuthorizationStatus = "approved"
	AuthorizationRejected AuthorizationStatus = "rejected"
	AuthorizationExpired  AuthorizationStatus = "expired"
	AuthorizationCanceled AuthorizationStatus = "canceled"
)

// Known reports whether this version knows s.
func (s AuthorizationStatus) Known() bool { return rules.AuthorizationStatuses.Has(string(s)) }

// Subscription is a recurring charge as the gateway keeps it. Amounts are in
// cents. Nullable texts are "", nullable numbers 0, nullable objects nil,
// nullable moments the zero [Timestamp].
type Subscription struct {
	ID                 string             `json:"id"`
	CustomerID         string             `json:"customerId"`
	Status             SubscriptionStatus `json:"status"`
	PaymentMethod      SubscriptionMethod `json:"paymentMethod"`
	BillingModel       string             `json:"billingModel"`               // such as "merchant_initiated"
	BillingDayOfMonth  int                `json:"billingDayOfMonth,omitzero"` // nullable
	Interval           Interval           `json:"interval"`
	IntervalCount      int                `json:"intervalCount"` // intervals in a period
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

	// RecurringAuthorization is the state of a Pix Automatico's authorisation;
	// nil for a card.
	RecurringAuthorization *RecurringAuthorization `json:"recurringAuthorization"`

	// Authorization is what the payer of a Pix Automatico needs, in the answer
	// to the create. [Subscription.AuthorizationQRCode] finds the code wherever
	// it stands.
	Authorization *RecurringAuthorization `json:"authorization,omitzero"`

	// Transactions are the charges, in answers to [SubscriptionsService.Get]
	// only; elsewhere the member is missing and the slice nil.
	Transactions []SubscriptionTransaction `json:"transactions,omitzero"`

	CreatedAt Timestamp `json:"createdAt"`
	UpdatedAt Timestamp `json:"updatedAt"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes s as the gateway would.
func (s Subscription) MarshalJSON() ([]byte, error) {
	type plain Subscription
	return wire.Marshal((*plain)(&s))
}

// AuthorizationQRCode returns the copy-paste text with which the payer
// authorises a Pix Automatico, also to be drawn as a QR picture. It is "" for a
// card.
func (s *Subscription) AuthorizationQRCode() string {
	for _, a := range [...]*RecurringAuthorization{s.Authorization, s.RecurringAuthorization} {
		if a != nil && a.QRCode != "" {
			return a.QRCode
		}
	}
	return ""
}

// SubscriptionProduct is a product of a subscription in an answer.
type SubscriptionProduct struct {
	Name     string `json:"name"`
	Price    int64  `json:"price"` // unit price in cents
	Quantity int    `json:"quantity"`
	Tangible bool   `json:"tangible"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes s as the gateway would.
func (s SubscriptionProduct) MarshalJSON() ([]byte, error) {
	type plain SubscriptionProduct
	return wire.Marshal((*plain)(&s))
}

// RecurringAuthorization is the payer's consent to a Pix Automatico.
type RecurringAuthorization struct {
	Status         AuthorizationStatus `json:"status"`
	QRCode         string              `json:"qr_code"`         // nullable
	ExpirationDate Timestamp           `json:"expiration_date"` // nullable

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes r as the gateway would.
func (r RecurringAuthorization) MarshalJSON() ([]byte, error) {
	type plain RecurringAuthorization
	return wire.Marshal((*plain)(&r))
}

// SubscriptionTransaction is one charge of a subscription, in short; read the
// whole with [TransactionsService.Get]. Amounts are in cents.
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

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// MarshalJSON writes s as the gateway would.
func (s SubscriptionTransaction) MarshalJSON() ([]byte, error) {
	type plain SubscriptionTransaction
	return wire.Marshal((*plain)(&s))
}
