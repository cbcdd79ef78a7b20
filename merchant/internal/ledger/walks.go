package ledger

import (
	"context"
	"strings"
	"time"

	"github.com/gateway-go/gateway/database"
)

// walked are the accounts with charges that may be paid, or disputed: the others have
// nothing to list. The orders keep the planner, which knows nothing of a queue's size, from
// reading all of it.
const walked = `COALESCE(
	(SELECT q.lane FROM {s}gateway_checks AS q WHERE q.account = gateway_accounts.name AND q.lane = 2 ORDER BY q.account, q.lane, q.check_at LIMIT 1),
	(SELECT q.lane FROM {s}gateway_checks AS q WHERE q.account = gateway_accounts.name AND q.lane = 1 ORDER BY q.account, q.lane, q.check_at LIMIT 1)
	) IS NOT NULL`

// Task is what is done for an account now and then. Its column says when it is due; begun and
// ended are what else is stored.
type Task struct{ column, condition, begun, ended string }

// The tasks. Charges are not listed while they are read one by one.
var (
	BalanceTask = Task{column: "balance_at"}
	WalkTask    = Task{"walk_at", ` AND COALESCE(singly_until, 0) <= {now} AND ` + walked, `, walking = 1`, `, walking = 0`}
	DisputeTask = Task{column: "disputes_at", condition: ` AND ` + walked}
)

// ClaimTask reports whether a task of an account is due, and has this process do it. It writes
// only if it is.
func (l Ledger) ClaimTask(ctx context.Context, t Task, account string, again time.Duration) (bool, error) {
	var at int64
	isDue, err := l.s.Row(ctx, `SELECT COALESCE(`+t.column+`, 0) FROM {s}gateway_accounts
		WHERE name = ? AND COALESCE(`+t.column+`, 0) <= {now}`+t.condition, []any{account}, &at)
	if err != nil || !isDue {
		return false, err
	}
	n, err := l.s.Exec(ctx, `UPDATE {s}gateway_accounts SET `+t.column+` = {now} + ?`+t.begun+` WHERE name = ? AND COALESCE(`+t.column+`, 0) = ?`,
		again.Milliseconds(), account, at)
	return n > 0, err
}

// TaskIn has a task of an account done in a time.
func (l Ledger) TaskIn(ctx context.Context, t Task, account string, wait time.Duration) error {
	_, err := l.s.Exec(ctx, `UPDATE {s}gateway_accounts SET `+t.column+` = {now} + ?`+t.ended+` WHERE name = ?`, wait.Milliseconds(), account)
	return err
}

// ReadSingly has the charges of an account read one by one for a time, and reports whether that
// is new: it is not if they are for another half of it or more.
func (l Ledger) ReadSingly(ctx context.Context, account, why string, forTime time.Duration) (isNew bool, err error) {
	n, err := l.s.Exec(ctx, `UPDATE {s}gateway_accounts SET singly_until = {now} + ?, singly_why = ?
		WHERE name = ? AND COALESCE(singly_until, 0) < {now} + ?`,
		forTime.Milliseconds(), Clean(why), account, forTime.Milliseconds()/2)
	return n > 0, err
}

// Singly returns why charges are read one by one, by account.
func (l Ledger) Singly(ctx context.Context, accounts []string) (map[string]string, error) {
	in, args := list(accounts)
	why := make(map[string]string)
	_, err := all(ctx, l, `SELECT name, COALESCE(singly_why, '') FROM {s}gateway_accounts WHERE name IN `+in+` AND singly_until > {now}`, args,
		func(row database.Scanner, _ *struct{}) error {
			var name, text string
			err := row.Scan(&name, &text)
			why[name] = text
			return err
		})
	return why, err
}

// ClaimCharges begins routine comparisons of charges of an account that are due in a time, those
// that are due first.
func (l Ledger) ClaimCharges(ctx context.Context, account string, within time.Duration, limit int, lease time.Duration) ([]Claim, error) {
	chosen := `SELECT q.{row} FROM {s}gateway_checks AS q WHERE q.account = ? AND q.lane = 2 AND q.kind = 'charge' AND q.check_at <= {now} + ?
			AND (q.lease_until IS NULL OR q.lease_until < {now}) ORDER BY q.account, q.lane, q.check_at LIMIT ? {skip}`
	where := `ctid = ANY (ARRAY(` + strings.Replace(chosen, "{row}", "ctid", 1) + `))`
	if l.s.Dialect() == database.DialectSQLite {
		where = `rowid IN (` + strings.Replace(chosen, "{row}", "rowid", 1) + `)`
	}
	return all(ctx, l, `UPDATE {s}gateway_checks SET lease_until = {now} + ? WHERE `+where+` RETURNING kind, id, account, lane, lease_until, check_at`,
		[]any{lease.Milliseconds(), account, within.Milliseconds(), limit}, func(row database.Scanner, c *Claim) error {
			var due int64
			err := row.Scan(&c.Kind, &c.ID, &c.Account, &c.Lane, &c.Lease, &due)
			c.Due = time.UnixMilli(due)
			return err
		})
}

// Return ends comparisons that were not made: they are due when they were. All are of one kind
// and account, and have the same lease.
func (l Ledger) Return(ctx context.Context, claims []Claim) error {
	in, args := ids(claims)
	_, err := l.s.Exec(ctx, `UPDATE {s}gateway_checks SET lease_until = NULL WHERE `+claimedBy+` AND id IN `+in,
		append([]any{string(claims[0].Kind), claims[0].Account, claims[0].Lease}, args...)...)
	return err
}

// CompareNow has charges of an account compared at once, if they are compared at all. A
// comparison that has begun may have read them before.
func (l Ledger) CompareNow(ctx context.Context, account string, charges []string) error {
	in, args := list(charges)
	_, err := l.s.Exec(ctx, `UPDATE {s}gateway_checks SET lane = CASE WHEN lane < 1 THEN lane ELSE 1 END, check_at = {now}, lease_until = NULL
		WHERE kind = 'charge' AND account || '' = ? AND id IN `+in, append([]any{account}, args...)...)
	return err
}

// Transactions returns the charges of an account with some transactions.
func (l Ledger) Transactions(ctx context.Context, account string, transactions []string) ([]Row, error) {
	if len(transactions) == 0 {
		return nil, nil
	}
	in, args := list(transactions)
	return l.rows(ctx, Charges, ` WHERE account || '' = ? AND transaction_id IN `+in, append([]any{account}, args...))
}

// Disputes returns the transactions of charges of an account whose dispute has not ended, by the
// IDs of the charges. They are compared as what waits is.
func (l Ledger) Disputes(ctx context.Context, account string) (map[string]string, error) {
	transactions := make(map[string]string)
	_, err := all(ctx, l, `SELECT c.id, COALESCE(c.transaction_id, '') FROM {s}gateway_checks AS q JOIN {s}gateway_charges AS c ON c.id = q.id
		WHERE q.account = ? AND q.lane = 1 AND q.kind = 'charge' AND c.state = 'disputed'`, []any{account},
		func(row database.Scanner, _ *struct{}) error {
			var id, transaction string
			err := row.Scan(&id, &transaction)
			transactions[id] = transaction
			return err
		})
	return transactions, err
}
