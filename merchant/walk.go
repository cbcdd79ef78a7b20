package merchant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// A walk compares charges that are paid a page at a time: it claims those that are due soon,
// before [comparer] does, and lists them by their IDs. A list books nothing. What it shows as it
// is booked is compared again after Config.CompareEvery; what it shows otherwise, or not at all,
// is read one by one, as well as each charge once in 30 days. So whatever a list gets wrong costs
// reads, and what no walk has claimed, because it fails or another release runs, is read when it
// is due.
//
// It rests on updated_at, the assumption books-listed: a second refund of a part shows in nothing
// else. Where a list or a reading proves that it does not move, the account's charges are read one
// by one.
//
// Payouts and subscriptions are always read one by one. Transfers can't be listed by their IDs
// or times, so that a walk would have to read those of all systems; the list of subscriptions
// lacks their charges, which are what is compared.
const (
	walkShare = 8                // of CompareEvery, between two walks
	walkLease = 5 * time.Minute  // of a page and what is read because of it
	reread    = 30 * day         // after which a charge is read although the list shows nothing new
	distrust  = 30 * day         // after a list was proved wrong
	unlisted  = day              // after a list that is of no use
	settled   = 10 * time.Minute // after which a list has no excuse for not showing a change
)

// walking is the time between two walks, and how soon a charge must be due to be in the next. One
// that was compared is not in it again.
func (m *core) walking() (every, within time.Duration) {
	every = max(m.cfg.CompareEvery/walkShare, m.cfg.PollInterval)
	return every, min(every*3/2, m.cfg.CompareEvery/2)
}

// walk compares the charges of an account that are due soon. Meanwhile the comparers of all
// processes leave them to it: after they were down for a day, all are due. While the gate is
// closed, a list is one of its probes.
func (m *core) walk(ctx context.Context, a *account) error {
	if a.gate.Room(lists) == 0 {
		return nil
	}
	down := a.gate.State().Closed
	every, within := m.walking()
	claimed, err := m.outside().ClaimTask(ctx, ledger.WalkTask, a.Name, min(walkLease, every))
	if err != nil || !claimed {
		return err
	}
	again := every
	pages, err := m.walkPages(ctx, a, within)
	// That says nothing of the lists. When the gateway is back, what is due is listed first; until
	// then, the gate says when the next list may probe.
	down = err != nil && pages == 0 && (down || gate.Refused(err))
	a.down.Store(down)
	switch {
	case down, ctx.Err() != nil: // another process continues it
		again = 0
	case err != nil:
		again = every / walkShare
	}
	return errors.Join(err, m.outside().TaskIn(context.WithoutCancel(ctx), ledger.WalkTask, a.Name, again))
}

// walkPages compares the charges that are due within a time, and returns how many pages were
// listed.
func (m *core) walkPages(ctx context.Context, a *account, within time.Duration) (pages int, err error) {
	for {
		p := &walkedPage{core: m, account: a}
		n, err := p.claim(ctx, within)
		if err != nil || n == 0 {
			return pages, err
		}
		err = p.compare(ctx)
		if p.listed {
			pages++
		}
		if p.fault != "" {
			return pages, errors.Join(err, m.readSingly(ctx, a, p.fault, p.forTime))
		}
		if err != nil || n < spec.MaxPageSize {
			return pages, err
		}
	}
}

// readSingly has the charges of an account read one by one for a time.
func (m *core) readSingly(ctx context.Context, a *account, why string, forTime time.Duration) error {
	isNew, err := m.outside().ReadSingly(context.WithoutCancel(ctx), a.Name, why, forTime)
	if isNew {
		m.cfg.Logger.LogAttrs(ctx, slog.LevelError, "merchant: charges are read one by one, because of the gateway's list of transactions",
			slog.String("account", a.Name), slog.String("fault", why), slog.Duration("for", forTime))
	}
	return err
}

// walkedPage is a page of a walk.
type walkedPage struct {
	*core

	account *account
	claims  []ledger.Claim // those that are left
	rows    []ledger.Row   // of those that were claimed
	listed  bool
	closed  atomic.Bool // the gate, for a reading
	fault   string      // why the list can't be relied on
	forTime time.Duration
}

// claim claims the next charges, and returns how many.
func (p *walkedPage) claim(ctx context.Context, within time.Duration) (n int, err error) {
	err = p.byIndex(ctx, func(l ledger.Ledger) (err error) {
		if p.claims, err = l.ClaimCharges(ctx, p.account.Name, within, spec.MaxPageSize, walkLease); err != nil {
			return err
		}
		ids := make([]string, len(p.claims))
		for i := range p.claims {
			ids[i] = p.claims[i].ID
		}
		p.rows, err = l.RowsOf(ctx, ledger.Charges, p.account.Book, ids)
		return err
	})
	return len(p.claims), err
}

// doubt notes that the list can't be relied on for a time.
func (p *walkedPage) doubt(why string, forTime time.Duration) {
	if p.forTime < forTime {
		p.fault, p.forTime = why, forTime
	}
}

// single is a charge of a page that is read.
type single struct {
	claim ledger.Claim
	row   *ledger.Row
	item  *gateway.Transaction // as the list shows it; nil if it doesn't
	equal bool                 // to what is booked

	booked, failed bool
	busy           bool  // another transaction has the order
	refused        error // if the gate is closed
	stopped        bool  // see charge.stopped
	seen           *gateway.Transaction
	plan           ledger.Plan
}

// compare compares the charges of a page. Those that it did not compare are due when they were.
func (p *walkedPage) compare(ctx context.Context) (err error) {
	defer func() {
		if len(p.claims) > 0 {
			ctx := context.WithoutCancel(ctx)
			err = errors.Join(err, p.byIndex(ctx, func(l ledger.Ledger) error { return l.Return(ctx, p.claims) }))
		}
	}()
	claims := make(map[string]ledger.Claim)
	for _, c := range p.claims {
		claims[c.ID] = c
	}
	charges := make([]*charge, len(p.rows))
	for i := range p.rows {
		if charges[i], err = p.chargeOf(&p.rows[i]); err != nil {
			return err
		}
	}
	items, err := p.list(ctx, charges)
	if err != nil || p.fault != "" {
		return err
	}
	p.listed = true
	now := p.clock.now()
	plans := make(map[ledger.Plan][]ledger.Claim)
	var singles []*single
	for _, ch := range charges {
		s := &single{claim: claims[ch.ID], row: ch.stored(), item: items[ch.Resource]}
		delete(claims, ch.ID)
		s.equal = ch.listed(s.item)
		if s.equal && !p.rereads(s.row, s.claim.Due, now) {
			plan := ch.next(now, &p.cfg)
			plans[plan] = append(plans[plan], s.claim)
			continue
		}
		singles = append(singles, s)
	}
	for _, c := range claims { // its record was deleted by hand
		plans[ledger.Plan{Never: true}] = append(plans[ledger.Plan{Never: true}], c)
	}
	if err := p.release(ctx, plans); err != nil {
		return err
	}
	p.read(ctx, singles)
	return errors.Join(p.judge(ctx, len(charges), singles), ctx.Err())
}

// list lists the transactions of charges, by their IDs in lower case. One alone is not worth a
// list. A transaction that is listed twice is shown as it was last.
func (p *walkedPage) list(ctx context.Context, charges []*charge) (map[string]*gateway.Transaction, error) {
	if len(charges) < 2 {
		return nil, nil //nolint:nilnil // there are none
	}
	asked := make(map[string]bool)
	var ids []string
	for _, ch := range charges {
		if ch.Resource != "" {
			asked[ch.Resource] = true
			ids = append(ids, ch.Books.TransactionID)
		}
	}
	page, err := p.account.Client.Transactions.List(ctx, gateway.TransactionListParams{Limit: spec.MaxPageSize, ID: ids})
	switch {
	case rejects(err):
		p.doubt("it is rejected: "+err.Error(), unlisted)
		return nil, nil //nolint:nilnil // see above
	case err != nil:
		return nil, err
	}
	items := make(map[string]*gateway.Transaction)
	for i := range page.Items {
		t := &page.Items[i]
		id := strings.ToLower(t.ID)
		switch {
		case !asked[id]:
			p.doubt("it has transactions whose IDs were not asked for", unlisted)
		case t.UpdatedAt.IsZero():
			p.doubt("it shows no updated_at", distrust)
		case behindPayment(t) > settled:
			p.doubt("updated_at of transaction "+t.ID+" is before its payment", distrust)
		}
		if other := items[id]; other == nil || other.UpdatedAt.Before(t.UpdatedAt.Time) {
			items[id] = t
		}
	}
	return items, nil
}

// behindPayment returns by how much updated_at is before the payment, which has changed the
// transaction.
func behindPayment(t *gateway.Transaction) time.Duration {
	if t.PaidAt.IsZero() {
		return 0
	}
	return t.PaidAt.Sub(t.UpdatedAt.Time)
}

// listed reports whether a transaction of a list, nil if the list lacks it, shows only what is
// booked. Its updated_at may be in whole seconds.
func (ch *charge) listed(t *gateway.Transaction) bool {
	return t != nil && behindPayment(t) < time.Second && ch.unmoved(t, ledger.Routine) && (!books.ShowsMoney(t) || ch.shows(t))
}

// rejects reports whether a gateway does not allow a list: asking again would not help.
func rejects(err error) bool {
	for _, is := range []error{gateway.ErrValidation, gateway.ErrForbidden, gateway.ErrNotFound} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// rereads reports whether a charge is read although the list shows nothing new: once in 30
// days of its life, counted from its creation. It was compared last CompareEvery before it was due.
func (p *walkedPage) rereads(row *ledger.Row, due, now time.Time) bool {
	nth := func(t time.Time) time.Duration { return t.Sub(row.Created) / reread }
	return nth(due.Add(-p.cfg.CompareEvery)) != nth(now)
}

// read reads charges one by one, four at a time.
func (p *walkedPage) read(ctx context.Context, list []*single) {
	var reading sync.WaitGroup
	free := make(chan struct{}, slots)
	for _, s := range list {
		free <- struct{}{}
		reading.Go(func() {
			defer func() { <-free }()
			if s.failed = true; ctx.Err() == nil && !p.closed.Load() {
				p.readOne(ctx, s)
			}
		})
	}
	reading.Wait()
}

func (p *walkedPage) readOne(ctx context.Context, s *single) {
	var plan ledger.Plan
	err := p.guarded(ctx, "a comparison", func() error {
		r, err := p.chargeOf(s.row)
		if err == nil {
			s.booked, plan, err = p.compareRecord(ctx, r, ledger.Routine)
			s.seen, s.stopped = r.seen, r.stopped(ledger.Routine)
		}
		return err
	})
	switch {
	case err == nil:
		s.failed, s.plan = false, plan
	case errors.Is(err, ledger.ErrBusy):
		s.busy, s.plan = true, ledger.Plan{Wait: busyWait, Lane: ledger.Routine}
	case gate.Refused(err):
		s.refused = err
		p.closed.Store(true)
	case ctx.Err() == nil:
		s.plan = ledger.Plan{Wait: (time.Minute + rand.N(time.Minute/4)).Round(time.Second), Lane: ledger.Routine} //nolint:gosec // jitter needs no secrecy
		p.fail(ctx, "a record could not be compared with the gateway, and will be later", err, slog.String(string(s.row.Kind), s.row.ID))
	}
}

// judge plans when the charges that were read are compared again, and notes what the readings
// say about the list of a page with n charges.
func (p *walkedPage) judge(ctx context.Context, n int, list []*single) error {
	inVain, failed := 0, 0
	var refused error
	plans := make(map[ledger.Plan][]ledger.Claim)
	for _, s := range list {
		if s.refused != nil {
			refused = s.refused
		}
		switch t := s.seen; {
		case s.failed && s.plan == (ledger.Plan{}): // it is returned
			continue
		case s.failed && !s.busy:
			failed++
		case s.failed || t == nil:
		case !s.booked && !s.equal:
			inVain++
		case s.booked && s.stopped:
			p.doubt(stopped(t), distrust)
		case s.booked && s.equal && p.clock.now().Sub(t.UpdatedAt.Time) > settled:
			p.doubt("it did not show a change of transaction "+t.ID, distrust)
		}
		if s.failed || !s.booked {
			plans[s.plan] = append(plans[s.plan], s.claim)
		}
	}
	if n > 1 && inVain > n/2 {
		p.doubt("most of what it shows otherwise, or lacks, is as it was booked", unlisted)
	}
	booked := make(map[string]bool)
	for _, s := range list {
		booked[s.claim.ID] = s.booked && !s.failed
	}
	p.done(func(c ledger.Claim) bool { return booked[c.ID] })
	err := p.release(ctx, plans)
	if refused != nil {
		return errors.Join(err, refused)
	}
	if failed > 0 && err == nil { // they are due soon: going on would read them again and again
		err = fmt.Errorf("%d charges could not be read", failed)
	}
	return err
}

// release plans comparisons that changed nothing anew, with one statement for each wait.
func (p *walkedPage) release(ctx context.Context, plans map[ledger.Plan][]ledger.Claim) error {
	if len(plans) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if err := p.byIndex(ctx, func(l ledger.Ledger) error {
		for plan, claims := range plans {
			if err := l.Release(ctx, claims, plan); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	ended := make(map[string]bool)
	for _, claims := range plans {
		for _, c := range claims {
			ended[c.ID] = true
		}
	}
	p.done(func(c ledger.Claim) bool { return ended[c.ID] })
	return nil
}

// done removes claims that have ended.
func (p *walkedPage) done(ended func(ledger.Claim) bool) {
	var left []ledger.Claim
	for _, c := range p.claims {
		if !ended(c) {
			left = append(left, c)
		}
	}
	p.claims = left
}
