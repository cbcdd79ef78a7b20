package merchant

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// When what has ended is looked for, by one process for each account.
const (
	keepEvery  = time.Hour
	keepLease  = 10 * time.Minute
	keepAtOnce = 100         // orders, until the next pause
	keepPause  = time.Second // so that all else goes first
	keepFailed = day         // until the next look at what could not be erased
	findAtOnce = 1000        // charges whose buyers are read, until what has ended is looked for again
)

// keep erases and deletes what is not kept any longer, unless another process does. Each book has one
// account that does it.
func (m *core) keep(ctx context.Context, a *account) error {
	claimed, err := m.outside().ClaimTask(ctx, ledger.KeepTask, a.Name, keepLease)
	if err != nil || !claimed {
		return err
	}
	again := keepEvery
	if m.namesOf(a.Book)[0] == a.Name {
		err = errors.Join(
			m.keepBook(ctx, a, ledger.KeptOperations, m.cfg.Keep.Operations), m.keepBook(ctx, a, ledger.KeptBuyers,
				m.cfg.Keep.Buyers),
		)
	}
	if err == nil {
		var more bool
		if more, err = m.findBuyers(ctx, a); more && err == nil {
			again = 0
		}
	}
	if ctx.Err() != nil { // another process continues it
		again = 0
	}
	return errors.Join(err, m.outside().TaskIn(context.WithoutCancel(ctx), ledger.KeepTask, a.Name, again))
}

// keepBook looks at what may have ended a time ago, as long as it makes progress.
func (m *core) keepBook(ctx context.Context, a *account, what ledger.Kept, keep time.Duration) error {
	for keep > 0 {
		var list []ledger.Subject
		if err := m.byIndex(ctx, func(l ledger.Ledger) (err error) {
			list, err = l.Ended(ctx, a.Book, what, keep, keepAtOnce)
			return err
		}); err != nil {
			return err
		}
		n := 0
		for _, s := range list {
			looked, err := m.keepSubject(ctx, s, keep)
			if err != nil {
				return err
			}
			if looked {
				n++
			}
		}
		if len(list) < keepAtOnce || n == 0 {
			return nil
		}
		if err := m.outside().TaskIn(ctx, ledger.KeepTask, a.Name, keepLease); err != nil {
			return err
		}
		if err := sleep(ctx, keepPause); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits for a time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keepSubject looks at a subject. It is not looked at if another transaction has it. One that can't be
// looked at does not keep the others waiting.
func (m *core) keepSubject(ctx context.Context, s ledger.Subject, keep time.Duration) (looked bool, err error) {
	err = m.guarded(ctx, "what has ended", func() error { return m.keepOne(ctx, s) })
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, ledger.ErrBusy):
		return false, nil
	case errors.Is(err, ErrNotFound): // it has no record
		return true, m.outside().EndsAt(ctx, s, ledger.NeverEnds)
	}
	m.fail(ctx, "what is not kept any longer could not be erased", err, slog.String("subject", s.ID))
	return true, m.outside().EndsAt(ctx, s, m.clock.now().Add(keepFailed-keep))
}

// ownedOf names what a subject is to a buyer. It is nothing if it is the corrections of an account.
func ownedOf(s ledger.Subject) (ledger.Owned, bool) {
	kind, id, _ := strings.Cut(s.ID, "/")
	of, is := map[string]string{"order": ofOrder, "link": ofSale, "subscription": ofSubscription, "payout": ofPayout}[kind]
	return ledger.Owned{Book: s.Book, Kind: of, Record: id}, is
}

// keepOne erases or deletes what is not kept any longer of a subject, or stores when it ends.
func (m *core) keepOne(ctx context.Context, s ledger.Subject) error {
	o, is := ownedOf(s)
	if !is {
		return ErrNotFound
	}
	return m.db.Transaction(ctx, func(tx sqldb.Tx) error {
		l := m.ledger(tx)
		at, err := placeOf(ctx, l, o)
		if err != nil {
			return err
		}
		at.lock = ledger.NoWait
		return m.on(ctx, tx, at, func(b *bench) error {
			e, err := b.erasure(ctx, l, o)
			if err != nil {
				return err
			}
			end, err := e.end(ctx, l)
			if err != nil {
				return err
			}
			if err := l.EndsAt(ctx, s, end); err != nil {
				return err
			}
			over := func(keep time.Duration) bool { return keep > 0 && !end.Add(keep).After(b.now) }
			if keep := m.cfg.Keep.Buyers; over(keep) && b.order.ErasedAt == 0 {
				p := &EraseParams{By: "Config.Keep", Why: fmt.Sprintf("kept for %s after its end", keep)}
				if err := e.erase(ctx, l, p, rand.Text()); err != nil {
					return err
				}
			}
			if over(m.cfg.Keep.Operations) && !b.order.Purged {
				return e.purge(ctx, l)
			}
			return nil
		})
	})
}

// purge deletes the operations.
func (e *erasure) purge(ctx context.Context, l ledger.Ledger) error {
	for _, o := range e.Operations {
		if err := l.PurgeOperation(ctx, o); err != nil {
			return err
		}
	}
	e.b.order.Purged = true
	return nil
}

// end returns when the subject has ended, or does not end before. What is under way ends later than now:
// nothing is erased that may still move money.
func (e *erasure) end(ctx context.Context, l ledger.Ledger) (end time.Time, err error) {
	b, cfg := e.b, &e.b.m.cfg
	switch err := e.done(ctx, l); {
	case errors.Is(err, ErrState), err == nil && len(e.records()) == 0: // or nothing has begun
		return b.now, nil
	case err != nil:
		return end, err
	}
	later := func(times ...time.Time) {
		for _, t := range times {
			if t.After(end) {
				end = t
			}
		}
	}
	later(time.UnixMilli(0))
	compared := func(r record) {
		if !r.next(b.now, cfg).Never {
			later(b.now)
		}
	}
	for _, ch := range b.charges {
		later(ch.Created, ch.ExpiresAt, ch.Books.UpdatedAt)
		if ch.Books.Paid > 0 || !ch.Books.PaidAt.IsZero() {
			later(ch.paidAt().Add(cfg.CompareFor))
		}
		for _, r := range ch.refunds {
			later(r.AppliedAt)
		}
		compared(ch)
	}
	for _, p := range e.payouts {
		later(p.Created, p.UpdatedAt)
		if p.Payout.State == Paid {
			later(p.Created.Add(cfg.CompareFor))
		}
		compared(p)
	}
	if s := b.subscription; s != nil {
		later(s.Created, s.PeriodEnd, s.Books.UpdatedAt)
		compared(s)
	}
	return end, nil
}

// findBuyers reads charges that an earlier release has stored, so that their buyers are found by
// [Merchant.EraseBuyer]. more is true if some are left.
func (m *core) findBuyers(ctx context.Context, a *account) (more bool, err error) {
	pace := time.NewTicker(time.Second / time.Duration(min(m.cfg.AdoptRate, maxAdoptRate)))
	defer pace.Stop()
	l, last := m.outside(), ""
	for n := 0; n < findAtOnce; {
		var ids []string
		if err := m.byIndex(ctx, func(l ledger.Ledger) (err error) {
			ids, err = l.UnknownBuyers(ctx, a.Name, last, keepAtOnce)
			return err
		}); err != nil || len(ids) == 0 {
			return false, err
		}
		if err := l.TaskIn(ctx, ledger.KeepTask, a.Name, keepLease); err != nil {
			return false, err
		}
		for _, id := range ids {
			last, n = id, n+1
			select {
			case <-pace.C:
			case <-ctx.Done():
				return false, ctx.Err()
			}
			err := m.look(ctx, ledger.Charges, a.Book, id, books.FromComparison)
			if errors.Is(err, gateway.ErrNotFound) {
				err = l.ForgetBuyer(ctx, id)
			}
			if err != nil {
				return false, err
			}
		}
	}
	return true, nil
}
