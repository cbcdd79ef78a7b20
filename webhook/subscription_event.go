package webhook

import (
	"encoding/json"

	"github.com/gateway-go/gateway"
)

// SubscriptionEvent is an event of a subscription.
type SubscriptionEvent struct {
	*Event

	// Data is the event's own view of the subscription.
	Data SubscriptionData

	// Confirmed is the subscription as the API had it when the event was
	// accepted, nil where the API was not asked.
	Confirmed *gateway.Subscription
}

// State returns the best that is known of the subscription's state: the
// confirmed one, or the event's own.
func (e *SubscriptionEvent) State() gateway.SubscriptionStatus {
	if e.Confirmed != nil {
		return e.Confirmed.Status
	}
	return e.Data.Status
}

// SubscriptionData is the data of a subscription's event, whether it came in
// snake_case or in camelCase. Amounts are in cents; what the event left out is
// zero.
type SubscriptionData struct {
	ID                 string
	EventType          Kind
	CustomerID         string
	Status             gateway.SubscriptionStatus
	PreviousStatus     gateway.SubscriptionStatus // "" where the event created the subscription
	Amount             int64                      // of every cycle
	Currency           gateway.Currency
	Interval           gateway.Interval
	IntervalCount      int
	CurrentPeriodStart gateway.Timestamp
	CurrentPeriodEnd   gateway.Timestamp
	CancelAtPeriodEnd  bool
	CycleCount         int
	CustomerEmail      string
	FailurePolicy      gateway.FailurePolicy
	TrialEnd           gateway.Timestamp
	Metadata           gateway.Metadata // as it was sent when the subscription was made
	OccurredAt         gateway.Timestamp
	AttemptNumber      int    // of a failed charge
	FailureReason      string // of a failed charge

	// LatestTransaction is the last charge, nil where there is none.
	LatestTransaction *ChargeData

	// Extra is as in [TransactionData].
	Extra map[string]json.RawMessage
}

// ChargeData is a charge of a subscription as an event names it, in cents.
type ChargeData struct {
	ID             string
	Status         gateway.TransactionStatus
	Amount         int64
	PaidAmount     int64
	RefundedAmount int64
	Currency       gateway.Currency
	ExternalRef    string
	CreatedAt      gateway.Timestamp
	PaidAt         gateway.Timestamp

	// Extra is as in [TransactionData].
	Extra map[string]json.RawMessage
}

// Subscription returns e as the event of a subscription; it is false for the
// events of other families.
func (e *Event) Subscription() (*SubscriptionEvent, bool) {
	if e.Family != FamilySubscription {
		return nil, false
	}
	typed := &SubscriptionEvent{Event: e, Data: readSubscriptionData(e.data())}
	if e.confirmed != nil {
		typed.Confirmed = e.confirmed.subscription
	}
	return typed, true
}

func readSubscriptionData(m members) SubscriptionData {
	d := SubscriptionData{
		ID:                 m.text("id"),
		EventType:          Kind(m.text("event_type", "eventType")),
		CustomerID:         m.text("customer_id", "customerId"),
		Status:             gateway.SubscriptionStatus(m.text("status")),
		PreviousStatus:     gateway.SubscriptionStatus(m.text("previous_status", "previousStatus")),
		Amount:             m.amount("amount"),
		Currency:           gateway.Currency(m.text("currency")),
		Interval:           gateway.Interval(m.text("interval")),
		IntervalCount:      m.count("interval_count", "intervalCount"),
		CurrentPeriodStart: m.moment("current_period_start", "currentPeriodStart"),
		CurrentPeriodEnd:   m.moment("current_period_end", "currentPeriodEnd"),
		CancelAtPeriodEnd:  m.flag("cancel_at_period_end", "cancelAtPeriodEnd"),
		CycleCount:         m.count("cycle_count", "cycleCount"),
		CustomerEmail:      m.text("customer_email", "customerEmail"),
		FailurePolicy:      gateway.FailurePolicy(m.text("failure_policy", "failurePolicy")),
		TrialEnd:           m.moment("trial_end", "trialEnd"),
		Metadata:           m.metadata("metadata"),
		OccurredAt:         m.moment("occurred_at", "occurredAt"),
		AttemptNumber:      m.count("attempt_number", "attemptNumber"),
		FailureReason:      m.text("failure_reason", "failureReason"),
	}
	if c := m.object("latest_transaction", "latestTransaction"); c != nil {
		d.LatestTransaction = readChargeData(c)
	}
	d.Extra = m.rest()
	return d
}

func readChargeData(m members) *ChargeData {
	c := &ChargeData{
		ID:             m.text("id"),
		Status:         gateway.TransactionStatus(m.text("status")),
		Amount:         m.amount("amount"),
		PaidAmount:     m.amount("paid_amount", "paidAmount"),
		RefundedAmount: m.amount("refunded_amount", "refundedAmount"),
		Currency:       gateway.Currency(m.text("currency")),
		ExternalRef:    m.text("external_ref", "externalRef"),
		CreatedAt:      m.moment("created_at", "createdAt"),
		PaidAt:         m.moment("paid_at", "paidAt"),
	}
	c.Extra = m.rest()
	return c
}
