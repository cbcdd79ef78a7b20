package operations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"

	"github.com/gateway-go/gateway"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrAccountConflict reports that the table has operations of an account with the
// same name at another base URL, such as that of the sandbox. Nothing is sent.
var ErrAccountConflict = errors.New("operations: the name of the account belongs to another base URL")

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// open checks once that the outbox's account is in the table of accounts, with
// the base URL of its client.
func (s *store) open(ctx context.Context, q querier) error {
	if s.opened.Load() {
		return nil
	}
	var fingerprint string
	err := q.QueryRow(ctx, `SELECT fingerprint FROM `+s.accounts+` WHERE name = $1`, s.account.Name).Scan(&fingerprint)
	var failed *pgconn.PgError
	if errors.Is(err, pgx.ErrNoRows) || errors.As(err, &failed) && failed.Code == undefinedTable {
		return fmt.Errorf("operations: the database has no account %s: run Outbox.Migrate with a client of this account first", s.account.Name)
	}
	if err == nil {
		err = s.check(fingerprint)
	}
	if err != nil {
		return wrap(err)
	}
	s.opened.Store(true)
	return nil
}

const undefinedTable = "42P01"

// check compares the fingerprint of the account with the stored one.
func (s *store) check(fingerprint string) error {
	if fingerprint == s.account.Fingerprint {
		return nil
	}
	return fmt.Errorf("%w: the operations of %s were stored with the fingerprint %s, and that of Config.Client is %s: "+
		"give each account and environment its own name; if only the address of this account has changed, run UPDATE %s SET fingerprint = '%s' WHERE name = '%s'",
		ErrAccountConflict, s.account.Name, fingerprint, s.account.Fingerprint, s.accounts, s.account.Fingerprint, s.account.Name)
}

// register adds the account to the table of accounts.
func (s *store) register(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `INSERT INTO `+s.accounts+` (name, fingerprint) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`,
		s.account.Name, s.account.Fingerprint); err != nil {
		return err
	}
	var fingerprint string
	if err := tx.QueryRow(ctx, `SELECT fingerprint FROM `+s.accounts+` WHERE name = $1`, s.account.Name).Scan(&fingerprint); err != nil {
		return err
	}
	return s.check(fingerprint)
}

// checkAccount requires the client's account to have a name.
func checkAccount(client *gateway.Client) error {
	if client.Account().Name == "" {
		return errors.New("operations: Config.Client has no account name, so its operations could be mistaken for those of another account: " +
			`create the client with the option gateway.WithAccount("shop"), or use client.With(gateway.WithAccount("shop"))`)
	}
	return nil
}

// baseQueue is the first part of the queues' names. Earlier releases, which had
// no accounts, used it as the only queue.
const baseQueue = "gateway_operations"

// River limits what the name of a queue contains.
var queueName = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*$`)

const maxQueueName = 64

// queueOf returns the queue of an account.
func queueOf(account string) string {
	if name := baseQueue + "_" + account; len(name) <= maxQueueName && queueName.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(account))
	return baseQueue + "_" + hex.EncodeToString(sum[:8])
}

// Queue returns the name of the River queue of the account's operations:
// "gateway_operations_" and the account's name, or a hash of a name that has
// capital letters or dots or is longer than 45 characters. Pause and resume it
// with River: QueuePause(ctx, outbox.Queue(), nil). Operations inserted meanwhile
// wait.
func (o *Outbox) Queue() string { return queueOf(o.store.account.Name) }
