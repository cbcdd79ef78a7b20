package operations

import (
	"context"
	"errors"
	"fmt"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
)

// Ready returns nil if the database responds, has the tables and knows the
// outbox's account. It only reads, and is meant for a readiness probe.
func (o *Outbox[TX]) Ready(ctx context.Context) error {
	s := o.store
	if err := s.db.Find(ctx); err != nil {
		return wrap(err)
	}
	c := s.db.Conn()
	_, known, err := s.db.Known(ctx, c, s.account)
	if errors.Is(err, gateway.ErrAccountConflict) {
		return wrap(err)
	}
	if err == nil {
		_, err = c.First(ctx, `SELECT `+columns+`, digest, refunded, lease_until FROM `+table+` WHERE id < 0`, nil, func(database.Scanner) error { return nil })
	}
	var foreign error
	if err == nil {
		foreign = s.own(ctx, c)
	}
	switch {
	case err != nil:
		return wrap(fmt.Errorf("the tables can't be read: if they do not exist, run Outbox.Migrate: %w", err))
	case foreign != nil:
		return foreign
	case !known:
		return fmt.Errorf("operations: the database has no account %s: run Outbox.Migrate with a client of this account first", s.account.Name)
	}
	return nil
}
