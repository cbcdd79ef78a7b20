package engine

import (
	"slices"
	"time"
)

// billing builds one transition of a subscription. It holds a copy of the
// subscription, which may be modified, and the rest of the change. Its methods are
// the steps that transitions share.
type billing struct {
	env     Env
	s       *Subscription
	was     string // the state before the transition; "" for a new subscription
	c       Change
	charges []Event // events of transactions, sent after those of the subscription
	reason  string  // why the attempt is refused; "" is the reason of the token
}

// bill starts a transition of s.
func bill(env Env, s *Subscription) *billing {
	next := *s
	return &billing{env: env, s: &next, was: s.Status}
}

// change completes the transition and returns it.
func (b *billing) change() Change {
	b.s.UpdatedAt = b.env.Now
	b.c.Subscriptions = []*Subscription{b.s}
	b.c.Events = append(b.c.Events, b.charges...)
	return b.c
}

func (b *billing) emit(kind string) {
	b.c.Events = append(b.c.Events, Event{Kind: kind, PreviousStatus: b.was, Subscription: b.s})
}

// after sets a timer; a time in the past counts as now.
func (b *billing) after(at time.Time, kind TimerKind, id string) {
	if at.Before(b.env.Now) {
		at = b.env.Now
	}
	b.c.Timers = append(b.c.Timers, Timer{At: at, Kind: kind, ID: id})
}

// charge tries to charge the period's amount; the latest transaction has the
// result. No transaction events are sent for the debits of a Pix Automatico.
func (b *billing) charge() {
	b.s.Attempt++
	t := b.attempt(b.s.Amount)
	b.c.Balance += worth(t)
	switch {
	case b.s.Card == nil:
		return
	case t.NextAction != nil:
		b.charges = events(t, eventCreated, eventChallenge)
	case settled(t):
		b.charges = events(t, eventCreated, eventPaid)
	default:
		b.charges = events(t, eventCreated)
	}
	if settled(t) && outcomeOf(b.s.Card.Token) == cardChargedBack {
		b.after(b.env.Now.Add(ChargebackDelay), TimerChargeBack, t.ID)
	}
}

// validate charges a small amount to a trial's card and refunds it at once, so
// that the balance does not change. No transaction event is sent, unless the payer
// must pass a 3-D Secure challenge.
func (b *billing) validate() {
	t := b.attempt(ValidationAmount)
	t.FeeAmount = 0
	if settled(t) {
		refundValidation(t)
	}
	if t.NextAction != nil {
		b.charges = events(t, eventCreated, eventChallenge)
	}
}

// refundValidation refunds a validation in full.
func refundValidation(t *Transaction) {
	setRefunded(t, refunded)
	t.Status = refunded
}

// attempt creates a transaction and stores it as the latest.
func (b *billing) attempt(amount int64) *Transaction {
	in := Transaction{
		Amount:         amount,
		Currency:       b.s.Currency,
		Method:         card,
		Installments:   1,
		Products:       b.s.Products,
		Card:           b.s.Card,
		SubscriptionID: b.s.ID,
	}
	if in.Card == nil {
		in.Method, in.Pix = pix, &Pix{}
	}
	t := newTransaction(b.env, NewTransaction{Transaction: in}, &Customer{Buyer: *b.s.Customer})
	switch b.outcome() {
	case cardRefused:
		refuse(t, b.refusalReason())
	case cardChallenged:
		challenge(b.env, t)
		b.after(t.NextAction.ExpiresAt, TimerExpireChallenge, t.ID)
	case cardCaptured:
		settle(b.env, t, captured)
	default:
		settle(b.env, t, paid)
	}
	b.setLatest(t)
	b.s.ChargeIDs = append(b.s.ChargeIDs[:len(b.s.ChargeIDs):len(b.s.ChargeIDs)], t.ID)
	return t
}

// setLatest makes t, a new transaction or a new version of one, the latest.
func (b *billing) setLatest(t *Transaction) {
	b.s.Latest = t
	b.c.Transactions = append(b.c.Transactions, t)
}

// outcome decides the outcome of an attempt. A failure that a control has requested
// takes precedence over the test token. The tokens for a refusal and for a challenge
// affect only the first charge.
func (b *billing) outcome() cardOutcome {
	if b.s.DebitCanceled {
		b.s.DebitCanceled, b.reason = false, canceledByPayer
		return cardRefused
	}
	if b.s.FailNext > 0 {
		b.s.FailNext--
		return cardRefused
	}
	if b.s.Card == nil {
		return cardPaid
	}
	renewal := b.s.Cycle > 1
	outcome := outcomeOf(b.s.Card.Token)
	fails := outcome == cardNeverPays && b.s.Attempt > 0 ||
		outcome == cardRenewalsFail && renewal ||
		outcome == cardTwoRenewalsFail && renewal && b.s.Attempt <= 2
	switch {
	case fails:
		return cardRefused
	case outcome == cardCaptured:
		return cardCaptured
	case b.s.Cycle == 0 && (outcome == cardRefused || outcome == cardChallenged):
		return outcome
	default:
		return cardPaid
	}
}

func (b *billing) refusalReason() string {
	switch {
	case b.reason != "":
		return b.reason
	case b.s.Card == nil:
		return declined
	default:
		return refusalReason(b.s.Card.Token)
	}
}

// nextPeriod moves on to the period after the current one, paid or not.
func (b *billing) nextPeriod() {
	b.s.CurrentPeriodStart = b.s.boundary(b.s.Cycle)
	b.s.Cycle++
	b.s.CurrentPeriodEnd = b.s.boundary(b.s.Cycle)
}

// paid completes a charge that succeeded. If the period ended during its dunning,
// the next one starts at once.
func (b *billing) paid(kind string) {
	b.s.Status = subActive
	b.s.Attempt, b.s.FirstFailedAt, b.s.NextRetryAt = 0, time.Time{}, time.Time{}
	b.emit(kind)
	b.after(b.s.CurrentPeriodEnd, TimerPeriodEnd, b.s.ID)
}

// failed completes a charge that was refused (rows S10, S11 and S14).
func (b *billing) failed() {
	b.emitFailure()
	if b.s.FirstFailedAt.IsZero() {
		b.s.FirstFailedAt = b.env.Now
	}
	retry := b.nextRetry()
	if b.s.FailurePolicy == immediateCancel || retry.IsZero() {
		b.cancel(reasonPayment)
		return
	}
	b.s.Status = subPastDue
	b.s.NextRetryAt = retry
	if b.was != subPastDue {
		b.emit(eventSubPastDue)
	}
	b.after(retry, TimerRetry, b.s.ID)
}

// nextRetry returns the time of the next retry: the first failure plus the smallest
// offset that gives a time in the future, or the zero time if there is none.
func (b *billing) nextRetry() time.Time {
	for _, days := range slices.Compact(slices.Sorted(slices.Values(b.s.RetryOffsetsDays))) {
		at := b.s.FirstFailedAt.In(billingZone).AddDate(0, 0, days).UTC()
		if at.After(b.env.Now) {
			return at
		}
	}
	return time.Time{}
}

// emitFailure sends an event about the failure of the latest transaction.
func (b *billing) emitFailure() {
	b.c.Events = append(b.c.Events, Event{
		Kind:           eventSubPaymentFailed,
		PreviousStatus: b.was,
		Attempt:        max(b.s.Attempt, 1),
		FailureReason:  failureReason(b.s.Latest),
		Subscription:   b.s,
	})
}

// failureReason returns why t was not paid.
func failureReason(t *Transaction) string {
	for _, i := range t.Informations {
		if i.Key == refusalReasonKey {
			return i.Value
		}
	}
	return t.Status
}

// cancel ends the subscription now, and its authorization if it has one.
func (b *billing) cancel(reason string) {
	b.s.Status = subCanceled
	b.s.CanceledAt = b.env.Now
	b.s.CancellationReason = reason
	b.s.NextRetryAt = time.Time{}
	if a := b.s.Authorization; a != nil && (a.Status == authorizationPending || a.Status == authorizationApproved) {
		b.setAuthorization(authorizationCanceled)
	}
	b.emit(eventSubCanceled)
}

func (b *billing) setAuthorization(status string) {
	a := *b.s.Authorization
	a.Status = status
	b.s.Authorization = &a
}
