package mockserver

import (
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Transfers simulates the banks of transfers: those of one account or, as a
// field of [Server], of every account. Unless you call these methods or use a test
// Pix key of docs/testing.md, a transfer is processed after 10 seconds on the
// virtual clock and settled after 10 more. A method that the state of the transfer
// does not allow changes nothing and returns a [ControlError].
type Transfers struct{ scope scope }

// Analyse moves a pending transfer to a risk check, which ends after an hour
// unless Process or Fail ends it earlier.
func (t Transfers) Analyse(id string) error {
	return t.do("transfers/analyse", id, engine.AnalyseTransfer)
}

// Process simulates a bank that accepts a transfer that is pending or in
// analysis.
func (t Transfers) Process(id string) error {
	return t.do("transfers/process", id, engine.ProcessTransfer)
}

// Settle simulates the arrival of the money: it settles a transfer in
// processing.
func (t Transfers) Settle(id string) error {
	return t.do("transfers/settle", id, engine.SettleTransfer)
}

// Fail simulates a bank that refuses a transfer in processing or in analysis:
// its status becomes error, and the amount returns to the balance.
func (t Transfers) Fail(id string) error { return t.do("transfers/fail", id, engine.FailTransfer) }

func (t Transfers) do(control, id string, transition store.Transition[engine.Transfer]) error {
	_, refusal := t.scope.with(control, func(d *store.Data) bool { return d.Transfers.Get(id) != nil }).Transfer(id, transition)
	return controlError(refusal)
}
