package merchant

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// compared is a record that is compared with the gateway.
type compared interface {
	record

	// read reads the gateway, outside of a transaction, and returns what books the reading.
	read(ctx context.Context, source books.Source) (func(*bench) error, error)
}

// load returns a record without what belongs to it, or [ErrNotFound].
func (m *core) load(ctx context.Context, kind ledger.Kind, id string) (compared, error) {
	row, err := m.outside().Row(ctx, kind, id)
	if err != nil {
		return nil, err
	}
	return m.recordOf(row)
}

func (m *core) recordOf(row *ledger.Row) (compared, error) {
	switch row.Kind {
	case ledger.Payouts:
		return m.payoutOf(row)
	case ledger.Subscriptions:
		return m.subscriptionOf(row)
	default:
		return m.chargeOf(row)
	}
}

// look reads what the gateway has of a record and books what it shows. The error is
// [ErrNotFound] if there is no such record.
func (m *core) look(ctx context.Context, kind ledger.Kind, id string, source books.Source) error {
	r, err := m.load(ctx, kind, id)
	if err != nil {
		return err
	}
	return m.refresh(ctx, r, source, ledger.Wait)
}

// refresh reads a record and books what it shows.
func (m *core) refresh(ctx context.Context, r compared, source books.Source, lock ledger.Lock) error {
	for {
		book, err := r.read(ctx, source)
		if err != nil {
			return err
		}
		p := at(r.stored())
		p.lock = lock
		if err := m.once(ctx, p, book); err != nil {
			return err
		}
		s, ok := r.(*subscription)
		if !ok {
			return nil
		}
		if !s.incomplete() {
			return s.unread()
		}
	}
}

// compare reads what is due until ctx ends.
func (m *core) compare(ctx context.Context) {
	for ctx.Err() == nil {
		n := 0
		for _, kind := range ledger.Kinds {
			due, err := m.compareDue(ctx, kind)
			if err != nil && ctx.Err() == nil {
				m.fail(ctx, "what is due could not be compared", err, slog.String("kind", string(kind)))
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
func (m *core) compareDue(ctx context.Context, kind ledger.Kind) (n int, err error) {
	list, err := m.outside().DueChecks(ctx, kind, m.names(), 4*readers)
	if err != nil {
		return 0, err
	}
	// A charge is compared again if its process dies or the gateway can't be read.
	again := max(m.cfg.Lease, time.Minute)
	var workers sync.WaitGroup
	slots := make(chan struct{}, readers)
	for _, d := range list {
		claimed, err := m.outside().ClaimCheck(ctx, kind, d, again)
		if err != nil || !claimed { // another process has it
			continue
		}
		n++
		slots <- struct{}{}
		workers.Go(func() {
			defer func() { <-slots }()
			if err := m.look(ctx, kind, d.ID, books.FromComparison); err != nil && ctx.Err() == nil {
				m.fail(ctx, "a record could not be compared with the gateway, and will be later", err, slog.String(string(kind), d.ID))
			}
		})
	}
	workers.Wait()
	return n, nil
}
