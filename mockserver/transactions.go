package mockserver

import (
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Transactions simulates the payers and issuers of transactions: those of one
// account or, as a field of [Server], of every account. A method that the state
// of the transaction does not allow changes nothing and returns a
// [ControlError].
type Transactions struct{ scope scope }

// Pay pays a pending transaction, or an expired voucher late.
func (t Transactions) Pay(id string) error { return t.do("transactions/pay", id, engine.Pay) }

// Expire expires a pending Pix, voucher or 3-D Secure challenge now.
func (t Transactions) Expire(id string) error { return t.do("transactions/expire", id, engine.Expire) }

// Refuse simulates an issuer that refuses a pending card payment.
func (t Transactions) Refuse(id string) error { return t.do("transactions/refuse", id, engine.Refuse) }

// Cancel cancels a pending transaction.
func (t Transactions) Cancel(id string) error { return t.do("transactions/cancel", id, engine.Cancel) }

// Chargeback simulates an issuer that charges back a card payment.
func (t Transactions) Chargeback(id string) error {
	return t.do("transactions/chargeback", id, engine.Chargeback)
}

// PassChallenge simulates a payer who passes a 3-D Secure challenge: the
// transaction is paid.
func (t Transactions) PassChallenge(id string) error {
	return t.do("transactions/challenge/pass", id, engine.PassChallenge)
}

// FailChallenge simulates a payer who fails a 3-D Secure challenge: the
// transaction is refused.
func (t Transactions) FailChallenge(id string) error {
	return t.do("transactions/challenge/fail", id, engine.FailChallenge)
}

func (t Transactions) do(control, id string, transition store.Transition[engine.Transaction]) error {
	_, refusal := t.scope.transaction(control, id).Transaction(id, transition)
	return controlError(refusal)
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
