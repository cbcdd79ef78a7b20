package engine

import "github.com/gateway-go/gateway/internal/spec"

// move copies t, applies change to the copy and returns the whole transition:
// the resource, its events and its effect on the balance.
func move(env Env, t *Transaction, change func(t *Transaction), kinds ...string) Change {
	next := *t
	change(&next)
	next.UpdatedAt = env.Now
	return Change{
		Transactions: []*Transaction{&next},
		Balance:      worth(&next) - worth(t),
		Events:       events(&next, kinds...),
	}
}

// open reports whether t still waits for its payment.
func open(t *Transaction) bool { return waits(t) || t.Status == challenged }

// waits reports whether t is in a state in which it can be paid.
func waits(t *Transaction) bool { return t.Status == pending || t.Status == waitingPayment }

// settled reports whether t can be refunded.
func settled(t *Transaction) bool {
	return t.Status == paid || t.Status == captured || t.Status == partiallyRefunded
}

// held reports whether t is a card payment whose money is reserved and not taken.
func held(t *Transaction) bool { return t.Status == authorized && t.Method == card }

func wrongState(t *Transaction, what string) (Change, *Refusal) {
	return Change{}, NewRefusal(CodeInvalidState, "A "+t.Method+" transaction in state "+t.Status+" can't be "+what+".")
}

func noChallenge() *Refusal {
	return NewRefusal(CodeInvalidState, "The transaction has no open 3-D Secure challenge.")
}

// Pay simulates a payer who pays, or the capture of a card (rows X8, X10 and X25).
func Pay(env Env, t *Transaction) (Change, *Refusal) {
	switch {
	case t.NextAction != nil:
		return Change{}, NewRefusal(CodeInvalidState, "The 3-D Secure challenge must be passed first.")
	case held(t):
		return move(env, t, func(t *Transaction) { settle(env, t, captured) }, eventPaid), nil
	case t.Status == expired && t.Method == voucher:
	case !waits(t):
		return wrongState(t, "paid")
	case t.Pix != nil && !env.Now.Before(t.Pix.ExpirationDate):
		return Change{}, NewRefusal(CodeInvalidState, "The Pix has expired.")
	}
	return move(env, t, func(t *Transaction) { settle(env, t, paid) }, eventPaid), nil
}

// Expire ends a payment, or a challenge, that was not completed in time (row X9 and
// the last case of row X13).
func Expire(env Env, t *Transaction) (Change, *Refusal) {
	switch {
	case t.NextAction != nil:
		return end(env, t), nil
	case !waits(t) || t.Method == card:
		return wrongState(t, "expired")
	}
	return move(env, t, func(t *Transaction) { t.Status = expired }), nil
}

// ExpireByTimer is Expire for its timer. It rejects a timer that fires too early,
// since setting a state can extend the expiry.
func ExpireByTimer(env Env, t *Transaction) (Change, *Refusal) {
	early := t.Pix != nil && env.Now.Before(t.Pix.ExpirationDate) ||
		t.Voucher != nil && env.Now.Before(t.Voucher.ExpirationDate) ||
		t.NextAction != nil && env.Now.Before(t.NextAction.ExpiresAt)
	if early {
		return wrongState(t, "expired yet")
	}
	return Expire(env, t)
}

// Refuse simulates an issuer who refuses the charge (row X11).
func Refuse(env Env, t *Transaction) (Change, *Refusal) {
	if !open(t) || t.Method != card {
		return wrongState(t, "refused")
	}
	return move(env, t, func(t *Transaction) { refuse(t, declined) }), nil
}

// Cancel implements rows X12 and X26.
func Cancel(env Env, t *Transaction) (Change, *Refusal) {
	if !open(t) && !held(t) {
		return wrongState(t, "canceled")
	}
	return end(env, t), nil
}

// PassChallenge simulates a payer who passes the 3-D Secure challenge (row X13).
func PassChallenge(env Env, t *Transaction) (Change, *Refusal) {
	if t.NextAction == nil {
		return Change{}, noChallenge()
	}
	return move(env, t, func(t *Transaction) { settle(env, t, paid) }, eventPaid), nil
}

// FailChallenge simulates a payer who fails the 3-D Secure challenge (row X13).
func FailChallenge(env Env, t *Transaction) (Change, *Refusal) {
	if t.NextAction == nil {
		return Change{}, noChallenge()
	}
	return move(env, t, func(t *Transaction) { refuse(t, "three_ds_failed") }), nil
}

// end cancels an open transaction, with or without a challenge.
func end(env Env, t *Transaction) Change {
	return move(env, t, func(t *Transaction) { t.Status, t.NextAction = canceled, nil }, eventCanceled)
}

// Chargeback charges a card payment back, or returns a Pix payment whose dispute
// was lost (row X18).
func Chargeback(env Env, t *Transaction) (Change, *Refusal) {
	if t.Status != preChargedback && (!settled(t) || t.Method != card) {
		return wrongState(t, "charged back")
	}
	return move(env, t, func(t *Transaction) { t.Status = chargedback }, eventChargedback), nil
}

// RefundRequest is a request for a refund.
type RefundRequest struct {
	Amount int64 // cents; 0 means all that is left
	Reason string
}

// Refund implements rows X14 to X17. The field error of row X17 is about amount. A
// settled transaction always has something left to refund.
func Refund(env Env, t *Transaction, in RefundRequest) (Change, *Refusal) {
	left := t.PaidAmount - t.RefundedAmount
	switch {
	case !settled(t):
		return Change{}, NewRefusal(CodeNotRefundable, "A transaction in state "+t.Status+" can't be refunded.")
	case t.Method == pix && env.Dialect.Live(spec.TransactionStates) && env.Now.After(t.PaidAt.Add(PixRefundable)):
		return Change{}, NewRefusal(CodeNotRefundable, "A Pix can't be refunded more than 90 days after its payment.")
	case in.Amount > left:
		return Change{}, Invalid("amount", spec.CodeTooBig, "exceeds the amount that is left to refund")
	case in.Amount == 0:
		in.Amount = left
	}
	status := refunded
	if in.Amount < left {
		if t.Method == voucher {
			return Change{}, NewRefusal(CodeNotRefundable, "A voucher can only be refunded in full.")
		}
		status = partiallyRefunded
	}
	return move(env, t, func(t *Transaction) {
		t.Status = status
		t.RefundedAmount += in.Amount
		if in.Reason != "" {
			inform(t, refundReasonKey, in.Reason)
		}
	}, refundEvent(env, status)), nil
}

// refundEvent returns the kind of event of a refund after which t has the status.
func refundEvent(env Env, status string) string {
	if status == partiallyRefunded && env.Dialect.Live(spec.PartialRefundEvent) {
		return eventPartiallyRefunded
	}
	return eventRefunded
}

// TransactionTimer returns the transition of a transaction's timer.
func TransactionTimer(kind TimerKind) func(Env, *Transaction) (Change, *Refusal) {
	switch kind {
	case TimerPay:
		return Pay
	case TimerChargeBack:
		return Chargeback
	default:
		return ExpireByTimer
	}
}
