package operations

import (
	"context"
	"fmt"
)

// Ready returns nil if the database responds, has the tables and knows the
// outbox's account. It only reads, and is meant for a readiness probe.
func (o *Outbox[TX]) Ready(ctx context.Context) error {
	var is storedAccount
	known := false
	err := o.store.try(ctx, func() (err error) {
		c := o.store.driver.Conn()
		if known, err = o.store.readAccount(ctx, c, &is); err != nil {
			return err
		}
		_, err = o.store.first(ctx, c, `SELECT {columns}, digest, refunded, lease_until FROM {t} WHERE id < 0`, nil, func(Scanner) error { return nil })
		return err
	})
	switch {
	case err != nil:
		return wrap(fmt.Errorf("the tables can't be read: if they do not exist, run Outbox.Migrate: %w", err))
	case !known:
		return fmt.Errorf("operations: the database has no account %s: run Outbox.Migrate with a client of this account first", o.store.account.Name)
	}
	return o.store.compare(is.fingerprint)
}
