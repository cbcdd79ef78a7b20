package merchant

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// When entries are added to the totals, by one process: every hour, or when many are not in
// them yet.
const (
	totalEvery = time.Hour
	totalLook  = time.Minute // until the next look at how many there are
)

// keepTotals adds entries to the totals until ctx ends. Statements would be right without,
// but read all entries.
func (m *core) keepTotals(ctx context.Context) {
	for ctx.Err() == nil {
		err := m.guarded(ctx, "the totals", func() error { return m.total(ctx) })
		if err != nil && ctx.Err() == nil {
			m.fail(ctx, "the sums of the entries could not be stored, and are read from the entries", err)
		}
		timer := time.NewTimer(totalLook/2 + rand.N(totalLook)) //nolint:gosec // jitter needs no secrecy
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// total adds to the totals what waits. The process that does it in an hour also checks a
// month of each account.
func (m *core) total(ctx context.Context) error {
	many, late, err := m.outside().TotalsDue(ctx, totalEvery)
	for more := many || late; more && err == nil; {
		err = m.db.Transaction(ctx, func(tx sqldb.Tx) (err error) {
			more, err = m.ledger(tx).AddTotals(ctx)
			return err
		})
	}
	if err != nil || !late {
		return err
	}
	for _, a := range m.sorted() {
		if err := m.auditTotals(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// auditTotals compares the totals of a month of an account with its entries. It reads all
// entries of the month, so the months take turns, at random: processes may end at any time.
func (m *core) auditTotals(ctx context.Context, a *account) error {
	var months []string
	if err := m.byIndex(ctx, func(l ledger.Ledger) (err error) {
		months, err = l.Months(ctx, a.Name)
		return err
	}); err != nil || len(months) == 0 {
		return err
	}
	month := months[rand.N(len(months))] //nolint:gosec // any order does
	wrong, err := m.wrongTotals(ctx, a, month)
	if err != nil || len(wrong) == 0 {
		return err
	}
	for _, w := range wrong {
		m.cfg.Logger.LogAttrs(ctx, slog.LevelError, "merchant: a sum was not that of its entries, which were changed by "+
			"other means than this package, and is corrected: compare the month with your accounting",
			slog.String("account", a.Name), slog.String("month", month), slog.String("kind", string(w.Kind)),
			slog.String("currency", string(w.Currency)), slog.Int64("sum", w.Sum), slog.Int64("entries", w.Entries))
	}
	return m.db.Transaction(ctx, func(tx sqldb.Tx) error { return m.ledger(tx).RepairTotals(ctx, a.Name, month) })
}

func (m *reading) wrongTotals(ctx context.Context, a *account, month string) (wrong []ledger.Wrong, err error) {
	err = m.byIndex(ctx, func(l ledger.Ledger) (err error) {
		wrong, err = l.WrongTotals(ctx, a.Name, month)
		return err
	})
	return wrong, err
}

// totals compares the totals of the month with its entries.
func (k *check) totals(ctx context.Context) error {
	wrong, err := k.m.wrongTotals(ctx, k.account, k.month)
	for _, w := range wrong {
		k.add(Difference{
			Kind: DiffTotal, Here: w.Sum, There: w.Entries,
			Text: fmt.Sprintf("the sum of the entries of the kind %s in %s: Run corrects it", w.Kind, w.Currency),
		})
	}
	return err
}
