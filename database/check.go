package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/gateway-go/gateway/internal/dbms"
)

// Check implements [Driver].
func (d *sqlDriver) Check(ctx context.Context) error {
	switch {
	case d.db == nil:
		return errNil
	case d.dialect == DialectPostgres:
		return dbms.CheckPooler(ctx, d.db)
	case d.db.Stats().MaxOpenConnections == 1:
		return errors.New("SQLite is opened with SetMaxOpenConns(1), so that a handler that uses the database beside its " +
			"transaction waits for itself: allow several connections; only one of them writes at a time")
	}
	a, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }()
	b, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	for _, conn := range []*sql.Conn{a, b} {
		if err := checkPragmas(ctx, conn); err != nil {
			return err
		}
	}
	return checkImmediate(ctx, a, b)
}

// checkPragmas checks one connection: a pragma that is set by a statement, and not
// by the data source name, holds for one of several.
func checkPragmas(ctx context.Context, conn *sql.Conn) error {
	const full = 2
	p, err := dbms.ReadPragmas(ctx, conn, "main")
	switch {
	case err != nil:
		return err
	case p.File == "":
		return errors.New("the SQLite database is in memory, where no operation survives the process: open a file")
	case p.Journal != "wal":
		return fmt.Errorf(`SQLite is opened with journal_mode %s, which lets readers and writers block each other: set `+
			`journal_mode to WAL; with modernc.org/sqlite, add "&_pragma=journal_mode(WAL)" to the data source name`, p.Journal)
	case p.BusyTimeout <= 0:
		return errors.New(`SQLite is opened without busy_timeout, so that every second writer fails at once: set it for ` +
			`every connection; with modernc.org/sqlite, add "&_pragma=busy_timeout(10000)" to the data source name`)
	case p.Synchronous < full:
		return fmt.Errorf(`SQLite is opened with synchronous %s, which loses the last commits if the machine stops, so that `+
			`a refund could be sent twice: set synchronous to FULL for every connection; with modernc.org/sqlite, add `+
			`"&_pragma=synchronous(FULL)" to the data source name`, []string{"OFF", "NORMAL"}[max(p.Synchronous, 0)])
	}
	return nil
}

// checkImmediate checks that transactions begin with the write lock: b can't get it
// while a has a transaction. A transaction that reads first and then calls
// operations.Outbox.InsertTx would fail at once if another one has written meanwhile, whatever
// the busy timeout.
func checkImmediate(ctx context.Context, a, b *sql.Conn) error {
	tx, err := a.BeginTx(ctx, nil)
	switch {
	case dbms.IsConflict(err): // it waited for the write lock in vain, so it begins with it
		return nil
	case err != nil:
		return err
	}
	defer func() { _ = tx.Rollback() }() // it is empty
	// b is closed: its settings are changed.
	defer func() { _ = b.Raw(func(any) error { return driver.ErrBadConn }) }()
	if _, err := b.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return err
	}
	switch _, err := b.ExecContext(ctx, "BEGIN IMMEDIATE"); {
	case dbms.IsConflict(err):
		return nil
	case err != nil:
		return err
	}
	// In SQLite's words for it, "database is locked", the check would be repeated.
	return errors.New(`SQLite is opened without immediate transactions, so that a transaction that reads before it ` +
		`inserts an operation fails at once if another one has written meanwhile, whatever the busy_timeout: with ` +
		`modernc.org/sqlite, add "&_txlock=immediate" to the data source name`)
}
