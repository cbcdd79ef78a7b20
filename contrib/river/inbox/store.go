package inbox

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// errWorkers is the error for a receiver that is configured to dispatch events
// itself.
var errWorkers = errors.New("inbox: River's workers handle the events: the receiver needs Mode: webhook.Inbox and Workers: -1")

// Put implements [webhook.Store]: the event and its job are stored in one
// transaction.
func (in *Inbox) Put(ctx context.Context, rec webhook.Record) (webhook.Entry, error) {
	return in.put(ctx, func(tx pgx.Tx) (webhook.Entry, error) { return in.PutTx(ctx, tx, rec) }, rec)
}

// PutDead implements [webhook.Store]. River shows it as a discarded job.
func (in *Inbox) PutDead(ctx context.Context, rec webhook.Record, reason string) (webhook.Entry, error) {
	return in.put(ctx, func(tx pgx.Tx) (webhook.Entry, error) { return in.PutDeadTx(ctx, tx, rec, reason) }, rec)
}

func (in *Inbox) put(ctx context.Context, put func(pgx.Tx) (webhook.Entry, error), rec webhook.Record) (entry webhook.Entry, err error) {
	job := in.job(rec)
	err = in.write(ctx, func(tx pgx.Tx) (err error) {
		if entry, err = put(tx); err != nil || !entry.Added {
			return err
		}
		_, err = in.river.InsertTx(ctx, tx, job, nil)
		return err
	})
	if err != nil {
		return webhook.Entry{}, err
	}
	return entry, nil
}

// job returns the arguments of an event's job.
func (in *Inbox) job(rec webhook.Record) jobArgs {
	return jobArgs{Key: rec.Key, Account: in.account.Name, Event: string(rec.Kind), Resource: rec.Resource}
}

// errNoAccount is the error for a job without an account, which no worker would run.
var errNoAccount = errors.New("inbox: the inbox has no account: use the store of a receiver, or call For")

// write runs a transaction of the inbox itself, and repeats it after a
// conflict. The store and River see what other transactions committed after it
// began, whatever the session's default isolation is.
func (in *Inbox) write(ctx context.Context, fn func(pgx.Tx) error) error {
	if in.account.Name == "" {
		return errNoAccount
	}
	return retry(ctx, func() error { return in.inTx(ctx, sql.LevelReadCommitted, fn) })
}

// maxTries limits how often a transaction is repeated after a conflict.
const maxTries = 10

// retry runs a transaction, and repeats it if it had a serialization failure,
// was a deadlock's victim or waited too long for a lock. The server has rolled
// it back then.
func retry(ctx context.Context, transaction func() error) error {
	for try := 1; ; try++ {
		err := transaction()
		var coded *pgconn.PgError
		if try == maxTries || ctx.Err() != nil || !errors.As(err, &coded) {
			return err
		}
		switch coded.Code {
		case "40001", "40P01", "55P03":
		default:
			return err
		}
	}
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

// Settle implements [webhook.Store]. The running job gets the outcome.
func (in *Inbox) Settle(ctx context.Context, c *webhook.Claim, d webhook.Disposition) error {
	err := in.Store.Settle(ctx, c, d)
	if r := runFrom(ctx); r != nil && err == nil {
		r.settle(c, d)
	}
	return err
}

// Requeue implements [webhook.Store].
func (in *Inbox) Requeue(ctx context.Context, keys ...string) (n int, err error) {
	for _, key := range keys {
		job := in.job(webhook.Record{Key: key})
		found := false
		err = in.write(ctx, func(tx pgx.Tx) (err error) {
			if found, err = in.RequeueTx(ctx, tx, key); err != nil || !found {
				return err
			}
			return in.wake(ctx, tx, job)
		})
		if err != nil {
			return n, err
		}
		if found {
			n++
		}
	}
	return n, nil
}

// wake makes River run an event's job now.
func (in *Inbox) wake(ctx context.Context, tx pgx.Tx, job jobArgs) error {
	res, err := in.river.InsertTx(ctx, tx, job, nil)
	if err != nil || !res.UniqueSkippedAsDuplicate {
		return err
	}
	if res.Job.State == rivertype.JobStateRunning { // it may be finishing
		job.After = res.Job.ID
		_, err = in.river.InsertTx(ctx, tx, job, nil)
		return err
	}
	_, err = in.river.JobRetryTx(ctx, tx, res.Job.ID)
	return err
}

// Adopt inserts a job for each unfinished event of these accounts that has none,
// and returns their number. Call it when you switch from plain sqlstore, once the last process
// that uses it has stopped, and after deleting or cancelling jobs by hand.
func (in *Inbox) Adopt(ctx context.Context, accounts ...gateway.Account) (n int, err error) {
	if len(accounts) == 0 {
		return 0, errors.New("inbox: Adopt needs the accounts whose events get jobs, such as Receiver.Account")
	}
	for _, account := range accounts {
		adopted, err := in.of(account).adoptAll(ctx)
		if n += adopted; err != nil {
			return n, err
		}
	}
	return n, nil
}

// adoptAll inserts the jobs of one account.
func (in *Inbox) adoptAll(ctx context.Context) (n int, err error) {
	for after := ""; ; {
		names, err := in.Unfinished(ctx, after, adoptBatch)
		if err != nil || len(names) == 0 {
			return n, err
		}
		params := make([]river.InsertManyParams, len(names))
		for i, e := range names {
			params[i].Args = in.job(e)
		}
		adopted := 0
		err = in.write(ctx, func(tx pgx.Tx) (err error) {
			adopted, err = in.adopt(ctx, tx, params)
			return err
		})
		if err != nil {
			return n, err
		}
		n += adopted
		after = names[len(names)-1].Key
	}
}

// adopt inserts the jobs that don't exist, and makes River run the finished
// ones again.
func (in *Inbox) adopt(ctx context.Context, tx pgx.Tx, params []river.InsertManyParams) (n int, err error) {
	if _, err := tx.Exec(ctx, flushed); err != nil {
		return 0, err
	}
	jobs, err := in.river.InsertManyTx(ctx, tx, params)
	if err != nil {
		return 0, err
	}
	for _, job := range jobs {
		if job.UniqueSkippedAsDuplicate && job.Job.FinalizedAt == nil {
			continue
		}
		if n++; job.UniqueSkippedAsDuplicate {
			if _, err := in.river.JobRetryTx(ctx, tx, job.Job.ID); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// flushed makes a crash of PostgreSQL lose no job of a transaction without the
// store's own statements, which do the same.
const flushed = `SELECT set_config('synchronous_commit', 'on', TRUE) WHERE current_setting('synchronous_commit') IN ('off', 'local')`

const adoptBatch = 500
