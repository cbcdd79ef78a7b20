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

	Current string // the ID of the charge that was asked for last
}

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
func (l Ledger) Lock(ctx context.Context, subject string, how Lock) (o *Order, now time.Time, err error) {
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
	made, err := l.s.Row(ctx, `INSERT INTO {s}gateway_orders (subject, currency, paid, fee, refunded, disputed, paid_out, adjusted, settled_by)
		VALUES (?, '', 0, 0, 0, 0, 0, 0, '') ON CONFLICT DO NOTHING RETURNING {now}`, []any{subject}, &ms)
	if err != nil {
		return nil, now, err
	}
	if made {
		return &Order{Order: books.Order{ID: subject}}, time.UnixMilli(ms), nil
	}
	o, now, err = l.order(ctx, subject, `{lock}`)
	if err == nil && o == nil { // made by a transaction that this one, at a stricter level, does not see
		err = fmt.Errorf("merchant: %s was changed at the same time: roll back and repeat the transaction", subject)
	}
	return o, now, err
}

// Order returns the order of a subject, nil if there is none.
func (l Ledger) Order(ctx context.Context, subject string) (*Order, error) {
	o, _, err := l.order(ctx, subject, ``)
	return o, err
}

func (l Ledger) order(ctx context.Context, subject, lock string) (o *Order, now time.Time, err error) {
	if !Storable(subject) {
		return nil, now, nil
	}
	found, err := l.s.First(ctx, `SELECT currency, paid, fee, refunded, disputed, paid_out, adjusted, settled_by, closed_at IS NOT NULL, current, {clock}
		FROM {s}gateway_orders WHERE subject = ? `+lock, []any{subject}, func(row database.Scanner) error {
		o = &Order{Order: books.Order{ID: subject}}
		var ms int64
		if err := row.Scan(&o.Currency, &o.Paid, &o.Fee, &o.Refunded, &o.Disputed, &o.PaidOut, &o.Adjusted, &o.SettledBy, &o.Closed,
			&o.Current, &ms); err != nil {
			return err
		}
		now = time.UnixMilli(ms)
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
			settled_by = ?, current = ?, closed_at = CASE WHEN ? = 0 THEN NULL ELSE COALESCE(closed_at, {now}) END WHERE subject = ?`,
		Args: []any{
			string(o.Currency), o.Paid, o.Fee, o.Refunded, o.Disputed, o.PaidOut, o.Adjusted, o.SettledBy, o.Current, number(o.Closed), o.ID,
		},
	}
}
