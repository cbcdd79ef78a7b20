package merchant

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// deliverOne calls the callback of a fact and marks it as delivered, in one transaction
// that holds the fact's lock. changed is false if another process has it.
func (m *core) deliverOne(ctx context.Context, seq int64) (changed, elsewhere bool) {
	// A callback that has begun may end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.CallbackTimeout)
	defer cancel()
	attempts, returned := 0, false
	defer func() {
		if !returned {
			m.callbackFailed(ctx, seq, attempts, errors.New("the callback ended its goroutine"))
		}
	}()
	// A conflict is no failure of the callback. Where transactions are serializable by
	// default, most are with other callbacks.
	err := dbms.Repeat(ctx, func() error {
		return m.guarded(ctx, "a callback", func() (err error) {
			changed, err = m.tryDelivery(ctx, seq, &attempts)
			return err
		})
	})
	returned = true
	if errors.Is(err, ledger.ErrBusy) { // another transaction has the order: it is tried again soon
		return false, false
	}
	if err != nil {
		return m.callbackFailed(ctx, seq, attempts, err), false
	}
	return changed, !changed
}

// callbackFailed notes that a callback has failed once more, and reports whether it could.
func (m *core) callbackFailed(ctx context.Context, seq int64, attempts int, err error) bool {
	m.fail(ctx, "a callback failed and is repeated", err, slog.Int64("fact", seq))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.CallbackTimeout)
	defer cancel()
	if err = m.outside().Failed(ctx, seq, ledger.Pause(attempts), err.Error()); err != nil {
		m.fail(ctx, "the failure of a callback could not be stored", err, slog.Int64("fact", seq))
	}
	return err == nil
}

// guarded turns a panic into an error.
func (m *core) guarded(ctx context.Context, what string, run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			m.cfg.Logger.ErrorContext(ctx, "merchant: a panic", slog.String("in", what), slog.String("stack", string(debug.Stack())))
			err = errors.New("panic in " + what + ", see the log")
		}
	}()
	return run()
}

// tryDelivery is one attempt, and sets how many have failed before. delivered is false if
// another process has the fact.
func (m *core) tryDelivery(ctx context.Context, seq int64, failures *int) (delivered bool, err error) {
	// The callback's statements may depend on the session's isolation.
	tx, err := m.db.Driver().Begin(ctx, sql.LevelDefault)
	if err != nil {
		return false, err
	}
	defer func() { _ = m.db.Driver().Rollback(ctx, tx) }() // after a commit it does nothing
	f, taken, err := m.ledger(tx).Take(ctx, seq, m.heard)
	if err != nil || !taken {
		return false, err
	}
	*failures = f.Attempts
	if err := m.call(ctx, tx, f); err != nil {
		return false, err
	}
	return true, m.db.Driver().Commit(ctx, tx)
}

// call calls the callback of a fact with its record as it is now.
func (m *core) call(ctx context.Context, tx sqldb.Tx, f *ledger.Fact) error {
	on := &m.callbacks
	switch f.Callback {
	case books.OnPaid:
		return m.callCharge(ctx, tx, f, on.Paid)
	case books.OnGoods:
		return m.callGoods(ctx, tx, f)
	case books.OnAccess:
		return m.callAccess(ctx, tx, f)
	case books.OnPaidAgain:
		return m.callPaidAgain(ctx, tx, f)
	case books.OnUnpaid:
		return m.callCharge(ctx, tx, f, on.Unpaid)
	case books.OnDisputed:
		return m.callCharge(ctx, tx, f, on.Disputed)
	case books.OnRefunded:
		return m.callRefund(ctx, tx, f, on.Refunded)
	case books.OnRefundRejected:
		if on.RefundRejected == nil {
			return m.raise(ctx, tx, f)
		}
		return m.callRefund(ctx, tx, f, on.RefundRejected)
	case books.OnPayout:
		return m.callPayout(ctx, tx, f)
	case books.OnSubscription:
		return m.callSubscription(ctx, tx, f)
	case onProblem:
		return m.callProblem(ctx, tx, f)
	default: // it was not asked for
		return fmt.Errorf("merchant: this release has no callback %q", f.Callback)
	}
}

func (m *core) callCharge(ctx context.Context, tx sqldb.Tx, f *ledger.Fact, call func(context.Context, sqldb.Tx, *Charge) error) error {
	if call == nil {
		return nil
	}
	stored, is, err := m.ledger(tx).Order(ctx, f.Subject, ledger.With{Charge: f.Record})
	if err != nil {
		return err
	}
	if len(is.Charges) == 0 {
		return fmt.Errorf("%w: charge %s", ErrNotFound, f.Record)
	}
	ch, err := m.chargeOf(&is.Charges[0])
	if err != nil {
		return err
	}
	shown, order := ch.shown(), shownOrder(f.Subject, stored)
	shown.OrderLeft, shown.OrderClosed = order.Left(), order.Closed
	return call(ctx, tx, shown)
}

func (m *core) callRefund(ctx context.Context, tx sqldb.Tx, f *ledger.Fact, call func(context.Context, sqldb.Tx, *Refund) error) error {
	if call == nil {
		return nil
	}
	r := &Refund{Book: f.Subject.Book, Account: f.Account, Charge: f.Record, State: Done, Amount: f.About}
	var with ledger.With
	if f.Kind != books.Returned {
		with.Refund = f.Record
	}
	stored, is, err := m.ledger(tx).Order(ctx, f.Subject, with)
	if err != nil {
		return err
	}
	if with.Refund != "" {
		if len(is.Refunds) == 0 {
			return fmt.Errorf("%w: refund %s", ErrNotFound, f.Record)
		}
		own, err := refundOf(&is.Refunds[0])
		if err != nil {
			return err
		}
		r = own.shown()
	}
	r.Order = *shownOrder(f.Subject, stored)
	return call(ctx, tx, r)
}

func (m *core) callProblem(ctx context.Context, tx sqldb.Tx, f *ledger.Fact) error {
	if m.callbacks.Problem == nil {
		return nil
	}
	_, key, _ := strings.Cut(f.Key, problemPrefix)
	rows, err := m.ledger(tx).Problems(ctx, ledger.ProblemWhere{Book: f.Subject.Book, Key: f.Account + ":" + key})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("%w: problem %s", ErrNotFound, key)
	}
	p := problemOf(&rows[0])
	if err := m.reported(ctx, tx, p, &rows[0]); err != nil {
		return err
	}
	return m.callbacks.Problem(ctx, tx, p)
}

// raise makes a problem of a fact without a callback: money that must go back.
func (m *core) raise(ctx context.Context, tx sqldb.Tx, f *ledger.Fact) error {
	p := paidAgain(f.Key, f.Record)
	if f.Callback == books.OnRefundRejected {
		p = &books.Problem{Key: string(ProblemRefundRejected) + "/" + f.Key, Kind: ProblemRefundRejected, Record: f.Record, About: books.AboutRefund}
		p.Text = fmt.Sprintf("refund %s of charge %s was rejected, and there is no RefundRejected callback: the money is still with you", f.Record, f.Charge)
	}
	return m.on(ctx, tx, place{subject: f.Subject}, func(b *bench) error {
		b.problem(m.anyAccount(f.Account, f.Subject.Book), p)
		return nil
	})
}

// paidAgain returns the problem of a payment that its order does not need.
func paidAgain(fact, charge string) *books.Problem {
	return &books.Problem{
		Key: string(books.IsPaidAgain) + "/" + fact, Kind: books.IsPaidAgain, Record: charge,
		Text: fmt.Sprintf("charge %s was paid, but the order was paid or closed before: refund it, or keep the money", charge),
	}
}
