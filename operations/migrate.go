package operations

import (
	"context"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway/internal/dbms"
)

// Migrate creates the outbox's tables if they are missing, and registers the account of
// Config.Client. Call it for each account; if the tables are there, it needs no right to
// create any.
//
// The error is [ErrAccountConflict] if the account's name is in use for another
// base URL. Any other names what is wrong with the database, such as a setting of
// SQLite that could lose a commit; see [SQLite]. A version of modernc.org/sqlite before
// v1.41.0 is logged as a warning.
func (o *Outbox[TX]) Migrate(ctx context.Context) error {
	s := o.store
	if s.driver.Dialect() == DialectSQLite {
		build, _ := s.build()
		dbms.WarnOfDriver(ctx, s.logger, build)
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	var digestKey string
	err := s.durable(ctx, func(tx TX) (err error) {
		if err := s.create(ctx, s.driver.In(tx)); err != nil {
			return err
		}
		if err := o.engine.Migrate(ctx, tx); err != nil {
			return err
		}
		digestKey, err = s.register(ctx, s.driver.In(tx))
		return err
	})
	if err != nil {
		return fmt.Errorf("operations: migrate: %w", err)
	}
	s.digestKey.Store(&digestKey)
	return nil
}

// create creates the tables that are missing.
func (s *store[TX]) create(ctx context.Context, c Conn) error {
	if s.driver.Dialect() == DialectPostgres {
		// Two processes that run this at once would disturb each other.
		if _, err := s.exec(ctx, c, `SELECT CAST(pg_advisory_xact_lock(hashtextextended('migrate gateway_operations in ' ||
			COALESCE(NULLIF(CAST(? AS text), ''), current_schema()), 0)) AS text)`, s.schema); err != nil {
			return err
		}
		var exists bool // a role without the right to create tables may migrate
		if _, err := s.first(ctx, c, `SELECT to_regclass(CAST(? AS text)) IS NOT NULL`, []any{s.table}, into(&exists)); err != nil || exists {
			return err
		}
	}
	return s.execAll(ctx, c, tablesSchema)
}

// execAll runs statements that end with a semicolon, one at a time.
func (s *store[TX]) execAll(ctx context.Context, c Conn, statements string) error {
	for statement := range strings.SplitSeq(statements, ";") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := s.exec(ctx, c, statement); err != nil {
			return err
		}
	}
	return nil
}

// tablesSchema creates the tables. The digest_key of an account is the key of the digests in
// the table of operations. progress is json, not jsonb: it holds the gateway's responses,
// which may contain U+0000, and jsonb rejects that character. Once an operation is done or
// canceled, digest stands for params, which are null; see erase. Times are Unix
// milliseconds. The unique index in_flight ensures that operations on a resource are sent
// one at a time, also across crashes.
const tablesSchema = `
CREATE TABLE IF NOT EXISTS {accounts} (
	name        text PRIMARY KEY,
	fingerprint text NOT NULL,
	digest_key  text NOT NULL,
	created_at  {bigint} NOT NULL
);
CREATE TABLE IF NOT EXISTS {t} (
	id          {id},
	account     text NOT NULL,
	kind        text NOT NULL,
	key         text NOT NULL,
	resource    text,
	state       text NOT NULL,
	params      {params} NOT NULL,
	progress    {progress} NOT NULL,
	refunded    {bigint},
	claims      {bigint} NOT NULL,
	lease_until {bigint},
	due_at      {bigint} NOT NULL,
	created_at  {bigint} NOT NULL,
	updated_at  {bigint} NOT NULL,
	digest      text
);
CREATE UNIQUE INDEX IF NOT EXISTS gateway_operations_key ON {t} (account, kind, key);
CREATE UNIQUE INDEX IF NOT EXISTS gateway_operations_in_flight ON {t} (account, resource) WHERE state IN ('working', 'sent', 'ambiguous');
CREATE INDEX IF NOT EXISTS gateway_operations_resource ON {t} (account, resource, id) WHERE resource IS NOT NULL;
CREATE INDEX IF NOT EXISTS gateway_operations_due ON {t} (account, due_at) WHERE {open};
CREATE INDEX IF NOT EXISTS gateway_operations_unfinished ON {t} (account, state, id) WHERE state <> 'done';
`
