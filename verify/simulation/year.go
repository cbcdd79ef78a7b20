package simulation

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// YearConfig configures a shop that keeps its books with package merchant.
type YearConfig struct {
	Seed   uint64
	Months int
	Dir    string // for the shop's database; empty
	Defect YearDefect
	Fate   Fate // "" for a gateway and clocks as they should be
}

// Year is a shop on package merchant with its SQLite database, its buyers, its bank and
// the network between it and the gateway.
//
// All random numbers derive from the seed, but package merchant works with several
// goroutines, whose order is not fixed: a seed gives the same people and the same kind of
// network, not the same log.
type Year struct {
	cfg    YearConfig
	gw     *mockserver.Server
	sound  *gateway.Client // without faults; for people and the comparison
	reader *sql.DB         // of the comparison
	shop   *shop           // the running process, or the one that crashed last
	agenda agenda
	people *rand.Rand // only the goroutine of RunYear draws from it

	skew      atomic.Int64    // of the clock of the shop's database, in nanoseconds
	shown     atomic.Int64    // how many statements used it
	fated     map[string]bool // the faults of the fate, as text
	receiving atomic.Int32    // webhooks in progress; meanwhile the gateway's clock does not move
	late      sync.WaitGroup

	mu      sync.Mutex // for what follows
	log     bytes.Buffer
	network *rand.Rand
	crashes *rand.Rand
	closing bool
	counts  YearCounts
	parcels map[string]int       // shipped by [ShipsAtOnce]
	paidAt  map[string]time.Time // when the bank paid a transfer that it returns later

	closingUntil time.Time
	sold         int
	decided      map[string]int64     // what the shop has decided to refund, in cents, by charge; full is the largest amount
	members      map[string]time.Time // when a subscription was asked for
	links        []string             // URLs
	checked      int64                // the number of the last fact whose order was checked
	months       []yearMonth
}

// yearMonth is a month that was compared.
type yearMonth struct {
	name    string
	closing int64
}

// YearCounts are the numbers of a year.
type YearCounts struct {
	Orders, Requests, Webhooks, Facts, Callbacks, Refunds, Crashes, Faults int

	Fate int // how often the fate of the year showed: in requests and webhooks, or statements
}

// Add adds the counts of another year.
func (c *YearCounts) Add(o YearCounts) {
	c.Orders, c.Requests, c.Webhooks, c.Facts = c.Orders+o.Orders, c.Requests+o.Requests, c.Webhooks+o.Webhooks, c.Facts+o.Facts
	c.Callbacks, c.Refunds, c.Crashes, c.Faults = c.Callbacks+o.Callbacks, c.Refunds+o.Refunds, c.Crashes+o.Crashes, c.Faults+o.Faults
	c.Fate += o.Fate
}

// zone is the account's. A month begins at 3 o'clock UTC.
var zone = time.FixedZone("BRT", -3*60*60)

// RunYear runs a shop and returns its log. It must be called in a synctest bubble, after
// [SimulateDatabaseTime]. The
// error is a [*DifferenceError] if the books are wrong after a month, or a moment.
func RunYear(ctx context.Context, cfg YearConfig) (log []byte, counts YearCounts, err error) {
	y := &Year{
		cfg: cfg, closingUntil: time.Now(), parcels: make(map[string]int), paidAt: make(map[string]time.Time),
		fated: make(map[string]bool), decided: make(map[string]int64), members: make(map[string]time.Time),
	}
	y.people, y.network, y.crashes = stream(cfg.Seed, "people"), stream(cfg.Seed, "network"), stream(cfg.Seed, "deaths")
	y.skew.Store(int64(cfg.Fate.startSkew()))
	opts := []mockserver.Option{mockserver.WithSeed(cfg.Seed), mockserver.WithStart(time.Now()), mockserver.WithConsole(false)}
	if cfg.Seed%2 == 1 {
		opts = append(opts, mockserver.WithDialect(mockserver.Live))
	}
	if cfg.Seed%3 == 1 {
		opts = append(opts, mockserver.WithFee(99))
	}
	if y.gw, err = mockserver.New(opts...); err != nil { //nolint:contextcheck // New takes none
		return nil, counts, err
	}
	y.sound = y.gw.Client(noBackoff(), y.unharmed())
	err = y.run(ctx)
	y.late.Wait()
	y.countFaults()
	y.counts.Fate += int(y.shown.Load())
	return y.log.Bytes(), y.counts, errors.Join(err, y.gw.Close())
}

// unharmed gives each request a harmless fault, which overrides all others.
func (y *Year) unharmed() gateway.Option {
	return gateway.WithHTTPClient(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("X-Mock-Fault", mockserver.ExtraField().String())
		return y.gw.Transport().RoundTrip(r)
	})})
}

func (y *Year) run(ctx context.Context) (err error) {
	if y.reader, err = sql.Open("sqlite", y.dsn()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, y.reader.Close()) }()
	if err := y.tables(ctx); err != nil {
		return err
	}
	y.gw.Webhooks.Send(y)
	if err := y.start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, y.shop.end()) }()
	y.opens(ctx)
	first := time.Date(2000, time.January, 1, 0, 0, 0, 0, zone)
	for month := range y.cfg.Months {
		if err := errors.Join(y.planFaults(), y.planFate(month)); err != nil {
			return err
		}
		if err := y.until(ctx, first.AddDate(0, month+1, 0)); err != nil {
			return err
		}
		if err := y.closeMonth(ctx, month+1, first.AddDate(0, month, 0).Format("2006-01")); err != nil {
			return err
		}
	}
	return nil
}

func stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))                  // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64())) //nolint:gosec // must be repeatable
}

// note writes a line to the log.
func (y *Year) note(who, format string, args ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	fmt.Fprintf(&y.log, "%s %s %s\n", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), who, fmt.Sprintf(format, args...))
}

// chance is true with probability 1/n, but never while a month is being closed.
func (y *Year) chance(r *rand.Rand, n int) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return r.IntN(n) == 0 && !y.closing
}

// span returns a random duration.
func (y *Year) span(r *rand.Rand, lo, hi time.Duration) time.Duration {
	y.mu.Lock()
	defer y.mu.Unlock()
	return between(r, lo, hi)
}

// beat is how often the gateway's clock moves at least.
const beat = 10 * time.Minute

// until runs the shop until t.
func (y *Year) until(ctx context.Context, t time.Time) error {
	return y.agenda.until(ctx, t, beat, func(bool) error { return y.turn(ctx) })
}

func (y *Year) turn(ctx context.Context) error {
	if err := y.catchUp(); err != nil { //nolint:contextcheck // the clock takes none
		return err
	}
	if err := y.restart(ctx); err != nil {
		return err
	}
	for it, ok := y.agenda.due(time.Now()); ok; it, ok = y.agenda.due(time.Now()) {
		if y.closing && it.kind == decision {
			y.agenda.add(y.closingUntil, decision, it.do)
			continue
		}
		it.do(ctx)
		if err := y.checkSums(ctx); err != nil {
			return err
		}
	}
	return nil
}

// catchUp advances the gateway's clock to now.
func (y *Year) catchUp() error {
	if y.receiving.Load() > 0 {
		return nil
	}
	now := time.Now()
	if !y.gw.Clock.Now().Before(now) {
		return nil
	}
	return y.gw.Clock.AdvanceTo(now)
}

// planFaults plans the faults of the next month.
func (y *Year) planFaults() error {
	list := append(randomFaults(), mockserver.StaleRead().On("transactions.get").Probability(0.01))
	if y.cfg.Fate == StopsUpdates {
		list = slices.DeleteFunc(list, showsUpdates)
	}
	if err := y.gw.Faults.Add(list...); err != nil {
		return err
	}
	if y.people.IntN(3) > 0 {
		return nil
	}
	length := between(y.people, time.Minute, 20*time.Hour)
	from := time.Now().Add(between(y.people, 0, 20*day))
	y.agenda.add(from, decision, func(context.Context) {
		y.note("gateway", "down for %s", length)
		y.gw.Down()
	})
	y.agenda.add(from.Add(length), inFlight, func(context.Context) { y.gw.Up() })
	return nil
}

// closeMonth lets everything settle without faults, and compares the books.
func (y *Year) closeMonth(ctx context.Context, month int, name string) error {
	const rounds, length = 30, 2 * time.Hour
	y.closes(true)
	y.closingUntil = time.Now().Add((rounds + 1) * length)
	y.gw.Up()
	y.countFaults()
	y.gw.Faults.Clear()
	y.gw.Webhooks.ClearFaults()
	if err := y.befall(y.cfg.Fate.always()...); err != nil {
		return err
	}
	y.shop.revive()
	settled := 0
	for round := 0; round < rounds && settled < 2; round++ {
		if err := y.until(ctx, time.Now().Add(length)); err != nil {
			return err
		}
		if y.settles(ctx) {
			settled++
		} else {
			settled = 0
		}
	}
	if err := y.audit(ctx, month, name); err != nil {
		return err
	}
	y.closes(false)
	return nil
}

func (y *Year) closes(is bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.closing = is
}

// settles reconciles and reports whether nothing is left to do.
func (y *Year) settles(ctx context.Context) bool {
	if err := y.shop.m.Reconcile(ctx); err != nil {
		y.note("shop", "reconciling: %v", err)
		return false
	}
	if y.decides(ctx) {
		return false
	}
	if err := y.gw.Wait(ctx); err != nil {
		y.note("gateway", "waiting: %v", err)
		return false
	}
	idle, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if err := y.shop.m.Idle(idle); err != nil {
		y.note("shop", "%v", err)
		return false
	}
	return true
}

// history returns the last lines of the log that contain one of the names.
func (y *Year) history(n int, names ...string) []string {
	var list []string
	for line := range strings.Lines(y.log.String()) {
		for _, name := range names {
			if name != "" && strings.Contains(line, name) {
				list = append(list, strings.TrimSuffix(line, "\n"))
				break
			}
		}
	}
	return list[max(0, len(list)-n):]
}
