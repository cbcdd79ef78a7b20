package ledger

import (
	"context"
	"errors"
)

// ErrNoted reports that a call has stored its note before.
var ErrNoted = errors.New("merchant: the call has stored its decision before")

// Noted returns what the note of a call is about, nil if there is none.
func (l Ledger) Noted(ctx context.Context, call string) (*Note, error) {
	n := Note{Call: call}
	found, err := l.first(ctx, `SELECT account, book, subject, record, problem FROM {s}gateway_notes WHERE call = ?`, []any{call},
		&n.Account, &n.Subject.Book, &n.Subject.ID, &n.Record, &n.Problem)
	if err != nil || !found {
		return nil, err
	}
	return &n, nil
}
