package merchant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// Statement is the sum of an account's entries of a month, in cents of Currency. An entry
// belongs to the month in which it happened by the gateway's clock, in the account's zone,
// so a webhook that is late may still change an earlier month.
type Statement struct {
	Account  string
	Month    string           // "2026-11"
	Currency gateway.Currency // that of the account's first entry; "" if there is none

	Opening  int64 // Closing of the month before
	Paid     int64
	Fee      int64 // as the gateway estimated it
	Refunded int64
	Disputed int64 // less than zero if disputes of earlier months were won
	PaidOut  int64
	Adjusted int64 // by [Merchant.Adjust]
	Closing  int64 // Opening + Paid − Fee − Refunded − Disputed − PaidOut + Adjusted

	// Others are the statements of the entries in other currencies.
	Others []*Statement
}

// add adds the sum of the entries of a kind.
func (s *Statement) add(kind books.Kind, before, during int64) error {
	s.Opening += before
	s.Closing += before + during
	switch kind {
	case books.EntryPaid:
		s.Paid += during
	case books.EntryFee:
		s.Fee -= during
	case books.EntryRefunded:
		s.Refunded -= during
	case books.EntryDisputed:
		s.Disputed -= during
	case books.EntryPaidOut:
		s.PaidOut -= during
	case books.EntryAdjusted:
		s.Adjusted += during
	default: // of a newer release
		return fmt.Errorf("merchant: this release does not know entries of the kind %q", kind)
	}
	return nil
}

const monthLayout = "2006-01"

// month returns the beginning of a month in the account's zone.
func (a *account) month(op, month string) (time.Time, error) {
	begin, err := time.ParseInLocation(monthLayout, month, a.Zone)
	if err != nil {
		return begin, invalid(op, "month", `must be a year and a month, such as "2026-11"`)
	}
	return begin, nil
}

// Month returns the statement of an account and a month, such as "2026-11". With one
// account its name may be "". The error is [ErrAccount] if there is no such account, and
// [gateway.ErrValidation] if the month is no month.
func (m *reading) Month(ctx context.Context, account, month string) (*Statement, error) {
	a, err := m.account(account)
	if err != nil {
		return nil, err
	}
	if _, err := a.month("books.month", month); err != nil {
		return nil, err
	}
	main := &Statement{Account: a.Name, Month: month}
	var sums []ledger.Sum
	if err := m.byIndex(ctx, func(l ledger.Ledger) (err error) {
		if sums, err = l.Month(ctx, a.Name, month); err != nil {
			return err
		}
		// It is read afterwards, so that it is known if there are sums.
		main.Currency, err = l.Currency(ctx, a.Name)
		return err
	}); err != nil {
		return nil, err
	}
	for _, sum := range sums {
		if err := main.in(sum.Currency).add(sum.Kind, sum.Before, sum.During); err != nil {
			return nil, err
		}
	}
	return main, nil
}

// in returns the statement in a currency.
func (s *Statement) in(currency gateway.Currency) *Statement {
	if currency == s.Currency {
		return s
	}
	for _, other := range s.Others {
		if other.Currency == currency {
			return other
		}
	}
	other := &Statement{Account: s.Account, Month: s.Month, Currency: currency}
	s.Others = append(s.Others, other)
	return other
}

// AdjustParams describes a correction of the books.
type AdjustParams struct {
	ID      string // of the decision, such as a number of your accounting, unique among the corrections of the account's book; required
	Account string // optional if there is only one
	Order   string // "" for a correction of the account

	Amount  int64  // cents of the order's currency: a positive one adds to what remains for you; required
	By, Why string // who decides, and why; required, and stored: Why until the order is erased, see [Merchant.Erase]
}

func (p *AdjustParams) validate() error {
	const op = "books.adjust"
	if err := identify(op, "id", p.ID, "your decision"); err != nil {
		return err
	}
	switch {
	case p.Amount == 0 || p.Amount > spec.MaxSafeAmount || p.Amount < -spec.MaxSafeAmount:
		return invalid(op, "amount", fmt.Sprintf("must not be 0, and at most %d in either direction", int64(spec.MaxSafeAmount)))
	case strings.TrimSpace(p.By) == "":
		return invalid(op, "by", "is required: it says who decides")
	case strings.TrimSpace(p.Why) == "":
		return invalid(op, "why", "is required: it says why")
	case p.Order != "":
		return identify(op, "order", p.Order, "your order")
	}
	return nil
}

// note returns the decision as it is stored. Its problem has the amount, to recognize a
// correction that is asked for again.
func (p *AdjustParams) note(a *account, subject ledger.Subject) *ledger.Note {
	r := Resolution{Decision: adjust, By: p.By, Why: p.Why}
	of := Problem{Account: a.Name, Kind: ProblemKind(books.EntryAdjusted), ID: strconv.FormatInt(p.Amount, 10)}
	return r.note(&of, subject, fmt.Sprintf("adjust/%q/%s", a.Book, p.ID))
}

// Adjust books a correction of an order's money on an account, or of the account. It is for
// what no resource of the gateway shows, such as a fee that was deducted later. It belongs to
// the current month, and [Merchant.Story] shows it.
//
// Calling it again with the same ID and parameters books nothing more. The error is
// [ErrReused] if the account, order or amount differ, [ErrNotFound] if the account has no
// charge of the order, [ErrAccount] if there is no such account, and [gateway.ErrValidation]
// if a parameter is invalid. After [ErrMaybeStored] call it again; after any other error
// nothing is stored.
func (m *core) Adjust(ctx context.Context, p AdjustParams) error {
	a, err := m.account(p.Account)
	if err != nil {
		return err
	}
	if err := p.validate(); err != nil {
		return err
	}
	subject := ledger.AccountSubject(a.Book, a.Name)
	if p.Order != "" {
		subject = ledger.OrderSubject(a.Book, p.Order)
	}
	note := p.note(a, subject)
	err = m.stored(ctx, func(ctx context.Context, tx sqldb.Tx, _ bool) error {
		l := m.ledger(tx)
		if p.Order != "" {
			list, err := l.Requests(ctx, ledger.RequestWhere{Subject: subject, Account: a.Name})
			if err != nil {
				return err
			}
			if len(list) == 0 {
				return fmt.Errorf("%w: account %s has no charge of order %s", ErrNotFound, a.Name, p.Order)
			}
		}
		first, err := l.Currency(ctx, a.Name)
		if err != nil {
			return err
		}
		return m.on(ctx, tx, place{subject: subject}, func(b *bench) error {
			id, err := l.AddNote(ctx, note)
			if err != nil {
				return err
			}
			var result books.Result
			b.order.Order, result = books.Adjust(b.order.Order, strconv.FormatInt(id, 10), p.Amount, cmp.Or(b.order.Currency, first, gateway.BRL), b.now)
			b.report(a, result)
			return nil
		})
	})
	if !errors.Is(err, ledger.ErrNoted) {
		return err
	}
	stored, err := m.outside().Noted(ctx, note.Call)
	if err == nil && stored != nil && (stored.Account != note.Account || stored.Subject != note.Subject || stored.Problem != note.Problem) {
		err = fmt.Errorf("%w: correction %s", ErrReused, p.ID)
	}
	return err
}

// adjust is the decision of a note about an adjustment.
const adjust Decision = "adjust"

// DifferenceKind says what differs.
type DifferenceKind string

// The kinds of differences.
const (
	DiffMissingHere  DifferenceKind = "missing_here"  // the gateway's list has a payment or a payout under the account's prefix that is not booked: There
	DiffMissingThere DifferenceKind = "missing_there" // the gateway does not have the transaction or transfer of an entry: Here is what was paid or paid out
	DiffPaid         DifferenceKind = "paid"
	DiffFee          DifferenceKind = "fee"
	DiffRefunded     DifferenceKind = "refunded"
	DiffDisputed     DifferenceKind = "disputed"
	DiffPaidOut      DifferenceKind = "paid_out"
	DiffCurrency     DifferenceKind = "currency"
	DiffAssumed      DifferenceKind = "assumed"    // the gateway reports no paid amount, so what was charged is booked: Here
	DiffUnreadable   DifferenceKind = "unreadable" // what the gateway's list shows can't be true, see Difference.Text
	DiffBalance      DifferenceKind = "balance"    // the account's balance changed by There, and its entries add up to Here, see Difference.Text
	DiffOrder        DifferenceKind = "order"      // the sums of an order are not those of its entries
	DiffTotal        DifferenceKind = "total"      // a sum of the statement, Here, is not that of its entries, There
)

// Difference is where two sides disagree. Amounts are in cents.
type Difference struct {
	Resource string // the gateway's ID of the transaction or transfer, "" if an order or the balance differs
	Record   string // the ID of the charge or payout, "" if there is none
	Order    string
	Kind     DifferenceKind
	Here     int64 // in the entries
	There    int64 // in the gateway's list, or the sum of the order
	Text     string
}

// lookBack is for how long before a month the gateway's list is read: a voucher is paid
// days after its transaction was created.
const lookBack = giveUp

// CheckMonth returns the statement of a month with where it disagrees with the gateway: it
// reads the gateway's lists of transactions and transfers again, page by page, and compares
// each one that was paid or changed in the month, or has entries in it, with all its
// entries. It also compares the statement and each order of the month with their entries. It changes nothing:
// [Merchant.Refresh] books what was missed.
//
// It reads what was created in the month and in the 60 days before, older transactions and
// transfers with entries in the month and, if the list has no amounts, each transaction that
// was paid or refunded in part, or disputed. The list of transfers can't be limited to a
// month, so all later ones are read too. Check a month some days after its end: what the
// gateway did a moment ago may not be booked yet.
//
// With [Account.Balance] it also compares how much the account's balance changed with the
// entries that were booked meanwhile, from within a day of the month's begin to within a day
// of its end. What other systems do on the account is a difference, and so is a fee that is
// not the estimated one: [Merchant.Adjust] books it. An open dispute is one while the
// gateway does not withhold the money yet.
//
// The errors are those of [Merchant.Month], and those of the client if the list can't be
// read.
func (m *core) CheckMonth(ctx context.Context, account, month string) (*Statement, []Difference, error) {
	s, err := m.Month(ctx, account, month)
	if err != nil {
		return nil, nil, err
	}
	a := m.accounts[s.Account]
	begin, err := a.month("books.check", month)
	if err != nil {
		return nil, nil, err
	}
	ck := &check{m: &m.reading, account: a, l: m.outside(), month: month, begin: begin, end: begin.AddDate(0, 1, 0), currency: s.Currency, seen: make(map[string]bool)}
	for _, step := range []func(context.Context) error{ck.totals, ck.orders, ck.listed, ck.older, ck.listedTransfers, ck.olderTransfers, ck.balance} {
		if err := step(ctx); err != nil {
			return nil, nil, err
		}
	}
	return s, ck.differences, nil
}

// check compares the entries of an account's month.
type check struct {
	m           *reading
	account     *account
	l           ledger.Ledger
	month       string
	begin, end  time.Time
	currency    gateway.Currency
	seen        map[string]bool // transactions and transfers
	differences []Difference
}

func (k *check) add(d Difference) { k.differences = append(k.differences, d) }

// orders compares the sums of the orders with their entries.
func (k *check) orders(ctx context.Context) error {
	unequal, err := k.l.Unequal(ctx, k.account.Name, k.month)
	for _, u := range unequal {
		k.add(Difference{Kind: DiffOrder, Order: ledger.OrderID(u.Subject), Here: u.Entries, There: u.Net})
	}
	return err
}

// listed compares the transactions that the gateway lists for the month.
func (k *check) listed(ctx context.Context) error {
	p := gateway.TransactionListParams{Limit: spec.MaxPageSize, From: k.begin.Add(-lookBack), To: k.end}
	for page, err := range k.account.Client.Transactions.Pages(ctx, p) {
		if err != nil {
			return err
		}
		if err := k.page(ctx, page.Items); err != nil {
			return err
		}
	}
	return nil
}

// page compares the transactions of a page.
func (k *check) page(ctx context.Context, items []gateway.Transaction) error {
	var ids []string
	for i := range items {
		ids = append(ids, strings.ToLower(items[i].ID))
	}
	if len(ids) == 0 {
		return nil
	}
	entries, err := k.l.ChargeSums(ctx, k.account.Name, k.month, ids)
	if err != nil {
		return err
	}
	for i := range items {
		t := &items[i]
		id := strings.ToLower(t.ID)
		if k.seen[id] { // the list moved on while it was read
			continue
		}
		k.seen[id] = true
		e := entries[id]
		switch during := k.during(t.PaidAt.Time) || k.during(t.UpdatedAt.Time) || e != nil && e.During; {
		case !during:
		case e != nil:
			if err := k.compareListed(ctx, t, e); err != nil {
				return err
			}
		case strings.HasPrefix(t.ExternalRef, k.account.Prefix):
			if there, wrong := books.Shown(t, books.Side{}); wrong != "" || there.Paid != 0 {
				k.add(Difference{Resource: t.ID, Kind: DiffMissingHere, There: there.Paid, Text: wrong})
			}
		}
	}
	return nil
}

func (k *check) during(at time.Time) bool { return !at.Before(k.begin) && at.Before(k.end) }

// compare compares a transaction with the entries of its charge.
func (k *check) compare(t *gateway.Transaction, e *ledger.Sums) error {
	var stored chargeRecord
	if err := decode(e.Record, &stored); err != nil {
		return err
	}
	d := Difference{Resource: t.ID, Record: e.ID, Order: ledger.OrderID(e.Subject)}
	there, wrong := books.Shown(t, e.Side)
	if wrong != "" {
		d.Kind, d.Here, d.Text = DiffUnreadable, e.Paid, wrong
		k.add(d)
		return nil
	}
	for _, is := range []struct {
		kind        DifferenceKind
		here, there int64
	}{
		{DiffPaid, e.Paid, there.Paid},
		{DiffFee, e.Fee, there.Fee},
		{DiffRefunded, e.Refunded, there.Refunded},
		{DiffDisputed, e.Disputed, there.Disputed},
	} {
		if is.here != is.there {
			d.Kind, d.Here, d.There = is.kind, is.here, is.there
			k.add(d)
		}
	}
	d.Here, d.There = 0, 0
	if e.Paid != 0 && t.Currency != "" && t.Currency != stored.Books.Currency {
		d.Kind, d.Text = DiffCurrency, fmt.Sprintf("%s here, %s there", stored.Books.Currency, t.Currency)
		k.add(d)
	}
	if stored.Books.Assumed {
		d.Kind, d.Here, d.Text = DiffAssumed, e.Paid, ""
		k.add(d)
	}
	return nil
}

// compareListed compares a transaction as the list shows it. A list without amounts does
// not show what was paid or refunded in part, so such a transaction is read.
func (k *check) compareListed(ctx context.Context, t *gateway.Transaction, e *ledger.Sums) error {
	if books.ShowsMoney(t) {
		return k.compare(t, e)
	}
	return k.read(ctx, t.ID, e)
}

// read compares a transaction as it is read.
func (k *check) read(ctx context.Context, id string, e *ledger.Sums) error {
	switch t, err := k.account.Client.Transactions.Get(ctx, id); {
	case errors.Is(err, gateway.ErrNotFound):
		k.add(Difference{Resource: id, Record: e.ID, Order: ledger.OrderID(e.Subject), Kind: DiffMissingThere, Here: e.Paid})
		return nil
	case err != nil:
		return err
	default:
		return k.compare(t, e)
	}
}

// older compares the transactions with entries in the month that were not listed, because
// they were created earlier.
func (k *check) older(ctx context.Context) error {
	entries, err := k.l.ChargeSums(ctx, k.account.Name, k.month, nil)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		if k.seen[id] {
			continue
		}
		if err := k.read(ctx, id, entries[id]); err != nil {
			return err
		}
	}
	return nil
}
