package webhook

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"strings"
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
	if !rx.secretPathMatches(d.Path) {
		return refused(errNotFound)
	}
	if int64(len(d.Body)) > rx.cfg.MaxBody {
		return refused(errTooLarge)
	}
	if !rx.enter() {
		return busy(ErrShutdown)
	}
	defer rx.running.Done()
	e, err := rx.authenticate(d)
	switch {
	case !json && (err != nil || !e.Signed):
		return refused(errMediaType)
	case err != nil:
		return refused(err)
	}
	if rx.cfg.Mode == Sync && rx.runs.isPaused() {
		return busy(ErrPaused)
	}
	pool := rx.poolOf(e.Event)
	if !pool.enter() {
		return busy(nil)
	}
	defer pool.leave()
	rec, err := rx.identify(ctx, e)
	if err != nil {
		return unconfirmed(err)
	}
	defer rx.purge(ctx)
	defer rx.handleSetAside() //nolint:contextcheck // it outlives the delivery
	return rx.accept(ctx, rec)
}

// secretPathMatches compares the last element of the path in constant time. Some
// proxies append a slash.
func (rx *Receiver) secretPathMatches(path string) bool {
	want := rx.cfg.SecretPath.Reveal()
	if want == "" {
		return true
	}
	path = strings.TrimRight(path, "/")
	got := path[strings.LastIndexByte(path, '/')+1:]
	return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

// authenticate checks the signature, if the policy requires one or the
// delivery has one, before anything is read from the body.
func (rx *Receiver) authenticate(d Delivery) (e parsed, err error) {
	signed, keyID := rx.needsSignature(d.Header), ""
	if signed {
		if keyID, err = rx.verifier.VerifiedBy(d.Header, d.Body); err != nil {
			return e, err
		}
	}
	if e, err = parse(d.Body); err != nil {
		return e, err
	}
	e.Signed, e.KeyID, e.Source = signed, keyID, SourceDelivery
	return e, nil
}

// needsSignature reports whether a delivery is rejected without a valid
// signature.
func (rx *Receiver) needsSignature(header http.Header) bool {
	switch rx.cfg.Trust {
	case RequireSignature:
		return true
	case SignatureOrReadBack:
		return rx.verifier.Signed(header)
	default:
		return false
	}
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

// put stores the event. A signed event that the store matched with a confirmed
// one, but whose content differs, becomes a separate event.
func (rx *Receiver) put(ctx context.Context, rec *Record) (Entry, error) {
	entry, err := rx.cfg.Store.Put(ctx, *rec)
	if err != nil || !rec.Signed || entry.Key == rec.Key || rx.signed.reader == nil {
		return entry, err
	}
	same, err := rx.sameContent(ctx, rec.Body)
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

// deliveryPool is the capacity for deliveries of one kind. Signed and unsigned ones
// have separate pools: anyone who knows the receiver's URL can fill the unsigned
// one.
type deliveryPool struct {
	slots  chan struct{}
	reader *reader // nil without an API
}

func newDeliveryPool(cfg *Config) deliveryPool {
	p := deliveryPool{slots: make(chan struct{}, cfg.MaxConcurrent)}
	if cfg.API != nil && cfg.Trust != UnsafeTrustBody {
		p.reader = newReader(api{cfg.API}, cfg.ReadBack)
	}
	return p
}

// enter takes a slot, if one is free.
func (p *deliveryPool) enter() bool {
	select {
	case p.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p *deliveryPool) leave() { <-p.slots }

// poolOf returns the pool of an event. Events of the receiver's own Reconciler
// are trusted like signed ones.
func (rx *Receiver) poolOf(e *Event) *deliveryPool {
	if e.Signed || e.Source == SourceReconciler {
		return &rx.signed
	}
	return &rx.unsigned
}
