package engine

import (
	"cmp"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/paymentcode"
)

// The states of a subscription.
const (
	subIncomplete = "incomplete"
	subTrialing   = "trialing"
	subActive     = "active"
	subPastDue    = "past_due"
	subScheduled  = "cancel_scheduled"
	subCanceled   = "canceled"
)

// The kinds of subscription events.
const (
	eventSubCreated       = "subscription.created"
	eventSubStarted       = "subscription.started"
	eventSubRenewed       = "subscription.renewed"
	eventSubUpdated       = "subscription.updated"
	eventSubCanceled      = "subscription.canceled"
	eventSubPaymentFailed = "subscription.payment_failed"
	eventSubPastDue       = "subscription.past_due"
	eventSubTrialWillEnd  = "subscription.trial_will_end"
	eventSubChargeback    = "subscription.chargeback_received"
)

// The timers of a subscription.
const (
	TimerTrialWillEnd        TimerKind = "subscription.trial_will_end"
	TimerPeriodEnd           TimerKind = "subscription.period_end" // a trial is a period too
	TimerRetry               TimerKind = "subscription.retry"
	TimerExpireAuthorization TimerKind = "subscription.expire_authorization"
)

// How long a payer may take to authorize a Pix Automatico, how early the end of a
// trial is announced, and the amount that is charged and refunded to validate a
// trial's card.
const (
	AuthorizationLifetime = 24 * time.Hour
	TrialNotice           = 3 * 24 * time.Hour
	ValidationAmount      = 100 // cents
)

// A payment method, and the failure policies.
const (
	pixAutomatic    = "pix_automatic"
	immediateCancel = "immediate_cancel"
	retryThenCancel = "retry_then_cancel"
)

// The reasons for a cancellation.
const (
	reasonRequested  = "user_requested"
	reasonPayment    = "payment_failure"
	reasonChargeback = "chargeback"
	reasonSystem     = "system"
)

// The states of a Pix Automatico's authorization.
const (
	authorizationPending  = "pending"
	authorizationApproved = "approved"
	authorizationRejected = "rejected"
	authorizationExpired  = "expired"
	authorizationCanceled = "canceled"
)

// defaultRetryOffsets are the days after the first failure on which a charge is
// retried.
func defaultRetryOffsets() []int { return []int{3, 5, 7} }

// NewSubscription is a request for a subscription: the members of the resource
// that the request sets, and those that are not stored. Empty members get their
// defaults.
type NewSubscription struct {
	Subscription

	Token string // of the card
}

// ExistingForSubscription is the data of the account on which a new subscription
// depends.
type ExistingForSubscription struct {
	Key        *Subscription // the subscription with the same idempotency_key
	Customer   *Customer     // the customer that the request names
	TokenSpent bool
}

// CreateSubscription creates a subscription (rows S1 to S4). A repeat of a request
// changes nothing: the caller returns the first subscription (row S22). In the live
// reading of repeated-subscription, so does any other request with its idempotency key.
func CreateSubscription(env Env, in NewSubscription, existing ExistingForSubscription) (Change, *Refusal) {
	if existing.Key != nil && (existing.Key.BodyHash == in.BodyHash || env.Dialect.Live(spec.RepeatedSubscription)) {
		return Change{}, nil
	}
	if refusal := checkSubscription(env, in, existing); refusal != nil {
		return Change{}, refusal
	}
	b := newSubscription(env, in.Subscription, existing.Customer)
	if b.s.PaymentMethod == pixAutomatic {
		return b.awaitAuthorization(), nil
	}
	return b.startByCard(in.Token), nil
}

// checkSubscription checks a request in the same order as the other creates: the
// idempotency key, the customer, the token. trial_end is checked after the key, so
// that a repeat still gets the first response when the trial is over.
func checkSubscription(env Env, in NewSubscription, existing ExistingForSubscription) *Refusal {
	switch {
	case in.PaymentMethod == pixAutomatic && env.NoPixAutomatic:
		return NewRefusal(CodePixAutomaticDisabled, "Pix Automatico is not enabled for this account.")
	case existing.Key != nil:
		return &Refusal{
			Code:     CodeIdempotencyKeyReused,
			Detail:   "This idempotency_key belongs to a subscription that was created by a different request.",
			Instance: SubscriptionPath(existing.Key.ID),
		}
	case !in.TrialEnd.IsZero() && !in.TrialEnd.After(env.Now):
		return Invalid("trial_end", spec.CodeInvalid, spec.MustBeAfter(env.Now))
	case existing.Customer == nil:
		return NotFound("customer")
	case in.PaymentMethod != pixAutomatic:
		return checkToken(in.Token, existing.TokenSpent)
	}
	return nil
}

// SubscriptionPath returns the path of a subscription.
func SubscriptionPath(id string) string { return "/v2/subscriptions/" + id }

func newSubscription(env Env, s Subscription, customer *Customer) *billing {
	s.ID = env.IDs.UUID(env.Now)
	s.Customer = &customer.Buyer
	s.Status = subIncomplete
	s.PaymentMethod = cmp.Or(s.PaymentMethod, card)
	s.Currency = cmp.Or(s.Currency, "BRL")
	s.IntervalCount = max(s.IntervalCount, 1)
	s.FailurePolicy = cmp.Or(s.FailurePolicy, retryThenCancel)
	if len(s.RetryOffsetsDays) == 0 {
		s.RetryOffsetsDays = defaultRetryOffsets()
	}
	s.CreatedAt = env.Now
	b := bill(env, &s)
	b.was = ""
	b.emit(eventSubCreated)
	return b
}

// startByCard implements rows S1, S2, S2b and S3: the first charge decides.
func (b *billing) startByCard(token string) Change {
	b.s.Card = cardOf(token)
	b.c.Spent = []string{token}
	trial := !b.s.TrialEnd.IsZero()
	if trial {
		b.validate()
	} else {
		b.charge()
	}
	switch t := b.s.Latest; {
	case t.Status == refused:
		b.emitFailure()
	case t.NextAction != nil: // continues after the challenge
	case trial:
		b.beginTrial()
	default:
		b.begin()
	}
	return b.change()
}

// awaitAuthorization implements row S4.
func (b *billing) awaitAuthorization() Change {
	b.s.Authorization = &Authorization{
		Status:         authorizationPending,
		QRCode:         paymentcode.ConsentCode(b.s.ID, b.firstCharge()),
		ExpirationDate: b.env.Now.Add(AuthorizationLifetime),
	}
	b.after(b.s.Authorization.ExpirationDate, TimerExpireAuthorization, b.s.ID)
	return b.change()
}

// firstCharge returns what the payer of an authorization pays at once: nothing if the
// subscription begins with a trial.
func (b *billing) firstCharge() int64 {
	if !b.s.TrialEnd.IsZero() {
		return 0
	}
	return b.s.Amount
}

// begin starts the first period, whose charge has just been paid.
func (b *billing) begin() {
	b.s.Anchor = b.env.Now
	b.nextPeriod()
	b.paid(eventSubStarted)
}

// beginTrial completes rows S3 and S6. A trial is a period without a charge. Its end
// is announced three days ahead, or at once if it is nearer (row S8).
func (b *billing) beginTrial() {
	b.s.Status = subTrialing
	b.s.CurrentPeriodStart, b.s.CurrentPeriodEnd = b.env.Now, b.s.TrialEnd
	if notice := b.s.TrialEnd.Add(-TrialNotice); notice.After(b.env.Now) {
		b.after(notice, TimerTrialWillEnd, b.s.ID)
	} else if b.s.TrialEnd.After(b.env.Now) { // a challenge may outlast the trial
		b.emit(eventSubTrialWillEnd)
	}
	b.after(b.s.TrialEnd, TimerPeriodEnd, b.s.ID)
}

// BillingDayOfMonth returns the day of the month, in the billing zone, on which the
// periods of s start.
func (s *Subscription) BillingDayOfMonth() int {
	switch {
	case s.BillingDay > 0:
		return s.BillingDay
	case !s.Anchor.IsZero():
		return billingDay(s.Anchor)
	case !s.TrialEnd.IsZero():
		return billingDay(s.TrialEnd)
	default:
		return billingDay(s.CreatedAt)
	}
}
