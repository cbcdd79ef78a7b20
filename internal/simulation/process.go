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
	sound    *gateway.Client // used by people and by the comparison, not by the merchant's processes
	customer string
	keyed    bool // its gateway honours idempotency keys: the live dialect does
	unsigned bool // its webhooks have no signature: the API confirms them
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
	dead       bool
	failed     bool // its last request
	client     *gateway.Client
	rx         *webhook.Receiver
	inbox      *inbox
	reconciler *webhook.Reconciler
}

func newMerchant(ctx context.Context, w *World, i int) (*merchant, error) {
	m := &merchant{
		w: w, name: fmt.Sprintf("m%d", i+1), keyed: w.live() && i%2 == 0, unsigned: i%3 == 2, db: newBooks(),
		store: webhook.NewMemoryStore(webhook.MemoryOptions{TTL: 8 * day}),
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

// noBackoff sets the shortest possible wait: its unseeded jitter rounds to zero.
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
		gateway.WithHTTPClient(&http.Client{Transport: m.w.cfg.Defect.client(transport)}),
		noBackoff(), // the network waits instead
		// Two timeouts with the same deadline would end in random order.
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

// mayDie kills the process once in a few hundred calls, and reports whether it
// did.
func (p *process) mayDie(where string) bool {
	w := p.m.w
	if p.dead || !w.chance(w.deaths, 400) {
		return p.dead
	}
	w.note(p.name(), "dies %s", where)
	w.counts.Deaths++
	p.dead = true
	downtime := between(w.deaths, time.Second, 2*time.Minute)
	switch w.deaths.IntN(20) {
	case 0:
		downtime = between(w.deaths, 26*time.Hour, 40*time.Hour) // longer than the gateway's schedule of redeliveries
	case 1, 2, 3, 4:
		downtime = between(w.deaths, time.Minute, 5*time.Hour)
	}
	w.agenda.add(time.Now().Add(downtime), wire, p.m.restart)
	return true
}

// restart starts the next process after one has died.
func (m *merchant) restart(ctx context.Context) {
	if !m.process.dead {
		return
	}
	if err := m.start(); err != nil { //nolint:contextcheck // webhook.New takes none
		m.w.note(m.name, "can't start: %v", err)
		return
	}
	m.w.note(m.process.name(), "starts")
	m.process.tend(ctx)
}

// commit writes to the books, all or nothing. The process may die before and after.
func (p *process) commit(o *order, what string, change func(*books)) error {
	if p.mayDie("before " + o.ref + ": " + what) {
		return errDied
	}
	change(p.m.db)
	p.m.w.note(p.name(), "%s %s: %s", o.ref, o.id, what)
	if p.mayDie("after " + o.ref + ": " + what) {
		return errDied
	}
	return nil
}

// work handles every event of the inbox that is due, and reports whether there was one.
func (p *process) work(ctx context.Context) (some bool, err error) {
	for !p.dead {
		claim, _, err := p.rx.Work(ctx, "")
		if p.dead || err == nil && claim == nil {
			return some, nil
		}
		if err != nil {
			return some, err
		}
		some = true
	}
	return some, nil
}

// reconcile makes one round, and reports whether it found nothing.
func (p *process) reconcile(ctx context.Context) (quiet bool, err error) {
	if p.dead || p.m.w.cfg.Defect == NeverReconciles {
		return true, nil
	}
	_, _ = p.m.store.Purge(ctx)
	sum, err := p.reconciler.Once(ctx)
	if p.dead {
		return false, nil
	}
	if err == nil && sum.Unapplied > 0 {
		err = fmt.Errorf("%s: an event has no effect: %+v", p.name(), sum)
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

// watched is how long a payment is monitored: it may be refunded or charged back.
const watched = 60 * day

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

// mayChange reports whether more can happen to the order.
func (o *order) mayChange() bool {
	switch o.kind {
	case subscription:
		return !gateway.SubscriptionStatus(o.status).Final()
	case payout:
		return !gateway.TransferStatus(o.status).Final()
	default:
		s := gateway.TransactionStatus(o.status)
		late := o.kind == voucher && s == gateway.TransactionExpired
		return s == gateway.TransactionPending || s == gateway.TransactionThreeDSRequired || (late || !s.Final()) && time.Since(o.booked) < watched
	}
}

func (p *process) identified(_ context.Context, open webhook.OpenResource) error {
	o := p.m.db.byRef[open.ExternalRef]
	return p.commit(o, "is found", func(b *books) { p.m.know(b, o, open.ID) })
}

func (p *process) absent(_ context.Context, open webhook.OpenResource) error {
	o := p.m.db.byRef[open.ExternalRef]
	return p.commit(o, "is absent", func(*books) { o.notBefore = time.Time{} })
}

// know stores the id of an order; from then on its buyer can act.
func (m *merchant) know(b *books, o *order, id string) {
	if o.id != "" {
		return
	}
	o.id, b.byID[id] = id, o
	switch o.kind {
	case subscription:
		o.status = string(gateway.SubscriptionIncomplete)
	default:
		o.status = "pending" // webhooks report what follows
	}
	o.booked = time.Now()
	m.w.await(m, o)
}

// later plans the next call for an order after one that failed.
func (o *order) later() {
	o.calls++
	o.notBefore = time.Now().Add(min(time.Minute<<min(o.calls, 10), 4*time.Hour))
}

// transient reports whether an error is not about the order itself.
func transient(err error) bool {
	return errors.Is(err, gateway.ErrOutcomeUnknown) || errors.Is(err, gateway.ErrNotSent) || errors.Is(err, gateway.ErrRateLimited) ||
		errors.Is(err, gateway.ErrServer)
}
