package engine

import "slices"

// Split divides the resources of c into changes of at most n resources each. The
// integration, the balance, events and timers are left out.
func (c Change) Split(n int) []Change {
	var parts []Change
	for list := range slices.Chunk(c.Transactions, n) {
		parts = append(parts, Change{Transactions: list})
	}
	for list := range slices.Chunk(c.Customers, n) {
		parts = append(parts, Change{Customers: list})
	}
	for list := range slices.Chunk(c.Transfers, n) {
		parts = append(parts, Change{Transfers: list})
	}
	for list := range slices.Chunk(c.Subscriptions, n) {
		parts = append(parts, Change{Subscriptions: list})
	}
	for list := range slices.Chunk(c.Links, n) {
		parts = append(parts, Change{Links: list})
	}
	for list := range slices.Chunk(c.Sessions, n) {
		parts = append(parts, Change{Sessions: list})
	}
	for list := range slices.Chunk(c.Products, n) {
		parts = append(parts, Change{Products: list})
	}
	for list := range slices.Chunk(c.Responses, n) {
		parts = append(parts, Change{Responses: list})
	}
	for list := range slices.Chunk(c.Spent, n) {
		parts = append(parts, Change{Spent: list})
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
