package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// store is an account's part of the table of operations. All times come from the
// database's clock, so the processes' clocks need not agree.
type store struct {
	pool     *pgxpool.Pool
	schema   string
	table    string
	accounts string // the table of accounts
	jobs     string // River's table of jobs
	queues   string // River's table of queues

	account gateway.Account
	opened  atomic.Bool // the account is in the table of accounts
}

func newStore(pool *pgxpool.Pool, schema string, account gateway.Account) *store {
	s := &store{pool: pool, schema: schema, account: account}
	s.table, s.accounts = s.qualified("gateway_operations"), s.qualified("gateway_operations_accounts")
	s.jobs, s.queues = s.qualified("river_job"), s.qualified("river_queue")
	return s
}

func (s *store) qualified(name string) string {
	if s.schema == "" {
		return pgx.Identifier{name}.Sanitize()
	}
	return pgx.Identifier{s.schema, name}.Sanitize()
}

// durable runs a transaction whose commit survives a crash of the database, even
// if synchronous_commit is off for the database or the role: a request must not
// be sent before it is certain to be stored. A stronger setting stays. The
// statements expect read committed: each sees what was committed before it.
func (s *store) durable(ctx context.Context, run func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if err := raise(ctx, tx); err != nil {
			return err
		}
		return run(tx)
	})
}

func raise(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT set_config('synchronous_commit', 'on', true)
		WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')`)
	return err
}

const columns = `o.id, o.account, o.kind, o.key, o.scope, COALESCE(o.resource, ''), o.state, o.params, o.progress, o.claims, o.created_at, o.updated_at, o.due_at, clock_timestamp()`

// record is an operation as it is stored.
type record struct {
	Entry

	params []byte
	p      progress
	scope  string    // part of the derived idempotency key
	claims int64     // how often it was claimed: a worker that has lost it can't write
	now    time.Time // the database's clock when the record was read
	read   time.Time // this process's clock at the same time
}

// clock returns the database's time.
func (r *record) clock() time.Time { return r.now.Add(time.Since(r.read)) }

func scan(row pgx.Row, more ...any) (*record, error) {
	r := &record{read: time.Now()}
	var stored []byte
	err := row.Scan(append([]any{
		&r.ID, &r.Account, &r.Kind, &r.Key, &r.scope, &r.Resource, &r.State, &r.params, &stored, &r.claims, &r.CreatedAt, &r.UpdatedAt, &r.DueAt, &r.now,
	}, more...)...)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(stored, &r.p, lenient()); err != nil {
		return nil, fmt.Errorf("operations: the stored progress can't be decoded: %w", err)
	}
	r.Sends, r.LastError, r.Ambiguity, r.History = r.p.Sends, r.p.LastError, r.p.Ambiguity, r.p.History
	return r, nil
}

func (s *store) insert(ctx context.Context, tx pgx.Tx, i identity, params []byte) (*Entry, error) {
	r, err := scan(tx.QueryRow(ctx, `INSERT INTO `+s.table+` AS o (account, scope, kind, key, resource, params)
		VALUES ($1, $1, $2, $3, NULLIF($4, ''), $5::jsonb) ON CONFLICT (account, kind, key) DO NOTHING RETURNING `+columns,
		s.account.Name, i.kind, i.key, i.resource, string(params)))
	if err == nil {
		return &r.Entry, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("operations: %w", err)
	}
	var same bool
	r, err = scan(tx.QueryRow(ctx, `SELECT `+columns+`, o.params = $4::jsonb FROM `+s.table+` o WHERE account = $1 AND kind = $2 AND key = $3`,
		s.account.Name, i.kind, i.key, string(params)), &same)
	switch {
	case err != nil:
		return nil, fmt.Errorf("operations: %w", err)
	case !same:
		return nil, fmt.Errorf("%w: %s %s", ErrKeyReused, i.kind, i.key)
	}
	r.Existing = true
	return &r.Entry, nil
}

func (s *store) setJob(ctx context.Context, tx pgx.Tx, id, job int64) error {
	_, err := tx.Exec(ctx, `UPDATE `+s.table+` SET job_id = $2 WHERE id = $1`, id, job)
	return wrap(err)
}

// wrap names the package, once.
func wrap(err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "operations: ") {
		return err
	}
	return fmt.Errorf("operations: %w", err)
}

// rivals selects the operations on the same resource that must be decided before
// a waiting one is sent: the one in flight, and those inserted earlier. An
// operation in flight has no rivals; otherwise two operations would wait for
// each other if the later one was committed and sent first.
func (s *store) rivals() string {
	return `FROM ` + s.table + ` e WHERE o.state = 'waiting' AND e.account = o.account AND e.resource = o.resource AND e.id <> o.id
		AND (e.state IN ('working', 'sent', 'ambiguous') OR e.state = 'waiting' AND e.id < o.id)`
}

// claim gives this worker exclusive ownership of an operation for the duration
// of the lease. It returns nil if it is not due, another worker has it, an earlier
// operation on the resource is undecided, or it belongs to another account.
func (s *store) claim(ctx context.Context, id int64, lease time.Duration) (*record, error) {
	var r *record
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		r, err = scan(tx.QueryRow(ctx, `UPDATE `+s.table+` o SET claims = claims + 1, lease_until = now() + $2, updated_at = now(),
			state = CASE state WHEN 'waiting' THEN 'working' ELSE state END
		WHERE id = $1 AND account = $3 AND state IN ('waiting', 'working', 'sent', 'decided') AND due_at <= now()
			AND (lease_until IS NULL OR lease_until < now()) AND NOT EXISTS (SELECT `+s.rivals()+`) RETURNING `+columns, id, lease, s.account.Name))
		return err
	})
	var conflict *pgconn.PgError
	if errors.Is(err, pgx.ErrNoRows) || errors.As(err, &conflict) && conflict.Code == uniqueViolation {
		return nil, nil
	}
	return r, wrap(err)
}

const uniqueViolation = "23505" // two operations on one resource claimed at once

// until returns how long to wait before claiming an operation again, or never
// if there is nothing left to do.
func (s *store) until(ctx context.Context, id int64) (time.Duration, error) {
	var wait time.Duration
	var behind *time.Duration
	err := s.pool.QueryRow(ctx, `SELECT GREATEST(due_at, lease_until) - now(), (SELECT CASE WHEN e.state = 'ambiguous' THEN interval '1 hour'
				WHEN e.lease_until > now() THEN interval '0' ELSE e.due_at - now() END `+s.rivals()+` ORDER BY e.state = 'waiting', e.id LIMIT 1)
		FROM `+s.table+` o WHERE id = $1 AND account = $2 AND state IN ('waiting', 'working', 'sent', 'decided')`, id, s.account.Name).Scan(&wait, &behind)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return never, nil
	case err != nil:
		return 0, wrap(err)
	case behind != nil && wait < *behind:
		wait = min(*behind, longestTurn)
	}
	return max(wait, shortestWait), nil
}

const (
	never        = time.Duration(-1)
	shortestWait = 200 * time.Millisecond
	longestTurn  = 30 * time.Second // until the next check whether the earlier operation is decided
)

// errLost reports that another worker took over the operation after the lease
// expired.
var errLost = errors.New("operations: another worker took over the operation")

// save stores the worker's progress and when the operation is due. A lease of 0
// releases it.
func (s *store) save(ctx context.Context, r *record, state State, due, lease time.Duration) error {
	progress, err := r.encoded()
	if err != nil {
		return err
	}
	var tag pgconn.CommandTag
	err = s.durable(ctx, func(tx pgx.Tx) (err error) {
		tag, err = tx.Exec(ctx, `UPDATE `+s.table+` SET state = $3, progress = $4::json, refunded = $7, updated_at = now(), due_at = now() + $5,
			lease_until = CASE WHEN $6::interval > interval '0' THEN now() + $6 END
		WHERE id = $1 AND claims = $2 AND state <> 'done'`, r.ID, r.claims, string(state), progress, due, lease, r.refunded())
		return err
	})
	if err != nil {
		return wrap(err)
	}
	if tag.RowsAffected() == 0 {
		return errLost
	}
	r.State = state
	return nil
}

func (r *record) encoded() (string, error) {
	b, err := json.Marshal(&r.p, lenient())
	if err != nil {
		return "", fmt.Errorf("operations: the progress can't be encoded: %w", err)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil // PostgreSQL accepts only valid UTF-8
}

func (r *record) refunded() *int64 {
	if r.p.Refunded == 0 {
		return nil
	}
	return &r.p.Refunded
}

// done marks an operation as done in the transaction of its handler.
func (s *store) done(ctx context.Context, r *record, handle func(pgx.Tx) error) error {
	progress, err := r.encoded()
	if err != nil {
		return err
	}
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return wrap(err)
	}
	defer tx.Rollback(ctx) //nolint:errcheck // after a commit it does nothing
	if err := raise(ctx, tx); err != nil {
		return wrap(err)
	}
	tag, err := tx.Exec(ctx, `UPDATE `+s.table+` SET state = 'done', progress = $3::json, refunded = $4, updated_at = now(), lease_until = NULL
		WHERE id = $1 AND claims = $2 AND state IN ('working', 'sent', 'decided')`, r.ID, r.claims, progress, r.refunded())
	switch {
	case err != nil:
		return wrap(err)
	case tag.RowsAffected() == 0:
		return errLost
	}
	if err := handle(tx); err != nil {
		return err
	}
	return wrap(tx.Commit(ctx))
}

// leastRefunded returns the highest refunded_amount of a resource after
// operations of this outbox.
func (s *store) leastRefunded(ctx context.Context, resource string) (int64, error) {
	var amount int64
	err := s.pool.QueryRow(ctx, `SELECT COALESCE(max(refunded), 0) FROM `+s.table+` WHERE account = $1 AND resource = $2`, s.account.Name, resource).Scan(&amount)
	return amount, wrap(err)
}

// orphans returns the due operations, of every account, that no River job will
// wake, because their worker died or the job was deleted. They are locked until tx
// ends.
func (s *store) orphans(ctx context.Context, tx pgx.Tx, limit int) ([]jobArgs, error) {
	rows, err := tx.Query(ctx, `SELECT o.id, o.kind, o.account FROM `+s.table+` o LEFT JOIN `+s.jobs+` j ON j.id = o.job_id
		WHERE o.state IN ('waiting', 'working', 'sent', 'decided') AND o.due_at < now() AND (o.lease_until IS NULL OR o.lease_until < now())
			AND (j.id IS NULL OR j.queue = $3 OR j.state NOT IN ('available', 'scheduled', 'retryable', 'pending')
				AND (j.state <> 'running' OR j.attempted_at < now() - $2::interval))
		ORDER BY o.due_at LIMIT $1 FOR UPDATE OF o SKIP LOCKED`, limit, runningJob, baseQueue)
	if err != nil {
		return nil, wrap(err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a jobArgs, err error) {
		return a, row.Scan(&a.ID, &a.Operation, &a.Account)
	})
	return found, wrap(err)
}

// runningJob is how long a job that was just fetched may take to claim its
// operation.
const runningJob = 5 * time.Second
