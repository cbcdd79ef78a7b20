package operations

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/dbms"
)

// ErrAccountConflict reports that the table has operations of an account with the
// same name at another base URL, such as that of the sandbox. Nothing is sent.
var ErrAccountConflict = errors.New("operations: the name of the account belongs to another base URL")

// ready checks once what must be right before anything is sent: the settings of the
// database, and the account.
func (s *store[TX]) ready(ctx context.Context) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	return s.open(ctx, s.driver.Conn())
}

// check checks the settings of the database once.
func (s *store[TX]) check(ctx context.Context) error {
	s.checking.Lock()
	defer s.checking.Unlock()
	if s.checked {
		return nil
	}
	if err := s.try(ctx, func() error { return s.driver.Check(ctx) }); err != nil {
		return wrap(err)
	}
	s.checked = true
	return nil
}

// open checks once that the outbox's account is in the table of accounts, with
// the base URL of its client, and reads its digest key.
func (s *store[TX]) open(ctx context.Context, c Conn) error {
	if s.digestKey.Load() != nil {
		return nil
	}
	var stored storedAccount
	found, err := s.readAccount(ctx, c, &stored)
	switch {
	case err == nil && !found, isMissing(err):
		return fmt.Errorf("operations: the database has no account %s: run Outbox.Migrate with a client of this account first", s.account.Name)
	case err == nil:
		err = s.compare(stored.fingerprint)
	}
	if err != nil {
		return wrap(err)
	}
	s.digestKey.Store(&stored.digestKey)
	return nil
}

// storedAccount is a row of the table of accounts.
type storedAccount struct{ fingerprint, digestKey string }

func (s *store[TX]) readAccount(ctx context.Context, c Conn, stored *storedAccount) (found bool, err error) {
	return s.first(ctx, c, `SELECT fingerprint, digest_key FROM {accounts} WHERE name = ?`, []any{s.account.Name},
		into(&stored.fingerprint, &stored.digestKey))
}

// isMissing reports whether a table does not exist.
func isMissing(err error) bool {
	if err == nil {
		return false
	}
	return dbms.State(err) == "42P01" || strings.Contains(err.Error(), "no such table")
}

// compare compares the fingerprint of the account with the stored one.
func (s *store[TX]) compare(fingerprint string) error {
	if fingerprint == s.account.Fingerprint {
		return nil
	}
	return fmt.Errorf("%w: the operations of %s were stored with the fingerprint %s, and that of Config.Client is %s: "+
		"give each account and environment its own name; if only the address of this account has changed, run UPDATE %s SET fingerprint = '%s' WHERE name = '%s'",
		ErrAccountConflict, s.account.Name, fingerprint, s.account.Fingerprint, s.accounts, s.account.Fingerprint, s.account.Name)
}

// register adds the account to the table of accounts, and returns its digest key.
func (s *store[TX]) register(ctx context.Context, c Conn) (digestKey string, err error) {
	if _, err := s.exec(ctx, c, `INSERT INTO {accounts} (name, fingerprint, digest_key, created_at) VALUES (?, ?, ?, {now}) ON CONFLICT (name) DO NOTHING`,
		s.account.Name, s.account.Fingerprint, rand.Text()); err != nil {
		return "", err
	}
	var stored storedAccount
	if _, err := s.readAccount(ctx, c, &stored); err != nil {
		return "", err
	}
	return stored.digestKey, s.compare(stored.fingerprint)
}

// checkAccount requires the client's account to have a name.
func checkAccount(client *gateway.Client) error {
	if client.Account().Name == "" {
		return errors.New("operations: Config.Client has no account name, so its operations could be mistaken for those of another account: " +
			`create the client with the option gateway.WithAccount("shop"), or use client.With(gateway.WithAccount("shop"))`)
	}
	return nil
}
