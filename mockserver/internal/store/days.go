package store

import (
	"slices"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// Day is the movement of an account's balance on one day of the virtual clock,
// in UTC.
type Day struct {
	At  time.Time // the beginning of the day
	In  int64     // incoming cents
	Out int64     // outgoing cents
}

// maxDays is how many days with movements an account stores.
const maxDays = 400

// book adds the effect of a change on the balance to the day of the change.
func (d *Data) book(c engine.Change) {
	at := movedAt(c).UTC().Truncate(24 * time.Hour)
	if len(d.Days) == 0 || d.Days[len(d.Days)-1].At.Before(at) {
		if len(d.Days) >= maxDays {
			d.Days = slices.Delete(d.Days, 0, len(d.Days)-maxDays+1)
		}
		d.Days = append(d.Days, Day{At: at})
	}
	day := &d.Days[len(d.Days)-1]
	if c.Balance > 0 {
		day.In += c.Balance
	} else {
		day.Out -= c.Balance
	}
}

// movedAt returns the time of a change that moves money. Only transactions and
// transfers do.
func movedAt(c engine.Change) (at time.Time) {
	for _, t := range c.Transactions {
		if t.UpdatedAt.After(at) {
			at = t.UpdatedAt
		}
	}
	for _, t := range c.Transfers {
		if t.UpdatedAt.After(at) {
			at = t.UpdatedAt
		}
	}
	return at
}
