package operations

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// Claim is an operation that the process that has inserted it sends itself. See
// [Outbox.InsertClaimedTx].
type Claim struct {
	Entry *Entry // as it was inserted

	core     *core
	send     func(ctx context.Context, id int64) (*Entry, error) // of the outbox
	inserted *record
	record   *record   // nil if it is stored like any other operation
	op       Operation // as record
	until    time.Time // by the clock of this process: later, the lease may have ended when the request arrives
}

// claimMargin is how much longer than the request the lease of a claim is.
const claimMargin = 5 * time.Second

// InsertClaimedTx is [Outbox.InsertTx] for a process that sends the operation itself with
// [Claim.Send] after the commit, for example because a buyer waits. A create, which its
// reference makes safe to repeat, is stored as [Sent] already: your commit is the mark that
// precedes the request, which saves two transactions. Workers leave it alone for SendTimeout
// and 5 s; if this process dies before it has sent it, one of them sends it after that.
//
// Operations of another kind, those that were there before, and those of an outbox with an
// engine are stored and sent as those of InsertTx. So are the errors.
func (o *Outbox[TX]) InsertClaimedTx(ctx context.Context, tx TX, op Operation) (*Claim, error) {
	in := sqldb.Wrap(o.driver, tx)
	var lease time.Duration
	if op.repeat() == byReference && o.handlers[op.identity().kind] != nil && o.woken != nil {
		lease = o.config.SendTimeout + claimMargin
	}
	until := time.Now().Add(o.config.SendTimeout)
	r, err := o.insert(ctx, in, op, lease)
	if err != nil {
		return nil, err
	}
	c := &Claim{Entry: &r.Entry, inserted: r, core: o.core, send: o.Send}
	switch {
	case r.Existing:
	case lease > 0:
		c.record, c.op, c.until = r, op, until
	case o.woken == nil: // else the caller is about to send it, and Run looks for what it does not
		if err := o.wake(ctx, in, r.ID, r.Kind); err != nil {
			return nil, wrap(err)
		}
	}
	return c, nil
}

// Send sends the operation in this goroutine, and returns it as it is then, like
// [Outbox.Send]. Call it once, after the commit.
func (c *Claim) Send(ctx context.Context) (*Entry, error) {
	if c.record == nil {
		return c.send(ctx, c.Entry.ID)
	}
	r := c.record
	c.record = nil // a second call finds what this one has left
	a := &attempt{core: c.core, record: r, op: c.op, handle: c.core.handlers[r.Kind]}
	if _, err := a.sendClaimed(ctx, c.until); err != nil {
		return nil, wrap(shown(err))
	}
	if r.State == Done {
		return &r.Entry, nil
	}
	e, _, err := c.core.entry(ctx, r.ID)
	return e, wrap(shown(err))
}

// SendIfStored is [Claim.Send] after a COMMIT whose response was lost. The error is
// [ErrNotFound] if the transaction was rolled back: then nothing was sent.
func (c *Claim) SendIfStored(ctx context.Context) (*Entry, error) {
	is, err := c.core.store.byKey(ctx, c.core.store.db.Conn(), c.Entry.Kind, c.Entry.Key)
	if err != nil {
		return nil, err
	}
	switch {
	case !is.follows(c.inserted):
		return nil, fmt.Errorf("%w: %s %s", ErrNotFound, c.Entry.Kind, c.Entry.Key)
	case c.record != nil && (is.State != Sent || is.claims != c.record.claims): // a worker has it, or has had it
		c.record = nil
	}
	return c.Send(ctx)
}

// sendClaimed is send for an operation whose insertion was the mark.
func (a *attempt) sendClaimed(ctx context.Context, until time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, a.lease())
	defer cancel()
	if !gate.Passed(ctx) {
		pass, err := gate.From(ctx).Ask(ctx)
		if err != nil {
			return shortestWait, a.unclaim(ctx)
		}
		defer pass.End()
		ctx = pass.In(ctx)
	}
	sendCtx, stop := context.WithDeadline(ctx, until)
	defer stop()
	if sendCtx.Err() != nil { // the commit took too long, or the caller has gone
		return shortestWait, a.unclaim(ctx)
	}
	s, err := a.session(ctx)
	if err != nil {
		return 0, err
	}
	value, err := a.op.send(sendCtx, s, &a.record.p.Before)
	if gate.Refused(err) {
		return shortestWait, a.unclaim(ctx)
	}
	return a.sent(ctx, value, err, false)
}

// unclaim makes an operation of which nothing was sent what [Outbox.InsertTx] stores.
func (a *attempt) unclaim(ctx context.Context) error {
	ctx, cancel := a.persist(ctx)
	defer cancel()
	if err := a.store.unclaim(ctx, a.record); err != nil {
		a.config.Logger.LogAttrs(ctx, slog.LevelError, "gateway: an operation that was not sent could not be given back to the workers: "+
			"they have it when its lease has ended", slog.String("account", a.record.Account), slog.Int64("id", a.record.ID))
		return err
	}
	if a.woken != nil {
		signal(a.woken)
	}
	return nil
}
