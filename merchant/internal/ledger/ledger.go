// Package ledger keeps the tables of package merchant. All of its SQL is here, table by table;
// what the records mean is decided by packages merchant and books.
//
// Columns are what queries need. The column record of a charge, refund, payout or subscription
// has all that is known about it, encoded by package merchant.
package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// Ledger runs the statements on the tables, in a transaction or each by itself.
type Ledger struct{ s sqldb.Session }

// Of returns the tables in a session.
func Of(s sqldb.Session) Ledger { return Ledger{s} }

// Now returns the database's time.
func (l Ledger) Now(ctx context.Context) (now time.Time, err error) {
	var ms int64
	_, err = l.s.Row(ctx, `SELECT {now}`, nil, &ms)
	return time.UnixMilli(ms), err
}

// list returns the parameters of a list, such as "(?, ?)", which is empty for no value.
func list[S ~string](values []S) (parameters string, args []any) {
	if len(values) == 0 {
		return `(NULL)`, nil // equals nothing
	}
	for _, v := range values {
		args = append(args, string(v))
	}
	return `(?` + strings.Repeat(`, ?`, len(values)-1) + `)`, args
}

// condition is a condition of a WHERE clause, made of the members that are set.
type condition struct {
	text string
	args []any
}

// equal adds a condition on a column, unless the value is "".
func (c *condition) equal(column, value string) {
	if value != "" {
		c.add(column+` = ?`, value)
	}
}

// subject adds a condition on the columns of a subject, unless it is the zero value.
func (c *condition) subject(s Subject) {
	if s != (Subject{}) {
		c.add(`book = ? AND subject = ?`, s.Book, s.ID)
	}
}

func (c *condition) add(text string, args ...any) {
	if c.text != "" {
		c.text += ` AND `
	}
	c.text += text
	c.args = append(c.args, args...)
}

// where returns the clause.
func (c *condition) where() string {
	if c.text == "" {
		return ``
	}
	return ` WHERE ` + c.text
}

// all reads all rows of a query.
func all[T any](ctx context.Context, l Ledger, query string, args []any, scan func(database.Scanner, *T) error) ([]T, error) {
	if !Storable(args...) {
		return nil, nil
	}
	return sqldb.All(ctx, l.s, query, args, func(row database.Scanner) (one T, err error) {
		err = scan(row, &one)
		return one, err
	})
}

// Write is a statement that changes one row, to be executed by [Ledger.Write].
type Write struct {
	SQL   string
	Args  []any
	Any   bool  // it may change any number of rows
	Taken error // if it changes none: the error, instead of that of a bug
}

// Write executes statements in order. On PostgreSQL those that don't depend on the order are one
// statement, so they are one round trip with any driver.
func (l Ledger) Write(ctx context.Context, writes []Write) error {
	for len(writes) > 0 {
		n := 1
		if l.s.Dialect() == database.DialectPostgres {
			n = independent(writes)
		}
		changed, err := l.write(ctx, writes[:n])
		if err != nil {
			return err
		}
		for i, n := range changed {
			if err := writes[i].check(n); err != nil {
				return err
			}
		}
		writes = writes[n:]
	}
	return nil
}

// write executes independent statements, and returns how many rows each changed.
func (l Ledger) write(ctx context.Context, writes []Write) ([]int64, error) {
	if len(writes) == 1 {
		n, err := l.s.Exec(ctx, writes[0].SQL, writes[0].Args...)
		return []int64{n}, err
	}
	var with, counts []string
	var args, columns []any
	changed := make([]int64, len(writes))
	for i, w := range writes {
		with = append(with, fmt.Sprintf("w%d AS (%s RETURNING 1)", i, w.SQL))
		counts = append(counts, fmt.Sprintf("(SELECT COUNT(*) FROM w%d)", i))
		args, columns = append(args, w.Args...), append(columns, &changed[i])
	}
	_, err := l.s.Row(ctx, `WITH `+strings.Join(with, `, `)+` SELECT `+strings.Join(counts, `, `), args, columns...)
	return changed, err
}

// independent returns how many of the first statements can be executed as one, whose parts see
// nothing of each other: only the same statement changes several rows of a table.
func independent(writes []Write) int {
	of := make(map[string]string)
	for i, w := range writes {
		if same, known := of[w.table()]; known && same != w.SQL {
			return i
		}
		of[w.table()] = w.SQL
	}
	return len(writes)
}

// table returns the name of the table that a statement changes.
func (w *Write) table() string {
	_, name, _ := strings.Cut(w.SQL, "{s}")
	name, _, _ = strings.Cut(name, " ")
	return name
}

// check returns an error if a statement changed another number of rows than it must.
func (w *Write) check(n int64) error {
	switch {
	case n == 1 || w.Any:
		return nil
	case n == 0 && w.Taken != nil:
		return w.Taken
	default:
		return fmt.Errorf("merchant: a statement changed %d rows instead of 1: %s", n, strings.Join(strings.Fields(w.SQL)[:3], " "))
	}
}

// first reads the first row of a query's result into columns. found is false if there is none.
func (l Ledger) first(ctx context.Context, query string, args []any, columns ...any) (found bool, err error) {
	if !Storable(args...) {
		return false, nil
	}
	return l.s.Row(ctx, query, args, columns...)
}

// Storable reports whether every database can store texts: PostgreSQL accepts only valid
// UTF-8 without U+0000. No record has another text, so a query finds none.
func Storable(args ...any) bool {
	for _, arg := range args {
		if text, ok := arg.(string); ok && Clean(text) != text {
			return false
		}
	}
	return true
}

// number writes a boolean.
func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// inTime returns an age by the database's clock, which may have been set back.
func inTime(ms int64) time.Duration { return time.Duration(max(ms, 0)) * time.Millisecond }

func notFound(what, id string) error { return fmt.Errorf("%w: %s %s", ErrNotFound, what, id) }
