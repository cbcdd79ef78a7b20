package merchant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
)

// place is what of a subject is put on a bench.
type place struct {
	subject ledger.Subject
	lock    ledger.Lock

	charges bool   // all charges, with their refunds
	charge  string // this charge only
	payout  string // this payout
	ends    request
	of      string // the account of that request

	calls *bool // is set if a fact with a callback was stored; nil if that wakes the courier at once
}

// request is a request whose outcome is stored: the outbox is not asked about it.
type request struct{ kind, key string }

// at returns the place of a row's order. Of the charges of a subscription, which may be many,
// only the one is needed.
func at(row *ledger.Row) place {
	p := place{subject: row.Subject, charges: true}
	switch row.Kind {
	case ledger.Payouts:
		p.charges, p.payout = false, row.ID
	case ledger.Charges:
		if ledger.SubscriptionID(row.Subject) != "" {
			p.charges, p.charge = false, row.ID
		}
	case ledger.Subscriptions:
	}
	return p
}

// bench has the records of one order, a sale, a subscription or a payout while they are
// changed. [core.on] stores what differs from what it loaded; only [bench.withdraw] and its like
// change an outbox at once, because what they return decides.
type bench struct {
	m     *core
	now   time.Time // the database's
	order ledger.Order

	charges      []*charge // the oldest first
	payout       *payout
	others       []*payout // further ones
	subscription *subscription

	was      ledger.Order   // as it is stored
	reports  []report       // in the order in which they are delivered
	sends    []send         // the new requests
	buyers   []ledger.Buyer // by which new records are found
	calls    *bool          // see place
	closes   []int64        // the numbers of problems that a person has resolved
	added    []ledger.Write // what removes the new records
	requests requests
	knows    bool // the merchant knows what follows for goods and access: it happened before the books had it
	tells    bool // that the merchant knows is to be stored
}

// send is a new request. what names its record in the error [ErrReused], if the key belongs to
// another request.
type send struct {
	account *account
	op      operations.Operation
	what    string
	by      *sender // the call that sends it after its commit; nil if Run does
}

// report is a fact or a problem of an account, or a kind of problems that no longer hold.
type report struct {
	account *account
	fact    *books.Fact
	problem *books.Problem
	over    *books.Over
}

// on locks an order, puts its records on a bench, takes over what the outbox knows of their
// requests, and has work change them. Then it stores what is changed, with its facts and
// problems, and the new requests. If work fails, nothing is stored, unless it has withdrawn a
// request: then the caller rolls back.
//
// An operation is marked as sent before its request leaves, and the transaction begins after
// a reading: so no effect of a refund is taken for someone else's.
func (m *core) on(ctx context.Context, tx sqldb.Tx, p place, work func(*bench) error) error {
	l := m.ledger(tx)
	order, is, now, err := l.Lock(ctx, p.subject, p.lock, ledger.With{Charges: p.charges, Charge: p.charge})
	if err != nil {
		return err
	}
	m.clock.set(now)
	b := &bench{m: m, now: now, order: *order, was: *order, calls: p.calls, requests: requests{m: m, tx: tx}}
	if b.charges, err = m.chargesOf(is); err != nil {
		return err
	}
	if err := b.load(ctx, l, &p); err != nil {
		return err
	}
	if err := b.takeOver(ctx, p.ends); err != nil {
		return err
	}
	if err := work(b); err != nil {
		return err
	}
	if err := b.judge(ctx, l, &p); err != nil {
		return err
	}
	if err := b.save(ctx, l); err != nil {
		return err
	}
	if err := b.tell(ctx, l); err != nil {
		return err
	}
	if b.order.ErasedAt != 0 && p.ends.key != "" { // it was stored after the erasure
		if err := l.EraseOperation(ctx, ledger.Operation{Account: p.of, Kind: p.ends.kind, Key: p.ends.key}); err != nil {
			return err
		}
	}
	return b.send(ctx, l)
}

// send stores the new requests, after the records: no request is without one. If one can't be
// stored, the new records go, so that none is without its request if the caller commits
// nevertheless.
func (b *bench) send(ctx context.Context, l ledger.Ledger) error {
	for _, s := range b.sends {
		if err := b.requests.insert(ctx, &s); err != nil {
			return errors.Join(err, l.Write(ctx, b.added))
		}
	}
	return nil
}

// once is on in a transaction of its own, which is repeated after a conflict.
func (m *core) once(ctx context.Context, p place, work func(*bench) error) error {
	return m.calling(&p, func() error {
		return m.db.Transaction(ctx, func(tx sqldb.Tx) error { return m.on(ctx, tx, p, work) })
	})
}

// calling runs transactions for a place, and wakes the courier after their commit.
func (m *core) calling(p *place, run func() error) error {
	var calls bool
	p.calls = &calls
	err := run()
	if calls { // also after an error: the outcome of the commit may not be known
		signal(m.due)
	}
	return err
}

// load loads what was not read with the order.
func (b *bench) load(ctx context.Context, l ledger.Ledger, p *place) (err error) {
	if p.payout != "" {
		if b.payout, err = b.m.loadPayout(ctx, l, p.subject.Book, p.payout); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	if id := ledger.SubscriptionID(p.subject); id != "" {
		if b.subscription, err = b.m.loadSubscription(ctx, l, p.subject.Book, id); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	b.setBack()
	return nil
}

// setBack moves times that are to come to now. They are of a clock that was set back since:
// nothing would be newer for as long.
func (b *bench) setBack() {
	raised := func(list []books.Raised) {
		for i := range list {
			past(b.now, &list[i].At)
		}
	}
	for _, ch := range b.charges {
		raised(ch.Books.Problems)
		past(b.now, &ch.Books.ReadAt, &ch.Books.LowerSince, &ch.Watch.AnnouncedAt, &ch.Watch.MissingSince)
		for _, r := range ch.refunds {
			past(b.now, &r.AppliedAt)
		}
	}
	if p := b.payout; p != nil {
		raised(p.Problems)
		past(b.now, &p.ReadAt, &p.LowerSince, &p.Watch.AnnouncedAt, &p.Watch.MissingSince)
	}
	if s := b.subscription; s != nil {
		raised(s.Books.Problems)
		past(b.now, &s.Books.ReadAt, &s.ReadAfter, &s.Watch.AnnouncedAt, &s.Watch.MissingSince)
	}
}

func past(now time.Time, times ...*time.Time) {
	for _, t := range times {
		if t.After(now) {
			*t = now
		}
	}
}

// charge returns a charge of the bench by its ID, or [ErrNotFound].
func (b *bench) charge(id string) (*charge, error) {
	for _, ch := range b.charges {
		if ch.Books.ID == id {
			return ch, nil
		}
	}
	return nil, fmt.Errorf("%w: charge %s", ErrNotFound, id)
}

// attempts returns the number of the last attempt.
func (b *bench) attempts() int {
	if len(b.charges) == 0 {
		return 0
	}
	return b.charges[len(b.charges)-1].Attempt
}

// takeOver takes over the progress of the requests that have not ended. The handler of the
// one that ends stores its outcome.
func (b *bench) takeOver(ctx context.Context, ends request) error {
	if err := b.requests.ask(ctx, b.open(ends)); err != nil {
		return err
	}
	for _, ch := range b.charges {
		if op := b.requests.progress(ch.account, kindCharge, ch.Ref, ch.Books.Operation); op != "" {
			b.change(ch, func(is books.Books) (books.Books, books.Result) { return books.ApplyOperation(is, op, "", b.now) })
		}
		for _, r := range ch.refunds {
			if op := b.requests.progress(ch.account, kindRefund, r.ID, r.Operation); op != "" {
				b.change(ch, func(is books.Books) (books.Books, books.Result) { return books.ApplyRefund(is, r.ID, op, 0, "", b.now) })
			}
		}
	}
	if p := b.payout; p != nil {
		if op := b.requests.progress(p.account, kindPayout, p.Ref, p.Operation); op != "" {
			b.payoutIs(op, "")
		}
	}
	if b.subscription != nil {
		b.takeOverSubscription()
	}
	return nil
}

// open returns the requests of the records on the bench that have not ended, without the one
// that ends.
func (b *bench) open(ends request) (list []openRequest) {
	add := func(a *account, kind, key string, known books.Operation) {
		if is := (request{kind, key}); known != "" && !known.Ended() && is != ends {
			list = append(list, openRequest{a, is})
		}
	}
	for _, ch := range b.charges {
		add(ch.account, kindCharge, ch.Ref, ch.Books.Operation)
		for _, r := range ch.refunds {
			add(ch.account, kindRefund, r.ID, r.Operation)
		}
	}
	if p := b.payout; p != nil {
		add(p.account, kindPayout, p.Ref, p.Operation)
	}
	if s := b.subscription; s != nil {
		add(s.account, s.creates(), s.Ref, s.Books.Operation)
		if s.Canceling && s.Cancels > 0 {
			add(s.account, kindCancel, s.cancelKey(), books.Sent)
		}
	}
	return list
}

// change applies one change to a charge.
func (b *bench) change(ch *charge, apply func(books.Books) (books.Books, books.Result)) {
	after, result := apply(ch.books(&b.order.Order))
	settles := after.Order.SettledBy != b.order.SettledBy
	b.order.Order, ch.Books, ch.touched = after.Order, after.Charge, true
	for i, r := range ch.refunds {
		r.Refund = after.Refunds[i]
	}
	b.report(ch.account, result)
	if settles {
		b.unneeded(ch)
	}
}

// unneeded reports what the order does not need of its charges, apart from the one that has
// settled it now.
func (b *bench) unneeded(settling *charge) {
	for _, ch := range b.charges {
		if ch == settling {
			continue
		}
		after, result := books.Unneeded(b.order.Order, []books.Charge{ch.Books}, b.now)
		ch.Books = after[0]
		b.report(ch.account, result)
	}
}

// report adds the facts and problems of a change.
func (b *bench) report(a *account, result books.Result) {
	for i := range result.Facts {
		b.reports = append(b.reports, report{account: a, fact: &result.Facts[i]})
	}
	for i := range result.Over {
		b.over(a, &result.Over[i])
	}
	for i := range result.Problems {
		b.problem(a, &result.Problems[i])
	}
}

// over adds that problems no longer hold.
func (b *bench) over(a *account, o *books.Over) {
	b.reports = append(b.reports, report{account: a, over: o})
}

func (b *bench) problem(a *account, p *books.Problem) {
	b.reports = append(b.reports, report{account: a, problem: p})
}

// unmatched raises a problem about a resource that has a record's reference.
func (b *bench) unmatched(a *account, about books.About, record, resource string) {
	b.problem(a, &books.Problem{
		Key: fmt.Sprintf("%s/%s/%s", books.IsUnmatched, record, strings.ToLower(resource)), Kind: books.IsUnmatched, Record: record,
		About: about,
		Text:  fmt.Sprintf("%s has the reference of %s, but is not what was asked for: another system made it, and it is not booked", resource, record),
	})
}

// save stores what is changed.
func (b *bench) save(ctx context.Context, l ledger.Ledger) error {
	writes, err := b.saveReports(ctx, l)
	if err != nil {
		return err
	}
	// Of the charges whose outcome is open an order has one: what is changed goes before
	// what is new.
	var added, scheduled []ledger.Write
	for _, r := range b.records() {
		row, err := r.row()
		if err != nil {
			return err
		}
		stored := r.stored()
		switch {
		case stored.Record == "":
			added = append(added, row.Add(r.taken()))
			b.added = append(b.added, row.Remove()...)
		case row != *stored:
			writes = append(writes, row.Save())
		case !r.isTouched():
			continue
		}
		scheduled = append(scheduled, row.Schedule(r.next(b.now, &b.m.cfg)))
	}
	for _, ch := range b.charges {
		for _, r := range ch.refunds {
			row, err := r.row(ch)
			switch {
			case err != nil:
				return err
			case r.stored.Record == "":
				added = append(added, row.Add(fmt.Errorf("%w: refund %s", ErrReused, r.ID)))
				b.added = append(b.added, row.Remove())
			case row != r.stored:
				writes = append(writes, row.Save())
			}
		}
	}
	writes = append(writes, added...)
	if len(b.buyers) > 0 {
		writes = append(writes, ledger.AddBuyers(b.buyers))
	}
	if len(b.sends) > 0 {
		b.order.Purged = false
	}
	if len(writes) > 0 || b.order != b.was {
		writes = append(writes, b.order.Save())
	}
	return l.Write(ctx, append(writes, scheduled...))
}

// saveReports stores the problems, and returns what stores the facts and closes problems.
func (b *bench) saveReports(ctx context.Context, l ledger.Ledger) (closes []ledger.Write, err error) {
	var facts []ledger.NewFact
	for _, id := range b.closes {
		closes = append(closes, ledger.CloseProblem(id))
	}
	for _, r := range b.reports {
		switch {
		case r.fact != nil:
			facts = append(facts, r.account.fact(r.fact))
		case r.over != nil:
			closes = append(closes, ledger.CloseProblems(b.order.Subject(), r.over))
		default:
			if err := l.Write(ctx, closes); err != nil { // the same problem may hold again
				return nil, err
			}
			closes = nil
			p := r.problem
			added, err := l.AddProblem(ctx, &ledger.Problem{
				Key: r.account.key("", p.Key), Account: r.account.Name, Subject: b.order.Subject(), Record: p.Record, About: p.About,
				Kind: p.Kind, Text: p.Text,
			})
			if err != nil {
				return nil, err
			}
			if added {
				facts = append(facts, r.account.fact(&books.Fact{
					Key: problemPrefix + p.Key, Kind: "problem", Order: b.order.ID, Record: p.Record, At: b.now,
					Source: books.FromOutcome, Callback: onProblem,
				}))
			}
		}
	}
	if slices.ContainsFunc(facts, func(f ledger.NewFact) bool { return f.Callback != books.None }) {
		if b.calls != nil {
			*b.calls = true
		} else {
			signal(b.m.coming)
		}
	}
	if len(facts) > 0 {
		closes = append(closes, ledger.AddFacts(facts))
	}
	return closes, nil
}

// record is what a charge, a payout and a subscription have in common on a bench.
type record interface {
	stored() *ledger.Row      // Record is "" if it is new
	row() (ledger.Row, error) // as it is now
	taken() error             // if its ID or reference is in use
	watched() (*watch, *account)

	// touch notes that the record was looked at, so its next comparison is planned anew.
	touch()
	isTouched() bool
	next(now time.Time, cfg *Config) ledger.Plan // when it is compared again
}

func (b *bench) records() (list []record) {
	for _, ch := range b.charges {
		list = append(list, ch)
	}
	if b.payout != nil {
		list = append(list, b.payout)
	}
	for _, p := range b.others {
		list = append(list, p)
	}
	if b.subscription != nil {
		list = append(list, b.subscription)
	}
	return list
}

// base is what every record has.
type base struct {
	ledger.Row // as it is stored

	account *account
	touched bool
	readAt  time.Time // as it is stored
	erased  int64     // as Row.ErasedAt, as it is now
	buyer   int64     // as Row.Buyer, as it is now
}

// based returns what every record has, of a row that is stored.
func (m *reading) based(row *ledger.Row) base {
	return base{Row: *row, account: m.anyAccount(row.Account, row.Subject.Book), erased: row.ErasedAt, buyer: row.Buyer}
}

// encode sets the record of a row. When it was read last is not worth a write: what else a
// reading has changed decides.
func (r *base) encode(row *ledger.Row, record any, readAt *time.Time) (err error) {
	now := *readAt
	*readAt = r.readAt
	row.Record, err = encoded(record)
	*readAt = now
	if err == nil && *row != r.Row {
		row.Record, err = encoded(record)
	}
	return err
}

func (r *base) stored() *ledger.Row { return &r.Row }
func (r *base) touch()              { r.touched = true }
func (r *base) isTouched() bool     { return r.touched }

// onProblem is the callback of a problem, which is in the queue of facts too.
const onProblem = books.Callback("problem")

const problemPrefix = "problem/"

// key returns the key under which a fact or problem of an account is stored. An order is
// settled once, by a charge of any account, and its goods are owed or not; all other keys have
// the account.
func (a *account) key(kind books.Kind, key string) string {
	if kind == books.Settled || kind == books.GoodsChanged {
		return key
	}
	return a.Name + ":" + key
}

// fact returns a fact of the account as it is stored.
func (a *account) fact(f *books.Fact) ledger.NewFact {
	return ledger.NewFact{Fact: *f, StoredKey: a.key(f.Kind, f.Key), Account: a.Name, Book: a.Book, Month: f.At.In(a.Zone).Format("2006-01")}
}

// requests are the requests of records in the outboxes, in the transaction of a bench.
type requests struct {
	m  *core
	tx sqldb.Tx

	found map[openRequest]*operations.Entry // that were asked for
}

// openRequest is a request that has not ended, as far as its record knows.
type openRequest struct {
	account *account
	request
}

// ask asks the outboxes about requests, each once for a kind. What a process lacks the account
// of, and what was purged, it does not find.
func (q *requests) ask(ctx context.Context, list []openRequest) error {
	type of struct {
		account *account
		kind    string
	}
	keys := make(map[of][]string)
	for _, r := range list {
		if r.account.outbox != nil {
			keys[of{r.account, r.kind}] = append(keys[of{r.account, r.kind}], r.key)
		}
	}
	q.found = make(map[openRequest]*operations.Entry, len(list))
	for of, keys := range keys {
		entries, err := of.account.outbox.FindAllTx(ctx, q.tx, of.kind, keys)
		if err != nil {
			return err
		}
		for key, e := range entries {
			q.found[openRequest{of.account, request{of.kind, key}}] = e
		}
	}
	return nil
}

// progress returns the new progress of a request. It is "" if nothing is new: the request was
// not asked for or not found, or its progress is the same.
func (q *requests) progress(a *account, kind, key string, known books.Operation) books.Operation {
	e := q.found[openRequest{a, request{kind, key}}]
	if e == nil {
		return ""
	}
	op := map[operations.State]books.Operation{
		operations.Waiting: books.Waiting, operations.Working: books.Waiting,
		// The handler of the outbox stores the outcome.
		operations.Sent: books.Sent, operations.Decided: books.Sent, operations.Dead: books.Sent,
		operations.Ambiguous: books.InDoubt, operations.Canceled: books.Abandoned,
	}[e.State]
	if op == known || known == books.InDoubt && (e.State == operations.Decided || e.State == operations.Dead) {
		return "" // a person has decided: the outcome must find what was in doubt
	}
	return op
}

// insert stores a new request.
func (q *requests) insert(ctx context.Context, s *send) error {
	if err := s.account.present(); err != nil {
		return err
	}
	var err error
	if s.by != nil {
		s.by.claim, err = s.account.outbox.InsertClaimedTx(ctx, q.tx, s.op)
	} else {
		_, err = s.account.outbox.InsertTx(ctx, q.tx, s.op)
	}
	if errors.Is(err, operations.ErrKeyReused) {
		return fmt.Errorf("%w: %s", ErrReused, s.what)
	}
	return err
}

// withdraw cancels a request, unless it was sent or a worker is about to send it: then the
// error is [operations.ErrState].
func (q *requests) withdraw(ctx context.Context, a *account, kind, key string) error {
	if err := a.present(); err != nil {
		return err
	}
	e, err := a.outbox.FindTx(ctx, q.tx, kind, key)
	if err != nil {
		return err
	}
	return a.outbox.CancelTx(ctx, q.tx, e.ID)
}
