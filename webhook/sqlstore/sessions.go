package sqlstore

import (
	"context"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// conn returns a session for the statements of queries.
func (s *shared) conn() sqldb.Session { return s.db.Conn().Finished() }

// in is conn in a transaction.
func (s *shared) in(tx sqldb.Tx) sqldb.Session { return s.db.In(tx).Finished() }

func (s *shared) sqlite() bool { return s.db.Dialect() == database.DialectSQLite }

// table returns the quoted name of the table.
func (s *shared) table() string { return s.db.Qualified(tableName) }

// interpreted runs a statement of the queue without PostgreSQL's JIT compiler.
// The planner counts the empty pages of an index that vacuum has just cleaned,
// so it takes an index lookup in a queue for a long scan, and with the default
// settings it compiles the statement: that takes a hundred times as long as
// running it, each time. It also does without bitmap scans: on a table that has
// filled up since its last ANALYZE the planner would use one, and read and sort the
// whole queue for each claim.
func (s *shared) interpreted(ctx context.Context, run func(sqldb.Session) error) error {
	if s.sqlite() {
		return run(s.conn())
	}
	return s.db.Transaction(ctx, func(tx sqldb.Tx) error {
		if _, err := s.in(tx).Exec(ctx, interpret); err != nil {
			return err
		}
		return run(s.in(tx))
	})
}

const interpret = "SELECT set_config('jit', 'off', TRUE), set_config('enable_bitmapscan', 'off', TRUE), " + sqldb.RaiseCommit
