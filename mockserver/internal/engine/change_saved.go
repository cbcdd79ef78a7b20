package engine

import "slices"

// Split divides the resources of c into changes of at most n resources each. The
// integration, the balance, events and timers are left out.
func (c Change) Split(n int) []Change {
	return slices.Concat(
		split(c.Transactions, n, func(list []*Transaction) Change { return Change{Transactions: list} }),
		split(c.Customers, n, func(list []*Customer) Change { return Change{Customers: list} }),
		split(c.Transfers, n, func(list []*Transfer) Change { return Change{Transfers: list} }),
		split(c.Subscriptions, n, func(list []*Subscription) Change { return Change{Subscriptions: list} }),
		split(c.Links, n, func(list []*Link) Change { return Change{Links: list} }),
		split(c.Sessions, n, func(list []*Session) Change { return Change{Sessions: list} }),
		split(c.Products, n, func(list []*CatalogProduct) Change { return Change{Products: list} }),
		split(c.Responses, n, func(list []*Response) Change { return Change{Responses: list} }),
		split(c.Spent, n, func(list []string) Change { return Change{Spent: list} }),
	)
}

func split[R any](all []R, n int, change func(list []R) Change) (parts []Change) {
	for list := range slices.Chunk(all, n) {
		parts = append(parts, change(list))
	}
	return parts
}

// Compact returns c with smaller events: a resource that c contains as well is replaced
// by its Row. [Change.Expand] reverses this.
func (c Change) Compact() Change {
	c.Events = slices.Clone(c.Events)
	for i := range c.Events {
		e := &c.Events[i]
		if slices.Contains(c.Transactions, e.Transaction) {
			e.Transaction = &Transaction{Row: e.Transaction.Row}
		}
		if slices.Contains(c.Transfers, e.Transfer) {
			e.Transfer = &Transfer{Row: e.Transfer.Row}
		}
		if slices.Contains(c.Subscriptions, e.Subscription) {
			e.Subscription = &Subscription{Row: e.Subscription.Row}
		}
	}
	return c
}

// Expand reverses [Change.Compact].
func (c Change) Expand() {
	for i := range c.Events {
		e := &c.Events[i]
		e.Transaction = version(c.Transactions, e.Transaction)
		e.Transfer = version(c.Transfers, e.Transfer)
		e.Subscription = version(c.Subscriptions, e.Subscription)
	}
}

// version returns the resource in list that has the Row of r, or r if there is none.
func version[R any, P interface {
	*R
	Stamp() *Row
}](list []*R, r *R) *R {
	for _, v := range list {
		if r != nil && *P(v).Stamp() == *P(r).Stamp() {
			return v
		}
	}
	return r
}
