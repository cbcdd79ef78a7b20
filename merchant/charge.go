package merchant

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
)

// ChargeParams describes a charge.
type ChargeParams struct {
	Account string // optional if there is only one
	Order   string // the ID of the order, unique in the account's book; required. All its charges have one currency

	// TransactionParams describes the payment. ExternalRef must be empty: it is the
	// account's prefix, the order and the number of the attempt, such as "shop-A17-1",
	// so the ID of an order must not be personal data.
	gateway.TransactionParams
}

// Validate reports each invalid parameter as a [gateway.ValidationError].
func (p *ChargeParams) validate(a *account) error {
	if err := identify(kindCharge, "order", p.Order, "your order"); err != nil {
		return err
	}
	switch {
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

// orderOf returns the order of a reference.
func orderOf(a *account, ref string) (order string, ok bool) {
	ref, ok = strings.CutPrefix(ref, a.Prefix)
	i := strings.LastIndexByte(ref, '-')
	if !ok || i <= 0 {
		return "", false
	}
	return ref[:i], true
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
// both with that charge. It is [ErrCurrency] if the order has another currency, and
// [gateway.ErrValidation] if the charge breaks a rule of the gateway. It is [ErrAdopting] if the
// order waits for an adoption, and [ErrErased] if it was erased and a new charge would be made. Then nothing was stored. About your COMMIT see [ErrMaybeStored].
func (m *Merchant[TX]) ChargeTx(ctx context.Context, tx TX, p ChargeParams) (*Charge, error) {
	return m.chargeTx(ctx, m.in(tx), p, nil)
}

// chargeTx is [Merchant.ChargeTx]. A call of [Merchant.Charge] makes one charge, even if it is
// repeated after that one has failed.
func (m *core) chargeTx(ctx context.Context, tx sqldb.Tx, p ChargeParams, by *sender) (c *Charge, err error) {
	a, err := m.account(p.Account)
	if err != nil {
		return nil, err
	}
	if err := p.validate(a); err != nil {
		return nil, err
	}
	at := place{subject: ledger.OrderSubject(a.Book, p.Order), lock: ledger.New, charges: true}
	call, added := by.call(), false
	err = m.on(ctx, tx, at, func(b *bench) error {
		if own := b.calledBy(call); own != nil {
			c = own.shown()
			return nil
		}
		if b.order.Adopting > 0 {
			return fmt.Errorf("%w: order %s", ErrAdopting, p.Order)
		}
		asked := chargeRecord{
			Amount: p.Amount, Currency: cmp.Or(p.Currency, gateway.BRL), Method: p.Method, Installments: max(p.Installments, 1), Call: call,
		}
		if err := b.pays(p.Order, asked.Currency); err != nil {
			return err
		}
		ch, err := b.earlier(ctx, a, &asked)
		if ch == nil && err == nil {
			if err := b.checkErased(); err != nil {
				return err
			}
			ch, added = b.addCharge(a, p, asked, by), true
		}
		if ch != nil {
			c = ch.shown()
		}
		if err == nil {
			b.order.Current = c.ID // what the buyer chose last
		}
		return err
	})
	if err != nil && added {
		return nil, err
	}
	return c, err
}

// pays returns an error if the order has another currency. If it has none, this is its
// currency for good, also if the charge is never paid.
func (b *bench) pays(order string, currency gateway.Currency) error {
	if b.order.Currency = cmp.Or(b.order.Currency, currency); b.order.Currency != currency {
		return fmt.Errorf("%w: order %s is in %s, and %s is asked for: use another order", ErrCurrency, order, b.order.Currency, currency)
	}
	return nil
}

// earlier returns the charge of the order that a new one would repeat, or an error if a
// new one is not safe, with the charge that it is about.
func (b *bench) earlier(ctx context.Context, a *account, asked *chargeRecord) (existing *charge, err error) {
	if b.order.Closed {
		return nil, fmt.Errorf("%w: order %s is closed", ErrState, ledger.OrderID(b.order.Subject()))
	}
	newestFirst := slices.Clone(b.charges)
	slices.Reverse(newestFirst)
	for _, ch := range newestFirst {
		if ch.Books.ID == b.order.SettledBy {
			return ch, nil
		}
	}
	for _, ch := range newestFirst {
		// Only the account's outbox knows more of such a charge.
		if state := ch.Books.State; state == New || state == Unknown || state == Ambiguous {
			if err := ch.account.present(); err != nil {
				return nil, err
			}
		}
	}
	for _, ch := range newestFirst {
		if ch.repeats(a, asked, b.now) {
			existing = ch
			break
		}
		if ch.Books.State == Underpaid {
			return ch, fmt.Errorf("%w: charge %s was paid in part", ErrState, ch.Books.ID)
		}
	}
	for _, ch := range newestFirst {
		switch {
		case ch == existing:
			ch.Books.Requested = ch.Amount
		case ch.Books.State == New:
			if err := b.withdraw(ctx, ch); err != nil && existing == nil {
				return ch, err
			}
		case existing == nil && (ch.Books.State == Unknown || ch.Books.State == Ambiguous):
			return ch, fmt.Errorf("%w: charge %s", ErrUnknown, ch.Books.ID)
		case ch.Books.Paid == 0 && ch.Currency == asked.Currency:
			ch.Books.Requested = asked.Amount // a charge pays the order if it is at least what the order costs now
		}
	}
	return existing, nil
}

// repeats reports whether a charge is the one that is asked for, and can still be paid or
// may have been made.
func (ch *charge) repeats(a *account, asked *chargeRecord, now time.Time) bool {
	if ch.account != a || ch.Amount != asked.Amount || ch.Currency != asked.Currency || ch.Method != asked.Method || ch.Installments != asked.Installments {
		return false
	}
	switch ch.Books.State {
	case Pending:
		return ch.ExpiresAt.IsZero() || now.Before(ch.ExpiresAt)
	case New, Unknown, Ambiguous:
		return true
	default:
		return false
	}
}

// withdraw cancels the request for a charge, unless a worker is about to send it.
func (b *bench) withdraw(ctx context.Context, ch *charge) error {
	err := b.requests.withdraw(ctx, ch.account, kindCharge, ch.Ref)
	if errors.Is(err, operations.ErrState) {
		return fmt.Errorf("%w: charge %s is being sent", ErrUnknown, ch.Books.ID)
	}
	if err != nil {
		return err
	}
	b.change(ch, func(is books.Books) (books.Books, books.Result) {
		return books.ApplyOperation(is, books.Abandoned, "withdrawn", b.now)
	})
	return nil
}

// addCharge adds a new charge of the order and its request.
func (b *bench) addCharge(a *account, p ChargeParams, asked chargeRecord, by *sender) *charge {
	attempt := b.attempts() + 1
	p.ExternalRef = reference(a, p.Order, attempt)
	asked.Books = books.Charge{
		ID: p.ExternalRef, Origin: books.FromOrder, Operation: books.Waiting, State: New, Currency: asked.Currency, Requested: asked.Amount, Asked: asked.Amount,
	}
	ch := b.newCharge(a, asked, p.ExternalRef)
	if p.Buyer.Document != nil && p.Buyer.Email != "" { // otherwise the gateway may know more
		ch.buyer = ledger.BuyerStored
	}
	b.boughtBy(ch, p.Buyer.Document, p.Buyer.Email)
	b.sends = append(b.sends, send{
		a, operations.CreateTransaction(p.TransactionParams), "the reference " + p.ExternalRef + " was used for another charge", by,
	})
	return ch
}

// newCharge puts a new charge on the bench.
func (b *bench) newCharge(a *account, r chargeRecord, ref string) *charge {
	ch := &charge{chargeRecord: r, base: base{account: a, touched: true, erased: b.order.ErasedAt, Row: ledger.Row{
		Kind: ledger.Charges, ID: r.Books.ID, Account: a.Name, Subject: b.order.Subject(), Attempt: b.attempts() + 1, Ref: ref, Created: b.now,
	}}}
	b.charges = append(b.charges, ch)
	return ch
}

// Charge is [Merchant.ChargeTx] in a transaction of its own, followed by [Merchant.Send].
// If the charge was stored and can't be sent now, it returns the charge without an error:
// [Merchant.Run] sends it. What the order waits for is adopted first, see [Merchant.Adopt]. After
// [ErrMaybeStored] call it again; after any other error nothing is stored.
func (m *core) Charge(ctx context.Context, p ChargeParams) (*Charge, error) {
	c, err := m.charge(ctx, p)
	if !errors.Is(err, ErrAdopting) {
		return c, err
	}
	a, err := m.account(p.Account)
	if err == nil {
		err = m.adoptOrder(ctx, ledger.OrderSubject(a.Book, p.Order))
	}
	if err != nil {
		return nil, err
	}
	return m.charge(ctx, p)
}

func (m *core) charge(ctx context.Context, p ChargeParams) (*Charge, error) {
	var c *Charge
	by := &sender{id: rand.Text()}
	if err := m.sends(ctx, by, func(ctx context.Context, tx sqldb.Tx) (err error) {
		c, err = m.chargeTx(ctx, tx, p, by)
		return err
	}); isVerdict(err) {
		return c, err
	} else if err != nil {
		return nil, err
	}
	if c.State != New && (!by.lost || c.call != by.id) { // a worker may be sending its own one
		return c, nil
	}
	is := &outcomeOf{ref: c.ID}
	err := m.sendBy(context.WithValue(ctx, waiting{}, is), c.account, by, kindCharge, c.ID)
	if err == nil && is.charge == nil { // the outcome is not known, or another process has stored it
		is.charge, err = m.sentCharge(ctx, c.ID)
	}
	if err != nil {
		m.fail(ctx, "a charge was stored and could not be sent at once", err)
		return c, nil
	}
	return is.charge, nil
}

// waiting is the key of an outcomeOf in the context of a call that waits for it.
type waiting struct{}

// outcomeOf is the outcome of the request for a charge, as its handler has stored it, or a
// refund whose handler stores it.
type outcomeOf struct {
	ref    string // of the charge, or the ID of the refund
	charge *Charge
	of     *charge // that the refund is of
}

// Send sends a stored charge now, in this goroutine, and returns it as it is then. Not to
// know the outcome is no error: the state is [Unknown], and [Merchant.Run] finds it out.
// Call it after the commit of [Merchant.ChargeTx]. A charge that was sent is not sent
// again.
//
// The error is [ErrNotFound] if there is no such charge. After any other error the charge
// remains stored.
func (m *core) Send(ctx context.Context, chargeID string) (*Charge, error) {
	ch, err := m.loadCharge(ctx, m.outside(), chargeID)
	if err != nil {
		return nil, err
	}
	if err := m.send(ctx, ch.account, kindCharge, ch.Ref); err != nil {
		return nil, err
	}
	return m.sentCharge(ctx, chargeID)
}

// sentCharge returns a charge whose request was sent. The handler of the outcome has stored
// it, unless it is not known.
func (m *core) sentCharge(ctx context.Context, id string) (*Charge, error) {
	ch, err := m.loadCharge(ctx, m.outside(), id)
	if err != nil {
		return nil, err
	}
	if ch.Books.Operation == "" || ch.Books.Operation.Ended() {
		return ch.shown(), nil
	}
	return m.chargeNow(ctx, ch)
}

// chargeNow returns a charge with what the outbox knows of its requests.
func (m *core) chargeNow(ctx context.Context, ch *charge) (c *Charge, err error) {
	err = m.surely(ctx, at(&ch.Row), func(b *bench) error {
		now, err := b.charge(ch.ID)
		if err == nil {
			now.touched = true
			c = now.shown()
		}
		return err
	})
	return c, err
}

// storeCharge stores the outcome of the request for a charge.
func (m *core) storeCharge(ctx context.Context, tx sqldb.Tx, a *account, r operations.TransactionResult) error {
	ref := r.Operation.ExternalRef
	order, ok := orderOf(a, ref)
	if !ok {
		return fmt.Errorf("%w: charge %s", ErrNotFound, ref)
	}
	p := place{subject: ledger.OrderSubject(a.Book, order), lock: ledger.Known, charges: true, ends: request{kindCharge, ref}, of: a.Name}
	return m.on(ctx, tx, p, func(b *bench) error {
		ch, err := b.charge(ref)
		switch {
		case err != nil:
			return err
		case ch.account != a:
			return fmt.Errorf("%w: charge %s belongs to %s", ErrAccount, ref, ch.Account)
		}
		op, reason := outcome(r.Err)
		b.change(ch, func(is books.Books) (books.Books, books.Result) { return books.ApplyOperation(is, op, reason, b.now) })
		if r.Value != nil {
			// When the transaction was read is not known; it was not before the operation was stored.
			b.book(ch, books.Reading[gateway.Transaction]{Resource: r.Value, Source: books.FromResponse, At: r.Entry.CreatedAt})
		}
		if waits, ok := ctx.Value(waiting{}).(*outcomeOf); ok && waits.ref == ref {
			waits.charge = ch.shown()
		}
		return nil
	})
}
