package merchant

import (
	"context"
	"fmt"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
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
		known, err := m.ledger(tx).Prefixes(ctx)
		if err != nil {
			return err
		}
		for _, a := range m.accounts {
			if err := a.register(ctx, m.db, m.db.In(tx), known); err != nil {
				return err
			}
			known = append(known, ledger.Prefix{Account: a.Name, Prefix: a.Prefix})
		}
		return nil
	}); err != nil {
		return err
	}
	now, err := m.outside().Now(ctx)
	if err != nil {
		return err
	}
	m.clock.set(now)
	return m.events.Migrate(ctx)
}

// register adds the account, or checks that it is the one that was registered under its
// name, possibly by one of the packages that this one stands on. known are the prefixes that
// others, or the account itself, have.
func (a *account) register(ctx context.Context, db *sqldb.DB, c sqldb.Session, known []ledger.Prefix) error {
	var err error
	if a.digestKey, err = db.Register(ctx, c, a.Client.Account()); err != nil {
		return err
	}
	if err := a.distinct(known); err != nil {
		return err
	}
	l := ledger.Of(c)
	is := ledger.Account{Prefix: a.Prefix, Zone: a.Zone.String(), Book: a.Book}
	stored, first, err := l.SetAccount(ctx, a.Name, is)
	if err == nil && first {
		err = a.takeOver(ctx, l)
	}
	switch {
	case err != nil:
		return err
	case stored.Prefix != is.Prefix:
		return fmt.Errorf("%w: the records of %s have references with the prefix %q, and Account.Prefix is %q: it never changes after "+
			"the first Open", ErrAccount, a.Name, stored.Prefix, a.Prefix)
	case stored.Zone != is.Zone:
		return fmt.Errorf("%w: the entries of %s belong to months in the time zone %s, and Account.Zone is %s: set it to the same zone for as long as the "+
			"account is used", ErrAccount, a.Name, stored.Zone, is.Zone)
	case stored.Book != is.Book:
		return fmt.Errorf("%w: the records of %s are in the book %s, and Account.Book is %s: it never changes", ErrAccount, a.Name, stored.Book, is.Book)
	}
	return nil
}

// takeOver returns an error if an outbox of package operations had the account before, and has
// operations that have not ended: they are in no books, and their handlers are the outbox's.
func (a *account) takeOver(ctx context.Context, l ledger.Ledger) error {
	n, err := l.Unfinished(ctx, a.Name)
	if err == nil && n > 0 {
		err = fmt.Errorf("%w: an outbox of package operations has %d operations of the account %s that have not ended: let it finish them, until "+
			"operations.Outbox.Counts has none but done and canceled ones, or use another Account.Name", ErrAccount, n, a.Name)
	}
	return err
}
