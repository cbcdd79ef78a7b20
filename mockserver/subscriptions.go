package mockserver

// Subscriptions simulates the payers of subscriptions and their banks: those of
// one account or, as a field of [Server], of every account. Renewals, retries
// and trials follow the clock. A method that the state of the subscription does
// not allow changes nothing and returns a [ControlError].
type Subscriptions struct{ scope scope }

// Authorize simulates a payer who authorizes a Pix Automatico: without a trial
// the first debit is made at once.
func (s Subscriptions) Authorize(id string) error {
	return s.scope.do("subscriptions/authorize", id, 0)
}

// Reject simulates a payer who rejects a Pix Automatico, which cancels it.
func (s Subscriptions) Reject(id string) error {
	return s.scope.do("subscriptions/reject", id, 0)
}

// Revoke simulates a payer who revokes, in the bank's app, a Pix Automatico
// that is active or in its trial.
func (s Subscriptions) Revoke(id string) error {
	return s.scope.do("subscriptions/revoke", id, 0)
}

// CancelDebit simulates a payer who cancels, in the bank's app, the next debit of
// a Pix Automatico that is active, past due or in its trial. The debit is refused with the
// reason canceled_by_payer, the failure policy applies, and the authorization remains.
func (s Subscriptions) CancelDebit(id string) error {
	return s.scope.do("subscriptions/cancel-debit", id, 0)
}

// FailNextCharges makes the next count charges fail, including retries. A
// count of 0 cancels the remaining failures.
func (s Subscriptions) FailNextCharges(id string, count int) error {
	return s.scope.do("subscriptions/fail-next", id, int64(count))
}
