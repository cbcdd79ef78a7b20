package gateway

// A live gateway may report in Amount what it settles for a charge instead of
// what was requested. The requested amount is then in BasePrice and, once the
// buyer has paid, in PaidAmount, which is 0 if the gateway omits it. Everything that
// compares amounts or calculates with them uses the functions below.

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

// Paid returns in cents what the buyer has paid, before the gateway's fees: Charged, or 0
// while nothing is paid. Unlike PaidAmount, it is right for gateways and lists that omit
// paid_amount. Refunds, disputes and chargebacks don't reduce it: what is left of the
// payment is Paid - RefundedAmount.
//
// It is 0 for a partially paid transaction without a paid_amount: nothing else reports the
// part.
func (t *Transaction) Paid() int64 { return paid(t.Status, t.Amount, t.BasePrice, t.PaidAmount) }

func paid(status TransactionStatus, amount, basePrice, paidAmount int64) int64 {
	if paidAmount == 0 && !status.wasPaid() {
		return 0
	}
	return charged(amount, basePrice, paidAmount)
}

// wasPaid reports whether the whole amount was paid, even if it was lost or returned since.
func (s TransactionStatus) wasPaid() bool {
	switch s {
	case TransactionPaid, TransactionCaptured, TransactionPartiallyRefunded, TransactionRefunded,
		TransactionMED, TransactionInProtest, TransactionPreChargedback, TransactionChargedback:
		return true
	default:
		return false
	}
}

// AmountIs reports whether cents is the amount of the charge: whether it equals
// Amount or a PaidAmount that is not 0; see [Transaction.AmountIs].
func (s *SubscriptionTransaction) AmountIs(cents int64) bool {
	return amountIs(cents, s.Amount, 0, s.PaidAmount)
}

// Charged returns in cents what the buyer was charged, or is asked to pay; see
// [Transaction.Charged].
func (s *SubscriptionTransaction) Charged() int64 { return charged(s.Amount, 0, s.PaidAmount) }

// Paid returns in cents what the buyer has paid; see [Transaction.Paid].
func (s *SubscriptionTransaction) Paid() int64 { return paid(s.Status, s.Amount, 0, s.PaidAmount) }
