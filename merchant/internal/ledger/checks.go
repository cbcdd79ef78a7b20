package ledger

import (
	"context"
	"time"

	"github.com/gateway-go/gateway/database"
)

// Schedule returns the statement that has a record compared in a time, or never.
func (r *Row) Schedule(wait *time.Duration) Write {
	if wait == nil {
		return Write{SQL: `DELETE FROM {s}gateway_checks WHERE kind = ? AND id = ?`, Args: []any{string(r.Kind), r.ID}, Any: true}
	}
	return Write{
		SQL: `INSERT INTO {s}gateway_checks (kind, id, account, lane, check_at) VALUES (?, ?, ?, 0, {now} + ?)
			ON CONFLICT (kind, id) DO UPDATE SET lane = excluded.lane, check_at = excluded.check_at, lease_until = NULL`,
		Args: []any{string(r.Kind), r.ID, r.Account, wait.Milliseconds()},
	}
}

// Check is a comparison that is due.
type Check struct {
	ID string
	At int64
}

// DueChecks returns the comparisons of a kind that are due.
func (l Ledger) DueChecks(ctx context.Context, k Kind, accounts []string, limit int) ([]Check, error) {
	in, args := list(accounts)
	return all(ctx, l, `SELECT id, check_at FROM {s}gateway_checks WHERE kind = ? AND check_at <= {now} AND account IN `+in+` ORDER BY check_at LIMIT ?`,
		append(append([]any{string(k)}, args...), limit), func(row database.Scanner, c *Check) error { return row.Scan(&c.ID, &c.At) })
}

// ClaimCheck has this process do a comparison, unless another one does.
func (l Ledger) ClaimCheck(ctx context.Context, k Kind, c Check, again time.Duration) (bool, error) {
	n, err := l.s.Exec(ctx, `UPDATE {s}gateway_checks SET check_at = {now} + ? WHERE kind = ? AND id = ? AND check_at = ?`,
		again.Milliseconds(), string(k), c.ID, c.At)
	return n > 0, err
}

// Compared returns the next records of accounts that are compared now and then, after an ID.
func (l Ledger) Compared(ctx context.Context, k Kind, accounts []string, after string, limit int) ([]string, error) {
	in, args := list(accounts)
	return all(ctx, l, `SELECT id FROM {s}gateway_checks WHERE kind = ? AND account IN `+in+` AND id > ? ORDER BY id LIMIT ?`,
		append(append([]any{string(k)}, args...), after, limit), func(row database.Scanner, id *string) error { return row.Scan(id) })
}

// DueNow counts the comparisons of accounts that are due, and for how long the oldest one has
// been.
func (l Ledger) DueNow(ctx context.Context, accounts []string) (n int, oldest time.Duration, err error) {
	in, args := list(accounts)
	var ms int64
	_, err = l.s.Row(ctx, `SELECT COUNT(*), COALESCE({now} - MIN(check_at), 0) FROM {s}gateway_checks WHERE check_at <= {now} AND account IN `+in,
		args, &n, &ms)
	return n, inTime(ms), err
}
