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

// The time limit of a payer, how early a trial's end is announced, and the
// amount charged and refunded to validate a trial's card.
const (
	AuthorizationLifetime = 24 * time.Hour
	TrialNotice           = 3 * 24 * time.Hour
	ValidationAmount      = 100 // cents
)

// The ways a subscription is paid and what happens when a charge fails.
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

// The states of a Pix Automatico's authorisation.
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

// ExistingForSubscription is the account's data that matters to a new
// subscription.
type ExistingForSubscription struct {
	Key        *Subscription // the one with the same idempotency_key
	Customer   *Customer     // the one that the request names
	TokenSpent bool
}

// CreateSubscription creates a subscription: rows S1 to S4, and S22, where the
// same request returns the first subscription and changes nothing.
func CreateSubscription(env Env, in NewSubscription, existing ExistingForSubscription) (Change, *Refusal) {
	if existing.Key != nil && existing.Key.BodyHash == in.BodyHash {
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

// checkSubscription checks in the order of every create: reference, records,
// token. trial_end is checked after the reference, so that a repeat still gets
// its first response when the trial is over.
func checkSubscription(env Env, in NewSubscription, existing ExistingForSubscription) *Refusal {
	switch {
	case existing.Key != nil:
		return &Refusal{
			Code:     CodeIdempotencyKeyReused,
			Detail:   "This idempotency_key belongs to a subscription that was made of another request.",
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

// SubscriptionPath returns the path under which a subscription is read.
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

// startByCard is rows S1, S2, S2b and S3: the first charge decides.
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
	case t.NextAction != nil: // the rest follows the challenge
	case trial:
		b.beginTrial()
	default:
		b.begin()
	}
	return b.change()
}

// awaitAuthorization is row S4.
func (b *billing) awaitAuthorization() Change {
	b.s.Authorization = &Authorization{
		Status:         authorizationPending,
		QRCode:         paymentcode.ConsentCode(b.s.ID, b.s.Amount),
		ExpirationDate: b.env.Now.Add(AuthorizationLifetime),
	}
	b.after(b.s.Authorization.ExpirationDate, TimerExpireAuthorization, b.s.ID)
	return b.change()
}

// begin starts the first period, which is paid, now.
func (b *billing) begin() {
	b.s.Anchor = b.env.Now
	b.nextPeriod()
	b.paid(eventSubStarted)
}

// beginTrial is the rest of rows S3 and S6: a trial is a period without charge.
// Its end is announced in time, or at once if it is near (row S8).
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

// BillingDayOfMonth is the day of the month, in the billing zone, that the
// periods of s begin on.
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
