package merchant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/operations"
)

// Reconcile compares every record with the gateway now that [Merchant.Run] would compare
// later: after an outage of this side or the gateway's, or after a database was restored
// from a backup. It returns the errors of the records that could not be read; Run compares
// them again.
func (m *Merchant) Reconcile(ctx context.Context) error {
	var failed error
	for _, kind := range m.comparisons() {
		for last := ""; ; {
			ids, err := m.compared(ctx, kind, last)
			if err != nil {
				return errors.Join(failed, err)
			}
			if len(ids) == 0 {
				break
			}
			for _, id := range ids {
				last = id
				if err := kind.look(ctx, id, books.FromComparison); err != nil {
					failed = errors.Join(failed, fmt.Errorf("%s %s: %w", kind.name, id, err))
				}
				if ctx.Err() != nil {
					return failed
				}
			}
		}
	}
	return failed
}

// compared returns the next records that are compared now and then.
func (m *Merchant) compared(ctx context.Context, kind comparison, after string) (ids []string, err error) {
	names, args := m.names()
	args = append(args, after)
	err = m.store.conn().each(ctx, `SELECT id FROM `+kind.table+` WHERE check_at IS NOT NULL AND account IN (`+names+`) AND id > ? ORDER BY id LIMIT 100`,
		args, func(row database.Scanner) error {
			var id string
			err := row.Scan(&id)
			ids = append(ids, id)
			return err
		})
	return ids, err
}

// Idle waits until no operation, event or callback waits, and every refund that the gateway
// confirmed is booked: for tests, and before a deployment. A process must Run meanwhile.
// What is left for a person does not count. In a test, wait first until the mock gateway
// has delivered its webhooks, and give ctx a timeout: a callback that always fails is never
// idle. The error is that of ctx, and says what waits.
func (m *Merchant) Idle(ctx context.Context) error {
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
			return fmt.Errorf("merchant: %d requests, %d events, %d callbacks and %d refunds wait: %w", n.requests, n.events, n.callbacks, n.refunds, ctx.Err())
		}
	}
}

// waits is how much waits for this side.
type waits struct{ requests, events, callbacks, refunds int64 }

// waiting counts what waits at one moment. Work moves between the counts while they are
// read, for example when a callback inserts a refund: so callbacks are counted first, and
// nothing waits only if no fact was stored meanwhile.
func (m *Merchant) waiting(ctx context.Context) (waits, error) {
	for {
		before, err := m.newest(ctx)
		if err != nil {
			return waits{}, err
		}
		n, err := m.count(ctx)
		if err != nil || n != (waits{}) {
			return n, err
		}
		if after, err := m.newest(ctx); err != nil || after == before {
			return n, err
		}
	}
}

// newest returns the number of the newest fact.
func (m *Merchant) newest(ctx context.Context) (seq int64, err error) {
	_, err = m.store.conn().first(ctx, `SELECT COALESCE(MAX(seq), 0) FROM gateway_facts`, nil, &seq)
	return seq, err
}

func (m *Merchant) count(ctx context.Context) (n waits, err error) {
	names, args := m.names()
	c := m.store.conn()
	if _, err := c.first(ctx, `SELECT COUNT(*) FROM gateway_facts WHERE delivered_at IS NULL AND account IN (`+names+`)`, args, &n.callbacks); err != nil {
		return n, err
	}
	for _, a := range m.accounts {
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
	_, err = c.first(ctx, `SELECT COUNT(*) FROM gateway_refunds AS r JOIN gateway_charges AS c ON c.id = r.charge
		WHERE r.state = '`+string(Accepted)+`' AND c.account IN (`+names+`)`, args, &n.refunds)
	return n, err
}
