package simulation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// merchant is a shop with a database, an inbox, and one process at a time.
type merchant struct {
	w        *World
	name     string
	account  *mockserver.Account
	sound    *gateway.Client // has no network faults; for people and the comparison, not for the merchant's processes
	customer string
	keyed    bool // whether its processes send idempotency keys, which only the live dialect honors
	unsigned bool // its webhooks are not signed and are confirmed through the API
	shop     *rand.Rand

	db      *books
	store   webhook.Store
	process *process
	starts  int
	sold    int
}

// process is one process of a merchant's program.
type process struct {
	m          *merchant
	number     int
	crashed    bool
	failed     bool // whether its last request failed
	client     *gateway.Client
	rx         *webhook.Receiver
	inbox      *inbox
	reconciler *webhook.Reconciler
}

func newMerchant(ctx context.Context, w *World, i int) (*merchant, error) {
	m := &merchant{
		w: w, name: fmt.Sprintf("m%d", i+1), keyed: w.live() && i%2 == 0, unsigned: i%3 == 2, db: newBooks(),
		store: w.inbox.For(gateway.Account{Name: fmt.Sprintf("m%d", i+1)}),
	}
	m.shop = w.stream(m.name)
	m.account = w.gw.Account(m.key().Reveal())
	m.sound = m.account.Client(noBackoff())
	endpoint := mockserver.Endpoint{Handler: m, Path: webhookPath}
	if !m.unsigned {
		endpoint.Secret = secret()
	}
	if _, err := m.account.Webhooks.AddEndpoint(endpoint); err != nil {
		return nil, err
	}
	customer, err := m.sound.Customers.Create(ctx, gateway.CustomerParams{Name: "Ana", Email: "ana@example.com", Phone: "11987654321"})
	if err != nil {
		return nil, err
	}
	m.customer = customer.ID
	if err := m.start(); err != nil { //nolint:contextcheck // webhook.New takes none
		return nil, err
	}
	m.open()
	return m, nil
}

// noBackoff sets the shortest possible wait, so that its unseeded jitter rounds to
// zero.
func noBackoff() gateway.Option { return gateway.WithBackoff(1, 1) }

func (m *merchant) key() gateway.Secret { return gateway.NewSecret("sk_test_" + m.name) }

const webhookPath = "/webhooks/gateway"

func secret() gateway.Secret { return gateway.NewSecret("whsec_0123456789abcdef0123456789abcdef") }

// start starts a new process of the program.
func (m *merchant) start() error {
	m.starts++
	p := &process{m: m, number: m.starts}
	transport := http.RoundTripper(route{p, m.w.cfg.Defect.gateway(m.w.gw.Transport())})
	options := []gateway.Option{
		gateway.WithAccount(m.name),
		gateway.WithHTTPClient(&http.Client{Transport: m.w.cfg.Defect.client(transport)}),
		noBackoff(), // the delay of route.latency replaces the backoff
		// No other timeout has this value: two with the same deadline would fire in
		// random order.
		gateway.WithAttemptTimeout(17 * time.Second),
	}
	if m.keyed {
		options = append(options, gateway.WithIdempotencyKeys())
	}
	var err error
	if p.client, err = gateway.New(mockserver.BaseURL, gateway.BearerToken(m.key().Reveal()), options...); err != nil {
		return err
	}
	p.inbox = &inbox{Store: m.store, p: p}
	cfg := webhook.Config{
		API: p.client, Store: p.inbox, Mode: webhook.Inbox, Workers: -1, Logger: slog.New(slog.DiscardHandler),
		HandlerTimeout: 5 * time.Minute,
		Backoff:        func(attempt int) time.Duration { return min(time.Minute<<min(attempt, 10), 6*time.Hour) },
	}
	if !m.unsigned {
		cfg.Keys = []webhook.SigningKey{{Key: secret()}}
	}
	if p.rx, err = webhook.New(cfg); err != nil {
		return err
	}
	webhook.OnTransaction(p.rx, webhook.AnyKind, p.onTransaction)
	webhook.OnSubscription(p.rx, webhook.AnyKind, p.onSubscription)
	webhook.OnTransfer(p.rx, webhook.AnyKind, p.onTransfer)
	p.reconciler, err = webhook.NewReconciler(p.rx, webhook.ReconcilerConfig{
		Open: p.open, Identified: p.identified, Absent: p.absent, Concurrent: 1,
	})
	m.process = p
	return err
}

func (p *process) name() string { return fmt.Sprintf("%s.%d", p.m.name, p.number) }

// mayCrash crashes the process with probability 1/400, and reports whether it has
// crashed.
func (p *process) mayCrash(where string) bool {
	w := p.m.w
	if p.crashed || !w.chance(w.crashes, 400) {
		return p.crashed
	}
	w.note(p.name(), "crashes %s", where)
	w.counts.Crashes++
	p.crashed = true
	downtime := between(w.crashes, time.Second, 2*time.Minute)
	switch w.crashes.IntN(20) {
	case 0:
		downtime = between(w.crashes, 26*time.Hour, 40*time.Hour) // longer than the gateway keeps redelivering
	case 1, 2, 3, 4:
		downtime = between(w.crashes, time.Minute, 5*time.Hour)
	}
	w.agenda.add(time.Now().Add(downtime), inFlight, p.m.restart)
	return true
}

// restart starts the next process if the last one has crashed.
func (m *merchant) restart(ctx context.Context) {
	if !m.process.crashed {
		return
	}
	if err := m.start(); err != nil { //nolint:contextcheck // webhook.New takes none
		m.w.note(m.name, "can't start: %v", err)
		return
	}
	m.w.note(m.process.name(), "starts")
	m.process.makeCalls(ctx)
}

// commit writes to the books in one transaction. The process may crash before or
// after it.
func (p *process) commit(o *order, what string, change func(*books)) error {
	if p.mayCrash("before " + o.ref + ": " + what) {
		return errCrashed
	}
	change(p.m.db)
	p.m.w.note(p.name(), "%s %s: %s", o.ref, o.id, what)
	if p.mayCrash("after " + o.ref + ": " + what) {
		return errCrashed
	}
	return nil
}

// work handles every due event of the inbox and reports whether there were any.
func (p *process) work(ctx context.Context) (worked bool, err error) {
	for !p.crashed {
		claim, _, err := p.rx.Work(ctx, "")
		if p.crashed || err == nil && claim == nil {
			return worked, nil
		}
		if err != nil {
			return worked, err
		}
		worked = true
	}
	return worked, nil
}

// reconcile makes one round and reports whether it found nothing to do.
func (p *process) reconcile(ctx context.Context) (quiet bool, err error) {
	if p.crashed || p.m.w.cfg.Defect == NeverReconciles {
		return true, nil
	}
	_, _ = p.m.store.Purge(ctx)
	sum, err := p.reconciler.Once(ctx)
	if p.crashed {
		return false, nil
	}
	if err == nil && sum.Unapplied > 0 {
		err = fmt.Errorf("%s: an event had no effect: %+v", p.name(), sum)
	}
	counts, _ := p.m.store.Counts(ctx)
	if counts.Dead > 0 {
		p.requeue(ctx)
	}
	counts.Oldest = 0
	p.m.w.note(p.name(), "reconciled: %+v, inbox: %+v", sum, counts)
	return counts == webhook.Counts{} && sum.Found+sum.Known+sum.Repaired+sum.Failed+sum.Undecided+sum.Missing == 0, err
}

// requeue requeues the dead letters, as an operator would after a review.
func (p *process) requeue(ctx context.Context) {
	letters, _ := p.m.store.DeadLetters(ctx, webhook.DeadLetterQuery{})
	for _, l := range letters {
		_, _ = p.m.store.Requeue(ctx, l.Key)
	}
}

// watchPeriod is how long a payment is reconciled, because it may be refunded or
// charged back.
const watchPeriod = 60 * day

// open iterates over the open orders in the books.
func (p *process) open(context.Context) iter.Seq2[webhook.OpenResource, error] {
	var list []webhook.OpenResource
	for _, o := range p.m.db.orders {
		r := webhook.OpenResource{ID: o.id, Status: o.status, PeriodEnd: o.periodEnd}
		switch o.kind {
		case subscription:
			r.Family = webhook.FamilySubscription
		case payout:
			r.Family = webhook.FamilyTransfer
		default:
			r.Family = webhook.FamilyTransaction
		}
		switch {
		case o.failed, o.since.IsZero(), o.id == "" && o.kind == subscription:
			continue
		case o.id == "":
			r.ExternalRef, r.Since = o.ref, o.since
		case !o.mayChange():
			continue
		}
		list = append(list, r)
	}
	return func(yield func(webhook.OpenResource, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// mayChange reports whether the order's state may still change.
func (o *order) mayChange() bool {
	switch o.kind {
	case subscription:
		return !gateway.SubscriptionStatus(o.status).Final()
	case payout:
		return !gateway.TransferStatus(o.status).Final()
	default:
		s := gateway.TransactionStatus(o.status)
		late := o.kind == voucher && s == gateway.TransactionExpired
		return s == gateway.TransactionPending || s == gateway.TransactionThreeDSRequired || (late || !s.Final()) && time.Since(o.statusAt) < watchPeriod
	}
}

func (p *process) identified(_ context.Context, open webhook.OpenResource) error {
	o := p.m.db.byRef[open.ExternalRef]
	return p.commit(o, "found by the reconciler", func(b *books) { p.m.storeID(b, o, open.ID) })
}

func (p *process) absent(_ context.Context, open webhook.OpenResource) error {
	o := p.m.db.byRef[open.ExternalRef]
	return p.commit(o, "does not exist", func(*books) { o.notBefore = time.Time{} })
}

// storeID stores the id of an order. From then on, its buyer can act.
func (m *merchant) storeID(b *books, o *order, id string) {
	if o.id != "" {
		return
	}
	o.id, b.byID[id] = id, o
	switch o.kind {
	case subscription:
		o.status = string(gateway.SubscriptionIncomplete)
	default:
		o.status = "pending" // webhooks report later states
	}
	o.statusAt = time.Now()
	m.w.scheduleActions(m, o)
}

// retryLater schedules the next call for an order after a failed one.
func (o *order) retryLater() {
	o.failures++
	o.notBefore = time.Now().Add(min(time.Minute<<min(o.failures, 10), 4*time.Hour))
}

// transient reports whether the call may succeed later.
func transient(err error) bool {
	return errors.Is(err, gateway.ErrOutcomeUnknown) || errors.Is(err, gateway.ErrNotSent) || errors.Is(err, gateway.ErrRateLimited) ||
		errors.Is(err, gateway.ErrServer)
}
