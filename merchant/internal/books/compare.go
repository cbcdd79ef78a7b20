package books

import "github.com/gateway-go/gateway"

// Side is one side of a comparison: the money of a charge, each in cents and not
// negative.
type Side struct {
	Paid, Fee, Refunded, Disputed int64
}

// Shown returns what a transaction shows of the money of a charge whose entries are
// given, so that only a difference in the money makes the two differ. A list may show
// less than the transaction has: without a paid_amount, or a fee, the charge's own
// counts, because the transaction was read when that was booked.
//
// The error names what in the transaction can't be true or is not known.
func Shown(tx *gateway.Transaction, booked Side) (there Side, wrong string) {
	s := show(tx)
	if s.stage == 0 {
		return Side{}, "unknown status " + string(tx.Status)
	}
	if wrong := s.contradiction(tx); wrong != "" {
		return Side{}, wrong
	}
	there = Side{Paid: s.paid, Fee: s.fee, Refunded: s.refunded}
	if s.assumed && booked.Paid > 0 {
		if s.stage == refundedFully {
			there.Refunded = max(tx.RefundedAmount, booked.Paid)
		}
		there.Paid = max(booked.Paid, there.Refunded)
	}
	if there.Fee == 0 {
		there.Fee = booked.Fee
	}
	if s.stage.disputed() {
		there.Disputed = there.Paid - there.Refunded
	}
	return there, ""
}

// ShowsMoney reports whether a transaction of a list shows how much was paid and refunded.
// One without a paid_amount shows only whether it was all.
func ShowsMoney(tx *gateway.Transaction) bool {
	stage := stageOf(tx.Status)
	return !stage.pays() || tx.PaidAmount != 0 || stage == paidFully || stage == refundedFully
}
