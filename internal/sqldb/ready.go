package sqldb

import (
	"context"
	"fmt"

	"github.com/gateway-go/gateway/database"
)

// Ready returns nil if the database responds and the tables of some parts fit the program.
// It only reads.
func (db *DB) Ready(ctx context.Context, parts ...string) error {
	if err := db.Find(ctx); err != nil {
		return err
	}
	known, err := db.migrations(ctx, parts)
	if err != nil {
		return err
	}
	missing, err := db.missing(ctx, db.Conn(), known)
	switch {
	case err != nil:
		return err
	case len(missing) > 0:
		return fmt.Errorf("%w: the migrations %s are missing: run Migrate", database.ErrSchema, versions(missing))
	default:
		return db.usable(ctx, known)
	}
}
