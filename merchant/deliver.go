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

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// delivery is a fact that is reported to the merchant.
type delivery struct {
	seq      int64
	account  string
	subject  string
	record   string
	charge   string
	kind     books.Kind
	about    int64
	key      string
	callback books.Callback
	attempts int
}

// firstLook is how long after it was woken the loop looks for facts. It does not see the
// commit, so it looks again after twice the time, and so on.
const firstLook = 5 * time.Millisecond

// courier calls the callbacks of facts, at most Workers at a time. A callback that takes
// long keeps its own order waiting and one worker, and no other order.
type courier struct {
	m     *Merchant
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
func (m *Merchant) deliver(ctx context.Context) {
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
	names, args := c.m.names()
	return c.m.store.conn().each(ctx, `SELECT seq FROM gateway_facts AS f WHERE delivered_at IS NULL AND due_at <= {now} AND account IN (`+names+`)
		AND `+firstOfOrder+` ORDER BY due_at, seq LIMIT ?`, append(args, 4*c.m.cfg.Workers+len(c.busy)), func(row database.Scanner) error {
		var seq int64
		err := row.Scan(&seq)
		if !c.busy[seq] {
			c.due = append(c.due, seq)
		}
		return err
	})
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

// firstOfOrder selects facts without an earlier one of the same order that is not
// delivered. Facts of one order are stored under its lock, so their numbers are in the
// order of their commits.
const firstOfOrder = `NOT EXISTS (SELECT 1 FROM gateway_facts AS e WHERE e.subject = f.subject AND e.seq < f.seq AND e.delivered_at IS NULL)`

// names returns the parameters of a list of the process's accounts.
func (m *Merchant) names() (parameters string, args []any) {
	for name := range m.accounts {
		args = append(args, name)
	}
	return "?" + strings.Repeat(", ?", len(args)-1), args
}

// deliverOne calls the callback of a fact and marks it as delivered, in one transaction
// that holds the fact's lock. changed is false if another process has it.
func (m *Merchant) deliverOne(ctx context.Context, seq int64) (changed bool) {
	// A callback that has begun may end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.CallbackTimeout)
	defer cancel()
	f := &delivery{seq: seq}
	// A conflict is no failure of the callback. Where transactions are serializable by
	// default, most are with other callbacks.
	err := dbms.Repeat(ctx, func() error {
		return m.guarded(ctx, func() (err error) {
			changed, err = m.tryDelivery(ctx, f)
			return err
		})
	})
	if err == nil {
		return changed
	}
	m.fail(ctx, "a callback failed and is repeated", err, slog.Int64("fact", seq))
	wait := min(time.Second<<min(f.attempts, 12), time.Hour)
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), m.cfg.CallbackTimeout)
	defer cancel()
	_, err = m.store.conn().exec(ctx, `UPDATE gateway_facts SET attempts = attempts + 1, due_at = {now} + ?, error = ? WHERE seq = ? AND delivered_at IS NULL`,
		wait.Milliseconds(), strings.ToValidUTF8(err.Error(), "\uFFFD"), seq)
	if err != nil {
		m.fail(ctx, "the failure of a callback could not be stored", err, slog.Int64("fact", seq))
	}
	return err == nil
}

// guarded turns a panic into an error.
func (m *Merchant) guarded(ctx context.Context, run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			m.cfg.Logger.ErrorContext(ctx, "merchant: a callback panicked", slog.String("stack", string(debug.Stack())))
			err = errors.New("panic in a callback, see the log")
		}
	}()
	return run()
}

// tryDelivery is one attempt, and reads the fact. delivered is false if another process has
// it.
func (m *Merchant) tryDelivery(ctx context.Context, f *delivery) (delivered bool, err error) {
	// The callback's statements may depend on the session's isolation.
	tx, err := m.store.driver.Begin(ctx, sql.LevelDefault)
	if err != nil {
		return false, err
	}
	defer func() { _ = m.store.driver.Rollback(ctx, tx) }() // after a commit it does nothing
	c := m.store.in(tx)
	found, err := c.first(ctx, `SELECT account, subject, record, charge, kind, about, key, callback, attempts FROM gateway_facts AS f
		WHERE seq = ? AND delivered_at IS NULL AND `+firstOfOrder+` {skip}`, []any{f.seq},
		&f.account, &f.subject, &f.record, &f.charge, &f.kind, &f.about, &f.key, &f.callback, &f.attempts)
	if err != nil || !found {
		return false, err
	}
	if err := c.must(ctx, `UPDATE gateway_facts SET delivered_at = {now}, error = '' WHERE seq = ?`, f.seq); err != nil {
		return false, err
	}
	if err := m.call(ctx, tx, f); err != nil {
		return false, err
	}
	return true, m.store.driver.Commit(ctx, tx)
}

// call calls the callback of a fact with its record as it is now.
func (m *Merchant) call(ctx context.Context, tx *sql.Tx, f *delivery) error {
	on := &m.cfg.On
	switch f.callback {
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
		return fmt.Errorf("merchant: this release has no callback %q", f.callback)
	}
}

func (m *Merchant) callCharge(ctx context.Context, tx *sql.Tx, f *delivery, call func(context.Context, *sql.Tx, *Charge) error) error {
	if call == nil {
		return nil
	}
	c := m.store.in(tx)
	ch, err := m.readCharge(ctx, c, f.record)
	if err != nil {
		return err
	}
	order, err := m.readOrder(ctx, c, f.subject, false)
	if err != nil {
		return err
	}
	shown := ch.shown()
	shown.OrderLeft = order.Left()
	return call(ctx, tx, shown)
}

func (m *Merchant) callRefund(ctx context.Context, tx *sql.Tx, f *delivery, call func(context.Context, *sql.Tx, *Refund) error) error {
	if call == nil {
		return nil
	}
	c := m.store.in(tx)
	r := &Refund{Account: f.account, Charge: f.record, State: Done, Amount: f.about}
	if f.kind != books.Returned {
		list, err := readRefunds(ctx, c, `WHERE r.id = ?`, f.record)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return fmt.Errorf("%w: refund %s", ErrNotFound, f.record)
		}
		ch, err := m.readCharge(ctx, c, list[0].charge)
		if err != nil {
			return err
		}
		r = ch.refund(&list[0].Refund)
	}
	order, err := m.readOrder(ctx, c, f.subject, false)
	if err != nil {
		return err
	}
	r.Order = *order
	return call(ctx, tx, r)
}

func (m *Merchant) callProblem(ctx context.Context, tx *sql.Tx, f *delivery) error {
	if m.cfg.On.Problem == nil {
		return nil
	}
	_, key, _ := strings.Cut(f.key, problemPrefix)
	list, err := m.readProblems(ctx, m.store.in(tx), `WHERE key = ?`, f.account+":"+key)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("%w: problem %s", ErrNotFound, key)
	}
	if err := m.reported(ctx, tx, list[0]); err != nil {
		return err
	}
	return m.cfg.On.Problem(ctx, tx, list[0])
}

// raise makes a problem of a fact without a callback: money that must go back.
func (m *Merchant) raise(ctx context.Context, tx *sql.Tx, f *delivery) error {
	p := &books.Problem{Kind: books.IsPaidAgain, Record: f.record}
	p.Text = fmt.Sprintf("charge %s was paid, but the order was paid or closed before: refund it, or keep the money", f.record)
	id := f.record
	if f.callback == books.OnRefundRejected {
		p.Kind, id = ProblemRefundRejected, f.charge
		p.Text = fmt.Sprintf("refund %s of charge %s was rejected, and there is no RefundRejected callback: the money is still with you", f.record, f.charge)
	}
	p.Key = string(p.Kind) + "/" + f.key
	ch, err := m.readCharge(ctx, m.store.in(tx), id)
	if err != nil {
		return err
	}
	d, err := m.open(ctx, tx, f.subject)
	if err != nil {
		return err
	}
	d.account = ch.account
	return d.problem(ctx, p)
}
