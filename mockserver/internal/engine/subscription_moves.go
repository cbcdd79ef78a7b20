package engine

import (
	"cmp"
	"slices"
)

// FireSubscription runs a timer of s. An outdated timer changes nothing, such as
// one for the end of a period that has moved, or for the retry of a charge that was
// paid.
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

// endPeriod implements rows S9, S12 and S16.
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

// retryCharge implements rows S13 and S14.
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

// announceTrialEnd implements row S8.
func announceTrialEnd(env Env, s *Subscription) Change {
	if s.Status != subTrialing {
		return Change{}
	}
	b := bill(env, s)
	b.emit(eventSubTrialWillEnd)
	return b.change()
}

// AuthorizeSubscription simulates a payer who authorizes a Pix Automatico (rows S5
// and S6). If the first debit fails, the subscription stays incomplete, and the
// payer can authorize it again.
func AuthorizeSubscription(env Env, s *Subscription) (Change, *Refusal) {
	if s.Authorization == nil || s.Status != subIncomplete {
		return s.refuse("be authorized")
	}
	b := bill(env, s)
	b.setAuthorization(authorizationApproved)
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

// RejectSubscription simulates a payer who rejects a Pix Automatico (row S7).
func RejectSubscription(env Env, s *Subscription) (Change, *Refusal) {
	if !s.Authorizing() {
		return s.refuse("be rejected")
	}
	return s.unauthorized(env, authorizationRejected), nil
}

// Authorizing reports whether s waits for its payer to authorize or reject it.
func (s *Subscription) Authorizing() bool {
	return s.Authorization != nil && s.Authorization.Status == authorizationPending
}

func (s *Subscription) unauthorized(env Env, status string) Change {
	b := bill(env, s)
	b.setAuthorization(status)
	b.cancel(reasonSystem)
	return b.change()
}

// RevokeSubscription simulates a payer who revokes the authorization of a Pix
// Automatico in the bank's app (row S21).
func RevokeSubscription(env Env, s *Subscription) (Change, *Refusal) {
	if s.Authorization == nil || s.Status != subActive && s.Status != subTrialing {
		return s.refuse("be revoked")
	}
	b := bill(env, s)
	b.cancel(reasonRequested)
	return b.change(), nil
}

// CancelDebit simulates a payer who cancels the next debit of a Pix Automatico in the
// bank's app: it is refused, and the authorization remains.
func CancelDebit(env Env, s *Subscription) (Change, *Refusal) {
	if s.Authorization == nil || s.Status != subActive && s.Status != subTrialing && s.Status != subPastDue {
		return s.refuse("have a debit canceled")
	}
	b := bill(env, s)
	b.s.DebitCanceled = true
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

// CancelSubscription cancels s, as its merchant would (rows S15, S17 and S18). An
// active or trialing card subscription runs until its period ends. A first charge
// with a pending 3-D Secure challenge is canceled too. The reason "" means
// user_requested.
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
	Metadata         *string // nil leaves it unchanged, "" clears it
	FailurePolicy    string  // "" leaves it unchanged
	RetryOffsetsDays []int   // empty leaves them unchanged; new ones apply from the next failed charge on
}

// UpdateSubscription implements row S19.
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

// FollowSubscription returns how s changes after a transition of one of its
// transactions. before and t are the old and the new version of the transaction, and
// the change must be applied together with it. Only the transition counts: a charge
// that was paid already, and is refunded in part or wins a dispute, pays nothing again.
func FollowSubscription(env Env, s *Subscription, before, t *Transaction) Change {
	b := bill(env, s)
	pays := settled(t) && !settled(before)
	latest := s.Latest.ID == t.ID
	if latest {
		b.s.Latest = t
	}
	switch {
	case s.Status == subIncomplete && pays:
		b.accept(t)
	case s.Status == subIncomplete && latest && open(before) && !open(t):
		b.emitFailure()
	case s.Status == subPastDue && pays && s.retried(t):
		b.s.Latest = t // t may be an earlier attempt: the period is paid and not retried
		b.paid(eventSubRenewed)
	case s.endsByChargeback() && t.Status == chargedback && before.Status != chargedback:
		b.emit(eventSubChargeback)
		b.cancel(reasonChargeback)
	case latest:
		return Change{Subscriptions: []*Subscription{b.s}}
	default:
		return Change{}
	}
	return b.change()
}

// retried reports whether t is an attempt to charge the current period, which is past
// due. An earlier period may have been paid at the instant at which this one failed, so
// the time of t doesn't tell.
func (s *Subscription) retried(t *Transaction) bool {
	return slices.Contains(s.ChargeIDs[max(len(s.ChargeIDs)-s.Attempt, 0):], t.ID)
}

// endsByChargeback reports whether a chargeback ends s (row S20).
func (s *Subscription) endsByChargeback() bool {
	return s.Status == subActive || s.Status == subPastDue || s.Status == subScheduled
}

// accept starts the subscription after a first charge that was not paid at once, such
// as one whose challenge was passed (row S2b).
func (b *billing) accept(t *Transaction) {
	if b.s.TrialEnd.IsZero() || b.s.Card == nil {
		b.begin()
		return
	}
	b.returnValidation(t)
	b.beginTrial()
}

// returnValidation refunds the validation of a trial's card after its challenge.
func (b *billing) returnValidation(t *Transaction) {
	next := *t
	refundValidation(&next)
	b.c.Balance += worth(&next) - worth(t)
	b.setLatest(&next)
}

func (s *Subscription) refuse(what string) (Change, *Refusal) {
	return Change{}, NewRefusal(CodeInvalidState, "A subscription that is "+s.Status+" can't "+what+".")
}
