package merchant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/operations"
)

// ChargeParams describes a charge.
type ChargeParams struct {
	Account string // optional if there is only one
	Order   string // the ID of the order; required

	// TransactionParams describes the payment. ExternalRef must be empty: it is the
	// account's prefix, the order and the number of the attempt, such as "shop-A17-1",
	// so the ID of an order must not be personal data.
	gateway.TransactionParams
}

// Validate reports each invalid parameter as a [gateway.ValidationError].
func (p *ChargeParams) validate(a *account) error {
	switch {
	case strings.TrimSpace(p.Order) == "" || strings.TrimSpace(p.Order) != p.Order:
		return invalid(kindCharge, "order", "is required and must not begin or end with a space: it is the ID of your order")
	case len(p.Order) > maxOrder:
		return invalid(kindCharge, "order", fmt.Sprintf("must have at most %d bytes", maxOrder))
	case p.ExternalRef != "":
		return invalid(kindCharge, "external_ref", "must be empty: it is made of the order")
	}
	params := p.TransactionParams
	params.ExternalRef = reference(a, p.Order, 1)
	return operations.CreateTransaction(params).Validate()
}

// maxOrder leaves room for the prefix and the number of the attempt in a reference.
const maxOrder = 120

func reference(a *account, order string, attempt int) string {
	return a.Prefix + order + "-" + strconv.Itoa(attempt)
}

// ChargeTx stores a charge of an order in your transaction. [Merchant.Run] sends it after
// the commit, or [Merchant.Send] at once.
//
// Calling it again for the same order is safe. It returns an existing charge if the order
// was paid, or if one with the same method, amount and installments can still be paid or
// may have been made. A charge that was not sent yet is withdrawn and replaced; one that
// failed is followed by another attempt. With another method or amount there is a second
// charge, and both can be paid: the second payment is [Callbacks.PaidAgain]. An earlier
// charge of a lower amount no longer pays the order.
//
// The error is [ErrUnknown] if the outcome of a charge with another method or amount is
// not known, and [ErrState] if the order is closed, or a charge of it was paid in part;
// both with that charge. It is [gateway.ErrValidation] if the charge breaks a rule of the
// gateway. Then nothing was stored.
func (m *Merchant[TX]) ChargeTx(ctx context.Context, tx TX, p ChargeParams) (*Charge, error) {
	return m.chargeTx(ctx, m.in(tx), p)
}

func (m *core) chargeTx(ctx context.Context, tx sqldb.Tx, p ChargeParams) (*Charge, error) {
	a, err := m.account(p.Account)
	if err != nil {
		return nil, err
	}
	if err := p.validate(a); err != nil {
		return nil, err
	}
	d, err := m.open(ctx, tx, orderSubject(p.Order))
	if err != nil {
		return nil, err
	}
	charges, err := m.readCharges(ctx, d.c, `WHERE subject = ? ORDER BY attempt DESC`, d.order.ID)
	if err != nil {
		return nil, err
	}
	asked := chargeRecord{Amount: p.Amount, Currency: cmp.Or(p.Currency, gateway.BRL), Method: p.Method, Installments: max(p.Installments, 1)}
	c, err := d.earlier(ctx, charges, a, &asked)
	if err != nil {
		return c, err
	}
	if c == nil {
		attempt := 1
		if len(charges) > 0 {
			attempt = charges[0].attempt + 1
		}
		if c, err = d.add(ctx, a, attempt, p, asked); err != nil {
			return nil, err
		}
	}
	// What the buyer chose last is what Order.Current shows.
	return c, d.c.Must(ctx, `UPDATE {s}gateway_orders SET current = ? WHERE subject = ?`, c.ID, d.order.ID)
}

// earlier returns the charge of the order that a new one would repeat, or an error if a
// new one is not safe. charges are those of the order, the newest first.
func (d *desk) earlier(ctx context.Context, charges []*charge, a *account, asked *chargeRecord) (existing *Charge, err error) {
	if d.order.Closed {
		return nil, fmt.Errorf("%w: order %s is closed", ErrState, d.id())
	}
	if i := slices.IndexFunc(charges, func(ch *charge) bool { return ch.Books.ID == d.order.SettledBy }); i >= 0 {
		return charges[i].shown(), nil
	}
	repeated := ""
	for _, ch := range charges { // before another one is changed
		if d.repeats(ch, a, asked) {
			repeated = ch.Books.ID
			break
		}
		if ch.Books.State == Underpaid {
			return ch.shown(), fmt.Errorf("%w: charge %s was paid in part", ErrState, ch.Books.ID)
		}
	}
	for _, ch := range charges {
		if err := d.load(ctx, ch.Books.ID); err != nil {
			return nil, err
		}
		ch = d.charge
		switch {
		case ch.Books.ID == repeated && d.repeats(ch, a, asked):
			ch.Books.Requested = ch.Amount
			existing = ch.shown()
		case ch.Books.State == New:
			if err := d.withdraw(ctx); err != nil && repeated == "" {
				return ch.shown(), err
			}
		case repeated == "" && (ch.Books.State == Unknown || ch.Books.State == Ambiguous):
			return ch.shown(), fmt.Errorf("%w: charge %s", ErrUnknown, ch.Books.ID)
		case ch.Books.Paid == 0 && ch.Currency == asked.Currency:
			// A charge pays the order only if it is at least what the order costs now.
			ch.Books.Requested = max(ch.Amount, asked.Amount)
		}
		if err := d.save(ctx); err != nil {
			return nil, err
		}
	}
	if repeated != "" && existing == nil { // it has ended since it was read
		return d.earlier(ctx, slices.DeleteFunc(charges, func(ch *charge) bool { return ch.Books.ID == repeated }), a, asked)
	}
	return existing, nil
}

// repeats reports whether a charge is the one that is asked for, and can still be paid or
// may have been made.
func (d *desk) repeats(ch *charge, a *account, asked *chargeRecord) bool {
	if ch.account != a || ch.Amount != asked.Amount || ch.Currency != asked.Currency || ch.Method != asked.Method || ch.Installments != asked.Installments {
		return false
	}
	switch ch.Books.State {
	case Pending:
		return ch.ExpiresAt.IsZero() || d.now.Before(ch.ExpiresAt)
	case New, Unknown, Ambiguous:
		return true
	default:
		return false
	}
}

// withdraw cancels the operation of the charge, unless a worker is about to send it.
func (d *desk) withdraw(ctx context.Context) error {
	ch := d.charge
	e, err := ch.account.outbox.FindTx(ctx, d.tx, kindCharge, ch.ref)
	if err == nil {
		err = ch.account.outbox.CancelTx(ctx, d.tx, e.ID)
	}
	if errors.Is(err, operations.ErrState) {
		return fmt.Errorf("%w: charge %s is being sent", ErrUnknown, ch.Books.ID)
	}
	if err != nil {
		return err
	}
	return d.change(ctx, func(b books.Books) (books.Books, books.Result) {
		return books.ApplyOperation(b, books.Abandoned, "withdrawn", d.now)
	})
}

// add stores a new charge and its operation.
func (d *desk) add(ctx context.Context, a *account, attempt int, p ChargeParams, asked chargeRecord) (*Charge, error) {
	p.ExternalRef = reference(a, p.Order, attempt)
	if _, err := a.outbox.InsertTx(ctx, d.tx, operations.CreateTransaction(p.TransactionParams)); err != nil {
		if errors.Is(err, operations.ErrKeyReused) {
			return nil, fmt.Errorf("%w: the reference %s was used for another charge", ErrReused, p.ExternalRef)
		}
		return nil, err
	}
	asked.Books = books.Charge{
		ID: p.ExternalRef, Origin: books.FromOrder, Operation: books.Waiting, State: New, Currency: asked.Currency, Requested: asked.Amount,
	}
	ch := &charge{chargeRecord: asked, account: a, subject: d.order.ID, attempt: attempt, ref: p.ExternalRef, created: d.now}
	record, err := encoded(&ch.chargeRecord)
	if err != nil {
		return nil, err
	}
	if err := d.c.Must(ctx, `INSERT INTO {s}gateway_charges (id, account, subject, attempt, ref, state, check_at, created_at, record)
		VALUES (?, ?, ?, ?, ?, ?, {now} + ?, {now}, ?)`,
		ch.Books.ID, a.Name, ch.subject, attempt, ch.ref, string(New), soonest.Milliseconds(), record); err != nil {
		return nil, err
	}
	return ch.shown(), nil
}

// id returns the ID of the desk's order, as the merchant knows it.
func (d *desk) id() string { return orderID(d.order.ID) }

// orderID returns the ID of an order, "" if the subject is something else.
func orderID(subject string) string { return idOf(subject, orderSubject("")) }

func idOf(subject, kind string) string {
	id, ok := strings.CutPrefix(subject, kind)
	if !ok {
		return ""
	}
	return id
}

// shown returns the charge as the merchant gets it.
func (ch *charge) shown() *Charge {
	b := &ch.Books
	return &Charge{
		ID: b.ID, Account: ch.account.Name, Order: orderID(ch.subject), Subscription: subscriptionID(ch.subject), Attempt: ch.attempt, TransactionID: b.TransactionID, Method: ch.Method,
		State: b.State, Reason: b.Reason, Currency: b.Currency, Requested: b.Requested, Amount: b.Amount, Paid: b.Paid, Fee: b.Fee,
		Refunded: b.Refunded, Disputed: b.Disputed, Late: b.Late, PixCode: ch.PixCode, Voucher: ch.Voucher, Challenge: ch.Challenge,
		Origin: b.Origin, Link: ch.Link, Buyer: ch.Buyer,
		account: ch.account, EndToEndID: ch.EndToEndID, CreatedAt: ch.created, ExpiresAt: ch.ExpiresAt, PaidAt: b.PaidAt,
	}
}

// Charge is [Merchant.ChargeTx] in a transaction of its own, followed by [Merchant.Send].
// If the charge was stored and can't be sent now, it returns the charge without an error:
// [Merchant.Run] sends it.
func (m *core) Charge(ctx context.Context, p ChargeParams) (*Charge, error) {
	var c *Charge
	if err := m.db.Transaction(ctx, func(tx sqldb.Tx) (err error) {
		c, err = m.chargeTx(ctx, tx, p)
		return err
	}); err != nil {
		return c, err
	}
	if c.State != New {
		return c, nil
	}
	sent, err := m.Send(ctx, c.ID)
	if err != nil {
		m.fail(ctx, "a charge was stored and could not be sent at once", err)
		return c, nil
	}
	return sent, nil
}

// Send sends a stored charge now, in this goroutine, and returns it as it is then. Not to
// know the outcome is no error: the state is [Unknown], and [Merchant.Run] finds it out.
// Call it after the commit of [Merchant.ChargeTx]. A charge that was sent is not sent
// again.
//
// The error is [ErrNotFound] if there is no such charge. After any other error the charge
// remains stored.
func (m *core) Send(ctx context.Context, chargeID string) (*Charge, error) {
	ch, err := m.readCharge(ctx, m.db.Conn(), chargeID)
	if err != nil {
		return nil, err
	}
	if err := m.send(ctx, ch.account, kindCharge, ch.ref); err != nil {
		return nil, err
	}
	if err := m.sync(ctx, ch); err != nil {
		return nil, err
	}
	if ch, err = m.readCharge(ctx, m.db.Conn(), chargeID); err != nil {
		return nil, err
	}
	return ch.shown(), nil
}

// sync takes over what the outbox knows of a charge's requests.
func (m *core) sync(ctx context.Context, ch *charge) error {
	return m.book(ctx, ch, books.Reading[gateway.Transaction]{})
}

// send sends an operation now, unless it was before.
func (m *core) send(ctx context.Context, a *account, kind, key string) error {
	if key == "" { // the gateway made the charge
		return nil
	}
	list, err := a.outbox.List(ctx, operations.Query{Kind: kind, Key: key})
	if err != nil || len(list) == 0 {
		return err
	}
	_, err = a.outbox.Send(ctx, list[0].ID)
	return err
}

// charged stores the outcome of the request for a charge.
func (m *core) charged(ctx context.Context, tx sqldb.Tx, a *account, r operations.TransactionResult) error {
	ch, err := m.readCharge(ctx, m.db.In(tx), r.Operation.ExternalRef)
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
	if d.charge.account != a {
		return fmt.Errorf("%w: charge %s belongs to %s", ErrAccount, ch.Books.ID, d.charge.account.Name)
	}
	op, reason := books.Applied, ""
	if r.Err != nil {
		op, reason = books.Refused, r.Err.Error()
	}
	if err := d.change(ctx, func(b books.Books) (books.Books, books.Result) { return books.ApplyOperation(b, op, reason, d.now) }); err != nil {
		return err
	}
	if r.Value != nil {
		// When the transaction was read is not known; it was not before the operation was stored.
		if err := d.read(ctx, books.Reading[gateway.Transaction]{Resource: r.Value, Source: books.FromResponse, At: r.Entry.CreatedAt}); err != nil {
			return err
		}
	}
	return d.save(ctx)
}
