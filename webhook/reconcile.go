package webhook

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
)

// OpenResource is a resource that the merchant's own records still have as
// open: waiting for a payment, a payout, the next period.
type OpenResource struct {
	Family Family
	ID     string
	// Status is the state as the records have it; "" is none. Only what follows it
	// is looked for: records that have a refund, but not its payment, never get it.
	Status string

	// PeriodEnd is the end of a subscription's current period as the records
	// have it. A later one at the API, if it is paid, is a renewal. The zero time
	// asks for none.
	PeriodEnd time.Time

	// ExternalRef names a transaction or a transfer whose id the records don't
	// have, because the outcome of its create is unknown; ID is "" then. A
	// subscription can't be looked up by its idempotency key: repeat
	// Subscriptions.Create with the same key, which returns the first one.
	ExternalRef string
	// Since is when the first create with ExternalRef was sent, or earlier. It
	// is required with ExternalRef: resources created more than an hour before
	// it are not searched.
	Since time.Time
}

// ReconcilerConfig configures [NewReconciler]. Only Open is required.
type ReconcilerConfig struct {
	// Open ranges over the resources to check, from the merchant's own records.
	// It must read the primary database: what it yields outranks the receiver's
	// store, see RepairAfter. Leave out young resources that have an ID; their
	// webhooks may be on the way.
	Open func(ctx context.Context) iter.Seq2[OpenResource, error]

	// Identified is called with the ID of a resource that was found by its
	// ExternalRef, before its events are handled. Store the ID: webhooks of
	// transfers carry no reference and can only be matched by it. An error
	// leaves the resource for the next round.
	Identified func(ctx context.Context, open OpenResource) error
	// Absent is called with an ExternalRef that the API does not have, once
	// Since is MinAge ago: the create was not carried out. Send it again with
	// the same reference, so that even an attempt that arrives later can't make
	// a second resource; never with a new one.
	Absent func(ctx context.Context, open OpenResource) error

	// MinAge is how long ago Since must be before a reference can be Absent;
	// default 15 min. It must exceed the longest time that a create may take,
	// with its retries and what proxies on the way may hold back.
	MinAge time.Duration
	// SearchPages is how many pages of 100 a round reads to find references;
	// default 100. Where older resources would have to be read, the references
	// that were not found stay undecided.
	SearchPages int

	// RepairAfter is how long a resource must stay open in the records, although
	// the store has its event as done, before the event is handled again:
	// something else than its handler undid or never made the effect. Each event
	// is repaired once. Default 15 min; a negative value never repairs.
	RepairAfter time.Duration

	Every      time.Duration // between two rounds of Run, with jitter; default 10 min
	Concurrent int           // calls of the API at a time; default 4
}

// Reconciler finds what no webhook reported: lost deliveries, and transactions that
// expired or were refused, for which the gateway sends none. It reads the resources
// that the merchant has as open, and passes what happened to the receiver's handlers;
// what a webhook reports too is handled once.
//
// Such an event has the Source [SourceReconciler], and the resource as Confirmed.
type Reconciler struct {
	rx  *Receiver
	cfg ReconcilerConfig

	mu       sync.Mutex
	suspects map[string]time.Time // by fact: since when it is known as done although it is open
}

// NewReconciler returns a reconciler for the receiver's handlers. The receiver
// needs an API.
func NewReconciler(rx *Receiver, cfg ReconcilerConfig) (*Reconciler, error) {
	switch {
	case rx == nil || rx.signed.reader == nil:
		return nil, errors.New("webhook: a Reconciler needs a Receiver with an API")
	case cfg.Open == nil:
		return nil, errors.New("webhook: ReconcilerConfig.Open is required")
	}
	cfg.Every = positive(cfg.Every, 10*time.Minute)
	cfg.Concurrent = positive(cfg.Concurrent, 4)
	cfg.MinAge = positive(cfg.MinAge, 15*time.Minute)
	cfg.SearchPages = positive(cfg.SearchPages, 100)
	if cfg.RepairAfter == 0 {
		cfg.RepairAfter = 15 * time.Minute
	}
	return &Reconciler{rx: rx, cfg: cfg}, nil
}

// Reconciliation is the result of a round.
type Reconciliation struct {
	Checked int // resources and references
	Missing int // ids that the API does not know, references that are Absent
	Failed  int // resources that could not be read or whose event was not handled; the next round checks them again
	Found   int // events that no webhook had reported

	// Known counts events that were handled, or wait for it, and whose resource
	// the records still have as open.
	Known     int
	Repaired  int // events that were handled again, see ReconcilerConfig.RepairAfter
	Unapplied int // events that were repaired and whose resource is open still: a fault of the handler or of Open
	Undecided int // references that were not found and are too young, or too old for SearchPages
}

// Run makes a round now and then until ctx ends or the receiver is shut down.
// Errors of a round are logged.
func (r *Reconciler) Run(ctx context.Context) {
	for {
		sum, err := r.Once(ctx)
		r.log(ctx, sum, err)
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

func (r *Reconciler) log(ctx context.Context, sum Reconciliation, err error) {
	level := slog.LevelInfo
	if err != nil || sum.Unapplied > 0 {
		level = slog.LevelError
	}
	attrs := []slog.Attr{
		slog.Int("checked", sum.Checked), slog.Int("found", sum.Found), slog.Int("known", sum.Known),
		slog.Int("missing", sum.Missing), slog.Int("failed", sum.Failed), slog.Int("repaired", sum.Repaired),
		slog.Int("unapplied", sum.Unapplied), slog.Int("undecided", sum.Undecided),
	}
	if err != nil {
		attrs = append(attrs, errorAttr(err))
	}
	r.rx.cfg.Logger.LogAttrs(ctx, level, "webhook: reconciled", attrs...)
}

// Once makes one round. The error is that of Open, or of ctx; what happens to
// single resources is in the Reconciliation and the log.
func (r *Reconciler) Once(ctx context.Context) (Reconciliation, error) {
	ro := r.begin()
	err := ro.run(ctx)
	ro.tasks.Wait()
	r.end(ro, err == nil)
	return ro.sum, err
}

// Replay passes to the handlers all that happened to one resource since open.Status,
// also what is done in the store: for an operator who has repaired a handler or
// restored a database. A handler must not double what it did before. A waiting event
// is handled too, beside the replay. In Sync mode an event whose handler fails is a
// dead letter, and in the error.
func (r *Reconciler) Replay(ctx context.Context, open OpenResource) (Reconciliation, error) {
	ro := r.begin()
	ro.replay = true
	return ro.check(ctx, open)
}

// happenedSince lists the kinds of the events that must have happened to the
// resource since the records were written, in order.
func happenedSince(open OpenResource, r *resource, now time.Time) []Kind {
	if r.subscription != nil {
		return subscriptionSince(open, r, now)
	}
	if open.Status == r.status() {
		return nil
	}
	var since []Kind
	was := gateway.TransactionStatus(open.Status)
	wasPaid := was.Settled() || was == gateway.TransactionPartiallyRefunded
	if r.transaction != nil && !wasPaid && r.proves(TransactionPaid, now) {
		since = append(since, TransactionPaid)
	}
	switch row := derivedRow(open.Family, r.status()); {
	case r.status() == "pending", row != nil && row.kind == TransactionPaid:
		return since
	case row == nil: // a state without a kind is reported by its own name
		return append(since, Kind(open.Family.prefix()+"."+r.status()))
	default:
		return append(since, row.kind)
	}
}

func subscriptionSince(open OpenResource, r *resource, now time.Time) []Kind {
	was, sub := gateway.SubscriptionStatus(open.Status), r.subscription
	var since []Kind
	begun := was != "" && was != gateway.SubscriptionIncomplete && was != gateway.SubscriptionTrialing
	recovered := was == gateway.SubscriptionPastDue && sub.Status == gateway.SubscriptionActive || !begun && recoveredFirstCharge(sub)
	later := begun && !open.PeriodEnd.IsZero() && sub.CurrentPeriodEnd.After(open.PeriodEnd)
	switch {
	case recovered || later:
		if r.proves(SubscriptionRenewed, now) {
			since = append(since, SubscriptionRenewed)
		}
	case !begun && r.proves(SubscriptionStarted, now):
		since = append(since, SubscriptionStarted)
	}
	if row := derivedRow(FamilySubscription, r.status()); row != nil && sub.Status != was {
		since = append(since, row.kind)
	}
	return since
}
