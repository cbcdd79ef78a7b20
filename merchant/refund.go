package merchant

import (
	"context"
	"errors"
	"fmt"

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
	ID     string // of the return or complaint, unique among the refunds of the charge's book; required
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
// [ErrAdopting] if the order waits for an adoption, and [gateway.ErrValidation] if a parameter is
// invalid. Then nothing was stored. About your COMMIT see [ErrMaybeStored].
func (m *Merchant[TX]) RefundTx(ctx context.Context, tx TX, p RefundParams) (*Refund, error) {
	return m.refundTx(ctx, m.in(tx), p, nil)
}

func (m *core) refundTx(ctx context.Context, tx sqldb.Tx, p RefundParams, by *sender) (r *Refund, err error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	refund := func(b *bench) error {
		for _, ch := range b.charges {
			for _, stored := range ch.refunds {
				if stored.ID == p.ID {
					r, err = p.existing(stored, ch)
					return err
				}
			}
		}
		ch, err := b.refundable(&p)
		if err != nil {
			return err
		}
		r, err = b.refund(ch, &p, by)
		return err
	}
	if p.Charge != "" {
		err = m.onCharge(ctx, tx, p.Charge, refund)
	} else {
		var subject ledger.Subject
		if subject, err = m.orderSubject(ctx, p.Order); err == nil {
			err = m.on(ctx, tx, place{subject: subject, lock: ledger.Known, charges: true}, refund)
		}
		if errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("%w; if other code has charged it, Adopt that first", err)
		}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// onCharge is on for the order of a charge. The ID of most charges names the order.
func (m *core) onCharge(ctx context.Context, tx sqldb.Tx, id string, work func(*bench) error) error {
	for _, a := range m.sorted() {
		order, ok := orderOf(a, id)
		if !ok {
			continue
		}
		found := false
		err := m.on(ctx, tx, place{subject: ledger.OrderSubject(a.Book, order), lock: ledger.Known, charges: true}, func(b *bench) error {
			if _, err := b.charge(id); err != nil {
				return err
			}
			found = true
			return work(b)
		})
		if found || !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	row, err := m.ledger(tx).Charge(ctx, id)
	if err != nil {
		return err
	}
	if m.ofBook != "" && m.ofBook != row.Subject.Book {
		return fmt.Errorf("%w: charge %s in the book %s", ErrNotFound, id, m.ofBook)
	}
	return m.on(ctx, tx, at(row), work)
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

// existing returns a refund that is asked for again. One of another order has no place on the
// bench: its ID is taken.
func (p *RefundParams) existing(r *refund, ch *charge) (*Refund, error) {
	if r.Amount != p.Amount || r.UpTo != p.UpTo || r.Full != p.Full || p.Charge != "" && p.Charge != ch.ID {
		return nil, fmt.Errorf("%w: refund %s", ErrReused, p.ID)
	}
	return ch.refund(&r.Refund), nil
}

// refundable returns the charge that a refund is about.
func (b *bench) refundable(p *RefundParams) (*charge, error) {
	if p.Charge != "" {
		return b.charge(p.Charge)
	}
	if b.order.Adopting > 0 { // money of its other charges may be left
		return nil, fmt.Errorf("%w: order %s", ErrAdopting, p.Order)
	}
	var found, paid *charge
	for _, ch := range b.charges {
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
	case len(b.charges) > 0:
		return nil, fmt.Errorf("%w: order %s was not paid", ErrState, p.Order)
	}
	return nil, fmt.Errorf("%w: order %s", ErrNotFound, p.Order)
}

// refund adds a refund of a charge and its request.
func (b *bench) refund(ch *charge, p *RefundParams, by *sender) (*Refund, error) {
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
	if err := ch.account.present(); err != nil {
		return nil, err
	}
	r := &refund{Refund: books.Refund{ID: p.ID, Operation: books.Waiting, State: New, Amount: p.Amount, UpTo: p.UpTo, Full: p.Full}}
	ch.refunds, ch.touched = append(ch.refunds, r), true
	shown := ch.refund(&r.Refund)
	shown.charge = ch
	b.sends = append(b.sends, send{ch.account, op, "refund " + p.ID, by})
	return shown, nil
}

// Refund is [Merchant.RefundTx] in a transaction of its own. It sends the refund at once
// and reads the transaction. If the refund was stored and can't be sent now, it returns
// the refund without an error: [Merchant.Run] sends it. What the order waits for is adopted first,
// see [Merchant.Adopt]. After [ErrMaybeStored] call it again; after any other error nothing is
// stored.
func (m *core) Refund(ctx context.Context, p RefundParams) (*Refund, error) {
	r, err := m.refundNow(ctx, p)
	if !errors.Is(err, ErrAdopting) {
		return r, err
	}
	subject, err := m.orderSubject(ctx, p.Order)
	if err == nil {
		err = m.adoptOrder(ctx, subject)
	}
	if err != nil {
		return nil, err
	}
	return m.refundNow(ctx, p)
}

func (m *core) refundNow(ctx context.Context, p RefundParams) (*Refund, error) {
	var r *Refund
	by := &sender{}
	if err := m.sends(ctx, by, func(ctx context.Context, tx sqldb.Tx) (err error) {
		r, err = m.refundTx(ctx, tx, p, by)
		return err
	}); err != nil {
		return nil, err
	}
	if r.State != New && !by.lost {
		return r, nil
	}
	sent, err := m.sendRefund(ctx, r, by)
	if err != nil {
		m.fail(ctx, "a refund was stored and could not be sent or read at once", err)
		return r, nil
	}
	return sent, nil
}

func (m *core) sendRefund(ctx context.Context, r *Refund, by *sender) (*Refund, error) {
	ch := r.charge
	if ch != nil {
		ctx = context.WithValue(ctx, waiting{}, &outcomeOf{ref: r.ID, of: ch})
	}
	if err := m.sendBy(ctx, m.anyAccount(r.Account, r.Book), by, kindRefund, r.ID); err != nil {
		return nil, err
	}
	if ch == nil { // another call has stored the refund
		var err error
		if ch, err = m.loadCharge(ctx, m.outside(), r.Charge); err != nil {
			return nil, err
		}
	}
	book, err := ch.read(ctx, books.FromResponse)
	if err != nil {
		return nil, err
	}
	sent := r
	err = m.surely(ctx, at(&ch.Row), func(b *bench) error {
		if err := book(b); err != nil {
			return err
		}
		ch, err := b.charge(r.Charge)
		if err != nil {
			return err
		}
		for _, now := range ch.refunds {
			if now.ID == r.ID {
				sent = ch.refund(&now.Refund)
			}
		}
		return nil
	})
	return sent, err
}

// storeRefund stores the outcome of the request for a refund. What it moved is booked when
// the transaction is read.
func (m *core) storeRefund(ctx context.Context, tx sqldb.Tx, a *account, r operations.RefundResult) error {
	id := r.Operation.Key
	of, err := m.chargeOfRefund(ctx, tx, a, id)
	if err != nil {
		return err
	}
	p := at(of)
	p.ends, p.of = request{kindRefund, id}, a.Name
	return m.on(ctx, tx, p, func(b *bench) error {
		ch, err := b.charge(of.ID)
		if err != nil {
			return err
		}
		op, reason := outcome(r.Err)
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

// chargeOfRefund returns the charge of an account's refund: the call that waits for the outcome
// knows it.
func (m *core) chargeOfRefund(ctx context.Context, tx sqldb.Tx, a *account, id string) (*ledger.Row, error) {
	if waits, ok := ctx.Value(waiting{}).(*outcomeOf); ok && waits.of != nil && waits.ref == id {
		return &waits.of.Row, nil
	}
	r, err := m.ledger(tx).Refund(ctx, a.Book, id)
	if err == nil && r.Account != a.Name {
		err = fmt.Errorf("%w: refund %s", ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	return &ledger.Row{Kind: ledger.Charges, ID: r.Charge, Subject: r.Subject}, nil
}
