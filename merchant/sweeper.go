package merchant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// sweeper searches the accounts for sales by link that no webhook reported, and notes their
// balances. An account that hangs keeps no other one waiting.
type sweeper struct {
	m               *core
	links, balances []string // the names of the accounts with sales by link, and with a balance
	busy            map[string]bool
	ended           chan string
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
	s := &sweeper{m: m, busy: make(map[string]bool), ended: make(chan string, len(m.accounts))}
	for name, a := range m.accounts {
		if a.Links {
			s.links = append(s.links, name)
		}
		if a.Balance != nil {
			s.balances = append(s.balances, name)
		}
	}
	return s
}

// run does what is due until ctx ends, and waits for what has begun.
func (s *sweeper) run(ctx context.Context) {
	for ctx.Err() == nil && len(s.links)+len(s.balances) > 0 {
		if err := s.begin(ctx); err != nil && ctx.Err() == nil {
			s.m.fail(ctx, "which accounts are to be searched could not be read", err)
		}
		timer := time.NewTimer(s.m.cfg.PollInterval)
		select {
		case name := <-s.ended:
			delete(s.busy, name)
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	for range s.busy {
		<-s.ended
	}
}

func (s *sweeper) begin(ctx context.Context) error {
	names, err := s.m.outside().DueAccounts(ctx, s.links, s.balances)
	for _, name := range names {
		if s.busy[name] {
			continue
		}
		s.busy[name] = true
		go func() {
			defer func() { s.ended <- name }()
			s.account(ctx, s.m.accounts[name])
		}()
	}
	return err
}

// account does what is due for an account.
func (s *sweeper) account(ctx context.Context, a *account) {
	m := s.m
	if a.Balance != nil {
		due, err := m.outside().ClaimBalance(ctx, a.Name, min(balanceAgain, m.cfg.CompareEvery))
		if err == nil && due {
			err = m.guarded(ctx, "Account.Balance", func() error { return m.noteBalance(ctx, a) })
		}
		if err != nil && ctx.Err() == nil {
			m.fail(ctx, "the balance of an account could not be noted", err, slog.String("account", a.Name))
		}
	}
	if a.Links {
		claimed, deep, err := m.outside().ClaimSweep(ctx, a.Name, min(sweepEvery, m.cfg.CompareEvery), deepSweepEvery)
		if err == nil && claimed {
			err = m.sweep(ctx, a, deep)
		}
		if err != nil && ctx.Err() == nil {
			m.fail(ctx, "the sales by link could not be searched, and will be later", err, slog.String("account", a.Name))
		}
	}
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
		err = m.sale(ctx, a, r)
	}
	if err == nil || ctx.Err() != nil {
		return err == nil, err
	}
	// The others don't wait for it.
	m.fail(ctx, "a transaction that may be a sale by link could not be booked, and will be later", err, slog.String("transaction", t.ID))
	return false, nil
}
