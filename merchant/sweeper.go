package merchant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// sweeper does what an account needs now and then: it lists what is paid and what is disputed,
// searches for sales by link that no webhook reported, adopts what waits, notes the balance, and
// erases what is not kept any longer. Neither an account
// nor a task that hangs keeps another one waiting.
type sweeper struct {
	m     *core
	of    ledger.Due // the accounts with each kind of task
	tasks map[string][]task
	busy  map[string]bool // the names of the tasks that run
	ended chan string
}

// task is a task of an account. It finds out itself whether it is due.
type task struct {
	name   string
	failed string
	do     func(ctx context.Context) error
}

// The limits of the search for sales that no webhook reported.
const (
	sweepEvery     = 10 * time.Minute
	recentSweep    = 7 * day
	deepSweepEvery = day
	deepSweep      = giveUp // a voucher may be paid weeks after it was made
	sweepPages     = 50     // of 100 transactions
	deepSweepPages = 500
)

func newSweeper(m *core) *sweeper {
	s := &sweeper{m: m, tasks: make(map[string][]task), busy: make(map[string]bool), ended: make(chan string, len(m.accounts))}
	for name, a := range m.accounts {
		add := func(kind, failed string, do func(ctx context.Context) error) {
			s.tasks[name] = append(s.tasks[name], task{kind + " of " + name, failed, do})
		}
		s.of.Adopts = append(s.of.Adopts, name)
		add("adoptions", "what waits could not be adopted, and will be later", func(ctx context.Context) error { return m.adoptDue(ctx, a) })
		s.of.Keeps = append(s.of.Keeps, name)
		add("keep", "what is not kept any longer could not be erased, and will be later", func(ctx context.Context) error { return m.keep(ctx, a) })
		if !a.NoLists {
			s.of.Lists = append(s.of.Lists, name)
			a.walking.Store(true) // until it is known that nothing is due
			add("walk", "charges could not be listed, and will be later", func(ctx context.Context) error { return m.walk(ctx, a) })
			add("disputes", "disputes could not be searched, and will be later", m.newDisputes(a).search)
		}
		if a.Links {
			s.of.Links = append(s.of.Links, name)
			add("sales", "the sales by link could not be searched, and will be later", func(ctx context.Context) error { return m.searchSales(ctx, a) })
		}
		if a.Balance != nil {
			s.of.Balances = append(s.of.Balances, name)
			add("balance", "the balance of an account could not be noted", func(ctx context.Context) error { return m.noteBalanceIfDue(ctx, a) })
		}
	}
	return s
}

// run does what is due until ctx ends, and waits for what has begun.
func (s *sweeper) run(ctx context.Context) {
	for ctx.Err() == nil && len(s.tasks) > 0 {
		if err := s.begin(ctx); err != nil && ctx.Err() == nil {
			s.m.fail(ctx, "which accounts are to be searched could not be read", err)
		}
		s.wait(ctx)
	}
	for range s.busy {
		<-s.ended
	}
}

// wait waits until something may be due: a task that fails at once is not repeated at once.
func (s *sweeper) wait(ctx context.Context) {
	timer := time.NewTimer(s.m.cfg.PollInterval)
	defer timer.Stop()
	for {
		select {
		case name := <-s.ended:
			delete(s.busy, name)
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *sweeper) begin(ctx context.Context) error {
	due, err := s.m.outside().DueAccounts(ctx, s.of)
	if err != nil {
		return err
	}
	walks := make(map[string]bool)
	for _, d := range due {
		walks[d.Name] = d.Walk
	}
	for name, a := range s.m.accounts {
		a.walking.Store(walks[name] && a.listable() || s.busy["walk of "+name])
	}
	for _, d := range due {
		name := d.Name
		for _, t := range s.tasks[name] {
			if s.busy[t.name] {
				continue
			}
			s.busy[t.name] = true
			go func() {
				defer func() { s.ended <- t.name }()
				if err := t.do(ctx); err != nil && ctx.Err() == nil && !gate.Refused(err) {
					s.m.fail(ctx, t.failed, err, slog.String("account", name))
				}
			}()
		}
	}
	return nil
}

// noteBalanceIfDue notes the balance of an account if it is time.
func (m *core) noteBalanceIfDue(ctx context.Context, a *account) error {
	due, err := m.outside().ClaimTask(ctx, ledger.BalanceTask, a.Name, min(balanceAgain, m.cfg.CompareEvery))
	if err != nil || !due {
		return err
	}
	return m.guarded(ctx, "Account.Balance", func() error { return m.noteBalance(ctx, a) })
}

// searchSales searches the sales by link of an account if it is time.
func (m *core) searchSales(ctx context.Context, a *account) error {
	claimed, deep, err := m.outside().ClaimSweep(ctx, a.Name, min(sweepEvery, m.cfg.CompareEvery), deepSweepEvery)
	if err != nil || !claimed {
		return err
	}
	return m.sweep(ctx, a, deep)
}

// sweep searches the transactions of an account. If the search further back does not book all
// that it finds, it is made again soon.
func (m *core) sweep(ctx context.Context, a *account, deep bool) error {
	back, pages := recentSweep, sweepPages
	if deep {
		back, pages = deepSweep, deepSweepPages
	}
	all, err := m.sweepBack(ctx, a, back, pages)
	if deep && !all {
		err = errors.Join(err, m.outside().SweepAgain(context.WithoutCancel(ctx), a.Name))
	}
	return err
}

// sweepBack reports whether all sales that it found are booked.
func (m *core) sweepBack(ctx context.Context, a *account, back time.Duration, pages int) (all bool, err error) {
	recent := gateway.TransactionListParams{Limit: 100, From: time.Now().Add(-back), Statuses: []gateway.TransactionStatus{
		gateway.TransactionPaid, gateway.TransactionCaptured, gateway.TransactionPartiallyRefunded, gateway.TransactionRefunded, gateway.TransactionChargedback,
	}}
	all = true
	for page, err := range a.Client.Transactions.Pages(ctx, recent) {
		if err != nil {
			return false, err
		}
		if pages--; pages < 0 {
			return true, fmt.Errorf("there are too many transactions of the last %d days: the older ones were not searched", back/day)
		}
		for i := range page.Items {
			booked, err := m.swept(ctx, a, &page.Items[i])
			if err != nil {
				return false, err
			}
			all = all && booked
		}
	}
	return all, nil
}

// swept books a listed transaction if it is a sale that is not in the books, and reports
// whether it is booked or is none.
func (m *core) swept(ctx context.Context, a *account, t *gateway.Transaction) (booked bool, err error) {
	if t.ExternalRef != "" {
		return true, nil
	}
	if links, err := m.soldBy(ctx, a, t.Currency, t.Products); err != nil || len(links) == 0 {
		return err == nil, err
	}
	if row, err := m.match(ctx, a, t.ID, ""); err != nil || row != nil {
		return err == nil, err
	}
	r, err := a.readTransaction(ctx, t.ID, books.FromComparison)
	if err == nil {
		_, err = m.sale(ctx, a, r, 0)
	}
	if err == nil || ctx.Err() != nil {
		return err == nil, err
	}
	// The others don't wait for it.
	m.fail(ctx, "a transaction that may be a sale by link could not be booked, and will be later", err, slog.String("transaction", t.ID))
	return false, nil
}
