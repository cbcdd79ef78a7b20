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

// Subscription returns e as the event of a subscription. The errors are those
// of [Event.Transaction].
func (e *Event) Subscription() (*SubscriptionEvent, error) {
	data, err := typed(e, FamilySubscription, readSubscriptionData)
	if err != nil {
		return nil, err
	}
	t := &SubscriptionEvent{Event: e, Data: data}
	if e.confirmed != nil {
		t.Confirmed = e.confirmed.subscription
	}
	return t, nil
}

func readSubscriptionData(o object) SubscriptionData {
	d := SubscriptionData{
		ID:                 o.text("id"),
		EventType:          Kind(o.text("event_type", "eventType")),
		CustomerID:         o.text("customer_id", "customerId"),
		Status:             gateway.SubscriptionStatus(o.text("status")),
		PreviousStatus:     gateway.SubscriptionStatus(o.text("previous_status", "previousStatus")),
		Amount:             o.amount("amount"),
		Currency:           gateway.Currency(o.text("currency")),
		Interval:           gateway.Interval(o.text("interval")),
		IntervalCount:      o.count("interval_count", "intervalCount"),
		CurrentPeriodStart: o.timestamp("current_period_start", "currentPeriodStart"),
		CurrentPeriodEnd:   o.timestamp("current_period_end", "currentPeriodEnd"),
		CancelAtPeriodEnd:  o.flag("cancel_at_period_end", "cancelAtPeriodEnd"),
		CycleCount:         o.count("cycle_count", "cycleCount"),
		CustomerEmail:      o.text("customer_email", "customerEmail"),
		FailurePolicy:      gateway.FailurePolicy(o.text("failure_policy", "failurePolicy")),
		TrialEnd:           o.timestamp("trial_end", "trialEnd"),
		Metadata:           o.metadata("metadata"),
		OccurredAt:         o.timestamp("occurred_at", "occurredAt"),
		AttemptNumber:      o.count("attempt_number", "attemptNumber"),
		FailureReason:      o.text("failure_reason", "failureReason"),
	}
	if c, ok := o.object("latest_transaction", "latestTransaction"); ok {
		d.LatestTransaction = readChargeData(c)
	}
	d.Extra = o.rest()
	return d
}

func readChargeData(o object) *ChargeData {
	c := &ChargeData{
		ID:             o.text("id"),
		Status:         gateway.TransactionStatus(o.text("status")),
		Amount:         o.amount("amount"),
		PaidAmount:     o.amount("paid_amount", "paidAmount"),
		RefundedAmount: o.amount("refunded_amount", "refundedAmount"),
		Currency:       gateway.Currency(o.text("currency")),
		ExternalRef:    o.text("external_ref", "externalRef"),
		CreatedAt:      o.timestamp("created_at", "createdAt"),
		PaidAt:         o.timestamp("paid_at", "paidAt"),
	}
	c.Extra = o.rest()
	return c
}
