package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway/webhook"
)

// Remembers implements [webhook.Store]: a new table recognises nothing yet.
func (s *Store) Remembers(ctx context.Context) (time.Duration, error) {
	if s.err != nil {
		return 0, s.err
	}
	var age int64
	err := s.db.QueryRowContext(ctx, s.q.since).Scan(&age)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("sqlstore: the table %s lacks the row %q: run Migrate", s.table, metaKey)
	}
	return min(s.retention, time.Duration(max(age, 0))*time.Millisecond), err
}

// purgeBatch keeps a purge from locking the table, or SQLite's only writer, for
// long.
const purgeBatch = 1000

// Purge implements [webhook.Store].
func (s *Store) Purge(ctx context.Context) (n webhook.Purged, err error) {
	if s.err != nil {
		return n, s.err
	}
	retention := s.retention.Milliseconds()
	if err := s.try(ctx, func() error { // first, so that Remembers never claims too much
		_, err := s.db.ExecContext(ctx, s.q.forget, retention, retention)
		return err
	}); err != nil {
		return n, err
	}
	if n.Done, err = s.purge(ctx, s.q.purge); err != nil {
		return n, err
	}
	n.Unhandled, err = s.purge(ctx, s.q.purgeUnhandled)
	return n, err
}

func (s *Store) purge(ctx context.Context, query string) (n int, err error) {
	for {
		var deleted int64
		err := s.try(ctx, func() error {
			res, err := s.db.ExecContext(ctx, query, s.retention.Milliseconds(), purgeBatch)
			if err == nil {
				deleted, err = res.RowsAffected()
			}
			return err
		})
		n += int(deleted)
		if err != nil || deleted < purgeBatch {
			return n, err
		}
	}
}

// Counts implements [webhook.Store].
func (s *Store) Counts(ctx context.Context) (webhook.Counts, error) {
	var n webhook.Counts
	if s.err != nil {
		return n, s.err
	}
	var oldest int64
	err := s.db.QueryRowContext(ctx, s.q.counts).Scan(&n.Waiting, &n.Claimed, &n.Dead, &n.Unhandled, &oldest)
	n.Oldest = time.Duration(max(oldest, 0)) * time.Millisecond
	return n, err
}

// clock notices that the database's clock was set back.
type clock struct {
	mu   sync.Mutex
	seen time.Time     // when it was read, by the clock of the process; zero before the first time
	at   time.Duration // what it showed then
}

// clockSlack is what the two clocks may drift apart unnoticed.
const clockSlack = 2 * time.Second

// checkClock returns the database's time in Unix milliseconds. It repairs what the
// clock did, if it was set back since the last call or, in a process that has just
// started, perhaps before.
func (s *Store) checkClock(ctx context.Context) (milli int64, err error) {
	if err := s.db.QueryRowContext(ctx, s.q.clock).Scan(&milli); err != nil {
		return 0, err
	}
	if !s.clock.setBack(time.Now(), time.Duration(milli)*time.Millisecond) {
		return milli, nil
	}
	s.frontier.reset()
	err = s.try(ctx, func() error {
		_, err := s.db.ExecContext(ctx, s.q.stepBack, clockSlack.Milliseconds())
		return err
	})
	if err != nil {
		s.clock.reset()
	}
	return milli, err
}

// setBack reports whether the database's clock shows less than it should.
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

// pace keeps what is done now and then from being done more often.
type pace struct{ last atomic.Int64 } // Unix milliseconds

// due reports whether so much time has passed since it last did, to one of several
// callers.
func (p *pace) due(every time.Duration) bool {
	now, last := time.Now().UnixMilli(), p.last.Load()
	d := now - last
	return (d < 0 || d >= every.Milliseconds()) && p.last.CompareAndSwap(last, now)
}
