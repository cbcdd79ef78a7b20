package merchant

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// EraseParams says of what nothing is kept of the buyer. Exactly one of Order, Sale, Subscription and
// Payout is set.
type EraseParams struct {
	Order        string // the ID of an order, with its charges, refunds and payouts
	Sale         string // the ID of the charge of a sale by link
	Subscription string // yours, with its charges and refunds
	Payout       string // yours; also one that belongs to an order, of which the rest stays

	By, Why string // who decides, and why; required, and stored for good: without the buyer's data
}

// ErrErased reports that the call would store personal data in a record from which it was erased; see
// [Merchant.Erase]: use another ID.
var ErrErased = errors.New("merchant: the buyer's data was erased from this record: use another ID")

const eraseOp = "merchant.erase"

// The kinds of what is erased.
const (
	ofOrder        = "order"
	ofSale         = "sale"
	ofSubscription = "subscription"
	ofPayout       = "payout"
)

// validate reports each invalid member as a [gateway.ValidationError].
func (p *EraseParams) validate() error {
	n := 0
	for _, is := range []struct{ field, id string }{
		{ofOrder, p.Order}, {ofSale, p.Sale}, {ofSubscription, p.Subscription}, {ofPayout, p.Payout},
	} {
		if is.id != "" {
			n++
			if err := identify(eraseOp, is.field, is.id, "what is erased"); err != nil {
				return err
			}
		}
	}
	if n != 1 {
		return invalid(eraseOp, ofOrder, "exactly one of order, sale, subscription and payout is required")
	}
	return decides(p.By, p.Why)
}

// decides checks who has decided to erase something, and why.
func decides(by, why string) error {
	switch {
	case strings.TrimSpace(by) == "":
		return invalid(eraseOp, "by", "is required: it says who decides")
	case strings.TrimSpace(why) == "":
		return invalid(eraseOp, "why", "is required: it says why, without the buyer's data")
	}
	return nil
}

// owned names what is erased.
func (p *EraseParams) owned(book string) ledger.Owned {
	switch {
	case p.Order != "":
		return ledger.Owned{Book: book, Kind: ofOrder, Record: p.Order}
	case p.Sale != "":
		return ledger.Owned{Book: book, Kind: ofSale, Record: strings.ToLower(p.Sale)}
	case p.Subscription != "":
		return ledger.Owned{Book: book, Kind: ofSubscription, Record: p.Subscription}
	default:
		return ledger.Owned{Book: book, Kind: ofPayout, Record: p.Payout}
	}
}

// Erase erases what is stored of a buyer: with an order, a sale by link, a subscription or a payout. IDs,
// amounts, currencies, methods, states, times, facts and problems stay, so the books do not change; the
// rest goes: names, addresses, documents, Pix codes and vouchers, the digests of requests, what was left of
// events, the errors of callbacks, the reasons of earlier decisions, and whatever a later release has
// added. What is read later changes money and states as before, and stores nothing of the buyer. Refunds
// are possible; a charge, a payout or an adoption that would store a buyer again is [ErrErased]. By and
// Why stay, and are in [Merchant.Story].
//
// The error is [ErrState], and says what to wait for, while something is under way: a request, an open
// charge, refund, payout or dispute, a subscription that is still charged, an adoption, a callback or an
// event. An open charge of an order does not matter once that is closed, see [Merchant.CloseOrderTx]. It
// is [ErrNotFound] if there is no such record, [gateway.ErrValidation] if a member is wrong, and
// [ErrAccount] if there are several books, see [Merchant.Book]. A second call erases what was stored
// since, if anything. After [ErrMaybeStored] call it again; after any other error nothing is erased.
//
// Your own tables, logs and backups have the buyer too, and so has the gateway.
func (m *core) Erase(ctx context.Context, p EraseParams) error {
	call := rand.Text()
	return m.noted(ctx, call, func(ctx context.Context, tx sqldb.Tx) error { return m.eraseTx(ctx, tx, &p, call) })
}

// EraseTx is [Merchant.Erase] in your transaction, in which you erase your own rows. About your
// COMMIT see [ErrMaybeStored].
func (m *Merchant[TX]) EraseTx(ctx context.Context, tx TX, p EraseParams) error {
	return m.eraseTx(ctx, m.in(tx), &p, rand.Text())
}

func (m *core) eraseTx(ctx context.Context, tx sqldb.Tx, p *EraseParams, call string) error {
	if err := p.validate(); err != nil {
		return err
	}
	book, err := m.oneBook(ctx)
	if err != nil {
		return err
	}
	return m.eraseOwned(ctx, tx, p.owned(book), p, call)
}

// eraseOwned erases what belongs to a buyer.
func (m *core) eraseOwned(ctx context.Context, tx sqldb.Tx, o ledger.Owned, p *EraseParams, call string) error {
	l := m.ledger(tx)
	at, err := placeOf(ctx, l, o)
	if err != nil {
		return err
	}
	err = m.on(ctx, tx, at, func(b *bench) error {
		e, err := b.erasure(ctx, l, o)
		if err != nil {
			return err
		}
		if err := e.done(ctx, l); err != nil {
			return err
		}
		return e.erase(ctx, l, p, call)
	})
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: %s %s", ErrNotFound, o.Kind, o.Record)
	}
	return err
}

// placeOf returns the place of what belongs to a buyer, with all its charges, or [ErrNotFound].
func placeOf(ctx context.Context, l ledger.Ledger, o ledger.Owned) (place, error) {
	at := place{lock: ledger.Known, charges: true}
	switch o.Kind {
	case ofOrder:
		at.subject = ledger.OrderSubject(o.Book, o.Record)
	case ofSale:
		at.subject = ledger.SaleSubject(o.Book, o.Record)
	case ofSubscription:
		at.subject = ledger.SubscriptionSubject(o.Book, o.Record)
	default:
		row, err := l.Row(ctx, ledger.Payouts, o.Book, o.Record)
		if err != nil {
			return at, err
		}
		at = place{subject: row.Subject, payout: row.ID, lock: ledger.Known}
	}
	return at, nil
}

// erasure is what is erased on a bench.
type erasure struct {
	ledger.Erasure

	b       *bench
	whole   bool // all of the subject, and not one payout of an order
	payouts []*payout
}

// erasure collects what belongs to a buyer: the records, with their requests and resources.
func (b *bench) erasure(ctx context.Context, l ledger.Ledger, o ledger.Owned) (*erasure, error) {
	e := &erasure{
		Erasure: ledger.Erasure{
			Subject: b.order.Subject(), Owned: []ledger.Owned{o}, Plain: plainProblems, Adoption: keptAdoption,
		},
		b: b, whole: o.Kind != ofPayout || b.order.Subject() == ledger.PayoutSubject(o.Book, o.Record),
	}
	for _, ch := range b.charges {
		if ch.Ref != "" {
			e.operation(ch.Account, kindCharge, ch.Ref)
		}
		for _, r := range ch.refunds {
			e.operation(ch.Account, kindRefund, r.ID)
		}
		e.resource(&ch.Row, ch.Books.TransactionID)
	}
	if s := b.subscription; s != nil {
		e.operation(s.Account, kindCustomer, s.Ref)
		e.operation(s.Account, kindSubscribe, s.Ref)
		for n := range s.Cancels {
			e.operation(s.Account, kindCancel, fmt.Sprintf("%s-%d", s.Ref, n+1))
		}
		e.resource(&s.Row, s.Books.SubscriptionID)
	} else if o.Kind == ofSubscription {
		return nil, ErrNotFound
	}
	if b.payout != nil {
		e.payouts = append(e.payouts, b.payout)
	}
	if o.Kind == ofOrder {
		rows, err := l.Rows(ctx, ledger.Payouts, ledger.Where{Subject: e.Subject})
		if err != nil {
			return nil, err
		}
		for i := range rows {
			p, err := b.m.payoutOf(&rows[i])
			if err != nil {
				return nil, err
			}
			e.payouts, b.others = append(e.payouts, p), append(b.others, p)
		}
	}
	for _, p := range e.payouts {
		if o.Kind == ofOrder {
			e.Owned = append(e.Owned, ledger.Owned{Book: o.Book, Kind: ofPayout, Record: p.Payout.ID})
		}
		e.operation(p.Account, kindPayout, p.Ref)
		e.resource(&p.Row, p.TransferID)
	}
	if !e.whole {
		e.Payout = o.Record
	}
	return e, nil
}

func keptAdoption(request string) (string, error) {
	var p Adoption
	if err := decode(request, &p); err != nil {
		return "", err
	}
	kept := p.kept()
	return encoded(&kept)
}

func (e *erasure) operation(account, kind, key string) {
	e.Operations = append(e.Operations, ledger.Operation{Account: account, Kind: kind, Key: key})
}

func (e *erasure) resource(row *ledger.Row, id string) {
	if id != "" {
		e.Resources = append(e.Resources, ledger.Resource{Account: row.Account, Kind: row.Kind, ID: strings.ToLower(id)})
	}
}

// done returns [ErrState] while something is under way, with what to wait for.
func (e *erasure) done(ctx context.Context, l ledger.Ledger) error {
	what := e.open()
	if what == "" {
		waiting, err := l.AdoptionsOf(ctx, e.Subject)
		if err != nil {
			return err
		}
		if len(waiting) > 0 && e.whole {
			what = fmt.Sprintf("%s %s waits for its adoption: let Run adopt it", waiting[0].Kind, waiting[0].Resource)
		}
	}
	if what == "" {
		var err error
		if what, err = l.WaitsFor(ctx, &e.Erasure); err != nil {
			return err
		}
	}
	if what != "" {
		return fmt.Errorf("%w: %s", ErrState, what)
	}
	return nil
}

// open returns what is under way in the records, "" if nothing is.
func (e *erasure) open() string {
	for _, ch := range e.b.charges {
		if what := ch.open(e.b.order.Closed); what != "" {
			return what
		}
	}
	for _, p := range e.payouts {
		switch p.Payout.State {
		case Paid, Failed, Canceled, Rejected, Withdrawn:
		default:
			return fmt.Sprintf("payout %s is %s: wait until it was paid or has failed", p.Payout.ID, p.Payout.State)
		}
	}
	if s := e.b.subscription; s != nil && !s.notMade() && (!s.Books.Status.Final() || s.canceling()) {
		return fmt.Sprintf("subscription %s is %s, so it may still be charged: cancel it, and wait until it has ended", s.ID,
			s.Books.State)
	}
	return ""
}

// open returns what is under way of a charge, "" if nothing is. A charge of an order that is closed may
// still be paid, but then the money goes back, for which nothing of the buyer is needed.
func (ch *charge) open(closed bool) string {
	is := &ch.Books
	for _, r := range ch.refunds {
		if !r.Operation.Ended() || r.Operation == books.Applied && !r.Shown {
			return fmt.Sprintf("refund %s is %s: wait until it is done or rejected", r.ID, r.State)
		}
	}
	switch {
	case is.Operation != "" && !is.Operation.Ended():
		return fmt.Sprintf("charge %s is %s: wait until its outcome is known or, if it is a problem, resolve it", ch.ID,
			is.State)
	case is.State == Pending && !closed:
		until := "it was paid or has expired"
		if !ch.ExpiresAt.IsZero() {
			until += ", at " + ch.ExpiresAt.UTC().Format(time.RFC3339)
		}
		return fmt.Sprintf("charge %s may still be paid: wait until %s, or close the order", ch.ID, until)
	case is.State == Disputed && !is.Status.Final():
		return fmt.Sprintf("charge %s is disputed: wait until the dispute has ended", ch.ID)
	}
	return ""
}

// marked reports whether all records were erased before.
func (e *erasure) marked() bool {
	is := !e.whole || e.b.order.ErasedAt != 0
	for _, r := range e.records() {
		is = is && r.ErasedAt != 0
	}
	return is
}

func (e *erasure) records() (list []*ledger.Row) {
	for _, ch := range e.b.charges {
		list = append(list, &ch.Row)
	}
	for _, p := range e.payouts {
		list = append(list, &p.Row)
	}
	if s := e.b.subscription; s != nil {
		list = append(list, &s.Row)
	}
	return list
}

// erase erases all. [bench.save] stores the records without what may not stay.
func (e *erasure) erase(ctx context.Context, l ledger.Ledger, p *EraseParams, call string) error {
	b := e.b
	if !e.marked() {
		note := &ledger.Note{
			Subject: e.Subject, Record: e.Owned[0].Record, Kind: e.Owned[0].Kind, Decision: ledger.Erased, By: p.By, Why: p.Why,
			Call: call,
		}
		for _, r := range e.records() {
			note.Account = r.Account
		}
		if _, err := l.AddNote(ctx, note); err != nil {
			return err
		}
	}
	given, err := l.Erase(ctx, &e.Erasure)
	if err != nil {
		return err
	}
	now := b.now.UnixMilli()
	mark := func(at *int64) {
		if *at == 0 {
			*at = now
		}
	}
	if e.whole {
		mark(&b.order.ErasedAt)
	}
	for _, ch := range b.charges {
		mark(&ch.erased)
		if ch.buyer == 0 { // he is not looked for any more
			ch.buyer = ledger.BuyerUnknown
		}
	}
	for _, p := range e.payouts {
		mark(&p.erased)
	}
	if s := b.subscription; s != nil {
		mark(&s.erased)
		s.Params = ""
	}
	for _, r := range given { // no handler has handled these events: the gateway is read instead
		for _, ch := range b.charges {
			if r.Kind == ledger.Charges && r.ID == strings.ToLower(ch.Books.TransactionID) {
				ch.Watch.announce(b.now, unhandledEvent, true)
			}
		}
	}
	return nil
}

// unhandledEvent is what was announced by an event that was given up. Any reading shows it.
const unhandledEvent = "unhandled"

// Buyer says whose data is erased; see [Merchant.EraseBuyer].
type Buyer struct {
	Document string // a CPF, CNPJ or another document, with or without punctuation
	Email    string
}

// OwnedRecord is what belongs to a buyer: an order, a sale by link, a subscription or a payout.
type OwnedRecord struct {
	Book string
	Kind string // "order", "sale", "subscription" or "payout"
	ID   string // that of EraseParams
	Err  error  // why it could not be erased; nil if it was
}

// BuyerErasure is the result of [Merchant.EraseBuyer].
type BuyerErasure struct {
	Erased []OwnedRecord
	Left   []OwnedRecord // what could not be erased yet, and why: call EraseBuyer again later

	// Unread says that there are charges that a release before version 9 of the schema has stored, whose
	// buyers are not known here yet: [Merchant.Run] reads them one after the other. Call EraseBuyer again
	// until it is false. The receivers of payouts of such a release are not known: use [Merchant.Erase].
	Unread bool
}

// EraseBuyer calls [Merchant.Erase] for each record of a buyer in the book: those whose buyer, member or
// Pix key has the document or the e-mail address. With both, it is what has one of them. Records are found
// by digests, which are erased with them. By and Why are those of [EraseParams].
//
// What can't be erased yet is in the result, with its error, and does not keep the rest. The error is
// [gateway.ErrValidation] if both members, By or Why are empty, [ErrAccount] if there are several books,
// and otherwise that of the database; then call it again.
func (m *core) EraseBuyer(ctx context.Context, who Buyer, by, why string) (*BuyerErasure, error) {
	book, err := m.oneBook(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(who.validate(), decides(by, why)); err != nil {
		return nil, err
	}
	l := m.outside()
	keys, err := l.DigestKeys(ctx, book)
	if err != nil {
		return nil, err
	}
	var digests []string
	for _, key := range keys {
		digests = append(digests, digestsOf(key, who.Document, who.Email)...)
	}
	owned, err := l.OwnedBy(ctx, book, digests)
	if err != nil {
		return nil, err
	}
	result := &BuyerErasure{}
	for _, o := range owned {
		call, p := rand.Text(), &EraseParams{By: by, Why: why}
		one := OwnedRecord{Book: o.Book, Kind: o.Kind, ID: o.Record}
		one.Err = m.noted(ctx, call, func(ctx context.Context, tx sqldb.Tx) error {
			return m.eraseOwned(ctx, tx, o, p,
				call)
		})
		switch {
		case one.Err == nil:
			result.Erased = append(result.Erased, one)
		case isVerdict(one.Err):
			result.Left = append(result.Left, one)
		default:
			return result, one.Err
		}
	}
	result.Unread, err = l.HasUnknownBuyers(ctx, m.namesOf(book))
	return result, err
}

func (b *Buyer) validate() error {
	if normalDocument(b.Document) == "" && normalEmail(b.Email) == "" {
		return invalid(eraseOp, "document", "is required unless there is an e-mail address: it says whose data is erased")
	}
	return nil
}

// namesOf returns the names of the accounts of a book in this process.
func (m *core) namesOf(book string) []string {
	return slices.DeleteFunc(m.names(), func(name string) bool { return m.accounts[name].Book != book })
}

// checkErased returns [ErrErased] if the bench's order was erased, so that nothing of a buyer is stored
// with it.
func (b *bench) checkErased() error {
	if b.order.ErasedAt == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrErased, b.order.Subject().ID)
}
