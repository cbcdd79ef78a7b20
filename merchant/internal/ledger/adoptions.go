package ledger

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// Adoption is a resource that other code made, and that the books are to have.
type Adoption struct {
	Account  string
	Kind     Kind   // of the record
	Resource string // the gateway's ID, in lower case
	Subject  Subject
	Request  string // encoded by package merchant
	State    AdoptionState
	Attempts int
	Error    string        // of the last attempt
	Age      time.Duration // since it was asked for
}

// AdoptionState is the progress of an adoption.
type AdoptionState string

// The states of an adoption.
const (
	AdoptionWaiting AdoptionState = "waiting"
	AdoptionDone    AdoptionState = "done"
	AdoptionFailed  AdoptionState = "failed" // a person must look
)

// AdoptTask is the adoption of what waits.
var AdoptTask = Task{column: "adopt_at", condition: ` AND ` + adopts}

// adopts are the accounts with adoptions that are due. The order keeps the planner from reading the
// whole table.
const adopts = `(SELECT d.account FROM {s}gateway_adoptions AS d WHERE d.account = gateway_accounts.name AND d.state = 'waiting' AND d.due_at <= {now}
	ORDER BY d.account, d.due_at LIMIT 1) IS NOT NULL`

const adoptionColumns = `account, kind, resource, book, subject, request, state, attempts, error, {now} - since`

func (l Ledger) adoptions(ctx context.Context, where string, args ...any) ([]Adoption, error) {
	return all(ctx, l, `SELECT `+adoptionColumns+` FROM {s}gateway_adoptions`+where, args, func(row database.Scanner, a *Adoption) error {
		var age int64
		err := row.Scan(&a.Account, &a.Kind, &a.Resource, &a.Subject.Book, &a.Subject.ID, &a.Request, &a.State, &a.Attempts, &a.Error, &age)
		a.Age = inTime(age)
		return err
	})
}

// StoredAdoptions returns the adoptions of an account of some resources of a kind.
func (l Ledger) StoredAdoptions(ctx context.Context, account string, k Kind, resources []string) ([]Adoption, error) {
	in, args := list(resources)
	return l.adoptions(ctx, ` WHERE account = ? AND kind = ? AND resource IN `+in, append([]any{account, string(k)}, args...)...)
}

// AddAdoptions stores adoptions, and makes those wait again that have failed; it leaves the others
// alone. It returns how many it has stored or changed. Each is of another resource. Orders that
// have none yet are made, so that who charges one sees that it waits.
func (l Ledger) AddAdoptions(ctx context.Context, list []Adoption) (added int64, err error) {
	var subjects []Subject
	for i := range list {
		if OrderID(list[i].Subject) != "" {
			subjects = append(subjects, list[i].Subject)
		}
	}
	// Always in the same order, so that two transactions don't wait for each other.
	slices.SortFunc(subjects, func(a, b Subject) int { return strings.Compare(a.ID+"\x00"+a.Book, b.ID+"\x00"+b.Book) })
	subjects = slices.Compact(subjects)
	if err := l.lockOrders(ctx, subjects); err != nil {
		return 0, err
	}
	var args []any
	for i := range list {
		a := &list[i]
		args = append(args, a.Account, string(a.Kind), a.Resource, a.Subject.Book, a.Subject.ID, a.Request)
	}
	added, err = l.s.Exec(ctx, `INSERT INTO {s}gateway_adoptions (account, kind, resource, book, subject, request, state, since, due_at, attempts, error)
		VALUES `+repeated(`(?, ?, ?, ?, ?, ?, 'waiting', {now}, {now}, 0, '')`, len(list))+`
		ON CONFLICT (account, kind, resource) DO UPDATE SET book = excluded.book, subject = excluded.subject, request = excluded.request,
			state = excluded.state, since = excluded.since, due_at = excluded.due_at, attempts = 0, error = ''
		WHERE gateway_adoptions.state = 'failed'`, args...)
	if err != nil {
		return 0, err
	}
	return added, l.countAdopting(ctx, subjects)
}

// repeated returns a text several times, separated by commas.
func repeated(text string, n int) string { return text + strings.Repeat(`, `+text, n-1) }

// lockOrders makes orders that are missing, and locks all.
func (l Ledger) lockOrders(ctx context.Context, subjects []Subject) error {
	if len(subjects) == 0 {
		return nil
	}
	var args []any
	for _, s := range subjects {
		args = append(args, s.Book, s.ID)
	}
	_, err := l.s.Exec(ctx, `INSERT INTO {s}gateway_orders (book, subject, currency, paid, fee, refunded, disputed, paid_out, adjusted,
			settled_by, ends_at)
		VALUES `+repeated(`(?, ?, '', 0, 0, 0, 0, 0, 0, '', {now})`, len(subjects))+`
		ON CONFLICT (subject, book) DO UPDATE SET version = gateway_orders.version + 1`, args...)
	return err
}

// countAdopting counts the adoptions that locked orders wait for.
func (l Ledger) countAdopting(ctx context.Context, subjects []Subject) error {
	if len(subjects) == 0 {
		return nil
	}
	var args []any
	for _, s := range subjects {
		args = append(args, s.ID, s.Book)
	}
	_, err := l.s.Exec(ctx, `UPDATE {s}gateway_orders SET adopting = (SELECT COUNT(*) FROM {s}gateway_adoptions AS d
			WHERE d.subject = gateway_orders.subject AND d.book = gateway_orders.book AND d.state = 'waiting')
		WHERE (subject, book) IN (VALUES `+repeated(`(?, ?)`, len(subjects))+`)`, args...)
	return err
}

// DueAdoptions returns adoptions of an account that are due, those that have waited longest first.
func (l Ledger) DueAdoptions(ctx context.Context, account string, limit int) ([]Adoption, error) {
	return l.adoptions(ctx, ` WHERE account = ? AND state = 'waiting' AND due_at <= {now} ORDER BY account, due_at LIMIT ?`, account, limit)
}

// AdoptionsOf returns the adoptions that a subject waits for.
func (l Ledger) AdoptionsOf(ctx context.Context, s Subject) ([]Adoption, error) {
	return l.adoptions(ctx, ` WHERE subject = ? AND book = ? AND state = 'waiting'`, s.ID, s.Book)
}

// IsAdopted reports whether a resource waits for its adoption, or could not be adopted.
func (l Ledger) IsAdopted(ctx context.Context, account string, k Kind, resource string) (bool, error) {
	return l.first(ctx, `SELECT state FROM {s}gateway_adoptions WHERE account = ? AND kind = ? AND resource = ? AND state <> 'done'`,
		[]any{account, string(k), strings.ToLower(resource)}, new(string))
}

// EndAdoption stores in the transaction that has locked its subject what became of an adoption, if
// it was asked for: done, or failed with an error.
func (l Ledger) EndAdoption(ctx context.Context, a *Adoption, state AdoptionState, failure string) error {
	n, err := l.s.Exec(ctx, `UPDATE {s}gateway_adoptions SET state = ?, error = ? WHERE account = ? AND kind = ? AND resource = ? AND state <> 'done'`,
		string(state), Clean(failure), a.Account, string(a.Kind), a.Resource)
	if err != nil || n == 0 || OrderID(a.Subject) == "" {
		return err
	}
	return l.countAdopting(ctx, []Subject{a.Subject})
}

// AddAdopted adds the entries with which a resource came into the books.
func (l Ledger) AddAdopted(ctx context.Context, account string, currency gateway.Currency, amount int64) error {
	return l.s.Must(ctx, `INSERT INTO {s}gateway_adopted (account, currency, amount) VALUES (?, ?, ?)
		ON CONFLICT (account, currency) DO UPDATE SET amount = gateway_adopted.amount + excluded.amount`, account, string(currency), amount)
}

// AdoptedIn returns the entries with which resources came into the books, and that are of some
// months: when each was, and its amount.
func (l Ledger) AdoptedIn(ctx context.Context, account string, currency gateway.Currency, months []string) ([]AdoptedEntry, error) {
	in, args := list(months)
	return all(ctx, l, `SELECT at, amount FROM {s}gateway_facts WHERE account = ? AND month IN `+in+` AND amount IS NOT NULL
		AND currency = ? AND source IN (?, ?)`,
		slices.Concat([]any{account}, args, []any{string(currency), string(books.FromEarlier), string(books.FromEarlierCalled)}),
		func(row database.Scanner, e *AdoptedEntry) error {
			var at int64
			err := row.Scan(&at, &e.Amount)
			e.At = time.UnixMilli(at)
			return err
		})
}

// AdoptedEntry is an entry with which a resource came into the books.
type AdoptedEntry struct {
	At     time.Time
	Amount int64
}

// AdoptLater stores that an attempt has failed, and when the next one is due.
func (l Ledger) AdoptLater(ctx context.Context, a *Adoption, wait time.Duration, failure string) error {
	_, err := l.s.Exec(ctx, `UPDATE {s}gateway_adoptions SET due_at = {now} + ?, attempts = attempts + 1, error = ?
		WHERE account = ? AND kind = ? AND resource = ? AND state = 'waiting'`,
		wait.Milliseconds(), Clean(failure), a.Account, string(a.Kind), a.Resource)
	return err
}

// WaitingAdoptions counts the adoptions that wait, by account.
func (l Ledger) WaitingAdoptions(ctx context.Context, accounts []string) (map[string]int, error) {
	in, args := list(accounts)
	counts := make(map[string]int)
	_, err := all(ctx, l, `SELECT account, COUNT(*) FROM {s}gateway_adoptions WHERE state = 'waiting' AND account IN `+in+` GROUP BY account`, args,
		func(row database.Scanner, _ *struct{}) error {
			var account string
			var n int
			err := row.Scan(&account, &n)
			counts[account] = n
			return err
		})
	return counts, err
}

// CountAdoptions counts the adoptions of an account by their state.
func (l Ledger) CountAdoptions(ctx context.Context, account string) (map[AdoptionState]int, error) {
	counts := make(map[AdoptionState]int)
	_, err := all(ctx, l, `SELECT state, COUNT(*) FROM {s}gateway_adoptions WHERE account = ? GROUP BY state`, []any{account},
		func(row database.Scanner, _ *struct{}) error {
			var state AdoptionState
			var n int
			err := row.Scan(&state, &n)
			counts[state] = n
			return err
		})
	return counts, err
}
