package operations

import (
	"context"
	"fmt"
	"time"
)

// Send works on an operation in this goroutine instead of waiting for a worker, for
// example because a buyer waits for the page, and returns it as it is then. Call it after
// the transaction of [Outbox.InsertTx] is committed. If a worker has the operation, Send
// waits for that worker. It sends nothing if the operation is not due yet.
//
// Not to know the outcome is no error: the state is [Sent], and workers find it out. The
// error is [ErrNotFound] if no operation of the account has the id. After any other
// error, such as that of ctx, workers continue with the operation.
func (o *Outbox[TX]) Send(ctx context.Context, id int64) (*Entry, error) {
	_, claimed, err := o.work(ctx, id)
	if err == nil && claimed != nil && claimed.State == Done {
		return &claimed.Entry, nil
	}
	for pause := 5 * time.Millisecond; err == nil; pause = min(2*pause, shortestWait) {
		var e *Entry
		var leased bool
		if e, leased, err = o.entry(ctx, id); err == nil && (claimed != nil || !leased) {
			return e, nil
		}
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
		wait.Stop()
	}
	return nil, wrap(err)
}

// entry reads an operation, and whether a worker has it.
func (o *core) entry(ctx context.Context, id int64) (e *Entry, leased bool, err error) {
	r, err := one(ctx, o.store.db.Conn(), `SELECT `+columns+`, COALESCE(lease_until, 0) > {now} FROM `+table+oneByID,
		[]any{id, o.store.account.Name}, &leased)
	switch {
	case err != nil:
		return nil, false, err
	case r == nil:
		return nil, false, fmt.Errorf("%w: %d", ErrNotFound, id)
	}
	return &r.Entry, leased, nil
}
