package merchant

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/operations"
)

// compare reads the charges and subscriptions that are due until ctx ends.
func (m *Merchant) compare(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := m.compareDue(ctx, "gateway_charges", m.look)
		more, err2 := m.compareDue(ctx, "gateway_subscriptions", m.lookSubscription)
		if err := errors.Join(err, err2); err != nil && ctx.Err() == nil {
			m.fail(ctx, "what is due could not be compared", err)
		}
		if n+more > 0 {
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

const (
	// comparing is when a record is compared again if its process dies or the gateway
	// can't be read.
	comparing = 5 * time.Minute
	readers   = 4
)

// compareDue compares the records of a table that are due and returns how many.
func (m *Merchant) compareDue(ctx context.Context, table string, look func(context.Context, string, books.Source) error) (n int, err error) {
	type due struct {
		id string
		at int64
	}
	var list []due
	names, args := m.names()
	err = m.store.conn().each(ctx, `SELECT id, check_at FROM `+table+` WHERE check_at <= {now} AND account IN (`+names+`) ORDER BY check_at LIMIT ?`,
		append(args, 4*readers), func(row operations.Scanner) error {
			var d due
			err := row.Scan(&d.id, &d.at)
			list = append(list, d)
			return err
		})
	if err != nil {
		return 0, err
	}
	var workers sync.WaitGroup
	slots := make(chan struct{}, readers)
	for _, d := range list {
		claimed, err := m.store.conn().exec(ctx, `UPDATE `+table+` SET check_at = {now} + ? WHERE id = ? AND check_at = ?`, comparing.Milliseconds(), d.id, d.at)
		if err != nil || claimed == 0 { // another process has it
			continue
		}
		n++
		slots <- struct{}{}
		workers.Go(func() {
			defer func() { <-slots }()
			if err := look(ctx, d.id, books.FromComparison); err != nil && ctx.Err() == nil {
				m.fail(ctx, "a record could not be compared with the gateway, and will be later", err, slog.String("id", d.id))
			}
		})
	}
	workers.Wait()
	return n, nil
}
