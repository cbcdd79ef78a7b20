package ledger

import (
	"context"

	"github.com/gateway-go/gateway/database"
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

// Refunds returns the refunds of the charges of a subject, of one charge, or the one with an
// ID, the oldest first.
func (l Ledger) Refunds(ctx context.Context, w RefundWhere) ([]Refund, error) {
	var c condition
	if w.ID != "" {
		c.add(`r.book = ? AND r.id = ?`, w.Book, w.ID)
	}
	c.equal("r.charge", w.Charge)
	c.subject("c.", w.Subject)
	return all(ctx, l, `SELECT r.id, r.charge, c.account, c.book, c.subject, r.state, r.record
		FROM {s}gateway_refunds AS r JOIN {s}gateway_charges AS c ON c.id = r.charge`+c.where()+` ORDER BY r.created_at, r.id`, c.args,
		func(row database.Scanner, r *Refund) error {
			return row.Scan(&r.ID, &r.Charge, &r.Account, &r.Subject.Book, &r.Subject.ID, &r.State, &r.Record)
		})
}

// RefundWhere selects refunds: the one with an ID in a book, or those of a charge or a subject.
type RefundWhere struct {
	Book, ID string
	Charge   string
	Subject  Subject
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
