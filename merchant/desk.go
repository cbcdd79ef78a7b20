package merchant

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/operations"
)

// The kinds of operations, as the outbox names them.
const (
	kindCharge = "transactions.create"
	kindRefund = "transactions.refund"
)

// chargeRecord is what is stored about a charge.
type chargeRecord struct {
	Books books.Charge

	// What was asked for, to recognize a charge that is asked for again.
	Amount       int64
	Currency     gateway.Currency
	Method       gateway.Method
	Installments int

	// What the buyer needs, as the newest reading shows it.
	PixCode    string
	EndToEndID string
	Voucher    *gateway.VoucherDetails
	Challenge  *gateway.NextAction
	ExpiresAt  time.Time

	// Of a sale by link.
	Link  string
	Buyer *gateway.Buyer
}

// charge is a charge with its place.
type charge struct {
	chargeRecord

	account *account
	subject string
	attempt int
	ref     string
	created time.Time
}

// desk is the records of one order in a transaction that holds the order's lock. Several
// charges may be loaded, one after another.
type desk struct {
	m     *Merchant
	tx    *sql.Tx
	c     conn
	now   time.Time // the database's
	order books.Order

	account *account // that of the record
	charge  *charge
	refunds []books.Refund
	loaded  []books.Refund // as they are stored
}

// orderSubject is the key of an order in the table of orders.
func orderSubject(id string) string { return "order/" + id }

// open locks an order, which is created if it is missing.
func (m *Merchant) open(ctx context.Context, tx *sql.Tx, subject string) (*desk, error) {
	d := &desk{m: m, tx: tx, c: m.store.in(tx)}
	if _, err := d.c.exec(ctx, `INSERT INTO gateway_orders (subject, currency, paid, fee, refunded, disputed, paid_out, adjusted, settled_by)
		VALUES (?, '', 0, 0, 0, 0, 0, 0, '') ON CONFLICT DO NOTHING`, subject); err != nil {
		return nil, err
	}
	order, now, err := readOrder(ctx, d.c, subject, "{lock}")
	if err == nil && order == nil { // made by a transaction that this one, at a stricter level, does not see
		err = fmt.Errorf("merchant: %s was changed at the same time: roll back and repeat the transaction", subject)
	}
	if err != nil {
		return nil, err
	}
	d.order, d.now = *order, now
	return d, nil
}

// readOrder returns nil if there is no such order.
func readOrder(ctx context.Context, c conn, subject, lock string) (order *books.Order, now time.Time, err error) {
	err = c.each(ctx, `SELECT currency, paid, fee, refunded, disputed, paid_out, adjusted, settled_by, closed_at IS NOT NULL, {now}
		FROM gateway_orders WHERE subject = ? `+lock, []any{subject}, func(row database.Scanner) error {
		order = &books.Order{ID: subject}
		var ms int64
		if err := row.Scan(&order.Currency, &order.Paid, &order.Fee, &order.Refunded, &order.Disputed, &order.PaidOut,
			&order.Adjusted, &order.SettledBy, &order.Closed, &ms); err != nil {
			return err
		}
		now = time.UnixMilli(ms)
		return nil
	})
	return order, now, err
}

const chargeColumns = `SELECT account, subject, attempt, COALESCE(ref, ''), created_at, record FROM gateway_charges `

// readCharges returns the charges that a condition selects.
func (m *Merchant) readCharges(ctx context.Context, c conn, where string, args ...any) (list []*charge, err error) {
	err = c.each(ctx, chargeColumns+where, args, func(row database.Scanner) error {
		var name, record string
		var created int64
		ch := new(charge)
		if err := row.Scan(&name, &ch.subject, &ch.attempt, &ch.ref, &created, &record); err != nil {
			return err
		}
		ch.created = time.UnixMilli(created)
		if ch.account = m.accounts[name]; ch.account == nil {
			return fmt.Errorf("%w: this process has no account %s", ErrAccount, name)
		}
		list = append(list, ch)
		return decode(record, &ch.chargeRecord)
	})
	return list, err
}

// readCharge returns a charge, or [ErrNotFound].
func (m *Merchant) readCharge(ctx context.Context, c conn, id string) (*charge, error) {
	list, err := m.readCharges(ctx, c, `WHERE id = ?`, id)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%w: charge %s", ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// readRefunds returns the refunds of the charges that a condition selects.
func readRefunds(ctx context.Context, c conn, where string, args ...any) (list []refund, err error) {
	err = c.each(ctx, `SELECT r.charge, r.record FROM gateway_refunds AS r JOIN gateway_charges AS c ON c.id = r.charge `+where+
		` ORDER BY r.created_at, r.id`, args, func(row database.Scanner) error {
		var r refund
		var record string
		if err := row.Scan(&r.charge, &record); err != nil {
			return err
		}
		if err := decode(record, &r.Refund); err != nil {
			return err
		}
		list = append(list, r)
		return nil
	})
	return list, err
}

// refund is a refund with the ID of its charge.
type refund struct {
	books.Refund

	charge string
}

// load makes a charge of the order the one that is changed, and takes over what the outbox
// knows of its requests.
//
// An operation is marked as sent before its request leaves, and the transaction of the
// desk begins after a reading: so no effect of a refund is taken for someone else's.
func (d *desk) load(ctx context.Context, id string) error {
	ch, err := d.m.readCharge(ctx, d.c, id)
	if err != nil {
		return err
	}
	if ch.subject != d.order.ID {
		return fmt.Errorf("merchant: charge %s belongs to %s, not %s", id, ch.subject, d.order.ID)
	}
	refunds, err := readRefunds(ctx, d.c, `WHERE c.id = ?`, id)
	if err != nil {
		return err
	}
	d.account, d.charge, d.refunds, d.loaded = ch.account, ch, nil, nil
	for i := range refunds {
		d.refunds = append(d.refunds, refunds[i].Refund)
		d.loaded = append(d.loaded, refunds[i].Refund)
	}
	return d.sync(ctx)
}

// sync takes over the progress of the operations that are not finished, and stores it
// together with its facts: the caller may end without [desk.save].
func (d *desk) sync(ctx context.Context) error {
	changed := false
	if op, err := d.progress(ctx, kindCharge, d.charge.ref, d.charge.Books.Operation); err != nil {
		return err
	} else if op != "" {
		changed = true
		if err := d.change(ctx, func(b books.Books) (books.Books, books.Result) {
			return books.ApplyOperation(b, op, "", d.now)
		}); err != nil {
			return err
		}
	}
	for i := range d.refunds {
		id := d.refunds[i].ID
		if op, err := d.progress(ctx, kindRefund, id, d.refunds[i].Operation); err != nil {
			return err
		} else if op != "" {
			changed = true
			if err := d.change(ctx, func(b books.Books) (books.Books, books.Result) {
				return books.ApplyRefund(b, id, op, 0, "", d.now)
			}); err != nil {
				return err
			}
		}
	}
	if changed {
		return d.save(ctx)
	}
	return nil
}

// progress returns the progress of an operation, "" if it is finished, or unchanged.
func (d *desk) progress(ctx context.Context, kind, key string, known books.Operation) (books.Operation, error) {
	if known == "" || known.Ended() {
		return "", nil
	}
	e, err := d.account.outbox.FindTx(ctx, d.tx, kind, key)
	if errors.Is(err, operations.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	op := map[operations.State]books.Operation{
		operations.Waiting: books.Waiting, operations.Working: books.Waiting,
		// The handler of the outbox stores the outcome.
		operations.Sent: books.Sent, operations.Decided: books.Sent, operations.Dead: books.Sent,
		operations.Ambiguous: books.InDoubt, operations.Canceled: books.Abandoned,
	}[e.State]
	if op == known || known == books.InDoubt && (e.State == operations.Decided || e.State == operations.Dead) {
		return "", nil // a person has decided: the outcome must find what was in doubt
	}
	return op, nil
}

// change applies one change to the charge, and stores its facts and problems. [desk.save]
// stores the records.
func (d *desk) change(ctx context.Context, apply func(books.Books) (books.Books, books.Result)) error {
	b, result := apply(books.Books{Order: d.order, Charge: d.charge.Books, Refunds: d.refunds})
	settles := b.Order.SettledBy != d.order.SettledBy
	d.order, d.charge.Books, d.refunds = b.Order, b.Charge, b.Refunds
	if err := d.report(ctx, result); err != nil || !settles {
		return err
	}
	return d.unneeded(ctx)
}

// unneeded reports what was paid of the order before by charges that did not pay it in
// full: now that another one does, the order does not need it.
func (d *desk) unneeded(ctx context.Context) error {
	others, err := d.m.readCharges(ctx, d.c, `WHERE subject = ? AND state = ? AND id <> ?`, d.order.ID, string(Underpaid), d.charge.Books.ID)
	if err != nil {
		return err
	}
	settling := d.account
	defer func() { d.account = settling }()
	for _, ch := range others {
		b := &ch.Books
		d.account = ch.account
		if err := d.fact(ctx, &books.Fact{
			Key: fmt.Sprintf("%s/%s/%d", books.PaidAgain, b.TransactionID, b.Paid), Kind: books.PaidAgain, Order: d.order.ID, Record: b.ID,
			At: d.now, Source: books.FromOutcome, Callback: books.OnPaidAgain,
		}); err != nil {
			return err
		}
		if _, err := d.c.exec(ctx, `UPDATE gateway_problems SET closed_at = {now} WHERE subject = ? AND record = ? AND kind = ? AND closed_at IS NULL`,
			d.order.ID, b.ID, string(books.IsUnderpaid)); err != nil {
			return err
		}
	}
	return nil
}

// report stores the facts and problems of a change.
func (d *desk) report(ctx context.Context, result books.Result) error {
	for i := range result.Facts {
		if err := d.fact(ctx, &result.Facts[i]); err != nil {
			return err
		}
	}
	for i := range result.Problems {
		if err := d.problem(ctx, &result.Problems[i]); err != nil {
			return err
		}
	}
	return nil
}

// read books a reading of the charge's transaction. A transaction with its reference that
// is another payment was made by another system, and is not booked. The outbox compares
// the response to a create itself.
func (d *desk) read(ctx context.Context, r books.Reading[gateway.Transaction]) error {
	if ch := d.charge; ch.Books.TransactionID == "" && r.Source != books.FromResponse && !ch.fits(r.Resource) {
		return d.unmatched(ctx, ch.Books.ID, "transaction "+r.Resource.ID)
	}
	if err := d.change(ctx, func(b books.Books) (books.Books, books.Result) { return books.ApplyTransaction(b, r) }); err != nil {
		return err
	}
	if t, ch := r.Resource, d.charge; strings.EqualFold(t.ID, ch.Books.TransactionID) && t.Status == ch.Books.Status {
		ch.show(t)
	}
	return nil
}

// unmatched raises a problem about a resource that has a record's reference.
func (d *desk) unmatched(ctx context.Context, record, resource string) error {
	return d.problem(ctx, &books.Problem{
		Key: fmt.Sprintf("%s/%s/%s", books.IsUnmatched, record, strings.ToLower(resource)), Kind: books.IsUnmatched, Record: record,
		Text: fmt.Sprintf("%s has the reference of %s, but is not what was asked for: another system made it, and it is not booked", resource, record),
	})
}

// fits reports whether a transaction is the one that was asked for.
func (r *chargeRecord) fits(t *gateway.Transaction) bool {
	return t.AmountIs(r.Amount) && t.Method == r.Method && (t.Currency == "" || t.Currency == r.Currency)
}

// show takes over what the buyer needs.
func (r *chargeRecord) show(t *gateway.Transaction) {
	r.Voucher, r.Challenge = t.Voucher, nil
	if t.Pix != nil {
		r.PixCode, r.EndToEndID, r.ExpiresAt = t.Pix.QRCode, t.Pix.EndToEndID, t.Pix.ExpirationDate.Time
	}
	if t.Voucher != nil {
		r.ExpiresAt = t.Voucher.ExpirationDate.Time
	}
	if t.Status == gateway.TransactionThreeDSRequired || t.Status == gateway.TransactionPending {
		r.Challenge = t.NextAction
	}
}

// save stores the order, the charge and its refunds.
func (d *desk) save(ctx context.Context) error {
	ch := d.charge
	record, err := encoded(&ch.chargeRecord)
	if err != nil {
		return err
	}
	if err := d.c.must(ctx, `UPDATE gateway_charges SET transaction_id = NULLIF(?, ''), end_to_end_id = NULLIF(?, ''), state = ?, check_at = {now} + ?, record = ?
		WHERE id = ?`, strings.ToLower(ch.Books.TransactionID), strings.ToLower(ch.EndToEndID), string(ch.Books.State), d.nextCheck(), record, ch.Books.ID); err != nil {
		return err
	}
	for i := range d.refunds {
		r := &d.refunds[i]
		if reflect.DeepEqual(*r, d.loaded[i]) {
			continue
		}
		record, err := encoded(r)
		if err != nil {
			return err
		}
		if err := d.c.must(ctx, `UPDATE gateway_refunds SET state = ?, record = ? WHERE id = ?`, string(r.State), record, r.ID); err != nil {
			return err
		}
	}
	return d.saveOrder(ctx)
}

func (d *desk) saveOrder(ctx context.Context) error {
	o := &d.order
	return d.c.must(ctx, `UPDATE gateway_orders SET currency = ?, paid = ?, fee = ?, refunded = ?, disputed = ?, paid_out = ?, adjusted = ?, settled_by = ?,
		closed_at = CASE WHEN ? = 0 THEN NULL ELSE COALESCE(closed_at, {now}) END WHERE subject = ?`,
		string(o.Currency), o.Paid, o.Fee, o.Refunded, o.Disputed, o.PaidOut, o.Adjusted, o.SettledBy, number(o.Closed), o.ID)
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// key returns the key under which a fact or problem of the desk's charge is stored. An
// order is settled once, by a charge of any account; all other keys have the account.
func (d *desk) key(kind books.Kind, key string) string {
	if kind == books.Settled {
		return key
	}
	return d.account.Name + ":" + key
}

func (d *desk) fact(ctx context.Context, f *books.Fact) error {
	a := d.account
	var amount *int64
	if f.Amount != 0 {
		amount = &f.Amount
	}
	n, err := d.c.exec(ctx, `INSERT INTO gateway_facts (key, account, subject, record, charge, kind, amount, currency, about, at, month, source,
			created_at, callback, delivered_at, due_at, attempts, error)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {now}, ?, CASE WHEN ? = '' THEN {now} ELSE NULL END, {now}, 0, '')`,
		d.key(f.Kind, f.Key), a.Name, f.Order, f.Record, f.Charge, string(f.Kind), amount, string(f.Currency), f.About, f.At.UnixMilli(),
		f.At.In(a.Zone).Format("2006-01"), string(f.Source), string(f.Callback), string(f.Callback))
	if err == nil && n > 0 && f.Callback != books.None {
		d.m.wake()
	}
	return err
}

// onProblem is the callback of a problem, which is in the queue of facts too.
const onProblem = books.Callback("problem")

func (d *desk) problem(ctx context.Context, p *books.Problem) error {
	key := d.key("", p.Key)
	n, err := d.c.exec(ctx, `INSERT INTO gateway_problems (key, account, subject, record, kind, text, since)
		VALUES (?, ?, ?, ?, ?, ?, {now}) ON CONFLICT (key) DO NOTHING`,
		key, d.account.Name, d.order.ID, p.Record, string(p.Kind), p.Text)
	if err != nil || n == 0 {
		return err
	}
	return d.fact(ctx, &books.Fact{
		Key: problemPrefix + p.Key, Kind: "problem", Order: d.order.ID, Record: p.Record, At: d.now,
		Source: books.FromOutcome, Callback: onProblem,
	})
}

const problemPrefix = "problem/"

// The limits of how often a charge that waits for something is compared.
const (
	soonest = time.Minute
	latest  = 6 * time.Hour
	giveUp  = 60 * 24 * time.Hour
)

// nextCheck returns in how many milliseconds the charge is compared with the gateway, or
// nil if it is not. The wait grows with the charge's age.
func (d *desk) nextCheck() *int64 {
	ch, age := d.charge, d.now.Sub(d.charge.created)
	wait := min(max(age/4, soonest), latest)
	refunding := false
	for i := range d.refunds {
		switch r := &d.refunds[i]; {
		case r.Operation == books.Applied && !r.Shown: // usually the next reading shows it
			wait, refunding = min(wait, max(d.now.Sub(r.AppliedAt), 100*time.Millisecond), soonest), true
		case !r.Operation.Ended():
			wait, refunding = min(wait, soonest), true
		}
	}
	switch {
	case refunding:
	case ch.Books.State == Withdrawn, ch.Books.State == Failed && ch.Books.Status == "", ch.Books.State == Failed && age > giveUp:
		return nil // a charge that failed may still be paid late
	case ch.Books.PaidAt.IsZero() && ch.Books.Paid == 0:
	case d.now.Sub(paidAt(ch)) > d.m.cfg.CompareFor:
		return nil
	default:
		wait = d.m.cfg.CompareEvery
	}
	ms := wait.Milliseconds()
	return &ms
}

func paidAt(ch *charge) time.Time {
	if ch.Books.PaidAt.IsZero() {
		return ch.created
	}
	return ch.Books.PaidAt
}
