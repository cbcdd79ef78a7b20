package mockserver

import (
	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/control"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// scope selects the accounts on which controls act: one account or, with an
// empty key, all accounts.
type scope struct {
	store   *store.Store
	account gateway.Secret // its key; empty for every account
}

// do performs a control of the table. number is 0 for one that takes none.
func (s scope) do(name, id string, number int64) error {
	return controlError(control.Named(name).Run(s.store, s.account.Reveal(), id, number))
}
