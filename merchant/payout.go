package merchant

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/operations"
)

// PayoutParams describes a payout, a transfer to a Pix key.
type PayoutParams struct {
	ID      string // of the bill or the claim, unique among all payouts; required
	Account string // optional if there is only one

	// Order is the ID of the order that the payout is for. The payout then counts as
	// Order.PaidOut. It is optional.
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

const kindPayout = "transfers.create"

func payoutReference(a *account, id string) string { return a.Prefix + id + payoutSuffix }

// validate reports each invalid parameter as a [gateway.ValidationError], and sets the
// reference.
func (p *PayoutParams) validate(a *account) error {
	switch {
	case strings.TrimSpace(p.ID) == "" || strings.TrimSpace(p.ID) != p.ID:
		return invalid(kindPayout, "id", "is required and must not begin or end with a space: it is the ID of your bill")
	case len(payoutReference(a, p.ID)) > maxPayoutRef:
		return invalid(kindPayout, "id", fmt.Sprintf("must have at most %d bytes with the account's prefix %q", maxPayoutRef-len(payoutSuffix), a.Prefix))
	case strings.TrimSpace(p.Order) != p.Order:
		return invalid(kindPayout, "order", "must not begin or end with a space: it is the ID of your order")
	case p.ExternalRef != "":
		return invalid(kindPayout, "external_ref", "must be empty: it is made of the ID")
	}
	p.ExternalRef = payoutReference(a, p.ID)
	return operations.CreateTransfer(p.TransferParams).Validate()
}

// subject returns the key of the order, or of the payout if it belongs to none.
func (p *PayoutParams) subject() string {
	if p.Order != "" {
		return orderSubject(p.Order)
	}
	return "payout/" + p.ID
}

// payout is a payout with its place.
type payout struct {
	books.Payout

	account *account
	subject string
	ref     string
	created time.Time
}

// PayoutTx stores a payout in your transaction. [Merchant.Run] sends it after the commit,
// at most once, and calls [Callbacks.Payout] when it has ended.
//
// Calling it again with the same ID and parameters returns the existing payout, whatever
// its state. The error is [ErrReused] if the parameters differ, and
// [gateway.ErrValidation] if the payout breaks a rule of the gateway. Then nothing was
// stored.
func (m *Merchant) PayoutTx(ctx context.Context, tx *sql.Tx, p PayoutParams) (*Payout, error) {
	a, err := m.account(p.Account)
	if err != nil {
		return nil, err
	}
	if err := p.validate(a); err != nil {
		return nil, err
	}
	if existing, err := m.existingPayout(ctx, tx, a, &p); existing != nil || err != nil {
		return existing, err
	}
	d, err := m.open(ctx, tx, p.subject())
	if err != nil {
		return nil, err
	}
	// Another transaction may have stored it before this one got the lock.
	if existing, err := m.existingPayout(ctx, tx, a, &p); existing != nil || err != nil {
		return existing, err
	}
	stored := &payout{
		Payout:  books.Payout{ID: p.ID, Operation: books.Waiting, State: New, Requested: p.Amount},
		account: a, subject: d.order.ID, ref: p.ExternalRef, created: d.now,
	}
	record, err := encoded(&stored.Payout)
	if err != nil {
		return nil, err
	}
	n, err := d.c.exec(ctx, `INSERT INTO gateway_payouts (id, account, subject, ref, state, check_at, created_at, record)
		VALUES (?, ?, ?, ?, ?, {now} + ?, {now}, ?) ON CONFLICT DO NOTHING`,
		stored.ID, a.Name, stored.subject, stored.ref, string(New), soonest.Milliseconds(), record)
	if err == nil && n == 0 { // at the same time, and for another order
		err = fmt.Errorf("%w: payout %s", ErrReused, p.ID)
	}
	if err != nil {
		return nil, err
	}
	if _, err := a.outbox.InsertTx(ctx, tx, operations.CreateTransfer(p.TransferParams)); err != nil {
		return nil, reusedPayout(err, p.ID)
	}
	return stored.shown(), nil
}

func reusedPayout(err error, id string) error {
	if errors.Is(err, operations.ErrKeyReused) {
		return fmt.Errorf("%w: payout %s", ErrReused, id)
	}
	return err
}

// existingPayout returns the payout with the ID, or nil. The Pix key is only in the
// outbox, which compares it.
func (m *Merchant) existingPayout(ctx context.Context, tx *sql.Tx, a *account, p *PayoutParams) (*Payout, error) {
	stored, err := m.readPayout(ctx, m.store.in(tx), p.ID)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if stored.account != a || stored.subject != p.subject() || stored.Requested != p.Amount {
		return nil, fmt.Errorf("%w: payout %s", ErrReused, p.ID)
	}
	switch _, err := a.outbox.FindTx(ctx, tx, kindPayout, stored.ref); {
	case errors.Is(err, operations.ErrNotFound): // purged; inserted again it would be sent again
		return stored.shown(), nil
	case err != nil:
		return nil, err
	}
	if _, err := a.outbox.InsertTx(ctx, tx, operations.CreateTransfer(p.TransferParams)); err != nil {
		return nil, reusedPayout(err, p.ID)
	}
	return stored.shown(), nil
}

// readPayouts returns the payouts that a condition selects.
func (m *Merchant) readPayouts(ctx context.Context, c conn, where string, args ...any) (list []*payout, err error) {
	err = c.each(ctx, `SELECT account, subject, ref, created_at, record FROM gateway_payouts `+where, args, func(row database.Scanner) error {
		var name, record string
		var created int64
		p := new(payout)
		if err := row.Scan(&name, &p.subject, &p.ref, &created, &record); err != nil {
			return err
		}
		p.created = time.UnixMilli(created)
		if p.account = m.accounts[name]; p.account == nil {
			return fmt.Errorf("%w: this process has no account %s", ErrAccount, name)
		}
		list = append(list, p)
		return decode(record, &p.Payout)
	})
	return list, err
}

// readPayout returns a payout, or [ErrNotFound].
func (m *Merchant) readPayout(ctx context.Context, c conn, id string) (*payout, error) {
	list, err := m.readPayouts(ctx, c, `WHERE id = ?`, id)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%w: payout %s", ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// shown returns the payout as the merchant gets it.
func (p *payout) shown() *Payout {
	return &Payout{
		ID: p.ID, Account: p.account.Name, Order: orderID(p.subject), Ref: p.ref, TransferID: p.TransferID, State: p.State, Reason: p.Reason,
		Requested: p.Requested, Amount: p.Amount, Fee: p.Fee, CreatedAt: p.created, PaidAt: p.PaidAt,
	}
}

// Payout is [Merchant.PayoutTx] in a transaction of its own. It sends the payout at once.
// If the payout was stored and can't be sent now, it returns the payout without an error:
// [Merchant.Run] sends it. Not to know the outcome is no error: the state is [Unknown].
func (m *Merchant) Payout(ctx context.Context, p PayoutParams) (*Payout, error) {
	var stored *Payout
	if err := m.store.transaction(ctx, func(tx *sql.Tx) (err error) {
		stored, err = m.PayoutTx(ctx, tx, p)
		return err
	}); err != nil {
		return nil, err
	}
	if stored.State != New {
		return stored, nil
	}
	sent, err := m.sendPayout(ctx, stored)
	if err != nil {
		m.fail(ctx, "a payout was stored and could not be sent at once", err)
		return stored, nil
	}
	return sent, nil
}

// PayoutByID returns a payout. The error is [ErrNotFound] if there is none with the ID.
func (m *Merchant) PayoutByID(ctx context.Context, id string) (*Payout, error) {
	p, err := m.readPayout(ctx, m.store.conn(), id)
	if err != nil {
		return nil, err
	}
	return p.shown(), nil
}

func (m *Merchant) sendPayout(ctx context.Context, p *Payout) (*Payout, error) {
	if err := m.send(ctx, m.accounts[p.Account], kindPayout, p.Ref); err != nil {
		return nil, err
	}
	stored, err := m.readPayout(ctx, m.store.conn(), p.ID)
	if err != nil {
		return nil, err
	}
	if err := m.bookPayout(ctx, stored, books.Reading[gateway.Transfer]{}); err != nil {
		return nil, err
	}
	return m.PayoutByID(ctx, p.ID)
}

// payoutDesk is a desk with a payout.
type payoutDesk struct {
	*desk

	payout *payout
}

// openPayout locks the order of a payout, and takes over what the outbox knows of its
// request.
func (m *Merchant) openPayout(ctx context.Context, tx *sql.Tx, p *payout) (*payoutDesk, error) {
	d, err := m.open(ctx, tx, p.subject)
	if err != nil {
		return nil, err
	}
	if p, err = m.readPayout(ctx, d.c, p.ID); err != nil {
		return nil, err
	}
	d.account = p.account
	o := &payoutDesk{desk: d, payout: p}
	if op, err := d.progress(ctx, kindPayout, p.ref, p.Operation); err != nil {
		return nil, err
	} else if op != "" {
		return o, o.outcome(ctx, op, "")
	}
	return o, nil
}

// outcome applies what became of the request.
func (d *payoutDesk) outcome(ctx context.Context, op books.Operation, reason string) error {
	return d.change(ctx, func(o books.Order, p books.Payout) (books.Order, books.Payout, books.Result) {
		return books.ApplyPayoutOperation(o, p, op, reason, d.now)
	})
}

// read books a reading of the transfer, unless it has the reference and another amount: see
// [desk.read].
func (d *payoutDesk) read(ctx context.Context, r books.Reading[gateway.Transfer]) error {
	if p := d.payout; p.TransferID == "" && r.Source != books.FromResponse && r.Resource.Amount != p.Requested {
		return d.unmatched(ctx, p.ID, "transfer "+r.Resource.ID)
	}
	return d.change(ctx, func(o books.Order, p books.Payout) (books.Order, books.Payout, books.Result) {
		return books.ApplyTransfer(o, p, r)
	})
}

func (d *payoutDesk) change(ctx context.Context, apply func(books.Order, books.Payout) (books.Order, books.Payout, books.Result)) error {
	o, p, result := apply(d.order, d.payout.Payout)
	d.order, d.payout.Payout = o, p
	return d.report(ctx, result)
}

// save stores the order and the payout.
func (d *payoutDesk) save(ctx context.Context) error {
	p := d.payout
	record, err := encoded(&p.Payout)
	if err != nil {
		return err
	}
	if err := d.c.must(ctx, `UPDATE gateway_payouts SET transfer_id = NULLIF(?, ''), state = ?, check_at = {now} + ?, record = ? WHERE id = ?`,
		strings.ToLower(p.TransferID), string(p.State), d.nextCheck(), record, p.ID); err != nil {
		return err
	}
	return d.saveOrder(ctx)
}

// nextCheck returns in how many milliseconds the payout is compared with the gateway, or
// nil if it is not. A payout that was paid may still be returned.
func (d *payoutDesk) nextCheck() *int64 {
	p, age := d.payout, d.now.Sub(d.payout.created)
	wait := min(max(age/4, soonest), latest)
	switch p.State {
	case Withdrawn, Rejected, Failed, Canceled:
		return nil
	case Paid:
		if age > d.m.cfg.CompareFor {
			return nil
		}
		wait = d.m.cfg.CompareEvery
	default: // it has not ended
	}
	ms := wait.Milliseconds()
	return &ms
}

// bookPayout books a reading of a payout's transfer, if there is one.
func (m *Merchant) bookPayout(ctx context.Context, p *payout, r books.Reading[gateway.Transfer]) error {
	return m.store.transaction(ctx, func(tx *sql.Tx) error {
		d, err := m.openPayout(ctx, tx, p)
		if err == nil && r.Resource != nil {
			err = d.read(ctx, r)
		}
		if err == nil {
			err = d.save(ctx)
		}
		return err
	})
}

// lookPayout reads the transfer of a payout and books what it shows. Without a transfer it
// takes over what the outbox knows.
func (m *Merchant) lookPayout(ctx context.Context, id string, source books.Source) error {
	p, err := m.readPayout(ctx, m.store.conn(), id)
	if err != nil {
		return err
	}
	r := books.Reading[gateway.Transfer]{Source: source, At: time.Now()}
	if p.TransferID != "" {
		if r.Resource, err = p.account.Client.Transfers.Get(ctx, p.TransferID); err != nil {
			return err
		}
	}
	return m.bookPayout(ctx, p, r)
}

// transferred stores the outcome of the request for a payout.
func (m *Merchant) transferred(ctx context.Context, tx *sql.Tx, a *account, r operations.TransferResult) error {
	list, err := m.readPayouts(ctx, m.store.in(tx), `WHERE account = ? AND ref = ?`, a.Name, r.Operation.ExternalRef)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%w: payout with the reference %s", ErrNotFound, r.Operation.ExternalRef)
	}
	if err != nil {
		return err
	}
	d, err := m.openPayout(ctx, tx, list[0])
	if err != nil {
		return err
	}
	op, reason := books.Applied, ""
	if r.Err != nil {
		op, reason = books.Refused, r.Err.Error()
	}
	if err := d.outcome(ctx, op, reason); err != nil {
		return err
	}
	if r.Value != nil {
		// When the transfer was read is not known; it was not before the operation was stored.
		if err := d.read(ctx, books.Reading[gateway.Transfer]{Resource: r.Value, Source: books.FromResponse, At: r.Entry.CreatedAt}); err != nil {
			return err
		}
	}
	return d.save(ctx)
}

// onTransfer reads the transfer of an event and books what it shows. Signed events have no
// reference, so it is the transfer that tells whose it is: one that is not in the books may
// belong to another system of the account, or to a payout whose response is not stored yet.
func (m *Merchant) onTransfer(ctx context.Context, a *account, id string, announced gateway.TransferStatus, attempt int) error {
	r := books.Reading[gateway.Transfer]{Source: books.FromWebhook, At: time.Now()}
	var err error
	if r.Resource, err = a.Client.Transfers.Get(ctx, id); err != nil {
		return err
	}
	ref := r.Resource.ExternalRef
	list, err := m.readPayouts(ctx, m.store.conn(), `WHERE account = ? AND (transfer_id = ? OR ref = ?) ORDER BY CASE WHEN transfer_id = ? THEN 0 ELSE 1 END`,
		a.Name, strings.ToLower(id), ref, strings.ToLower(id))
	switch {
	case err != nil:
		return err
	case len(list) == 0 && strings.HasPrefix(ref, a.Prefix) && strings.HasSuffix(ref, payoutSuffix):
		return fmt.Errorf("there is no payout with the reference %s, although it has the account's prefix %q", ref, a.Prefix)
	case len(list) == 0:
		return nil
	}
	if err := m.bookPayout(ctx, list[0], r); err != nil {
		return err
	}
	if attempt <= readAgain && books.TransferBehind(r.Resource.Status, announced) {
		return fmt.Errorf("the event says that the transfer is %s, and it was read as %s: it is read again", announced, r.Resource.Status)
	}
	return nil
}

// callPayout calls the callback with the payout as it is now.
func (m *Merchant) callPayout(ctx context.Context, tx *sql.Tx, f *delivery) error {
	if m.cfg.On.Payout == nil {
		return nil
	}
	p, err := m.readPayout(ctx, m.store.in(tx), f.record)
	if err != nil {
		return err
	}
	return m.cfg.On.Payout(ctx, tx, p.shown())
}
