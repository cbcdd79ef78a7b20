package merchant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
)

// patience is how long work is repeated after a COMMIT whose outcome is not known, until the
// outcome is known.
const patience = 5 * time.Second

// verdicts are the errors that say what the database has: after one of them nothing that a
// lost COMMIT may have stored is there.
var verdicts = []error{
	ErrAccount, ErrNotFound, ErrReused, ErrUnknown, ErrLeft, ErrState, ErrCurrency, ErrAdopting, ErrErased, gateway.ErrValidation,
	ledger.ErrNoted, operations.ErrNotFound, operations.ErrState, operations.ErrMismatch,
}

func isVerdict(err error) bool {
	if errors.Is(err, dbms.ErrUnknownCommit) {
		return false
	}
	for _, v := range verdicts {
		if errors.Is(err, v) {
			return true
		}
	}
	return false
}

// sure runs work. If the outcome of its COMMIT is not known, it runs work again, with other
// connections, until it is, for as long as patience. again is true from the second time on:
// then work finds what the first time may have stored. If the outcome remains unknown, the
// error is [ErrMaybeStored]. Any other error means that nothing is stored.
func sure(ctx context.Context, work func(ctx context.Context, again bool) error) error {
	lost := work(ctx, false)
	if !errors.Is(lost, dbms.ErrUnknownCommit) {
		return lost
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second/2) {
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return maybe(lost)
		}
		// The transaction that may be committed has its locks until it has ended: work waits
		// for them, so what it sees then is final.
		err := work(ctx, true)
		if err == nil || isVerdict(err) {
			return err
		}
	}
}

// maybe returns an error after which something is or may be stored.
func maybe(err error) error {
	if errors.Is(err, ErrMaybeStored) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrMaybeStored, err)
}

// stored is sure for a transaction.
func (m *core) stored(ctx context.Context, run func(ctx context.Context, tx sqldb.Tx, again bool) error) error {
	return sure(ctx, func(ctx context.Context, again bool) error {
		return m.db.Transaction(ctx, func(tx sqldb.Tx) error { return run(ctx, tx, again) })
	})
}

// noted is stored for a transaction that adds a note with a call of its own. Once the note is
// there, the transaction was committed, whatever else has happened since.
func (m *core) noted(ctx context.Context, call string, run func(ctx context.Context, tx sqldb.Tx) error) error {
	return sure(ctx, func(ctx context.Context, again bool) error {
		err := m.db.Transaction(ctx, func(tx sqldb.Tx) error { return run(ctx, tx) })
		if !again || err == nil {
			return err
		}
		switch {
		case errors.Is(err, ledger.ErrNoted):
			return nil
		case !isVerdict(err):
			return err
		}
		note, failed := m.outside().Noted(ctx, call) // the verdict may be about what it has changed itself
		if failed != nil {
			return failed
		}
		if note != nil {
			return nil
		}
		return err
	})
}

// surely is once, with a COMMIT whose outcome is found out. What work does twice must be the
// same as once.
func (m *core) surely(ctx context.Context, p place, work func(*bench) error) error {
	return m.calling(&p, func() error {
		return m.stored(ctx, func(ctx context.Context, tx sqldb.Tx, _ bool) error { return m.on(ctx, tx, p, work) })
	})
}

// calledBy returns the charge that a call of [Merchant.Charge] has made, or nil.
func (b *bench) calledBy(call string) *charge {
	if call == "" {
		return nil
	}
	for _, ch := range b.charges {
		if ch.Call == call {
			return ch
		}
	}
	return nil
}

// decided returns nil if a request has been decided since it was read, as a decision says, and
// otherwise the error that it can't be decided any more.
func (a *account) decided(ctx context.Context, was *operations.Entry, r *Resolution, err error) error {
	list, failed := a.outbox.List(ctx, operations.Query{After: was.ID - 1, Limit: 1})
	switch {
	case failed != nil:
		return failed
	case len(list) == 0 || list[0].ID != was.ID:
		return err
	case r.Decision == Retry && list[0].State != operations.Dead:
		return nil
	}
	text := "resolved as " + string(inOutbox[r.Decision])
	count := func(e *operations.Entry) (n int) {
		for _, note := range e.History {
			if strings.HasPrefix(note.Text, text) {
				n++
			}
		}
		return n
	}
	if r.Decision != Retry && count(list[0]) > count(was) {
		return nil
	}
	return err
}
