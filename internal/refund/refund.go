// Package refund decides how much is left to refund and whether a refund whose
// response was lost was applied. A refund has no reference to look it up by, so this is
// the only way to find out.
package refund

import "github.com/gateway-go/gateway"

// Goal is what a refund asks for: exactly one of the three. Amounts are in cents.
type Goal struct {
	Amount int64 // in addition to what was refunded before
	UpTo   int64 // including what was refunded before
	Full   bool  // everything that is left
}

// Left returns how many cents of a payment were not refunded. It is what the amounts say:
// if the gateway reports no paid_amount and no base_price, they may say less than is left;
// see [Goal.Reached].
func Left(t *gateway.Transaction) int64 {
	if t.Status == gateway.TransactionRefunded {
		return 0
	}
	return max(0, t.Charged()-t.RefundedAmount)
}

// Missing returns how many cents of a transaction have to be refunded to reach the goal;
// 0 or less if the amounts say that it is reached.
func (g Goal) Missing(t *gateway.Transaction) int64 {
	switch {
	case g.Full:
		return Left(t)
	case g.UpTo > 0:
		return g.UpTo - t.RefundedAmount
	default:
		return g.Amount
	}
}

// Reached reports whether nothing is left to do. A Full refund trusts the status more than
// the amounts: one refund too many is rejected by the gateway, but what is wrongly taken
// for refunded stays with the merchant.
func (g Goal) Reached(t *gateway.Transaction) bool {
	if !g.Full {
		return g.Missing(t) <= 0
	}
	switch t.Status {
	case gateway.TransactionRefunded:
		return true
	case gateway.TransactionPartiallyRefunded:
		return false
	default:
		return t.Charged() > 0 && Left(t) == 0
	}
}

// Finding is what a read shows about a refund that may have been applied.
type Finding int

// The findings.
const (
	NotApplied Finding = iota
	Applied
	Unclear // someone else refunded too
)

// Compare compares refunded_amount with its value before a refund of sent cents. It
// never decreases, so a value below the target proves that the refund was not applied,
// even if others refunded too. A value above it may include this refund or not.
func (g Goal) Compare(t *gateway.Transaction, before, sent int64) Finding {
	target := before + sent
	switch {
	case g.Full && !g.Reached(t), !g.Full && t.RefundedAmount < target:
		return NotApplied
	case t.RefundedAmount > target && g.Amount > 0:
		return Unclear
	default:
		return Applied
	}
}
