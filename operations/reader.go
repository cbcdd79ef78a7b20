package operations

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// Reader reads the operations of an account as [Outbox] does, without a client: for a page or a
// report. It changes nothing, so a role that may only SELECT, and a replica, will do.
type Reader struct{ reader }

// reader is what an [Outbox] and a [Reader] have in common.
type reader struct{ store *store }

// NewReader returns a reader of the operations of an account, whose tables are where the
// location says.
func NewReader[TX any](driver database.Driver[TX], account string, at database.Location) (*Reader, error) {
	if driver == nil {
		return nil, errors.New("operations: the driver is nil: use database.SQLite(db) or database.Postgres(db)")
	}
	if err := spec.CheckAccountName(account); err != nil {
		return nil, fmt.Errorf("operations: NewReader: %w", err)
	}
	db := sqldb.New(sqldb.Untyped(driver), at, slog.Default())
	return &Reader{reader{&store{db: db, account: gateway.Account{Name: account}}}}, nil
}
