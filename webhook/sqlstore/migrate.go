package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway/internal/dbms"
)

// schemaVersion is the version of the table. Version 1 had no metadata row,
// version 3 added indexes on PostgreSQL, version 4 added the column trace,
// version 5 replaced an index on PostgreSQL, version 6 added the column account
// and put it first in the indexes of the queues, and version 7 added the column
// expired.
const schemaVersion = 7

// metaKey is the key of the metadata row; see queries.go.
const metaKey = "store"

// addedColumns are the columns that version 1 of the table did not have. Their
// defaults let processes of earlier releases keep writing to the table.
var addedColumns = [...]struct{ name, definition string }{
	{"digest", "TEXT NOT NULL DEFAULT ''"},
	{"arrived", "{int} NOT NULL DEFAULT 0"},
	{"aside", "TEXT NOT NULL DEFAULT ''"},
	{"key_id", "TEXT NOT NULL DEFAULT ''"},
	{"trace", "TEXT NOT NULL DEFAULT ''"},
	{"account", "TEXT NOT NULL DEFAULT ''"},
	{"expired", "{int} NOT NULL DEFAULT 0"},
}

// replacedIndexes are the indexes of earlier versions that have a successor. While
// processes of an earlier release still run, their statements use the successors:
// each has only the rows of one state.
var replacedIndexes = [...]string{"queue", "first", "busy", "due", "done", "dead", "aside"}

// Schema returns the statements that create the table and its indexes, for
// projects that manage their own migrations. The statements are idempotent. On
// PostgreSQL they also upgrade the table of an earlier release; on SQLite only
// [Store.Migrate] does.
func (s *Store) Schema() []string {
	table := s.types().Replace(`CREATE TABLE IF NOT EXISTS ` + s.table + ` (
	seq       {seq},
	key       TEXT NOT NULL UNIQUE,
	event_id  TEXT NOT NULL,
	kind      TEXT NOT NULL,
	resource  TEXT NOT NULL,
	fact      TEXT NOT NULL,
	signed    {int} NOT NULL,
	source    TEXT NOT NULL,
	late      {int} NOT NULL,
	position  {int} NOT NULL,
	body      {bytes},
	confirmed {bytes},
	state     {int} NOT NULL,
	attempts  {int} NOT NULL,
	token     TEXT NOT NULL,
	due       {int} NOT NULL,
	lease     {int} NOT NULL,
	since     {int} NOT NULL,
	stands_in {int},
	matched   TEXT NOT NULL,
	reason    TEXT NOT NULL` + s.columns() + `
)`)
	statements := []string{table}
	if s.dialect == Postgres {
		for _, c := range addedColumns {
			statements = append(statements, s.addColumn("IF NOT EXISTS "+c.name, c.definition))
		}
	}
	for _, name := range replacedIndexes {
		statements = append(statements, "DROP INDEX IF EXISTS "+s.table+"_"+name)
	}
	if s.dialect == Postgres {
		// These indexes serve the frontier. Their conditions keep the planner
		// from using them for other statements, or other indexes for the
		// frontier's.
		statements = append(statements,
			s.index("", "account_first", "account, resource, (due + 0), seq", "state + 0 = 1 AND resource <> ''"),
			s.index("", "lease", "lease", "state = 2 AND lease > 0"))
	}
	// The unique index ensures that only one event of a resource is claimed at
	// a time. The indexes latest, fact and event need no account: few rows have
	// the same resource, fact or id.
	return append(statements,
		s.index("UNIQUE ", "account_busy", "account, resource", "state = 2"),
		s.index("", "account_due", "account, due, seq", "state = 1"),
		s.index("", "latest", "resource, position", "state = 3"),
		s.index("", "account_done", "account, since", "state = 3"),
		s.index("", "account_dead", "account, since", "state = 4"),
		s.index("", "fact", "fact", "fact <> ''"),
		s.index("", "event", "event_id", "fact <> ''"),
		s.index("", "account_aside", "account, aside, due, seq", "state = 5"),
		s.shared.q.meta,
	)
}

// types replaces the placeholders of column types with the dialect's types.
func (s *Store) types() *strings.Replacer {
	if s.dialect == Postgres {
		return strings.NewReplacer("{seq}", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "{bytes}", "BYTEA", "{int}", "BIGINT")
	}
	return strings.NewReplacer("{seq}", "INTEGER PRIMARY KEY AUTOINCREMENT", "{bytes}", "BLOB", "{int}", "INTEGER")
}

func (s *Store) columns() string {
	var b strings.Builder
	for _, c := range addedColumns {
		b.WriteString(",\n\t" + c.name + " " + c.definition)
	}
	return b.String()
}

func (s *Store) addColumn(name, definition string) string {
	return "ALTER TABLE " + s.table + " ADD COLUMN " + name + " " + s.types().Replace(definition)
}

func (s *Store) index(unique, name, on, where string) string {
	index, table := bare(s.table)+"_"+name, s.table
	if s.dialect == SQLite { // SQLite qualifies the index name with the schema, not the table name
		index, table = s.table+"_"+name, bare(s.table)
	}
	return "CREATE " + unique + "INDEX IF NOT EXISTS " + index + " ON " + table + " (" + on + ") WHERE " + where
}

// Migrate creates the table and its indexes, or upgrades those of an earlier
// release, whose processes may keep using them. Several processes may call it
// concurrently. If the table is up to date it only reads, so the role needs no
// CREATE privilege.
//
// It returns an error if a SQLite file is opened without write-ahead logging,
// without a busy timeout or with synchronous off, and if the driver's prepared
// statements don't survive a PostgreSQL connection pooler. A version of
// modernc.org/sqlite before v1.41.0 is logged as a warning.
func (s *Store) Migrate(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	if s.dialect == SQLite {
		build, _ := s.shared.build()
		dbms.WarnOfDriver(ctx, s.logger, build)
	}
	if err := s.checkPragmas(ctx); err != nil {
		return err
	}
	if err := s.checkPooler(ctx); err != nil {
		return err
	}
	var version int64
	if err := s.db.QueryRowContext(ctx, s.shared.q.version).Scan(&version); err == nil && version >= schemaVersion {
		return nil
	} // a missing table is an error here; the migration will return any other error again
	return s.try(ctx, func() error {
		tx, err := s.db.BeginTx(ctx, s.readCommitted())
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // no-op after a commit
		if err := s.migrate(ctx, tx); err != nil {
			return fmt.Errorf("sqlstore: the table %s could not be created or upgraded to version %d%s: %w",
				s.table, schemaVersion, adviceOn(err), err)
		}
		return tx.Commit()
	})
}

// checkPragmas returns an error if a SQLite file is opened with settings that
// lose events or let processes block each other for minutes. An in-memory database has only
// one process.
func (s *Store) checkPragmas(ctx context.Context) error {
	if s.dialect != SQLite {
		return nil
	}
	schema, _, found := strings.Cut(s.table, ".")
	if !found {
		schema = "main"
	}
	p, err := dbms.ReadPragmas(ctx, s.db, schema)
	if err != nil || p.File == "" {
		return err
	}
	if p.Synchronous == 0 {
		return errors.New("sqlstore: SQLite is opened with synchronous OFF, which loses acknowledged events if the machine stops: " +
			`set the pragma synchronous to FULL for every connection: with modernc.org/sqlite, add "&_pragma=synchronous(FULL)" to the DSN`)
	}
	if p.Journal == "wal" && p.BusyTimeout > 0 {
		return nil
	}
	return fmt.Errorf("sqlstore: SQLite is opened with journal_mode %s and busy_timeout %d, which lets processes block each other; "+
		`set both pragmas for every connection: with modernc.org/sqlite, open "file:events.db?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)"`,
		p.Journal, p.BusyTimeout)
}

// adviceOn returns advice for a role that lacks privileges, "" for other
// errors.
func adviceOn(err error) string {
	if dbms.State(err) == "42501" {
		return "; run Migrate once as the owner of its schema"
	}
	return ""
}

func (s *Store) migrate(ctx context.Context, tx *sql.Tx) error {
	if s.shared.q.lock != "" { // IF NOT EXISTS alone does not prevent a race with another session's CREATE
		if _, err := tx.ExecContext(ctx, s.shared.q.lock, "migration"); err != nil {
			return err
		}
	}
	for i, statement := range s.Schema() {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
		if i == 0 && s.dialect == SQLite {
			if err := s.addColumns(ctx, tx); err != nil {
				return err
			}
		}
	}
	return nil
}

// addColumns upgrades a table on SQLite, which lacks ADD COLUMN IF NOT EXISTS.
func (s *Store) addColumns(ctx context.Context, tx *sql.Tx) error {
	for _, c := range addedColumns {
		var found int
		err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM pragma_table_info(?) WHERE name = ?", bare(s.table), c.name).Scan(&found)
		if err != nil || found > 0 {
			if err != nil {
				return err
			}
			continue
		}
		if _, err := tx.ExecContext(ctx, s.addColumn(c.name, c.definition)); err != nil {
			return err
		}
	}
	return nil
}
