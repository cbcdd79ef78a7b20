package merchant

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// Adoption is a resource of the gateway that other code made, such as the code that this package
// replaces, and that the books are to have from now on. Exactly one of Transaction, Subscription
// and Transfer is set.
type Adoption struct {
	Account string `json:"-"` // optional if there is only one

	Transaction  string // the gateway's ID of a charge, whatever its state
	Subscription string // the gateway's ID of a subscription; its charges come with it
	Transfer     string // the gateway's ID of a payout

	// Order is the ID of the order, as for [Merchant.Charge]. It is optional for a transfer. A
	// transaction without an order is a sale by link.
	Order string

	// ID is yours of a subscription or a payout, as for [Merchant.Subscribe] and
	// [Merchant.Payout]; required for these.
	ID string

	// Cost is what the order costs, in cents, if the transaction asks for another amount; 0 if it
	// asks for what the order costs.
	Cost int64

	// Call says that the callbacks are called as if all of it happened now. Otherwise the old code
	// has done what follows from what is so already: it has sent the goods of what is paid. What
	// happens later is reported like any other change.
	Call bool
}

const adopt = "adoptions.adopt"

// validate reports each invalid member as a [gateway.ValidationError].
func (p *Adoption) validate() error {
	n := 0
	for _, is := range []struct{ field, id string }{
		{"transaction", p.Transaction}, {"subscription", p.Subscription}, {"transfer", p.Transfer},
	} {
		if is.id != "" {
			n++
			if err := identify(adopt, is.field, is.id, "the gateway's resource"); err != nil {
				return err
			}
		}
	}
	switch {
	case n != 1:
		return invalid(adopt, "transaction", "exactly one of transaction, subscription and transfer is required")
	case p.Transaction != "" && p.ID != "":
		return invalid(adopt, "id", "must be empty: the charge of a transaction has the transaction's ID")
	case p.Subscription != "" && p.Order != "":
		return invalid(adopt, "order", "must be empty: a subscription belongs to no order")
	case p.Cost < 0:
		return invalid(adopt, "cost", "must not be negative")
	case p.Cost > 0 && (p.Transaction == "" || p.Order == ""):
		return invalid(adopt, "cost", "must be 0: only an order with a transaction has it")
	case len(p.Order) > maxOrder:
		return invalid(adopt, "order", fmt.Sprintf("must have at most %d bytes", maxOrder))
	case len(p.ID) > maxOrder:
		return invalid(adopt, "id", fmt.Sprintf("must have at most %d bytes", maxOrder))
	}
	if p.Order != "" {
		if err := identify(adopt, "order", p.Order, "your order"); err != nil {
			return err
		}
	}
	if p.Transaction == "" {
		return identify(adopt, "id", p.ID, "your subscription or payout")
	}
	return nil
}

// kind and resource name what is adopted.
func (p *Adoption) kind() ledger.Kind {
	switch {
	case p.Subscription != "":
		return ledger.Subscriptions
	case p.Transfer != "":
		return ledger.Payouts
	default:
		return ledger.Charges
	}
}

func (p *Adoption) resource() string { return p.Transaction + p.Subscription + p.Transfer }

// subject is what gets the money.
func (p *Adoption) subject(book string) ledger.Subject {
	switch {
	case p.Subscription != "":
		return ledger.SubscriptionSubject(book, p.ID)
	case p.Order != "":
		return ledger.OrderSubject(book, p.Order)
	case p.Transfer != "":
		return ledger.PayoutSubject(book, p.ID)
	default:
		return ledger.SaleSubject(book, p.Transaction)
	}
}

// record returns the kind and the ID of the record, as [Merchant.Find] names it.
func (p *Adoption) record() (kind, id string) {
	if p.Transaction != "" {
		return string(ledger.Charges), strings.ToLower(p.Transaction)
	}
	return string(p.kind()), p.ID
}

// source says whether the first reading is reported.
func (p *Adoption) source() books.Source {
	if p.Call {
		return books.FromEarlierCalled
	}
	return books.FromEarlier
}

// stored returns the adoption as it waits.
func (p *Adoption) stored(a *account) (ledger.Adoption, error) {
	request, err := encoded(p)
	return ledger.Adoption{
		Account: a.Name, Kind: p.kind(), Resource: strings.ToLower(p.resource()), Subject: p.subject(a.Book), Request: request,
	}, err
}

// Adopt reads a resource that other code made at the gateway, books what it shows and returns its
// record. From then on it is like one that this package made: it can be refunded or canceled, it
// is compared with the gateway, and what happens to it is reported. Entries are in the months in
// which they happened. A second call for the same resource and order changes nothing.
//
// The error is [gateway.ErrValidation] if a member is wrong, and [gateway.ErrNotFound] if the
// account has no such resource; it may be another account's. It is [ErrReused] if the
// resource, or the ID, has a record with something else, such as another order, [ErrCurrency]
// if the order has another currency, and [ErrAccount] if the resource has the reference of another
// account of this process. Then nothing is stored, and nothing is while the gateway can't
// be read: the error is that of the client. About others see [ErrMaybeStored].
func (m *core) Adopt(ctx context.Context, p Adoption) (*Record, error) {
	a, err := m.adoptable(&p)
	if err != nil {
		return nil, err
	}
	if err := m.adopt(ctx, a, &p); err != nil {
		return nil, err
	}
	kind, id := p.record()
	return m.Record(ctx, a.Book, kind, id)
}

// AdoptTx has [Merchant.Run] adopt a resource after the commit of your transaction: for old code
// that still creates some, in the transaction that stores its ID. Until then the order waits:
// [Merchant.ChargeTx] returns [ErrAdopting]. What can't be adopted is a [Problem].
//
// A second call for the same resource changes nothing, or has it tried once more if it could not be
// adopted. The error is [gateway.ErrValidation] if a member is wrong, and [ErrReused] if the
// resource was to be adopted for something else. Then nothing was stored. About your COMMIT see
// [ErrMaybeStored].
func (m *Merchant[TX]) AdoptTx(ctx context.Context, tx TX, p Adoption) error {
	a, err := m.adoptable(&p)
	if err != nil {
		return err
	}
	_, err = m.queue(ctx, m.ledger(m.in(tx)), a, []Adoption{p})
	return err
}

// adoptionPage is how many adoptions are stored in one transaction.
const adoptionPage = 500

// AdoptAll is [Merchant.AdoptTx] for many, in transactions of 500, and returns how many it has
// added: those that were not added before, or could not be adopted. After any error call it again
// with the same list: that adds the rest. [Merchant.Run] works on those of an account in one
// process at a time and reads Config.AdoptRate resources a second, so 50,000 take three hours. See
// [Merchant.Adoptions].
//
// An error of the list, or in one of its members, ends it: what came up to 500 before is not added.
func (m *core) AdoptAll(ctx context.Context, list iter.Seq2[Adoption, error]) (added int, err error) {
	pages := make(map[*account][]Adoption)
	flush := func(a *account) error {
		page := pages[a]
		pages[a] = nil
		var n int64
		err := m.stored(ctx, func(ctx context.Context, tx sqldb.Tx, _ bool) (err error) {
			if err := m.db.UseIndexes(ctx, tx); err != nil {
				return err
			}
			n, err = m.queue(ctx, m.ledger(tx), a, page)
			return err
		})
		added += int(n)
		return err
	}
	place := 0
	for p, err := range list {
		if err != nil {
			return added, err
		}
		place++
		a, err := m.adoptable(&p)
		if err != nil {
			return added, fmt.Errorf("adoption %d of the list: %w", place, err)
		}
		if pages[a] = append(pages[a], p); len(pages[a]) == adoptionPage {
			if err := flush(a); err != nil {
				return added, err
			}
		}
	}
	for a, page := range pages {
		if len(page) > 0 {
			if err := flush(a); err != nil {
				return added, err
			}
		}
	}
	return added, nil
}

// Adoptions returns how many adoptions of an account wait, are done, and have failed: each of
// these is a [Problem] until it is adopted after all. With one account its name may be "". The
// error is [ErrAccount] if there is no such account.
func (m *core) Adoptions(ctx context.Context, account string) (waiting, done, failed int, err error) {
	a, err := m.account(account)
	if err != nil {
		return 0, 0, 0, err
	}
	counts, err := m.outside().CountAdoptions(ctx, a.Name)
	return counts[ledger.AdoptionWaiting], counts[ledger.AdoptionDone], counts[ledger.AdoptionFailed], err
}

// adoptable returns the account of a valid adoption.
func (m *core) adoptable(p *Adoption) (*account, error) {
	a, err := m.account(p.Account)
	if err != nil {
		return nil, err
	}
	return a, p.validate()
}

// queue stores adoptions of an account, and returns how many it has added.
func (m *core) queue(ctx context.Context, l ledger.Ledger, a *account, list []Adoption) (int64, error) {
	type key struct {
		kind     ledger.Kind
		resource string
	}
	asked, resources := make(map[key]ledger.Adoption), make(map[ledger.Kind][]string)
	var order []key
	differs := func(is *ledger.Adoption) error {
		return fmt.Errorf("%w: %s %s is adopted as something else, %s", ErrReused, is.Kind, is.Resource, is.Subject)
	}
	for i := range list {
		one, err := list[i].stored(a)
		if err != nil {
			return 0, err
		}
		k := key{one.Kind, one.Resource}
		if same, twice := asked[k]; !twice {
			asked[k], order, resources[k.kind] = one, append(order, k), append(resources[k.kind], k.resource)
		} else if same.Request != one.Request {
			return 0, differs(&same)
		}
	}
	for kind, of := range resources {
		known, err := l.StoredAdoptions(ctx, a.Name, kind, of)
		if err != nil {
			return 0, err
		}
		for i := range known {
			is := &known[i]
			if is.State == ledger.AdoptionFailed {
				continue
			}
			k := key{kind, is.Resource}
			if one := asked[k]; one.Request != is.Request {
				return 0, differs(is)
			}
			delete(asked, k)
		}
	}
	var added []ledger.Adoption
	for _, k := range order {
		if one, is := asked[k]; is {
			added = append(added, one)
		}
	}
	if len(added) == 0 {
		return 0, nil
	}
	return l.AddAdoptions(ctx, added)
}

// adoptOrder adopts what an order waits for, so that it can be charged.
func (m *core) adoptOrder(ctx context.Context, p ChargeParams) error {
	a, err := m.account(p.Account)
	if err != nil {
		return err
	}
	list, err := m.outside().AdoptionsOf(ctx, ledger.OrderSubject(a.Book, p.Order))
	for i := range list {
		if err == nil {
			err = m.adoptOne(ctx, &list[i])
		}
	}
	if err != nil {
		return fmt.Errorf("%w: order %s: %w", ErrAdopting, p.Order, err)
	}
	return nil
}

// adoptOne adopts what waits.
func (m *core) adoptOne(ctx context.Context, is *ledger.Adoption) error {
	var p Adoption
	if err := decode(is.Request, &p); err != nil {
		return err
	}
	a, err := m.account(is.Account)
	if err != nil {
		return err
	}
	return m.adopt(ctx, a, &p)
}

func (m *core) adopt(ctx context.Context, a *account, p *Adoption) error {
	switch p.kind() {
	case ledger.Subscriptions:
		return m.adoptSubscription(ctx, a, p)
	case ledger.Payouts:
		return m.adoptTransfer(ctx, a, p)
	default:
		return m.adoptTransaction(ctx, a, p)
	}
}

// adopts books a reading of what is adopted, unless it is in the books as what it is adopted as,
// and stores that this is done.
func (m *core) adopts(ctx context.Context, a *account, p *Adoption, at place, book func(*bench) error) error {
	one, err := p.stored(a)
	if err != nil {
		return err
	}
	_, id := p.record()
	err = m.calling(&at, func() error {
		return m.stored(ctx, func(ctx context.Context, tx sqldb.Tx, _ bool) error {
			l, sums := m.ledger(tx), make(map[gateway.Currency]int64)
			if err := m.on(ctx, tx, at, func(b *bench) error {
				known, err := p.known(ctx, l, &one)
				if err != nil {
					return err
				}
				b.over(a, &books.Over{Kind: isAdoption, Record: id, About: aboutOf(one.Kind)})
				if known {
					return nil
				}
				b.knows = !p.Call
				err = book(b)
				for _, r := range b.reports {
					if f := r.fact; f != nil && f.Amount != 0 {
						sums[f.Currency] += f.Amount
					}
				}
				return err
			}); err != nil {
				return err
			}
			for currency, sum := range sums {
				if err := l.AddAdopted(ctx, a.Name, currency, sum); err != nil {
					return err
				}
			}
			return l.EndAdoption(ctx, &one, ledger.AdoptionDone, "")
		})
	})
	if err != nil && !isVerdict(err) { // another transaction may have booked it at the same time as something else
		if _, reused := p.known(ctx, m.outside(), &one); errors.Is(reused, ErrReused) {
			return reused
		}
	}
	return err
}

// known reports whether the books have what is adopted. The error is [ErrReused] if they have it
// as something else.
func (p *Adoption) known(ctx context.Context, l ledger.Ledger, one *ledger.Adoption) (bool, error) {
	rows, err := l.Rows(ctx, one.Kind, ledger.Where{Account: one.Account, Resource: one.Resource})
	if err != nil || len(rows) == 0 {
		return false, err
	}
	if is := &rows[0]; is.Subject != one.Subject || one.Kind != ledger.Charges && is.ID != p.ID {
		return false, fmt.Errorf("%w: %s is booked as %s %s of %s", ErrReused, p.resource(), is.Kind, is.ID, is.Subject)
	}
	return true, nil
}

// missing returns the error of a resource that can't be read.
func (a *account) missing(err error, what, id string) error {
	if errors.Is(err, gateway.ErrNotFound) {
		return fmt.Errorf("merchant: the account %s has no %s %s, or does not show it yet: %w", a.Name, what, id, err)
	}
	return err
}

// made returns when a resource was made, as [ledger.Row.Made].
func made(at gateway.Timestamp, now time.Time) int64 {
	if at.IsZero() || at.After(now) {
		return 0
	}
	return at.UnixMilli()
}

func (m *core) adoptTransaction(ctx context.Context, a *account, p *Adoption) error {
	r, err := a.readTransaction(ctx, p.Transaction, p.source())
	if err != nil {
		return a.missing(err, "transaction", p.Transaction)
	}
	t := r.Resource
	if other := m.otherThan(a, t.ExternalRef); other != nil {
		return fmt.Errorf("%w: transaction %s belongs to account %s, by its reference %s", ErrAccount, t.ID, other.Name, t.ExternalRef)
	}
	var links []string
	if p.Order == "" {
		if links, err = m.soldBy(ctx, a, t.Currency, t.Products); err != nil {
			return err
		}
	}
	return m.adopts(ctx, a, p, place{subject: p.subject(a.Book), lock: ledger.New, charges: true}, func(b *bench) error {
		if p.Order == "" {
			b.addSale(a, t, links)
		} else if err := b.addAdopted(a, p, t); err != nil {
			return err
		}
		ch := b.charges[len(b.charges)-1]
		if ch.Made = made(t.CreatedAt, b.now); ch.Made > 0 {
			ch.Created = time.UnixMilli(ch.Made)
		}
		b.book(ch, r)
		b.unheard(ch)
		return nil
	})
}

// addAdopted puts the charge of an order that other code made on the bench.
func (b *bench) addAdopted(a *account, p *Adoption, t *gateway.Transaction) error {
	is := books.Seen(strings.ToLower(t.ID), books.FromAdoption, t)
	if err := b.pays(p.Order, is.Currency); err != nil {
		return err
	}
	if p.Cost > 0 {
		is.Requested = p.Cost
	}
	b.newCharge(a, chargeRecord{
		Books: is, Amount: t.Amount, Currency: is.Currency, Method: t.Method, Installments: max(t.Installments, 1),
	}, "")
	if b.order.Current == "" {
		b.order.Current = is.ID
	}
	return nil
}

// unheard makes problems of what an adoption without callbacks shows and the order does not need:
// the buyer paid the old code and this one.
func (b *bench) unheard(ch *charge) {
	for _, r := range b.reports {
		if f := r.fact; f != nil && f.Kind == books.PaidAgain && f.Callback == books.None {
			b.problem(ch.account, paidAgain(f.Key, f.Record))
		}
	}
}

func (m *core) adoptTransfer(ctx context.Context, a *account, p *Adoption) error {
	r, err := a.readTransfer(ctx, p.Transfer, p.source())
	if err != nil {
		return a.missing(err, "transfer", p.Transfer)
	}
	t := r.Resource
	return m.adopts(ctx, a, p, place{subject: p.subject(a.Book), payout: p.ID}, func(b *bench) error {
		if b.payout != nil {
			return fmt.Errorf("%w: payout %s is transfer %s", ErrReused, p.ID, b.payout.TransferID)
		}
		if p.Order != "" {
			if err := b.pays(p.Order, gateway.BRL); err != nil {
				return err
			}
		}
		b.payout = &payout{
			payoutRecord: payoutRecord{Payout: books.Payout{ID: p.ID, State: New, Requested: t.Amount}},
			base: base{account: a, Row: ledger.Row{
				Kind: ledger.Payouts, ID: p.ID, Account: a.Name, Subject: b.order.Subject(), Ref: payoutReference(a, p.ID), Created: b.now,
			}},
		}
		if b.payout.Made = made(t.CreatedAt, b.now); b.payout.Made > 0 {
			b.payout.Created = time.UnixMilli(b.payout.Made)
		}
		return b.bookPayout(r)
	})
}

// errIncomplete rolls back the adoption of a subscription of which charges must be read first.
var errIncomplete = errors.New("merchant: charges of the subscription must be read first")

func (m *core) adoptSubscription(ctx context.Context, a *account, p *Adoption) error {
	s := &subscription{
		subscriptionRecord: subscriptionRecord{Books: books.Subscription{ID: p.ID, SubscriptionID: p.Subscription, State: New}},
		base: base{account: a, Row: ledger.Row{
			Kind: ledger.Subscriptions, ID: p.ID, Account: a.Name, Subject: p.subject(a.Book), Ref: a.Prefix + p.ID,
		}},
	}
	for {
		book, err := s.read(ctx, p.source())
		if err != nil {
			return a.missing(err, "subscription", p.Subscription)
		}
		err = m.adopts(ctx, a, p, place{subject: s.Subject, charges: true}, func(b *bench) error {
			if b.subscription != nil {
				return fmt.Errorf("%w: subscription %s is %s", ErrReused, p.ID, b.subscription.Books.SubscriptionID)
			}
			is := *s
			is.adopted(b.now)
			b.subscription = &is
			if err := book(b); err != nil {
				return err
			}
			if s.incomplete() {
				return errIncomplete
			}
			return nil
		})
		if other, is := errors.AsType[otherChargeError](err); is && !slices.Contains(s.others, other.transaction) {
			s.others = append(s.others, other.transaction)
			continue
		}
		if !errors.Is(err, errIncomplete) {
			return err // what could not be read of it is read by the comparisons
		}
	}
}

// adopted takes over what was asked for.
func (s *subscription) adopted(now time.Time) {
	sub := s.reading.Resource
	s.asked = asked{
		Amount: sub.Amount, Currency: sub.Currency, Method: sub.PaymentMethod, Interval: sub.Interval, IntervalCount: max(sub.IntervalCount, 1),
	}
	s.CustomerID, s.Created = sub.CustomerID, now
	if s.Made = made(sub.CreatedAt, now); s.Made > 0 {
		s.Created = time.UnixMilli(s.Made)
	}
}

// isAdoption is a problem: what other code made could not be adopted.
const isAdoption = books.ProblemKind("adoption")

// The limits of the adoption of what waits.
const (
	adoptAtOnce = 8   // resources that are read at the same time
	adoptFor    = day // how long something is tried that can't be read

	maxAdoptRate = 1000
)

// adoptDue adopts what waits of an account, unless another process does.
func (m *core) adoptDue(ctx context.Context, a *account) error {
	lease := m.cfg.Lease
	claimed, err := m.outside().ClaimTask(ctx, ledger.AdoptTask, a.Name, lease)
	if err != nil || !claimed {
		return err
	}
	renewing, end := context.WithCancel(ctx)
	var renewed sync.WaitGroup
	renewed.Go(func() { m.keepAdopting(renewing, a, lease) })
	err = m.adoptPages(ctx, a)
	end()
	renewed.Wait()
	return errors.Join(err, m.outside().TaskIn(context.WithoutCancel(ctx), ledger.AdoptTask, a.Name, 0))
}

// keepAdopting renews the lease of the process that adopts, until ctx ends.
func (m *core) keepAdopting(ctx context.Context, a *account, lease time.Duration) {
	tick := time.NewTicker(max(lease/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := m.outside().TaskIn(ctx, ledger.AdoptTask, a.Name, lease); err != nil && ctx.Err() == nil {
			m.fail(ctx, "the lease of the process that adopts could not be renewed", err, slog.String("account", a.Name))
		}
	}
}

// adoptPages adopts until nothing is due any more.
func (m *core) adoptPages(ctx context.Context, a *account) error {
	rate := min(m.cfg.AdoptRate, maxAdoptRate)
	pace := time.NewTicker(time.Second / time.Duration(rate))
	defer pace.Stop()
	for {
		list, err := m.outside().DueAdoptions(ctx, a.Name, 10*rate)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := m.adoptPage(ctx, list, pace.C); err != nil {
			return err
		}
	}
}

// adoptPage adopts some, each at a tick. It stops when the gate is closed, or nothing can be
// stored.
func (m *core) adoptPage(ctx context.Context, list []ledger.Adoption, tick <-chan time.Time) error {
	var running sync.WaitGroup
	defer running.Wait()
	slots, failed := make(chan struct{}, adoptAtOnce), make(chan error, len(list))
	for i := range list {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case <-tick:
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if err := m.adoptDueOne(ctx, &list[i]); err != nil {
				failed <- err
			}
		})
	}
	running.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// adoptDueOne adopts one and stores what became of it. The error is of what must stop the others.
func (m *core) adoptDueOne(ctx context.Context, is *ledger.Adoption) error {
	err := m.guarded(ctx, "an adoption", func() error { return m.adoptOne(ctx, is) })
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, gate.Refused(err):
		return err
	case isVerdict(err), is.Age > m.adoptFor(err):
		return m.adoptionFailed(ctx, is, err)
	}
	return m.outside().AdoptLater(ctx, is, growing(is.Age), shownError(err))
}

// adoptFor returns how long an adoption is repeated after an error. That the gateway does not find
// a resource may be its lag, as long as old code has just made it.
func (m *core) adoptFor(err error) time.Duration {
	if errors.Is(err, gateway.ErrNotFound) {
		return m.cfg.lag()
	}
	return adoptFor
}

// shownError returns an error's text without personal data, as it is stored.
func shownError(err error) string { return ledger.Clean(masking.Text(err.Error())) }

// adoptionFailed makes a problem of what can't be adopted.
func (m *core) adoptionFailed(ctx context.Context, is *ledger.Adoption, why error) error {
	a, err := m.account(is.Account)
	if err != nil {
		return err
	}
	record := is.Resource
	var p Adoption
	if err := decode(is.Request, &p); err == nil {
		_, record = p.record()
	}
	return m.db.Transaction(ctx, func(tx sqldb.Tx) error {
		if err := m.on(ctx, tx, place{subject: is.Subject}, func(b *bench) error {
			b.problem(a, &books.Problem{
				Key:  fmt.Sprintf("%s/%s/%s/%d", isAdoption, is.Kind, is.Resource, b.now.UnixMilli()),
				Kind: isAdoption, Record: record, About: aboutOf(is.Kind),
				Text: fmt.Sprintf("%s %s could not be adopted: %s. Adopt it once more, as it is right", is.Kind, is.Resource, shownError(why)),
			})
			return nil
		}); err != nil {
			return err
		}
		return m.ledger(tx).EndAdoption(ctx, is, ledger.AdoptionFailed, shownError(why))
	})
}
