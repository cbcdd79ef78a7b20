package mockserver

// Transfers simulates the banks of transfers: those of one account or, as a
// field of [Server], of every account. Unless you call these methods or use a test
// Pix key of docs/testing.md, a transfer is processed after 10 seconds on the
// virtual clock and settled after 10 more. A method that the state of the transfer
// does not allow changes nothing and returns a [ControlError].
type Transfers struct{ scope scope }

// Analyse moves a pending transfer to a risk check, which ends after an hour
// unless Process or Fail ends it earlier.
func (t Transfers) Analyse(id string) error {
	return t.scope.do("transfers/analyse", id, 0)
}

// Process simulates a bank that accepts a transfer that is pending or in
// analysis.
func (t Transfers) Process(id string) error {
	return t.scope.do("transfers/process", id, 0)
}

// Settle simulates the arrival of the money: it settles a transfer in
// processing.
func (t Transfers) Settle(id string) error {
	return t.scope.do("transfers/settle", id, 0)
}

// Fail simulates a bank that refuses a transfer in processing or in analysis:
// its status becomes error, and the amount returns to the balance.
func (t Transfers) Fail(id string) error { return t.scope.do("transfers/fail", id, 0) }
