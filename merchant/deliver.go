package merchant

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// firstLook is how long after it was woken the loop looks for facts. It does not see the
// commit, so it looks again after twice the time, and so on.
const firstLook = 5 * time.Millisecond

// courier calls the callbacks of facts, at most Workers at a time. A callback that takes
// long keeps its own order waiting and one worker, and no other order.
type courier struct {
	m     *core
	due   []int64        // facts that are due
	busy  map[int64]bool // facts whose callbacks run here
	ended chan delivered
}

// delivered is the end of an attempt. changed is false if another process has the fact.
type delivered struct {
	seq     int64
	changed bool
}

// deliver calls the callbacks until ctx ends.
func (m *core) deliver(ctx context.Context) {
	c := &courier{m: m, busy: map[int64]bool{}, ended: make(chan delivered, m.cfg.Workers)}
	pause, look := m.cfg.PollInterval, true
	for ctx.Err() == nil {
		if look && len(c.due) == 0 {
			look = false
			if err := c.look(ctx); err != nil && ctx.Err() == nil {
				m.fail(ctx, "the facts that are due could not be read", err)
			}
		}
		c.begin(ctx)
		timer := time.NewTimer(pause)
		select {
		case d := <-c.ended:
			// There may be more, or the next one of the same order.
			look = c.end(d) || look
		case <-m.woken:
			pause, look = firstLook, true
		case <-timer.C:
			pause, look = min(2*pause, m.cfg.PollInterval), true
		case <-ctx.Done():
		}
		timer.Stop()
	}
	for len(c.busy) > 0 { // a callback that has begun may end
		c.end(<-c.ended)
	}
}

// look finds facts that are due, at most one of each order. Other processes may have some.
func (c *courier) look(ctx context.Context) error {
	facts, err := c.m.outside().Due(ctx, c.m.names(), 4*c.m.cfg.Workers+len(c.busy))
	for _, seq := range facts {
		if !c.busy[seq] {
			c.due = append(c.due, seq)
		}
	}
	return err
}

// begin starts as many deliveries as there are free workers.
func (c *courier) begin(ctx context.Context) {
	for len(c.due) > 0 && len(c.busy) < c.m.cfg.Workers {
		seq := c.due[0]
		c.due = c.due[1:]
		c.busy[seq] = true
		go func() {
			late := time.AfterFunc(c.m.cfg.CallbackTimeout, func() {
				c.m.fail(ctx, "a callback did not return in time and keeps a worker", context.DeadlineExceeded, slog.Int64("fact", seq))
			})
			defer late.Stop()
			c.ended <- delivered{seq, c.m.deliverOne(ctx, seq)}
		}()
	}
}

func (c *courier) end(d delivered) (changed bool) {
	delete(c.busy, d.seq)
	return d.changed
}

// names returns the names of the process's accounts.
func (m *core) names() []string {
	names := make([]string, 0, len(m.accounts))
	for name := range m.accounts {
		names = append(names, name)
	}
	return names
}

// deliverOne calls the callback of a fact and marks it as delivered, in one transaction
// that holds the fact's lock. changed is false if another process has it.
func (m *core) deliverOne(ctx context.Context, seq int64) (changed bool) {
	// A callback that has begun may end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.CallbackTimeout)
	defer cancel()
	attempts := 0
	// A conflict is no failure of the callback. Where transactions are serializable by
	// default, most are with other callbacks.
	err := dbms.Repeat(ctx, func() error {
		return m.guarded(ctx, func() (err error) {
			changed, err = m.tryDelivery(ctx, seq, &attempts)
			return err
		})
	})
	if err == nil {
		return changed
	}
	m.fail(ctx, "a callback failed and is repeated", err, slog.Int64("fact", seq))
	wait := ledger.Pause(attempts)
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), m.cfg.CallbackTimeout)
	defer cancel()
	err = m.outside().Failed(ctx, seq, wait, err.Error())
	if err != nil {
		m.fail(ctx, "the failure of a callback could not be stored", err, slog.Int64("fact", seq))
	}
	return err == nil
}

// guarded turns a panic into an error.
func (m *core) guarded(ctx context.Context, run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			m.cfg.Logger.ErrorContext(ctx, "merchant: a callback panicked", slog.String("stack", string(debug.Stack())))
			err = errors.New("panic in a callback, see the log")
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
	f, taken, err := m.ledger(tx).Take(ctx, seq)
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
	case books.OnPaidAgain:
		if on.PaidAgain == nil {
			return m.raise(ctx, tx, f)
		}
		return m.callCharge(ctx, tx, f, on.PaidAgain)
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
	default: // of a newer release
		return fmt.Errorf("merchant: this release has no callback %q", f.Callback)
	}
}

func (m *core) callCharge(ctx context.Context, tx sqldb.Tx, f *ledger.Fact, call func(context.Context, sqldb.Tx, *Charge) error) error {
	if call == nil {
		return nil
	}
	l := m.ledger(tx)
	ch, err := m.loadCharge(ctx, l, f.Record)
	if err != nil {
		return err
	}
	order, err := m.showOrder(ctx, l, f.Subject, false)
	if err != nil {
		return err
	}
	shown := ch.shown()
	shown.OrderLeft = order.Left()
	return call(ctx, tx, shown)
}

func (m *core) callRefund(ctx context.Context, tx sqldb.Tx, f *ledger.Fact, call func(context.Context, sqldb.Tx, *Refund) error) error {
	if call == nil {
		return nil
	}
	l := m.ledger(tx)
	r := &Refund{Account: f.Account, Charge: f.Record, State: Done, Amount: f.About}
	if f.Kind != books.Returned {
		stored, ch, err := m.loadRefund(ctx, l, f.Record)
		if err == nil && stored == nil {
			err = fmt.Errorf("%w: refund %s", ErrNotFound, f.Record)
		}
		if err != nil {
			return err
		}
		r = ch.refund(&stored.Refund)
	}
	order, err := m.showOrder(ctx, l, f.Subject, false)
	if err != nil {
		return err
	}
	r.Order = *order
	return call(ctx, tx, r)
}

func (m *core) callProblem(ctx context.Context, tx sqldb.Tx, f *ledger.Fact) error {
	if m.callbacks.Problem == nil {
		return nil
	}
	_, key, _ := strings.Cut(f.Key, problemPrefix)
	rows, err := m.ledger(tx).Problems(ctx, ledger.ProblemWhere{Key: f.Account + ":" + key})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("%w: problem %s", ErrNotFound, key)
	}
	p := problemOf(&rows[0])
	if err := m.reported(ctx, tx, p); err != nil {
		return err
	}
	return m.callbacks.Problem(ctx, tx, p)
}

// raise makes a problem of a fact without a callback: money that must go back.
func (m *core) raise(ctx context.Context, tx sqldb.Tx, f *ledger.Fact) error {
	p := &books.Problem{Kind: books.IsPaidAgain, Record: f.Record}
	p.Text = fmt.Sprintf("charge %s was paid, but the order was paid or closed before: refund it, or keep the money", f.Record)
	if f.Callback == books.OnRefundRejected {
		p.Kind = ProblemRefundRejected
		p.Text = fmt.Sprintf("refund %s of charge %s was rejected, and there is no RefundRejected callback: the money is still with you", f.Record, f.Charge)
	}
	p.Key = string(p.Kind) + "/" + f.Key
	return m.on(ctx, tx, place{subject: f.Subject}, func(b *bench) error {
		b.problem(m.anyAccount(f.Account), p)
		return nil
	})
}
