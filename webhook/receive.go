package webhook

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"time"
)

// Delivery is a request from the gateway, for servers that do not use [net/http]:
// cloud functions, fasthttp, queues.
type Delivery struct {
	Path   string      // the decoded URL path; needed only for Config.SecretPath
	Header http.Header // at least the signature headers; their names may have any case
	Body   []byte      // the received bytes; the receiver retains them
}

// Receive processes a delivery as ServeHTTP processes a request: it verifies
// it, stores its event and, in Sync mode, handles it. Send the Response to the
// sender.
func (rx *Receiver) Receive(ctx context.Context, d Delivery) Response {
	return rx.deliver(rx.opened(ctx, nil), d, true)
}

// deliver processes a delivery. One that is not announced as JSON needs a valid
// signature.
func (rx *Receiver) deliver(ctx context.Context, d Delivery, json bool) Response {
	started := time.Now()
	r := rx.protected(ctx, Record{}, func() result { return rx.receive(ctx, d, json) })
	r.Duration = time.Since(started)
	rx.report(ctx, r.Observation)
	return responseOf(r)
}

// receive verifies and parses a delivery, identifies its event (an unsigned one
// is confirmed by the API), stores it and, in Sync mode, handles it.
func (rx *Receiver) receive(ctx context.Context, d Delivery, json bool) result {
	if !rx.intake.secretPathMatches(d.Path) {
		return refused(errNotFound)
	}
	if int64(len(d.Body)) > rx.cfg.MaxBody {
		return refused(errTooLarge)
	}
	if !rx.enter() {
		return busy(ErrShutdown)
	}
	defer rx.running.Done()
	e, err := rx.intake.authenticate(d)
	switch {
	case !json && (err != nil || !e.Signed):
		return refused(errMediaType)
	case err != nil:
		return refused(err)
	}
	if rx.cfg.Mode == Sync && rx.runs.isPaused() {
		return busy(ErrPaused)
	}
	leave, free := rx.intake.enter(e.Signed)
	if !free {
		return busy(nil)
	}
	defer leave()
	rec, err := rx.judge.identify(ctx, e)
	if err != nil {
		return unconfirmed(err)
	}
	defer rx.purge(ctx)
	defer rx.handleSetAside() //nolint:contextcheck // it outlives the delivery
	return rx.accept(ctx, rec)
}

// accept stores the event and, in Sync mode, handles it.
func (rx *Receiver) accept(ctx context.Context, rec Record) result {
	rec.Trace = rx.trace(ctx)
	entry, err := rx.put(ctx, &rec)
	if err == nil && entry.Added {
		rx.warnOrder(ctx, rec)
	}
	switch {
	case errors.Is(err, ErrNotConfirmedYet):
		return unconfirmed(err)
	case err != nil:
		return storeError(rec, err)
	case entry.Conflict:
		return rx.conflict(ctx, rec, entry)
	case entry.State == StateDone || entry.State == StateDead:
		return duplicate(rec, entry.State)
	case rx.cfg.Mode == Sync:
		r := rx.handleNow(ctx, entry.Key, rec, rx.handleDelivered)
		if r.Outcome == OutcomeUnhandled && !entry.Added {
			return duplicate(rec, StateUnhandled)
		}
		return r
	case !entry.Added:
		return duplicate(rec, entry.State)
	default:
		rx.wakeWorkers() //nolint:contextcheck // the workers outlive the delivery
		return outcome(rec, OutcomeStored)
	}
}

// warnOrder reports a signed event of a subscription whose time is missing or
// can't be read: it is never late, whatever was handled before.
func (rx *Receiver) warnOrder(ctx context.Context, rec Record) {
	row := rowOf(rec.Kind)
	if row != nil && row.rank > 0 && rec.Signed && rec.Kind.Family() == FamilySubscription && rec.Position == 0 {
		rx.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook: the order of an event is unknown: it has no occurred_at that can be read",
			slog.String("event_id", rec.EventID), slog.String("kind", string(rec.Kind)), slog.String("resource", rec.Resource))
	}
}

// warnLeftOut logs what of an event's data could not be read and was left out, each
// member once.
func (rx *Receiver) warnLeftOut(e *Event, members []string) {
	for _, member := range members {
		name := indices.ReplaceAllString(member, "")
		if _, known := rx.said.LoadOrStore(name, true); !known {
			//nolint:sloglint // a handler's read of an event has no context
			rx.cfg.Logger.Warn("webhook: a member of an event can't be read and was left out; Raw has it",
				slog.String("member", name), slog.String("event_id", e.ID), slog.String("kind", string(e.Kind)))
		}
	}
}

var indices = regexp.MustCompile(`\[\d+\]`)

// put stores the event. A signed event that the store matched with a confirmed
// one, but whose content differs, becomes a separate event.
func (rx *Receiver) put(ctx context.Context, rec *Record) (Entry, error) {
	entry, err := rx.cfg.Store.Put(ctx, *rec)
	if err != nil || !rec.Signed || entry.Key == rec.Key || rx.judge.signed == nil {
		return entry, err
	}
	same, err := rx.judge.sameContent(ctx, rec.Body)
	if err != nil || same {
		return entry, err
	}
	rec.Key, rec.Fact = "apart "+rec.EventID, ""
	return rx.cfg.Store.Put(ctx, *rec)
}

// errConflict is the reason of a dead letter whose id was used for another
// event.
var errConflict = errors.New("webhook: an event with this id and other content was received before")

// conflict stores an event with the id of another event as a dead letter: an
// operator must decide whether it is new, or the first event with other
// content.
//
// In Sync mode the delivery may also be the only retry of the first event, which
// some gateways redeliver with newer data. So that event is handled first, and
// until it is, the sender must retry. The same applies to a dead letter that was
// requeued and is not done yet. A memory store forgets its dead letters, so an
// event of another kind or resource is not acknowledged.
func (rx *Receiver) conflict(ctx context.Context, rec Record, first Entry) result {
	if rx.cfg.Mode == Sync && first.State != StateDone && first.State != StateDead {
		r := rx.handleNow(ctx, first.Key, rec, rx.handleDelivered)
		if !r.Outcome.settled() {
			return r
		}
		if r.Outcome != OutcomeDuplicate {
			rx.report(ctx, r.Observation)
		}
	}
	rec.Key += " " + rec.Digest
	rec.Resource = "event/" + rec.Key // it does not wait for other events
	rec.Fact, rec.Position = "", 0
	letter, err := rx.cfg.Store.PutDead(ctx, rec, reason(errConflict))
	if err != nil {
		return storeError(rec, err)
	}
	if rx.cfg.Mode == Sync && letter.State != StateDone && letter.State != StateDead {
		return rx.handleNow(ctx, letter.Key, rec, rx.handleDelivered)
	}
	r := failure(rec, OutcomeConflict, errConflict)
	r.pending = first.unrelated && letter.State != StateDone && !rx.cfg.Store.Durable()
	return r
}
