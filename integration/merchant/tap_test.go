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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	pgxdriver "github.com/gateway-go/gateway/contrib/pgx"
	"github.com/gateway-go/gateway/database"
)

// tap is a driver in front of the database's, which can change the statements of the
// merchant's side and remembers them.
type tap struct {
	db     *sql.DB
	pool   *pgxpool.Pool // nil without pgx
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
	tap, db := w.tappedHere(change)
	w.Cleanup(func() { w.close(db) })
	return tap, db
}

// tappedHere is tapped for a database that the caller closes.
func (w *world) tappedHere(change func(statement string) string) (*tap, *sql.DB) {
	w.Helper()
	tap, err := w.kind.tap(context.WithoutCancel(w.Context()), w.name, change)
	require.NoError(w, err)
	w.taps[tap.db], w.pools[tap.db] = tap, tap.pool
	return tap, tap.db
}

// tap opens a database through a tap.
func (k kind) tap(ctx context.Context, name string, change func(statement string) string) (*tap, error) {
	t := &tap{name: name, change: change, seen: make(map[string][]driver.NamedValue)}
	db, pool, err := k.connect(ctx, name)
	if err != nil {
		return nil, err
	}
	t.db, t.pool = db, pool
	if pool == nil { // a driver of database/sql in front of the database's
		t.driver = db.Driver()
		t.db = sql.OpenDB(t)
		err = db.Close()
	}
	return t, err
}

// on returns the driver of the database. With pgx, the tap is in front of it.
func (t *tap) on(k kind) database.Driver[*txn] {
	if t.pool == nil {
		return k.on(t.db, nil)
	}
	return ofPgx(&tappedPgx{Driver: pgxdriver.New(t.pool), tap: t})
}

func (t *tap) close() error {
	err := t.db.Close()
	if t.pool != nil {
		t.pool.Close()
	}
	return err
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

// qualifier is the schema before the name of a table. The search path has it too.
var qualifier = regexp.MustCompile(`"[a-z0-9_]+"\."?(gateway_[a-z_]+)"?`)

func (t *tap) statement(text string, args []driver.NamedValue) string {
	text = qualifier.ReplaceAllString(text, "$1")
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

// tappedPgx is a driver of pgx with a tap in front of it.
type tappedPgx struct {
	database.Driver[pgx.Tx]

	tap    *tap
	writes sync.Map // of each transaction, *[]string
}

func (d *tappedPgx) Begin(ctx context.Context, level sql.IsolationLevel) (pgx.Tx, error) {
	if err := d.reach(""); err != nil {
		return nil, err
	}
	tx, err := d.Driver.Begin(ctx, level)
	if err == nil {
		d.writes.Store(tx, new([]string))
	}
	return tx, err
}

func (d *tappedPgx) reach(point string) error {
	if d.tap.reach == nil {
		return nil
	}
	return d.tap.reach(point)
}

func (d *tappedPgx) Commit(ctx context.Context, tx pgx.Tx) error {
	writes, ok := d.writes.LoadAndDelete(tx)
	if !ok || d.tap.reach == nil || len(*writes.(*[]string)) == 0 {
		return d.Driver.Commit(ctx, tx)
	}
	committed := false
	err := d.tap.commit(*writes.(*[]string), func() error {
		committed = true
		return d.Driver.Commit(ctx, tx)
	})
	if !committed {
		return errors.Join(err, d.Driver.Rollback(ctx, tx))
	}
	return err
}

func (d *tappedPgx) Rollback(ctx context.Context, tx pgx.Tx) error {
	d.writes.Delete(tx)
	return d.Driver.Rollback(ctx, tx)
}

func (d *tappedPgx) In(tx pgx.Tx) database.Conn {
	writes, _ := d.writes.LoadOrStore(tx, new([]string))
	return tappedPgxConn{d.Driver.In(tx), d, writes.(*[]string)}
}

func (d *tappedPgx) Conn() database.Conn { return tappedPgxConn{d.Driver.Conn(), d, nil} }

// tappedPgxConn runs statements of pgx. It sends one at a time, so it is no Batcher.
type tappedPgxConn struct {
	conn   database.Conn
	driver *tappedPgx
	writes *[]string // nil without a transaction
}

func (c tappedPgxConn) Exec(ctx context.Context, statement string, args ...any) (n int64, err error) {
	err = c.execute(statement, args, func(statement string) error {
		n, err = c.conn.Exec(ctx, statement, args...)
		return err
	})
	return n, err
}

func (c tappedPgxConn) Query(ctx context.Context, query string, args []any, row func(database.Scanner) error) error {
	return c.execute(query, args, func(query string) error { return c.conn.Query(ctx, query, args, row) })
}

// execute is [execute] for pgx.
func (c tappedPgxConn) execute(statement string, args []any, run func(statement string) error) error {
	named := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	statement = c.driver.tap.statement(statement, named)
	writes := written(statement)
	if c.driver.tap.reach != nil && c.writes == nil && len(writes) > 0 {
		return c.driver.tap.commit(writes, func() error { return run(statement) })
	}
	if c.writes != nil {
		*c.writes = append(*c.writes, writes...)
	}
	if err := c.driver.reach(""); err != nil {
		return err
	}
	return run(statement)
}
