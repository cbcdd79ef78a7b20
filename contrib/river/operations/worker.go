package operations

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// jobArgs wakes a worker for one operation. River stores and shows it, so it
// contains only the operation's identity.
type jobArgs struct {
	ID        int64  `json:"id"`
	Operation string `json:"operation"` // "transactions.refund"
}

// Kind implements river.JobArgs.
func (jobArgs) Kind() string { return "gateway_operation" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (jobArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: Queue} }

type worker struct {
	river.WorkerDefaults[jobArgs]

	outbox *Outbox
}

// Timeout implements river.Worker. Every step has its own, shorter timeout.
func (w *worker) Timeout(*river.Job[jobArgs]) time.Duration { return w.outbox.lease() }

// Work implements river.Worker. The operation's row defines the work; the job
// only schedules it.
func (w *worker) Work(ctx context.Context, job *river.Job[jobArgs]) error {
	wait, err := w.outbox.work(ctx, job.Args.ID)
	if err != nil || wait == never {
		return err
	}
	return river.JobSnooze(wait)
}

// work processes an operation, and returns when to run next.
func (o *Outbox) work(ctx context.Context, id int64) (time.Duration, error) {
	r, err := o.store.claim(ctx, id, o.lease())
	if err != nil {
		return 0, err
	}
	if r == nil {
		return o.store.until(ctx, id)
	}
	a := &attempt{Outbox: o, record: r}
	wait, err := a.run(ctx)
	if errors.Is(err, errLost) {
		return o.store.until(ctx, id)
	}
	return wait, err
}

// sweepArgs is the job that looks for operations whose worker died.
type sweepArgs struct{}

// Kind implements river.JobArgs.
func (sweepArgs) Kind() string { return "gateway_operations_sweep" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (sweepArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Queue, MaxAttempts: 1, Priority: 1}
}

func (o *Outbox) sweep() *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(o.config.SweepInterval),
		func() (river.JobArgs, *river.InsertOpts) { return sweepArgs{}, nil },
		&river.PeriodicJobOpts{RunOnStart: true})
}

type sweeper struct {
	river.WorkerDefaults[sweepArgs]

	outbox *Outbox
}

const sweepBatch = 500

// Work implements river.Worker.
func (s *sweeper) Work(ctx context.Context, _ *river.Job[sweepArgs]) error {
	for {
		n, err := s.outbox.wakeOrphans(ctx)
		if err != nil || n < sweepBatch {
			return err
		}
	}
}

func (o *Outbox) wakeOrphans(ctx context.Context) (n int, err error) {
	err = pgx.BeginFunc(ctx, o.config.Pool, func(tx pgx.Tx) error {
		orphans, err := o.store.orphans(ctx, tx, sweepBatch)
		if err != nil || len(orphans) == 0 {
			return err
		}
		n = len(orphans)
		params := make([]river.InsertManyParams, n)
		for i, args := range orphans {
			params[i].Args = args
		}
		jobs, err := o.river.InsertManyTx(ctx, tx, params)
		if err != nil {
			return err
		}
		return o.setJobs(ctx, tx, orphans, jobs)
	})
	return n, wrap(err)
}

func (o *Outbox) setJobs(ctx context.Context, tx pgx.Tx, orphans []jobArgs, jobs []*rivertype.JobInsertResult) error {
	batch := &pgx.Batch{}
	for i, job := range jobs {
		batch.Queue(`UPDATE `+o.store.table+` SET job_id = $2 WHERE id = $1`, orphans[i].ID, job.Job.ID)
	}
	return tx.SendBatch(ctx, batch).Close()
}
