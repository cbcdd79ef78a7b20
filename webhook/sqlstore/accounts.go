package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/webhook"
)

// For implements [webhook.Store]. The result is a *Store with the same table and
// pool. Its first call registers the account in the table.
//
// A Store that For was not called on has the events of the table's only account, and
// returns an error while there is none or several.
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

// ready opens the account on the first call. Until then the text of the statements, which
// has its name, is unknown.
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
	name, err := s.open(ctx)
	if err != nil {
		return err
	}
	s.account.Name = name
	s.q = newQueries(s.dialect, s.table, name)
	s.puts = s.newPuts()
	s.opened.Store(true)
	return nil
}

// open returns the name of the account, which it registers if the table does not have it
// yet.
func (s *Store) open(ctx context.Context) (name string, err error) {
	if s.account.Name == "" {
		return s.only(ctx)
	}
	known, err := s.fingerprint(ctx)
	if err == nil && known == "" {
		if err = s.try(ctx, func() error {
			_, err := s.db.ExecContext(ctx, s.shared.q.register, s.account.Fingerprint, s.account.Name)
			return err
		}); err == nil {
			known, err = s.fingerprint(ctx)
		}
	}
	if err != nil {
		return "", fmt.Errorf("sqlstore: the account %s can't be opened; if the table %s does not exist, run Migrate: %w", s.account.Name, s.table, err)
	}
	if s.account.Fingerprint != "" && s.account.Fingerprint != known {
		return "", fmt.Errorf("sqlstore: %w: the events of the account %s in the table %s belong to another base URL of the gateway (fingerprint %s, not %s): "+
			"give each account and environment a name of its own; if the address of the same account has changed, run "+
			"UPDATE %s SET digest = '%s' WHERE key = '' AND account = '%s'",
			webhook.ErrAccountConflict, s.account.Name, s.table, known, s.account.Fingerprint, s.table, s.account.Fingerprint, s.account.Name)
	}
	return s.account.Name, nil
}

// fingerprint returns the stored fingerprint of the account, "" if there is none.
func (s *Store) fingerprint(ctx context.Context) (known string, err error) {
	err = s.row(ctx, s.shared.q.known, []any{s.account.Name}, &known)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return known, err
}

// only returns the name of the table's only account.
func (s *Store) only(ctx context.Context) (string, error) {
	names, err := readAll(ctx, s, func(rows *sql.Rows) (name string, err error) { return name, rows.Scan(&name) }, s.shared.q.names)
	switch {
	case err != nil:
		return "", fmt.Errorf("sqlstore: the table %s can't be read; if it does not exist, run Migrate: %w", s.table, err)
	case len(names) == 0:
		return "", fmt.Errorf("sqlstore: the table %s has no account yet: create a receiver first, or call For", s.table)
	case len(names) > 1:
		return "", fmt.Errorf("sqlstore: the table %s has the events of several accounts (%s): call For with one of them", s.table, strings.Join(names, ", "))
	}
	return names[0], nil
}
