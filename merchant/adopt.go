package merchant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
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

	// Call says that the callbacks are called as if all of it happened now. Set it for what your
	// old code has not shipped: the buyer may pay before it is adopted. Without it the old code
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
		return string(ledger.Charges), p.Transaction
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
		Account: a.Name, Kind: p.kind(), Resource: p.resource(), Subject: p.subject(a.Book), Request: request,
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
// account of this process, and [ErrErased] if the order was erased. Then nothing is stored, and nothing is while the gateway can't
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

// adoptable returns the account of a valid adoption, whose IDs it writes as the gateway does.
func (m *core) adoptable(p *Adoption) (*account, error) {
	a, err := m.account(p.Account)
	if err != nil {
		return nil, err
	}
	for _, id := range []*string{&p.Transaction, &p.Subscription, &p.Transfer} {
		*id = strings.ToLower(*id)
	}
	return a, p.validate()
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
				if err := b.checkErased(); err != nil {
					return err
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
	if strings.HasPrefix(t.ExternalRef, a.Prefix) && a.collides.CompareAndSwap(false, true) {
		m.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "merchant: the reference of an adopted transaction begins with Account.Prefix, so references of "+
			"this package and of other code may be the same. Choose another prefix before the first Open. This process logs it once for each account",
			slog.String("account", a.Name), slog.String("reference", t.ExternalRef), slog.String("prefix", a.Prefix))
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
		b.paidTo(b.payout, t.PixKeyType, t.PixKey)
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
			if b.knows {
				is.Earlier = s.reading.Resource.UpdatedAt.Time
			}
			b.subscription = &is
			b.belongsTo(a, ofSubscription, p.ID, "", s.reading.Resource.CustomerEmail)
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
