// Package inbox explores the interleavings of a webhook inbox: deliveries are
// stored while two processes claim, handle and complete events, processes crash,
// and leases expire. It uses real receivers, which stop before every call of the
// store and in every handler; a run of package explore chooses which one
// continues.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// World is the environment of a run: an empty store, and storage for effects.
type World interface {
	// Store opens the store as a new process would.
	Store() webhook.Store
	// Expire makes the leases of all claims expire.
	Expire() error
	// Handler returns a handler that writes the effect of an event under its name.
	Handler(name func(*webhook.TransactionEvent) string) func(context.Context, *webhook.TransactionEvent) error
	// Effects returns the number of times that each effect was written.
	Effects() (map[string]int, error)
	// Exact reports whether an effect and the completion of its event are written in
	// one transaction.
	Exact() bool
}

// Scenario is a set of deliveries.
type Scenario struct {
	Name       string
	Deliveries []Delivery
	API        *gateway.Client // confirms unsigned deliveries; nil if all are signed

	// Sync makes the receivers respond after the handler. There are no workers: only
	// the gateway retries, until it gets a 200.
	Sync bool
	// Memory means that a store in Sync mode does not survive its process, which
	// therefore neither crashes nor loses a lease.
	Memory bool
}

// Delivery is one request to the receiver.
type Delivery struct {
	Name   string // its name in the table
	To     string // the account whose receiver gets it; "" means shop
	Event  string // the effect that it must have; "" if it is forged
	Signed bool
	Body   []byte
	Newer  []byte // the body of redeliveries, if it differs
}

// accounts are the accounts that share the store.
func (s *Scenario) accounts() []string {
	for _, d := range s.Deliveries {
		if d.To != "" {
			return []string{shop, d.To}
		}
	}
	return []string{shop, shop}
}

const shop = "shop"

// EventName returns the name of a transaction event, which is also that of its
// effect in the account shop.
func EventName(e *webhook.TransactionEvent) string { return string(e.Kind) + " " + e.ResourceID }

// Limits bound the runs of a scenario.
type Limits struct {
	Turns    int // switches between actors; -1 for no limit
	Crashes  int // processes that crash while they hold a claim
	Expiries int // times that all leases expire while their processes still run
	Failures int // handlers that fail, in Sync mode
}

// Explore makes every run of a scenario within the limits, each in its own world.
// If a property is violated, it returns a table of the steps that lead to the
// violation, minimized.
func Explore(ctx context.Context, scenario Scenario, limits Limits, open func() World) (runs int, counterExample string) {
	play := func(run *explore.Run) *play {
		p := &play{run: run, world: open(), scenario: scenario, limits: limits, held: map[string]*actor{}}
		p.play(ctx)
		return p
	}
	var tree explore.Tree
	for run := tree.Next(); run != nil; run = tree.Next() {
		if p := play(run); len(p.violations) > 0 {
			picks := explore.Minimize(run.Picks(), func(run *explore.Run) bool { return slices.Contains(play(run).violations, p.violations[0]) })
			return tree.Runs(), play(explore.Replay(picks)).String()
		}
	}
	return tree.Runs(), ""
}

// play makes one run.
func (p *play) play(ctx context.Context) {
	if p.scenario.Memory {
		p.limits.Crashes, p.limits.Expiries = 0, 0
	}
	for i := range p.scenario.Deliveries {
		d := &p.scenario.Deliveries[i]
		p.begin(d.Name, cmp.Or(d.To, shop), func(a *actor) {
			if p.scenario.Sync {
				p.redeliver(ctx, a, d)
			} else {
				p.deliver(ctx, a, d, d.Body)
			}
		})
	}
	if !p.scenario.Sync {
		for i, account := range p.scenario.accounts() {
			p.begin(fmt.Sprint("worker ", i+1), account, func(a *actor) { p.work(ctx, a) })
		}
	}
	for p.step() {
	}
	for _, a := range p.actors {
		a.stop()
	}
	p.check(ctx)
}

// String returns the table of a run.
func (p *play) String() string {
	return fmt.Sprintf("%s\n%s  => %s\n", p.scenario.Name, p.table.String(), strings.Join(p.violations, "\n  => "))
}

type play struct {
	run      *explore.Run
	world    World
	scenario Scenario
	limits   Limits

	actors     []*actor
	last       *actor
	version    int               // version of the store's contents
	held       map[string]*actor // the actor that has claimed a resource, by account and resource
	lost       int               // claims that were lost, each of which may repeat an effect
	stored     []string          // events that were acknowledged
	violations []string
	table      strings.Builder
}

// actor is a delivery or a worker process. It runs only while the scheduler
// waits for it.
type actor struct {
	name    string
	account string
	resume  chan bool   // false means that the process crashes
	at      chan string // the places where it stops; closed at its end
	place   string      // where it has stopped; "" after its end
	crashed bool
	fails   bool // its handler returns an error
	idleAt  int  // the version of the store in which it found nothing to do, or -1

	observed error // of its last delivery
}

// The places where actors stop.
const (
	atPut    = "put"
	atClaim  = "claim"
	atEffect = "effect"
	atSettle = "complete"
)

var errHandler = errors.New("the handler fails")

var errCrashed = fmt.Errorf("the process has crashed: %w", webhook.ErrClaimLost)

// stopAt waits until the actor may continue. In a process that has crashed, its
// goroutines get the error immediately.
func (a *actor) stopAt(place string) error {
	if a.crashed {
		return errCrashed
	}
	a.at <- place
	if !<-a.resume {
		a.crashed = true
		return errCrashed
	}
	return nil
}

func (a *actor) stop() {
	if a.place != "" {
		a.proceed(false)
	}
}

// proceed lets the actor run to its next stop, or crash.
func (a *actor) proceed(alive bool) {
	a.resume <- alive
	a.place = <-a.at
}

func (p *play) begin(name, account string, script func(*actor)) {
	a := &actor{name: name, account: account, resume: make(chan bool), at: make(chan string), idleAt: -1}
	p.actors = append(p.actors, a)
	go func() {
		defer close(a.at)
		script(a)
	}()
	a.place = <-a.at
}

// receiver returns the receiver of a process.
func (p *play) receiver(a *actor) *webhook.Receiver {
	cfg := webhook.Config{
		Keys: []webhook.SigningKey{{Key: webhooktest.Secret()}}, Store: &steppedStore{p.world.Store(), p, a},
		Account: a.account, Mode: webhook.Inbox, Workers: -1, Lease: time.Hour, HandlerTimeout: time.Hour, Logger: slog.New(slog.DiscardHandler),
		Observe: func(_ context.Context, o webhook.Observation) { a.observed = o.Err },
	}
	if p.scenario.API != nil {
		cfg.API, cfg.Trust = p.scenario.API, webhook.SignatureOrReadBack
	}
	if p.scenario.Sync {
		cfg.Mode, cfg.Workers, cfg.Backoff = webhook.Sync, 0, func(int) time.Duration { return 0 }
	}
	rx, err := webhook.New(cfg)
	if err != nil {
		p.fail(err.Error())
		return nil
	}
	handle := p.world.Handler(func(e *webhook.TransactionEvent) string { return effectName(a.account, EventName(e)) })
	for _, kind := range []webhook.Kind{webhook.TransactionPaid, webhook.TransactionRefunded} {
		webhook.OnTransaction(rx, kind, func(ctx context.Context, e *webhook.TransactionEvent) error {
			if err := a.stopAt(atEffect); err != nil {
				return err
			}
			if a.fails {
				a.fails = false
				return errHandler
			}
			err := handle(ctx, e)
			if claim, ok := webhook.ClaimFromContext(ctx); ok && claim.Completed {
				p.release(a, claim)
			}
			return err
		})
	}
	return rx
}

// deliver sends one delivery.
func (p *play) deliver(ctx context.Context, a *actor, d *Delivery, body []byte) (acknowledged bool) {
	sent := webhook.Delivery{Header: http.Header{"Content-Type": {"application/json"}}, Body: slices.Clone(body)}
	if d.Signed {
		sent.Header = webhooktest.Sign(webhooktest.Secret(), time.Now(), body)
	}
	response := p.receiver(a).Receive(ctx, sent) //nolint:contextcheck // webhook.New takes none
	switch {
	case a.crashed:
	case d.Event == "" && response.Status == http.StatusOK:
		p.fail("a forged delivery was accepted: " + d.Name)
	case d.Event == "":
	case response.Status == http.StatusOK:
		p.stored = append(p.stored, d.Event)
		return true
	case !p.scenario.Sync:
		p.fail(fmt.Sprintf("%s: status %d, %v", d.Name, response.Status, a.observed))
	}
	return false
}

// redeliver sends a delivery until it is acknowledged, in Sync mode. By then its
// event must have its effect. A process that has crashed restarts.
func (p *play) redeliver(ctx context.Context, a *actor, d *Delivery) {
	for body := d.Body; ; {
		acknowledged := p.deliver(ctx, a, d, body)
		switch {
		case a.crashed && (a.place == atPut || a.place == atClaim): // the run is over
			p.fail("an event was never acknowledged: " + d.Name)
			return
		case acknowledged:
			effects, err := p.world.Effects()
			if err != nil || effects[d.Event] == 0 {
				p.fail(fmt.Sprintf("%s was acknowledged before its event was handled, %v", d.Name, err))
			}
			return
		case d.Event == "":
			return
		}
		a.crashed = false
		if d.Newer != nil {
			body = d.Newer
		}
	}
}

// work handles the due events one by one. A process that has crashed restarts.
func (p *play) work(ctx context.Context, a *actor) {
	for a.place != atClaim { // a process ends at this place only when the run is over
		a.crashed = false
		rx := p.receiver(a) //nolint:contextcheck // webhook.New takes none
		for !a.crashed {
			if _, _, err := rx.Work(ctx, "next"); err != nil && !a.crashed {
				p.fail("a worker failed: " + err.Error())
				return
			}
		}
	}
}

// step lets one actor continue or an event happen, as chosen by the run. It
// returns false when nothing is left to do.
func (p *play) step() bool {
	moves := p.moves()
	if len(moves) == 0 {
		return false
	}
	pick := 0
	if len(moves) > 1 && p.limits.Turns != 0 {
		pick = p.run.Choose(len(moves))
	}
	if pick > 0 && p.limits.Turns > 0 {
		p.limits.Turns--
	}
	moves[pick]()
	return true
}

// moves returns the possible next steps. In the first one, the last actor continues
// if it can.
func (p *play) moves() (moves []func()) {
	actors := slices.Clone(p.actors)
	if i := slices.Index(actors, p.last); i > 0 {
		actors = slices.Concat(actors[i:i+1], actors[:i], actors[i+1:])
	}
	for _, a := range actors {
		if a.place != "" && !p.idle(a) {
			moves = append(moves, func() { p.proceed(a) })
		}
	}
	for _, a := range actors {
		if (a.place == atEffect || a.place == atSettle) && p.limits.Crashes > 0 {
			moves = append(moves, func() { p.crash(a) })
		}
	}
	for _, a := range actors {
		if a.place == atEffect && p.limits.Failures > 0 && p.scenario.Sync {
			moves = append(moves, func() { p.failHandler(a) })
		}
	}
	if len(p.held) > 0 && p.limits.Expiries > 0 {
		moves = append(moves, func() {
			p.limits.Expiries--
			p.expire()
		})
	}
	if len(moves) == 0 && len(p.held) > 0 { // including the claims of crashed processes
		moves = append(moves, p.expire)
	}
	return moves
}

// idle reports whether an actor would find the store as it was when it had nothing
// to do: a worker looks for an event again, and the gateway redelivers one, after
// something has changed.
func (p *play) idle(a *actor) bool {
	return (a.place == atClaim || a.place == atPut) && a.idleAt == p.version
}

func (p *play) proceed(a *actor) {
	p.last = a
	fmt.Fprintf(&p.table, "  %-22s %s\n", a.name, a.place)
	if a.place != atClaim && (a.place != atPut || !p.scenario.Sync) {
		p.version++
	}
	a.proceed(true)
}

func (p *play) failHandler(a *actor) {
	p.limits.Failures--
	p.last = a
	a.fails = true
	fmt.Fprintf(&p.table, "  %-22s the handler fails\n", a.name)
	a.proceed(true)
}

func (p *play) crash(a *actor) {
	p.limits.Crashes--
	fmt.Fprintf(&p.table, "  %-22s crashes before: %s\n", a.name, a.place)
	p.version++
	a.proceed(false)
}

func (p *play) expire() {
	fmt.Fprintf(&p.table, "  %-22s\n", "all leases expire")
	if err := p.world.Expire(); err != nil {
		p.fail(err.Error())
	}
	p.lost += len(p.held)
	clear(p.held)
	p.version++
	for _, a := range p.actors { // an idle process continues and takes over
		if a.place == atClaim {
			p.last = a
			break
		}
	}
}

// effectName returns the name of an event's effect.
func effectName(account, event string) string {
	if account == shop {
		return event
	}
	return account + " " + event
}

// release records that an actor has completed its claim.
func (p *play) release(a *actor, c *webhook.Claim) {
	switch resource := effectName(a.account, c.Resource); p.held[resource] {
	case a:
		delete(p.held, resource)
	case nil: // its lease expired, and no process has claimed the event since
	default:
		p.fail(a.name + " completed an event that another process has claimed")
	}
}

func (p *play) fail(text string) { p.violations = append(p.violations, text) }

// check compares the effects with the deliveries.
func (p *play) check(ctx context.Context) {
	effects, err := p.world.Effects()
	if err != nil {
		p.fail(err.Error())
	}
	maxWrites := 1
	if !p.world.Exact() {
		maxWrites += p.lost
	}
	for name, n := range effects {
		if !slices.ContainsFunc(p.scenario.Deliveries, func(d Delivery) bool { return d.Event == name }) {
			p.fail("an effect without an event: " + name)
		}
		if n > maxWrites {
			p.fail(fmt.Sprintf("the effect %s was written %d times", name, n))
		}
	}
	for _, event := range p.stored {
		if effects[event] == 0 {
			p.fail("an acknowledged event was lost: " + event)
		}
	}
	for _, name := range p.scenario.accounts() {
		counts, err := p.world.Store().For(gateway.Account{Name: name}).Counts(ctx)
		counts.Oldest = 0
		if p.scenario.Sync {
			counts.Dead = 0 // redeliveries with other content, for an operator
		}
		if err != nil || counts != (webhook.Counts{}) {
			p.fail(fmt.Sprintf("the inbox of %s is not empty: %+v, %v", name, counts, err))
			return
		}
	}
}

// steppedStore is the store of one process. It stops the process before every call
// that changes the store.
type steppedStore struct {
	webhook.Store

	p *play
	a *actor
}

// Durable returns true, because Inbox mode requires it and the store survives
// crashes, except those of [Scenario.Memory].
func (s *steppedStore) Durable() bool { return !s.p.scenario.Memory }

// For binds the store to the account of the process.
func (s *steppedStore) For(a gateway.Account) webhook.Store {
	s.Store = s.Store.For(a)
	return s
}

// Purge does nothing, because it is not part of the interleavings.
func (s *steppedStore) Purge(context.Context) (webhook.Purged, error) { return webhook.Purged{}, nil }

// Put stores a delivery's event.
func (s *steppedStore) Put(ctx context.Context, rec webhook.Record) (webhook.Entry, error) {
	if err := s.a.stopAt(atPut); err != nil {
		return webhook.Entry{}, err
	}
	entry, err := s.Store.Put(ctx, rec)
	if entry.Added && s.p.scenario.Sync {
		s.p.version++
	}
	return entry, err
}

// PutDead stores the event of a redelivery with other content.
func (s *steppedStore) PutDead(ctx context.Context, rec webhook.Record, reason string) (webhook.Entry, error) {
	if s.a.crashed {
		return webhook.Entry{}, errCrashed
	}
	return s.Store.PutDead(ctx, rec, reason)
}

// NextUnhandled returns nothing, because every event has a handler.
func (*steppedStore) NextUnhandled(context.Context, func(webhook.Family, webhook.Kind) bool, int, time.Duration) ([]*webhook.Claim, error) {
	return nil, nil
}

// Claim claims the event, or in Inbox mode the next event, whatever its key.
func (s *steppedStore) Claim(ctx context.Context, key string, lease time.Duration) (*webhook.Claim, webhook.Entry, error) {
	if err := s.a.stopAt(atClaim); err != nil {
		return nil, webhook.Entry{}, err
	}
	if s.p.scenario.Sync {
		return s.claimKey(ctx, key, lease)
	}
	claims, err := s.Store.Next(ctx, 1, lease)
	if err != nil || len(claims) == 0 {
		s.a.idleAt = s.p.version
		return nil, webhook.Entry{}, err
	}
	s.hold(claims[0])
	return claims[0], webhook.Entry{}, nil
}

// claimKey claims an event in Sync mode. If its resource is busy, the gateway
// redelivers it later, instead of the receiver waiting for a while.
func (s *steppedStore) claimKey(ctx context.Context, key string, lease time.Duration) (*webhook.Claim, webhook.Entry, error) {
	c, entry, err := s.Store.Claim(ctx, key, lease)
	switch {
	case err != nil:
	case c != nil:
		s.hold(c)
	case entry.State != webhook.StateDone && entry.State != webhook.StateDead:
		entry.Wait = max(entry.Wait, time.Second)
		s.a.idleAt = s.p.version
	}
	return c, entry, err
}

// hold records that the actor has claimed an event.
func (s *steppedStore) hold(c *webhook.Claim) {
	s.p.version++
	resource := effectName(s.a.account, c.Resource)
	if other := s.p.held[resource]; other != nil {
		s.p.fail(s.a.name + " and " + other.name + " have claimed events of the same resource")
	}
	s.p.held[resource] = s.a
}

// Settle ends the claim of an event.
func (s *steppedStore) Settle(ctx context.Context, c *webhook.Claim, d webhook.Disposition) error {
	switch {
	case d.State == webhook.StateDone:
		return s.complete(ctx, c, d)
	case s.a.crashed:
		return errCrashed
	}
	err := s.Store.Settle(ctx, c, d)
	switch {
	case d.State != webhook.StateWaiting, d.Released, errors.Is(err, webhook.ErrClaimLost):
	case err == nil && d.Reason == errHandler.Error():
		s.p.version++
		s.p.release(s.a, c)
	default:
		s.p.fail("a handler failed: " + d.Reason)
	}
	return err
}

func (s *steppedStore) complete(ctx context.Context, c *webhook.Claim, d webhook.Disposition) error {
	if err := s.a.stopAt(atSettle); err != nil {
		return err
	}
	err := s.Store.Settle(ctx, c, d)
	if err == nil {
		s.p.release(s.a, c)
	}
	return err
}
