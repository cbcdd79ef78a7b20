package sqlstore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway/internal/dbms"
)

// keepConnections raises the pool's limit of idle connections if it is too low.
func (s *Store) keepConnections(ctx context.Context) {
	limit, first := s.shared.idle.Keep(s.db)
	if !first {
		return
	}
	s.logger.WarnContext(ctx, "sqlstore: the pool kept too few idle connections and opened new ones all the time; the store raised the limit. "+
		"Set it where you open the database, to the receiver's Workers + 4 or more", slog.String("call", fmt.Sprintf("db.SetMaxIdleConns(%d)", limit)))
}

const (
	// maxPuts limits the deliveries that are stored concurrently: otherwise a
	// burst, or a pause of the database, makes each waiting delivery open a
	// connection. That many store hundreds of events per second even if a
	// commit takes 10 ms. Beyond that, deliveries wait for putWait at most. A pool
	// that has never closed an idle connection is large enough, and not limited.
	maxPuts = 6
	putWait = time.Second
)

// place waits for a place among the deliveries that are being stored. The
// caller must call leave.
func (s *Store) place(ctx context.Context) (leave func()) {
	if s.db.Stats().MaxIdleClosed == 0 {
		return func() {}
	}
	leave = func() { <-s.shared.puts }
	select {
	case s.shared.puts <- struct{}{}:
		return leave
	default:
	}
	wait := time.NewTimer(putWait)
	defer wait.Stop()
	select {
	case s.shared.puts <- struct{}{}:
		return leave
	case <-wait.C: // the database is slow, or another session holds a lock
	case <-ctx.Done(): // the statement will return its error
	}
	return func() {}
}

// checkPooler returns an error if a connection pooler breaks the driver's prepared
// statements.
func (s *Store) checkPooler(ctx context.Context) error {
	if s.dialect != Postgres {
		return nil
	}
	if err := dbms.CheckPooler(ctx, s.db); err != nil {
		return fmt.Errorf("sqlstore: %w", err)
	}
	return nil
}

// pooled adds advice to an error that a pooler in transaction mode causes.
func pooled(err error) error {
	if advised := dbms.Pooled(err); advised != err { //nolint:errorlint // only whether it was wrapped
		return fmt.Errorf("sqlstore: %w", advised)
	}
	return err
}
