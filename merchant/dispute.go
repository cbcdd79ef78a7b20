package merchant

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// disputes is the search of an account for disputes and chargebacks, of which the gateway may
// send no webhook: it lists the transactions in the states of a dispute. What a list shows
// otherwise than it is booked is read at once, and so is what is disputed in the books and not
// listed any more: such a dispute has ended.
//
// While all of them fit on a page, a search is one request. Otherwise there is a list of those
// that are open and one of the chargebacks, which are final: of these, one page says by its total
// whether there is a new one. All of them are listed once a day, and when the total has changed.
type disputes struct {
	*core

	account *account
	states  []gateway.TransactionStatus // that the gateway knows as values of the filter
	learned time.Time                   // when
	asked   map[string]followed         // what was read because of the last search, by transaction

	// Of all chargebacks when they were listed last. A total of 0 is not known.
	from  time.Time
	total int
}

// followed is how often a transaction was read because of what a list shows of it: what a reading
// does not confirm is read a few times, because the reading may lag, and not for ever.
type followed struct {
	shown string
	times int
}

const (
	disputesEvery = 15 * time.Minute
	taskAgain     = time.Minute // after a failure
	disputePages  = 500         // of 100 transactions
	askTimes      = 4
)

func (m *core) newDisputes(a *account) *disputes { return &disputes{core: m, account: a} }

// openDisputes are the states of a dispute that has not ended.
var openDisputes = []gateway.TransactionStatus{
	gateway.TransactionMED, gateway.TransactionInProtest, gateway.TransactionPreChargedback,
}

// search searches if it is due.
func (d *disputes) search(ctx context.Context) error {
	if d.account.gate.Room(lists) == 0 {
		return nil
	}
	name := d.account.Name
	every := min(disputesEvery, d.cfg.CompareEvery)
	claimed, err := d.outside().ClaimTask(ctx, ledger.DisputeTask, name, min(walkLease, every))
	if err != nil || !claimed {
		return err
	}
	again := every
	if err = d.compare(ctx); err != nil && !rejects(err) {
		again = min(taskAgain, every)
	}
	return errors.Join(err, d.outside().TaskIn(context.WithoutCancel(ctx), ledger.DisputeTask, name, again))
}

// disputed are the transactions that a search found.
type disputed struct {
	items map[string]*gateway.Transaction // by their IDs in lower case
	whole bool                            // all that are open are in items
}

func (d *disputed) add(page *gateway.Page[gateway.Transaction]) {
	for i := range page.Items {
		d.items[strings.ToLower(page.Items[i].ID)] = &page.Items[i]
	}
}

func (d *disputes) compare(ctx context.Context) error {
	// It is the same for all searches of a day, so that their totals can be compared. A voucher is
	// paid after its creation.
	from := d.clock.now().Add(-d.cfg.CompareFor - giveUp).Truncate(day)
	if err := d.learn(ctx, from); err != nil || len(d.states) == 0 {
		return err
	}
	found := &disputed{items: make(map[string]*gateway.Transaction)}
	page, err := d.page(ctx, from, d.states)
	switch {
	case err != nil:
		return err
	case !page.HasMore():
		found.add(page)
		found.whole = true
	default:
		if err := d.open(ctx, from, found); err != nil {
			return err
		}
		if err := d.chargebacks(ctx, from, found); err != nil {
			return err
		}
	}
	return d.book(ctx, found)
}

func (d *disputes) page(ctx context.Context, from time.Time, states []gateway.TransactionStatus) (*gateway.Page[gateway.Transaction], error) {
	return d.account.Client.Transactions.List(ctx, gateway.TransactionListParams{Limit: spec.MaxPageSize, From: from, Statuses: states})
}

// learn finds out once a day which states the gateway knows: one that it does not know makes it
// reject the list.
func (d *disputes) learn(ctx context.Context, from time.Time) error {
	now := d.clock.now()
	if !d.learned.IsZero() && now.Sub(d.learned) < day {
		return nil
	}
	all := append(slices.Clone(openDisputes), gateway.TransactionChargedback)
	known := all
	_, err := d.page(ctx, from, all)
	if errors.Is(err, gateway.ErrValidation) {
		known, err = nil, nil
		for _, s := range all {
			switch _, failed := d.page(ctx, from, []gateway.TransactionStatus{s}); {
			case failed == nil:
				known = append(known, s)
			case !errors.Is(failed, gateway.ErrValidation):
				return failed
			}
		}
		d.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "merchant: the gateway can't list the transactions of each state of a dispute",
			slog.String("account", d.account.Name), slog.Any("listed", known))
	}
	if err == nil {
		d.states, d.learned = known, now
	}
	return err
}

// open lists the transactions with a dispute that has not ended.
func (d *disputes) open(ctx context.Context, from time.Time, found *disputed) error {
	states := slices.DeleteFunc(slices.Clone(d.states), gateway.TransactionStatus.Final)
	if len(states) == 0 {
		return nil
	}
	var err error
	found.whole, err = d.pages(ctx, from, states, found)
	return err
}

// chargebacks lists the chargebacks, if there may be a new one. Of the others, the newest are
// enough.
func (d *disputes) chargebacks(ctx context.Context, from time.Time, found *disputed) error {
	states := []gateway.TransactionStatus{gateway.TransactionChargedback}
	if !slices.Contains(d.states, states[0]) {
		return nil
	}
	page, err := d.page(ctx, from, states)
	if err != nil {
		return err
	}
	found.add(page)
	if !page.HasMore() || from.Equal(d.from) && page.Total == d.total {
		return nil
	}
	if _, err := d.pages(ctx, from, states, found); err != nil {
		return err
	}
	d.from, d.total = from, page.Total
	return nil
}

// pages lists all transactions in some states, and reports whether it could.
func (d *disputes) pages(ctx context.Context, from time.Time, states []gateway.TransactionStatus, found *disputed) (whole bool, err error) {
	left := disputePages
	params := gateway.TransactionListParams{Limit: spec.MaxPageSize, From: from, Statuses: states}
	for page, err := range d.account.Client.Transactions.Pages(ctx, params) {
		if err != nil {
			return false, err
		}
		found.add(page)
		if left--; left == 0 && page.HasMore() {
			d.cfg.Logger.LogAttrs(ctx, slog.LevelError, "merchant: there are too many disputes: the older ones were not searched",
				slog.String("account", d.account.Name), slog.Any("states", states))
			return false, nil
		}
	}
	return true, nil
}

// book has those charges compared at once that are not booked as the lists show them.
func (d *disputes) book(ctx context.Context, found *disputed) error {
	name := d.account.Name
	var now []string
	was := d.asked
	d.asked = make(map[string]followed)
	differs := func(charge, transaction, shown string) {
		is := followed{shown: shown}
		if was[transaction].shown == shown {
			is = was[transaction]
		}
		if is.times++; is.times <= askTimes {
			now = append(now, charge)
		}
		d.asked[transaction] = is
	}
	var ids []string
	for id := range found.items {
		ids = append(ids, id)
	}
	for page := range slices.Chunk(ids, spec.MaxPageSize) {
		var rows []ledger.Row
		if err := d.byIndex(ctx, func(l ledger.Ledger) (err error) {
			rows, err = l.Transactions(ctx, name, page)
			return err
		}); err != nil {
			return err
		}
		for i := range rows {
			ch, err := d.chargeOf(&rows[i])
			if err != nil {
				return err
			}
			if t := found.items[rows[i].Resource]; t.Status != ch.Books.Status {
				differs(ch.ID, rows[i].Resource, string(t.Status)+t.UpdatedAt.String())
			}
		}
	}
	if found.whole && len(d.states) > len(openDisputes) { // all states are listed
		var open map[string]string
		if err := d.byIndex(ctx, func(l ledger.Ledger) (err error) {
			open, err = l.Disputes(ctx, name)
			return err
		}); err != nil {
			return err
		}
		for charge, transaction := range open {
			if found.items[transaction] == nil {
				differs(charge, transaction, "ended")
			}
		}
	}
	for page := range slices.Chunk(now, spec.MaxPageSize) {
		if err := d.outside().CompareNow(ctx, name, page); err != nil {
			return err
		}
	}
	return nil
}
