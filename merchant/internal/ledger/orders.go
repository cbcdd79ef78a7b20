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

// Lock locks the order of a subject, and returns it with the database's time.
func (l Ledger) Lock(ctx context.Context, subject Subject, how Lock) (o *Order, now time.Time, err error) {
	switch how {
	case NoWait:
		o, now, err = l.order(ctx, subject, `{skip}`)
		if err == nil && o == nil {
			err = fmt.Errorf("%w: %s", ErrBusy, subject)
		}
		return o, now, err
	case Wait, Known:
		o, now, err = l.order(ctx, subject, `{lock}`)
		if err == nil && o == nil && how == Known {
			err = notFound("order", OrderID(subject))
		}
		if err != nil || o != nil {
			return o, now, err
		}
	case New:
	}
	var ms int64
	made, err := l.s.Row(ctx, `INSERT INTO {s}gateway_orders (book, subject, currency, paid, fee, refunded, disputed, paid_out, adjusted, settled_by)
		VALUES (?, ?, '', 0, 0, 0, 0, 0, 0, '') ON CONFLICT DO NOTHING RETURNING {now}`, []any{subject.Book, subject.ID}, &ms)
	if err != nil {
		return nil, now, err
	}
	if made {
		return &Order{Book: subject.Book, Order: books.Order{ID: subject.ID}}, time.UnixMilli(ms), nil
	}
	o, now, err = l.order(ctx, subject, `{lock}`)
	if err == nil && o == nil { // made by a transaction that this one, at a stricter level, does not see
		err = fmt.Errorf("merchant: %s was changed at the same time: roll back and repeat the transaction", subject)
	}
	return o, now, err
}

// Order returns the order of a subject, nil if there is none.
func (l Ledger) Order(ctx context.Context, subject Subject) (*Order, error) {
	o, _, err := l.order(ctx, subject, ``)
	return o, err
}

func (l Ledger) order(ctx context.Context, subject Subject, lock string) (o *Order, now time.Time, err error) {
	if !Storable(subject.Book, subject.ID) {
		return nil, now, nil
	}
	found, err := l.s.First(ctx, `SELECT currency, paid, fee, refunded, disputed, paid_out, adjusted, settled_by, closed_at IS NOT NULL, current,
			price, price_in, interest, owed, owed_facts, told, {clock}
		FROM {s}gateway_orders WHERE book = ? AND subject = ? `+lock, []any{subject.Book, subject.ID}, func(row database.Scanner) error {
		o = &Order{Book: subject.Book, Order: books.Order{ID: subject.ID}}
		var ms, owed, told int64
		if err := row.Scan(&o.Currency, &o.Paid, &o.Fee, &o.Refunded, &o.Disputed, &o.PaidOut, &o.Adjusted, &o.SettledBy, &o.Closed,
			&o.Current, &o.Price, &o.PriceCurrency, &o.Interest, &owed, &o.GoodsFacts, &told, &ms); err != nil {
			return err
		}
		now, o.Owed, o.Told = time.UnixMilli(ms), owed != 0, told != 0
		return nil
	})
	if !found {
		o = nil
	}
	return o, now, err
}

// Save returns the statement that stores a changed order.
func (o *Order) Save() Write {
	return Write{
		SQL: `UPDATE {s}gateway_orders SET currency = ?, paid = ?, fee = ?, refunded = ?, disputed = ?, paid_out = ?, adjusted = ?,
			settled_by = ?, current = ?, price = ?, price_in = ?, interest = ?, owed = ?, owed_facts = ?,
			closed_at = CASE WHEN ? = 0 THEN NULL ELSE COALESCE(closed_at, {now}) END WHERE book = ? AND subject = ?`,
		Args: []any{
			string(o.Currency), o.Paid, o.Fee, o.Refunded, o.Disputed, o.PaidOut, o.Adjusted, o.SettledBy, o.Current,
			o.Price, string(o.PriceCurrency), o.Interest, number(o.Owed), o.GoodsFacts, number(o.Closed), o.Book, o.ID,
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
