package mockserver

import "github.com/gateway-go/gateway/mockserver/internal/engine"

// Legacy does to v1 payments what no call of the interface can: those of one
// account, or as a field of [Server] those of every account. A v1 payment is a
// Pix transaction of the same id, so [Transactions] acts on it too.
type Legacy struct{ scope scope }

// SetStatus puts a v1 payment into any v1 state. PAID, CANCELLED and REFUND
// move the transaction and its money and are rejected if it can't move so;
// every other state stands until the transaction moves.
func (l Legacy) SetStatus(id, status string) error {
	_, refusal := l.scope.transaction("legacy/payments/status", id).Transaction(id, func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		return engine.SetLegacyStatus(env, t, status)
	})
	return controlError(refusal)
}
