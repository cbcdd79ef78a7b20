package store

import "github.com/gateway-go/gateway/mockserver/internal/engine"

// record is what the tables keep.
type record[R any] interface {
	*R
	Stamp() *engine.Row
	Size() int
}

// stamp gives every record of c its place and version and returns by how many
// bytes the account would grow.
func (d *Data) stamp(c engine.Change) int64 {
	return stampAll(&d.Transactions, c.Transactions) +
		stampAll(&d.Customers, c.Customers) +
		stampAll(&d.Transfers, c.Transfers) +
		stampAll(&d.Subscriptions, c.Subscriptions) +
		stampAll(&d.Links, c.Links) +
		stampAll(&d.Products, c.Products) +
		stampAll(&d.Sessions, c.Sessions)
}

// put stores the stamped records of c and what else it says.
func (d *Data) put(c engine.Change) {
	putAll(&d.Transactions, c.Transactions)
	putAll(&d.Customers, c.Customers)
	putAll(&d.Transfers, c.Transfers)
	putAll(&d.Subscriptions, c.Subscriptions)
	putAll(&d.Links, c.Links)
	putAll(&d.Products, c.Products)
	putAll(&d.Sessions, c.Sessions)
	if c.Integration != nil {
		d.Integration = c.Integration
	}
	d.Balance += c.Balance
	for _, token := range c.Spent {
		d.spent[token] = struct{}{}
	}
}

func stampAll[R any, P record[R]](t *Table[R], records []*R) (grown int64) {
	added := uint64(0)
	for i, r := range records {
		row := P(r).Stamp()
		old := previous(t, records[:i], t.schema.id(r))
		if old == nil {
			added++
			*row = engine.Row{Seq: uint64(len(t.rows)) + added, Rev: 1}
			grown += int64(P(r).Size())
			continue
		}
		last := P(old).Stamp()
		*row = engine.Row{Seq: last.Seq, Rev: last.Rev + 1}
		grown += int64(P(r).Size() - P(old).Size())
	}
	return grown
}

// previous returns the version that a record with an id replaces: one earlier
// in the same change, or the stored one.
func previous[R any](t *Table[R], earlier []*R, id string) *R {
	for i := len(earlier) - 1; i >= 0; i-- {
		if t.schema.id(earlier[i]) == id {
			return earlier[i]
		}
	}
	return t.Get(id)
}

func putAll[R any](t *Table[R], records []*R) {
	for _, r := range records {
		t.put(r)
	}
}
