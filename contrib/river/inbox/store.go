package inbox

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// errWorkers is the error for a receiver that is configured to dispatch events
// itself.
var errWorkers = errors.New("inbox: River's workers handle the events: the receiver needs Mode: webhook.Inbox and Workers: -1")

// Put implements [webhook.Store]: the event and its job are stored in one
// transaction.
func (in *Inbox) Put(ctx context.Context, rec webhook.Record) (webhook.Entry, error) {
	return in.put(ctx, func(tx sqlstore.Tx) (webhook.Entry, error) { return in.PutTx(ctx, tx, rec) }, rec)
}

// PutDead implements [webhook.Store]. River shows it as a discarded job.
func (in *Inbox) PutDead(ctx context.Context, rec webhook.Record, reason string) (webhook.Entry, error) {
	return in.put(ctx, func(tx sqlstore.Tx) (webhook.Entry, error) { return in.PutDeadTx(ctx, tx, rec, reason) }, rec)
}

func (in *Inbox) put(ctx context.Context, put func(sqlstore.Tx) (webhook.Entry, error), rec webhook.Record) (entry webhook.Entry, err error) {
	err = in.inTx(ctx, func(conn *sql.Conn, tx pgx.Tx) (err error) {
		if entry, err = put(conn); err != nil || !entry.Added {
			return err
		}
		_, err = in.river.InsertTx(ctx, tx, jobArgs{Key: rec.Key, Event: string(rec.Kind), Resource: rec.Resource}, nil)
		return err
	})
	if err != nil {
		return webhook.Entry{}, err
	}
	return entry, nil
}

// Claim implements [webhook.Store]. It claims the resource's next event.
func (in *Inbox) Claim(ctx context.Context, key string, lease time.Duration) (*webhook.Claim, webhook.Entry, error) {
	if runFrom(ctx) == nil {
		return nil, webhook.Entry{}, errWorkers
	}
	return in.ClaimInOrder(ctx, key, lease)
}

// Next implements [webhook.Store]. It always fails: River dispatches the
// events.
func (in *Inbox) Next(context.Context, int, time.Duration) ([]*webhook.Claim, error) {
	return nil, errWorkers
}

// NextUnhandled implements [webhook.Store]. It always fails: River dispatches the
// events.
func (in *Inbox) NextUnhandled(context.Context, func(webhook.Family, webhook.Kind) bool, int, time.Duration) ([]*webhook.Claim, error) {
	return nil, errWorkers
}

// Complete implements [webhook.Store].
func (in *Inbox) Complete(ctx context.Context, c *webhook.Claim) error {
	return in.note(ctx, c, settled{}, in.Store.Complete(ctx, c))
}

// Retry implements [webhook.Store].
func (in *Inbox) Retry(ctx context.Context, c *webhook.Claim, delay time.Duration, reason string) error {
	return in.note(ctx, c, settled{how: failed, delay: delay, reason: reason}, in.Store.Retry(ctx, c, delay, reason))
}

// MarkDead implements [webhook.Store].
func (in *Inbox) MarkDead(ctx context.Context, c *webhook.Claim, reason string) error {
	return in.note(ctx, c, settled{how: dead, reason: reason}, in.Store.MarkDead(ctx, c, reason))
}

// Release implements [webhook.Store].
func (in *Inbox) Release(ctx context.Context, c *webhook.Claim) error {
	return in.note(ctx, c, settled{how: released}, in.Store.Release(ctx, c))
}

// SetAside implements [webhook.Store].
func (in *Inbox) SetAside(ctx context.Context, c *webhook.Claim, family webhook.Family) error {
	return in.note(ctx, c, settled{how: aside}, in.Store.SetAside(ctx, c, family))
}

// note records the outcome of an event for the running job.
func (in *Inbox) note(ctx context.Context, c *webhook.Claim, what settled, err error) error {
	if r := runFrom(ctx); r != nil && err == nil {
		r.settle(c, what)
	}
	return err
}

// Requeue implements [webhook.Store].
func (in *Inbox) Requeue(ctx context.Context, keys ...string) (n int, err error) {
	for _, key := range keys {
		one, err := in.Store.Requeue(ctx, key)
		if err != nil {
			return n, err
		}
		if n += one; one == 0 {
			continue
		}
		if err := in.wake(ctx, key); err != nil {
			return n, err
		}
	}
	return n, nil
}

// wake makes River run an event's job now.
func (in *Inbox) wake(ctx context.Context, key string) error {
	res, err := in.river.Insert(ctx, jobArgs{Key: key}, nil)
	if err != nil || !res.UniqueSkippedAsDuplicate {
		return err
	}
	if res.Job.State == rivertype.JobStateRunning { // it may be finishing
		_, err = in.river.Insert(ctx, jobArgs{Key: key, After: res.Job.ID}, nil)
		return err
	}
	_, err = in.river.JobRetry(ctx, res.Job.ID)
	return err
}

// Adopt inserts a job for each unfinished event that has none, and returns their
// number. Call it when you switch from plain sqlstore, once the last process
// that uses it has stopped, and after deleting or cancelling jobs by hand.
func (in *Inbox) Adopt(ctx context.Context) (n int, err error) {
	for after := ""; ; {
		names, err := in.Unfinished(ctx, after, adoptBatch)
		if err != nil || len(names) == 0 {
			return n, err
		}
		params := make([]river.InsertManyParams, len(names))
		for i, e := range names {
			params[i].Args = jobArgs{Key: e.Key, Event: string(e.Kind), Resource: e.Resource}
		}
		jobs, err := in.river.InsertMany(ctx, params)
		if err != nil {
			return n, err
		}
		for _, job := range jobs {
			if job.UniqueSkippedAsDuplicate && job.Job.FinalizedAt == nil {
				continue
			}
			if n++; job.UniqueSkippedAsDuplicate {
				if _, err := in.river.JobRetry(ctx, job.Job.ID); err != nil {
					return n, err
				}
			}
		}
		after = names[len(names)-1].Key
	}
}

const adoptBatch = 500
