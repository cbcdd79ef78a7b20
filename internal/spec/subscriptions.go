package spec

import (
	"fmt"
	"slices"
)

// Subscriptions are the operations of /v2/subscriptions.
var Subscriptions = struct{ Create, List, Get, Update, Cancel Operation }{
	Create: operation("subscriptions.create", "POST /v2/subscriptions", Keyed, Subscription),
	List:   operation("subscriptions.list", "GET /v2/subscriptions", Safe, SubscriptionList),
	Get:    operation("subscriptions.get", "GET /v2/subscriptions/{id}", Safe, nil),
	Update: operation("subscriptions.update", "PATCH /v2/subscriptions/{id}", Unsafe, SubscriptionUpdate),
	Cancel: operation("subscriptions.cancel", "POST /v2/subscriptions/{id}/cancel", Unsafe, SubscriptionCancel),
}

// Limits of subscriptions; shared limits are in values.go.
const (
	MinSubscriptionToken = 6
	MinIntervalCount     = 1
	MaxIntervalCount     = 365
	MinRetryOffsets      = 1
	MaxRetryOffsets      = 10
	MinRetryOffset       = 1
	MaxRetryOffset       = 30
	MaxInformations      = 50
	MinIdempotencyKey    = 1
	MaxIdempotencyKey    = 255
)

// Limits that the interface document does not state.
const (
	MaxBillingDay = 31
	MaxPixComment = 140
)

// Enums of subscriptions.
var (
	SubscriptionMethods  = setOf("credit_card", "pix_automatic")
	Intervals            = setOf("day", "week", "month")
	FailurePolicies      = setOf("immediate_cancel", "retry_then_cancel")
	SubscriptionStatuses = setOf("incomplete", "trialing", "active", "past_due", "cancel_scheduled", "canceled")
	CancellationReasons  = setOf("user_requested", "payment_failure", "chargeback", "system")
	// AuthorizationStatuses are the statuses of a Pix Automatico
	// authorization.
	AuthorizationStatuses = setOf("pending", "approved", "rejected", "expired", "canceled")
)

// Subscription checks the body of POST /v2/subscriptions, for cards and for Pix
// Automatico. A Pix Automatico subscription has no token: the payer authorizes
// it in the bank's app.
func Subscription(o *Object) {
	o.String("customer_id", Required).MinLen(1)
	o.Int("amount", Required).Between(MinAmount, MaxAmount)
	o.Enum("payment_method", Optional, SubscriptionMethods)
	subscriptionToken(o)
	o.Enum("interval", Required, Intervals)
	o.Int("interval_count", Optional).Between(MinIntervalCount, MaxIntervalCount)
	dunning(o)
	o.Enum("currency", Optional, BillingCurrencies)
	o.Object("metadata", o.optional(), nil)
	o.Array("informations", Optional).Len(0, MaxInformations).Each(information)
	o.String("idempotency_key", o.optional()).Len(MinIdempotencyKey, MaxIdempotencyKey)
	o.Array("products", Optional).Len(0, MaxProducts).Each(Product)
	o.String("trial_end", o.optional()).Time().Future()
	o.Int("billing_day_of_month", Optional).Between(1, MaxBillingDay)
	o.String("comment", Optional).MaxLen(MaxPixComment)
	if o.Variant().Dialect.Live(PixAutomaticMembers) && o.Text("payment_method") == "pix_automatic" {
		o.only(Describe(Subscription, o.Variant()))
	}
}

// subscriptionToken requires a single-use token for a card and rejects any
// token for Pix Automatico. Other methods are reported by the check of
// payment_method.
func subscriptionToken(o *Object) {
	if o.When("payment_method", "pix_automatic").Forbid("token", Optional,
		"with pix_automatic: the payer authorizes the subscription in their bank's app") {
		return
	}
	r := o.String("token", o.When("payment_method", "", "credit_card").Required("token", Optional))
	if ContainsCardNumber(r.value()) {
		return // reported as card data
	}
	r.MinLen(MinSubscriptionToken).Match(IsSingleUse, Format{
		Must:    "must start with pgct_: a subscription needs a single-use token from the client-side payment element",
		Pattern: "^pgct_",
	})
}

// dunning checks the members that configure what happens after a failed
// renewal.
func dunning(o *Object) {
	o.Enum("failure_policy", Optional, FailurePolicies)
	o.Array("retry_offsets_days", Optional).Len(MinRetryOffsets, MaxRetryOffsets).EachInt(MinRetryOffset, MaxRetryOffset)
}

// What the rules of Pix Automatico allow for a debit that failed.
const (
	maxPixRetries  = 3
	maxPixRetryDay = 7
)

// PixRetryWarnings says what of a retry policy banks don't execute for a Pix
// Automatico. Gateways accept such a policy.
func PixRetryWarnings(policy string, offsets []int) (warnings []string) {
	if policy == "immediate_cancel" {
		return nil
	}
	if len(offsets) > maxPixRetries {
		warnings = append(warnings, fmt.Sprintf("retry_offsets_days has %d retries, but a debit of a Pix Automatico is retried at most %d times",
			len(offsets), maxPixRetries))
	}
	if late := slices.IndexFunc(offsets, func(day int) bool { return day > maxPixRetryDay }); late >= 0 {
		warnings = append(warnings, fmt.Sprintf("retry_offsets_days has a retry after %d days, but a debit of a Pix Automatico is retried within %d days",
			offsets[late], maxPixRetryDay))
	}
	seen := map[int]bool{}
	for _, day := range offsets {
		if seen[day] {
			return append(warnings, "retry_offsets_days has two retries on one day, but a debit of a Pix Automatico is retried on different days")
		}
		seen[day] = true
	}
	return warnings
}

// PixPeriodWarnings says that banks have no such period for a Pix Automatico: its
// mandates are weekly, monthly, quarterly, half-yearly or yearly. Gateways accept others.
func PixPeriodWarnings(interval string, count int) []string {
	count = max(count, 1)
	switch {
	case interval == "", interval == "week" && count == 1, interval == "day" && count == 7:
		return nil
	case interval == "month" && (count == 1 || count == 3 || count == 6 || count == 12):
		return nil
	}
	return []string{fmt.Sprintf("interval and interval_count ask for a charge every %d %ss, but a Pix Automatico is charged weekly, monthly, quarterly, "+
		"half-yearly or yearly", count, interval)}
}

func information(o *Object) {
	o.String("key", Required)
	o.String("value", Required)
}

// SubscriptionUpdate checks the body of PATCH /v2/subscriptions/{id}, which
// changes only three members. Other known members are rejected rather than
// ignored, so that callers don't assume that they were changed.
func SubscriptionUpdate(o *Object) {
	o.Object("metadata", Nullable, nil)
	dunning(o)
	for _, name := range fixedSubscriptionMembers {
		o.Reject(name, "can't be changed: only metadata, failure_policy and retry_offsets_days can")
	}
	for _, name := range [...][2]string{{"failurePolicy", "failure_policy"}, {"retryOffsetsDays", "retry_offsets_days"}} {
		o.Reject(name[0], "is the name used in responses: send %s instead", name[1])
	}
}

// fixedSubscriptionMembers are the other members of the create request and,
// under their names in responses, those of the resource.
var fixedSubscriptionMembers = [...]string{
	"customer_id", "amount", "token", "payment_method", "interval", "interval_count", "currency", "informations",
	"idempotency_key", "products", "trial_end", "billing_day_of_month", "comment",

	"id", "customerId", "status", "paymentMethod", "billingModel", "billingDayOfMonth", "intervalCount", "trialEnd",
	"currentPeriodStart", "currentPeriodEnd", "cancelAtPeriodEnd", "canceledAt", "cancellationReason", "customerEmail",
	"cardLast4", "recurringAuthorization", "authorization", "transactions", "createdAt", "updatedAt",
}

// SubscriptionCancel checks the optional body of
// POST /v2/subscriptions/{id}/cancel.
func SubscriptionCancel(o *Object) {
	if o.Variant().Dialect.Live(CancellationReason) {
		o.Enum("reason", Optional, CancellationReasons)
		return
	}
	o.String("reason", Optional)
}

// SubscriptionList checks the query of GET /v2/subscriptions.
func SubscriptionList(o *Object) {
	cursorPage(o)
	o.Enum("status", Optional, SubscriptionStatuses)
	o.String("customer_email", Optional)
	o.String("created_after", Optional).Date()
	o.String("created_before", Optional).Date()
}
