package mockserver

import (
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
)

// Transactions simulates the payers and issuers of transactions: those of one
// account or, as a field of [Server], of every account. A method that the state
// of the transaction does not allow changes nothing and returns a
// [ControlError].
type Transactions struct{ scope scope }

// Pay pays a pending transaction, or an expired voucher late.
func (t Transactions) Pay(id string) error { return t.scope.do("transactions/pay", id, 0) }

// Expire expires a pending Pix, voucher or 3-D Secure challenge now.
func (t Transactions) Expire(id string) error { return t.scope.do("transactions/expire", id, 0) }

// Refuse simulates an issuer that refuses a pending card payment.
func (t Transactions) Refuse(id string) error { return t.scope.do("transactions/refuse", id, 0) }

// Cancel cancels a pending transaction.
func (t Transactions) Cancel(id string) error { return t.scope.do("transactions/cancel", id, 0) }

// Chargeback simulates an issuer that charges back a card payment. It also returns
// a Pix payment at once whose dispute was lost.
func (t Transactions) Chargeback(id string) error {
	return t.scope.do("transactions/chargeback", id, 0)
}

// OpenDispute simulates the bank of a deceived payer that disputes a Pix payment
// under the special refund mechanism (MED), up to 80 days after the payment: the
// state is med. It sends no webhook, and only the live dialect has the state.
func (t Transactions) OpenDispute(id string) error {
	return t.scope.do("transactions/dispute/open", id, 0)
}

// ContestDispute simulates a merchant who contests a dispute: the state is
// in_protest.
func (t Transactions) ContestDispute(id string) error {
	return t.scope.do("transactions/dispute/contest", id, 0)
}

// LoseDispute decides a dispute for the payer: the state is pre_chargedback, and a
// day later chargedback.
func (t Transactions) LoseDispute(id string) error {
	return t.scope.do("transactions/dispute/lose", id, 0)
}

// WinDispute decides a dispute for the merchant: the payment has its earlier state
// again.
func (t Transactions) WinDispute(id string) error {
	return t.scope.do("transactions/dispute/win", id, 0)
}

// SettleFor makes the gateway report cents as the amount of a transaction, as live
// gateways do that report what they settle; 0 restores the amount that the buyer is
// charged. base_price and paid_amount, refunds, fees and the balance don't change, and
// no webhook is sent: later ones have the amount. Only the live dialect does this. See
// [WithSettledPercent] for all transactions.
func (t Transactions) SettleFor(id string, cents int64) error {
	return t.scope.do("transactions/settle-for", id, cents)
}

// PassChallenge simulates a payer who passes a 3-D Secure challenge: the
// transaction is paid.
func (t Transactions) PassChallenge(id string) error {
	return t.scope.do("transactions/challenge/pass", id, 0)
}

// FailChallenge simulates a payer who fails a 3-D Secure challenge: the
// transaction is refused.
func (t Transactions) FailChallenge(id string) error {
	return t.scope.do("transactions/challenge/fail", id, 0)
}

func controlError(refusal *engine.Refusal) error {
	if refusal == nil {
		return nil
	}
	return &ControlError{Status: httpapi.StatusOf(refusal), Code: refusal.Code, Detail: refusal.Detail}
}

// ControlError is returned by a control that the state of the resource does
// not allow, or whose resource does not exist.
type ControlError struct {
	Status int    // 404 if there is no such resource, 409 if its state does not allow it
	Code   string // "INVALID_STATE"
	Detail string
}

// Error returns the detail and the code.
func (e *ControlError) Error() string { return "mockserver: " + e.Detail + " (" + e.Code + ")" }
