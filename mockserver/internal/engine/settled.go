package engine

import (
	"cmp"

	"github.com/gateway-go/gateway/internal/spec"
)

// A live gateway may report what it settles as the amount of a transaction. Only
// the reported amount changes: the buyer is charged Amount, and payments, refunds,
// fees and the balance count from that.

// WholeShare is the share that settles all of an amount, in hundredths of a percent.
const WholeShare = 100_00

// Reported returns the amount of t as the interface reports it.
func (t *Transaction) Reported() int64 { return cmp.Or(t.SettledAmount, t.Amount) }

// settledOf returns the settled amount of a new transaction, rounded down to at
// least a cent, or 0 if it is the whole amount.
func settledOf(env Env, amount int64) int64 {
	if env.Settled == 0 || !env.Dialect.Live(spec.BasePrice) {
		return 0
	}
	share := amount/WholeShare*env.Settled + amount%WholeShare*env.Settled/WholeShare // amount*env.Settled may overflow
	return max(share, 1)
}

// SettleFor makes the gateway report another amount of t; 0 restores the amount that
// the buyer is charged. It changes neither the state nor the balance and sends no
// webhook: later ones have the amount.
func SettleFor(env Env, t *Transaction, cents int64) (Change, *Refusal) {
	switch {
	case !env.Dialect.Live(spec.BasePrice):
		return Change{}, NewRefusal(CodeInvalidState, "Only the live dialect reports what it settles as the amount.")
	case cents < 0 || cents > spec.MaxSafeAmount:
		return Change{}, Invalid("amount", spec.CodeInvalid, "must be an amount in cents, or 0")
	case cents == t.Amount:
		cents = 0
	}
	return move(env, t, func(t *Transaction) { t.SettledAmount = cents }), nil
}
