package mockserver

import "github.com/gateway-go/gateway/mockserver/internal/control"

// Legacy sets states of v1 payments for which the interface has no call: those
// of one account or, as a field of [Server], of every account. A v1 payment is
// a Pix transaction with the same id, so [Transactions] acts on it too.
type Legacy struct{ scope scope }

// SetStatus puts a v1 payment into a v1 state. PAID, CANCELLED and REFUND pay,
// cancel or refund the transaction, and are rejected if its state does not allow
// that. WAITING_PAYMENT is rejected once the transaction is no longer pending.
// Any other state lasts until the transaction changes.
func (l Legacy) SetStatus(id, status string) error {
	return controlError(control.SetLegacyStatus(l.scope.store, l.scope.account.Reveal(), id, status))
}
