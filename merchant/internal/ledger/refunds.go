package ledger

import (
	"context"

	"github.com/gateway-go/gateway/merchant/internal/books"
)

// Refund is a row of the table of refunds. Its account and its subject are those of its
// charge.
type Refund struct {
	ID      string
	Charge  string
	Account string
	Subject Subject
	State   books.State
	Record  string
}

// Refund returns the refund with an ID in a book, or [ErrNotFound].
func (l Ledger) Refund(ctx context.Context, book, id string) (*Refund, error) {
	r := new(Refund)
	found, err := l.first(ctx, `SELECT r.id, r.charge, c.account, c.book, c.subject, r.state, r.record
		FROM {s}gateway_refunds AS r JOIN {s}gateway_charges AS c ON c.id = r.charge WHERE r.book = ? AND r.id = ?`, []any{book, id},
		&r.ID, &r.Charge, &r.Account, &r.Subject.Book, &r.Subject.ID, &r.State, &r.Record)
	if err == nil && !found {
		err = notFound("refund", id)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Add returns the statement that stores a new refund. taken is the error if its ID is taken.
func (r *Refund) Add(taken error) Write {
	return Write{
		SQL: `INSERT INTO {s}gateway_refunds (book, id, charge, state, created_at, record) VALUES (?, ?, ?, ?, {now}, ?)
			ON CONFLICT DO NOTHING`,
		Args: []any{r.Subject.Book, r.ID, r.Charge, string(r.State), r.Record}, Taken: taken,
	}
}

// Remove returns the statement that removes a refund which this transaction has added.
func (r *Refund) Remove() Write {
	return Write{SQL: `DELETE FROM {s}gateway_refunds WHERE book = ? AND id = ?`, Args: []any{r.Subject.Book, r.ID}, Any: true}
}

// Save returns the statement that stores a changed refund.
func (r *Refund) Save() Write {
	return Write{
		SQL:  `UPDATE {s}gateway_refunds SET state = ?, record = ? WHERE book = ? AND id = ?`,
		Args: []any{string(r.State), r.Record, r.Subject.Book, r.ID},
	}
}
