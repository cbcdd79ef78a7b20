package operations

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/doubt"
	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// attempt is the work on one operation that this worker has claimed. Its
// methods return when to run next.
type attempt struct {
	*core

	record *record
	op     Operation
	handle handler
}

// reads is how many reads in a row must miss a change before it counts as not
// applied.
const reads = doubt.Reads

func (a *attempt) run(ctx context.Context) (time.Duration, error) {
	r := a.record
	var err error
	a.op, err = newOperation(r.Kind, r.params)
	a.handle = a.handlers[r.Kind]
	if err != nil || a.handle == nil { // inserted by a newer release, or handled by other processes
		a.observe(ctx, EventUnhandled, err)
		return a.rest(ctx, a.idle(), time.Minute)
	}
	switch {
	case r.State == Decided:
		return a.deliver(ctx)
	case r.p.inDoubt() && !a.mayRepeat():
		return a.look(ctx)
	default:
		return a.send(ctx)
	}
}

// idle returns the state of the operation between attempts.
func (a *attempt) idle() State {
	switch {
	case a.record.p.Outcome != nil:
		return Decided
	case a.record.p.inDoubt():
		return Sent
	default:
		return Waiting
	}
}

// rest releases the operation until it is due again.
func (a *attempt) rest(ctx context.Context, state State, wait time.Duration) (time.Duration, error) {
	ctx, cancel := a.persist(ctx)
	defer cancel()
	if err := a.store.save(ctx, a.record, state, wait, 0); err != nil {
		return 0, err
	}
	if state == Ambiguous || state == Dead {
		return never, nil
	}
	return wait, nil
}

// persist returns a context for storing the result, which must happen even if
// the worker is told to end.
func (o *core) persist(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), o.config.HandlerTimeout)
}

// mayRepeat reports whether a request in doubt can be sent again without being
// applied twice.
func (a *attempt) mayRepeat() bool {
	p := &a.record.p
	switch {
	case p.Rejection != nil, a.spent():
		return false
	case a.op.repeat() == byReference:
		return true
	}
	return p.SendKey != "" && a.record.clock().Sub(p.KeySince) < a.config.KeyLifetime-a.config.SendTimeout
}

// spent reports whether the operation was sent as often as the configuration
// allows.
func (a *attempt) spent() bool {
	p := &a.record.p
	return p.Unproven >= a.config.MaxSends || p.Resends > a.config.MaxResends
}

// exhausted leaves an operation that was sent too often to a person.
func (a *attempt) exhausted(ctx context.Context) (time.Duration, error) {
	p := &a.record.p
	p.Ambiguity = fmt.Sprintf("it was sent %d times, and reads do not show that it was applied: find out why before it is sent again "+
		"(Config.MaxSends is %d, Config.MaxResends is %d)", p.Sends, a.config.MaxSends, a.config.MaxResends)
	p.note(a.record.clock(), "ambiguous: "+p.Ambiguity)
	a.observe(ctx, EventSendLimit, ErrSendLimit)
	a.observe(ctx, EventAmbiguous, ErrSendLimit)
	return a.rest(ctx, Ambiguous, 0)
}

// sendKey returns the Idempotency-Key of the operation. It is derived from what
// is sent and the account, so that an operation restored from a backup is sent
// with the same key again, and no other account's operation has it.
func (a *attempt) sendKey() string {
	r := a.record
	parts := []string{r.Account, r.Kind, r.Key, string(r.params), fmt.Sprint(r.p.Before.Refund)}
	sum := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part) // a hash never fails
	}
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum.Sum(nil)[:16])
}

func (a *attempt) session(ctx context.Context) (s *session, err error) {
	r := a.record
	s = &session{
		client: a.client, timeout: a.config.SendTimeout, since: r.p.DoubtSince, sent: r.p.SentAt,
		search: cmp.Or(r.p.Search, &search{}), searchUntil: r.read.Add(a.lease() / 2), maxPages: a.config.MaxSearchPages,
	}
	s.options = []gateway.RequestOption{gateway.MaxAttempts(1), gateway.AttemptTimeout(a.config.SendTimeout)}
	if r.Resource != "" {
		s.refunded, err = a.store.leastRefunded(ctx, r.Resource)
	}
	return s, err
}

// send sends the request, for the first time or again. The resource's current
// state is committed first.
func (a *attempt) send(ctx context.Context) (time.Duration, error) {
	r, p := a.record, &a.record.p
	if a.spent() {
		return a.exhausted(ctx)
	}
	s, err := a.session(ctx)
	if err != nil {
		return 0, err
	}
	doubted := p.inDoubt()
	if !doubted {
		s.unsent = p.Sends == 0
		before, already, err := a.op.begin(ctx, s)
		if rejection, ok := errors.AsType[*RejectedError](err); ok {
			return a.reject(ctx, rejection)
		}
		if err != nil {
			return a.unread(ctx, err)
		}
		if p.Before.reachedBy(&before) {
			// The earlier request was applied later than SettleAfter: the
			// amount that it moved must not become the new state before.
			p.note(r.clock(), "the resource changed after it was found unchanged")
			p.DoubtSince = p.SentAt
			return a.look(ctx)
		}
		p.Before, p.Misses = before, 0
		if already != nil {
			p.note(r.clock(), "nothing to do: the resource is already in the requested state")
			return a.succeed(ctx, already)
		}
	}
	// The deadline starts before the commit, so that the request can no longer
	// be sent by the time its outcome is read.
	sendCtx, cancel := context.WithTimeout(ctx, a.config.SendTimeout)
	defer cancel()
	unmarked := *p
	if err := a.mark(ctx); err != nil {
		return 0, err
	}
	if doubted {
		s.options = append(s.options, gateway.FirstSent(p.DoubtSince))
	}
	if p.SendKey != "" {
		s.options = append(s.options, gateway.IdempotencyKey(p.SendKey))
	}
	value, err := a.op.send(sendCtx, s, &p.Before)
	if gate.Refused(err) {
		*p = unmarked
		return a.paused(ctx)
	}
	return a.sent(ctx, value, err, doubted)
}

// paused releases an operation of which nothing was sent, because the gate is closed. It is as
// if no worker had claimed it: nothing is counted, and it is due.
func (a *attempt) paused(ctx context.Context) (time.Duration, error) {
	return a.rest(ctx, a.idle(), shortestWait)
}

// mark commits that the request is about to be sent.
func (a *attempt) mark(ctx context.Context) error {
	r, p := a.record, &a.record.p
	p.Sends++
	p.Unproven++
	p.SentAt, p.Search = r.clock(), nil
	if !p.inDoubt() {
		p.DoubtSince = p.SentAt
		if a.op.repeat() == byIdempotencyKey && a.config.KeyLifetime > 0 {
			if key := a.sendKey(); key != p.SendKey {
				p.SendKey, p.KeySince = key, p.SentAt
			}
		}
	}
	p.note(p.SentAt, sending)
	due := a.config.SettleAfter
	if a.mayRepeat() {
		due = 0
	}
	return a.store.save(ctx, r, Sent, due, a.lease())
}

// unread handles a failure to read the resource before the request: nothing
// was sent.
func (a *attempt) unread(ctx context.Context, err error) (time.Duration, error) {
	if gate.Refused(err) {
		return a.paused(ctx)
	}
	r, p := a.record, &a.record.p
	p.LastError = err.Error()
	rejection := rejectionOf(err)
	switch {
	case rejection != nil && rejection.Kind == "validation":
		return a.reject(ctx, rejection)
	case rejection != nil && rejection.Kind == "not_found":
		if p.Misses++; p.Misses >= reads {
			return a.reject(ctx, rejection)
		}
		a.observe(ctx, EventRetry, err)
		return a.rest(ctx, Waiting, a.nextRead())
	case errors.Is(err, errStale):
		a.observe(ctx, EventRetry, err)
		return a.rest(ctx, Waiting, a.nextRead())
	}
	p.note(r.clock(), "could not read the resource: "+p.LastError)
	return a.retry(ctx, Waiting, err)
}

// nextRead is the minimum interval between reads that count as independent.
func (a *attempt) nextRead() time.Duration { return a.config.SettleAfter / 4 }

// sent handles the response to a request. doubted reports that an earlier
// request may have been applied.
func (a *attempt) sent(ctx context.Context, value any, err error, doubted bool) (time.Duration, error) {
	r, p := a.record, &a.record.p
	if err == nil {
		return a.succeed(ctx, value)
	}
	p.LastError = err.Error()
	p.note(r.clock(), p.LastError)
	rejection := rejectionOf(err)
	known := a.op.repeat() == byReference
	switch {
	case rejection == nil && !doubted && notSent(err): // the connection is down
		p.Unproven--
		p.settle()
		return a.retry(ctx, Waiting, err)
	case rejection == nil:
		return a.unknown(ctx, err, doubted)
	case known && rejection.Kind == "duplicate" && !doubted:
		// The reference exists: another program of the merchant used it, or
		// this outbox did and the operation was purged since. Find out whether
		// the resource is the same.
		p.DoubtSince = r.CreatedAt
		return a.send(ctx)
	case known && (rejection.Kind == "duplicate" || !doubted):
		return a.reject(ctx, rejection)
	}
	// A conflict may mean that the resource is already in the requested state,
	// or that an earlier request was applied after all. A rejection of a first
	// request may come from a proxy, after the gateway applied the request.
	p.Rejection, p.Answered = rejection, !doubted
	return a.look(ctx)
}

// notSent reports whether nothing left this process, the only error that proves
// that a request was not applied. A 401, 403 or 429 proves nothing: a proxy may
// send it after the gateway applied the request.
func notSent(err error) bool {
	return errors.Is(err, gateway.ErrNotSent) && !errors.Is(err, gateway.ErrOutcomeUnknown)
}

// unknown handles a request that may have been applied.
func (a *attempt) unknown(ctx context.Context, err error, doubted bool) (time.Duration, error) {
	p := &a.record.p
	a.observe(ctx, EventUnknown, err)
	p.Misses = 0
	// Had the gateway applied the first request, it would recognize the repeat
	// by its reference or key. One rejection may come from a proxy; several
	// are conclusive.
	rejection := rejectionIn(err)
	switch {
	case !doubted || rejection == nil:
		p.Rejections = 0
	case p.Rejections+1 < reads:
		p.Rejections++
	default:
		p.Rejection = rejection
	}
	if a.mayRepeat() {
		return a.retry(ctx, Sent, err)
	}
	return a.rest(ctx, Sent, max(a.config.SettleAfter, retryAfter(err)))
}

// retryAfter returns the delay that the gateway asks for.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*gateway.Error](err); ok {
		return min(e.RetryAfter, time.Hour)
	}
	return 0
}

// retry schedules the next attempt: after the delay that the gateway asks for,
// or with backoff.
func (a *attempt) retry(ctx context.Context, state State, err error) (time.Duration, error) {
	p := &a.record.p
	a.observe(ctx, EventRetry, err)
	wait := a.config.MaxBackoff
	if p.Failures < 20 {
		wait = min(wait, time.Second<<p.Failures)
	}
	wait = wait/2 + mathrand.N(wait/2+1) //nolint:gosec // jitter
	p.Failures++
	return a.rest(ctx, state, max(wait, retryAfter(err)))
}

// look reads the resource to find out whether a request was applied.
func (a *attempt) look(ctx context.Context) (time.Duration, error) {
	r, p := a.record, &a.record.p
	if early := p.SentAt.Add(a.config.SettleAfter).Sub(r.clock()); early > 0 && !p.Answered {
		return a.rest(ctx, Sent, early)
	}
	s, err := a.session(ctx)
	if err != nil {
		return 0, err
	}
	found, err := a.op.look(ctx, s, &p.Before)
	p.Search = nil
	switch {
	case err == nil:
		return a.conclude(ctx, found)
	case errors.Is(err, errSearching):
		return a.searchOn(ctx, s.search)
	case errors.Is(err, errSearchLimit):
		return a.conclude(ctx, verdict{finding: unclear, why: fmt.Sprintf("%s, without finding the resource (Config.MaxSearchPages is %d)",
			s.search, a.config.MaxSearchPages)})
	}
	if s.search.Pages > 0 {
		p.Search = s.search
	}
	if gate.Refused(err) {
		return a.paused(ctx)
	}
	p.LastError = err.Error()
	return a.retry(ctx, Sent, err)
}

// conclude acts on what a read shows.
func (a *attempt) conclude(ctx context.Context, found verdict) (time.Duration, error) {
	r, p := a.record, &a.record.p
	definite := p.Answered && p.Doubts == 0
	switch {
	case found.finding == applied:
		p.note(r.clock(), "a read shows that it was applied")
		return a.succeed(ctx, found.result)
	case found.finding == unclear && !definite:
		p.Ambiguity = found.why
		p.note(r.clock(), "ambiguous: "+found.why)
		a.observe(ctx, EventAmbiguous, errors.New(found.why))
		return a.rest(ctx, Ambiguous, 0)
	}
	p.Misses++
	p.note(r.clock(), "a read does not show that it was applied")
	switch {
	case p.Misses < reads && !p.Answered:
		return a.rest(ctx, Sent, a.nextRead())
	case p.Rejection != nil:
		return a.reject(ctx, p.Rejection)
	}
	a.observe(ctx, EventNotApplied, nil)
	p.Doubts++
	p.Resends++
	p.settle()
	return a.send(ctx)
}

// searchOn leaves the rest of a long list to the next attempt.
func (a *attempt) searchOn(ctx context.Context, s *search) (time.Duration, error) {
	p := &a.record.p
	p.Search, p.Failures, p.LastError = s, 0, s.String()+", and the search goes on"
	p.note(a.record.clock(), p.LastError)
	a.observe(ctx, EventSearching, nil)
	return a.rest(ctx, Sent, shortestWait)
}

// succeed ends an operation that was applied.
func (a *attempt) succeed(ctx context.Context, value any) (time.Duration, error) {
	p := &a.record.p
	encoded, err := encodeResult(value)
	if err != nil {
		return 0, err
	}
	if refund, ok := value.(*gateway.Refund); ok {
		p.Refunded = p.Before.RefundedAmount + refund.AmountRefunded
	}
	p.Outcome = &outcome{Value: encoded}
	return a.deliver(ctx)
}

// reject ends an operation that was not applied and never will be.
func (a *attempt) reject(ctx context.Context, r *RejectedError) (time.Duration, error) {
	a.record.p.Outcome = &outcome{Rejection: r}
	return a.deliver(ctx)
}

// deliver runs the handler in the transaction that marks the operation as done.
func (a *attempt) deliver(ctx context.Context) (time.Duration, error) {
	ctx, cancel := a.persist(ctx)
	defer cancel()
	r, p := a.record, &a.record.p
	p.LastError = ""
	err := a.store.done(ctx, r, func(tx sqldb.Tx) error { return a.safely(ctx, tx, p.Outcome) })
	switch {
	case err == nil && p.Outcome.Rejection != nil:
		a.observe(ctx, EventRejected, p.Outcome.Rejection)
		return never, nil
	case err == nil:
		a.observe(ctx, EventDone, nil)
		return never, nil
	case errors.Is(err, errLost):
		// The worker that took it over finds the same outcome.
		a.observe(ctx, EventLate, err)
		return 0, err
	}
	p.HandlerRuns++
	p.LastError = "handler: " + shownText(err.Error())
	if p.HandlerRuns >= a.config.HandlerAttempts {
		a.observe(ctx, EventDead, err)
		return a.rest(ctx, Dead, 0)
	}
	a.observe(ctx, EventHandlerFailed, err)
	wait := min(time.Second<<min(p.HandlerRuns-1, 10), a.config.MaxBackoff)
	return a.rest(ctx, Decided, wait)
}

// safely runs the handler and returns a panic as an error.
func (a *attempt) safely(ctx context.Context, tx sqldb.Tx, out *outcome) (err error) {
	defer func() {
		if p := recover(); p != nil {
			a.config.Logger.LogAttrs(ctx, slog.LevelError, "gateway: a handler of an operation panicked",
				slog.Int64("id", a.record.ID), slog.String("kind", a.record.Kind), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("operations: the handler panicked: %v", p)
		}
	}()
	entry := a.record.Entry
	entry.Sends, entry.History = a.record.p.Sends, a.record.p.History
	return a.handle(ctx, tx, &entry, a.op, out)
}
