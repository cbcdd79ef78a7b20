package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Schema returns the statements that make the table and its indexes, for those
// who keep their migrations in one place. Each does nothing where its work is
// done already.
func (s *Store) Schema() []string {
	types := strings.NewReplacer("{seq}", "INTEGER PRIMARY KEY AUTOINCREMENT", "{bytes}", "BLOB", "{int}", "INTEGER")
	if s.dialect == Postgres {
		types = strings.NewReplacer("{seq}", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "{bytes}", "BYTEA", "{int}", "BIGINT")
	}
	table := types.Replace(`CREATE TABLE IF NOT EXISTS ` + s.table + ` (
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
	reason    TEXT NOT NULL
)`)
	// Only one event of a resource is claimed at a time: the index says so.
	return []string{
		table,
		s.index("UNIQUE ", "busy", "resource", "state = 2"),
		s.index("", "due", "due, seq", "state = 1"),
		s.index("", "latest", "resource, position", "state = 3"),
		s.index("", "done", "since", "state = 3"),
		s.index("", "dead", "since", "state = 4"),
		s.index("", "fact", "fact", "fact <> ''"),
		s.index("", "event", "event_id", "fact <> ''"),
	}
}

func (s *Store) index(unique, name, on, where string) string {
	index, table := bare(s.table)+"_"+name, s.table
	if s.dialect == SQLite { // there the index is named with the schema, and the table without
		index, table = s.table+"_"+name, bare(s.table)
	}
	return "CREATE " + unique + "INDEX IF NOT EXISTS " + index + " ON " + table + " (" + on + ") WHERE " + where
}

// Migrate makes the table and its indexes where they are missing. Several
// processes may call it at once.
func (s *Store) Migrate(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	return s.try(ctx, func() error {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after the commit
		if err := s.migrate(ctx, tx); err != nil {
			return fmt.Errorf("sqlstore: the table %s could not be made: %w", s.table, err)
		}
		return tx.Commit()
	})
}

func (s *Store) migrate(ctx context.Context, tx *sql.Tx) error {
	if s.q.lock != "" { // IF NOT EXISTS alone is no protection from another session's CREATE
		if _, err := tx.ExecContext(ctx, s.q.lock, "migration"); err != nil {
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
