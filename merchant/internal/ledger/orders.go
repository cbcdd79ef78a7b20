package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// Order is a row of the table of orders.
type Order struct {
	books.Order

	Book    string
	Current string // the ID of the charge that was asked for last
	Told    bool   // the merchant was told that the goods are owed, and not the contrary since

	Adopting int // how many adoptions it waits for

	ErasedAt int64 // since when nothing is known of its buyer, in ms since 1970; 0 if something may be
	Purged   bool  // its operations are deleted
}

// Subject returns the order's subject.
func (o *Order) Subject() Subject { return Subject{o.Book, o.ID} }

// ErrBusy reports that another transaction has the order.
var ErrBusy = errors.New("merchant: another transaction has the order")

// Lock says how an order is locked.
type Lock int

// The locks.
const (
	Wait   Lock = iota // for the transaction that has it; the order is made if it is missing
	New                // as Wait, for an order that usually is missing
	Known              // as Wait, but returns ErrNotFound if the order is missing
	NoWait             // returns ErrBusy; the order exists. SQLite has one writer, which has every order
)

// With says which records of an order are read with it: its charges, the oldest first, and
// their refunds.
type With struct {
	Charges bool   // all
	Charge  string // only the charge with this ID, and its refunds
	Refund  string // only this refund
}

// Records are the records of an order that were read with it.
type Records struct {
	Charges []Row
	Refunds []Refund
}

// Lock locks the order of a subject, and returns it with the database's time and some of its
// records, as they are while it is locked.
func (l Ledger) Lock(ctx context.Context, subject Subject, how Lock, with With) (o *Order, is Records, now time.Time, err error) {
	switch how {
	case NoWait:
		o, is, now, err = l.order(ctx, subject, `{skip}`, with)
		if err == nil && o == nil {
			err = fmt.Errorf("%w: %s", ErrBusy, subject)
		}
		return o, is, now, err
	case Wait, Known:
		o, is, now, err = l.order(ctx, subject, `{lock}`, with)
		if err == nil && o == nil && how == Known {
			err = notFound("order", OrderID(subject))
		}
		if err != nil || o != nil {
			return o, is, now, err
		}
	case New:
	}
	var ms int64
	made, err := l.s.Row(ctx, `INSERT INTO {s}gateway_orders (book, subject, currency, paid, fee, refunded, disputed, paid_out, adjusted,
			settled_by, ends_at)
		VALUES (?, ?, '', 0, 0, 0, 0, 0, 0, '', {now}) ON CONFLICT DO NOTHING RETURNING {now}`, []any{subject.Book, subject.ID}, &ms)
	if err != nil {
		return nil, is, now, err
	}
	if made { // a new order has no records
		return &Order{Book: subject.Book, Order: books.Order{ID: subject.ID}}, is, time.UnixMilli(ms), nil
	}
	o, is, now, err = l.order(ctx, subject, `{lock}`, with)
	if err == nil && o == nil { // made by a transaction that this one, at a stricter level, does not see
		err = fmt.Errorf("merchant: %s was changed at the same time: roll back and repeat the transaction", subject)
	}
	return o, is, now, err
}

// Order returns the order of a subject and some of its records, nil if there is none.
func (l Ledger) Order(ctx context.Context, subject Subject, with With) (*Order, Records, error) {
	o, is, _, err := l.order(ctx, subject, ``, with)
	return o, is, err
}

// order reads an order and its records in one statement. The statement sees what was committed
// when it began, but the order as it is once it is locked: if another transaction has changed
// it or its records meanwhile, its version is another one, and they are read again.
func (l Ledger) order(ctx context.Context, subject Subject, lock string, with With) (o *Order, is Records, now time.Time, err error) {
	if !Storable(subject.Book, subject.ID, with.Charge, with.Refund) {
		return nil, is, now, nil
	}
	columns, from, args := `o.version, `+noRecord, ``, []any{subject.Book, subject.ID}
	if with != (With{}) {
		records, of := recordsOf(subject, with)
		columns = `(SELECT v.version FROM {s}gateway_orders AS v WHERE v.book = o.book AND v.subject = o.subject), ` + recordColumns
		from, args = ` LEFT JOIN (`+records+`) AS r ON TRUE`+recordOrder, append(args, of...)
	}
	var seen, version int64
	// The order is locked once, in a WITH of its own, and not once for each of its records.
	err = l.s.Each(ctx, `WITH o AS (SELECT * FROM {s}gateway_orders WHERE book = ? AND subject = ? `+lock+`)
		SELECT o.currency, o.paid, o.fee, o.refunded, o.disputed, o.paid_out, o.adjusted, o.settled_by, o.closed_at IS NOT NULL, o.current,
			o.price, o.price_in, o.interest, o.owed, o.owed_facts, o.told, o.adopting, COALESCE(o.erased_at, 0), o.purged_at IS NOT NULL, o.version, {clock}, `+columns+` FROM o`+from, args,
		func(row database.Scanner) error {
			o = &Order{Book: subject.Book, Order: books.Order{ID: subject.ID}}
			var ms, owed, told int64
			err := is.scan(row, subject, &o.Currency, &o.Paid, &o.Fee, &o.Refunded, &o.Disputed, &o.PaidOut, &o.Adjusted, &o.SettledBy, &o.Closed,
				&o.Current, &o.Price, &o.PriceCurrency, &o.Interest, &owed, &o.GoodsFacts, &told, &o.Adopting, &o.ErasedAt,
				&o.Purged, &version, &ms, &seen)
			now, o.Owed, o.Told = time.UnixMilli(ms), owed != 0, told != 0
			return err
		})
	if err == nil && o != nil && seen != version {
		is, err = l.records(ctx, subject, with)
	}
	return o, is, now, err
}

// records reads records of an order.
func (l Ledger) records(ctx context.Context, subject Subject, with With) (is Records, err error) {
	records, args := recordsOf(subject, with)
	err = l.s.Each(ctx, `SELECT `+recordColumns+` FROM (`+records+`) AS r`+recordOrder, args,
		func(row database.Scanner) error { return is.scan(row, subject) })
	return is, err
}

const (
	recordColumns = `COALESCE(r.part, 0), COALESCE(r.id, ''), COALESCE(r.account, ''), COALESCE(r.attempt, 0), COALESCE(r.ref, ''),
		COALESCE(r.resource, ''), COALESCE(r.end_to_end, ''), COALESCE(r.state, ''), COALESCE(r.created_at, 0), COALESCE(r.record, ''),
		COALESCE(r.erased_at, 0), COALESCE(r.buyer, 0)`
	noRecord    = `0, '', '', 0, '', '', '', '', 0, '', 0, 0`
	recordOrder = ` ORDER BY r.part, r.attempt, r.created_at, r.id`
)

// The parts of what recordsOf selects.
const (
	chargePart = 1
	refundPart = 2
)

// recordsOf selects the records of an order.
func recordsOf(subject Subject, with With) (query string, args []any) {
	if with.Refund != "" {
		return `SELECT 2 AS part, f.id, c.account, 0 AS attempt, f.charge AS ref, '' AS resource, '' AS end_to_end, f.state, f.created_at, f.record,
				c.erased_at, 0 AS buyer
			FROM {s}gateway_refunds AS f JOIN {s}gateway_charges AS c ON c.id = f.charge WHERE f.book = ? AND f.id = ?`,
			[]any{subject.Book, with.Refund}
	}
	where, args := `c.subject = ? AND c.book = ?`, []any{subject.ID, subject.Book}
	if with.Charge != "" {
		where, args = where+` AND c.id = ?`, append(args, with.Charge)
	}
	return `SELECT 1 AS part, c.id, c.account, c.attempt, COALESCE(c.ref, '') AS ref, COALESCE(c.transaction_id, '') AS resource,
			COALESCE(c.end_to_end_id, '') AS end_to_end, c.state, c.created_at, c.record, c.erased_at, c.buyer
			FROM {s}gateway_charges AS c WHERE ` + where + `
		UNION ALL SELECT 2, f.id, c.account, 0, f.charge, '', '', f.state, f.created_at, f.record, c.erased_at, 0
			FROM {s}gateway_charges AS c JOIN {s}gateway_refunds AS f ON f.charge = c.id WHERE ` + where, append(args, args...)
}

// scan reads columns, and adds the record that follows them.
func (is *Records) scan(row database.Scanner, subject Subject, columns ...any) error {
	var part int
	var created int64
	r := Row{Kind: Charges, Subject: subject}
	err := row.Scan(append(columns, &part, &r.ID, &r.Account, &r.Attempt, &r.Ref, &r.Resource, &r.EndToEnd, &r.State, &created, &r.Record,
		&r.ErasedAt, &r.Buyer)...)
	r.Created = time.UnixMilli(created)
	switch part {
	case chargePart:
		is.Charges = append(is.Charges, r)
	case refundPart:
		is.Refunds = append(is.Refunds, Refund{
			ID: r.ID, Charge: r.Ref, Account: r.Account, Subject: subject, State: r.State, Record: r.Record,
		})
	}
	return err
}

// Save returns the statement that stores an order. What changes its records saves it too: its
// version shows that they have changed.
func (o *Order) Save() Write {
	return Write{
		SQL: `UPDATE {s}gateway_orders SET version = version + 1, currency = ?, paid = ?, fee = ?, refunded = ?, disputed = ?, paid_out = ?, adjusted = ?,
			settled_by = ?, current = ?, price = ?, price_in = ?, interest = ?, owed = ?, owed_facts = ?,
			erased_at = ?, purged_at = CASE WHEN ? = 0 THEN NULL ELSE COALESCE(purged_at, {now}) END,
			closed_at = CASE WHEN ? = 0 THEN NULL ELSE COALESCE(closed_at, {now}) END WHERE book = ? AND subject = ?`,
		Args: []any{
			string(o.Currency), o.Paid, o.Fee, o.Refunded, o.Disputed, o.PaidOut, o.Adjusted, o.SettledBy, o.Current,
			o.Price, string(o.PriceCurrency), o.Interest, number(o.Owed), o.GoodsFacts, nullTime(o.ErasedAt), number(o.Purged), number(o.Closed), o.Book, o.ID,
		},
	}
}

// Tell stores whether the merchant was told that the goods are owed.
func (l Ledger) Tell(ctx context.Context, s Subject, owed bool) error {
	return l.s.Must(ctx, `UPDATE {s}gateway_orders SET told = ? WHERE book = ? AND subject = ?`, number(owed), s.Book, s.ID)
}

// Told returns what the merchant heard last of a subscription's access.
func (l Ledger) Told(ctx context.Context, s Subject) (told string, err error) {
	_, err = l.first(ctx, `SELECT told FROM {s}gateway_subscriptions WHERE book = ? AND id = ?`, []any{s.Book, SubscriptionID(s)}, &told)
	return told, err
}

// TellMember stores what the merchant has heard of a subscription's access.
func (l Ledger) TellMember(ctx context.Context, s Subject, access string) error {
	return l.s.Must(ctx, `UPDATE {s}gateway_subscriptions SET told = ? WHERE book = ? AND id = ?`, access, s.Book, SubscriptionID(s))
}
