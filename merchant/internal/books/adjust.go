package books

import (
	"time"

	"github.com/gateway-go/gateway"
)

// Adjust books a correction that a person has decided, in cents, signed as it changes
// Order.Net. note is the ID of what says who decided it and why: one note books once.
func Adjust(o Order, note string, amount int64, currency gateway.Currency, at time.Time) (Order, Result) {
	l := ledger{order: &o, record: note, currency: currency, source: FromPerson, at: at}
	l.entry(EntryAdjusted, &o.Adjusted, key(EntryAdjusted, note), amount, None)
	return o, l.Result
}
