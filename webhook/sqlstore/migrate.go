package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway/internal/dbms"
)

// schemaVersion is the version of the table.
const schemaVersion = 1

// Schema returns the statements that create the table and its indexes, for
// projects that manage their own migrations. The statements are idempotent.
func (s *Store) Schema() []string {
	statements := []string{
		s.types().Replace(`CREATE TABLE IF NOT EXISTS ` + s.table + ` (
	seq       {seq},
	key       TEXT NOT NULL,
	account   TEXT NOT NULL,
	event_id  TEXT NOT NULL,
	kind      TEXT NOT NULL,
	resource  TEXT NOT NULL,
	fact      TEXT NOT NULL,
	signed    {int} NOT NULL,
	source    TEXT NOT NULL,
	late      {int} NOT NULL,
	position  {int} NOT NULL,
	digest    TEXT NOT NULL,
	key_id    TEXT NOT NULL,
	trace     TEXT NOT NULL,
	body      {bytes},
	confirmed {bytes},
	state     {int} NOT NULL,
	aside     TEXT NOT NULL DEFAULT '',
	attempts  {int} NOT NULL,
	expired   {int} NOT NULL DEFAULT 0,
	token     TEXT NOT NULL,
	due       {int} NOT NULL,
	lease     {int} NOT NULL,
	since     {int} NOT NULL,
	arrived   {int} NOT NULL,
	stands_in {int},
	matched   TEXT NOT NULL,
	reason    TEXT NOT NULL,
	UNIQUE (key, account)
)`),
	}
	if s.dialect == Postgres {
		// These indexes serve the frontier. Their conditions keep the planner
		// from using them for other statements, or other indexes for the
		// frontier's.
		statements = append(statements,
			s.index("", "first", "account, resource, (due + 0), seq", "state + 0 = 1 AND resource <> ''"),
			s.index("", "lease", "lease", "state = 2 AND lease > 0"))
	}
	// The unique index ensures that only one event of a resource is claimed at
	// a time. The indexes latest, fact and event need no account: few rows have
	// the same resource, fact or id.
	return append(statements,
		s.index("UNIQUE ", "busy", "account, resource", "state = 2"),
		s.index("", "due", "account, due, seq", "state = 1"),
		s.index("", "latest", "resource, position", "state = 3"),
		s.index("", "done", "account, since", "state = 3"),
		s.index("", "dead", "account, since", "state = 4"),
		s.index("", "fact", "fact", "fact <> ''"),
		s.index("", "event", "event_id", "fact <> ''"),
		s.index("", "aside", "account, aside, due, seq", "state = 5"),
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

func (s *Store) index(unique, name, on, where string) string {
	index, table := bare(s.table)+"_"+name, s.table
	if s.dialect == SQLite { // SQLite qualifies the index name with the schema, not the table name
		index, table = s.table+"_"+name, bare(s.table)
	}
	return "CREATE " + unique + "INDEX IF NOT EXISTS " + index + " ON " + table + " (" + on + ") WHERE " + where
}

// Migrate creates the table and its indexes. Several processes may call it
// concurrently. If the table is there it only reads, so the role needs no CREATE
// privilege.
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
	if s.Ready(ctx) == nil {
		return nil
	} // a missing table is an error here; the migration will return any other error again
	return s.try(ctx, func() error {
		tx, err := s.db.BeginTx(ctx, s.readCommitted())
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // no-op after a commit
		if err := s.migrate(ctx, tx); err != nil {
			return fmt.Errorf("sqlstore: the table %s could not be created%s: %w", s.table, adviceOn(err), err)
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
	for _, statement := range s.Schema() {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
