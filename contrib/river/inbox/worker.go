package inbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/gateway-go/gateway/webhook"
)

// jobArgs identifies an event. River stores and shows it, so it does not contain
// the event itself.
type jobArgs struct {
	Key      string `json:"key" river:"unique"` // of the event
	Account  string `json:"account" river:"unique"`
	After    int64  `json:"after,omitempty" river:"unique"` // the job that this one follows
	Event    string `json:"event,omitempty"`                // "transaction.paid"
	Resource string `json:"resource,omitempty"`

	retryAt time.Time // set by Work, read by NextRetry
}

// Kind implements river.JobArgs.
func (jobArgs) Kind() string { return "gateway_webhook" }

// InsertOpts implements river.JobArgsWithInsertOpts. The receiver counts the
// attempts (see [webhook.Config.MaxAttempts]), so River's limit is set out of
// reach. A job is unique whatever its state, so that a redelivery does not
// insert a second one. Its priority is lower than the sweep's, which must not
// wait behind a backlog.
func (a jobArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueOf(a.Account), Priority: 2, MaxAttempts: math.MaxInt16, UniqueOpts: river.UniqueOpts{
		ByArgs: true,
		ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStateCancelled, rivertype.JobStateCompleted, rivertype.JobStateDiscarded,
			rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
		},
	}}
}

// run is one run of a job, with the outcomes of its events.
type run struct {
	job *river.Job[jobArgs]
	key string // the key of its event

	mu     sync.Mutex
	result map[string]webhook.Disposition // by the event's key
}

type runKey struct{}

func runFrom(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

func (r *run) settle(c *webhook.Claim, what webhook.Disposition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result[c.Key] = what
}

// settled returns the outcome of an event. It is unknown if the handler hangs, the
// claim was lost or the store failed.
func (r *run) settled(key string) (what webhook.Disposition, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what, known = r.result[key]
	return what, known
}

// completeTx completes the job in a handler's transaction, if the event belongs to
// the job. It ignores a job that River has given to another worker meanwhile: the
// event's claim, not the job, decides who may complete the event.
func (r *run) completeTx(ctx context.Context, tx pgx.Tx, c *webhook.Claim) error {
	if c.Key != r.key {
		return nil
	}
	if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, r.job); err != nil && !errors.Is(err, rivertype.ErrNotFound) {
		return err
	}
	return nil
}

type worker struct {
	river.WorkerDefaults[jobArgs]

	tenants map[string]tenant // by the account in the jobs
}

// tenant handles the events of one account.
type tenant struct {
	in *Inbox
	rx *webhook.Receiver
}

// add adds a receiver, and returns the queue of its account.
func (w *worker) add(in *Inbox, rx *webhook.Receiver) (queue string, err error) {
	name := rx.Account().Name
	if _, taken := w.tenants[name]; taken {
		return "", fmt.Errorf("inbox: two receivers have the account %s", name)
	}
	w.tenants[name] = tenant{in: in.of(rx.Account()), rx: rx}
	return queueOf(name), nil
}

// Timeout implements river.Worker. The receiver limits its handlers itself.
func (w *worker) Timeout(*river.Job[jobArgs]) time.Duration { return -1 }

// NextRetry implements river.Worker.
func (w *worker) NextRetry(job *river.Job[jobArgs]) time.Time { return job.Args.retryAt }

const (
	busyPause    = 200 * time.Millisecond // while another event of the resource is handled
	asidePause   = 5 * time.Second        // until a process with a handler may have started
	longestPause = 5 * time.Minute
	unknownPause = 5 * time.Second // after a store failed, or while a handler hangs

	// maxTurns is how many events one job may handle in a row.
	maxTurns = 100
)

// Work implements river.Worker: it handles the job's event, after the earlier ones
// of its resource. Then it handles the later ones: their jobs may have run while
// this event blocked them.
func (w *worker) Work(ctx context.Context, job *river.Job[jobArgs]) error {
	return storable(w.work(ctx, job))
}

func (w *worker) work(ctx context.Context, job *river.Job[jobArgs]) error {
	t, found := w.tenants[job.Args.Account]
	if !found { // its queue is configured, but no receiver
		return river.JobSnooze(pause(job, asidePause, longestPause))
	}
	key := job.Args.Key
	r := &run{job: job, key: key, result: make(map[string]webhook.Disposition)}
	ctx = context.WithValue(ctx, runKey{}, r)
	for range maxTurns {
		claim, entry, err := t.rx.Work(ctx, key)
		if err != nil {
			return unworked(job, err)
		}
		if claim == nil {
			again, err := t.unclaimed(ctx, r, entry)
			if !again {
				return err
			}
			continue
		}
		what, known := r.settled(claim.Key)
		switch {
		case !known:
			return river.JobSnooze(unknownPause)
		case what.Released, claim.Key == key && what.State != webhook.StateDone:
			return conclude(job, what)
		}
	}
	return river.JobSnooze(0)
}

// unstorable is an error whose text PostgreSQL can't store.
type unstorable struct{ err error }

func (u *unstorable) Error() string { return storableText(u.err.Error()) }
func (u *unstorable) Unwrap() error { return u.err }

// storable returns an error with the chain of err and a text that River can
// store. River stores the errors of all finished jobs of a client in one
// statement, so a single one that jsonb rejects keeps all of them running.
func storable(err error) error {
	if err == nil || storableText(err.Error()) == err.Error() {
		return err
	}
	return &unstorable{err}
}

func storableText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// unworked ends the run of a job whose event could not be claimed.
func unworked(job *river.Job[jobArgs], err error) error {
	switch {
	case errors.Is(err, webhook.ErrShutdown):
		return river.JobSnooze(0)
	case errors.Is(err, sql.ErrNoRows):
		return river.JobCancel(errors.New("inbox: the event was purged"))
	}
	job.Args.retryAt = time.Now().Add(unknownPause)
	return err
}

// unclaimed ends the run of a job whose event is finished or not due. A dead
// letter is requeued if a person retried its job.
func (t tenant) unclaimed(ctx context.Context, r *run, entry webhook.Entry) (again bool, err error) {
	switch job := r.job; entry.State {
	case webhook.StateDone:
		return false, nil
	case webhook.StateDead:
		if n := len(job.Errors); n > 0 && strings.HasPrefix(job.Errors[n-1].Error, deadLetter) {
			_, err := t.in.Store.Requeue(ctx, r.key)
			return err == nil, err
		}
		return false, conclude(job, webhook.Disposition{State: webhook.StateDead, Reason: "see Receiver.DeadLetters"})
	default:
		return false, river.JobSnooze(max(entry.Wait, pause(job, busyPause, asidePause)))
	}
}

// deadLetter is the prefix of a job's last error if its event is a dead letter.
const deadLetter = "dead letter: "

// conclude turns the outcome of an event into the result of its job.
func conclude(job *river.Job[jobArgs], what webhook.Disposition) error {
	switch {
	case what.State == webhook.StateDone:
		return nil
	case what.State == webhook.StateDead:
		job.MaxAttempts = job.Attempt // River discards the job
		return errors.New(deadLetter + what.Reason)
	case what.State == webhook.StateUnhandled:
		return river.JobSnooze(pause(job, asidePause, longestPause))
	case what.Released:
		return river.JobSnooze(time.Second)
	default:
		job.Args.retryAt = time.Now().Add(what.Delay)
		return errors.New(what.Reason)
	}
}

// pause grows with the number of snoozes.
func pause(job *river.Job[jobArgs], shortest, longest time.Duration) time.Duration {
	var metadata struct {
		Snoozes int `json:"snoozes"` // set by River
	}
	_ = json.Unmarshal(job.Metadata, &metadata) // unreadable metadata counts as no snoozes
	return min(shortest<<min(metadata.Snoozes, 12), longest)
}

// sweepArgs is the job that looks for jobs whose process died, those of all
// accounts.
type sweepArgs struct{}

// sweepQueue is a queue of its own, so that pausing an account's queue stops no
// sweep.
const sweepQueue = "gateway_webhook_sweep"

// Kind implements river.JobArgs.
func (sweepArgs) Kind() string { return "gateway_webhook_sweep" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (sweepArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: sweepQueue, Priority: 1, MaxAttempts: 1}
}

func (in *Inbox) sweep() *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(in.config.SweepInterval),
		func() (river.JobArgs, *river.InsertOpts) { return sweepArgs{}, nil },
		&river.PeriodicJobOpts{RunOnStart: true})
}

type sweeper struct {
	river.WorkerDefaults[sweepArgs]

	in *Inbox
}

// Work implements river.Worker. River rescues a job an hour after its process died;
// an event can't wait that long. A job whose event is claimed by a live process is
// left alone. Any other may run a second time; the event's claim prevents a second
// effect.
func (s *sweeper) Work(ctx context.Context, _ *river.Job[sweepArgs]) error {
	return storable(s.sweep(ctx))
}

func (s *sweeper) sweep(ctx context.Context) error {
	rescue, err := s.in.rescue(ctx)
	if err != nil {
		return err
	}
	for {
		var rescued pgconn.CommandTag
		err := retry(ctx, func() (err error) {
			rescued, err = s.in.config.Pool.Exec(ctx, rescue, jobArgs{}.Kind(), s.in.config.StuckAfter.Seconds(), rescueBatch)
			return err
		})
		if err != nil || rescued.RowsAffected() < rescueBatch {
			return err
		}
	}
}

const rescueBatch = 1000

// rescue returns the sweep's statement.
func (in *Inbox) rescue(ctx context.Context) (string, error) {
	events, err := in.Table(ctx)
	jobs := "river_job"
	if in.config.Schema != "" {
		jobs = in.config.Schema + "." + jobs
	}
	return fmt.Sprintf(rescueJobs, jobs, events), err
}

// rescueJobs makes the jobs of dead processes available. Concurrent sweeps skip
// each other's jobs. Few jobs are running, so the index on the state is the one
// to use, not the one on the kind.
const rescueJobs = `UPDATE %[1]s SET state = 'available', scheduled_at = now() WHERE id IN (
	SELECT j.id FROM %[1]s AS j
	WHERE j.state = 'running' AND j.kind || '' = $1 AND j.attempted_at < now() - make_interval(secs => $2)
		AND NOT EXISTS (SELECT FROM %[2]s AS e
			WHERE e.key = j.args->>'key' AND e.account = j.args->>'account' AND e.state + 0 = 2 AND e.lease > EXTRACT(EPOCH FROM now()) * 1000)
	ORDER BY j.id LIMIT $3 FOR UPDATE SKIP LOCKED)`
