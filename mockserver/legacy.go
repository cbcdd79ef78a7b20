package mockserver

import (
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Legacy does to the v1 payments of an account what no call of the interface
// can. A v1 payment is a Pix transaction of the same id, so [Transactions] acts
// on it too.
type Legacy struct {
	store *store.Store
	key   string
}

// SetStatus puts a v1 payment into any v1 state. PAID, CANCELLED and REFUND
// move the transaction and its money and are refused where it can't move so;
// every other state stands until the transaction moves.
func (l Legacy) SetStatus(id, status string) error {
	_, refusal := l.store.Account(l.key).Transaction(id, func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		return engine.SetLegacyStatus(env, t, status)
	})
	return controlError(refusal)
}
