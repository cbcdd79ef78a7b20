package sqlstore

import (
	"context"
	"time"
)

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
func (s *core) place(ctx context.Context) (leave func()) {
	if !s.db.Churns() {
		return func() {}
	}
	leave = func() { <-s.shared.places }
	select {
	case s.shared.places <- struct{}{}:
		return leave
	default:
	}
	wait := time.NewTimer(putWait)
	defer wait.Stop()
	select {
	case s.shared.places <- struct{}{}:
		return leave
	case <-wait.C: // the database is slow, or another session holds a lock
	case <-ctx.Done(): // the statement will return its error
	}
	return func() {}
}
