package mockserver

import (
	"cmp"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// scope selects the accounts on which controls act: one account or, with an
// empty key, all accounts.
type scope struct {
	store   *store.Store
	account gateway.Secret // its key; empty for every account
	dry     bool           // tests whether a control would be rejected, and changes nothing
}

// with returns the account that has the control's resource or, if none has it,
// an account that returns the error. Ids are unique across accounts. The
// control, such as "transactions/pay", is recorded as the cause of the change.
func (s scope) with(control string, has func(*store.Data) bool) *store.Account {
	a := s.find(has)
	if s.dry {
		return a.DryRun()
	}
	return a.CausedBy(store.Cause{Text: "control " + control})
}

func (s scope) find(has func(*store.Data) bool) *store.Account {
	key := s.account.Reveal()
	if s.account.IsZero() {
		key = cmp.Or(s.store.Owner(has), s.store.Accounts()[0]) // the default account is open from the start
	}
	return s.store.Account(key)
}

// transaction returns the account that has a transaction; see with.
func (s scope) transaction(control, id string) *store.Account {
	return s.with(control, func(d *store.Data) bool { return d.Transactions.Get(id) != nil })
}
