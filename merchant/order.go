package merchant

import (
	"context"
	"errors"

	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// Order returns the money of an order with its charges, refunds and payouts. All is zero if it
// has none. The error is [ErrAccount] if there are several books, see [Merchant.Book].
func (m *reading) Order(ctx context.Context, id string) (*Order, error) {
	return m.orderIn(ctx, m.outside(), id)
}

func (m *reading) orderIn(ctx context.Context, l ledger.Ledger, id string) (*Order, error) {
	subject, err := m.orderSubject(ctx, id)
	if err != nil {
		return nil, err
	}
	return m.showOrder(ctx, l, subject, true)
}

// OrderTx is [Merchant.Order] in your transaction. A callback uses it: one that reads beside
// its transaction does not see what the transaction has changed, and takes another connection.
func (m *Merchant[TX]) OrderTx(ctx context.Context, tx TX, id string) (*Order, error) {
	return m.orderIn(ctx, m.ledger(m.in(tx)), id)
}

// showOrder returns what has money, with its charges, refunds and payouts if they are wanted.
func (m *reading) showOrder(ctx context.Context, l ledger.Ledger, subject ledger.Subject, records bool) (*Order, error) {
	stored, is, err := l.Order(ctx, subject, ledger.With{Charges: records})
	if err != nil {
		return nil, err
	}
	o := shownOrder(subject, stored)
	if stored == nil || !records {
		return o, nil
	}
	charges, err := m.chargesOf(is)
	if err != nil {
		return nil, err
	}
	for _, ch := range charges {
		o.Charges = append(o.Charges, ch.shown())
	}
	for i := range is.Refunds {
		r, err := refundOf(&is.Refunds[i])
		if err != nil {
			return nil, err
		}
		o.Refunds = append(o.Refunds, r.shown())
	}
	payouts, err := l.Rows(ctx, ledger.Payouts, ledger.Where{Subject: subject})
	if err != nil {
		return nil, err
	}
	for i := range payouts {
		p, err := m.payoutOf(&payouts[i])
		if err != nil {
			return nil, err
		}
		o.Payouts = append(o.Payouts, p.shown())
	}
	return o, nil
}

// shownOrder returns an order as the merchant gets it, without its records. It is nil before it
// has any.
func shownOrder(subject ledger.Subject, stored *ledger.Order) *Order {
	o := &Order{Book: subject.Book, ID: ledger.OrderID(subject)}
	if stored == nil {
		return o
	}
	o.Currency, o.Paid, o.Fee, o.Refunded, o.Disputed = stored.Currency, stored.Paid, stored.Fee, stored.Refunded, stored.Disputed
	o.PaidOut, o.Adjusted, o.Erased = stored.PaidOut, stored.Adjusted, erasedAt(stored.ErasedAt)
	o.Price, o.Interest = stored.Price, stored.Interest
	if stored.PriceCurrency != stored.Currency {
		o.PriceCurrency = stored.PriceCurrency
	}
	o.Settled, o.Closed, o.SettledBy, o.Latest = stored.SettledBy != "", stored.Closed, stored.SettledBy, stored.Current
	return o
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
	if err := identify("orders.close", "order", order, "your order"); err != nil {
		return err
	}
	subject, err := m.orderSubject(ctx, order)
	if err != nil {
		return err
	}
	return m.on(ctx, tx, place{subject: subject, charges: true}, func(b *bench) error {
		b.order.Closed = true
		for _, ch := range b.charges {
			if ch.Books.State != New {
				continue
			}
			if err := b.withdraw(ctx, ch); err != nil && !errors.Is(err, ErrUnknown) { // it is being sent
				return err
			}
		}
		b.unneeded(nil)
		return nil
	})
}
