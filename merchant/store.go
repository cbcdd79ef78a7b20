package merchant

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
)

// store runs statements in the database's dialect. All times are Unix milliseconds of the
// database's clock, so the processes' clocks need not agree.
type store struct {
	driver database.Driver[*sql.Tx]
	words  *strings.Replacer

	// strict is whether the default isolation of PostgreSQL is stricter than read
	// committed: then even a single statement may conflict with other sessions.
	strict bool
}

// look reads the default isolation.
func (s *store) look(ctx context.Context) error {
	if s.driver.Dialect() == database.DialectSQLite {
		return nil
	}
	var level string
	_, err := s.conn().first(ctx, `SHOW default_transaction_isolation`, nil, &level)
	s.strict = level != "read committed"
	return err
}

func newStore(driver database.Driver[*sql.Tx]) *store {
	words := []string{
		"{now}", dbms.PostgresNow, "{id}", "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		"{bigint}", "bigint", "{lock}", "FOR UPDATE", "{skip}", "FOR UPDATE SKIP LOCKED",
	}
	if driver.Dialect() == database.DialectSQLite { // a transaction holds the only write lock
		words = []string{
			"{now}", dbms.SQLiteNow, "{id}", "INTEGER PRIMARY KEY AUTOINCREMENT",
			"{bigint}", "INTEGER", "{lock}", "", "{skip}", "",
		}
	}
	return &store{driver: driver, words: strings.NewReplacer(words...)}
}

func (s *store) sql(text string) string {
	text = s.words.Replace(text)
	if s.driver.Dialect() == database.DialectSQLite {
		return text
	}
	return dbms.Numbered(text)
}

// in runs statements in a transaction.
func (s *store) in(tx *sql.Tx) conn { return conn{s, s.driver.In(tx), false} }

// conn runs statements without a transaction.
func (s *store) conn() conn { return conn{s, s.driver.Conn(), s.strict} }

// transaction runs a transaction of the package's own, and repeats it if it conflicts with
// another session. Its statements expect read committed: each sees what was committed
// before it. run may be repeated.
func (s *store) transaction(ctx context.Context, run func(tx *sql.Tx) error) error {
	return dbms.Pooled(dbms.Repeat(ctx, func() error {
		tx, err := s.driver.Begin(ctx, sql.LevelReadCommitted)
		if err != nil {
			return err
		}
		defer func() { _ = s.driver.Rollback(ctx, tx) }() // after a commit it does nothing
		if err := run(tx); err != nil {
			return err
		}
		return s.driver.Commit(ctx, tx)
	}))
}

// conn is an [database.Conn] whose statements have the words of [newStore].
type conn struct {
	*store

	c     database.Conn
	alone bool // each statement gets a transaction at read committed
}

func (c conn) exec(ctx context.Context, statement string, args ...any) (n int64, err error) {
	err = c.run(ctx, func(in database.Conn) error {
		n, err = in.Exec(ctx, c.sql(statement), args...)
		return err
	})
	return n, err
}

// run runs a statement.
func (c conn) run(ctx context.Context, statement func(database.Conn) error) error {
	if !c.alone {
		return statement(c.c)
	}
	tx, err := c.driver.Begin(ctx, sql.LevelReadCommitted)
	if err != nil {
		return err
	}
	defer func() { _ = c.driver.Rollback(ctx, tx) }() // after a commit it does nothing
	if err := statement(c.driver.In(tx)); err != nil {
		return err
	}
	return c.driver.Commit(ctx, tx)
}

// must runs a statement that changes one row.
func (c conn) must(ctx context.Context, statement string, args ...any) error {
	n, err := c.exec(ctx, statement, args...)
	if err == nil && n != 1 {
		err = fmt.Errorf("merchant: a statement changed %d rows instead of 1", n)
	}
	return err
}

func (c conn) each(ctx context.Context, query string, args []any, row func(database.Scanner) error) error {
	return c.run(ctx, func(in database.Conn) error { return in.Query(ctx, c.sql(query), args, row) })
}

// first reads the first row of a query's result. found is false if there is none.
func (c conn) first(ctx context.Context, query string, args []any, columns ...any) (found bool, err error) {
	err = c.each(ctx, query, args, func(row database.Scanner) error {
		if found {
			return nil
		}
		found = true
		return row.Scan(columns...)
	})
	return found, err
}

// encoded returns a record as it is stored.
func encoded(record any) (string, error) {
	b, err := json.Marshal(record, json.OmitZeroStructFields(true), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return "", fmt.Errorf("merchant: a record can't be encoded: %w", err)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil // PostgreSQL accepts only valid UTF-8
}

func decode(stored string, record any) error {
	if err := json.Unmarshal([]byte(stored), record, jsontext.AllowDuplicateNames(true)); err != nil {
		return fmt.Errorf("merchant: a stored record can't be decoded: %w", err)
	}
	return nil
}
