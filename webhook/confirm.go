package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// identify makes the record by which the event is known: a proven event by its
// id, an unproven one, once the API has confirmed it, by what is true then.
// Only what comes out of here is ever written to the store.
func (rx *Receiver) identify(ctx context.Context, e *Event) (Record, error) {
	switch {
	case rx.poolOf(e).reader == nil:
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

// factOf names the fact of a proven event, so that an unproven one that
// reports the same is recognised. What can happen more than once is named by the state
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

// readBack reads the event's resource and judges the event by it. A read that had
// begun before may have seen an older state, so that "not yet" is read again.
func (rx *Receiver) readBack(ctx context.Context, e *Event) (confirmation, *resource, error) {
	for {
		res, joined, err := rx.poolOf(e).reader.read(ctx, e.Family, e.ResourceID)
		if err != nil {
			if !errors.Is(err, errUnknownResource) {
				err = fmt.Errorf("%w: %w", ErrNotConfirmedYet, err)
			}
			return confirmation{}, nil, err
		}
		now := rx.cfg.Now()
		c := judge(e, res, now)
		if !e.Signed {
			c.verdict = max(c.verdict, statusVerdict(e, res, now))
		}
		if c.verdict != behind || !joined {
			return c, res, nil
		}
	}
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
