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

// byIndex runs a statement of the queue; see [sqldb.DB.ByIndex].
func (s *shared) byIndex(ctx context.Context, run func(sqldb.Session) error) error {
	return s.db.ByIndex(ctx, func(c sqldb.Session) error { return run(c.Finished()) })
}
