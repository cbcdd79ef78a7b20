package ledger

import (
	"context"
	"time"

	"github.com/gateway-go/gateway/database"
)

// KeepTask is the search for what has ended and is not kept any longer.
var KeepTask = Task{column: "keep_at"}

// Kept says what is looked for.
type Kept int

// What is kept for a time after the end of a record.
const (
	KeptBuyers Kept = iota
	KeptOperations
)

// Ended returns subjects of a book that may have ended a time ago, and of which something is kept.
func (l Ledger) Ended(ctx context.Context, book string, what Kept, ago time.Duration, limit int) ([]Subject, error) {
	kept := map[Kept]string{KeptBuyers: `erased_at IS NULL`, KeptOperations: `purged_at IS NULL`}[what]
	return all(ctx, l, `SELECT book, subject FROM {s}gateway_orders WHERE book = ? AND ends_at <= {now} - ? AND `+kept+`
		ORDER BY book, ends_at LIMIT ?`, []any{book, ago.Milliseconds(), limit},
		func(row database.Scanner, s *Subject) error { return row.Scan(&s.Book, &s.ID) })
}

// EndsAt stores that a subject does not end before a time.
func (l Ledger) EndsAt(ctx context.Context, s Subject, at time.Time) error {
	return l.s.Must(ctx, `UPDATE {s}gateway_orders SET ends_at = ? WHERE book = ? AND subject = ?`, at.UnixMilli(),
		s.Book, s.ID)
}

// NeverEnds is when what has no end ends.
var NeverEnds = time.UnixMilli(1 << 53)

// PurgeOperation deletes an operation that has ended.
func (l Ledger) PurgeOperation(ctx context.Context, o Operation) error {
	_, err := l.s.Exec(ctx,
		`DELETE FROM {s}gateway_operations WHERE account = ? AND kind = ? AND key = ? AND state IN ('done', 'canceled')`,
		o.Account, o.Kind, o.Key)
	return err
}
