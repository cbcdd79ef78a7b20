package engine

import (
	"time"

	"github.com/gateway-go/gateway/internal/spec"
)

// A payer who was deceived asks the bank for the money back: the special refund
// mechanism of Pix (MED). The document dialect has no states for it.

// DisputeWindow is how long after a payment its payer can dispute it.
const DisputeWindow = 80 * 24 * time.Hour

// OpenDispute simulates a payer's bank that disputes a Pix payment (row X21).
func OpenDispute(env Env, t *Transaction) (Change, *Refusal) {
	switch {
	case !env.Dialect.Live(spec.TransactionStates):
		return Change{}, NewRefusal(CodeInvalidState, "Only the live dialect has states for a dispute.")
	case !settled(t) || t.Method != pix:
		return wrongState(t, "disputed")
	case env.Now.After(t.PaidAt.Add(DisputeWindow)):
		return Change{}, NewRefusal(CodeInvalidState, "A Pix payment can only be disputed within 80 days.")
	}
	return move(env, t, func(t *Transaction) { t.Status = med }), nil
}

// ContestDispute simulates a merchant who contests a dispute (row X22).
func ContestDispute(env Env, t *Transaction) (Change, *Refusal) {
	if t.Status != med {
		return wrongState(t, "contested")
	}
	return move(env, t, func(t *Transaction) { t.Status = inProtest }), nil
}

// LoseDispute decides a dispute for the payer, who gets the money a day later
// (row X23).
func LoseDispute(env Env, t *Transaction) (Change, *Refusal) {
	if !disputed(t) {
		return wrongState(t, "decided for its payer")
	}
	c := move(env, t, func(t *Transaction) { t.Status = preChargedback })
	c.Timers = []Timer{{At: env.Now.Add(ChargebackDelay), Kind: TimerChargeBack, ID: t.ID}}
	return c, nil
}

// WinDispute decides a dispute for the merchant (row X24).
func WinDispute(env Env, t *Transaction) (Change, *Refusal) {
	if !disputed(t) {
		return wrongState(t, "decided for the merchant")
	}
	return move(env, t, func(t *Transaction) {
		t.Status = paid
		if t.RefundedAmount > 0 {
			t.Status = partiallyRefunded
		}
	}), nil
}

// disputed reports whether t has an open dispute: a sandbox can set the states of a
// dispute for any method.
func disputed(t *Transaction) bool {
	return t.Method == pix && (t.Status == med || t.Status == inProtest)
}
