package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// view returns a core for an account.
func (s *shared) view(account gateway.Account) *core {
	return &core{shared: s, frontier: frontier{names: "[]"}, account: account, only: account.Name == "", opening: make(chan struct{}, 1)}
}

// of returns the core of an account.
func (s *core) of(account gateway.Account) *core {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.views[account]
	if one == nil {
		one = s.view(account)
		one.err = s.err
		if err := spec.CheckAccountName(account.Name); err != nil && one.err == nil { // the name is a part of statements
			one.err = fmt.Errorf("sqlstore: the account %q: %w", account.Name, err)
		}
		s.views[account] = one
	}
	return one
}

// find finishes the statements of all accounts on the first call. Until then the schema of
// the table is unknown.
func (s *core) find(ctx context.Context) error {
	if s.err != nil || s.common.Load() != nil {
		return s.err
	}
	if err := s.db.Find(ctx); err != nil {
		return fmt.Errorf("sqlstore: %w", err)
	}
	q := newQueries(s.db, "")
	s.common.Store(&q)
	return nil
}

// ready opens the account on the first call. Until then the text of the statements, which
// has its name, is unknown.
func (s *core) ready(ctx context.Context) error {
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
	if err := s.find(ctx); err != nil {
		return err
	}
	name, err := s.open(ctx)
	if err != nil {
		return err
	}
	s.account.Name = name
	s.q = newQueries(s.db, name)
	s.puts = s.newPuts()
	s.opened.Store(true)
	return nil
}

// reads returns the statements of the account for what only reads. Unlike [core.ready] it does
// not register an account that the database does not have yet: it has no events. So a role that
// may only read will do, and a replica.
func (s *core) reads(ctx context.Context) (*queries, error) {
	if s.only || s.opened.Load() {
		err := s.ready(ctx)
		return &s.q, err
	}
	if q := s.reading.Load(); q != nil {
		return q, nil
	}
	if err := s.find(ctx); err != nil {
		return nil, err
	}
	switch _, _, err := s.db.Known(ctx, s.db.Conn(), s.account); {
	case errors.Is(err, gateway.ErrAccountConflict):
		return nil, fmt.Errorf("sqlstore: %w", err)
	case err != nil:
		return nil, fmt.Errorf("sqlstore: the account %s can't be read; if the table %s does not exist, run Migrate: %w",
			s.account.Name, s.table(), err)
	}
	q := newQueries(s.db, s.account.Name)
	s.reading.Store(&q)
	return &q, nil
}

// open returns the name of the account, which it registers if the database does not have it
// yet.
func (s *core) open(ctx context.Context) (name string, err error) {
	if s.only {
		return s.single(ctx)
	}
	var fingerprint string
	known, err := s.conn().First(ctx, s.common.Load().known, []any{s.account.Name}, sqldb.Into(&fingerprint))
	if err == nil && (!known || s.account.Fingerprint != "" && s.account.Fingerprint != fingerprint) {
		err = s.register(ctx)
	}
	switch {
	case err == nil:
		return s.account.Name, nil
	case errors.Is(err, gateway.ErrAccountConflict):
		return "", fmt.Errorf("sqlstore: %w", err)
	default:
		return "", fmt.Errorf("sqlstore: the account %s can't be opened; if the table %s does not exist, run Migrate: %w",
			s.account.Name, s.table(), err)
	}
}

// register adds the account to the table of accounts, and its row to the table of events,
// which begins to remember its events now.
func (s *core) register(ctx context.Context) error {
	return s.db.Durable(ctx, func(tx sqldb.Tx) error {
		if _, err := s.db.Register(ctx, s.db.In(tx), s.account); err != nil {
			return err
		}
		_, err := s.in(tx).Exec(ctx, s.common.Load().register, s.account.Name)
		return err
	})
}

// single returns the name of the table's only account.
func (s *core) single(ctx context.Context) (string, error) {
	scan := func(row database.Scanner) (name string, err error) { return name, row.Scan(&name) }
	names, err := sqldb.All(ctx, s.conn(), s.common.Load().names, nil, scan)
	switch {
	case err != nil:
		return "", fmt.Errorf("sqlstore: the table %s can't be read; if it does not exist, run Migrate: %w",
			s.table(), err)
	case len(names) == 0:
		return "", fmt.Errorf("sqlstore: the table %s has no account yet: create a receiver first, or call For",
			s.table())
	case len(names) > 1:
		return "", fmt.Errorf("sqlstore: the table %s has the events of several accounts (%s): call For with one of them",
			s.table(), strings.Join(names, ", "))
	}
	return names[0], nil
}
