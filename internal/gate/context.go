package gate

import (
	"context"
	"time"

	"github.com/gateway-go/gateway"
)

type (
	gateKey struct{}
	modeKey struct{}
	passKey struct{}
)

type mode struct{ patience time.Duration }

// With returns a context with the gate, for package operations, which asks it before it takes
// work.
func With(ctx context.Context, g *Gate) context.Context { return context.WithValue(ctx, gateKey{}, g) }

// From returns the gate of a context, or nil.
func From(ctx context.Context) *Gate {
	g, _ := ctx.Value(gateKey{}).(*Gate)
	return g
}

// Background marks the requests of a context as those that no caller waits for. Each waits at a
// gate for as long as patience.
func Background(ctx context.Context, patience time.Duration) context.Context {
	return context.WithValue(ctx, modeKey{}, mode{patience})
}

// Pass admits the requests of one piece of work: the first one in any case, the others unless
// the gate has closed. A nil Pass does nothing.
type Pass struct {
	gate  *Gate
	name  string
	entry *entry // nil for a caller's
	used  bool
}

// Reserve returns a pass for work in the background whose request has that name, or how long
// to wait. [Gate.Changed] may tell earlier. Work that was stored after the gate has closed, and
// was not tried yet, may probe like a caller: a buyer may be waiting for it.
func (g *Gate) Reserve(name string, untried bool, stored time.Time) (*Pass, time.Duration) {
	if g == nil {
		return nil, 0
	}
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed && untried && stored.After(g.since) {
		wait := g.waitOfCaller(now)
		if wait > 0 {
			return nil, wait
		}
		return &Pass{gate: g}, 0
	}
	k := g.kind(name)
	if wait := g.wait(k, now); wait > 0 {
		return nil, wait
	}
	e := g.begin(k, now)
	return &Pass{gate: g, name: name, entry: &e}, 0
}

// Free returns a pass for work that sends nothing any more. If it does after all, that is as for
// other work that goes on while the gate may have closed.
func (g *Gate) Free() *Pass {
	if g == nil {
		return nil
	}
	return &Pass{gate: g, used: true}
}

// Ask returns a pass for a caller's work. The error is a [ClosedError], or that of ctx.
func (g *Gate) Ask(ctx context.Context) (*Pass, error) {
	if g == nil {
		return nil, nil
	}
	if err := g.admitCaller(ctx); err != nil {
		return nil, err
	}
	return &Pass{gate: g}, nil
}

// Passed reports whether a context has a pass.
func Passed(ctx context.Context) bool {
	_, ok := ctx.Value(passKey{}).(*Pass)
	return ok
}

// In returns a context whose requests the pass admits.
func (p *Pass) In(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return context.WithValue(ctx, passKey{}, p)
}

// End gives back a pass. If it was not used, another request may probe.
func (p *Pass) End() {
	if p == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.entry != nil {
		if !p.used && p.entry.turn == p.entry.kind.turn {
			p.entry.kind.lease = p.entry.lease
		}
		g.end(*p.entry)
		return
	}
	if !p.used && g.closed {
		g.asked = time.Time{}
		g.signal()
	}
}

func (p *Pass) enter(ctx context.Context, name string) (func(gateway.AttemptResult) bool, error) {
	g := p.gate
	g.mu.Lock()
	if p.used && g.closed {
		defer g.mu.Unlock()
		return nil, g.refusal()
	}
	var waiting []string
	if !p.used && p.entry != nil && p.name != name {
		waiting = []string{p.name} // what the work begins with is not what it is for
	}
	p.used = true
	g.mu.Unlock()
	began := time.Now()
	return func(r gateway.AttemptResult) bool {
		return g.report(ctx, began, &r, name, waiting...) || p.entry == nil
	}, nil
}
