package merchant

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// comparison is a table with records that are compared with the gateway.
type comparison struct {
	name, table string
	look        func(ctx context.Context, id string, source books.Source) error
}

func (m *Merchant) comparisons() []comparison {
	return []comparison{
		{"charge", "gateway_charges", m.look},
		{"payout", "gateway_payouts", m.lookPayout},
		{"subscription", "gateway_subscriptions", m.lookSubscription},
	}
}

// compare reads what is due until ctx ends.
func (m *Merchant) compare(ctx context.Context) {
	for ctx.Err() == nil {
		n := 0
		for _, kind := range m.comparisons() {
			due, err := m.compareDue(ctx, kind)
			if err != nil && ctx.Err() == nil {
				m.fail(ctx, "what is due could not be compared", err, slog.String("kind", kind.name))
			}
			n += due
		}
		m.noteBalances(ctx)
		if n += m.sweep(ctx); n > 0 {
			continue
		}
		timer := time.NewTimer(m.cfg.PollInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

const readers = 4

// compareDue compares records of a kind that are due and returns how many.
func (m *Merchant) compareDue(ctx context.Context, kind comparison) (n int, err error) {
	type due struct {
		id string
		at int64
	}
	var list []due
	names, args := m.names()
	err = m.store.conn().each(ctx, `SELECT id, check_at FROM `+kind.table+` WHERE check_at <= {now} AND account IN (`+names+`) ORDER BY check_at LIMIT ?`,
		append(args, 4*readers), func(row database.Scanner) error {
			var d due
			err := row.Scan(&d.id, &d.at)
			list = append(list, d)
			return err
		})
	if err != nil {
		return 0, err
	}
	// A charge is compared again if its process dies or the gateway can't be read.
	again := max(m.cfg.Lease, time.Minute).Milliseconds()
	var workers sync.WaitGroup
	slots := make(chan struct{}, readers)
	for _, d := range list {
		claimed, err := m.store.conn().exec(ctx, `UPDATE `+kind.table+` SET check_at = {now} + ? WHERE id = ? AND check_at = ?`, again, d.id, d.at)
		if err != nil || claimed == 0 { // another process has it
			continue
		}
		n++
		slots <- struct{}{}
		workers.Go(func() {
			defer func() { <-slots }()
			if err := kind.look(ctx, d.id, books.FromComparison); err != nil && ctx.Err() == nil {
				m.fail(ctx, "a record could not be compared with the gateway, and will be later", err, slog.String(kind.name, d.id))
			}
		})
	}
	workers.Wait()
	return n, nil
}
