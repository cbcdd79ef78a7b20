package merchant

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Order returns the money of an order with its charges, refunds and payouts. All is zero if it has
// none.
func (m *Merchant) Order(ctx context.Context, id string) (*Order, error) {
	return m.readOrder(ctx, m.store.conn(), orderSubject(id), true)
}

// readOrder reads an order, with its charges, refunds and payouts if they are wanted.
func (m *Merchant) readOrder(ctx context.Context, c conn, subject string, records bool) (*Order, error) {
	stored, _, err := readOrder(ctx, c, subject, "")
	o := &Order{ID: orderID(subject)}
	if err != nil || stored == nil {
		return o, err
	}
	o.Currency, o.Paid, o.Fee, o.Refunded, o.Disputed = stored.Currency, stored.Paid, stored.Fee, stored.Refunded, stored.Disputed
	o.PaidOut = stored.PaidOut
	o.Settled, o.Closed, o.settledBy = stored.SettledBy != "", stored.Closed, stored.SettledBy
	if !records {
		return o, nil
	}
	charges, err := m.readCharges(ctx, c, `WHERE subject = ? ORDER BY attempt`, subject)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*charge, len(charges))
	for _, ch := range charges {
		byID[ch.Books.ID] = ch
		o.Charges = append(o.Charges, ch.shown())
	}
	refunds, err := readRefunds(ctx, c, `WHERE c.subject = ?`, subject)
	if err != nil {
		return nil, err
	}
	for i := range refunds {
		if ch := byID[refunds[i].charge]; ch != nil { // else it is newer than the charges
			o.Refunds = append(o.Refunds, ch.refund(&refunds[i].Refund))
		}
	}
	payouts, err := m.readPayouts(ctx, c, `WHERE subject = ? ORDER BY created_at, id`, subject)
	if err != nil {
		return nil, err
	}
	for _, p := range payouts {
		o.Payouts = append(o.Payouts, p.shown())
	}
	return o, nil
}

// CloseOrderTx declares in your transaction that an order wants no more money, because it
// was canceled or paid in another way. A charge that was not sent yet is withdrawn. A later
// payment is [Callbacks.PaidAgain], and the order can't be charged again.
//
// What was paid before stays: refund it, or keep it. A second call changes nothing.
func (m *Merchant) CloseOrderTx(ctx context.Context, tx *sql.Tx, order string) error {
	if order == "" {
		return invalid("orders.close", "order", "is required")
	}
	d, err := m.open(ctx, tx, orderSubject(order))
	if err != nil {
		return err
	}
	d.order.Closed = true
	charges, err := m.readCharges(ctx, d.c, `WHERE subject = ? AND state = ?`, d.order.ID, string(New))
	if err != nil {
		return err
	}
	for _, ch := range charges {
		if err := d.load(ctx, ch.Books.ID); err != nil {
			return err
		}
		if d.charge.Books.State == New {
			if err := d.withdraw(ctx); err != nil && !errors.Is(err, ErrUnknown) { // it is being sent
				return err
			}
		}
		if err := d.save(ctx); err != nil {
			return err
		}
	}
	return d.saveOrder(ctx)
}

// Problems lists what a person must decide or look at, the oldest first. Alert if there
// are any.
func (m *Merchant) Problems(ctx context.Context) ([]*Problem, error) {
	return m.readProblems(ctx, m.store.conn(), `WHERE closed_at IS NULL ORDER BY id`)
}

// CloseProblem takes a problem off the list that a person has settled. The error is
// [ErrNotFound] if none that is open has the ID.
func (m *Merchant) CloseProblem(ctx context.Context, id int64) error {
	n, err := m.store.conn().exec(ctx, `UPDATE gateway_problems SET closed_at = {now} WHERE id = ? AND closed_at IS NULL`, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: problem %d", ErrNotFound, id)
	}
	return err
}
