package sqlstore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/webhook"
)

// Remembers implements [webhook.Store]. It returns at most the age of the
// table.
func (s *core) Remembers(ctx context.Context) (time.Duration, error) {
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	var age int64
	found, err := s.conn().First(ctx, s.q.since, nil, sqldb.Into(&age))
	if err == nil && !found {
		return 0, fmt.Errorf("sqlstore: the table %s no longer has the account %s: if it was emptied, create the receiver again",
			s.table(), s.account.Name)
	}
	return min(s.retention, time.Duration(max(age, 0))*time.Millisecond), err
}

// Purge implements [webhook.Store].
func (s *core) Purge(ctx context.Context) (n webhook.Purged, err error) {
	if err := s.ready(ctx); err != nil {
		return n, err
	}
	retention := s.retention.Milliseconds()
	// It is first, so that Remembers never claims too much.
	if _, err := s.conn().Exec(ctx, s.q.forget, retention, retention); err != nil {
		return n, err
	}
	if n.Done, err = s.purge(ctx, s.q.purge, retention); err != nil {
		return n, err
	}
	asides, err := s.asides(ctx)
	if err != nil {
		return n, err
	}
	for _, aside := range asides {
		unhandled, err := s.purge(ctx, s.q.purgeUnhandled, aside, retention, retention)
		n.Unhandled += unhandled
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// purge deletes events in batches. A batch begins with the time of the last event of the one
// before, which each returns.
func (s *core) purge(ctx context.Context, query string, args ...any) (n int, err error) {
	last, atOnce := int64(math.MinInt64), s.db.PurgeAtOnce()
	for {
		var deleted []int64
		if err := s.byIndex(ctx, func(c sqldb.Session) (err error) {
			deleted, err = sqldb.All(ctx, c, query, append(slices.Clone(args), last, atOnce),
				func(row database.Scanner) (at int64, err error) {
					err = row.Scan(&at)
					return at, err
				})
			return err
		}); err != nil {
			return n, err
		}
		n += len(deleted)
		if len(deleted) < atOnce {
			return n, nil
		}
		last = slices.Max(deleted)
	}
}

// Counts implements [webhook.Store].
func (s *core) Counts(ctx context.Context) (webhook.Counts, error) {
	var n webhook.Counts
	is, err := s.reads(ctx)
	if err != nil {
		return n, err
	}
	var oldest int64
	err = s.byIndex(ctx, func(c sqldb.Session) error {
		_, err := c.First(ctx, is.counts, nil, sqldb.Into(&n.Waiting, &n.Claimed, &n.Dead, &n.Unhandled, &oldest))
		return err
	})
	n.Oldest = time.Duration(max(oldest, 0)) * time.Millisecond
	return n, err
}

// clock detects that the database's clock was set back.
type clock struct {
	mu   sync.Mutex
	seen time.Time     // the process's time of the last reading; zero before the first
	at   time.Duration // the database's time at that reading
}

// clockSlack is the largest difference between the two clocks that is ignored.
const clockSlack = 2 * time.Second

// checkClock returns the database's time in Unix milliseconds. If the clock
// was set back since the last call, it corrects the stored times. The first
// call of a process always does, because the clock may have been set back
// before.
func (s *core) checkClock(ctx context.Context) (milli int64, err error) {
	if _, err := s.conn().First(ctx, s.q.clock, nil, sqldb.Into(&milli)); err != nil {
		return 0, err
	}
	if !s.clock.setBack(time.Now(), time.Duration(milli)*time.Millisecond) {
		return milli, nil
	}
	s.frontier.reset()
	if _, err = s.conn().Exec(ctx, s.q.stepBack, clockSlack.Milliseconds()); err != nil {
		s.clock.reset()
	}
	return milli, err
}

// setBack reports whether the database's clock is behind the expected time.
func (c *clock) setBack(now time.Time, at time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.seen.IsZero()
	back := first || at < c.at+now.Sub(c.seen)-clockSlack
	c.seen, c.at = now, at
	return back
}

func (c *clock) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = time.Time{}
}

// pace limits how often a periodic task runs.
type pace struct{ last atomic.Int64 } // Unix milliseconds

// due reports whether the interval has passed since it last returned true. Of
// several concurrent callers only one gets true.
func (p *pace) due(every time.Duration) bool {
	now, last := time.Now().UnixMilli(), p.last.Load()
	d := now - last
	return (d < 0 || d >= every.Milliseconds()) && p.last.CompareAndSwap(last, now)
}
