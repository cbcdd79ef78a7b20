package merchant

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// chargeRecord is what is stored about a charge.
type chargeRecord struct {
	Books books.Charge

	// What was asked for, to recognize a charge that is asked for again.
	Amount       int64
	Currency     gateway.Currency
	Method       gateway.Method
	Installments int
	Call         string // the call of [Merchant.Charge] that made it

	// What the buyer needs, as the newest reading shows it.
	PixCode    string
	EndToEndID string
	Voucher    *gateway.VoucherDetails
	Challenge  *gateway.NextAction
	ExpiresAt  time.Time

	Watch watch

	// Earlier is what an adoption found and did not report: the code that charged hears of it. It
	// is "" if there was no such adoption.
	Earlier gateway.TransactionStatus `json:",omitempty"`

	// Of a sale by link.
	Link  string
	Buyer *gateway.Buyer
}

// charge is a charge with its place and its refunds.
type charge struct {
	base
	chargeRecord

	refunds []*refund            // the oldest first
	seen    *gateway.Transaction // what was read last
}

func (ch *charge) row() (ledger.Row, error) {
	row := ch.Row
	row.Resource, row.EndToEnd, row.State = strings.ToLower(ch.Books.TransactionID), strings.ToLower(ch.EndToEndID), ch.Books.State
	row.ErasedAt, row.Buyer = ch.erased, ch.buyer
	record := ch.chargeRecord
	if ch.erased != 0 {
		record = ch.kept()
	}
	err := ch.encode(&row, &record, &record.Books.ReadAt)
	return row, err
}

func (ch *charge) watched() (*watch, *account) { return &ch.Watch, ch.account }

func (ch *charge) taken() error {
	if ch.Books.Origin == books.FromSubscription {
		return otherChargeError{ch.Books.TransactionID}
	}
	if ch.Books.Origin == books.FromAdoption {
		return fmt.Errorf("%w: transaction %s is booked for another order", ErrReused, ch.Books.TransactionID)
	}
	if ch.Ref == "" {
		return fmt.Errorf("%w: transaction %s has a charge of another account", ErrAccount, ch.Books.TransactionID)
	}
	return fmt.Errorf("%w: charge %s", ErrReused, ch.Books.ID)
}

// holds reports whether a problem was raised that a reading may end.
func holds(problems []books.Raised) bool {
	return slices.ContainsFunc(problems, func(r books.Raised) bool { return !r.Over })
}

// books returns what a change of the charge needs.
func (ch *charge) books(o *books.Order) books.Books {
	is := books.Books{Order: *o, Charge: ch.Books}
	for _, r := range ch.refunds {
		is.Refunds = append(is.Refunds, r.Refund)
	}
	return is
}

// refund is a refund with its place.
type refund struct {
	books.Refund

	stored ledger.Refund // Record is "" if it is new
}

func (r *refund) row(ch *charge) (ledger.Refund, error) {
	row := r.stored
	row.ID, row.Charge, row.Account, row.Subject, row.State = r.ID, ch.ID, ch.Account, ch.Subject, r.State
	var err error
	record := r.Refund
	if ch.erased != 0 {
		record = keptRefund(&r.Refund)
	}
	row.Record, err = encoded(&record)
	return row, err
}

// loadCharges returns charges without their refunds, those of a subject the oldest first.
func (m *reading) loadCharges(ctx context.Context, l ledger.Ledger, w ledger.Where) ([]*charge, error) {
	rows, err := l.Rows(ctx, ledger.Charges, w)
	if err != nil {
		return nil, err
	}
	charges := make([]*charge, len(rows))
	for i := range rows {
		if charges[i], err = m.chargeOf(&rows[i]); err != nil {
			return nil, err
		}
	}
	return charges, nil
}

func (m *reading) chargeOf(row *ledger.Row) (*charge, error) {
	ch := &charge{base: m.based(row)}
	err := decode(row.Record, &ch.chargeRecord)
	if ch.erased != 0 { // an earlier release may have stored more since
		ch.chargeRecord = ch.kept()
	}
	ch.readAt = ch.Books.ReadAt
	return ch, err
}

// loadCharge returns a charge without its refunds, or [ErrNotFound].
func (m *reading) loadCharge(ctx context.Context, l ledger.Ledger, id string) (*charge, error) {
	row, err := l.Charge(ctx, id)
	if err != nil {
		return nil, err
	}
	return m.chargeOf(row)
}

// chargesOf returns charges that were read with their refunds.
func (m *reading) chargesOf(is ledger.Records) ([]*charge, error) {
	charges, byID := make([]*charge, len(is.Charges)), make(map[string]*charge, len(is.Charges))
	for i := range is.Charges {
		ch, err := m.chargeOf(&is.Charges[i])
		if err != nil {
			return nil, err
		}
		charges[i], byID[ch.ID] = ch, ch
	}
	for i := range is.Refunds {
		r, err := refundOf(&is.Refunds[i])
		if err != nil {
			return nil, err
		}
		ch := byID[r.stored.Charge]
		ch.refunds = append(ch.refunds, r)
	}
	return charges, nil
}

func refundOf(row *ledger.Refund) (*refund, error) {
	r := &refund{stored: *row}
	return r, decode(row.Record, &r.Refund)
}

// showRefund returns a refund of a book as the merchant gets it, or [ErrNotFound].
func showRefund(ctx context.Context, l ledger.Ledger, book, id string) (*Refund, error) {
	row, err := l.Refund(ctx, book, id)
	if err != nil {
		return nil, err
	}
	r, err := refundOf(row)
	if err != nil {
		return nil, err
	}
	return r.shown(), nil
}

// read reads the charge's transaction, and returns what books it. Without a transaction
// there is only what the outbox knows.
func (ch *charge) read(ctx context.Context, source books.Source) (func(*bench) error, error) {
	if ch.Books.TransactionID == "" {
		return func(b *bench) error { return b.touchCharge(ch.ID) }, nil
	}
	r, err := ch.account.readTransaction(ctx, ch.Books.TransactionID, source)
	if err != nil {
		return nil, err
	}
	ch.seen = r.Resource
	return func(b *bench) error { return b.bookOne(ch.ID, r) }, nil
}

// same reports whether the transaction that was read shows what is booked.
func (ch *charge) same(lane ledger.Lane) bool {
	return ch.seen != nil && ch.unmoved(ch.seen, lane) && ch.shows(ch.seen)
}

// unmoved reports whether nothing is awaited of the charge, and its transaction has not changed
// since it was booked. A charge that was paid is in the routine lane only if no refund is under
// way.
func (ch *charge) unmoved(t *gateway.Transaction, lane ledger.Lane) bool {
	is := &ch.Books
	if ch.Watch != (watch{}) || holds(is.Problems) || is.Operation != "" && !is.Operation.Ended() || is.Paid > 0 && lane != ledger.Routine || !is.LowerSince.IsZero() {
		return false
	}
	return t.Status == is.Status && !t.UpdatedAt.IsZero() && t.UpdatedAt.Time.Equal(is.UpdatedAt)
}

// shows reports whether a transaction shows the money that is booked.
func (ch *charge) shows(t *gateway.Transaction) bool {
	is := &ch.Books
	booked := books.Side{Paid: is.Paid, Fee: is.Fee, Refunded: is.Refunded, Disputed: is.Disputed}
	there, wrong := books.Shown(t, booked)
	return wrong == "" && there == booked
}

// stopped reports whether what was read shows other money than is booked, and nothing else has
// changed: then updated_at did not move with the change, and a list would never have shown it.
func (ch *charge) stopped(lane ledger.Lane) bool {
	return lane == ledger.Routine && ch.seen != nil && ch.unmoved(ch.seen, lane) && !ch.shows(ch.seen)
}

// stopped says what [charge.stopped] has found.
func stopped(t *gateway.Transaction) string {
	return "updated_at of transaction " + t.ID + " did not move with a change"
}

// readTransaction reads a transaction.
func (a *account) readTransaction(ctx context.Context, id string, source books.Source) (r books.Reading[gateway.Transaction], err error) {
	if err := a.present(); err != nil {
		return r, err
	}
	r.Source, r.At = source, a.clock.now()
	r.Resource, err = a.Client.Transactions.Get(ctx, id)
	return r, err
}

// touchCharge plans the next comparison of a charge anew.
func (b *bench) touchCharge(id string) error {
	ch, err := b.charge(id)
	if err == nil {
		ch.touched = true
	}
	return err
}

// bookOne books a reading of a charge's transaction. If its status has changed, the
// subscription that it is a charge of may show more, and is read soon.
func (b *bench) bookOne(id string, r books.Reading[gateway.Transaction]) error {
	ch, err := b.charge(id)
	if err != nil {
		return err
	}
	before := ch.Books.Status
	b.book(ch, r)
	if b.subscription != nil && ch.Books.Status != before {
		b.subscription.ReadAfter, b.subscription.touched = b.now, true
	}
	return nil
}

// book books a reading of a charge's transaction. A transaction with its reference that is
// another payment was made by another system, and is not booked. The outbox compares the
// response to a create itself.
func (b *bench) book(ch *charge, r books.Reading[gateway.Transaction]) {
	ch.touched = true
	if ch.Books.TransactionID == "" && r.Source != books.FromResponse && !ch.fits(r.Resource) {
		b.unmatched(ch.account, books.AboutCharge, ch.Books.ID, "transaction "+r.Resource.ID)
		return
	}
	b.change(ch, func(is books.Books) (books.Books, books.Result) { return books.ApplyTransaction(is, r) })
	if t := r.Resource; strings.EqualFold(t.ID, ch.Books.TransactionID) && t.Status == ch.Books.Status {
		if ch.show(t); ch.erased != 0 {
			ch.chargeRecord = ch.kept()
		}
	}
	if ch.buyer == 0 && r.Resource.ID != "" {
		b.boughtBy(ch, r.Resource.Buyer.Document, r.Resource.Buyer.Email)
		ch.buyer = ledger.BuyerStored
	}
	if b.knows {
		ch.Earlier = ch.Books.Status
	}
	b.found(ch)
	announced := ch.Watch.Announced
	ch.Watch.announce(b.now, announced, books.Behind(ch.Books.Status, gateway.TransactionStatus(announced)))
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

// next returns when the charge is compared again. The wait grows with the charge's age.
func (ch *charge) next(now time.Time, cfg *Config) ledger.Plan {
	age := now.Sub(ch.Created)
	p := ledger.Plan{Wait: growing(age), Lane: laneOf(age)}
	refunding := false
	for _, r := range ch.refunds {
		switch {
		case r.Operation == books.Applied && !r.Shown: // usually the next reading shows it
			if since := now.Sub(r.AppliedAt); since < giveUp {
				p.Wait, refunding = min(p.Wait, r.shownIn(since)), true
			}
		case !r.Operation.Ended():
			p.Wait, refunding = min(p.Wait, soonest), true
		}
	}
	soon, isWatched := ch.Watch.next(now)
	switch state := ch.Books.State; {
	case refunding:
		p.Lane = ledger.Fresh
	case isWatched:
		p.Never, p.Wait, p.Lane = soon.Never, min(p.Wait, soon.Wait), soon.Lane
	case state == Withdrawn, state == Failed && ch.final(age):
		p.Never = true
	case ch.Books.PaidAt.IsZero() && ch.Books.Paid == 0:
	case now.Sub(ch.paidAt()) > cfg.CompareFor:
		p.Never = true
	default:
		p.Wait, p.Lane = cfg.CompareEvery, ledger.Routine
		if state == Disputed && !ch.Books.Status.Final() { // its end is waited for, see [dispute]
			p.Lane = ledger.Open
		}
	}
	return p
}

// shownIn returns when a refund that is confirmed and not shown is looked for again.
func (r *refund) shownIn(since time.Duration) time.Duration {
	if since < day {
		return min(max(since, soonestRefund), soonest)
	}
	return growing(since) // it is a problem
}

// final reports whether a charge that failed can't be paid any more: only a voucher is paid
// after it has expired. A Pix is read for a while, because its payment may cross its expiry.
func (ch *charge) final(age time.Duration) bool {
	switch ch.Books.Status {
	case "", gateway.TransactionRefused, gateway.TransactionCanceled: // "": the request was refused
		return true
	default:
		return age > giveUp || ch.Method != gateway.Voucher && age-ch.ExpiresAt.Sub(ch.Created) > day
	}
}

// paidAt returns when the charge was paid, or made if that is not known or is later: a clock of the
// gateway that is behind, as that of a mock, must not end the comparisons of what was just paid.
func (ch *charge) paidAt() time.Time {
	paid := ch.Books.PaidAt
	if paid.IsZero() || paid.Before(ch.Created) && ch.Books.Origin != books.FromAdoption {
		return ch.Created
	}
	return paid
}

// shown returns the charge as the merchant gets it.
func (ch *charge) shown() *Charge {
	b, buyer := &ch.Books, ch.Buyer
	if ch.erased != 0 && b.Origin == FromLink {
		buyer = noBuyer()
	}
	return &Charge{
		ID: b.ID, Book: ch.Subject.Book, Account: ch.Account, Order: ledger.OrderID(ch.Subject), Subscription: ledger.SubscriptionID(ch.Subject), Attempt: ch.Attempt,
		TransactionID: b.TransactionID, Method: ch.Method,
		State: b.State, Reason: b.Reason, Currency: b.Currency, Requested: b.Requested, Amount: b.Amount, Paid: b.Paid, Fee: b.Fee,
		Refunded: b.Refunded, Disputed: b.Disputed, Late: b.Late, PixCode: ch.PixCode, Voucher: ch.Voucher, Challenge: ch.Challenge,
		Origin: b.Origin, Link: ch.Link, Buyer: buyer, Erased: erasedAt(ch.erased),
		account: ch.account, call: ch.Call, EndToEndID: ch.EndToEndID, CreatedAt: ch.Created, ExpiresAt: ch.ExpiresAt, PaidAt: b.PaidAt,
	}
}

// refund returns a refund of the charge as the merchant gets it.
func (ch *charge) refund(r *books.Refund) *Refund {
	return &Refund{ID: r.ID, Book: ch.Subject.Book, Account: ch.Account, Charge: ch.ID, State: r.State, Amount: r.Moved, Reason: r.Reason}
}

// shown returns a stored refund as the merchant gets it.
func (r *refund) shown() *Refund {
	return &Refund{ID: r.ID, Book: r.stored.Subject.Book, Account: r.stored.Account, Charge: r.stored.Charge, State: r.State, Amount: r.Moved, Reason: r.Reason}
}
