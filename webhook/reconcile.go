package webhook

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
)

// OpenResource is a resource that the merchant's own records still have as
// open: waiting for a payment, a payout, the next period.
type OpenResource struct {
	Family Family
	ID     string
	Status string // as the records have it; "" is none

	// PeriodEnd is the end of a subscription's current period as the records
	// have it. A later one at the API is a renewal. The zero time asks for none.
	PeriodEnd time.Time
}

// ReconcilerConfig is what [NewReconciler] makes a [Reconciler] from. Only Open
// must be set.
type ReconcilerConfig struct {
	// Open ranges over the resources to look at, from the merchant's own
	// records. Leave young ones out, for which webhooks may be on their way.
	Open func(ctx context.Context) iter.Seq2[OpenResource, error]

	Every      time.Duration // between two rounds of Run, with jitter; default 10 min
	Concurrent int           // calls of the API at a time; default 4
}

// Reconciler finds what no webhook told: deliveries that were lost for good,
// and the states for which the gateway sends none, a transaction's expired and
// refused. It reads the resources that the merchant still sees as open, and has
// what happened since handled by the receiver as if a webhook had told it:
// through the same handlers, with the same store, so that what a webhook tells
// too is handled once.
//
// Such an event has the Source [SourceReconciler], and the resource as
// Confirmed.
type Reconciler struct {
	rx  *Receiver
	cfg ReconcilerConfig
}

// NewReconciler returns a reconciler for the receiver's handlers. The receiver
// needs an API.
func NewReconciler(rx *Receiver, cfg ReconcilerConfig) (*Reconciler, error) {
	switch {
	case rx == nil || rx.reader == nil:
		return nil, errors.New("webhook: a Reconciler needs a Receiver with an API")
	case cfg.Open == nil:
		return nil, errors.New("webhook: a Reconciler needs to know what is Open")
	}
	cfg.Every = positive(cfg.Every, 10*time.Minute)
	cfg.Concurrent = positive(cfg.Concurrent, 4)
	return &Reconciler{rx: rx, cfg: cfg}, nil
}

// Reconciliation is what a round found.
type Reconciliation struct {
	Checked int // resources
	Missing int // resources that the API does not know
	Failed  int // resources that could not be read or whose event was not handled; the next round sees them again
	Found   int // events that no webhook had told
	Known   int // events that had been handled, or wait for it: the records lag behind
}

// Run makes a round now and then until ctx ends or the receiver is shut down.
// Errors of a round are logged.
func (r *Reconciler) Run(ctx context.Context) {
	for {
		found, err := r.Once(ctx)
		level := slog.LevelInfo
		if err != nil {
			level = slog.LevelError
		}
		attrs := []slog.Attr{
			slog.Int("checked", found.Checked), slog.Int("found", found.Found), slog.Int("known", found.Known),
			slog.Int("missing", found.Missing), slog.Int("failed", found.Failed),
		}
		if err != nil {
			attrs = append(attrs, errorAttr(err))
		}
		r.rx.cfg.Logger.LogAttrs(ctx, level, "webhook: reconciled", attrs...)

		next := time.NewTimer(r.cfg.Every/2 + rand.N(r.cfg.Every)) //nolint:gosec // jitter needs no secrecy
		select {
		case <-next.C:
			continue
		case <-r.rx.quit:
		case <-ctx.Done():
		}
		next.Stop()
		return
	}
}

// Once makes one round. The error is that of Open, or of ctx; what happens to
// single resources is in the Reconciliation.
func (r *Reconciler) Once(ctx context.Context) (Reconciliation, error) {
	var sum Reconciliation
	var mu sync.Mutex
	var all sync.WaitGroup
	defer all.Wait()
	slots := make(chan struct{}, r.cfg.Concurrent)
	finish := func(err error) (Reconciliation, error) {
		all.Wait()
		return sum, err
	}
	for open, err := range r.cfg.Open(ctx) {
		if err != nil {
			return finish(err)
		}
		select {
		case slots <- struct{}{}:
		case <-r.rx.quit:
			return finish(ErrShutdown)
		case <-ctx.Done():
			return finish(ctx.Err())
		}
		all.Go(func() {
			one := r.check(ctx, open)
			mu.Lock()
			sum.add(one)
			mu.Unlock()
			<-slots
		})
	}
	return finish(ctx.Err())
}

func (s *Reconciliation) add(one Reconciliation) {
	s.Checked += one.Checked
	s.Missing += one.Missing
	s.Failed += one.Failed
	s.Found += one.Found
	s.Known += one.Known
}

// check compares one resource with the records.
func (r *Reconciler) check(ctx context.Context, open OpenResource) Reconciliation {
	one := Reconciliation{Checked: 1}
	if !open.Family.Known() || open.ID == "" || !r.rx.enter() {
		one.Failed++
		return one
	}
	defer r.rx.running.Done()
	res, err := r.rx.reader.api.read(ctx, open.Family, open.ID)
	switch {
	case errors.Is(err, errUnknownResource):
		one.Missing++
		return one
	case err != nil:
		one.Failed++
		return one
	}
	for _, kind := range happenedSince(open, res) {
		switch o, err := r.tell(ctx, open, kind, res); {
		case err != nil || !o.settled():
			one.Failed = 1
			return one // what follows would be out of order
		case o == OutcomeDuplicate:
			one.Known++
		default:
			one.Found++
		}
	}
	return one
}

// tell feeds one event into the receiver, if the resource proves it.
func (r *Reconciler) tell(ctx context.Context, open OpenResource, kind Kind, res *resource) (Outcome, error) {
	e := &Event{Family: open.Family, Kind: kind, ResourceID: open.ID, Source: SourceReconciler}
	c := confirm(e, res, r.rx.cfg.Now())
	if c.verdict != confirmed {
		return "", fmt.Errorf("%w: the resource is %s", ErrUnconfirmed, c.status)
	}
	body, err := syntheticBody("reconciled-"+uuid.NewSHA1(uuid.NameSpaceURL, []byte(c.fact)).String(), kind, res)
	if err != nil {
		return "", fmt.Errorf("webhook: %s of %s can't be written: %w", kind, open.ID, err)
	}
	if e, err = Parse(body); err != nil {
		return "", err
	}
	e.Source, e.ConfirmedStatus, e.Stale = SourceReconciler, c.status, c.late
	rec, err := record(e, c.fact, res)
	if err != nil {
		return "", err
	}
	result := r.rx.accept(ctx, rec)
	r.rx.report(ctx, result.Observation)
	return result.Outcome, nil
}
