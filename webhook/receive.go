package webhook

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Delivery is a request of the gateway, for servers that do not speak
// [net/http]: cloud functions, fasthttp, queues.
type Delivery struct {
	Path   string      // of the URL, decoded; needed for Config.SecretPath only
	Header http.Header // at least the signature's headers, under names of any case
	Body   []byte      // the bytes that arrived; the receiver keeps them
}

// Answer is what to answer to a [Delivery].
type Answer struct {
	Status     int
	Body       []byte        // JSON
	RetryAfter time.Duration // 0 where the answer carries no such header
	Outcome    Outcome
}

// Header returns the answer's headers.
func (a Answer) Header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	if a.RetryAfter > 0 {
		seconds := (a.RetryAfter + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	return h
}

// result is the outcome of a delivery on its way to an Answer.
type result struct {
	Observation

	retryAfter time.Duration // what a handler asked for, or the rest of a backoff
	state      State         // of a duplicate, in the store
	family     Family        // of the handler that there is none of
}

// Receive does with a delivery what ServeHTTP does with a request: it is
// verified, made known to the store and, in Sync mode, handled. The Answer
// must reach the sender.
func (rx *Receiver) Receive(ctx context.Context, d Delivery) Answer {
	started := time.Now()
	r := rx.protected(ctx, Record{}, func() result { return rx.receive(ctx, d) })
	r.Duration = time.Since(started)
	rx.report(ctx, r.Observation)
	return answerOf(r)
}

func (rx *Receiver) receive(ctx context.Context, d Delivery) result {
	if !rx.secretPathMatches(d.Path) {
		return refused(errNotFound)
	}
	if int64(len(d.Body)) > rx.cfg.MaxBody {
		return refused(errTooLarge)
	}
	if !rx.enter() {
		return result{Observation: Observation{Outcome: OutcomeBusy, Err: ErrShutdown}}
	}
	defer rx.running.Done()
	e, err := rx.authenticate(d)
	if err != nil {
		return refused(err)
	}
	if rx.cfg.Mode == Sync && rx.runs.isPaused() {
		return result{Observation: Observation{Outcome: OutcomeBusy, Err: ErrPaused}}
	}
	lane := rx.laneOf(e)
	if !lane.enter() {
		return result{Observation: Observation{Outcome: OutcomeBusy}}
	}
	defer lane.leave()
	rec, err := rx.identify(ctx, e)
	if err != nil {
		return unconfirmed(err)
	}
	defer rx.purge(ctx)
	defer rx.takeUp() //nolint:contextcheck // it outlives the delivery
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

// authenticate checks the signature, where the policy wants or the delivery
// claims one, before anything else is read from the body.
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

// identify makes the record by which the event is known: a proven event by its
// id, an unproven one, once the API has confirmed it, by what is true then.
// Only what comes out of here is ever written to the store.
func (rx *Receiver) identify(ctx context.Context, e *Event) (Record, error) {
	switch {
	case rx.laneOf(e).reader == nil:
		return record(e, "", nil)
	case e.Signed:
		fact, err := rx.factOf(ctx, e)
		if err != nil {
			return Record{}, err
		}
		return record(e, fact, nil)
	default:
		return rx.confirm(ctx, e)
	}
}

// factOf names the fact of a proven event, so that an unproven one that tells
// the same is recognised. What can happen more than once is named by the state
// that the API shows.
func (rx *Receiver) factOf(ctx context.Context, e *Event) (string, error) {
	if !e.Family.Known() || e.ResourceID == "" {
		return "", nil
	}
	if fact, ok := ownFact(e); ok {
		return fact, nil
	}
	c, _, err := rx.readBack(ctx, e)
	switch {
	case errors.Is(err, errUnknownResource):
		return "", nil
	case err != nil:
		return "", err
	case c.verdict != confirmed:
		return "", nil // the signature outweighs an API that does not know yet
	default:
		return c.fact, nil
	}
}

// confirm asks the API about an unproven event, and rebuilds it from what the
// API says. The rest of the body is only compared with that.
func (rx *Receiver) confirm(ctx context.Context, e *Event) (Record, error) {
	switch {
	case !e.Family.Known() || e.ResourceID == "":
		return Record{}, fmt.Errorf("%w: there is no resource to ask the API for", ErrUnconfirmed)
	case rowOf(e.Kind) == nil:
		return Record{}, fmt.Errorf("%w: no state proves an event of an unknown kind", ErrUnconfirmed)
	case ambiguous(e):
		return Record{}, fmt.Errorf("%w: the body names more than one resource", ErrUnconfirmed)
	}
	c, res, err := rx.readBack(ctx, e)
	switch {
	case errors.Is(err, errUnknownResource):
		return Record{}, fmt.Errorf("%w: the API knows no such resource", ErrUnconfirmed)
	case err != nil:
		return Record{}, err
	}
	if err := contradiction(e, res); err != nil {
		return Record{}, err
	}
	switch c.verdict {
	case refuted:
		return Record{}, fmt.Errorf("%w: the resource is %s", ErrUnconfirmed, c.status)
	case behind:
		return Record{}, fmt.Errorf("%w: the resource is still %s", ErrNotConfirmedYet, c.status)
	case confirmed:
	}
	if err := rx.recalls(ctx, c.moment); err != nil {
		return Record{}, err
	}
	return rebuilt(e, c, res)
}

// errStore marks an error of the store before there is a record.
var errStore = errors.New("webhook: the store can't be read")

// recalls returns an error if the store can't tell whether an event of that
// moment was handled before: anybody may have sent it again. A memory store has
// just started in every restart; events that happened a little before are
// accepted, because they are most likely still on their way, and the clocks of
// gateway and receiver differ.
func (rx *Receiver) recalls(ctx context.Context, moment time.Time) error {
	if moment.IsZero() {
		return nil
	}
	remembers, err := rx.cfg.Store.Remembers(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	if !rx.cfg.Store.Durable() {
		remembers += Tolerance
	}
	if rx.cfg.Now().Sub(moment) > remembers {
		return fmt.Errorf("%w: it happened longer ago than the store remembers", ErrUnconfirmed)
	}
	return nil
}

// readBack reads the event's resource. A call that had begun before may have
// seen an older state, so that "not yet" is asked again.
func (rx *Receiver) readBack(ctx context.Context, e *Event) (confirmation, *resource, error) {
	for {
		res, joined, err := rx.laneOf(e).reader.read(ctx, e.Family, e.ResourceID)
		if err != nil {
			if !errors.Is(err, errUnknownResource) {
				err = fmt.Errorf("%w: %w", ErrNotConfirmedYet, err)
			}
			return confirmation{}, nil, err
		}
		now := rx.cfg.Now()
		c := confirm(e, res, now)
		if !e.Signed {
			c.verdict = max(c.verdict, statusVerdict(e, res, now))
		}
		if c.verdict != behind || !joined {
			return c, res, nil
		}
	}
}

// record is the event as the store keeps it. An event without a resource has
// one of its own, so that it waits for nothing.
func record(e *Event, fact string, res *resource) (Record, error) {
	state, err := res.encode()
	if err != nil {
		return Record{}, err
	}
	rec := Record{
		Key:       "id " + e.ID,
		EventID:   e.ID,
		Kind:      e.Kind,
		Resource:  resourceKey(e.Family, e.ResourceID),
		Fact:      fact,
		Signed:    e.Signed,
		KeyID:     e.KeyID,
		Source:    e.Source,
		Late:      e.Stale,
		Position:  position(e),
		Body:      e.Raw,
		Confirmed: state,
	}
	if res != nil {
		rec.Key = "fact " + fact
	}
	if e.ResourceID == "" {
		rec.Resource = "event/" + e.ID
	}
	if res == nil {
		rec.Digest = digest(e)
	}
	return rec, nil
}

// accept makes the event known and, in Sync mode, handles it.
func (rx *Receiver) accept(ctx context.Context, rec Record) result {
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
		rx.poke() //nolint:contextcheck // the workers outlive whoever wakes them
		return outcome(rec, OutcomeStored)
	}
}

// put makes the event known to the store. A signed event that the store matched
// with a confirmed one, but whose words differ, becomes an event of its own.
func (rx *Receiver) put(ctx context.Context, rec *Record) (Entry, error) {
	entry, err := rx.cfg.Store.Put(ctx, *rec)
	if err != nil || !rec.Signed || entry.Key == rec.Key || rx.signed.reader == nil {
		return entry, err
	}
	same, err := rx.saysTheSame(ctx, rec.Body)
	if err != nil || same {
		return entry, err
	}
	rec.Key, rec.Fact = "apart "+rec.EventID, ""
	return rx.cfg.Store.Put(ctx, *rec)
}

// saysTheSame compares a signed body with its confirmed twin, which was built
// from the API's words: so with the API.
func (rx *Receiver) saysTheSame(ctx context.Context, body []byte) (bool, error) {
	e, err := Parse(body)
	if err != nil {
		return false, err
	}
	e.Signed = true
	_, res, err := rx.readBack(ctx, e)
	if errors.Is(err, errUnknownResource) {
		return false, nil
	}
	return err == nil && contradiction(e, res) == nil, err
}

func outcome(rec Record, o Outcome) result {
	return result{Observation: Observation{Outcome: o, EventID: rec.id(), Kind: rec.Kind, Resource: rec.Resource, KeyID: rec.KeyID}}
}

func duplicate(rec Record, state State) result {
	r := outcome(rec, OutcomeDuplicate)
	r.state = state
	return r
}

func storeError(rec Record, err error) result {
	r := outcome(rec, OutcomeStoreError)
	r.Err = err
	return r
}

func refused(err error) result {
	return result{Observation: Observation{Outcome: OutcomeRefused, Err: err}}
}

func unconfirmed(err error) result {
	o := OutcomeUnconfirmed
	switch {
	case errors.Is(err, ErrUnconfirmed):
		o = OutcomeRefused
	case errors.Is(err, errStore):
		o = OutcomeStoreError
	}
	return result{Observation: Observation{Outcome: o, Err: err}}
}
