package store

import "github.com/gateway-go/gateway/mockserver/internal/engine"

// Transaction runs a transition of one transaction and returns the record
// after it. HTTP, the control plane and timers all come through here, so this
// is where what follows for the subscription or checkout session that the
// transaction belongs to is added.
func (a *Account) Transaction(
	id string, do func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal),
) (after *engine.Transaction, refusal *engine.Refusal) {
	refusal = a.Apply(func(d *Data) (engine.Change, *engine.Refusal) {
		after = d.Transactions.Get(id)
		if after == nil {
			return engine.Change{}, engine.NotFound("transaction")
		}
		c, refusal := do(d.Env, after)
		if refusal == nil && len(c.Transactions) > 0 {
			after = c.Transactions[0]
		}
		return c, refusal
	})
	if refusal != nil {
		return nil, refusal
	}
	return after, nil
}

// fire does what a due timer asks for. Its refusal says only that the record
// has moved on.
func (a *Account) fire(kind engine.TimerKind, id string) {
	switch kind {
	case engine.TimerExpire, engine.TimerExpireChallenge:
		_, _ = a.Transaction(id, engine.ExpireInTime)
	case engine.TimerPay:
		_, _ = a.Transaction(id, engine.Pay)
	case engine.TimerChargeBack:
		_, _ = a.Transaction(id, engine.Chargeback)
	}
}
