package merchant

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
)

// RefundParams describes a refund; its account is that of the charge. Exactly one of
// Amount, UpTo and Full is set. UpTo and Full are safer than Amount: earlier refunds count
// towards them, and their outcome can always be determined. A refund of an Amount is not
// sent if the gateway shows that more was refunded before than the books know of: someone
// else refunded, or the database was restored from a backup. Then
// [Callbacks.RefundRejected] is called, and a refund with another ID can follow.
type RefundParams struct {
	ID     string // of the return or complaint, unique among all refunds; required
	Charge string // the ID of the charge; or
	Order  string // the ID of the order, if only one of its charges has money left

	Amount int64  // cents, in addition to what the books show as refunded, or as being refunded
	UpTo   int64  // cents, including what was refunded before
	Full   bool   // everything that is left
	Reason string // for the gateway, at most 500 characters
}

// RefundTx stores a refund in your transaction. [Merchant.Run] sends it after the commit,
// at most once, and calls [Callbacks.Refunded] or [Callbacks.RefundRejected].
//
// Calling it again with the same ID and parameters returns the existing refund. The error
// is [ErrReused] if the parameters differ, [ErrLeft] if less is left of the charge than
// the refund asks for, counting refunds under way, [ErrNotFound] if there is no such
// charge, [ErrState] if it was not paid, or the order has several charges with money left,
// and [gateway.ErrValidation] if a parameter is invalid. Then nothing was stored.
func (m *Merchant[TX]) RefundTx(ctx context.Context, tx TX, p RefundParams) (*Refund, error) {
	return m.refundTx(ctx, m.in(tx), p)
}

func (m *core) refundTx(ctx context.Context, tx sqldb.Tx, p RefundParams) (r *Refund, err error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	l := m.ledger(tx)
	if r, err := m.existingRefund(ctx, l, &p); r != nil || err != nil {
		return r, err
	}
	ch, err := m.refundable(ctx, l, &p)
	if err != nil {
		return nil, err
	}
	err = m.on(ctx, tx, at(&ch.Row), func(b *bench) error {
		// Another transaction may have stored it before this one got the lock.
		if r, err = m.existingRefund(ctx, l, &p); r != nil || err != nil {
			return err
		}
		ch, err := b.charge(ch.ID)
		if err != nil {
			return err
		}
		r, err = b.refund(ctx, ch, &p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (p *RefundParams) validate() error {
	if (p.Charge == "") == (p.Order == "") {
		return invalid(kindRefund, "charge", "is required unless order is set, and only one of the two may be set")
	}
	if err := p.operation("1").Validate(); err != nil {
		return err
	}
	return identify(kindRefund, "id", p.ID, "your return or complaint")
}

func (p *RefundParams) operation(transaction string) operations.Refund {
	return operations.Refund{Key: p.ID, TransactionID: transaction, Amount: p.Amount, UpTo: p.UpTo, Full: p.Full, Reason: p.Reason}
}

// existingRefund returns the refund with the ID, or nil.
func (m *core) existingRefund(ctx context.Context, l ledger.Ledger, p *RefundParams) (*Refund, error) {
	r, ch, err := m.loadRefund(ctx, l, p.ID)
	if r == nil || err != nil {
		return nil, err
	}
	if r.Amount != p.Amount || r.UpTo != p.UpTo || r.Full != p.Full || p.Charge != "" && p.Charge != ch.ID ||
		p.Order != "" && ledger.OrderSubject(p.Order) != ch.Subject {
		return nil, fmt.Errorf("%w: refund %s", ErrReused, p.ID)
	}
	return ch.refund(&r.Refund), nil
}

// refundable returns the charge that a refund is about.
func (m *core) refundable(ctx context.Context, l ledger.Ledger, p *RefundParams) (*charge, error) {
	if p.Charge != "" {
		return m.loadCharge(ctx, l, p.Charge)
	}
	list, err := m.loadCharges(ctx, l, ledger.Where{Subject: ledger.OrderSubject(p.Order)})
	if err != nil {
		return nil, err
	}
	var found, paid *charge
	for _, ch := range list {
		if ch.Books.Paid > 0 {
			paid = ch
		}
		switch {
		case ch.Books.Left() <= 0:
		case found != nil:
			return nil, fmt.Errorf("%w: several charges of order %s have money left: name one in Charge, such as %s or %s", ErrState, p.Order, found.ID, ch.ID)
		default:
			found = ch
		}
	}
	switch {
	case found != nil:
		return found, nil
	case paid != nil:
		return paid, nil
	case len(list) > 0:
		return nil, fmt.Errorf("%w: order %s was not paid", ErrState, p.Order)
	}
	return nil, fmt.Errorf("%w: order %s", ErrNotFound, p.Order)
}

// refund adds a refund of a charge and its request.
func (b *bench) refund(ctx context.Context, ch *charge, p *RefundParams) (*Refund, error) {
	is := ch.books(&b.order.Order)
	wanted := p.Amount
	switch {
	case ch.Books.Paid == 0:
		return nil, fmt.Errorf("%w: charge %s is %s", ErrState, ch.ID, ch.Books.State)
	case p.Full:
		wanted = max(1, is.Refundable())
	case p.UpTo > 0:
		wanted = p.UpTo - (ch.Books.Paid - ch.Books.Disputed - is.Refundable())
	}
	if left := is.Refundable(); wanted > left {
		return nil, fmt.Errorf("%w: charge %s has %d cents left that no refund under way may take", ErrLeft, ch.ID, left)
	}
	op := p.operation(ch.Books.TransactionID)
	if p.Amount > 0 {
		planned := is.Planned()
		op.RefundedAtMost = &planned
	}
	if err := b.requests.insert(ctx, ch.account, op, "refund "+p.ID); err != nil {
		return nil, err
	}
	r := &refund{Refund: books.Refund{ID: p.ID, Operation: books.Waiting, State: New, Amount: p.Amount, UpTo: p.UpTo, Full: p.Full}}
	ch.refunds, ch.touched = append(ch.refunds, r), true
	return ch.refund(&r.Refund), nil
}

// Refund is [Merchant.RefundTx] in a transaction of its own. It sends the refund at once
// and reads the transaction. If the refund was stored and can't be sent now, it returns
// the refund without an error: [Merchant.Run] sends it.
func (m *core) Refund(ctx context.Context, p RefundParams) (*Refund, error) {
	var r *Refund
	if err := m.db.Transaction(ctx, func(tx sqldb.Tx) (err error) {
		r, err = m.refundTx(ctx, tx, p)
		return err
	}); err != nil {
		return nil, err
	}
	if r.State != New {
		return r, nil
	}
	sent, err := m.sendRefund(ctx, r)
	if err != nil {
		m.fail(ctx, "a refund was stored and could not be sent or read at once", err)
		return r, nil
	}
	return sent, nil
}

func (m *core) sendRefund(ctx context.Context, r *Refund) (*Refund, error) {
	if err := m.send(ctx, m.anyAccount(r.Account), kindRefund, r.ID); err != nil {
		return nil, err
	}
	if err := m.look(ctx, ledger.Charges, r.Charge, books.FromResponse); err != nil {
		return nil, err
	}
	now, ch, err := m.loadRefund(ctx, m.outside(), r.ID)
	if err != nil || now == nil {
		return nil, errors.Join(err, ctx.Err())
	}
	return ch.refund(&now.Refund), nil
}

// storeRefund stores the outcome of the request for a refund. What it moved is booked when
// the transaction is read.
func (m *core) storeRefund(ctx context.Context, tx sqldb.Tx, a *account, r operations.RefundResult) error {
	l := m.ledger(tx)
	id := r.Operation.Key
	_, ch, err := m.loadRefund(ctx, l, id)
	if err == nil && (ch == nil || ch.account != a) {
		err = fmt.Errorf("%w: refund %s", ErrNotFound, id)
	}
	if err != nil {
		return err
	}
	p := at(&ch.Row)
	p.ends = id
	return m.on(ctx, tx, p, func(b *bench) error {
		ch, err := b.charge(ch.ID)
		if err != nil {
			return err
		}
		op, reason := outcome(r.Err, r.Operation)
		moved := int64(0)
		if r.Err == nil {
			moved = r.Value.AmountRefunded
		}
		b.change(ch, func(is books.Books) (books.Books, books.Result) {
			return books.ApplyRefund(is, id, op, moved, reason, b.now)
		})
		return nil
	})
}

// RefundAgain is a [Callbacks.PaidAgain] that refunds the charge in full, in the same
// transaction.
func RefundAgain[TX any](ctx context.Context, tx TX, c *Charge) error {
	_, err := c.account.m.refundTx(ctx, c.account.m.in(tx), RefundParams{
		ID: fmt.Sprintf("again-%s-%d", strings.ToLower(c.TransactionID), c.Paid), Charge: c.ID, Full: true, Reason: "paid again",
	})
	if errors.Is(err, ErrLeft) {
		return nil // it goes back already
	}
	return err
}
