package exam

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// Config configures an exam.
type Config struct {
	Stage   Stage
	Gateway *mockserver.Server // with a manual clock, and no other receiver
	Key     string             // of the program's account
	Secret  gateway.Secret     // signs the webhooks
	Path    string             // of the program's webhooks
	Host    string             // of the program: deliveries to it pass the relay; may be ""
	Seed    uint64
	Hang    time.Duration // of the scenario hang
	Grace   time.Duration // that a program without tick gets
	Slow    bool          // see [Exam.Slow]

	Schedule   Schedule // of a white box; nil otherwise
	Everything bool     // a white box chooses in a life what it has chosen in another
	Missing    []Hook   // that the program is known not to offer
}

// Exam is an exam of one program.
type Exam struct {
	cfg     Config
	stage   Stage
	gateway *mockserver.Server
	account *mockserver.Account
	client  *gateway.Client
	front   *Front
	relay   *Relay
	act     activity
	buyer   map[string]any
	choices *choices // nil in a black box

	mu      sync.Mutex
	rand    *rand.Rand        // of the scenario that runs
	amounts map[int64]bool    // of its orders, and of every subscription and payout
	orders  map[string]*Order // of all scenarios
	before  map[string]bool   // transactions of earlier scenarios
	missing map[Hook]bool
	play    *Play // the one that runs
	gone    bool  // the program does not come back
}

// New returns an exam. It registers the receiver of the gateway's events.
func New(cfg Config) (*Exam, error) {
	account := cfg.Gateway.Account(cfg.Key)
	e := &Exam{
		cfg: cfg, stage: cfg.Stage, gateway: cfg.Gateway, account: account, client: account.Client(),
		amounts: map[int64]bool{}, orders: map[string]*Order{}, before: map[string]bool{},
		missing: map[Hook]bool{}, buyer: buyer(),
	}
	for _, cents := range exactCents {
		e.amounts[cents] = true
	}
	for _, h := range cfg.Missing {
		e.missing[h] = true
	}
	log := func(m Message) {
		e.mu.Lock()
		p := e.play
		e.mu.Unlock()
		if p != nil {
			p.log(m)
		}
	}
	e.front = newFront(cfg.Gateway.Transport(), cfg.Stage, &e.act, log)
	e.relay = newRelay(cfg.Stage, cfg.Path, cfg.Secret, &e.act, log)
	if cfg.Schedule != nil {
		e.choices = &choices{schedule: cfg.Schedule, exam: e}
		e.front.choices, e.relay.choices = e.choices, e.choices
	}
	if cfg.Host != "" {
		cfg.Gateway.Webhooks.ServeHost(cfg.Host, e.relay)
	}
	_, err := account.Webhooks.AddEndpoint(mockserver.Endpoint{Handler: e.relay, Path: cfg.Path, Secret: cfg.Secret})
	return e, err
}

// Front returns the round tripper for the program's requests.
func (e *Exam) Front() *Front { return e.front }

// Has reports whether the program offers a hook, as far as it is known.
func (e *Exam) Has(h Hook) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.missing[h]
}

func (e *Exam) without(h Hook) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missing[h] = true
}

// Probe finds out whether the program has a tick. The error says what is wrong with
// its responses.
func (e *Exam) Probe(ctx context.Context) (err error) {
	p := e.newPlay(ctx, "")
	defer e.end(p)
	defer func() {
		if s, ok := recover().(stop); ok {
			err = fmt.Errorf("%s", s.why)
			if len(p.verdict.failures) > 0 {
				err = fmt.Errorf("%s", p.verdict.failures[0].Text)
			}
		}
	}()
	o := &Order{ID: "none"}
	if r := p.report(o); r.Found {
		return fmt.Errorf("GET /exam/orders/none must return 404: no one has placed this order")
	}
	p.Tick()
	p.Quiet()
	return nil
}

// amount returns an amount of at least the given cents that no other in amounts has.
func (e *Exam) amount(least int64) int64 {
	for {
		cents := least + e.rand.Int64N(9000)
		if !e.amounts[cents] {
			e.amounts[cents] = true
			return cents
		}
	}
}

// name returns a new id of six digits.
func (e *Exam) name(prefix string) string {
	for {
		id := fmt.Sprintf("%s%06d", prefix, e.rand.IntN(1e6))
		if _, taken := e.orders[id]; !taken {
			return id
		}
	}
}

// newPlay begins a scenario. Its ids and amounts depend on the seed and its name only, so
// that it has the same when it is played alone.
func (e *Exam) newPlay(ctx context.Context, scenario string) *Play {
	name := fnv.New64a()
	_, _ = name.Write([]byte(scenario))
	e.rand = rand.New(rand.NewPCG(e.cfg.Seed, name.Sum64())) //nolint:gosec // reproducible
	p := &Play{ctx: ctx, exam: e, front: e.front, relay: e.relay, began: time.Now(), foreign: map[string]bool{}}
	e.front.begin()
	e.relay.begin()
	e.mu.Lock()
	e.play = p
	e.mu.Unlock()
	return p
}

// end makes the transactions of a play those of an earlier scenario.
func (e *Exam) end(p *Play) {
	e.front.clear()
	e.relay.clear()
	for _, o := range p.orders {
		if !slices.Contains(exactCents, o.Amount) {
			delete(e.amounts, o.Amount)
		}
	}
	e.mu.Lock()
	e.play = nil
	e.mu.Unlock()
	for tx, err := range e.client.Transactions.All(context.WithoutCancel(p.ctx), gateway.TransactionListParams{Limit: 100}) {
		if err != nil || e.before[tx.ID] {
			return // the newest come first
		}
		e.before[tx.ID] = true
	}
}

// Slow says that the program starts slowly, so that it is crashed less often.
func (e *Exam) Slow(slow bool) { e.cfg.Slow = slow }

// Lost says that the program does not come back.
func (e *Exam) Lost() { e.gone = true }

// Gone reports whether the program did not come back after a crash.
func (e *Exam) Gone() bool { return e.gone }

// Run plays a scenario.
func (e *Exam) Run(ctx context.Context, s *Scenario) Outcome {
	out := Outcome{Scenario: s.Name, About: s.About, Claims: s.Claims, Status: Passed}
	for _, h := range s.Needs {
		switch {
		case h == NeedsRestart && !e.stage.CanRestart():
			out.Status, out.Why = Skipped, "the program can't be restarted"
			return out
		case !e.Has(h):
			out.Status, out.Why = Skipped, "the hook "+string(h)+" is not offered"
			return out
		}
	}
	p := e.newPlay(ctx, s.Name)
	defer e.end(p)
	ended := p.perform(s)
	out.Failures, out.Warnings = p.verdict.failures, p.verdict.warnings
	switch {
	case len(out.Failures) > 0:
		out.Status = Failed
	case ended.status == Skipped || ended.status == NotRun:
		out.Status, out.Why = ended.status, ended.why
	case len(p.verdict.unused) > 0 && !p.lenient:
		out.Status, out.Why = Skipped, "the fault never happened: "+p.verdict.unused[0]
	}
	out.Warnings = append(out.Warnings, e.front.begin()...)
	out.Warnings = append(out.Warnings, e.relay.begin()...)
	slices.Sort(out.Warnings)
	out.Warnings = slices.Compact(out.Warnings)
	if out.Status == Passed {
		out.Right = p.right
	}
	out.Orders = p.sides()
	p.mu.Lock()
	out.Exchange = slices.Clone(p.exchange)
	slices.SortStableFunc(out.Exchange, func(a, b Message) int { return cmp.Compare(a.At, b.At) })
	p.mu.Unlock()
	out.Took = time.Since(p.began)
	return out
}

// perform runs the script and the settling.
func (p *Play) perform(s *Scenario) (ended stop) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		var is bool
		if ended, is = r.(stop); !is {
			panic(r)
		}
	}()
	s.play(p)
	p.settle()
	return stop{status: Passed}
}

// sides reads both sides at the end, as far as the program still responds.
func (p *Play) sides() (list []OrderBooks) {
	defer func() { _ = recover() }()
	for _, o := range p.orders {
		r := p.report(o)
		t, _ := p.truth(o, r)
		list = append(list, OrderBooks{o.ID, o.Amount, r.String(), t.String()})
	}
	for _, a := range p.subs {
		var none verdict
		list = append(list, a.judge(p, &none, &none))
	}
	return list
}

func buyer() map[string]any {
	return map[string]any{
		"name": "José & Ana <Souza>", "email": "ana@example.com", "phone": "+5511987654321",
		"document": map[string]string{"type": "CPF", "number": "52998224725"},
		"address": map[string]string{
			"street": "Rua das Flores", "number": "10", "neighborhood": "Centro", "city": "São Paulo", "state": "SP", "zipCode": "01001000", "country": "BR",
		},
	}
}

// Scenarios returns the scenarios whose name or one of whose claims is in only, or
// all if only is empty, without those in skip. The error names what does not exist.
func Scenarios(only, skip []string) ([]*Scenario, error) {
	all := scenarios()
	known := map[string]bool{}
	for _, s := range all {
		known[s.Name] = true
		for _, c := range s.Claims {
			known[string(c)] = true
		}
	}
	var random []*Scenario
	for _, name := range only {
		if s, err := parseSchedule(name); err == nil {
			random = append(random, s)
			known[name] = true
		}
	}
	for _, name := range slices.Concat(only, skip) {
		if !known[name] {
			return nil, fmt.Errorf("no scenario or claim is called %q; -list shows them", name)
		}
	}
	names := func(s *Scenario) []string {
		list := []string{s.Name}
		for _, c := range s.Claims {
			list = append(list, string(c))
		}
		return list
	}
	list := random
	for _, s := range all {
		match := func(name string) bool { return slices.Contains(names(s), name) }
		if (len(only) == 0 || slices.ContainsFunc(only, match)) && !slices.ContainsFunc(skip, match) {
			list = append(list, s)
		}
	}
	return list, nil
}

// Missing returns the hooks that the program does not offer.
func (e *Exam) Missing() []Hook {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.missing))
}
