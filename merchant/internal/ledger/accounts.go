package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
)

// LockAccount locks an account until the transaction ends.
func (l Ledger) LockAccount(ctx context.Context, name string) error {
	_, err := l.s.Row(ctx, `SELECT name FROM {s}gateway_accounts WHERE name = ? {lock}`, []any{name}, new(string))
	return err
}

// Prefix is the prefix of an account's references.
type Prefix struct{ Account, Prefix string }

// Prefixes returns the prefixes of all accounts.
func (l Ledger) Prefixes(ctx context.Context) ([]Prefix, error) {
	return all(ctx, l, `SELECT name, prefix FROM {s}gateway_accounts WHERE prefix IS NOT NULL ORDER BY name`, nil,
		func(row database.Scanner, p *Prefix) error { return row.Scan(&p.Account, &p.Prefix) })
}

// Account is what is stored of an account of package merchant.
type Account struct{ Prefix, Zone, Book string }

// Named is an account with its name.
type Named struct {
	Account

	Name string
}

// Accounts returns all accounts of package merchant, by name.
func (l Ledger) Accounts(ctx context.Context) ([]Named, error) {
	return all(ctx, l, `SELECT name, prefix, zone, book FROM {s}gateway_accounts WHERE prefix IS NOT NULL ORDER BY name`, nil,
		func(row database.Scanner, a *Named) error { return row.Scan(&a.Name, &a.Prefix, &a.Zone, &a.Book) })
}

// SetAccount stores an account unless it is stored, and returns what is. first reports whether
// it was not: then it waits for the transactions of an outbox that inserts operations of the
// account.
func (l Ledger) SetAccount(ctx context.Context, name string, a Account) (stored Account, first bool, err error) {
	n, err := l.s.Exec(ctx, `UPDATE {s}gateway_accounts SET prefix = ?, zone = ?, book = ? WHERE name = ? AND prefix IS NULL`,
		a.Prefix, a.Zone, a.Book, name)
	if err != nil {
		return stored, false, err
	}
	_, err = l.s.Row(ctx, `SELECT COALESCE(prefix, ''), COALESCE(zone, ''), COALESCE(book, '') FROM {s}gateway_accounts WHERE name = ?`,
		[]any{name}, &stored.Prefix, &stored.Zone, &stored.Book)
	return stored, n > 0, err
}

// Books returns the books of all accounts, also those that no process has any more.
func (l Ledger) Books(ctx context.Context) ([]string, error) {
	return all(ctx, l, `SELECT DISTINCT book FROM {s}gateway_accounts WHERE book IS NOT NULL ORDER BY book`, nil,
		func(row database.Scanner, book *string) error { return row.Scan(book) })
}

// Due names the accounts of which each kind of work is done.
type Due struct{ Links, Balances, Lists, Adopts, Keeps []string }

// DueAccount is an account of which something is due.
type DueAccount struct {
	Name string
	Walk bool // its charges are to be listed, or are being listed by a process
}

// DueAccounts returns the accounts whose search for sales, whose balance or whose lists are due,
// whose charges are being listed, for which something is to be adopted, or of which what has ended is
// looked for. Without a link there are no sales.
func (l Ledger) DueAccounts(ctx context.Context, of Due) ([]DueAccount, error) {
	withLinks, args := list(of.Links)
	withBalance, balances := list(of.Balances)
	withLists, lists := list(of.Lists)
	withAdoptions, adopting := list(of.Adopts)
	withKeep, keeping := list(of.Keeps)
	walk := `name IN ` + withLists + ` AND COALESCE(singly_until, 0) <= {now} AND (COALESCE(walk_at, 0) <= {now} OR walking = 1)`
	return all(ctx, l, `SELECT name, CASE WHEN `+walk+` THEN 1 ELSE 0 END FROM {s}gateway_accounts
		WHERE name IN `+withLinks+` AND COALESCE(sweep_at, 0) <= {now}
			AND EXISTS (SELECT 1 FROM {s}gateway_links WHERE account = gateway_accounts.name)
		OR name IN `+withBalance+` AND COALESCE(balance_at, 0) <= {now}
		OR (`+walk+` OR name IN `+withLists+` AND COALESCE(disputes_at, 0) <= {now}) AND `+walked+`
		OR name IN `+withAdoptions+` AND COALESCE(adopt_at, 0) <= {now} AND `+adopts+`
		OR name IN `+withKeep+` AND COALESCE(keep_at, 0) <= {now} ORDER BY name`,
		slices.Concat(lists, args, balances, lists, lists, adopting, keeping),
		func(row database.Scanner, a *DueAccount) error {
			var walk int
			err := row.Scan(&a.Name, &walk)
			a.Walk = walk == 1
			return err
		})
}

// ClaimSweep reports whether the search for sales of an account is due, and has this process
// do it. deep reports whether it is time to look further back.
func (l Ledger) ClaimSweep(ctx context.Context, account string, every, deepEvery time.Duration) (claimed, deep bool, err error) {
	var at, deepAt, now int64
	isDue, err := l.s.Row(ctx, `SELECT COALESCE(sweep_at, 0), COALESCE(deep_sweep_at, 0), {now} FROM {s}gateway_accounts
		WHERE name = ? AND COALESCE(sweep_at, 0) <= {now} AND EXISTS (SELECT 1 FROM {s}gateway_links WHERE account = gateway_accounts.name)`,
		[]any{account}, &at, &deepAt, &now)
	if err != nil || !isDue {
		return false, false, err
	}
	if deep = deepAt <= now; deep {
		deepAt = now + deepEvery.Milliseconds()
	}
	n, err := l.s.Exec(ctx, `UPDATE {s}gateway_accounts SET sweep_at = {now} + ?, deep_sweep_at = ? WHERE name = ? AND COALESCE(sweep_at, 0) = ?`,
		every.Milliseconds(), deepAt, account, at)
	return n > 0, deep, err
}

// SweepAgain makes the next search of an account look further back once more.
func (l Ledger) SweepAgain(ctx context.Context, account string) error {
	_, err := l.s.Exec(ctx, `UPDATE {s}gateway_accounts SET deep_sweep_at = 0 WHERE name = ?`, account)
	return err
}

// Balance is an account's balance at the gateway, and the sum of its entries at that time.
type Balance struct {
	At              time.Time
	Balance, Booked int64
}

// NoteBalance stores a balance. The next one is due in a time.
func (l Ledger) NoteBalance(ctx context.Context, account string, currency gateway.Currency, b Balance, next time.Duration) error {
	if err := l.s.Must(ctx, `INSERT INTO {s}gateway_balances (account, currency, at, balance, booked) VALUES (?, ?, ?, ?, ?)`,
		account, string(currency), b.At.UnixMilli(), b.Balance, b.Booked); err != nil {
		return err
	}
	return l.s.Must(ctx, `UPDATE {s}gateway_accounts SET balance_at = {now} + ? WHERE name = ?`, next.Milliseconds(), account)
}

// Balances returns the balances of an account that were noted in a time.
func (l Ledger) Balances(ctx context.Context, account string, currency gateway.Currency, from, to time.Time) ([]Balance, error) {
	return all(ctx, l, `SELECT at, balance, booked FROM {s}gateway_balances WHERE account = ? AND currency = ? AND at >= ? AND at < ? ORDER BY at`,
		[]any{account, string(currency), from.UnixMilli(), to.UnixMilli()}, func(row database.Scanner, b *Balance) error {
			var at int64
			err := row.Scan(&at, &b.Balance, &b.Booked)
			b.At = time.UnixMilli(at)
			return err
		})
}

// OwnTransaction is a transaction of an account.
type OwnTransaction struct {
	ID  string
	Age time.Duration // of its charge
}

// OwnTransactions returns the first and the last transaction of an account in an index.
func (l Ledger) OwnTransactions(ctx context.Context, account string) (own []OwnTransaction, err error) {
	for _, order := range []string{"", " DESC"} {
		one, err := all(ctx, l, `SELECT transaction_id, {now} - created_at FROM {s}gateway_charges
			WHERE account = ? AND transaction_id IS NOT NULL ORDER BY transaction_id`+order+` LIMIT 1`, []any{account},
			func(row database.Scanner, t *OwnTransaction) error {
				var age int64
				err := row.Scan(&t.ID, &age)
				t.Age = inTime(age)
				return err
			})
		if err != nil {
			return nil, err
		}
		own = append(own, one...)
	}
	return own, nil
}
