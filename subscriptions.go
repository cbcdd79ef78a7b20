package gateway

import (
	"time"

	"github.com/gateway-go/gateway/internal/rules"
)

// SubscriptionParams is the body of POST /v2/subscriptions. A member at its
// zero value is not sent.
//
// By card it needs CustomerID, Amount, Interval and Token; by Pix Automatico
// CustomerID, Amount, Interval and PaymentMethod, and no Token.
type SubscriptionParams struct {
	// CustomerID is the public id of a customer created before, see
	// [CustomersService.Create]. An unknown one is [ErrNotFound].
	CustomerID string `json:"customer_id"`

	Amount        int64              `json:"amount"`                  // cents, 1 to 100000000, charged every period; required
	Token         CardToken          `json:"token,omitzero"`          // single-use, "pgct_…"; required for a card
	PaymentMethod SubscriptionMethod `json:"payment_method,omitzero"` // SubscriptionCreditCard where it is not sent
	Interval      Interval           `json:"interval,omitzero"`       // required
	IntervalCount int                `json:"interval_count,omitzero"` // 1 to 365; 1 where it is not sent
	FailurePolicy FailurePolicy      `json:"failure_policy,omitzero"` // RetryThenCancel where it is not sent

	// RetryOffsetsDays are the days of the retries, counted from the first
	// failure of a renewal: 1 to 10 of them, each 1 to 30.
	RetryOffsetsDays []int `json:"retry_offsets_days,omitzero"`

	Currency     Currency       `json:"currency,omitzero"`     // BRL where it is not sent
	Metadata     map[string]any `json:"metadata,omitzero"`     // yours; echoed on the subscription's webhooks
	Informations []Information  `json:"informations,omitzero"` // at most 50

	// IdempotencyKey, 1 to 255 characters, makes the call repeatable: a create
	// with the same key gives the first subscription again. Keep it with the
	// order, before the call. Where it is empty the client makes one; see
	// [Response.Reference].
	IdempotencyKey string `json:"idempotency_key,omitzero"`

	Products []Product `json:"products,omitzero"` // at most 100

	// TrialEnd is when the first charge is made. It must be in the future by
	// the gateway's clock.
	TrialEnd time.Time `json:"trial_end,omitzero"`

	BillingDayOfMonth int    `json:"billing_day_of_month,omitzero"` // 1 to 31, for Pix Automatico
	Comment           string `json:"comment,omitzero"`              // at most 140 characters, for Pix Automatico
}

// Validate checks p as the gateway would, but for what only the gateway's
// clock and data can tell; see [ValidationError].
func (p SubscriptionParams) Validate() error { return validate(p, rules.Subscription) }

// SubscriptionUpdateParams is the body of PATCH /v2/subscriptions/{id}: the
// members that can change after the create. A member at its zero value stays
// as it is.
type SubscriptionUpdateParams struct {
	Metadata         Opt[map[string]any] `json:"metadata,omitzero"` // [Set] replaces it, [Null] clears it
	FailurePolicy    FailurePolicy       `json:"failure_policy,omitzero"`
	RetryOffsetsDays []int               `json:"retry_offsets_days,omitzero"` // 1 to 10 of them, each 1 to 30
}

// Validate checks p as the gateway would; see [ValidationError].
func (p SubscriptionUpdateParams) Validate() error { return validate(p, rules.SubscriptionUpdate) }

// SubscriptionCancelParams is the body of POST /v2/subscriptions/{id}/cancel;
// the zero value is fine.
type SubscriptionCancelParams struct {
	Reason string `json:"reason,omitzero"` // your words
}

// Validate checks p as the gateway would; see [ValidationError].
func (p SubscriptionCancelParams) Validate() error { return validate(p, rules.SubscriptionCancel) }
