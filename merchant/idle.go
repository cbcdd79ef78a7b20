package merchant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
)

// Reconcile compares every record with the gateway now that [Merchant.Run] would compare
// later: after an outage of this side or the gateway's, or after a database was restored
// from a backup. It returns the errors of the records that could not be read; Run compares
// them again.
func (m *core) Reconcile(ctx context.Context) error {
	var failed error
	for _, a := range m.sorted() {
		for _, kind := range ledger.Kinds {
			failed = errors.Join(failed, m.reconcile(ctx, a, kind))
			if ctx.Err() != nil {
				return failed
			}
		}
	}
	return failed
}

// reconcile compares all records of a kind and an account.
func (m *core) reconcile(ctx context.Context, a *account, kind ledger.Kind) (failed error) {
	for last := ""; ; {
		ids, err := m.outside().Compared(ctx, kind, a.Name, last, 100)
		if err != nil {
			return errors.Join(failed, err)
		}
		if len(ids) == 0 {
			return failed
		}
		for _, id := range ids {
			last = id
			if err := m.look(ctx, kind, a.Book, id, books.FromComparison); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s %s: %w", kind, id, err))
			}
			if ctx.Err() != nil {
				return failed
			}
		}
	}
}

// Idle waits until no operation, event, callback or adoption waits, and every refund that the gateway
// confirmed is booked: for tests, and before a deployment. A process must Run meanwhile.
// What is left for a person does not count. In a test, wait first until the mock gateway
// has delivered its webhooks, and give ctx a timeout: a callback that always fails is never
// idle. The error is that of ctx, and says what waits.
func (m *core) Idle(ctx context.Context) error {
	const poll = 10 * time.Millisecond
	for {
		n, err := m.waiting(ctx)
		if err != nil || n == (waits{}) {
			return err
		}
		timer := time.NewTimer(poll)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("merchant: %d requests, %d events, %d callbacks, %d refunds and %d adoptions wait: %w",
				n.requests, n.events, n.callbacks, n.refunds, n.adoptions, ctx.Err())
		}
	}
}

// waits is how much waits for this side.
type waits struct{ requests, events, callbacks, refunds, adoptions int64 }

// waiting counts what waits at one moment. Work moves between the counts while they are
// read, for example when a callback inserts a refund: so callbacks are counted first, and
// nothing waits only if no fact was stored meanwhile.
func (m *core) waiting(ctx context.Context) (waits, error) {
	for {
		before, err := m.outside().Newest(ctx)
		if err != nil {
			return waits{}, err
		}
		n, err := m.count(ctx)
		if err != nil || n != (waits{}) {
			return n, err
		}
		if after, err := m.outside().Newest(ctx); err != nil || after == before {
			return n, err
		}
	}
}

func (m *core) count(ctx context.Context) (n waits, err error) {
	if err := m.byIndex(ctx, func(l ledger.Ledger) error {
		callbacks, err := l.Waiting(ctx, m.names(), m.heard, failedOften)
		n.callbacks = int64(callbacks.All)
		return err
	}); err != nil {
		return n, err
	}
	for _, a := range m.sorted() {
		counts, err := a.receiver.Counts(ctx)
		if err != nil {
			return n, err
		}
		n.events += int64(counts.Waiting + counts.Claimed)
		states, err := a.outbox.Counts(ctx)
		if err != nil {
			return n, err
		}
		n.requests += states[operations.Waiting] + states[operations.Working] + states[operations.Sent] + states[operations.Decided]
	}
	err = m.byIndex(ctx, func(l ledger.Ledger) (err error) {
		if n.refunds, err = l.AcceptedRefunds(ctx, m.names()); err != nil {
			return err
		}
		adopting, err := l.WaitingAdoptions(ctx, m.names())
		n.adoptions = 0
		for _, of := range adopting {
			n.adoptions += int64(of)
		}
		return err
	})
	return n, err
}
