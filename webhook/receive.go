package webhook

import (
	"context"
	"crypto/subtle"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
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
	return rx.deliver(rx.opened(ctx, nil), d)
}

func (rx *Receiver) deliver(ctx context.Context, d Delivery) Response {
	started := time.Now()
	r := rx.protected(ctx, Record{}, func() result { return rx.receive(ctx, d) })
	r.Duration = time.Since(started)
	rx.report(ctx, r.Observation)
	return responseOf(r)
}

// receive verifies and parses a delivery, identifies its event (an unsigned one
// is confirmed by the API), stores it and, in Sync mode, handles it.
func (rx *Receiver) receive(ctx context.Context, d Delivery) result {
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
	if err != nil {
		return refused(err)
	}
	if rx.cfg.Mode == Sync && rx.runs.isPaused() {
		return busy(ErrPaused)
	}
	pool := rx.poolOf(e)
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

// secretPathMatches compares the last element of the path in constant time.
func (rx *Receiver) secretPathMatches(path string) bool {
	want := rx.cfg.SecretPath.Reveal()
	if want == "" {
		return true
	}
	got := path[strings.LastIndexByte(path, '/')+1:]
	return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

// authenticate checks the signature, if the policy requires one or the
// delivery has one, before anything is read from the body.
func (rx *Receiver) authenticate(d Delivery) (*Event, error) {
	signed, keyID := false, ""
	switch rx.cfg.Trust {
	case RequireSignature:
		signed = true
	case SignatureOrReadBack:
		signed = rx.verifier.Signed(d.Header)
	default:
	}
	if signed {
		var err error
		if keyID, err = rx.verifier.VerifiedBy(d.Header, d.Body); err != nil {
			return nil, err
		}
	}
	e, err := Parse(d.Body)
	if err != nil {
		return nil, err
	}
	e.Signed, e.KeyID, e.Source = signed, keyID, SourceDelivery
	return e, nil
}

// accept stores the event and, in Sync mode, handles it.
func (rx *Receiver) accept(ctx context.Context, rec Record) result {
	rec.Trace = rx.trace(ctx)
	entry, err := rx.put(ctx, &rec)
	switch {
	case errors.Is(err, ErrNotConfirmedYet):
		return unconfirmed(err)
	case err != nil:
		return storeError(rec, err)
	case entry.Conflict:
		return rx.conflict(ctx, rec)
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
func (rx *Receiver) conflict(ctx context.Context, rec Record) result {
	rec.Key += " " + rec.Digest
	rec.Resource = "event/" + rec.Key // it does not wait for other events
	rec.Fact, rec.Position = "", 0
	if _, err := rx.cfg.Store.PutDead(ctx, rec, reason(errConflict)); err != nil {
		return storeError(rec, err)
	}
	return failure(rec, OutcomeConflict, errConflict)
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

// A body's buffer starts with firstBody bytes; bytes beyond freeBody are taken
// from the pool. The gateway's events are a few KiB, so ordinary deliveries
// are not affected by any number of large bodies.
const (
	firstBody = 4 << 10
	freeBody  = 16 << 10
)

var errBodyMemory = errors.New("webhook: the bodies that are being received need too much memory")

// bodyPool limits the total memory of the bodies that are being received.
type bodyPool struct {
	size int64
	used atomic.Int64
}

// bodyMemory is the size of the pool.
func bodyMemory(cfg *Config) int64 {
	if cfg.MaxBody > math.MaxInt64/int64(cfg.MaxConcurrent) {
		return math.MaxInt64
	}
	return int64(cfg.MaxConcurrent) * cfg.MaxBody
}

// resize accounts for a body that grows or shrinks.
func (p *bodyPool) resize(from, to int) bool {
	change := max(int64(to), freeBody) - max(int64(from), freeBody)
	if p.used.Add(change) > p.size && change > 0 {
		p.used.Add(-change)
		return false
	}
	return true
}
