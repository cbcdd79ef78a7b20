package dbms

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Idle keeps the connections of a busy pool open. By default [sql.DB] keeps
// two idle ones and closes the others, so a process whose workers need more
// than two at a time opens a new one for almost every statement. That costs PostgreSQL more than the statements.
type Idle struct {
	mu     sync.Mutex
	kept   bool  // the pool has had idle connections, so its limit is not 0
	closed int64 // MaxIdleClosed at the start of the window
	window time.Time
	raised bool
}

const (
	// fewClosed connections closed within churnWindow mean that the pool's
	// limit is too low. After a burst, that many are closed only once.
	fewClosed   = 4
	churnWindow = time.Second

	// The bounds of the limit that is set. It is also at most the
	// pool's own limit of open connections.
	fewestIdle, mostIdle = 16, 64
)

// raise returns the new limit of idle connections, 0 to leave it.
func (p *Idle) raise(now time.Time, stats sql.DBStats) (limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = p.kept || stats.Idle > 0
	fresh := now.Sub(p.window) < churnWindow
	churns := stats.MaxIdleClosed-p.closed >= fewClosed
	if fresh && !churns {
		return 0
	}
	p.window, p.closed = now, stats.MaxIdleClosed
	// A pool that never has idle connections lends those of another pool, or its
	// owner wants none. A pool closes a connection only while its limit of
	// others are open, so this never lowers a limit.
	if !fresh || !p.kept || stats.OpenConnections >= mostIdle {
		return 0
	}
	return min(max(fewestIdle, 2*stats.OpenConnections), mostIdle)
}

// Keep raises the pool's limit of idle connections if it closes connections that
// are needed again at once. It returns the new limit, or 0 if it left it; the first
// call that changes it returns first.
func (p *Idle) Keep(db *sql.DB) (limit int, first bool) {
	limit = p.raise(time.Now(), db.Stats())
	if limit == 0 {
		return 0, false
	}
	db.SetMaxIdleConns(limit)
	p.mu.Lock()
	defer p.mu.Unlock()
	first, p.raised = !p.raised, true
	return limit, first
}

// ErrPooler is the advice for a connection pooler that gives each transaction
// another session.
var ErrPooler = errors.New("a connection pooler in transaction mode (PgBouncer) shares sessions between clients, so prepared statements are lost or " +
	"mixed up: with pgx, add default_query_exec_mode=exec to the connection string; with lib/pq, add binary_parameters=yes")

// Pooled adds ErrPooler to an error that a pooler in transaction mode
// causes: a prepared statement is missing, exists already, or is another
// client's.
func Pooled(err error) error {
	switch State(err) {
	case "26000", "42P05":
	case "08P01":
		if !strings.Contains(err.Error(), "bind message") {
			return err
		}
	default:
		return err
	}
	return fmt.Errorf("%w: %w", ErrPooler, err)
}

const (
	poolerTimeout = 2 * time.Second
	poolerRounds  = 5
	poolerBetween = 10
	poolerRepeats = 200
	poolerTime    = 100 * time.Millisecond // at least, for the repeats: a pooler with other clients mixes sessions less often
)

// CheckPooler returns an error if the driver's prepared statements don't
// survive a pooler in transaction mode. It needs two connections, and finds
// nothing wrong if it does not get them in time: the errors of later
// statements have the same advice.
func CheckPooler(ctx context.Context, db *sql.DB) error {
	if db.Stats().MaxOpenConnections == 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, poolerTimeout)
	defer cancel()
	a, err := db.Conn(ctx)
	if err != nil {
		return nil // the migration reports it
	}
	defer func() { _ = a.Close() }()
	b, err := db.Conn(ctx)
	if err != nil {
		return nil // the migration reports it
	}
	defer func() { _ = b.Close() }()
	var seen sessions
	for round := range poolerRounds {
		if err := seen.look(ctx, a, b, round); err != nil {
			return onlyPooled(err)
		}
	}
	if !seen.moved() {
		return nil
	}
	// The sessions move. A driver that prepares and executes in two steps fails
	// only if another client prepares a statement in between, and only if that
	// one has other parameters.
	const one, three = "SELECT CAST($1 AS BIGINT)", "SELECT CAST($1 AS BIGINT) + CAST($2 AS BIGINT) + CAST($3 AS BIGINT)"
	for range poolerBetween {
		inBetween := between(func() error { return query(ctx, b, three, int64(1), int64(2), int64(3)) })
		if err := onlyPooled(query(ctx, a, one, inBetween)); err != nil {
			return err
		}
	}
	failed := make(chan error, 2)
	go func() { failed <- repeat(ctx, a, one, int64(1)) }()
	go func() { failed <- repeat(ctx, b, three, int64(1), int64(2), int64(3)) }()
	return onlyPooled(errors.Join(<-failed, <-failed))
}

// between is an argument whose value costs a query of another connection. pgx asks for it
// between its two steps, so the other query comes just there. lib/pq asks before the first.
type between func() error

// Value implements [driver.Valuer].
func (b between) Value() (driver.Value, error) { return int64(1), b() }

// onlyPooled returns err if a pooler caused it. The check's own statements are right, so that
// the server finds fault with them or with their arguments only if they are another client's.
func onlyPooled(err error) error {
	if advised := Pooled(err); errors.Is(advised, ErrPooler) {
		return advised
	}
	switch state := State(err); {
	case strings.HasPrefix(state, "22"), strings.HasPrefix(state, "42"), state == "08P01":
		return fmt.Errorf("%w: %w", ErrPooler, err)
	}
	return nil
}

// sessions are those that two connections have had, by process id.
type sessions struct{ a, b []int64 }

// look adds a's sessions while b's transaction occupies one, and that one. Each round has
// a statement of its own, which the driver has not prepared yet.
func (s *sessions) look(ctx context.Context, a, b *sql.Conn, round int) error {
	backend := fmt.Sprintf("SELECT CAST(pg_backend_pid() + $1 AS BIGINT) + %d", round)
	var before, other, after int64
	if err := a.QueryRowContext(ctx, backend, int64(0)).Scan(&before); err != nil {
		return err
	}
	tx, err := b.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	if err := tx.QueryRowContext(ctx, backend, int64(0)).Scan(&other); err != nil {
		return err
	}
	if err := a.QueryRowContext(ctx, backend, int64(0)).Scan(&after); err != nil {
		return err
	}
	s.a = append(s.a, before-int64(round), after-int64(round))
	s.b = append(s.b, other-int64(round))
	return nil
}

// moved reports whether the connections shared a session, or one of them had several.
// Which of these happens depends on the pooler's other clients.
func (s *sessions) moved() bool {
	several := func(list []int64) bool {
		return slices.ContainsFunc(list, func(pid int64) bool { return pid != list[0] })
	}
	return several(s.a) || several(s.b) || slices.Contains(s.b, s.a[0])
}

func query(ctx context.Context, c *sql.Conn, text string, args ...any) error {
	var n int64
	return c.QueryRowContext(ctx, text, args...).Scan(&n)
}

func repeat(ctx context.Context, c *sql.Conn, text string, args ...any) error {
	for began, i := time.Now(), 0; i < poolerRepeats || time.Since(began) < poolerTime; i++ {
		if err := query(ctx, c, text, args...); err != nil {
			return err
		}
	}
	return nil
}
