package ledger

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// Numbers of facts are given before their transactions commit, so a fact may appear behind
// one with a higher number: after a second, or after two days. A watermark alone would leave it
// out of all sums for good. So the table gateway_unsummed has the ranges of numbers that the
// totals lack: all above the watermark, and each gap below it. Whatever appears in a gap is
// summed with them, and no fact can appear where one was.
//
// A gap is removed when each transaction that was open when it was found has ended, as
// PostgreSQL's transaction IDs say. A transaction that has a number and no ID yet is about to
// insert a row: gapMargin is more than enough for that. On SQLite transactions write one
// after another, and there are no gaps.

const (
	// newest is the end of the range that has the newest facts.
	newest = math.MaxInt64

	// gapMargin is how old a gap must be at least before it is removed.
	gapMargin = time.Hour

	// TotalAtOnce is how many facts one transaction adds to the totals at most.
	TotalAtOnce = 5000

	// gapsAtOnce is how many gaps it removes at most.
	gapsAtOnce = 100
)

// entries are the entries of an account: sums, and facts that are in none, each with the
// number of its first fact. The statement must read them once, so that the totals do not
// change meanwhile.
//
// PostgreSQL might read all facts and look for the range of each, or all facts of the
// account: what is lateral and sorted, with an operator on the account, leaves it one plan.
// SQLite joins in the order of the tables.
func (l Ledger) entries(account string) (table string, args []any) {
	const facts = `FROM {s}gateway_facts AS f
		WHERE f.seq >= ranges.first AND f.seq <= ranges.last AND f.account || '' = ? AND f.amount + 0 IS NOT NULL`
	missing := `SELECT f.month, f.currency, f.kind, f.amount, f.seq FROM {s}gateway_unsummed AS ranges CROSS JOIN ` +
		strings.TrimPrefix(facts, `FROM `)
	if l.s.Dialect() == database.DialectPostgres {
		missing = `SELECT f.month, f.currency, f.kind, f.amount, f.seq FROM {s}gateway_unsummed AS ranges CROSS JOIN LATERAL (
			SELECT f.month, f.currency, f.kind, f.amount, f.seq ` + facts + ` ORDER BY f.seq OFFSET 0) AS f`
	}
	return `(SELECT month, currency, kind, amount, first FROM {s}gateway_totals WHERE account = ?
		UNION ALL ` + missing + `) AS entries`, []any{account, account}
}

// Sum is the sum of an account's entries of a kind.
type Sum struct {
	Currency       gateway.Currency
	Kind           books.Kind
	Before, During int64 // a month
}

// Month returns the sums of an account before and during a month. It needs
// [sqldb.DB.ByIndex], as everything that reads entries.
func (l Ledger) Month(ctx context.Context, account, month string) ([]Sum, error) {
	from, args := l.entries(account)
	return all(ctx, l, `SELECT currency, kind, CAST(SUM(CASE WHEN month < ? THEN amount ELSE 0 END) AS {int}),
			CAST(SUM(CASE WHEN month = ? THEN amount ELSE 0 END) AS {int})
		FROM `+from+` WHERE month <= ? GROUP BY currency, kind ORDER BY currency, kind`,
		append(append([]any{month, month}, args...), month), func(row database.Scanner, s *Sum) error {
			return row.Scan(&s.Currency, &s.Kind, &s.Before, &s.During)
		})
}

// Currency returns the currency of an account's first entry, "" if there is none.
func (l Ledger) Currency(ctx context.Context, account string) (currency gateway.Currency, err error) {
	from, args := l.entries(account)
	_, err = l.s.Row(ctx, `SELECT currency FROM `+from+` ORDER BY month, first LIMIT 1`, args, &currency)
	return currency, err
}

// Booked returns the sum of an account's entries in a currency, without those with which adopted
// resources came into the books, and when it was.
func (l Ledger) Booked(ctx context.Context, account string, currency gateway.Currency) (b Balance, err error) {
	var at int64
	from, args := l.entries(account)
	_, err = l.s.Row(ctx, `SELECT {now}, CAST(COALESCE(SUM(amount), 0) AS {int})
			- COALESCE((SELECT d.amount FROM {s}gateway_adopted AS d WHERE d.account = ? AND d.currency = ?), 0) FROM `+from+` WHERE currency = ?`,
		slices.Concat([]any{account, string(currency)}, args, []any{string(currency)}), &at, &b.Booked)
	b.At = time.UnixMilli(at)
	return b, err
}

// errNoRange reports that the range of the newest facts is missing.
var errNoRange = errors.New("merchant: the table gateway_unsummed has no row with the last number " +
	"9223372036854775807, so new entries are in no sum: restore it with gateway_totals from the same backup")

// TotalsDue reports whether many facts wait to be added to the totals, or whether that was
// last done so long ago.
func (l Ledger) TotalsDue(ctx context.Context, every time.Duration) (many, late bool, err error) {
	var manyWait, isLate int
	found, err := l.s.Row(ctx, `SELECT
			CASE WHEN (SELECT MAX(seq) FROM {s}gateway_facts) >= first + ? THEN 1 ELSE 0 END,
			CASE WHEN since <= {now} - ? OR since > {now} THEN 1 ELSE 0 END
		FROM {s}gateway_unsummed WHERE last = ?`,
		[]any{TotalAtOnce, every.Milliseconds(), int64(newest)}, &manyWait, &isLate)
	if err == nil && !found {
		err = errNoRange
	}
	return manyWait == 1, isLate == 1, err
}

// span is a range of numbers of facts.
type span struct{ first, last int64 }

// numbered is a fact as the totals see it. Without an amount it only takes a number.
type numbered struct {
	seq    int64
	of     total
	amount *int64
}

// total is what a row of the totals sums.
type total struct{ account, month, currency, kind string }

// totals are sums to be added to the table.
type totals map[total]*struct{ amount, first int64 }

func (t totals) add(facts []numbered) {
	for _, f := range facts {
		if f.amount == nil {
			continue
		}
		if t[f.of] == nil {
			t[f.of] = &struct{ amount, first int64 }{first: f.seq}
		}
		t[f.of].amount += *f.amount
		t[f.of].first = min(t[f.of].first, f.seq)
	}
}

// writes returns the statements that add the sums, in an order.
func (t totals) writes() (list []Write) {
	compare := func(a, b total) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.month, b.month),
			cmp.Compare(a.currency, b.currency), cmp.Compare(a.kind, b.kind))
	}
	for _, of := range slices.SortedFunc(maps.Keys(t), compare) {
		list = append(list, Write{
			SQL: `INSERT INTO {s}gateway_totals (account, month, currency, kind, amount, first) VALUES (?, ?, ?, ?, ?, ?)
				ON CONFLICT (account, month, currency, kind) DO UPDATE SET
					amount = gateway_totals.amount + excluded.amount,
					first = CASE WHEN excluded.first < gateway_totals.first THEN excluded.first ELSE gateway_totals.first END`,
			Args: []any{of.account, of.month, of.currency, of.kind, t[of].amount, t[of].first},
		})
	}
	return list
}

// AddTotals adds the next facts to the totals, in a transaction, and reports whether there may be
// more. It does nothing while another process does it.
func (l Ledger) AddTotals(ctx context.Context) (more bool, err error) {
	open := span{last: newest}
	found, err := l.s.Row(ctx, `SELECT first FROM {s}gateway_unsummed WHERE last = ? {skip}`, []any{int64(newest)}, &open.first)
	if err != nil || !found {
		return false, err
	}
	sums := make(totals)
	writes, more, err := l.closeGaps(ctx, sums)
	if err != nil {
		return false, err
	}
	// One statement reads the facts, so one that is in no sum is in a gap.
	facts, err := l.numbered(ctx, open)
	if err != nil {
		return false, err
	}
	sums.add(facts)
	for _, f := range facts {
		if f.seq > open.first {
			writes = append(writes, Write{
				SQL:  `INSERT INTO {s}gateway_unsummed (last, first, since, xid) VALUES (?, ?, {now}, {next_xid})`,
				Args: []any{f.seq - 1, open.first},
			})
		}
		open.first = f.seq + 1
	}
	writes = append(append(sums.writes(), writes...), Write{
		SQL: `UPDATE {s}gateway_unsummed SET first = ?, since = {now} WHERE last = ?`, Args: []any{open.first, int64(newest)},
	})
	return more || len(facts) == TotalAtOnce, l.Write(ctx, writes)
}

// closeGaps adds the facts that have appeared in gaps in which no more can appear, and
// returns the statements that remove these gaps. The facts are read after the gaps, so they
// are all there.
func (l Ledger) closeGaps(ctx context.Context, sums totals) (writes []Write, more bool, err error) {
	gaps, err := all(ctx, l, `SELECT first, last FROM {s}gateway_unsummed
		WHERE last < ? AND since <= {now} - ? AND xid <= {oldest_xid} ORDER BY last LIMIT ?`, []any{int64(newest), gapMargin.Milliseconds(), gapsAtOnce},
		func(row database.Scanner, g *span) error { return row.Scan(&g.first, &g.last) })
	for _, g := range gaps {
		facts, err := l.numbered(ctx, g)
		if err != nil {
			return nil, false, err
		}
		sums.add(facts)
		if len(facts) < TotalAtOnce {
			writes = append(writes, Write{SQL: `DELETE FROM {s}gateway_unsummed WHERE last = ?`, Args: []any{g.last}})
			continue
		}
		writes = append(writes, Write{
			SQL: `UPDATE {s}gateway_unsummed SET first = ? WHERE last = ?`, Args: []any{facts[len(facts)-1].seq + 1, g.last},
		})
		return writes, true, nil
	}
	return writes, len(gaps) == gapsAtOnce, err
}

// numbered returns the first facts of a range.
func (l Ledger) numbered(ctx context.Context, s span) ([]numbered, error) {
	return all(ctx, l, `SELECT seq, account, month, currency, kind, amount FROM {s}gateway_facts
		WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT ?`, []any{s.first, s.last, TotalAtOnce},
		func(row database.Scanner, f *numbered) error {
			return row.Scan(&f.seq, &f.of.account, &f.of.month, &f.of.currency, &f.of.kind, &f.amount)
		})
}

// Months returns the months in which an account has entries or totals.
func (l Ledger) Months(ctx context.Context, account string) ([]string, error) {
	// One lookup for each month: a DISTINCT would read all facts.
	return all(ctx, l, `WITH RECURSIVE k (month) AS (
			SELECT MIN(month) FROM {s}gateway_facts WHERE account = ? AND amount IS NOT NULL
			UNION ALL SELECT (
				SELECT MIN(month) FROM {s}gateway_facts WHERE account = ? AND amount IS NOT NULL AND month > k.month)
			FROM k WHERE k.month IS NOT NULL)
		SELECT month FROM k WHERE month IS NOT NULL
		UNION SELECT month FROM {s}gateway_totals WHERE account = ? ORDER BY month`,
		[]any{account, account, account}, func(row database.Scanner, month *string) error { return row.Scan(month) })
}

// Wrong is a sum of an account's month that differs from that of its entries.
type Wrong struct {
	Currency     gateway.Currency
	Kind         books.Kind
	Sum, Entries int64
}

// WrongTotals compares the sums of an account's month with its facts. They differ only if the
// facts were changed by hand, or copied to another database without these tables.
func (l Ledger) WrongTotals(ctx context.Context, account, month string) ([]Wrong, error) {
	from, args := l.entries(account)
	return all(ctx, l, `SELECT currency, kind, CAST(SUM(total) AS {int}), CAST(SUM(amount) AS {int}) FROM (
			SELECT currency, kind, amount AS total, 0 AS amount FROM `+from+` WHERE month = ?
			UNION ALL SELECT currency, kind, 0, amount FROM {s}gateway_facts
				WHERE account = ? AND month = ? AND amount IS NOT NULL
		) AS q GROUP BY currency, kind HAVING SUM(total) <> SUM(amount) ORDER BY currency, kind`,
		append(args, month, account, month),
		func(row database.Scanner, w *Wrong) error { return row.Scan(&w.Currency, &w.Kind, &w.Sum, &w.Entries) })
}

// RepairTotals sums an account's month again, in a transaction.
func (l Ledger) RepairTotals(ctx context.Context, account, month string) error {
	found, err := l.s.Row(ctx, `SELECT first FROM {s}gateway_unsummed WHERE last = ? {lock}`,
		[]any{int64(newest)}, new(int64))
	if err != nil {
		return err
	}
	if !found {
		return errNoRange
	}
	_, err = l.s.Exec(ctx, `DELETE FROM {s}gateway_totals WHERE account = ? AND month = ?`, account, month)
	if err != nil {
		return err
	}
	_, err = l.s.Exec(ctx, `INSERT INTO {s}gateway_totals (account, month, currency, kind, amount, first)
		SELECT account, month, currency, kind, SUM(amount), MIN(seq) FROM {s}gateway_facts AS f
		WHERE account = ? AND month = ? AND amount IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM {s}gateway_unsummed AS u WHERE f.seq >= u.first AND f.seq <= u.last)
		GROUP BY account, month, currency, kind`, account, month)
	return err
}
