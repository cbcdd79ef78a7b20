package merchant

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
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

func (m *core) refundTx(ctx context.Context, tx sqldb.Tx, p RefundParams) (*Refund, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	c := m.db.In(tx)
	if r, err := p.existing(ctx, c, m); r != nil || err != nil {
		return r, err
	}
	ch, err := m.refundable(ctx, c, &p)
	if err != nil {
		return nil, err
	}
	d, err := m.open(ctx, tx, ch.subject)
	if err != nil {
		return nil, err
	}
	// Another transaction may have stored it before this one got the lock.
	if r, err := p.existing(ctx, c, m); r != nil || err != nil {
		return r, err
	}
	if err := d.load(ctx, ch.Books.ID); err != nil {
		return nil, err
	}
	return d.refund(ctx, &p)
}

func (p *RefundParams) validate() error {
	if (p.Charge == "") == (p.Order == "") {
		return invalid(kindRefund, "charge", "is required unless order is set, and only one of the two may be set")
	}
	return p.operation("1").Validate()
}

func (p *RefundParams) operation(transaction string) operations.Refund {
	return operations.Refund{Key: p.ID, TransactionID: transaction, Amount: p.Amount, UpTo: p.UpTo, Full: p.Full, Reason: p.Reason}
}

// existing returns the refund with the ID, or nil.
func (p *RefundParams) existing(ctx context.Context, c sqldb.Session, m *core) (*Refund, error) {
	list, err := readRefunds(ctx, c, `WHERE r.id = ?`, p.ID)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	r := &list[0]
	ch, err := m.readCharge(ctx, c, r.charge)
	if err != nil {
		return nil, err
	}
	if r.Amount != p.Amount || r.UpTo != p.UpTo || r.Full != p.Full || p.Charge != "" && p.Charge != r.charge || p.Order != "" && orderSubject(p.Order) != ch.subject {
		return nil, fmt.Errorf("%w: refund %s", ErrReused, p.ID)
	}
	return ch.refund(&r.Refund), nil
}

// refundable returns the charge that a refund is about.
func (m *core) refundable(ctx context.Context, c sqldb.Session, p *RefundParams) (*charge, error) {
	if p.Charge != "" {
		return m.readCharge(ctx, c, p.Charge)
	}
	list, err := m.readCharges(ctx, c, `WHERE subject = ? ORDER BY attempt`, orderSubject(p.Order))
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
			return nil, fmt.Errorf("%w: several charges of order %s have money left: name one in Charge, such as %s or %s", ErrState, p.Order, found.Books.ID, ch.Books.ID)
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

// refund stores a refund of the desk's charge and its operation.
func (d *desk) refund(ctx context.Context, p *RefundParams) (*Refund, error) {
	ch := d.charge
	b := books.Books{Order: d.order, Charge: ch.Books, Refunds: d.refunds}
	wanted := p.Amount
	switch {
	case ch.Books.Paid == 0:
		return nil, fmt.Errorf("%w: charge %s is %s", ErrState, ch.Books.ID, ch.Books.State)
	case p.Full:
		wanted = max(1, b.Refundable())
	case p.UpTo > 0:
		wanted = p.UpTo - (ch.Books.Paid - ch.Books.Disputed - b.Refundable())
	}
	if left := b.Refundable(); wanted > left {
		return nil, fmt.Errorf("%w: charge %s has %d cents left that no refund under way may take", ErrLeft, ch.Books.ID, left)
	}
	op := p.operation(ch.Books.TransactionID)
	if p.Amount > 0 {
		planned := b.Planned()
		op.RefundedAtMost = &planned
	}
	if _, err := ch.account.outbox.InsertTx(ctx, d.tx, op); err != nil {
		if errors.Is(err, operations.ErrKeyReused) {
			return nil, fmt.Errorf("%w: refund %s", ErrReused, p.ID)
		}
		return nil, err
	}
	r := books.Refund{ID: p.ID, Operation: books.Waiting, State: New, Amount: p.Amount, UpTo: p.UpTo, Full: p.Full}
	record, err := encoded(&r)
	if err != nil {
		return nil, err
	}
	if err := d.c.Must(ctx, `INSERT INTO {s}gateway_refunds (id, charge, state, created_at, record) VALUES (?, ?, ?, {now}, ?)`,
		r.ID, ch.Books.ID, string(r.State), record); err != nil {
		if dbms.IsTaken(err) { // at the same time, for an order of another account
			return nil, fmt.Errorf("%w: refund %s: %w", ErrReused, p.ID, err)
		}
		return nil, err
	}
	d.refunds, d.loaded = append(d.refunds, r), append(d.loaded, r)
	return ch.refund(&r), d.save(ctx)
}

// refund returns a refund of the charge as the merchant gets it.
func (ch *charge) refund(r *books.Refund) *Refund {
	return &Refund{ID: r.ID, Account: ch.account.Name, Charge: ch.Books.ID, State: r.State, Amount: r.Moved, Reason: r.Reason}
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
	if err := m.send(ctx, m.accounts[r.Account], kindRefund, r.ID); err != nil {
		return nil, err
	}
	if err := m.look(ctx, r.Charge, books.FromResponse); err != nil {
		return nil, err
	}
	c := m.db.Conn()
	ch, err := m.readCharge(ctx, c, r.Charge)
	if err != nil {
		return nil, err
	}
	list, err := readRefunds(ctx, c, `WHERE r.id = ?`, r.ID)
	if err != nil || len(list) == 0 {
		return nil, errors.Join(err, ctx.Err())
	}
	return ch.refund(&list[0].Refund), nil
}

// refunded stores the outcome of the request for a refund. What it moved is booked when
// the transaction is read.
func (m *core) refunded(ctx context.Context, tx sqldb.Tx, a *account, r operations.RefundResult) error {
	c := m.db.In(tx)
	list, err := readRefunds(ctx, c, `WHERE r.id = ? AND c.account = ?`, r.Operation.Key, a.Name)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%w: refund %s", ErrNotFound, r.Operation.Key)
	}
	if err != nil {
		return err
	}
	ch, err := m.readCharge(ctx, c, list[0].charge)
	if err != nil {
		return err
	}
	d, err := m.open(ctx, tx, ch.subject)
	if err == nil {
		err = d.load(ctx, ch.Books.ID)
	}
	if err != nil {
		return err
	}
	op, moved, reason := books.Applied, int64(0), ""
	if r.Err != nil {
		op, reason = books.Refused, r.Err.Error()
	} else {
		moved = r.Value.AmountRefunded
	}
	if err := d.change(ctx, func(b books.Books) (books.Books, books.Result) {
		return books.ApplyRefund(b, r.Operation.Key, op, moved, reason, d.now)
	}); err != nil {
		return err
	}
	return d.save(ctx)
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
