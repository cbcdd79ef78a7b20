package sqlstore

import (
	"context"
	"database/sql"

	"github.com/gateway-go/gateway/internal/dbms"
)

// try runs work, and retries it while it conflicts with other sessions.
func (s *Store) try(ctx context.Context, work func() error) error {
	s.keepConnections(ctx)
	return pooled(dbms.Repeat(ctx, work))
}

// begin starts a handler's transaction and runs its first statement, which
// takes the locks. The isolation is the session's default: the handler's own
// statements may depend on it, and completing an event is correct at every
// level.
func (s *Store) begin(ctx context.Context, first func(*sql.Tx) error) (tx *sql.Tx, err error) {
	err = s.try(ctx, func() error {
		if tx, err = s.db.BeginTx(ctx, nil); err != nil {
			return err
		}
		if err = first(tx); err != nil {
			_ = tx.Rollback() // err is more useful
		}
		return err
	})
	return tx, err
}

// readCommitted are the options of the store's own transactions. They rely on
// statements that see what other transactions committed after this one
// began, and the default of the session may be a stricter level. SQLite has
// only one.
func (s *Store) readCommitted() *sql.TxOptions {
	if s.dialect != Postgres {
		return nil
	}
	return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
}

// row reads the row that a query returns. If the session's default isolation
// is serializable, even a single SELECT may conflict with other sessions.
func (s *Store) row(ctx context.Context, query string, args []any, columns ...any) error {
	return s.try(ctx, func() error { return s.db.QueryRowContext(ctx, query, args...).Scan(columns...) })
}

// readAll is collect in a transaction of its own.
func readAll[T any](ctx context.Context, s *Store, scan func(*sql.Rows) (T, error), query string, args ...any) (found []T, err error) {
	err = s.try(ctx, func() error {
		found, err = collect(ctx, s.db, scan, query, args...)
		return err
	})
	return found, err
}

// session is what [sql.DB] and [sql.Tx] have in common.
type session interface {
	Tx
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// collect runs a query and reads each of its rows with scan.
func collect[T any](ctx context.Context, db session, scan func(*sql.Rows) (T, error), query string, args ...any) (list []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the errors that matter
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, rows.Err()
}

// interpreted runs a statement of the queue without PostgreSQL's JIT compiler.
// The planner counts the empty pages of an index that vacuum has just cleaned,
// so it takes an index lookup in a queue for a long scan, and with the default
// settings it compiles the statement: that takes a hundred times as long as
// running it, each time. It also does without bitmap scans: on a table that has
// filled up since its last ANALYZE the planner would use one, and read and sort the
// whole queue for each claim.
func (s *Store) interpreted(ctx context.Context, run func(session) error) error {
	if s.dialect != Postgres {
		return run(s.db)
	}
	tx, err := s.db.BeginTx(ctx, s.readCommitted())
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no-op after a commit
	if _, err := tx.ExecContext(ctx, "SELECT set_config('jit', 'off', TRUE), set_config('enable_bitmapscan', 'off', TRUE), "+raiseCommit); err != nil {
		return err
	}
	if err := run(tx); err != nil {
		return err
	}
	return tx.Commit()
}
