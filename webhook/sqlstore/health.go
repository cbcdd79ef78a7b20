package sqlstore

import (
	"context"
	"fmt"
)

// Ready returns nil if the database responds and has the table of this release or of a
// later one. It only reads, and is meant for a readiness probe.
func (s *Store) Ready(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	var version int64
	if err := s.row(ctx, s.shared.q.version, nil, &version); err != nil {
		return fmt.Errorf("sqlstore: the table %s can't be read: if it does not exist, run Migrate: %w", s.table, err)
	}
	if version < schemaVersion {
		return fmt.Errorf("sqlstore: the table %s has version %d, and this release needs version %d: run Migrate", s.table, version, schemaVersion)
	}
	return nil
}
