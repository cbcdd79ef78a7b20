// Package control is the table of what payers, banks, issuers and buyers do in a
// live gateway: a test does it for them. The calls of the control plane, the
// console's buttons and the methods of package mockserver read it.
//
// CONTRIBUTING.md says how to add a control.
package control

import (
	"cmp"
	"strings"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Control is an action on one resource.
type Control struct {
	Name   string // the resource and the action: "transactions/dispute/open"
	Label  string // of its button
	Hint   string // what it does
	Danger bool   // it can't be undone
	Number Number

	// run acts on the resource of an account that has the id. It is also what tells
	// whether the resource's state allows the control; see [Control.Offered].
	run func(a *store.Account, id string, number int64) *engine.Refusal
}

// Number is the number that a control takes.
type Number struct {
	Member  string // its name in the body of a call; "" if the control takes none
	Label   string // of its input
	Default int64  // 0 means that it must be given
}

// All lists the controls, those of a resource in the order of their buttons.
func All() []Control { return table }

// Named returns the control with a name, or nil if there is none.
func Named(name string) *Control {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return nil
}

// Resource returns the part of the name before the action: "transactions".
func (c *Control) Resource() string {
	resource, _, _ := strings.Cut(c.Name, "/")
	return resource
}

// Path returns the path of the control's call: "transactions/{id}/dispute/open".
func (c *Control) Path() string { return strings.Replace(c.Name, "/", "/{id}/", 1) }

// Run performs the control on the resource with an id, or a slug, in the account of a
// key. With the key "" it acts on the account that has the resource. The control is
// recorded as the cause of the change.
func (c *Control) Run(s *store.Store, key, id string, number int64) *engine.Refusal {
	a := account(s, key, func(d *store.Data) bool { return c.has(d, id) })
	return c.run(causedBy(a, c.Name), id, number)
}

// Offered reports whether the resource's state allows the control.
func (c *Control) Offered(s *store.Store, key, id string) bool {
	return c.run(s.Account(key).DryRun(), id, 1) == nil
}

// SetLegacyStatus puts a v1 payment into a v1 state. It has a value instead of a
// button's number, so it is not in the table.
func SetLegacyStatus(s *store.Store, key, id, status string) *engine.Refusal {
	a := account(s, key, func(d *store.Data) bool { return d.Transactions.Get(id) != nil })
	_, refusal := causedBy(a, "legacy/payments/status").Transaction(id, func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		return engine.SetLegacyStatus(env, t, status)
	})
	return refusal
}

// account returns the account of a key or, for "", the one that has something. If none
// has it, it returns one whose error says so. Ids are unique across accounts.
func account(s *store.Store, key string, has func(*store.Data) bool) *store.Account {
	if key == "" {
		key = cmp.Or(s.Owner(has), s.Accounts()[0]) // the default account is open from the start
	}
	return s.Account(key)
}

func causedBy(a *store.Account, name string) *store.Account {
	return a.CausedBy(store.Cause{Text: "control " + name})
}

func (c *Control) has(d *store.Data, id string) bool {
	switch c.Resource() {
	case "transfers":
		return d.Transfers.Get(id) != nil
	case "subscriptions":
		return d.Subscriptions.Get(id) != nil
	case "checkout":
		return d.Links.Get(id) != nil
	default:
		return d.Transactions.Get(id) != nil
	}
}
