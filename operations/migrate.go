package operations

import (
	"context"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway/internal/dbms"
)

// Migrate creates the outbox's tables if they are missing, or upgrades those of an
// earlier release, and registers the account of Config.Client. Call it for each
// account; if the tables are there, it needs no right to create any.
//
// Stop all processes of an earlier release before: those that still run fail and send
// nothing, or leave the params of the operations that they end. A table from before
// accounts has operations without one: they belong to the account whose outbox is the
// first to call Migrate.
//
// Migrate erases the account's operations that an earlier release ended, which did
// not erase them; see docs/operations.md.
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
	err := s.durable(ctx, func(tx TX) error {
		adopted, err := s.create(ctx, s.driver.In(tx))
		if err != nil {
			return err
		}
		if err := o.engine.Migrate(ctx, tx, adopted); err != nil {
			return err
		}
		digestKey, err = s.register(ctx, s.driver.In(tx))
		return err
	})
	if err != nil {
		return fmt.Errorf("operations: migrate: %w", err)
	}
	s.digestKey.Store(&digestKey)
	if err := s.eraseEnded(ctx); err != nil {
		return fmt.Errorf("operations: migrate: %w", err)
	}
	return nil
}

// create creates or upgrades the tables. adopted reports that the operations of a
// release without accounts belong to this account now.
func (s *store[TX]) create(ctx context.Context, c Conn) (adopted bool, err error) {
	if s.driver.Dialect() == DialectSQLite {
		return false, s.createSQLite(ctx, c)
	}
	// Two processes that run this at once would disturb each other.
	if _, err := s.exec(ctx, c, `SELECT CAST(pg_advisory_xact_lock(hashtextextended('migrate gateway_operations in ' ||
		COALESCE(NULLIF(CAST(? AS text), ''), current_schema()), 0)) AS text)`, s.schema); err != nil {
		return false, err
	}
	var exists, known, named, dated, digested, keyed bool
	const column = `EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass(CAST(? AS text)) AND NOT attisdropped AND `
	if _, err := s.first(ctx, c, `SELECT to_regclass(CAST(? AS text)) IS NOT NULL, to_regclass(CAST(? AS text)) IS NOT NULL,
		`+column+`attname = 'account'), `+column+`attname = 'due_at' AND atttypid = CAST('timestamptz' AS regtype)),
		`+column+`attname = 'digest'), `+column+`attname = 'digest_key')`,
		[]any{s.table, s.accounts, s.table, s.table, s.table, s.accounts}, into(&exists, &known, &named, &dated, &digested, &keyed)); err != nil {
		return false, err
	}
	var statements string
	switch {
	case !known:
		statements += accountsSchema
	case dated:
		statements += fmt.Sprintf("ALTER TABLE {accounts} ALTER COLUMN created_at DROP DEFAULT, %s;", inMilliseconds("created_at"))
	}
	if known && !keyed {
		statements += digestKeyColumn
	}
	if exists && !digested {
		statements += digestColumn
	}
	switch {
	case !exists:
		statements += tableSchema + indexSchema
	case dated:
		statements += s.upgrade(named)
	case !digested:
		statements += unerasedIndex
	}
	return exists && !named, s.execAll(ctx, c, statements)
}

// createSQLite creates the tables, or adds the columns that an earlier release did not
// have.
func (s *store[TX]) createSQLite(ctx context.Context, c Conn) error {
	missing := strings.NewReplacer("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", "INDEX", "INDEX IF NOT EXISTS")
	if err := s.execAll(ctx, c, missing.Replace(accountsSchema+tableSchema)); err != nil {
		return err
	}
	var digested, keyed bool
	if _, err := s.first(ctx, c, `SELECT EXISTS (SELECT 1 FROM pragma_table_info('gateway_operations') WHERE name = 'digest'),
		EXISTS (SELECT 1 FROM pragma_table_info('gateway_operations_accounts') WHERE name = 'digest_key')`, nil, into(&digested, &keyed)); err != nil {
		return err
	}
	statements := missing.Replace(indexSchema)
	if !digested {
		statements = digestColumn + statements
	}
	if !keyed {
		statements = digestKeyColumn + statements
	}
	return s.execAll(ctx, c, statements)
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

// digest_key is the key of the digests in the table of operations. It is NULL until an
// outbox of the account calls Migrate.
const accountsSchema = `
CREATE TABLE {accounts} (
	name        text PRIMARY KEY,
	fingerprint text NOT NULL,
	created_at  {bigint} NOT NULL,
	digest_key  text
);`

// The columns that a table of the last release does not have.
const (
	digestKeyColumn = `ALTER TABLE {accounts} ADD COLUMN digest_key text;`
	digestColumn    = `ALTER TABLE {t} ADD COLUMN digest text;`
)

// scope is part of the derived idempotency key; it is empty for operations that
// were stored before the key included the account. progress is json, not jsonb: it
// holds the gateway's responses, which may contain U+0000, and jsonb rejects that
// character. Once an operation is done or canceled, digest stands for params, which
// are null; see erase. Times are Unix milliseconds.
const tableSchema = `
CREATE TABLE {t} (
	id          {id},
	account     text NOT NULL,
	kind        text NOT NULL,
	key         text NOT NULL,
	scope       text NOT NULL,
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
);`

// The unique index in_flight ensures that operations on a resource are sent one at
// a time, also across crashes.
const indexSchema = `
CREATE UNIQUE INDEX gateway_operations_key ON {t} (account, kind, key);
CREATE UNIQUE INDEX gateway_operations_in_flight ON {t} (account, resource) WHERE state IN ('working', 'sent', 'ambiguous');
CREATE INDEX gateway_operations_resource ON {t} (account, resource, id) WHERE resource IS NOT NULL;
CREATE INDEX gateway_operations_due ON {t} (account, due_at) WHERE {open};
CREATE INDEX gateway_operations_unfinished ON {t} (account, state, id) WHERE state <> 'done';
` + unerasedIndex

// The index unerased is empty, except after a migration.
const unerasedIndex = `
CREATE INDEX gateway_operations_unerased ON {t} (account, id) WHERE digest IS NULL AND {ended};
`

// upgrade returns the statements for the table of an earlier release, whose times
// were of the type timestamptz. Its processes can't use the new table.
//
// Workers of a release without accounts (named is false) would send every account's
// operations with their own credential: without the column fence they can't claim
// any. The operations belong to this account.
func (s *store[TX]) upgrade(named bool) string {
	var b strings.Builder
	if !named {
		// The name contains no quote: see gateway.WithAccount.
		_, _ = fmt.Fprintf(&b, `
ALTER TABLE {t} RENAME COLUMN fence TO claims;
ALTER TABLE {t} ADD COLUMN account text NOT NULL DEFAULT '%s', ADD COLUMN scope text NOT NULL DEFAULT '',
	DROP CONSTRAINT gateway_operations_kind_key_key;
ALTER TABLE {t} ALTER COLUMN account DROP DEFAULT, ALTER COLUMN scope DROP DEFAULT;`, s.account.Name)
	}
	for _, index := range []string{"key", "in_flight", "resource", "open", "unfinished"} {
		b.WriteString("\nDROP INDEX IF EXISTS " + s.qualified("gateway_operations_"+index) + ";")
	}
	b.WriteString("\nALTER TABLE {t}")
	for _, column := range []string{"state", "progress", "claims", "due_at", "created_at", "updated_at"} {
		b.WriteString(" ALTER COLUMN " + column + " DROP DEFAULT,")
	}
	b.WriteString(strings.Join([]string{
		inMilliseconds("lease_until"), inMilliseconds("due_at"), inMilliseconds("created_at"), inMilliseconds("updated_at"),
	}, ",") + ";" + indexSchema)
	return b.String()
}

// inMilliseconds changes the type of a column from timestamptz.
func inMilliseconds(column string) string {
	return fmt.Sprintf(" ALTER COLUMN %[1]s TYPE bigint USING CAST(EXTRACT(EPOCH FROM %[1]s) * 1000 AS bigint)", column)
}
