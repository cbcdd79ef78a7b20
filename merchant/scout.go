package merchant

import (
	"context"
	"time"

	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// scout looks for all accounts at once whether an operation or an event is due, and tells their
// outboxes and receivers, which then need not look themselves. While its looks fail they do. If
// the database's clock was set back, all of them look.
func (m *core) scout(ctx context.Context) {
	timer := time.NewTicker(m.cfg.PollInterval)
	defer timer.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		var due ledger.DueWork
		if err := m.byIndex(ctx, func(l ledger.Ledger) (err error) {
			due, err = l.DueWork(ctx)
			return err
		}); err != nil {
			continue
		}
		back := due.Now.Before(last)
		last = due.Now
		for name, a := range m.accounts {
			a.outbox.Nudge(due.Operations[name] || back)
			a.receiver.Nudge(due.Events[name] || back)
		}
	}
}
