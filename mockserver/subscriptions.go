package mockserver

import (
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Subscriptions does to subscriptions what payers and their banks do: those of one
// account, or as a field of [Server] of every account; renewals, retries and trials
// follow the clock. A method that the state of the subscription does not allow
// changes nothing and returns a [ControlError].
type Subscriptions struct{ scope scope }

// Authorize is the payer's yes to a Pix Automatico: without a trial the first
// debit is made at once.
func (s Subscriptions) Authorize(id string) error {
	return s.do("subscriptions/authorize", id, engine.AuthorizeSubscription)
}

// Reject is the payer's no to a Pix Automatico, which ends it.
func (s Subscriptions) Reject(id string) error {
	return s.do("subscriptions/reject", id, engine.RejectSubscription)
}

// Revoke is the payer taking back, in the bank's app, the consent to a Pix
// Automatico that is active or in its trial.
func (s Subscriptions) Revoke(id string) error {
	return s.do("subscriptions/revoke", id, engine.RevokeSubscription)
}

// FailNextCharges makes the next count charges fail, retries included; 0 takes
// that back.
func (s Subscriptions) FailNextCharges(id string, count int) error {
	return s.do("subscriptions/fail-next", id, func(env engine.Env, r *engine.Subscription) (engine.Change, *engine.Refusal) {
		return engine.FailNextCharges(env, r, max(count, 0))
	})
}

func (s Subscriptions) do(control, id string, transition store.Transition[engine.Subscription]) error {
	_, refusal := s.scope.with(control, func(d *store.Data) bool { return d.Subscriptions.Get(id) != nil }).Subscription(id, transition)
	return controlError(refusal)
}
