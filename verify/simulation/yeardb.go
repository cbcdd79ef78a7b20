package simulation

import (
	"context"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"regexp"
	"time"

	"modernc.org/sqlite" //nolint:depguard // only tests import this package
)

// SimulateDatabaseTime makes the time of every SQLite database that is opened from now on
// that of the bubble in which a statement runs: package merchant takes the time from the
// database, with julianday('now'). Call it once in a test process, before [RunYear].
func SimulateDatabaseTime() error {
	return sqlite.RegisterScalarFunction("julianday", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		if args[0] != "now" {
			return nil, errors.New("only julianday('now') is simulated")
		}
		const epoch, msPerDay = 2440587.5, 86400000
		return epoch + float64(time.Now().UnixMilli())/msPerDay, nil
	})
}

func (y *Year) dsn() string {
	return "file:" + filepath.Join(y.cfg.Dir, "shop.db") + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"
}

// yearConnector opens the connections of one process. The process may crash before and
// after every commit, and after a crash nothing works any more.
type yearConnector struct {
	s *shop
	d driver.Driver
}

func (c *yearConnector) Driver() driver.Driver { return c.d }

func (c *yearConnector) Connect(context.Context) (driver.Conn, error) {
	if c.s.crashed.Load() {
		return nil, errCrashed
	}
	conn, err := c.d.Open(c.s.y.dsn())
	if err != nil {
		return nil, err
	}
	return yearConn{conn, c.s, make(map[string]driver.Stmt)}, nil
}

// yearConn keeps its statements prepared, because the driver compiles them every time.
type yearConn struct {
	driver.Conn

	s        *shop
	prepared map[string]driver.Stmt
}

func (c yearConn) statement(ctx context.Context, text string) (driver.Stmt, error) {
	if c.s.crashed.Load() {
		return nil, errCrashed
	}
	if text == `PRAGMA main.synchronous` {
		text = `SELECT 2` // FULL, which package merchant requires: the simulated machine does not stop
	}
	text = c.s.y.skewed(text)
	if stmt := c.prepared[text]; stmt != nil {
		return stmt, nil
	}
	conn, ok := c.Conn.(driver.ConnPrepareContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	stmt, err := conn.PrepareContext(ctx, c.s.y.cfg.Defect.change(text))
	if err == nil {
		c.prepared[text] = stmt
	}
	return stmt, err
}

func (c yearConn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	stmt, err := c.statement(ctx, statement)
	if err != nil {
		return nil, err
	}
	run, ok := stmt.(driver.StmtExecContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	return run.ExecContext(ctx, args)
}

func (c yearConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	stmt, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	run, ok := stmt.(driver.StmtQueryContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	return run.QueryContext(ctx, args)
}

// Close implements driver.Conn.
func (c yearConn) Close() error {
	var err error
	for _, stmt := range c.prepared {
		err = errors.Join(err, stmt.Close())
	}
	return errors.Join(err, c.Conn.Close())
}

func (c yearConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.s.crashed.Load() {
		return nil, errCrashed
	}
	conn, ok := c.Conn.(driver.ConnBeginTx)
	if !ok {
		return nil, driver.ErrSkip
	}
	tx, err := conn.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return yearTx{tx, c.s}, nil
}

func (c yearConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(v.Value)
	v.Value = value
	return err
}

type yearTx struct {
	driver.Tx

	s *shop
}

// Commit implements driver.Tx.
func (t yearTx) Commit() error {
	const odds = 600
	if t.s.mayCrash(odds, "before a commit") {
		return errors.Join(errCrashed, t.Rollback())
	}
	err := t.Tx.Commit()
	if err == nil && t.s.mayCrash(odds, "after a commit") {
		err = errCrashed
	}
	return err
}

// YearDefect is a mistake in the shop or in package merchant, which the simulation must
// find.
type YearDefect string

// The defects of a year.
const (
	ShipsAtOnce       YearDefect = "a callback ships at once, and not in its transaction"
	RefundsByItself   YearDefect = "a refund is sent by the client, without the outbox"
	NeverCompares     YearDefect = "nothing is compared with the gateway, and a quarter of the webhooks is lost"
	CallsBackAnyOrder YearDefect = "the facts of an order are called back in any order"
)

var (
	notFirst = regexp.MustCompile(`AND (\(SELECT e\.seq FROM (?s:.*?) LIMIT 1\) IS NULL)`)
	compares = regexp.MustCompile(`FROM gateway_checks( AS \w+)? WHERE`)
	sweeps   = regexp.MustCompile(`EXISTS \(SELECT 1 FROM gateway_links`)
)

// change seeds a defect into the statements of package merchant.
func (d YearDefect) change(statement string) string {
	switch d {
	case NeverCompares:
		return sweeps.ReplaceAllString(compares.ReplaceAllString(statement, "$0 0 AND"), "0 AND $0")
	case CallsBackAnyOrder:
		return notFirst.ReplaceAllString(statement, "AND (1 = 1 OR $1)")
	default:
		return statement
	}
}
