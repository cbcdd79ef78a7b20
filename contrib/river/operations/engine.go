package operations

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

// engine is the operations.Engine that wakes workers with River's jobs. The column
// job_id of the table has the job that wakes an operation.
type engine struct {
	pool     *pgxpool.Pool
	river    *river.Client[pgx.Tx] // inserts only
	account  string
	table    func(ctx context.Context) (string, error) // of operations, with its schema
	schema   string                                    // of River's tables; "" means the search path
	jobs     string                                    // River's table of jobs
	workers  int                                       // of the queue
	interval time.Duration                             // of the sweep
	logger   *slog.Logger
}

// Wake implements operations.Engine: it inserts the job that runs an operation. An
// extra job does nothing, and the sweep replaces a lost one.
func (e *engine) Wake(ctx context.Context, tx pgx.Tx, id int64, kind string) error {
	table, err := e.table(ctx)
	if err != nil {
		return err
	}
	job, err := e.river.InsertTx(ctx, tx, jobArgs{ID: id, Operation: kind, Account: e.account}, nil)
	if err == nil {
		_, err = tx.Exec(ctx, `UPDATE `+table+` SET job_id = $2 WHERE id = $1`, id, job.Job.ID)
	}
	return err
}

// runningJob is how long a job that was just fetched may take to claim its
// operation.
const runningJob = 5 * time.Second

// orphans returns the due operations, of every account, that no River job will
// wake, because their worker died or the job was deleted. They are locked until tx
// ends.
func (e *engine) orphans(ctx context.Context, tx pgx.Tx, table string, limit int) ([]jobArgs, error) {
	rows, err := tx.Query(ctx, `SELECT o.id, o.kind, o.account
		FROM (SELECT CAST(EXTRACT(EPOCH FROM now()) * 1000 AS bigint) AS now) AS clock, `+table+` o LEFT JOIN `+e.jobs+` j ON j.id = o.job_id
		WHERE o.state IN ('waiting', 'working', 'sent', 'decided') AND o.due_at < clock.now AND (o.lease_until IS NULL OR o.lease_until < clock.now)
			AND (j.id IS NULL OR j.state NOT IN ('available', 'scheduled', 'retryable', 'pending')
				AND (j.state <> 'running' OR j.attempted_at < now() - $2::interval))
		ORDER BY o.due_at LIMIT $1 FOR UPDATE OF o SKIP LOCKED`, limit, runningJob)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a jobArgs, err error) {
		return a, row.Scan(&a.ID, &a.Operation, &a.Account)
	})
}

// wakeOrphans inserts jobs for orphans, and returns for how many.
func (e *engine) wakeOrphans(ctx context.Context) (n int, err error) {
	table, err := e.table(ctx)
	if err != nil {
		return 0, err
	}
	err = pgx.BeginTxFunc(ctx, e.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		orphans, err := e.orphans(ctx, tx, table, sweepBatch)
		if err != nil || len(orphans) == 0 {
			return err
		}
		n = len(orphans)
		params := make([]river.InsertManyParams, n)
		for i, args := range orphans {
			params[i].Args = args
		}
		jobs, err := e.river.InsertManyTx(ctx, tx, params)
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		for i, job := range jobs {
			batch.Queue(`UPDATE `+table+` SET job_id = $2 WHERE id = $1`, orphans[i].ID, job.Job.ID)
		}
		return tx.SendBatch(ctx, batch).Close()
	})
	return n, err
}
