// Package simulation simulates merchants and their gateway from a seed, in
// virtual time, with the real client, the real webhook receiver (including its
// inbox and reconciler) and the mock gateway. Buyers pay, pay late or never
// pay; the network loses, duplicates and delays messages; the merchants'
// processes crash at any point and restart. After each month the books of
// every merchant must equal those of the gateway.
//
// A single goroutine makes all decisions, and all random numbers derive from
// the seed, so a seed always yields the same log, byte for byte. Only tests
// import the package: [Run] must be called in a synctest bubble.
package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// Config configures a world: the same Config yields the same log.
type Config struct {
	Seed      uint64
	Merchants int
	Months    int
	Defect    Defect
}

// World is a gateway with its merchants, their buyers, and the network between them.
type World struct {
	cfg       Config
	gw        *mockserver.Server
	inbox     webhook.Store // of all merchants, each with an account of its own
	merchants []*merchant
	agenda    agenda
	log       bytes.Buffer

	network *rand.Rand // latency and faults of requests
	crashes *rand.Rand // of processes
	people  *rand.Rand // buyers and banks

	closing      bool // a month is being closed: no faults and no sales
	closingUntil time.Time
	receiving    int // webhooks in progress; meanwhile the gateway's clock does not move

	delivered int               // deliveries that the gateway has created so far
	unacked   []unackedDelivery // those that were not acknowledged yet
	acked     bool              // whether the last delivery was acknowledged

	counts Counts
}

// Counts are the numbers of resources, requests, webhooks and crashes.
type Counts struct {
	Resources  int // orders, charges, subscriptions and payouts
	Requests   int
	Deliveries int
	Crashes    int
}

// Add adds the counts of another world.
func (c *Counts) Add(other Counts) {
	c.Resources += other.Resources
	c.Requests += other.Requests
	c.Deliveries += other.Deliveries
	c.Crashes += other.Crashes
}

// Run runs a world and returns its log. The error is a [*DifferenceError] if
// the books of a merchant differ from the gateway's.
func Run(ctx context.Context, cfg Config) (log []byte, counts Counts, err error) {
	w, err := newWorld(ctx, cfg)
	if err != nil {
		return nil, Counts{}, err
	}
	for month := 1; month <= cfg.Months && err == nil; month++ {
		err = w.playMonth(ctx, month)
	}
	for _, m := range w.merchants {
		w.counts.Resources += len(m.db.orders)
	}
	return w.log.Bytes(), w.counts, errors.Join(err, w.gw.Close())
}

func newWorld(ctx context.Context, cfg Config) (*World, error) {
	w := &World{
		cfg: cfg, closingUntil: time.Now(),
		inbox: webhook.NewMemoryStore(webhook.MemoryOptions{TTL: 8 * day}),
	}
	w.network, w.crashes, w.people = w.stream("network"), w.stream("deaths"), w.stream("people")
	dialect := mockserver.Document
	if w.live() {
		dialect = mockserver.Live
	}
	opts := []mockserver.Option{
		mockserver.WithSeed(cfg.Seed), mockserver.WithStart(time.Now()), mockserver.WithDialect(dialect), mockserver.WithConsole(false),
	}
	if w.settlesInPart() {
		opts = append(opts, mockserver.WithSettledPercent(19.27))
	}
	var err error
	w.gw, err = mockserver.New(opts...) //nolint:contextcheck // New takes none
	if err != nil {
		return nil, err
	}
	w.gw.Webhooks.Hold() // deliver releases them
	for i := range cfg.Merchants {
		m, err := newMerchant(ctx, w, i)
		if err != nil {
			return nil, errors.Join(err, w.gw.Close())
		}
		w.merchants = append(w.merchants, m)
	}
	if cfg.Defect == LosesRenewal {
		w.agenda.add(time.Now().Add(10*day), decision, func(context.Context) { w.loseRenewal() }) //nolint:contextcheck // Snapshot takes none
	}
	return w, nil
}

// live reports whether the gateway uses the live dialect.
func (w *World) live() bool { return w.cfg.Seed%2 == 1 }

// settlesInPart reports whether the gateway reports what it settles as the amount.
func (w *World) settlesInPart() bool { return w.cfg.Seed%4 == 1 }

const day = 24 * time.Hour

// stream returns a separate random source for each part of the world, so that changing
// one part does not affect the choices of the others.
func (w *World) stream(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))                        // never fails
	return rand.New(rand.NewPCG(w.cfg.Seed, h.Sum64())) //nolint:gosec // must be repeatable
}

// note writes a line to the log.
func (w *World) note(who, format string, args ...any) {
	w.log.WriteString(time.Now().UTC().Format("2006-01-02T15:04:05.000000000Z "))
	w.log.WriteString(who)
	w.log.WriteByte(' ')
	fmt.Fprintf(&w.log, format, args...)
	w.log.WriteByte('\n')
}

// history returns the last n lines of the log that contain one of the names.
func (w *World) history(n int, names ...string) []string {
	var list []string
	for line := range strings.Lines(w.log.String()) {
		for _, name := range names {
			if name != "" && strings.Contains(line, name) {
				list = append(list, strings.TrimSuffix(line, "\n"))
				break
			}
		}
	}
	return list[max(0, len(list)-n):]
}

func (w *World) playMonth(ctx context.Context, month int) error {
	if err := w.planFaults(); err != nil {
		return err
	}
	first := time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	if err := w.until(ctx, first.AddDate(0, month, 0)); err != nil {
		return err
	}
	return w.closeMonth(ctx, month)
}

// tick is how often processes look for due work if nothing else happens.
const tick = time.Hour

// until runs the world until t.
func (w *World) until(ctx context.Context, t time.Time) error {
	return w.agenda.until(ctx, t, tick, func(ticks bool) error { return w.turn(ctx, ticks) })
}

func (w *World) turn(ctx context.Context, ticks bool) error {
	if err := w.catchUp(); err != nil { //nolint:contextcheck // the clock takes none
		return err
	}
	for it, ok := w.agenda.due(time.Now()); ok; it, ok = w.agenda.due(time.Now()) {
		if w.closing && it.kind == decision {
			w.agenda.add(w.closingUntil, decision, it.do)
			continue
		}
		it.do(ctx)
		if err := w.pump(ctx); err != nil {
			return err
		}
	}
	if ticks {
		for _, m := range w.merchants {
			m.process.makeCalls(ctx)
		}
	}
	return w.pump(ctx)
}

// catchUp advances the gateway's clock to now. That is impossible while a webhook
// is being delivered.
func (w *World) catchUp() error {
	if w.receiving > 0 {
		return nil
	}
	return w.gw.Clock.AdvanceTo(time.Now())
}

// pump makes the due deliveries and processes the inboxes.
func (w *World) pump(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = w.deliver(ctx); err != nil {
			return err
		}
		for _, m := range w.merchants {
			worked, err := m.process.work(ctx)
			if err != nil {
				return err
			}
			more = more || worked
		}
	}
	return nil
}

// closeMonth lets everything settle without faults and then compares the books.
func (w *World) closeMonth(ctx context.Context, month int) error {
	const rounds, length = 16, 2 * time.Hour
	w.closing, w.closingUntil = true, time.Now().Add((rounds+1)*length)
	w.gw.Up()
	w.gw.Faults.Clear()
	w.gw.Webhooks.ClearFaults()
	for _, m := range w.merchants {
		m.restart(ctx)
	}
	settled := false
	for round := 0; round < rounds && (!settled || round < 2); round++ {
		if err := w.until(ctx, time.Now().Add(length)); err != nil {
			return err
		}
		var err error
		if settled, err = w.reconcile(ctx); err != nil {
			return err
		}
	}
	if err := w.audit(ctx, month); err != nil {
		return err
	}
	w.closing = false
	return nil
}

// reconcile runs every merchant's reconciliation and reports whether there was
// nothing left to do.
func (w *World) reconcile(ctx context.Context) (settled bool, err error) {
	settled = true
	for _, m := range w.merchants {
		quiet, err := m.process.reconcile(ctx)
		if err != nil {
			return false, err
		}
		if err := w.pump(ctx); err != nil {
			return false, err
		}
		settled = settled && quiet && len(m.db.todo) == 0
	}
	return settled, nil
}
