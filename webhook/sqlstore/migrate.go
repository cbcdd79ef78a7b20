package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// parts are those of the schema that the store uses.
var parts = []string{database.PartAccounts, database.PartEvents}

// Migrate creates the tables that are missing, or returns a [database.ErrSchema] if
// [database.Location] says that your own migrations create them. Several processes may
// call it concurrently. If nothing is missing it only reads, so the role needs no CREATE
// privilege.
//
// It returns an error if a SQLite file is opened without write-ahead logging,
// without a busy timeout or with synchronous off, and if the driver's prepared
// statements don't survive a PostgreSQL connection pooler. A version of
// modernc.org/sqlite before v1.41.0 is logged as a warning.
func (s *core) Migrate(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	err := s.db.CheckBy(ctx, s.checkSettings)
	if err == nil {
		err = s.db.MigrateUnchecked(ctx, parts...)
	}
	if err != nil {
		return fmt.Errorf("sqlstore: %w", err)
	}
	return nil
}

// Ready returns nil if the database responds and has the tables of this release or of a
// later one. It only reads, and is meant for a readiness probe.
func (s *core) Ready(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	if err := s.db.Ready(ctx, parts...); err != nil {
		return fmt.Errorf("sqlstore: %w", err)
	}
	return nil
}

// Table returns the quoted name of the table of events, with its schema, for your own
// queries.
func (s *core) Table(ctx context.Context) (string, error) {
	if err := s.find(ctx); err != nil {
		return "", err
	}
	return s.table(), nil
}

// checkSettings returns an error if a SQLite file is opened with settings that
// lose events or let processes block each other for minutes. It allows what a database of
// operations must not have: the gateway repeats an event whose commit a crash has undone, and
// an in-memory database has only one process.
func (s *core) checkSettings(ctx context.Context) error {
	if !s.sqlite() {
		return s.db.Driver().Check(ctx)
	}
	p, err := dbms.ReadPragmasBy("main", func(column any, query string, args ...any) error {
		return s.db.Driver().Conn().Query(ctx, query, args, sqldb.Into(column))
	})
	switch {
	case err != nil || p.File == "":
		return err
	case p.Synchronous == 0:
		return errors.New("SQLite is opened with synchronous OFF, which loses acknowledged events if the machine stops: " +
			"set the pragma synchronous to FULL for every connection: with modernc.org/sqlite, add " +
			`"&_pragma=synchronous(FULL)" to the DSN`)
	case p.Journal != "wal" || p.BusyTimeout <= 0:
		return fmt.Errorf("SQLite is opened with journal_mode %s and busy_timeout %d, which lets processes block each "+
			"other; set both pragmas for every connection: with modernc.org/sqlite, open "+
			`"file:events.db?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)"`, p.Journal, p.BusyTimeout)
	default:
		return nil
	}
}
