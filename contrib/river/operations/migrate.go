package operations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Migrate creates the outbox's tables if they are missing, and registers the
// account of Config.Client. River's migrations create River's own tables. Call it
// for each account; if the tables are there, it needs no right to create any.
//
// A table of an earlier release has operations without an account: they belong to
// the account whose outbox is the first to call Migrate. Stop all processes of the
// earlier release before; those that still run fail, and send nothing.
//
// The error is [ErrAccountConflict] if the account's name is in use for another
// base URL.
func (o *Outbox) Migrate(ctx context.Context) error {
	s := o.store
	err := s.durable(ctx, func(tx pgx.Tx) error {
		// Two processes that run this at once would disturb each other.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('migrate gateway_operations in ' ||
			COALESCE(NULLIF($1, ''), current_schema()), 0))`, o.config.Schema); err != nil {
			return err
		}
		if err := s.create(ctx, tx); err != nil {
			return err
		}
		return s.register(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("operations: migrate: %w", err)
	}
	s.opened.Store(true)
	return nil
}

func (s *store) create(ctx context.Context, tx pgx.Tx) error {
	var exists, current, known bool
	if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL, to_regclass($2) IS NOT NULL,
		EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = 'account' AND NOT attisdropped)`,
		s.table, s.accounts).Scan(&exists, &known, &current); err != nil {
		return err
	}
	if !known {
		if _, err := tx.Exec(ctx, fmt.Sprintf(accountsSchema, s.accounts)); err != nil {
			return err
		}
	}
	switch {
	case !exists:
		_, err := tx.Exec(ctx, fmt.Sprintf(tableSchema+indexSchema, s.table))
		return err
	case !current:
		return s.upgrade(ctx, tx)
	}
	return nil
}

const accountsSchema = `
CREATE TABLE %[1]s (
	name        text PRIMARY KEY,
	fingerprint text NOT NULL,
	created_at  timestamptz NOT NULL DEFAULT now()
)`

// scope is part of the derived idempotency key; it is empty for operations that
// were stored before the key included the account. progress is json, not jsonb: it
// holds the gateway's responses, which may contain U+0000, and jsonb rejects that
// character.
const tableSchema = `
CREATE TABLE %[1]s (
	id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	account     text NOT NULL,
	kind        text NOT NULL,
	key         text NOT NULL,
	scope       text NOT NULL,
	resource    text,
	state       text NOT NULL DEFAULT 'waiting',
	params      jsonb NOT NULL,
	progress    json NOT NULL DEFAULT '{}',
	refunded    bigint,
	claims      bigint NOT NULL DEFAULT 0,
	lease_until timestamptz,
	due_at      timestamptz NOT NULL DEFAULT now(),
	job_id      bigint,
	created_at  timestamptz NOT NULL DEFAULT now(),
	updated_at  timestamptz NOT NULL DEFAULT now()
);`

// The unique index in_flight ensures that operations on a resource are sent one at
// a time, also across crashes.
const indexSchema = `
CREATE UNIQUE INDEX gateway_operations_key ON %[1]s (account, kind, key);
CREATE UNIQUE INDEX gateway_operations_in_flight ON %[1]s (account, resource) WHERE state IN ('working', 'sent', 'ambiguous');
CREATE INDEX gateway_operations_resource ON %[1]s (account, resource, id) WHERE resource IS NOT NULL;
CREATE INDEX gateway_operations_open ON %[1]s (due_at) WHERE state IN ('waiting', 'working', 'sent', 'decided');
CREATE INDEX gateway_operations_unfinished ON %[1]s (account, state, id) WHERE state <> 'done';
`

// upgrade gives the operations of an earlier release to the outbox's account.
// Workers of that release would send every account's operations with their own
// credential: without the column fence they can't claim any.
func (s *store) upgrade(ctx context.Context, tx pgx.Tx) error {
	// The name contains no quote: see gateway.WithAccount.
	if _, err := tx.Exec(ctx, fmt.Sprintf(`
ALTER TABLE %[1]s RENAME COLUMN fence TO claims;
ALTER TABLE %[1]s ADD COLUMN account text NOT NULL DEFAULT '%[2]s', ADD COLUMN scope text NOT NULL DEFAULT '',
	DROP CONSTRAINT gateway_operations_kind_key_key;
ALTER TABLE %[1]s ALTER COLUMN account DROP DEFAULT, ALTER COLUMN scope DROP DEFAULT;
DROP INDEX %[3]s, %[4]s, %[5]s, %[6]s;`, s.table, s.account.Name, s.qualified("gateway_operations_in_flight"),
		s.qualified("gateway_operations_resource"), s.qualified("gateway_operations_open"), s.qualified("gateway_operations_unfinished"))); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf(indexSchema, s.table)); err != nil {
		return err
	}
	return s.moveJobs(ctx, tx)
}

// moveJobs moves the jobs of an earlier release to the account's queue, which is
// paused if the old one was.
func (s *store) moveJobs(ctx context.Context, tx pgx.Tx) error {
	var exist bool
	if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL`, s.jobs, s.queues).Scan(&exist); err != nil || !exist {
		return err
	}
	queue := queueOf(s.account.Name)
	batch := &pgx.Batch{}
	batch.Queue(`UPDATE `+s.jobs+` SET queue = $1, args = args || jsonb_build_object('account', $2::text)
		WHERE kind = $3 AND queue = $4 AND state IN ('available', 'scheduled', 'retryable', 'pending')`,
		queue, s.account.Name, jobArgs{}.Kind(), baseQueue)
	batch.Queue(`DELETE FROM `+s.jobs+` WHERE kind = $1 AND queue = $2 AND state IN ('available', 'scheduled', 'retryable', 'pending')`,
		sweepArgs{}.Kind(), baseQueue)
	batch.Queue(`INSERT INTO `+s.queues+` (name, created_at, metadata, paused_at, updated_at)
		SELECT $1, now(), '{}', paused_at, now() FROM `+s.queues+` WHERE name = $2 AND paused_at IS NOT NULL
		ON CONFLICT (name) DO UPDATE SET paused_at = EXCLUDED.paused_at, updated_at = now()`, queue, baseQueue)
	return tx.SendBatch(ctx, batch).Close()
}
