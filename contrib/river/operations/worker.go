package operations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
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
	Account   string `json:"account"`
}

// Kind implements river.JobArgs.
func (jobArgs) Kind() string { return "gateway_operation" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (a jobArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: queueOf(a.Account)} }

// sweepArgs is the job that looks for operations whose worker died.
type sweepArgs struct {
	Account string `json:"account"`
}

// Kind implements river.JobArgs.
func (sweepArgs) Kind() string { return "gateway_operations_sweep" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (a sweepArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueOf(a.Account), MaxAttempts: 1, Priority: 1}
}

// outboxes are the outboxes of a River client, by account. River has one worker for
// a kind of job, so it is theirs together. As a hook without a function, it stays
// in the client's configuration, where the next outbox finds it.
type outboxes struct {
	river.HookDefaults

	by map[string]*Outbox
}

// outboxesOf returns the outboxes that were added to a configuration. The first
// call adds the workers.
func outboxesOf(config *river.Config) (*outboxes, error) {
	for _, hook := range config.Hooks {
		if all, ok := hook.(*outboxes); ok {
			return all, nil
		}
	}
	if config.Workers == nil {
		config.Workers = river.NewWorkers()
	}
	all := &outboxes{by: make(map[string]*Outbox)}
	if err := river.AddWorkerSafely(config.Workers, &worker{outboxes: all}); err != nil {
		return nil, fmt.Errorf("operations: %w", err)
	}
	if err := river.AddWorkerSafely(config.Workers, &sweeper{outboxes: all}); err != nil {
		return nil, fmt.Errorf("operations: %w", err)
	}
	config.Hooks = append(config.Hooks, all)
	return all, nil
}

func (a *outboxes) add(o *Outbox) error {
	account := o.store.account.Name
	if a.by[account] != nil {
		return fmt.Errorf("operations: the River client already has an outbox of the account %s", account)
	}
	a.by[account] = o
	return nil
}

type worker struct {
	river.WorkerDefaults[jobArgs]

	outboxes *outboxes
}

// Timeout implements river.Worker. Every step has its own, shorter timeout.
func (w *worker) Timeout(job *river.Job[jobArgs]) time.Duration {
	if o := w.outboxes.by[job.Args.Account]; o != nil {
		return o.lease()
	}
	return 0 // River's default
}

// Work implements river.Worker. The operation's row defines the work; the job
// only schedules it.
func (w *worker) Work(ctx context.Context, job *river.Job[jobArgs]) (err error) {
	o := w.outboxes.by[job.Args.Account]
	if o == nil { // only if the queue of another account was added to this client
		return river.JobSnooze(longestTurn)
	}
	defer o.contain(ctx, &err)
	wait, err := o.work(ctx, job.Args.ID)
	switch {
	case errors.Is(err, ErrAccountConflict):
		// This process has another base URL. Leave the job to one that has not.
		o.config.Logger.LogAttrs(ctx, slog.LevelError, "gateway: operations are not sent",
			slog.String("account", job.Args.Account), slog.String("error", err.Error()))
		return river.JobSnooze(longestTurn)
	case err != nil || wait == never:
		return err
	}
	return river.JobSnooze(wait)
}

// contain returns a panic as an error, and an error as River may store it.
func (o *Outbox) contain(ctx context.Context, err *error) {
	if p := recover(); p != nil {
		o.config.Logger.LogAttrs(ctx, slog.LevelError, "gateway: the worker of operations panicked",
			slog.String("account", o.store.account.Name), slog.String("stack", string(debug.Stack())))
		*err = fmt.Errorf("operations: panic: %v", p)
	}
	*err = shown(*err)
}

// work processes an operation, and returns when to run next.
func (o *Outbox) work(ctx context.Context, id int64) (time.Duration, error) {
	if err := o.store.open(ctx, o.config.Pool); err != nil {
		return 0, err
	}
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

func (o *Outbox) sweep() *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(o.config.SweepInterval),
		func() (river.JobArgs, *river.InsertOpts) { return sweepArgs{Account: o.store.account.Name}, nil },
		&river.PeriodicJobOpts{RunOnStart: true})
}

// sweeper sweeps the operations of all accounts, because only River's leader
// inserts periodic jobs, and it may not have an outbox of every account. It sends
// nothing.
type sweeper struct {
	river.WorkerDefaults[sweepArgs]

	outboxes *outboxes
}

const sweepBatch = 500

// Work implements river.Worker.
func (s *sweeper) Work(ctx context.Context, job *river.Job[sweepArgs]) (err error) {
	o := s.outboxes.by[job.Args.Account]
	if o == nil {
		return nil
	}
	defer o.contain(ctx, &err)
	for {
		n, err := o.wakeOrphans(ctx)
		if err != nil || n < sweepBatch {
			return err
		}
	}
}

func (o *Outbox) wakeOrphans(ctx context.Context) (n int, err error) {
	err = o.store.durable(ctx, func(tx pgx.Tx) error {
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
