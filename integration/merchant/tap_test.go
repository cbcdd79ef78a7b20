package merchant_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gateway-go/gateway/operations"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tap is a driver in front of the database's, which can change the statements of the
// merchant's side and remembers them.
type tap struct {
	driver driver.Driver
	name   string
	change func(statement string) string // nil changes nothing

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

func newTap(dialect operations.Dialect, name string, change func(statement string) string) (*tap, error) {
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
	return tappedConn{c, t}, nil
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

	tap *tap
}

func (c tappedConn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, c.tap.statement(statement, args), args)
}

func (c tappedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, c.tap.statement(query, args), args)
}

func (c tappedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

func (c tappedConn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c tappedConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(v.Value)
	v.Value = value
	return err
}
