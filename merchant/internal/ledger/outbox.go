package ledger

import (
	"context"
	"time"

	"github.com/gateway-go/gateway/database"
)

// Unfinished returns how many operations of an account have not ended.
func (l Ledger) Unfinished(ctx context.Context, account string) (n int64, err error) {
	_, err = l.s.Row(ctx, `SELECT COUNT(*) FROM {s}gateway_operations WHERE account = ? AND state <> 'done' AND state <> 'canceled'`, []any{account}, &n)
	return n, err
}

// DueWork are the accounts with an operation or an event that is due or whose worker has ended.
type DueWork struct {
	Operations, Events map[string]bool
	Now                time.Time
}

// DueWork looks for what became due in the last ten minutes, in all accounts: what was missed
// for longer, the outboxes and receivers find themselves. So it does not read what has ended
// before and is still in an index.
func (l Ledger) DueWork(ctx context.Context) (due DueWork, err error) {
	since := func(column string) string { return column + ` <= {now} AND ` + column + ` > {now} - 600000` }
	err = l.s.Each(ctx, `SELECT 0, '', {now}
		UNION ALL SELECT 1, a.name, 0 FROM {s}gateway_accounts AS a WHERE (SELECT 1 FROM {s}gateway_operations AS o WHERE o.account = a.name
			AND o.state IN ('waiting', 'working', 'sent', 'decided') AND `+since(`o.due_at`)+` AND (o.lease_until IS NULL OR o.lease_until < {now})
			LIMIT 1) IS NOT NULL
		UNION ALL SELECT 2, a.name, 0 FROM {s}gateway_accounts AS a WHERE (SELECT 1 FROM {s}gateway_webhook_events AS e WHERE e.account = a.name
			AND e.state = 1 AND `+since(`e.due`)+` LIMIT 1) IS NOT NULL
		UNION ALL SELECT 2, e.account, 0 FROM {s}gateway_webhook_events AS e WHERE e.state = 2 AND e.lease > 0 AND `+since(`e.lease`), nil,
		func(row database.Scanner) error {
			var what, now int64
			var account string
			err := row.Scan(&what, &account, &now)
			switch what {
			case 0:
				due = DueWork{make(map[string]bool), make(map[string]bool), time.UnixMilli(now)}
			case 1:
				due.Operations[account] = true
			default:
				due.Events[account] = true
			}
			return err
		})
	return due, err
}
