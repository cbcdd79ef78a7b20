package ledger

import (
	"context"
	"time"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// Problem is a row of the table of problems.
type Problem struct {
	ID      int64
	Key     string // unique in the book
	Account string
	Subject Subject
	Record  string
	About   books.About
	Kind    books.ProblemKind
	Text    string
	Since   time.Time
}

// AddProblem stores a problem. It returns false if one has its key.
func (l Ledger) AddProblem(ctx context.Context, p *Problem) (added bool, err error) {
	n, err := l.s.Exec(ctx, `INSERT INTO {s}gateway_problems (key, account, book, subject, record, about, kind, text, since)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, {now}) ON CONFLICT (book, key) DO NOTHING`, p.Key, p.Account, p.Subject.Book, p.Subject.ID, p.Record, string(p.About), string(p.Kind), Clean(p.Text))
	return n > 0, err
}

// ProblemWhere selects problems. A zero member selects all.
type ProblemWhere struct {
	ID       int64
	Book     string // of the key
	Key      string
	Subject  Subject
	Accounts []string
	Open     bool
	Not      books.ProblemKind // not those of this kind
}

// Problems returns problems, the oldest first.
func (l Ledger) Problems(ctx context.Context, w ProblemWhere) ([]Problem, error) {
	var c condition
	if w.ID != 0 {
		c.add(`id = ?`, w.ID)
	}
	c.equal("book", w.Book)
	c.equal("key", w.Key)
	c.subject(w.Subject)
	if w.Open {
		c.add(`closed_at IS NULL`)
	}
	if w.Accounts != nil {
		in, args := list(w.Accounts)
		c.add(`account IN `+in, args...)
	}
	if w.Not != "" {
		c.add(`kind <> ?`, string(w.Not))
	}
	return all(ctx, l, `SELECT id, key, account, book, subject, record, about, kind, text, since FROM {s}gateway_problems`+c.where()+` ORDER BY id`, c.args,
		func(row database.Scanner, p *Problem) error {
			var since int64
			err := row.Scan(&p.ID, &p.Key, &p.Account, &p.Subject.Book, &p.Subject.ID, &p.Record, &p.About, &p.Kind, &p.Text, &since)
			p.Since = time.UnixMilli(since)
			return err
		})
}

// OpenProblems counts the open problems of accounts that are not of a kind.
func (l Ledger) OpenProblems(ctx context.Context, accounts []string, not books.ProblemKind) (n int, err error) {
	in, args := list(accounts)
	_, err = l.s.Row(ctx, `SELECT COUNT(*) FROM {s}gateway_problems WHERE closed_at IS NULL AND account IN `+in+` AND kind <> ?`,
		append(args, string(not)), &n)
	return n, err
}

// CloseProblem returns the statement that closes a problem.
func CloseProblem(id int64) Write {
	return Write{SQL: `UPDATE {s}gateway_problems SET closed_at = {now} WHERE id = ?`, Args: []any{id}}
}

// CloseProblems returns the statement that closes the problems of a kind about a record.
func CloseProblems(s Subject, o *books.Over) Write {
	return Write{
		SQL: `UPDATE {s}gateway_problems SET closed_at = {now} WHERE book = ? AND subject = ? AND record = ? AND about = ? AND kind = ?
			AND closed_at IS NULL`,
		Args: []any{s.Book, s.ID, o.Record, string(o.About), string(o.Kind)}, Any: true,
	}
}

// Note is a decision of a person.
type Note struct {
	Account  string
	Subject  Subject
	Record   string
	Problem  string
	Kind     string
	Decision string
	Resource string
	By, Why  string
	Error    string
	At       time.Time
	Call     string // unique: by it a repeated call finds its note
}

// AddNote stores a decision, and returns its number. The error is [ErrNoted] if there is one
// with its call.
func (l Ledger) AddNote(ctx context.Context, n *Note) (id int64, err error) {
	added, err := l.s.Row(ctx, `INSERT INTO {s}gateway_notes (account, book, subject, record, problem, kind, decision, resource_id, decided_by, why,
			call, error, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', {now}) ON CONFLICT (call) DO NOTHING RETURNING id`,
		[]any{
			n.Account, n.Subject.Book, n.Subject.ID, n.Record, n.Problem, n.Kind, n.Decision, n.Resource, Clean(n.By), Clean(n.Why), n.Call,
		}, &id)
	if err == nil && !added {
		err = ErrNoted
	}
	return id, err
}

// FailNote stores that a decision could not be carried out.
func (l Ledger) FailNote(ctx context.Context, call, failure string) error {
	_, err := l.s.Exec(ctx, `UPDATE {s}gateway_notes SET error = ? WHERE call = ?`, Clean(failure), call)
	return err
}

// Notes returns the decisions about a subject.
func (l Ledger) Notes(ctx context.Context, s Subject) ([]Note, error) {
	return all(ctx, l, `SELECT account, record, kind, decision, resource_id, decided_by, why, error, created_at FROM {s}gateway_notes
		WHERE book = ? AND subject = ? ORDER BY id`, []any{s.Book, s.ID}, func(row database.Scanner, n *Note) error {
		var at int64
		err := row.Scan(&n.Account, &n.Record, &n.Kind, &n.Decision, &n.Resource, &n.By, &n.Why, &n.Error, &at)
		n.At = time.UnixMilli(at)
		return err
	})
}
