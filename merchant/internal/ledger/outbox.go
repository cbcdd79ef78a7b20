package ledger

import "context"

// Unfinished returns how many operations of an account have not ended.
func (l Ledger) Unfinished(ctx context.Context, account string) (n int64, err error) {
	_, err = l.s.Row(ctx, `SELECT COUNT(*) FROM {s}gateway_operations WHERE account = ? AND state <> 'done' AND state <> 'canceled'`, []any{account}, &n)
	return n, err
}
