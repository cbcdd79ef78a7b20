package engine

import "cmp"

// FireSubscription runs a timer of s. An outdated one changes nothing: a
// period's end that has moved, a retry of a charge that was paid.
func FireSubscription(env Env, s *Subscription, kind TimerKind) Change {
	switch kind {
	case TimerPeriodEnd:
		return endPeriod(env, s)
	case TimerRetry:
		return retryCharge(env, s)
	case TimerTrialWillEnd:
		return announceTrialEnd(env, s)
	case TimerExpireAuthorization:
		if s.Authorizing() && !env.Now.Before(s.Authorization.ExpirationDate) {
			return s.unauthorized(env, authorizationExpired)
		}
	default: // of another resource
	}
	return Change{}
}

// endPeriod is rows S9, S12 and S16.
func endPeriod(env Env, s *Subscription) Change {
	if env.Now.Before(s.CurrentPeriodEnd) {
		return Change{}
	}
	b := bill(env, s)
	kind := eventSubRenewed
	switch s.Status {
	case subScheduled:
		b.cancel(s.CancellationReason)
		return b.change()
	case subTrialing:
		b.s.Anchor = s.TrialEnd
		kind = eventSubStarted
	case subActive:
	default:
		return Change{}
	}
	b.nextPeriod()
	b.collect(kind)
	return b.change()
}

// retryCharge is rows S13 and S14.
func retryCharge(env Env, s *Subscription) Change {
	if s.Status != subPastDue || env.Now.Before(s.NextRetryAt) {
		return Change{}
	}
	b := bill(env, s)
	b.collect(eventSubRenewed)
	return b.change()
}

// collect charges the current period and continues according to the result.
func (b *billing) collect(kind string) {
	b.charge()
	if settled(b.s.Latest) {
		b.paid(kind)
		return
	}
	b.failed()
}

// announceTrialEnd is row S8.
func announceTrialEnd(env Env, s *Subscription) Change {
	if s.Status != subTrialing {
		return Change{}
	}
	b := bill(env, s)
	b.emit(eventSubTrialWillEnd)
	return b.change()
}

// AuthorizeSubscription is the payer's consent to a Pix Automatico: rows S5 and
// S6. A first debit that fails leaves the subscription incomplete, and the
// payer can consent again.
func AuthorizeSubscription(env Env, s *Subscription) (Change, *Refusal) {
	if s.Authorization == nil || s.Status != subIncomplete {
		return s.refuse("be authorised")
	}
	b := bill(env, s)
	b.authorization(authorizationApproved)
	if s.TrialEnd.After(env.Now) {
		b.emit(eventSubUpdated)
		b.beginTrial()
		return b.change(), nil
	}
	b.s.Attempt = 0
	b.charge()
	if settled(b.s.Latest) {
		b.begin()
	} else {
		b.emitFailure()
	}
	return b.change(), nil
}

// RejectSubscription is the payer's rejection of a Pix Automatico (row S7).
func RejectSubscription(env Env, s *Subscription) (Change, *Refusal) {
	if !s.Authorizing() {
		return s.refuse("be rejected")
	}
	return s.unauthorized(env, authorizationRejected), nil
}

// Authorizing reports whether s waits for its payer's decision.
func (s *Subscription) Authorizing() bool {
	return s.Authorization != nil && s.Authorization.Status == authorizationPending
}

func (s *Subscription) unauthorized(env Env, status string) Change {
	b := bill(env, s)
	b.authorization(status)
	b.cancel(reasonSystem)
	return b.change()
}

// RevokeSubscription is the payer revoking the consent to a Pix Automatico in
// the bank's app (row S21).
func RevokeSubscription(env Env, s *Subscription) (Change, *Refusal) {
	if s.Authorization == nil || s.Status != subActive && s.Status != subTrialing {
		return s.refuse("be revoked")
	}
	b := bill(env, s)
	b.cancel(reasonRequested)
	return b.change(), nil
}

// FailNextCharges makes the next count charges of s fail, retries included.
func FailNextCharges(env Env, s *Subscription, count int) (Change, *Refusal) {
	if s.Status == subCanceled {
		return s.refuse("be charged")
	}
	b := bill(env, s)
	b.s.FailNext = count
	return b.change(), nil
}

// CancelSubscription ends s for its merchant: rows S15, S17 and S18. Time paid by
// card is used up first. A first charge with a pending 3-D Secure challenge is
// canceled too. The reason "" is user_requested.
func CancelSubscription(env Env, s *Subscription, reason string) (Change, *Refusal) {
	reason = cmp.Or(reason, reasonRequested)
	switch {
	case s.Status == subCanceled || s.Status == subScheduled:
		return s.refuse("be canceled")
	case s.Card != nil && (s.Status == subActive || s.Status == subTrialing):
		b := bill(env, s)
		b.s.Status = subScheduled
		b.s.CancelAtPeriodEnd = true
		b.s.CancellationReason = reason
		b.emit(eventSubUpdated)
		return b.change(), nil
	}
	b := bill(env, s)
	b.cancel(reason)
	if s.Latest != nil && open(s.Latest) {
		c := end(env, s.Latest)
		b.s.Latest = c.Transactions[0]
		return b.change().And(c), nil
	}
	return b.change(), nil
}

// SubscriptionPatch changes the members of a subscription that can be changed.
type SubscriptionPatch struct {
	Metadata         *string // nil is unchanged, "" clears
	FailurePolicy    string  // "" is unchanged
	RetryOffsetsDays []int   // empty is unchanged; counts from the next failed charge on
}

// UpdateSubscription is row S19.
func UpdateSubscription(env Env, s *Subscription, in SubscriptionPatch) (Change, *Refusal) {
	if s.Status == subCanceled {
		return s.refuse("be updated")
	}
	b := bill(env, s)
	if in.Metadata != nil {
		b.s.Metadata = *in.Metadata
	}
	b.s.FailurePolicy = cmp.Or(in.FailurePolicy, s.FailurePolicy)
	if len(in.RetryOffsetsDays) > 0 {
		b.s.RetryOffsetsDays = in.RetryOffsetsDays
	}
	b.emit(eventSubUpdated)
	return b.change(), nil
}

// FollowSubscription returns the change of s after a transition of one of its
// transactions; t is the transaction after it. It must be applied together with
// t.
func FollowSubscription(env Env, s *Subscription, t *Transaction) Change {
	b := bill(env, s)
	latest := s.Latest.ID == t.ID
	if latest {
		b.s.Latest = t
	}
	switch {
	case s.Status == subIncomplete && settled(t):
		b.accept(t)
	case s.Status == subIncomplete && latest && open(s.Latest) && !open(t):
		b.emitFailure()
	case s.Status == subPastDue && settled(t) && !t.CreatedAt.Before(s.FirstFailedAt):
		b.s.Latest = t // perhaps an earlier attempt: the period is paid, and not retried
		b.paid(eventSubRenewed)
	case s.chargeable() && t.Status == chargedback:
		b.emit(eventSubChargeback)
		b.cancel(reasonChargeback)
	case latest:
		return Change{Subscriptions: []*Subscription{b.s}}
	default:
		return Change{}
	}
	return b.change()
}

// chargeable reports whether a chargeback ends s (row S20).
func (s *Subscription) chargeable() bool {
	return s.Status == subActive || s.Status == subPastDue || s.Status == subScheduled
}

// accept has the effect of a first charge that is paid at once: the end of row
// S2b if the challenge was passed.
func (b *billing) accept(t *Transaction) {
	if b.s.TrialEnd.IsZero() || b.s.Card == nil {
		b.begin()
		return
	}
	b.returnValidation(t)
	b.beginTrial()
}

// returnValidation refunds a trial's validation that had to be challenged.
func (b *billing) returnValidation(t *Transaction) {
	next := *t
	refundValidation(&next)
	b.c.Balance += worth(&next) - worth(t)
	b.setLatest(&next)
}

func (s *Subscription) refuse(what string) (Change, *Refusal) {
	return Change{}, NewRefusal(CodeInvalidState, "A subscription that is "+s.Status+" can't "+what+".")
}
