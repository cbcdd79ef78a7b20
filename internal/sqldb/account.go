package sqldb

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
)

// Register adds an account to the table of accounts, or checks that the one with its name is
// at the same base URL. It returns the key of the account's digests. Accounts without a
// fingerprint belong to packages that never call the gateway, and fit any. If nothing is
// missing it only reads.
func (db *DB) Register(ctx context.Context, s Session, account gateway.Account) (digestKey string, err error) {
	var fingerprint string
	found, err := s.First(ctx, `SELECT fingerprint FROM {s}gateway_accounts WHERE name = ?`, []any{account.Name},
		Into(&fingerprint))
	if err == nil && !found {
		_, err = s.Exec(ctx, `INSERT INTO {s}gateway_accounts (name, fingerprint, digest_key, created_at)
			VALUES (?, ?, ?, {now}) ON CONFLICT (name) DO NOTHING`, account.Name, account.Fingerprint, rand.Text())
	}
	if err == nil && fingerprint == "" && account.Fingerprint != "" {
		_, err = s.Exec(ctx, `UPDATE {s}gateway_accounts SET fingerprint = ? WHERE name = ? AND fingerprint = ''`,
			account.Fingerprint, account.Name)
	}
	switch {
	case dbms.State(err) == readOnly:
		return "", fmt.Errorf("%w: the account %s can't be registered, since the database is read-only: open it on the "+
			"primary server, with default_transaction_read_only off: %w", database.ErrSchema, account.Name, err)
	case err != nil:
		return "", err
	}
	digestKey, _, err = db.Known(ctx, s, account)
	return digestKey, err
}

// Known returns the key of the digests of an account, and whether it was registered; if the
// account has a fingerprint, with a fingerprint. The error is [gateway.ErrAccountConflict] if it is at another base URL.
func (db *DB) Known(ctx context.Context, s Session, account gateway.Account) (digestKey string, found bool, err error) {
	var fingerprint string
	found, err = s.First(ctx, `SELECT fingerprint, digest_key FROM {s}gateway_accounts WHERE name = ?`,
		[]any{account.Name}, Into(&fingerprint, &digestKey))
	if err == nil && found && fingerprint != account.Fingerprint && fingerprint != "" && account.Fingerprint != "" {
		err = fmt.Errorf("%w: what the database has of the account %s was stored with the fingerprint %s, and that of the "+
			"client is %s: give each account and environment its own name; if only the address of this account has changed, "+
			"run UPDATE %s SET fingerprint = %s WHERE name = %s", gateway.ErrAccountConflict, account.Name, fingerprint,
			account.Fingerprint, db.Qualified("gateway_accounts"), literal(account.Fingerprint), literal(account.Name))
	}
	return digestKey, found && (fingerprint != "" || account.Fingerprint == ""), err
}

// OfMerchant reports whether package merchant has an account: then what another outbox sends
// for it is in no books.
func (db *DB) OfMerchant(ctx context.Context, s Session, account string) (bool, error) {
	return s.Row(ctx, `SELECT 1 FROM {s}gateway_accounts WHERE name = ? AND prefix IS NOT NULL`, []any{account}, new(int64))
}

// literal returns a quoted string.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
