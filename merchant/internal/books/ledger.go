package books

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
)

// Books are the records that a reading of a transaction, or the outcome of a request
// about it, can change: what the caller loads under the lock of the order. Refunds are
// those of the charge, the oldest first. Each must be marked as [Sent] before its
// request is sent, as the outbox does, or its effect is taken for someone else's.
type Books struct {
	Order   Order
	Charge  Charge
	Refunds []Refund
}

// ledger collects what one call changes.
type ledger struct {
	order    *Order
	record   string    // the ID of the record that facts and problems are about
	about    About     // what the record is
	raised   *[]Raised // what the record remembers of problems
	currency gateway.Currency
	source   Source
	at       time.Time // when facts happened
	now      time.Time // when the reading or the outcome was made
	Result
}

// fact adds a fact about the ledger's record.
func (l *ledger) fact(kind Kind, key string, callback Callback) *Fact {
	if l.source == FromEarlier {
		callback = None
	}
	l.Outcome = Changed
	l.Facts = append(l.Facts, Fact{Key: key, Kind: kind, Order: l.order.ID, Record: l.record, At: l.at, Source: l.source, Callback: callback})
	return &l.Facts[len(l.Facts)-1]
}

// entry books an amount, signed as it changes Order.Net. sum is the order's sum of such
// entries: only what was paid and corrections count upwards. In another currency than the
// order's it is in no sum, which is a problem.
func (l *ledger) entry(kind Kind, sum *int64, key string, amount int64, callback Callback) {
	f := l.fact(kind, key, callback)
	f.Amount, f.Currency = amount, l.currency
	l.order.Currency = cmp.Or(l.order.Currency, l.currency)
	switch {
	case l.order.Currency != l.currency:
		l.raise(string(IsForeign)+"/"+l.record+"/"+key, IsForeign, "%s: %s, %s is not in the sums of %s, which are in %s",
			l.record, kind, gateway.FormatAmount(amount, l.currency), l.order.ID, l.order.Currency)
	case kind == EntryPaid, kind == EntryAdjusted:
		*sum += amount
	default:
		*sum -= amount
	}
}

// cents writes an amount in a key.
func cents(n int64) string { return strconv.FormatInt(n, 10) }

// key joins the parts of a key.
func key(kind Kind, parts ...string) string { return string(kind) + "/" + strings.Join(parts, "/") }

// patience is how long readings may report less than is booked, or not show a refund that
// was confirmed, before a person must look: by then it is no reading that was overtaken by
// another one.
const patience = 24 * time.Hour

// judge notes whether a reading reports less than is booked, and returns whether such
// readings have continued for too long. One that does not ends the problem.
func (l *ledger) judge(lower bool, readAt, since *time.Time) (tooLong bool) {
	switch {
	case !lower && !l.now.Before(*readAt):
		*readAt, *since = l.now, time.Time{}
		l.over(IsLower)
	case lower && l.now.After(*readAt) && since.IsZero():
		*since = l.now
	}
	return lower && !since.IsZero() && l.now.Sub(*since) >= patience
}

// order compares a reading with the one that gave a record its state, by the gateway's
// time of the last change. It returns 0 if that does not tell.
func order(reading, record time.Time) int {
	if reading.IsZero() || record.IsZero() {
		return 0
	}
	return reading.Compare(record)
}
