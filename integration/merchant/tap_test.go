package merchant_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
)

// tap is a driver in front of the database's, which can change the statements of the
// merchant's side and remembers them.
type tap struct {
	driver driver.Driver
	name   string
	change func(statement string) string // nil changes nothing
	reach  func(point string) error      // nil fails never; see [mortal.reach]

	mu   sync.Mutex
	seen map[string][]driver.NamedValue // the parameters of each statement
}

// tapped opens the world's database through a tap.
func (w *world) tapped(change func(statement string) string) (*tap, *sql.DB) {
	w.Helper()
	tap, err := newTap(w.dialect, w.name, change)
	require.NoError(w, err)
	db := sql.OpenDB(tap)
	w.Cleanup(func() { assert.NoError(w, db.Close()) })
	return tap, db
}

func newTap(dialect database.Dialect, name string, change func(statement string) string) (*tap, error) {
	db, err := sql.Open(driverName(dialect), name)
	if err != nil {
		return nil, err
	}
	return &tap{driver: db.Driver(), name: name, change: change, seen: make(map[string][]driver.NamedValue)}, db.Close()
}

func (t *tap) Driver() driver.Driver { return t.driver }

func (t *tap) Connect(context.Context) (driver.Conn, error) {
	c, err := t.driver.Open(t.name)
	if err != nil {
		return nil, err
	}
	return &tappedConn{Conn: c, tap: t}, nil
}

// statements forgets what was seen, and returns it.
func (t *tap) statements() map[string][]driver.NamedValue {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := t.seen
	t.seen = make(map[string][]driver.NamedValue)
	return seen
}

// saw reports whether there was a statement with each word.
func (t *tap) saw(words ...string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := strings.Join(slices.Collect(maps.Keys(t.seen)), "\n")
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(all, word) })
}

func (t *tap) statement(text string, args []driver.NamedValue) string {
	if t.change != nil {
		text = t.change(text)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[text] = args
	return text
}

// tappedConn is a connection of a tap. Both drivers execute without preparing first.
type tappedConn struct {
	driver.Conn

	tap    *tap
	inTx   bool
	writes []string // of the transaction
}

func (c *tappedConn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	return execute(c, statement, args, func(statement string) (driver.Result, error) {
		return c.Conn.(driver.ExecerContext).ExecContext(ctx, statement, args)
	})
}

func (c *tappedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return execute(c, query, args, func(query string) (driver.Rows, error) {
		return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	})
}

// execute executes a statement. One that writes outside a transaction is a commit.
func execute[R any](c *tappedConn, statement string, args []driver.NamedValue, run func(statement string) (R, error)) (result R, err error) {
	statement = c.tap.statement(statement, args)
	if c.tap.reach == nil {
		return run(statement)
	}
	writes := written(statement)
	switch {
	case c.inTx:
		c.writes = append(c.writes, writes...)
		fallthrough
	case len(writes) == 0:
		if err := c.tap.reach(""); err != nil {
			return result, err
		}
		return run(statement)
	}
	err = c.tap.commit(writes, func() (err error) {
		result, err = run(statement)
		return err
	})
	if rows, ok := any(result).(driver.Rows); ok && err != nil {
		_ = rows.Close() // which ends the statement
	}
	return result, err
}

// commit commits what was written, unless the process dies before.
func (t *tap) commit(writes []string, run func() error) error {
	slices.Sort(writes)
	what := "the commit of " + strings.Join(slices.Compact(writes), ", ")
	if err := t.reach("before " + what); err != nil {
		return err
	}
	if err := run(); err != nil {
		return err
	}
	return t.reach("after " + what)
}

var writing = regexp.MustCompile(`(INSERT INTO|UPDATE|DELETE FROM) "?([a-z][a-z_]*)`)

// written returns what a statement writes.
func written(statement string) (list []string) {
	for _, m := range writing.FindAllStringSubmatch(statement, -1) {
		list = append(list, strings.ToLower(strings.Fields(m[1])[0])+" "+m[2])
	}
	return list
}

func (c *tappedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.tap.reach != nil {
		if err := c.tap.reach(""); err != nil {
			return nil, err
		}
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	if err != nil || c.tap.reach == nil {
		return tx, err
	}
	c.inTx, c.writes = true, nil
	return &tappedTx{tx, c}, nil
}

// tappedTx is a transaction at whose commit the process may die.
type tappedTx struct {
	driver.Tx

	conn *tappedConn
}

func (t *tappedTx) Commit() error {
	writes := t.conn.writes
	if len(writes) == 0 {
		t.conn.inTx = false
		return t.Tx.Commit()
	}
	committed := false
	err := t.conn.tap.commit(writes, func() error {
		committed = true
		return t.Tx.Commit()
	})
	t.conn.inTx = false
	if !committed { // the database does so when the connection ends
		return errors.Join(err, t.Tx.Rollback())
	}
	return err
}

func (t *tappedTx) Rollback() error {
	t.conn.inTx = false
	return t.Tx.Rollback()
}

func (c *tappedConn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *tappedConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(v.Value)
	v.Value = value
	return err
}
