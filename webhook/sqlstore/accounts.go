package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/webhook"
)

// The column account says whose event a row is: it has the account's name, or ''
// for the account that opened the table first. Rows that were written before the
// table had this column are '' too, and so are those of earlier releases that
// still run: they belong to that account without being rewritten.
//
// The column key stays unique by itself, because earlier releases rely on it: the
// key of any other account's row starts with "@", the name and a space.
//
// Each account has a metadata row (state 0) with the key "@" and its name: account
// has the value for its events, digest the fingerprint, and since the time from
// which the table has every completed event. The table's own metadata row has the
// name of the first account in the column resource.

const accountMark = "@"

// prefix is what the keys of an account's rows start with.
func prefix(code string) string {
	if code == "" {
		return ""
	}
	return accountMark + code + " "
}

// prefixed returns the value of the column key for an event's key.
func prefixed(code, key string) string {
	if code == "" && strings.HasPrefix(key, accountMark) { // it would look like another account's
		return accountMark + " " + key
	}
	return prefix(code) + key
}

func (s *Store) rowKey(key string) string { return prefixed(s.code, key) }

// eventKey is the inverse of rowKey.
func (s *Store) eventKey(row string) string {
	if s.code == "" {
		return strings.TrimPrefix(row, accountMark+" ")
	}
	return strings.TrimPrefix(row, prefix(s.code))
}

// claimToken returns the token of a claim. It includes the account, so that any
// Store of this table can complete the claim in a transaction.
func (s *Store) claimToken(token string) string {
	if s.code == "" {
		return token
	}
	return token + accountMark + s.code
}

// held returns the values of the columns key and token for a claim.
func held(c *webhook.Claim) (row, token string) {
	token, code, _ := strings.Cut(c.Token, accountMark)
	return prefixed(code, c.Key), token
}

// For implements [webhook.Store]. The result is a *Store with the same table and
// pool. Its first call registers the account in the table.
//
// Events that were stored before the table had accounts belong to the account that
// is registered first. A Store that For was not called on has the events of that
// account.
func (s *Store) For(account gateway.Account) webhook.Store {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	one := s.shared.views[account]
	if one == nil {
		one = &Store{
			db: s.db, dialect: s.dialect, table: s.table, retention: s.retention, logger: s.logger, err: s.err,
			frontier: frontier{names: "[]"}, shared: s.shared, account: account, opening: make(chan struct{}, 1),
		}
		if err := spec.CheckAccountName(account.Name); err != nil && one.err == nil { // the name is a part of statements
			one.err = fmt.Errorf("sqlstore: the account %q: %w", account.Name, err)
		}
		s.shared.views[account] = one
	}
	return one
}

// IsFirst reports whether the account was registered first in the table, so that it
// has the events that were stored before the table had accounts.
func (s *Store) IsFirst(ctx context.Context) (bool, error) {
	err := s.ready(ctx)
	return err == nil && s.code == "", err
}

// RowKey returns the value of the column key for an event's key, for your own
// statements that read the table.
func (s *Store) RowKey(ctx context.Context, key string) (string, error) {
	if err := s.ready(ctx); err != nil {
		return "", err
	}
	return s.rowKey(key), nil
}

// EventKey returns the event's key for a value of the column key: the inverse of
// [Store.RowKey]. found is false if the row belongs to another account.
func (s *Store) EventKey(ctx context.Context, row string) (key string, found bool, err error) {
	if err := s.ready(ctx); err != nil {
		return "", false, err
	}
	key = s.eventKey(row)
	return key, s.rowKey(key) == row, nil
}

// ready opens the account on the first call. Until then the column's value, and
// with it the text of the statements, is unknown.
func (s *Store) ready(ctx context.Context) error {
	if s.err != nil || s.opened.Load() {
		return s.err
	}
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.opened.Load() {
		return nil
	}
	code, err := s.open(ctx)
	if err != nil {
		return err
	}
	s.code, s.q = code, newQueries(s.dialect, s.table, code, accountMark+s.account.Name)
	s.puts = s.newPuts()
	s.opened.Store(true)
	return nil
}

// open returns the account's value of the column account. It registers an account
// that the table does not have yet.
func (s *Store) open(ctx context.Context) (code string, err error) {
	q := newAccountQueries(s.dialect, s.table)
	row := accountMark + s.account.Name
	known := ""
	err = s.row(ctx, q.find, []any{row}, &code, &known)
	if errors.Is(err, sql.ErrNoRows) {
		err = s.try(ctx, func() error {
			code, known, err = s.register(ctx, q, row)
			return err
		})
	}
	if err == nil && known == "" && s.account.Fingerprint != "" {
		known, err = s.identify(ctx, q, row)
	}
	if err != nil {
		return "", fmt.Errorf("sqlstore: the account %s can't be opened; if the table %s does not exist or is of an earlier release, run Migrate: %w",
			s.account.Name, s.table, err)
	}
	if s.account.Fingerprint != "" && s.account.Fingerprint != known {
		return "", fmt.Errorf("sqlstore: %w: the events of the account %s in the table %s belong to another base URL of the gateway (fingerprint %s, not %s): "+
			"give each account and environment a name of its own; if the address of the same account has changed, run "+
			"UPDATE %s SET digest = '%s' WHERE key = '%s'",
			webhook.ErrAccountConflict, s.account.Name, s.table, known, s.account.Fingerprint, s.table, s.account.Fingerprint, row)
	}
	return code, nil
}

// register adds the account. The first one gets the rows without a name: only one
// session can write its name to the table's metadata row.
func (s *Store) register(ctx context.Context, q accountQueries, row string) (code, known string, err error) {
	tx, err := s.db.BeginTx(ctx, s.readCommitted())
	if err != nil {
		return "", "", err
	}
	defer func() { _ = tx.Rollback() }() // no-op after a commit
	name := s.account.Name
	if _, err := tx.ExecContext(ctx, q.first, name); err != nil {
		return "", "", err
	}
	var first string
	if err := tx.QueryRowContext(ctx, q.owner).Scan(&first); err != nil {
		return "", "", err
	}
	if first != name {
		code = name
	}
	if _, err := tx.ExecContext(ctx, q.add, row, code, s.account.Fingerprint); err != nil {
		return "", "", err
	}
	if err := tx.QueryRowContext(ctx, q.find, row).Scan(&code, &known); err != nil { // another process may have added it
		return "", "", err
	}
	if err := tx.Commit(); err != nil {
		return "", "", err
	}
	if code != "" {
		s.logger.InfoContext(ctx, "sqlstore: the table has the events of several accounts now",
			slog.String("table", s.table), slog.String("account", name), slog.String("first", first))
	}
	return code, known, nil
}

// identify adds the fingerprint of an account that was registered without one, and
// returns the one that the table has then.
func (s *Store) identify(ctx context.Context, q accountQueries, row string) (known string, err error) {
	err = s.try(ctx, func() error {
		_, err := s.db.ExecContext(ctx, q.identify, s.account.Fingerprint, row)
		return err
	})
	if err == nil {
		err = s.row(ctx, q.find, []any{row}, new(string), &known)
	}
	return known, err
}

// accountQueries is the SQL that does not depend on an account.
type accountQueries struct{ find, identify, first, owner, add string }

func newAccountQueries(d Dialect, table string) accountQueries {
	sql := func(text string) string { return statement(d, table, "", text) }
	return accountQueries{
		find:     sql(`SELECT account, digest FROM {t} WHERE key = ?`),
		identify: sql(`UPDATE {t} SET digest = ? WHERE key = ? AND digest = ''{durable}`),
		first:    sql(`UPDATE {t} SET resource = ? WHERE key = '` + metaKey + `' AND resource = ''{durable}`),
		owner:    sql(`SELECT resource FROM {t} WHERE key = '` + metaKey + `'`),
		add: sql(`INSERT INTO {t} (key, event_id, kind, resource, fact, signed, source, late, position,
			state, attempts, token, due, lease, since, matched, reason, account, digest)
			VALUES (?, '', '', '', '', 0, '', 0, 0, 0, 0, '', 0, 0, {now}, '', '', ?, ?) ON CONFLICT (key) DO NOTHING{durable}`),
	}
}
