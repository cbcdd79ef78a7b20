package merchant

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/operations"
)

// compare reads the charges that are due until ctx ends.
func (m *Merchant) compare(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := m.compareDue(ctx)
		if err != nil && ctx.Err() == nil {
			m.fail(ctx, "the charges that are due could not be compared", err)
		}
		if n > 0 {
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

// compareDue compares charges that are due and returns how many.
func (m *Merchant) compareDue(ctx context.Context) (n int, err error) {
	type due struct {
		id string
		at int64
	}
	var list []due
	names, args := m.names()
	err = m.store.conn().each(ctx, `SELECT id, check_at FROM gateway_charges WHERE check_at <= {now} AND account IN (`+names+`) ORDER BY check_at LIMIT ?`,
		append(args, 4*readers), func(row operations.Scanner) error {
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
		claimed, err := m.store.conn().exec(ctx, `UPDATE gateway_charges SET check_at = {now} + ? WHERE id = ? AND check_at = ?`, again, d.id, d.at)
		if err != nil || claimed == 0 { // another process has it
			continue
		}
		n++
		slots <- struct{}{}
		workers.Go(func() {
			defer func() { <-slots }()
			if err := m.look(ctx, d.id, books.FromComparison); err != nil && ctx.Err() == nil {
				m.fail(ctx, "a charge could not be compared with the gateway, and will be later", err, slog.String("charge", d.id))
			}
		})
	}
	workers.Wait()
	return n, nil
}
