package gateway

// A live gateway may report in Amount what it settles for a charge instead of
// what was requested. The requested amount is then in BasePrice and, once the
// buyer has paid, in PaidAmount. Everything that compares amounts uses the two
// functions below.

// amountIs reports whether cents is one of the amounts of a charge.
func amountIs(cents, amount, basePrice, paidAmount int64) bool {
	return cents != 0 && (cents == amount || cents == basePrice || cents == paidAmount)
}

// charged returns what the buyer paid, or else what the buyer is asked to pay.
func charged(amount, basePrice, paidAmount int64) int64 {
	switch {
	case paidAmount != 0:
		return paidAmount
	case basePrice != 0:
		return basePrice
	default:
		return amount
	}
}

// AmountIs reports whether cents is the amount of the transaction: whether it
// equals Amount, BasePrice or a PaidAmount that is not 0. Use it to compare the
// transaction with your order, because a live gateway may report in Amount what
// it settles. It says nothing about the state; see [Transaction.Settled].
func (t *Transaction) AmountIs(cents int64) bool {
	return amountIs(cents, t.Amount, t.BasePrice, t.PaidAmount)
}

// Charged returns in cents what the buyer was charged, before the gateway's fees.
// While nothing is paid (pending, authorized, refused, expired and so on), this is
// what the buyer is asked to pay: BasePrice, or Amount if the gateway reports no
// BasePrice. From the payment on it is PaidAmount: in the state partially_paid the
// part that has been paid so far. Refunds, disputes and chargebacks don't reduce
// it; see RefundedAmount. To compare it with an order, use AmountIs.
//
// A list item without a paid_amount has only BasePrice and Amount, so for a
// partially paid transaction it may be the whole amount.
func (t *Transaction) Charged() int64 { return charged(t.Amount, t.BasePrice, t.PaidAmount) }

// AmountIs reports whether cents is the amount of the charge: whether it equals
// Amount or a PaidAmount that is not 0; see [Transaction.AmountIs].
func (s *SubscriptionTransaction) AmountIs(cents int64) bool {
	return amountIs(cents, s.Amount, 0, s.PaidAmount)
}
