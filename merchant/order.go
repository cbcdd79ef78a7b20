package merchant

import (
	"context"
	"errors"

	"github.com/gateway-go/gateway/internal/sqldb"
)

// Order returns the money of an order with its charges, refunds and payouts. All is zero if it has
// none.
func (m *core) Order(ctx context.Context, id string) (*Order, error) {
	return m.readOrder(ctx, m.db.Conn(), orderSubject(id), true)
}

// readOrder reads an order, with its charges, refunds and payouts if they are wanted.
func (m *core) readOrder(ctx context.Context, c sqldb.Session, subject string, records bool) (*Order, error) {
	stored, _, err := readOrder(ctx, c, subject, "")
	o := &Order{ID: orderID(subject)}
	if err != nil || stored == nil {
		return o, err
	}
	o.Currency, o.Paid, o.Fee, o.Refunded, o.Disputed = stored.Currency, stored.Paid, stored.Fee, stored.Refunded, stored.Disputed
	o.PaidOut = stored.PaidOut
	o.Adjusted = stored.Adjusted
	o.Settled, o.Closed, o.settledBy = stored.SettledBy != "", stored.Closed, stored.SettledBy
	if !records {
		return o, nil
	}
	if _, err := c.Row(ctx, `SELECT current FROM {s}gateway_orders WHERE subject = ?`, []any{subject}, &o.current); err != nil {
		return nil, err
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
func (m *Merchant[TX]) CloseOrderTx(ctx context.Context, tx TX, order string) error {
	return m.closeOrderTx(ctx, m.in(tx), order)
}

func (m *core) closeOrderTx(ctx context.Context, tx sqldb.Tx, order string) error {
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
	return d.saveWith(ctx)
}
