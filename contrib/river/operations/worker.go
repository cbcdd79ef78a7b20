package operations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/gateway-go/gateway"
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
	account := o.engine.account
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

// Timeout implements river.Worker. [operations.Outbox.Work] has one of its own.
func (w *worker) Timeout(*river.Job[jobArgs]) time.Duration { return -1 }

// elsewhere is how long a job is left that this process must not work on.
const elsewhere = 30 * time.Second

// Work implements river.Worker. The operation's row defines the work; the job
// only schedules it.
func (w *worker) Work(ctx context.Context, job *river.Job[jobArgs]) error {
	o := w.outboxes.by[job.Args.Account]
	if o == nil { // only if the queue of another account was added to this client
		return river.JobSnooze(elsewhere)
	}
	next, err := o.Work(ctx, job.Args.ID)
	switch {
	case errors.Is(err, gateway.ErrAccountConflict):
		// This process has another base URL. Leave the job to one that has not.
		o.engine.logger.LogAttrs(ctx, slog.LevelError, "gateway: operations are not sent",
			slog.String("account", job.Args.Account), slog.String("error", err.Error()))
		return river.JobSnooze(elsewhere)
	case err != nil || next < 0:
		return err
	}
	return river.JobSnooze(next)
}

func (o *Outbox) sweep() *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(o.engine.interval),
		func() (river.JobArgs, *river.InsertOpts) { return sweepArgs{Account: o.engine.account}, nil },
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
func (s *sweeper) Work(ctx context.Context, job *river.Job[sweepArgs]) error {
	o := s.outboxes.by[job.Args.Account]
	if o == nil {
		return nil
	}
	for {
		n, err := o.engine.wakeOrphans(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("operations: %w", err)
		case n < sweepBatch:
			return nil
		}
	}
}
