package ledger

import (
	"context"
	"strings"
	"time"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// NewFact is a fact to be stored.
type NewFact struct {
	books.Fact

	StoredKey string // unique in the book
	Account   string
	Book      string
	Month     string // in the account's zone
}

// AddFacts returns the statement that stores facts in their order, at least one. They are
// delivered in this order.
func AddFacts(facts []NewFact) Write {
	const columns = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {now}, CASE WHEN ? = '' THEN {now} ELSE NULL END, {now}, 0, '')`
	var args []any
	for i := range facts {
		f := &facts[i]
		var amount any
		if f.Amount != 0 {
			amount = f.Amount
		}
		args = append(args, f.StoredKey, f.Account, f.Book, f.Order, string(StreamOf(f.Callback)), f.Record, f.Charge, string(f.Kind), amount, string(f.Currency), f.About,
			f.At.UnixMilli(), f.Month, string(f.Source), string(f.Callback), string(f.Callback))
	}
	return Write{
		SQL: `INSERT INTO {s}gateway_facts (key, account, book, subject, stream, record, charge, kind, amount, currency, about, at, month, source,
			callback, created_at, delivered_at, due_at, attempts, error) VALUES ` + columns + strings.Repeat(`, `+columns, len(facts)-1),
		Args: args, Any: true,
	}
}

// Fact is a fact that is reported to the merchant.
type Fact struct {
	Seq      int64
	Key      string
	Account  string
	Subject  Subject
	Record   string
	Charge   string
	Kind     books.Kind
	About    int64
	Callback books.Callback
	Attempts int
}

// Stream is a sequence of facts of an order: a fact waits for the earlier ones of its stream.
type Stream string

// The streams. What says whether to send the goods, or until when a member has access, does not
// wait for a mail that fails.
const (
	Events Stream = ""
	Goods  Stream = "goods"
	Access Stream = "access"
)

// StreamOf returns the stream of the facts with a callback.
func StreamOf(c books.Callback) Stream {
	switch c {
	case books.OnGoods:
		return Goods
	case books.OnAccess:
		return Access
	default:
		return Events
	}
}

// firstOfOrder selects facts without an earlier one of the same order and stream that is not
// delivered. What other processes deliver, because this one has no such callback, does not
// count. Facts of one order are stored under its lock, so their numbers are in the order of
// their commits.
//
// The planner takes a queue for empty, because its statistics are of a moment when it was:
// then it would read the whole queue for each of its facts. No other index than
// gateway_facts_open has this expression, and a scalar subquery is no join.
func firstOfOrder(callbacks []books.Callback) (condition string, args []any) {
	in, args := list(callbacks)
	return `(SELECT e.seq FROM {s}gateway_facts AS e WHERE e.book = f.book AND e.subject = f.subject AND e.stream = f.stream AND e.seq < f.seq
		AND (e.delivered_at + 0) IS NULL AND e.callback IN ` + in + ` ORDER BY e.subject, e.book, e.stream, e.seq LIMIT 1) IS NULL`, args
}

// longestPause is how long a fact waits at most after a failure.
const longestPause = time.Hour

// due selects facts whose callbacks are due. One that has not failed yet is due at once, and
// none waits longer than after any failure, also if the database's clock was set back.
const due = `(f.due_at <= {now} OR f.attempts = 0 OR f.due_at > {now} + 3600000)`

// Pause returns how long a fact waits after so many failures.
func Pause(attempts int) time.Duration { return min(time.Second<<min(attempts, 12), longestPause) }

// Due returns the facts of accounts with one of these callbacks that are due, at most one of
// each stream of an order.
func (l Ledger) Due(ctx context.Context, accounts []string, callbacks []books.Callback, limit int) ([]int64, error) {
	inAccounts, args := list(accounts)
	inCallbacks, named := list(callbacks)
	first, earlier := firstOfOrder(callbacks)
	args = append(append(append(args, named...), earlier...), limit)
	return all(ctx, l, `SELECT seq FROM {s}gateway_facts AS f WHERE f.delivered_at IS NULL AND `+due+` AND f.account IN `+inAccounts+`
		AND f.callback IN `+inCallbacks+` AND `+first+` ORDER BY f.due_at, f.seq LIMIT ?`, args,
		func(row database.Scanner, seq *int64) error { return row.Scan(seq) })
}

// Take marks a fact as delivered, and returns it, unless it is delivered or another
// transaction has it. A scalar subquery is no join, for which the queue would be read.
func (l Ledger) Take(ctx context.Context, seq int64, callbacks []books.Callback) (f *Fact, taken bool, err error) {
	f = &Fact{Seq: seq}
	first, earlier := firstOfOrder(callbacks)
	taken, err = l.s.Row(ctx, `UPDATE {s}gateway_facts SET delivered_at = {now}, error = '' WHERE seq = (
			SELECT f.seq FROM {s}gateway_facts AS f WHERE f.seq = ? AND f.delivered_at IS NULL AND `+first+` {skip})
		RETURNING key, account, book, subject, record, charge, kind, about, callback, attempts`, append([]any{seq}, earlier...),
		&f.Key, &f.Account, &f.Subject.Book, &f.Subject.ID, &f.Record, &f.Charge, &f.Kind, &f.About, &f.Callback, &f.Attempts)
	return f, taken, err
}

// Failed notes that a callback has failed.
func (l Ledger) Failed(ctx context.Context, seq int64, wait time.Duration, failure string) error {
	_, err := l.s.Exec(ctx, `UPDATE {s}gateway_facts SET attempts = attempts + 1, due_at = {now} + ?, error = ? WHERE seq = ? AND delivered_at IS NULL`,
		wait.Milliseconds(), Clean(failure), seq)
	return err
}

// Again makes a fact due whose callback has failed at least so often, and returns where it
// belongs. It returns [ErrNotFound] if there is no such fact.
func (l Ledger) Again(ctx context.Context, seq int64, failures int) (account string, subject Subject, record string, err error) {
	found, err := l.s.Row(ctx, `UPDATE {s}gateway_facts SET due_at = {now} WHERE seq = ? AND delivered_at IS NULL AND attempts >= ?
		RETURNING account, book, subject, record`, []any{seq, failures}, &account, &subject.Book, &subject.ID, &record)
	if err == nil && !found {
		err = ErrNotFound
	}
	return account, subject, record, err
}

// Newest returns the number of the newest fact.
func (l Ledger) Newest(ctx context.Context) (seq int64, err error) {
	_, err = l.s.Row(ctx, `SELECT COALESCE(MAX(seq), 0) FROM {s}gateway_facts`, nil, &seq)
	return seq, err
}

// FactStep is a fact as the story of an order shows it.
type FactStep struct {
	NewFact

	Created   time.Time
	Delivered time.Time // zero before
	Skipped   bool      // no process had its callback
	Attempts  int
	Error     string
}

// FactsOf returns the facts of a subject.
func (l Ledger) FactsOf(ctx context.Context, subject Subject) ([]FactStep, error) {
	return all(ctx, l, `SELECT account, record, kind, COALESCE(amount, 0), currency, about, at, source, callback, created_at,
		COALESCE(delivered_at, 0), skipped, attempts, error FROM {s}gateway_facts WHERE book = ? AND subject = ? ORDER BY seq`,
		[]any{subject.Book, subject.ID}, func(row database.Scanner, s *FactStep) error {
			var at, created, delivered, skipped int64
			err := row.Scan(&s.Account, &s.Record, &s.Kind, &s.Amount, &s.Currency, &s.About, &at, &s.Source, &s.Callback, &created, &delivered,
				&skipped, &s.Attempts, &s.Error)
			s.At, s.Created, s.Skipped = time.UnixMilli(at), time.UnixMilli(created), skipped != 0
			if delivered != 0 {
				s.Delivered = time.UnixMilli(delivered)
			}
			return err
		})
}

// Failing is a fact whose callback has failed often.
type Failing struct {
	Seq      int64
	Account  string
	Subject  Subject
	Record   string
	Callback string
	Attempts int
	Error    string
	Since    time.Time
}

// FailingWhere selects failing callbacks by accounts, by a subject or by their number.
type FailingWhere struct {
	Accounts []string
	Subject  Subject
	Seq      int64
}

// Failing returns the facts whose callbacks have failed at least so often.
func (l Ledger) Failing(ctx context.Context, failures int, w FailingWhere) ([]Failing, error) {
	c := condition{text: `delivered_at IS NULL`}
	c.subject(w.Subject)
	if w.Seq != 0 {
		c.add(`seq = ?`, w.Seq)
	}
	if w.Accounts != nil {
		in, args := list(w.Accounts)
		c.add(`account IN `+in, args...)
	}
	c.add(`attempts >= ?`, failures)
	return all(ctx, l, `SELECT seq, account, book, subject, record, callback, attempts, error, created_at FROM {s}gateway_facts`+c.where()+` ORDER BY due_at, seq`,
		c.args, func(row database.Scanner, f *Failing) error {
			var since int64
			err := row.Scan(&f.Seq, &f.Account, &f.Subject.Book, &f.Subject.ID, &f.Record, &f.Callback, &f.Attempts, &f.Error, &since)
			f.Since = time.UnixMilli(since)
			return err
		})
}

// Waiting counts the facts whose callbacks have not succeeded yet.
type Waiting struct {
	All     int           // all of them
	Failing int           // those whose callback has failed
	Often   int           // those whose callback has failed often
	Oldest  time.Duration // for how long the oldest one has waited
}

// Waiting counts what waits in accounts for these callbacks.
func (l Ledger) Waiting(ctx context.Context, accounts []string, callbacks []books.Callback, failures int) (w Waiting, err error) {
	in, args := list(accounts)
	inCallbacks, named := list(callbacks)
	args = append(args, named...)
	var oldest int64
	_, err = l.s.Row(ctx, `SELECT COUNT(*), COUNT(CASE WHEN attempts > 0 THEN 1 END), COUNT(CASE WHEN attempts >= ? THEN 1 END),
		COALESCE({now} - MIN(created_at), 0) FROM {s}gateway_facts WHERE delivered_at IS NULL AND account IN `+in+`
		AND callback IN `+inCallbacks, append([]any{failures}, args...), &w.All, &w.Failing, &w.Often, &oldest)
	// If the clock was set back since, it is known by how much only.
	w.Oldest = max(inTime(oldest), inTime(-oldest))
	return w, err
}

// Late returns the facts of accounts with one of these callbacks that have waited for a time,
// at most limit.
func (l Ledger) Late(ctx context.Context, accounts []string, callbacks []books.Callback, after time.Duration, limit int) ([]int64, error) {
	inAccounts, args := list(accounts)
	inCallbacks, named := list(callbacks)
	return all(ctx, l, `SELECT seq FROM {s}gateway_facts WHERE delivered_at IS NULL AND account IN `+inAccounts+` AND callback IN `+inCallbacks+`
		AND created_at <= {now} - ? ORDER BY due_at, seq LIMIT ?`, append(append(args, named...), after.Milliseconds(), limit),
		func(row database.Scanner, seq *int64) error { return row.Scan(seq) })
}

// Skip marks facts as delivered although no process had their callback, and counts them.
func (l Ledger) Skip(ctx context.Context, facts []int64) error {
	args := make([]any, len(facts))
	for i, seq := range facts {
		args[i] = seq
	}
	type of struct{ account, callback string }
	skipped, err := all(ctx, l, `UPDATE {s}gateway_facts SET delivered_at = {now}, skipped = 1
		WHERE seq IN (?`+strings.Repeat(`, ?`, len(facts)-1)+`) AND delivered_at IS NULL RETURNING account, callback`, args,
		func(row database.Scanner, o *of) error { return row.Scan(&o.account, &o.callback) })
	if err != nil {
		return err
	}
	counts := make(map[of]int)
	for _, o := range skipped {
		counts[o]++
	}
	for o, n := range counts {
		if err := l.s.Must(ctx, `INSERT INTO {s}gateway_skipped (account, callback, day, n) VALUES (?, ?, {now} / 86400000, ?)
			ON CONFLICT (account, callback, day) DO UPDATE SET n = gateway_skipped.n + excluded.n`, o.account, o.callback, n); err != nil {
			return err
		}
	}
	return nil
}

// Skipped counts the facts of accounts that were skipped in the last days, by their callbacks: nil
// if there are none.
func (l Ledger) Skipped(ctx context.Context, accounts []string, days int) (map[string]int, error) {
	in, args := list(accounts)
	type of struct {
		callback string
		n        int
	}
	counts, err := all(ctx, l, `SELECT callback, CAST(SUM(n) AS {int}) FROM {s}gateway_skipped WHERE account IN `+in+` AND day > {now} / 86400000 - ?
		GROUP BY callback`, append(args, days), func(row database.Scanner, o *of) error { return row.Scan(&o.callback, &o.n) })
	var byCallback map[string]int
	for _, o := range counts {
		if byCallback == nil {
			byCallback = make(map[string]int)
		}
		byCallback[o.callback] = o.n
	}
	return byCallback, err
}

// Clean returns a text that every database can store.
func Clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
