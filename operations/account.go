package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// Migrate creates the outbox's tables if they are missing, unless Config.Location leaves
// that to your own migrations, and registers the account of Config.Client. Call it for each
// account; if the tables are there, it needs no right to create any.
//
// The error is [gateway.ErrAccountConflict] if the account's name is in use for another
// base URL, or by package merchant, and [database.ErrSchema] if the tables do not fit this program. Any other names
// what is wrong with the database, such as a setting of SQLite that could lose a commit; see
// [database.SQLite]. A version of modernc.org/sqlite before v1.41.0 is logged as a warning.
func (o *Outbox[TX]) Migrate(ctx context.Context) error {
	s := o.store
	if err := s.db.Migrate(ctx, database.PartAccounts, database.PartOperations); err != nil {
		return fmt.Errorf("operations: migrate: %w", err)
	}
	var digestKey string
	err := s.db.Durable(ctx, func(tx sqldb.Tx) (err error) {
		if digestKey, err = s.db.Register(ctx, s.db.In(tx), s.account); err != nil {
			return err
		}
		return s.own(ctx, s.db.In(tx))
	})
	if err != nil {
		return fmt.Errorf("operations: migrate: %w", err)
	}
	s.digestKey.Store(&digestKey)
	return nil
}

// ready checks once what must be right before anything is sent: the settings of the
// database, and the account.
func (s *store) ready(ctx context.Context) error {
	if err := s.db.Check(ctx); err != nil {
		return wrap(err)
	}
	_, err := s.conn(ctx)
	return err
}

// conn returns a session without a transaction, once the account is known.
func (s *store) conn(ctx context.Context) (sqldb.Session, error) {
	c := s.db.Conn()
	if s.digestKey.Load() != nil {
		return c, nil
	}
	if err := s.db.Find(ctx); err != nil {
		return c, wrap(err)
	}
	return c, s.know(ctx, c)
}

// secondConnection is how long a call in a user's transaction may wait for a connection
// beside it. If all connections of a pool have transactions that wait for another one, it
// must end.
const secondConnection = 5 * time.Second

// in returns a session in a transaction of a user, once the account is known. Where the
// tables are is looked up on a connection of the pool: the transaction may have another
// search path.
func (s *store) in(ctx context.Context, tx sqldb.Tx) (sqldb.Session, error) {
	c := s.db.In(tx)
	if s.digestKey.Load() != nil {
		return c, nil
	}
	finding, cancel := context.WithTimeout(ctx, secondConnection)
	defer cancel()
	if err := s.db.Find(finding); err != nil {
		if ctx.Err() == nil && finding.Err() != nil {
			err = fmt.Errorf("the first transaction of a process looks up the tables on another connection of the pool, and got none: "+
				"call Outbox.Migrate or Outbox.Ready before it: %w", err)
		}
		return c, wrap(err)
	}
	return c, s.know(ctx, c)
}

// know checks that the outbox's account is in the table of accounts, with the base URL of
// its client, and keeps its digest key.
func (s *store) know(ctx context.Context, c sqldb.Session) error {
	digestKey, found, err := s.db.Known(ctx, c, s.account)
	switch {
	case err == nil && !found, isMissing(err):
		return fmt.Errorf("operations: the database has no account %s: run Outbox.Migrate with a client of this account first", s.account.Name)
	case err != nil:
		return wrap(err)
	}
	if err := s.own(ctx, c); err != nil {
		return err
	}
	s.digestKey.Store(&digestKey)
	return nil
}

// own returns [gateway.ErrAccountConflict] if package merchant has the account of an outbox
// beside it, which it may get at any time.
func (s *store) own(ctx context.Context, c sqldb.Session) error {
	if !s.foreign {
		return nil
	}
	taken, err := s.db.OfMerchant(ctx, c, s.account.Name)
	if err == nil && taken {
		err = fmt.Errorf("%w: package merchant has the account %s, and would not know what this outbox sends: use the methods of "+
			"merchant.Merchant, or another account name", gateway.ErrAccountConflict, s.account.Name)
	}
	return wrap(err)
}

// unowned is a condition on the table of accounts: package merchant does not have the account,
// and gets it only after the transaction has ended.
func (s *store) unowned() string {
	if !s.foreign {
		return ``
	}
	return ` AND prefix IS NULL {keep}`
}

// mayWork is a condition on an operation: its account may be worked on by this outbox.
func (s *store) mayWork() string {
	if !s.foreign {
		return ``
	}
	return ` AND NOT EXISTS (SELECT 1 FROM {s}gateway_accounts AS a WHERE a.name = o.account AND a.prefix IS NOT NULL)`
}

// isMissing reports whether a table does not exist.
func isMissing(err error) bool {
	if err == nil {
		return false
	}
	return dbms.State(err) == "42P01" || strings.Contains(err.Error(), "no such table")
}

// checkAccount requires the client's account to have a name.
func checkAccount(client *gateway.Client) error {
	if client.Account().Name == "" {
		return errors.New("operations: Config.Client has no account name, so its operations could be mistaken for those of another account: " +
			`create the client with the option gateway.WithAccount("shop"), or use client.With(gateway.WithAccount("shop"))`)
	}
	return nil
}
