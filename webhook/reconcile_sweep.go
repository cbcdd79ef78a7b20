package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/gateway-go/gateway"
)

// sweep checks the transactions in the states of Sweep that Open has not
// yielded. A failure is counted: the next round lists them again.
func (ro *round) sweep(ctx context.Context) error {
	if len(ro.cfg.Sweep) == 0 {
		return nil
	}
	found, err := ro.changed(ctx)
	if err != nil {
		ro.failed(ctx, OpenResource{Family: FamilyTransaction}, err)
		ro.add(Reconciliation{Failed: 1})
		if errors.Is(err, ErrShutdown) {
			return err
		}
	}
	for _, open := range found {
		if err := ro.start(ctx, open); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// changed lists the transactions in the states of Sweep that have changed since
// the last round.
func (ro *round) changed(ctx context.Context) (found []OpenResource, err error) {
	if err := ro.acquire(ctx); err != nil {
		return nil, err
	}
	defer ro.release()
	left := ro.cfg.SearchPages * pageSize
	params := gateway.TransactionListParams{Limit: pageSize, Statuses: ro.cfg.Sweep}
	for tx, err := range ro.rx.cfg.API.Transactions.All(ctx, params) {
		if err != nil {
			return found, err
		}
		if left--; left < 0 {
			break
		}
		if !ro.opened[tx.ID] && !ro.reported(tx.ID, tx.UpdatedAt.Time) {
			// It was paid, whatever the records say.
			found = append(found, OpenResource{Family: FamilyTransaction, ID: tx.ID, Status: string(gateway.TransactionPaid), swept: true})
		}
	}
	return found, nil
}

// reported reports whether an earlier round has reported the transaction as it
// is now.
func (ro *round) reported(id string, updated time.Time) bool {
	ro.Reconciler.mu.Lock()
	last, known := ro.Reconciler.swept[id]
	ro.Reconciler.mu.Unlock()
	if !known || updated.IsZero() || !last.Equal(updated) {
		return false
	}
	ro.mu.Lock()
	ro.swept[id] = last
	ro.mu.Unlock()
	return true
}

// remember keeps the last update of a transaction whose events were passed to the receiver.
func (ro *round) remember(res *resource) {
	ro.mu.Lock()
	ro.swept[res.transaction.ID] = res.transaction.UpdatedAt.Time
	ro.mu.Unlock()
}
