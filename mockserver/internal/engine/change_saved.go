package engine

import (
	"iter"
	"slices"
)

// Split returns the records of c in changes of at most n of them. Balance, events
// and timers are left out.
func (c Change) Split(n int) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		_ = split(yield, n, c.Transactions, func(l []*Transaction) Change { return Change{Transactions: l} }) &&
			split(yield, n, c.Customers, func(l []*Customer) Change { return Change{Customers: l} }) &&
			split(yield, n, c.Transfers, func(l []*Transfer) Change { return Change{Transfers: l} }) &&
			split(yield, n, c.Subscriptions, func(l []*Subscription) Change { return Change{Subscriptions: l} }) &&
			split(yield, n, c.Links, func(l []*Link) Change { return Change{Links: l} }) &&
			split(yield, n, c.Sessions, func(l []*Session) Change { return Change{Sessions: l} }) &&
			split(yield, n, c.Products, func(l []*CatalogProduct) Change { return Change{Products: l} }) &&
			split(yield, n, c.Responses, func(l []*Response) Change { return Change{Responses: l} }) &&
			split(yield, n, c.Spent, func(l []string) Change { return Change{Spent: l} })
	}
}

func split[R any](yield func(Change) bool, n int, list []R, change func([]R) Change) bool {
	for part := range slices.Chunk(list, n) {
		if !yield(change(part)) {
			return false
		}
	}
	return true
}

// Shorten returns c with events that hold only the place and version of a resource
// that c has too; [Change.Lengthen] of such a change sets them again.
func (c Change) Shorten() Change {
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

// Lengthen undoes [Change.Shorten].
func (c Change) Lengthen() {
	for i := range c.Events {
		e := &c.Events[i]
		e.Transaction = version(c.Transactions, e.Transaction)
		e.Transfer = version(c.Transfers, e.Transfer)
		e.Subscription = version(c.Subscriptions, e.Subscription)
	}
}

// version returns the resource of a list with the place and version of r, or r.
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
