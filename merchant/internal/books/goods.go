package books

import (
	"slices"
	"strconv"
	"time"
)

// settle remembers what the order had to pay when the charge settled it: what was requested
// or, if a person accepted less or another currency, what was paid.
func (o *Order) settle(c *Charge) {
	o.SettledBy, o.Price, o.PriceCurrency, o.Interest = c.ID, min(c.Requested, c.Paid), c.Currency, c.Interest()
	if c.Foreign {
		o.Price, o.Interest = c.Paid, 0 // what was asked for is in another currency
	}
}

// Excess returns what is left beyond the price and the interest of an order that was settled,
// 0 if nothing is. A price in another currency is in none of the order's sums.
func (o *Order) Excess() int64 {
	switch {
	case o.SettledBy == "":
		return 0
	case o.PriceCurrency != o.Currency:
		return o.Left()
	}
	return max(0, o.Left()-o.Price-o.Interest)
}

// Owed reports whether the goods are owed: the order was settled, money is left, and what
// is left covers the price less what the merchant waived of it. charges are all of the order.
func Owed(o Order, charges []Charge) bool {
	left, waived := o.held(charges)
	return left > 0 && left+waived >= o.Price
}

// held returns what is left of the charges that can pay the order, in the currency of the one
// that settled it, and what the merchant has waived of the price. Money in that currency
// counts even if it is in no sum of the order.
//
// To refund the charge that settled the order is the merchant's decision, so what went back
// of its price is waived, but only while it is a part: who returns the whole payment does not
// give the goods away. What was paid beyond the price goes back first. A dispute is no
// decision and waives nothing. A refund of another charge doesn't either: that money was
// never needed.
func (o *Order) held(charges []Charge) (left, waived int64) {
	by := slices.IndexFunc(charges, func(c Charge) bool { return c.ID == o.SettledBy })
	if by < 0 {
		return left, waived
	}
	for i := range charges {
		if c := &charges[i]; c.ofOrder() && c.Currency == charges[by].Currency {
			left += c.Left()
		}
	}
	if c := &charges[by]; c.Refunded < c.Paid {
		waived = max(0, c.Refunded-(c.Paid-o.Price))
	}
	return left, waived
}

// Goods is called at the end of each change of an order or of a sale by link, with all its
// charges, under its lock. If what is owed has changed, it flips Order.Owed, counts, and
// returns the fact. When goods are not owed any more, a person need not decide about an order
// that was closed before they were told.
//
// Facts are delivered late. The caller compares Order.Owed with what the shop heard last, and
// calls only if they differ: then the shop hears owed, not owed, owed …, and at the end what
// the books say.
func Goods(o Order, charges []Charge, at time.Time) (Order, Result) {
	if owed := Owed(o, charges); owed == o.Owed {
		return o, Result{}
	}
	o.Owed = !o.Owed
	o.GoodsFacts++
	l := ledger{order: &o, record: o.SettledBy, source: FromOutcome, at: at, now: at}
	f := l.fact(GoodsChanged, key(GoodsChanged, o.ID, strconv.Itoa(o.GoodsFacts)), OnGoods)
	f.About, _ = o.held(charges)
	if !o.Owed {
		l.ended(IsClosed) // raised by the caller
	}
	return o, l.Result
}

// Why returns what the shop is told about the goods: Paid, if they are owed; Disputed, if
// they would be owed without what is disputed; else Refunded.
func Why(o Order, charges []Charge) State {
	if Owed(o, charges) {
		return Paid
	}
	charges = slices.Clone(charges)
	for i := range charges {
		charges[i].Disputed = 0
	}
	if Owed(o, charges) {
		return Disputed
	}
	return Refunded
}
