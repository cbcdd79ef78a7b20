package merchant

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway/database"
)

// An account's balance is noted four times a day, and only while nothing waits: a payment
// that is not booked yet would look like a difference. If something waits, it is tried again
// soon.
const (
	balanceEvery = 6 * time.Hour
	balanceAgain = 5 * time.Minute
)

// noted is an account's balance at the gateway, and the sum of its entries at that time.
type noted struct{ at, balance, booked int64 }

// noteBalances notes the balances that are due.
func (m *Merchant) noteBalances(ctx context.Context) {
	for _, a := range m.accounts {
		if a.Balance == nil {
			continue
		}
		due, err := m.claimBalance(ctx, a)
		if err == nil && due {
			err = m.guarded(ctx, func() error { return m.noteBalance(ctx, a) })
		}
		if err != nil && ctx.Err() == nil {
			m.fail(ctx, "the balance of an account could not be noted", err, slog.String("account", a.Name))
		}
	}
}

// claimBalance reports whether the balance is due, and has this process note it.
func (m *Merchant) claimBalance(ctx context.Context, a *account) (bool, error) {
	c := m.store.conn()
	var at int64
	due, err := c.first(ctx, `SELECT COALESCE(balance_at, 0) FROM gateway_accounts WHERE name = ? AND COALESCE(balance_at, 0) <= {now}`, []any{a.Name}, &at)
	if err != nil || !due {
		return false, err
	}
	claimed, err := c.exec(ctx, `UPDATE gateway_accounts SET balance_at = {now} + ? WHERE name = ? AND COALESCE(balance_at, 0) = ?`,
		min(balanceAgain, m.cfg.CompareEvery).Milliseconds(), a.Name, at)
	return claimed > 0, err
}

func (m *Merchant) noteBalance(ctx context.Context, a *account) error {
	n, err := m.waiting(ctx)
	if err != nil || n.requests+n.events+n.refunds > 0 {
		return err
	}
	c := m.store.conn()
	before, err := m.newest(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, m.cfg.CallbackTimeout)
	defer cancel()
	balance, currency, err := a.Balance(limited)
	if err != nil {
		return err
	}
	var is noted
	if _, err := c.first(ctx, `SELECT {now}, CAST(COALESCE(SUM(amount), 0) AS {bigint}) FROM gateway_facts
		WHERE account = ? AND amount IS NOT NULL AND currency = ?`, []any{a.Name, string(currency)}, &is.at, &is.booked); err != nil {
		return err
	}
	if after, err := m.newest(ctx); err != nil || after != before {
		return err
	}
	if err := c.must(ctx, `INSERT INTO gateway_balances (account, currency, at, balance, booked) VALUES (?, ?, ?, ?, ?)`,
		a.Name, string(currency), is.at, balance, is.booked); err != nil {
		return err
	}
	return c.must(ctx, `UPDATE gateway_accounts SET balance_at = {now} + ? WHERE name = ?`, min(balanceEvery, m.cfg.CompareEvery).Milliseconds(), a.Name)
}

// balance compares how much the account's balance changed in the month with the entries
// that were booked meanwhile. Each end of the month has several notes, one of which may have
// been taken at a bad moment: one pair that agrees suffices.
func (k *check) balance(ctx context.Context) error {
	begin, err := k.noted(ctx, k.begin, `at`)
	if err != nil || len(begin) == 0 {
		return err
	}
	end, err := k.noted(ctx, k.end, `at DESC`)
	if err != nil || len(end) == 0 {
		return err
	}
	for _, b := range begin {
		for _, e := range end {
			if e.at > b.at && e.balance-b.balance == e.booked-b.booked {
				return nil
			}
		}
	}
	b, e := begin[0], end[0]
	if e.at <= b.at {
		return nil
	}
	in := func(ms int64) string { return time.UnixMilli(ms).In(k.account.Zone).Format(time.RFC3339) }
	k.add(Difference{
		Kind: DiffBalance, Here: e.booked - b.booked, There: e.balance - b.balance,
		Text: fmt.Sprintf("between %s and %s the balance changed by this, and the entries add up to that", in(b.at), in(e.at)),
	})
	return nil
}

// noted returns what was noted within a day of one end of the month or, if that is
// nothing, the nearest note of the month.
func (k *check) noted(ctx context.Context, at time.Time, nearest string) (list []noted, err error) {
	read := func(from, to time.Time, order string) error {
		return k.c.each(ctx, `SELECT at, balance, booked FROM gateway_balances WHERE account = ? AND currency = ? AND at >= ? AND at < ? ORDER BY `+order,
			[]any{k.account.Name, string(k.currency), from.UnixMilli(), to.UnixMilli()}, func(row database.Scanner) error {
				var n noted
				err := row.Scan(&n.at, &n.balance, &n.booked)
				list = append(list, n)
				return err
			})
	}
	const day = 24 * time.Hour
	if err := read(at.Add(-day), at.Add(day), nearest); err != nil || len(list) > 0 {
		return list, err
	}
	return list, read(k.begin, k.end, nearest+` LIMIT 1`)
}
