package engine

import "time"

// SetStatus puts a transaction of the sandbox into any state (row X19), with the
// effects of the regular transition into that state. Setting the current state
// changes nothing, so the call may be repeated.
func SetStatus(env Env, t *Transaction, status string) (Change, *Refusal) {
	if refusal := StatusForbidden(env.Sandbox); refusal != nil {
		return Change{}, refusal
	}
	if status == t.Status {
		return Change{}, nil
	}
	if t.Amount < 2 && (status == partiallyRefunded || status == partiallyPaid) {
		return Change{}, NewRefusal(CodeInvalidState, "An amount of 1 can't be paid or refunded in part.")
	}
	c := move(env, t, func(t *Transaction) { enter(env, t, status) }, statusEvents(env, status)...)
	if next := c.Transactions[0]; open(next) {
		c.Timers = deadline(next)
	}
	return c, nil
}

// StatusForbidden rejects setting a status outside the sandbox.
func StatusForbidden(sandbox bool) *Refusal {
	if sandbox {
		return nil
	}
	return NewRefusal(CodeForbidden,
		"A transaction's status can only be set in the sandbox.")
}

// enter puts t into a state with consistent amounts and timestamps.
func enter(env Env, t *Transaction, status string) {
	switch status {
	case paid, captured, processed:
		settle(env, t, status)
	case refunded, partiallyRefunded, chargedback, inProtest, med, preChargedback:
		if t.PaidAmount < t.Amount {
			settle(env, t, paid)
		}
		setRefunded(t, status)
	case partiallyPaid:
		settle(env, t, status)
		t.PaidAmount = t.Amount / 2
	default:
		unsettle(t)
		t.NextAction = nil
	}
	t.Status = status
	switch status {
	case challenged:
		challenge(env, t)
	case pending, waitingPayment:
		reopen(env, t)
	case refused:
		refuse(t, declined)
	}
	if status != refused { // a reason is removed with its state
		forget(t, refusalReasonKey)
	}
	if t.RefundedAmount == 0 {
		forget(t, refundReasonKey)
	}
}

// setRefunded adjusts the refunded amount to a state.
func setRefunded(t *Transaction, status string) {
	switch {
	case status == refunded:
		t.RefundedAmount = t.PaidAmount
	case status == partiallyRefunded && (t.RefundedAmount == 0 || t.RefundedAmount == t.PaidAmount):
		t.RefundedAmount = t.PaidAmount / 2
	case t.RefundedAmount == t.PaidAmount:
		t.RefundedAmount = 0
	}
}

// reopen sets a new expiry if the old one has passed.
func reopen(env Env, t *Transaction) {
	if t.Pix != nil && !env.Now.Before(t.Pix.ExpirationDate) {
		p := *t.Pix
		p.ExpirationDate = env.Now.Add(PixLifetime)
		t.Pix = &p
	}
	if t.Voucher != nil && !env.Now.Before(t.Voucher.ExpirationDate) {
		v := *t.Voucher
		v.ExpirationDate = env.Now.Add(voucherLifetime(env, t))
		t.Voucher = &v
	}
}

// Deadline returns when an open transaction expires, if it does.
func Deadline(t *Transaction) (time.Time, bool) {
	for _, timer := range deadline(t) {
		return timer.At, true
	}
	return time.Time{}, false
}

// deadline returns the expiry timer of an open transaction, if it has one.
func deadline(t *Transaction) []Timer {
	switch {
	case t.NextAction != nil:
		return []Timer{{At: t.NextAction.ExpiresAt, Kind: TimerExpireChallenge, ID: t.ID}}
	case t.Pix != nil:
		return []Timer{{At: t.Pix.ExpirationDate, Kind: TimerExpire, ID: t.ID}}
	case t.Voucher != nil:
		return []Timer{{At: t.Voucher.ExpirationDate, Kind: TimerExpire, ID: t.ID}}
	default:
		return nil
	}
}

// statusEvents returns the kind of event that setting a state sends, if any.
func statusEvents(env Env, status string) []string {
	switch status {
	case pending:
		return []string{eventPending}
	case paid, captured:
		return []string{eventPaid}
	case canceled:
		return []string{eventCanceled}
	case refunded, partiallyRefunded:
		return []string{refundEvent(env, status)}
	case chargedback:
		return []string{eventChargedback}
	case challenged:
		return []string{eventChallenge}
	default:
		return nil
	}
}
