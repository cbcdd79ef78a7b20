package merchant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
)

// PayoutParams describes a payout, a transfer to a Pix key.
type PayoutParams struct {
	ID      string // of the bill or the claim, unique among the payouts of the account's book; required
	Account string // optional if there is only one

	// Order is the ID of the order that the payout is for. The payout then counts as
	// Order.PaidOut. It is optional. The order must be in BRL, as transfers are.
	Order string

	// TransferParams describes the transfer. ExternalRef must be empty: it is the
	// account's prefix, the ID and "-payout", such as "shop-bill-17-payout", so the ID
	// must not be personal data.
	gateway.TransferParams
}

// payoutSuffix ends the references of payouts, since those of charges end with a number.
const payoutSuffix = "-payout"

// maxPayoutRef is how long the reference of a transfer may be.
const maxPayoutRef = 100

func payoutReference(a *account, id string) string { return a.Prefix + id + payoutSuffix }

// validate reports each invalid parameter as a [gateway.ValidationError], and sets the
// reference.
func (p *PayoutParams) validate(a *account) error {
	if err := identify(kindPayout, "id", p.ID, "your bill"); err != nil {
		return err
	}
	if p.Order != "" {
		if err := identify(kindPayout, "order", p.Order, "your order"); err != nil {
			return err
		}
	}
	switch {
	case len(payoutReference(a, p.ID)) > maxPayoutRef:
		return invalid(kindPayout, "id", fmt.Sprintf("must have at most %d bytes with the account's prefix %q", maxPayoutRef-len(payoutSuffix), a.Prefix))
	case p.ExternalRef != "":
		return invalid(kindPayout, "external_ref", "must be empty: it is made of the ID")
	}
	p.ExternalRef = payoutReference(a, p.ID)
	return operations.CreateTransfer(p.TransferParams).Validate()
}

// subject returns the subject of the order, or of the payout if it belongs to none.
func (p *PayoutParams) subject(book string) ledger.Subject {
	if p.Order != "" {
		return ledger.OrderSubject(book, p.Order)
	}
	return ledger.PayoutSubject(book, p.ID)
}

// payoutRecord is what is stored about a payout.
type payoutRecord struct {
	books.Payout

	Watch   watch
	Earlier gateway.TransferStatus `json:",omitempty"` // see chargeRecord
}

// payout is a payout with its place.
type payout struct {
	base
	payoutRecord

	seen *gateway.Transfer // what was read last
}

func (p *payout) row() (ledger.Row, error) {
	row := p.Row
	row.Resource, row.State = strings.ToLower(p.TransferID), p.Payout.State
	row.ErasedAt = p.erased
	record := p.payoutRecord
	if p.erased != 0 {
		record = p.kept()
	}
	err := p.encode(&row, &record, &record.ReadAt)
	return row, err
}

func (p *payout) watched() (*watch, *account) { return &p.Watch, p.account }

func (p *payout) taken() error { return fmt.Errorf("%w: payout %s", ErrReused, p.Payout.ID) }

// PayoutTx stores a payout in your transaction. [Merchant.Run] sends it after the commit,
// at most once, and calls [Callbacks.Payout] when it has ended.
//
// Calling it again with the same ID and parameters returns the existing payout, whatever
// its state. The error is [ErrReused] if the parameters differ, [ErrCurrency] if the order is
// not in BRL, in which transfers are, [ErrErased] if the order was erased, and [gateway.ErrValidation] if the payout breaks a rule of the gateway. Then nothing was
// stored. About your COMMIT see [ErrMaybeStored].
func (m *Merchant[TX]) PayoutTx(ctx context.Context, tx TX, p PayoutParams) (*Payout, error) {
	return m.payoutTx(ctx, m.in(tx), p, nil)
}

func (m *core) payoutTx(ctx context.Context, tx sqldb.Tx, p PayoutParams, by *sender) (shown *Payout, err error) {
	a, err := m.account(p.Account)
	if err != nil {
		return nil, err
	}
	if err := p.validate(a); err != nil {
		return nil, err
	}
	switch stored, err := m.loadPayout(ctx, m.ledger(tx), a.Book, p.ID); {
	case err == nil:
		return m.existingPayout(ctx, tx, a, &p, stored)
	case !errors.Is(err, ErrNotFound):
		return nil, err
	}
	err = m.on(ctx, tx, place{subject: p.subject(a.Book), payout: p.ID}, func(b *bench) (err error) {
		if b.payout != nil { // another transaction has stored it before this one got the lock
			shown, err = m.existingPayout(ctx, tx, a, &p, b.payout)
			return err
		}
		if err := b.checkErased(); err != nil {
			return err
		}
		if p.Order != "" {
			if err := b.pays(p.Order, gateway.BRL); err != nil { // the currency of every transfer
				return err
			}
		}
		b.payout = &payout{
			payoutRecord: payoutRecord{Payout: books.Payout{ID: p.ID, Operation: books.Waiting, State: New, Requested: p.Amount}},
			base: base{account: a, Row: ledger.Row{
				Kind: ledger.Payouts, ID: p.ID, Account: a.Name, Subject: b.order.Subject(), Ref: p.ExternalRef, Created: b.now,
			}},
		}
		b.paidTo(b.payout, p.PixKeyType, p.PixKeyValue)
		shown = b.payout.shown()
		b.sends = append(b.sends, send{a, operations.CreateTransfer(p.TransferParams), "payout " + p.ID, by})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return shown, nil
}

// existingPayout returns a payout that is asked for again. The Pix key is only in the
// outbox, which compares it.
func (m *core) existingPayout(ctx context.Context, tx sqldb.Tx, a *account, p *PayoutParams, stored *payout) (*Payout, error) {
	if stored.account != a || stored.Subject != p.subject(a.Book) || stored.Requested != p.Amount {
		return nil, fmt.Errorf("%w: payout %s", ErrReused, p.ID)
	}
	if stored.erased != 0 { // nothing is left to compare
		return stored.shown(), nil
	}
	switch _, err := a.outbox.FindTx(ctx, tx, kindPayout, stored.Ref); {
	case errors.Is(err, operations.ErrNotFound): // purged; inserted again it would be sent again
		return stored.shown(), nil
	case err != nil:
		return nil, err
	}
	again := send{account: a, op: operations.CreateTransfer(p.TransferParams), what: "payout " + p.ID}
	if err := (&requests{m: m, tx: tx}).insert(ctx, &again); err != nil {
		return nil, err
	}
	return stored.shown(), nil
}

// loadPayout returns a payout of a book, or [ErrNotFound].
func (m *reading) loadPayout(ctx context.Context, l ledger.Ledger, book, id string) (*payout, error) {
	row, err := l.Row(ctx, ledger.Payouts, book, id)
	if err != nil {
		return nil, err
	}
	return m.payoutOf(row)
}

func (m *reading) payoutOf(row *ledger.Row) (*payout, error) {
	p := &payout{base: m.based(row)}
	err := decode(row.Record, &p.payoutRecord)
	if p.erased != 0 { // an earlier release may have stored more since
		p.payoutRecord = p.kept()
	}
	p.readAt = p.ReadAt
	return p, err
}

// shown returns the payout as the merchant gets it.
func (p *payout) shown() *Payout {
	is := &p.Payout
	return &Payout{
		ID: is.ID, Book: p.Subject.Book, Account: p.Account, Order: ledger.OrderID(p.Subject), Ref: p.Ref, TransferID: is.TransferID, State: is.State, Reason: is.Reason,
		Requested: is.Requested, Amount: is.Amount, Fee: is.Fee, CreatedAt: p.Created, PaidAt: is.PaidAt, Erased: erasedAt(p.erased),
	}
}

// Payout is [Merchant.PayoutTx] in a transaction of its own. It sends the payout at once.
// If the payout was stored and can't be sent now, it returns the payout without an error:
// [Merchant.Run] sends it. Not to know the outcome is no error: the state is [Unknown]. After
// [ErrMaybeStored] call it again; after any other error nothing is stored.
func (m *core) Payout(ctx context.Context, p PayoutParams) (*Payout, error) {
	var stored *Payout
	by := &sender{}
	if err := m.sends(ctx, by, func(ctx context.Context, tx sqldb.Tx) (err error) {
		stored, err = m.payoutTx(ctx, tx, p, by)
		return err
	}); err != nil {
		return nil, err
	}
	if stored.State != New && !by.lost {
		return stored, nil
	}
	sent, err := m.sendPayout(ctx, stored, by)
	if err != nil {
		m.fail(ctx, "a payout was stored and could not be sent at once", err)
		return stored, nil
	}
	return sent, nil
}

// PayoutByID returns a payout. The error is [ErrNotFound] if there is none with the ID, and
// [ErrAccount] if there are several books, see [Merchant.Book].
func (m *reading) PayoutByID(ctx context.Context, id string) (*Payout, error) {
	book, err := m.oneBook(ctx)
	if err != nil {
		return nil, err
	}
	p, err := m.loadPayout(ctx, m.outside(), book, id)
	if err != nil {
		return nil, err
	}
	return p.shown(), nil
}

func (m *core) sendPayout(ctx context.Context, p *Payout, by *sender) (sent *Payout, err error) {
	if err := m.sendBy(ctx, m.anyAccount(p.Account, p.Book), by, kindPayout, p.Ref); err != nil {
		return nil, err
	}
	stored, err := m.loadPayout(ctx, m.outside(), p.Book, p.ID)
	if err != nil {
		return nil, err
	}
	if stored.Operation.Ended() { // the handler of the outcome has stored it
		return stored.shown(), nil
	}
	err = m.surely(ctx, at(&stored.Row), func(b *bench) error {
		if b.payout == nil {
			return fmt.Errorf("%w: payout %s", ErrNotFound, p.ID)
		}
		b.payout.touched, sent = true, b.payout.shown()
		return nil
	})
	return sent, err
}

// payoutIs stores what became of the request for the bench's payout.
func (b *bench) payoutIs(op books.Operation, reason string) {
	b.changePayout(func(o books.Order, p books.Payout) (books.Order, books.Payout, books.Result) {
		return books.ApplyPayoutOperation(o, p, op, reason, b.now)
	})
}

func (b *bench) changePayout(apply func(books.Order, books.Payout) (books.Order, books.Payout, books.Result)) {
	var result books.Result
	b.order.Order, b.payout.Payout, result = apply(b.order.Order, b.payout.Payout)
	b.payout.touched = true
	b.report(b.payout.account, result)
}

// bookPayout books a reading of the transfer, unless it has the reference and another amount:
// see [bench.book].
func (b *bench) bookPayout(r books.Reading[gateway.Transfer]) error {
	p := b.payout
	if p == nil {
		return fmt.Errorf("%w: payout of transfer %s", ErrNotFound, r.Resource.ID)
	}
	p.touched = true
	if p.TransferID == "" && r.Source != books.FromResponse && r.Resource.Amount != p.Requested {
		b.unmatched(p.account, books.AboutPayout, p.Payout.ID, "transfer "+r.Resource.ID)
		return nil
	}
	b.changePayout(func(o books.Order, p books.Payout) (books.Order, books.Payout, books.Result) {
		return books.ApplyTransfer(o, p, r)
	})
	if b.knows {
		p.Earlier = r.Resource.Status
	}
	b.found(p)
	announced := p.Watch.Announced
	p.Watch.announce(b.now, announced, books.TransferBehind(p.Status, gateway.TransferStatus(announced)))
	return nil
}

// next returns when the payout is compared again. A payout that was paid may still be
// returned.
func (p *payout) next(now time.Time, cfg *Config) ledger.Plan {
	age := now.Sub(p.Created)
	if soon, isAnnounced := p.Watch.next(now); isAnnounced {
		return soon
	}
	switch p.Payout.State {
	case Withdrawn, Rejected, Failed, Canceled:
		return ledger.Plan{Never: true}
	case Paid:
		return ledger.Plan{Never: age > cfg.CompareFor, Wait: cfg.CompareEvery, Lane: ledger.Routine}
	default: // it has not ended
		return ledger.Plan{Wait: growing(age), Lane: laneOf(age)}
	}
}

// read reads the payout's transfer, and returns what books it. Without a transfer there is
// only what the outbox knows.
func (p *payout) read(ctx context.Context, source books.Source) (func(*bench) error, error) {
	if p.TransferID == "" {
		return func(b *bench) error {
			if b.payout != nil {
				b.payout.touched = true
			}
			return nil
		}, nil
	}
	r, err := p.account.readTransfer(ctx, p.TransferID, source)
	if err != nil {
		return nil, err
	}
	p.seen = r.Resource
	return func(b *bench) error { return b.bookPayout(r) }, nil
}

// same reports whether the transfer that was read shows what is booked.
func (p *payout) same(ledger.Lane) bool {
	t := p.seen
	return t != nil && p.Watch == (watch{}) && !holds(p.Problems) && (p.Operation == "" || p.Operation.Ended()) && p.LowerSince.IsZero() && t.Status == p.Status && t.Amount == p.Amount && t.Fee == p.Fee &&
		!t.UpdatedAt.IsZero() && t.UpdatedAt.Time.Equal(p.UpdatedAt)
}

// readTransfer reads a transfer.
func (a *account) readTransfer(ctx context.Context, id string, source books.Source) (r books.Reading[gateway.Transfer], err error) {
	if err := a.present(); err != nil {
		return r, err
	}
	r.Source, r.At = source, a.clock.now()
	r.Resource, err = a.Client.Transfers.Get(ctx, id)
	return r, err
}

// storePayout stores the outcome of the request for a payout.
func (m *core) storePayout(ctx context.Context, tx sqldb.Tx, a *account, r operations.TransferResult) error {
	rows, err := m.ledger(tx).Rows(ctx, ledger.Payouts, ledger.Where{Account: a.Name, Ref: r.Operation.ExternalRef})
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%w: payout with the reference %s", ErrNotFound, r.Operation.ExternalRef)
	}
	if err != nil {
		return err
	}
	p := at(&rows[0])
	p.ends, p.of = request{kindPayout, rows[0].Ref}, a.Name
	return m.on(ctx, tx, p, func(b *bench) error {
		op, reason := outcome(r.Err)
		b.payoutIs(op, reason)
		if r.Value == nil {
			return nil
		}
		// When the transfer was read is not known; it was not before the operation was stored.
		return b.bookPayout(books.Reading[gateway.Transfer]{Resource: r.Value, Source: books.FromResponse, At: r.Entry.CreatedAt})
	})
}

// onTransfer reads the transfer of an event and books what it shows. Signed events have no
// reference, so it is the transfer that tells whose it is: one that is not in the books may
// belong to another system of the account, or to a payout whose response is not stored yet.
func (m *core) onTransfer(ctx context.Context, a *account, e *webhook.TransferEvent) error {
	r, err := a.readTransfer(ctx, e.ResourceID, books.FromWebhook)
	if err != nil {
		return err
	}
	ref := r.Resource.ExternalRef
	row, err := m.outside().Match(ctx, ledger.Payouts, a.Name, e.ResourceID, ref)
	switch {
	case err != nil:
		return err
	case row == nil && m.otherThan(a, ref) != nil:
		return nil // two accounts share a key: the other one gets its event, or compares it
	case row == nil:
		if strings.HasPrefix(ref, a.Prefix) && strings.HasSuffix(ref, payoutSuffix) {
			err = m.orphan(a, e.Event, ref)
		}
		if err != nil {
			return err
		}
		return m.other(ctx, a, e.Event, ref)
	}
	behind := books.TransferBehind(r.Resource.Status, e.State())
	if err := m.once(ctx, at(row), func(b *bench) error {
		if err := b.bookPayout(r); err != nil {
			return err
		}
		if behind {
			b.payout.Watch.announce(b.now, string(e.State()), true)
		}
		return nil
	}); err != nil {
		return err
	}
	if behind {
		return m.behind(e.Event, "transfer", string(r.Resource.Status))
	}
	p, err := m.payoutOf(row)
	if err != nil || p.Earlier == "" || books.TransferBehind(p.Earlier, e.State()) {
		return err
	}
	return m.toOther(ctx, a, e.Event)
}

// callPayout calls the callback with the payout as it is now.
func (m *core) callPayout(ctx context.Context, tx sqldb.Tx, f *ledger.Fact) error {
	if m.callbacks.Payout == nil {
		return nil
	}
	p, err := m.loadPayout(ctx, m.ledger(tx), f.Subject.Book, f.Record)
	if err != nil {
		return err
	}
	return m.callbacks.Payout(ctx, tx, p.shown())
}
