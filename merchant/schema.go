package merchant

import (
	"context"
	"fmt"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// parts are the parts of the schema that the package needs, with those that it stands on.
var parts = []string{database.PartAccounts, database.PartOperations, database.PartEvents, database.PartMerchant}

// migrate checks the database, creates the tables that are missing, and registers the
// accounts, all of them or none.
func (m *core) migrate(ctx context.Context) error {
	if err := m.db.Migrate(ctx, parts...); err != nil {
		return err
	}
	if err := m.db.Transaction(ctx, func(tx sqldb.Tx) error {
		for _, a := range m.accounts {
			if err := a.register(ctx, m.db, m.db.In(tx)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for _, a := range m.accounts {
		if err := a.outbox.Migrate(ctx); err != nil {
			return err
		}
	}
	return m.events.Migrate(ctx)
}

// register adds the account, or checks that it is the one that was registered under its
// name, possibly by one of the packages that this one stands on.
func (a *account) register(ctx context.Context, db *sqldb.DB, c sqldb.Session) error {
	if _, err := db.Register(ctx, c, a.Client.Account()); err != nil {
		return err
	}
	var taken string
	found, err := c.Row(ctx, `SELECT name FROM {s}gateway_accounts WHERE prefix = ? AND name <> ?`, []any{a.Prefix, a.Name}, &taken)
	switch {
	case err != nil:
		return err
	case found:
		return fmt.Errorf("%w: another account than %s has the prefix %q, %s: set Account.Prefix to another one", ErrAccount, a.Name, a.Prefix, taken)
	}
	zone := a.Zone.String()
	if _, err := c.Exec(ctx, `UPDATE {s}gateway_accounts SET prefix = ?, zone = ? WHERE name = ? AND prefix IS NULL`, a.Prefix, zone, a.Name); err != nil {
		return err
	}
	var prefix, stored string
	if _, err := c.Row(ctx, `SELECT COALESCE(prefix, ''), COALESCE(zone, '') FROM {s}gateway_accounts WHERE name = ?`, []any{a.Name}, &prefix, &stored); err != nil {
		return err
	}
	switch {
	case prefix != a.Prefix:
		return fmt.Errorf("%w: the records of %s have references with the prefix %q, and Account.Prefix is %q", ErrAccount, a.Name, prefix, a.Prefix)
	case stored != zone:
		return fmt.Errorf("%w: the entries of %s belong to months in the time zone %s, and Account.Zone is %s: set it to the same zone for as long as the "+
			"account is used", ErrAccount, a.Name, stored, zone)
	}
	return a.distinct(ctx, c)
}
