package mockserver

import (
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Transfers does to transfers what banks do: those of one account, or as a field of
// [Server] of every account. Otherwise the clock processes a transfer after 10
// seconds and settles it after 10 more. A method that the state of the transfer does
// not allow changes nothing and returns a [ControlError].
type Transfers struct{ scope scope }

// Analyse takes a pending transfer into a risk check, which ends after an hour
// unless Process or Fail ends it before.
func (t Transfers) Analyse(id string) error {
	return t.do("transfers/analyse", id, engine.AnalyseTransfer)
}

// Process is the bank accepting a transfer that is pending or in analysis.
func (t Transfers) Process(id string) error {
	return t.do("transfers/process", id, engine.ProcessTransfer)
}

// Settle is the money of a transfer in processing reaching its receiver.
func (t Transfers) Settle(id string) error {
	return t.do("transfers/settle", id, engine.SettleTransfer)
}

// Fail is the bank refusing a transfer that is in processing or in analysis:
// its status is then error, and the balance has the amount back.
func (t Transfers) Fail(id string) error { return t.do("transfers/fail", id, engine.FailTransfer) }

func (t Transfers) do(control, id string, transition store.Transition[engine.Transfer]) error {
	_, refusal := t.scope.with(control, func(d *store.Data) bool { return d.Transfers.Get(id) != nil }).Transfer(id, transition)
	return controlError(refusal)
}
