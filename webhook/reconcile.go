package webhook

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
)

// OpenResource is a resource that is still open in the merchant's records:
// waiting for a payment, a payout or the next period.
type OpenResource struct {
	Family Family
	ID     string
	// Status is the state in the records; "" means none. The reconciler looks only
	// for later events: if the records have a refund but not its payment, it does
	// not report the payment.
	Status string

	// PeriodEnd is the end of a subscription's current period in the records.
	// If the API has a later, paid period, that is a renewal: one event for the
	// latest period, however many were missed. With the zero time renewals are
	// not checked.
	PeriodEnd time.Time

	// ExternalRef identifies a transaction or a transfer whose ID is missing
	// in the records because the outcome of its create is unknown. A
	// subscription can't be looked up by its idempotency key: repeat
	// Subscriptions.Create with the same key, which returns the first
	// subscription.
	ExternalRef string
	// Since is when the first create with ExternalRef was sent, or an earlier
	// time. It is required with ExternalRef: resources created more than an
	// hour before it are not searched.
	Since time.Time

	swept bool // found by its state, not in the records
}

// ReconcilerConfig configures [NewReconciler]. Only Open is required.
type ReconcilerConfig struct {
	// Open iterates over the resources to check in the merchant's records. It
	// must read the primary database, because its resources take precedence
	// over the receiver's store; see RepairAfter. Omit a resource that has an ID
	// until it is a few minutes old: its webhooks may still be on the way. A
	// refund or a chargeback is found only if the paid transaction is among the
	// resources.
	Open func(ctx context.Context) iter.Seq2[OpenResource, error]

	// Identified is called with the ID of a resource that was found by its
	// ExternalRef, before its events are handled. Store the ID: signed webhooks of
	// transfers have no reference, so only the ID matches them. After an error the
	// resource is left for the next round.
	Identified func(ctx context.Context, open OpenResource) error
	// Absent is called with an ExternalRef that the API does not have, once
	// MinAge has passed since Since: the create was not carried out. Send it
	// again with the same reference, never with a new one, so that a delayed
	// first attempt can't create a second resource. Leave out
	// [gateway.RepeatOf], so that a rejection is definite.
	Absent func(ctx context.Context, open OpenResource) error

	// MinAge is how much time must have passed since Since before a reference
	// can be Absent; default 15 min. It must exceed the longest time that a
	// create may take, including retries and delays in proxies.
	MinAge time.Duration
	// SearchPages is how many pages of 100 a round reads to find references;
	// default 100. If that does not reach back far enough, the references that
	// were not found stay undecided.
	SearchPages int

	// Sweep lists states of transactions that each round searches for, beside
	// what Open yields. With med, in_protest and pre_chargedback, the states of a
	// dispute, a dispute of an old order is found although Open no longer yields
	// it: a Pix payment can be disputed for 80 days, and no webhook reports it.
	// A round lists the transactions in these states, and reads those that have
	// changed since the last round. The gateway must know the states as values
	// of its filter status. Once your records have the dispute, yield it from
	// Open with its state until it is decided.
	Sweep []gateway.TransactionStatus

	// RepairAfter is how long a resource may stay open in the records after a
	// round found its event completed. Then the event is handled again, because
	// its effect was lost or never happened. The time counts in one Reconciler
	// only: with a new one for each round nothing is repaired. Each event is
	// repaired once. Default 15 min; a negative value disables repairs.
	RepairAfter time.Duration

	Every      time.Duration // between two rounds of Run, with jitter; default 10 min
	Concurrent int           // concurrent API calls; default 4
}

// Reconciler finds events that no webhook reported: lost deliveries, and
// transactions that expired or were refused, for which the gateway sends none.
// It reads the resources that are open in the merchant's records, and passes
// their events to the receiver's handlers. An event that a webhook reports too
// is handled once.
//
// A reconciled event has the Source [SourceReconciler], and the resource in
// Confirmed.
type Reconciler struct {
	rx  *Receiver
	cfg ReconcilerConfig

	mu       sync.Mutex
	suspects map[string]time.Time // by fact: since when the event is done but its resource open
	swept    map[string]time.Time // by id: the last update of transactions that a sweep has reported
}

// NewReconciler returns a reconciler for the receiver's handlers. The receiver
// must have an API.
func NewReconciler(rx *Receiver, cfg ReconcilerConfig) (*Reconciler, error) {
	switch {
	case rx == nil || rx.judge.signed == nil:
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
	Missing int // ids that the API does not have, which are logged, and Absent references
	Failed  int // resources that could not be read, or whose event was not handled; the next round retries them
	Found   int // events that no webhook had reported

	// Known counts events that were handled or are waiting, but whose resource
	// is still open in the records.
	Known     int
	Repaired  int // events that were handled again; see ReconcilerConfig.RepairAfter
	Unapplied int // repaired events whose resource is still open: a bug in the handler or in Open
	Undecided int // references that were not found, but are too recent, or too old for SearchPages
}

// Run makes rounds until ctx ends or the receiver is shut down. It logs
// errors.
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

// Once makes one round. It returns errors of Open and of ctx; failures of
// single resources are counted in the Reconciliation and logged.
func (r *Reconciler) Once(ctx context.Context) (Reconciliation, error) {
	ro := r.begin()
	err := ro.run(ctx)
	ro.tasks.Wait()
	r.end(ro, err == nil)
	return ro.sum, err
}

// Replay passes all events of one resource since open.Status to the handlers,
// including those that are done. Use it after fixing a handler or restoring a
// database. Handlers must tolerate events that they have handled before. An
// event that is waiting in the store is replayed, and handled once more when it
// is due. In Sync mode an event whose handler fails becomes a dead letter, and
// the error names it.
func (r *Reconciler) Replay(ctx context.Context, open OpenResource) (Reconciliation, error) {
	ro := r.begin()
	ro.replay = true
	return ro.check(ctx, open)
}

// happenedSince lists, in order, the kinds of events that must have happened
// to the resource since the state in the records.
func happenedSince(open OpenResource, r *resource, now time.Time) []Kind {
	if r.subscription != nil {
		return subscriptionSince(open, r, now)
	}
	if open.Status == r.status() {
		return nil
	}
	var since []Kind
	was := gateway.TransactionStatus(open.Status)
	wasDisputed := slices.Contains(disputeStates, was) && r.transaction != nil
	if wasDisputed && r.proves(TransactionDisputeWon, now) {
		return []Kind{TransactionDisputeWon}
	}
	wasPaid := was.Settled() || was == gateway.TransactionPartiallyRefunded || wasDisputed
	if r.transaction != nil && !wasPaid && r.proves(TransactionPaid, now) {
		since = append(since, TransactionPaid)
	}
	switch row := derivedRow(open.Family, r.status()); {
	case r.status() == "pending", row != nil && row.kind == TransactionPaid:
		return since
	case row == nil: // a state without a kind is reported under its own name
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
