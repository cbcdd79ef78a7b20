package merchant

import (
	"context"
	"errors"
	"slices"

	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// compared is a record that is compared with the gateway.
type compared interface {
	record

	// read reads the gateway, outside of a transaction, and returns what books the reading.
	read(ctx context.Context, source books.Source) (func(*bench) error, error)

	// same reports whether what was read shows only what is booked, so that booking it would
	// change nothing.
	same(lane ledger.Lane) bool
}

// load returns a record of a book without what belongs to it, or [ErrNotFound].
func (m *core) load(ctx context.Context, kind ledger.Kind, book, id string) (compared, error) {
	row, err := m.outside().Row(ctx, kind, book, id)
	if err != nil {
		return nil, err
	}
	return m.recordOf(row)
}

func (m *core) recordOf(row *ledger.Row) (compared, error) {
	switch row.Kind {
	case ledger.Payouts:
		return m.payoutOf(row)
	case ledger.Subscriptions:
		return m.subscriptionOf(row)
	default:
		return m.chargeOf(row)
	}
}

// look reads what the gateway has of a record and books what it shows. The error is
// [ErrNotFound] if there is no such record.
func (m *core) look(ctx context.Context, kind ledger.Kind, book, id string, source books.Source) error {
	r, err := m.load(ctx, kind, book, id)
	if err != nil {
		return err
	}
	return m.refresh(ctx, r, source, ledger.Wait)
}

// refresh reads a record and books what it shows.
func (m *core) refresh(ctx context.Context, r compared, source books.Source, lock ledger.Lock) error {
	book, err := r.read(ctx, source)
	if err != nil {
		return err
	}
	return m.book(ctx, r, source, lock, book)
}

// book books what was read of a record.
func (m *core) book(ctx context.Context, r compared, source books.Source, lock ledger.Lock, book func(*bench) error) error {
	for {
		p := at(r.stored())
		p.lock = lock
		err := m.once(ctx, p, book)
		s, ok := r.(*subscription)
		if other, is := errors.AsType[otherChargeError](err); is && ok && !slices.Contains(s.others, other.transaction) {
			s.others = append(s.others, other.transaction)
			continue
		}
		if err != nil || !ok {
			return err
		}
		if !s.incomplete() {
			return s.unread()
		}
		if book, err = s.read(ctx, source); err != nil {
			return err
		}
	}
}
