package store

import (
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
)

// resource is a pointer to a resource in a table.
type resource[R any] interface {
	*R
	Stamp() *engine.Row
}

// stamp sets the position and version of every resource of c.
func (d *Data) stamp(c engine.Change) {
	stampAll(&d.Transactions, c.Transactions)
	stampAll(&d.Customers, c.Customers)
	stampAll(&d.Transfers, c.Transfers)
	stampAll(&d.Subscriptions, c.Subscriptions)
	stampAll(&d.Links, c.Links)
	stampAll(&d.Products, c.Products)
	stampAll(&d.Sessions, c.Sessions)
}

// growth returns the approximate number of bytes that c adds to the account.
func (d *Data) growth(c engine.Change) int64 {
	return growthOf(&d.Transactions, c.Transactions) +
		growthOf(&d.Customers, c.Customers) +
		growthOf(&d.Transfers, c.Transfers) +
		growthOf(&d.Subscriptions, c.Subscriptions) +
		growthOf(&d.Links, c.Links) +
		growthOf(&d.Products, c.Products) +
		growthOf(&d.Sessions, c.Sessions) +
		sizeOfResponses(c.Responses)
}

// eventsSize returns the approximate size of the webhooks of c.
func eventsSize(c engine.Change) (bytes int64) {
	for i := range c.Events {
		bytes += memlimit.SizeOfEvent(&c.Events[i])
	}
	return bytes
}

// put stores the stamped resources of c and its other changes. It returns the
// approximate growth of the account in bytes, including the replaced versions that
// are still stored: see [Table.Before].
func (d *Data) put(c engine.Change) (bytes int64) {
	bytes = putAll(&d.Transactions, c.Transactions) +
		putAll(&d.Customers, c.Customers) +
		putAll(&d.Transfers, c.Transfers) +
		putAll(&d.Subscriptions, c.Subscriptions) +
		putAll(&d.Links, c.Links) +
		putAll(&d.Products, c.Products) +
		putAll(&d.Sessions, c.Sessions) +
		sizeOfResponses(c.Responses)
	if c.Integration != nil {
		d.Integration = c.Integration
	}
	d.responses.put(c.Responses)
	d.Balance += c.Balance
	if c.Balance != 0 {
		d.book(c)
	}
	for _, token := range c.Spent {
		d.spent[token] = struct{}{}
	}
	return bytes
}

func growthOf[R any](t *Table[R], resources []*R) (bytes int64) {
	for i, r := range resources {
		bytes += t.schema.size(r)
		if old := previous(t, resources[:i], t.schema.id(r)); old != nil {
			bytes -= t.schema.size(old)
		}
	}
	return bytes
}

func stampAll[R any, P resource[R]](t *Table[R], resources []*R) {
	next := uint64(len(t.rows)) + 1
	for i, r := range resources {
		if old := previous(t, resources[:i], t.schema.id(r)); old != nil {
			last := P(old).Stamp()
			*P(r).Stamp() = engine.Row{Seq: last.Seq, Rev: last.Rev + 1}
			continue
		}
		*P(r).Stamp() = engine.Row{Seq: next, Rev: 1}
		next++
	}
}

// previous returns the version that a resource with an id replaces: an earlier one in
// the same change, or the stored one.
func previous[R any](t *Table[R], earlier []*R, id string) *R {
	for i := len(earlier) - 1; i >= 0; i-- {
		if t.schema.id(earlier[i]) == id {
			return earlier[i]
		}
	}
	return t.Get(id)
}

func putAll[R any, P resource[R]](t *Table[R], resources []*R) (bytes int64) {
	for _, r := range resources {
		bytes += t.put(r, P(r).Stamp().Seq)
	}
	return bytes
}
