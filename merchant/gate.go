package merchant

import (
	"context"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/webhook"
)

// Each account has a gate, which all requests of this process for the account pass, below the
// client's retries: see package gate. What the merchant does with a client of its own is not
// its business.

// gatePatience is how long work in the background that was claimed waits at a closed gate. It
// is less than the timeout of a handler.
const gatePatience = 10 * time.Second

// gated makes the account's requests pass a gate of its own.
func (a *account) gated(cfg *Config) (err error) {
	a.gate = gate.New(a.Name, cfg.Logger)
	a.Client, err = a.Client.With(gateway.WithGate(a.gate))
	return err
}

// inBackground marks the requests of a context as those that no caller waits for.
func inBackground(ctx context.Context) context.Context { return gate.Background(ctx, gatePatience) }

// handler returns a handler of webhooks whose requests are of the background.
func handler[E any](m *core, a *account, handle func(*core, context.Context, *account, *E) error) func(context.Context, *E) error {
	return func(ctx context.Context, e *E) error { return handle(m, inBackground(ctx), a, e) }
}

// handle registers the account's handlers of webhooks.
func (a *account) handle(m *core) {
	webhook.OnSubscription(a.receiver, webhook.AnyKind, handler(m, a, (*core).onSubscription))
	webhook.OnTransaction(a.receiver, webhook.AnyKind, handler(m, a, (*core).onTransaction))
	webhook.OnTransfer(a.receiver, webhook.AnyKind, handler(m, a, (*core).onTransfer))
	if m.cfg.Other != nil { // without it, what this release does not know waits for one that does
		webhook.OnOther(a.receiver, handler(m, a, (*core).unread))
	}
}

// Outage is an account whose gateway fails: it responded with 5xx, 429 or 401, or not at all.
type Outage struct {
	Since  time.Time // by the clock of this process
	Status int       // of the last response; 0 if there was none
}

// outage returns the account's outage, or nil.
func (a *account) outage() *Outage {
	if a.gate == nil { // of reports
		return nil
	}
	is := a.gate.State()
	if !is.Closed {
		return nil
	}
	return &Outage{Since: is.Since, Status: is.Status}
}

// The requests by which the gate admits comparisons, most of which read a charge, and lists.
const (
	reads = "transactions.get"
	lists = "transactions.list"
)

// listable reports whether charges are left to a walk. They are not while lists fail and other
// requests don't.
func (a *account) listable() bool {
	return a.down.Load() || a.gate.State().Closed || !a.gate.Fails(lists)
}

// admitted limits the comparisons that may begin to what the gates admit. If a gate is closed,
// its account gets none, or a probe: then it is named in probes.
func (c *comparer) admitted(list []ledger.Want) (open []ledger.Want, probes map[string]bool) {
	room := make(map[string]int)
	for _, want := range list {
		g := c.m.accounts[want.Account].gate
		n, known := room[want.Account]
		if !known {
			n = g.Room(reads)
			if n > 0 && g.State().Closed {
				if probes == nil {
					probes = make(map[string]bool)
				}
				probes[want.Account] = true
			}
			room[want.Account] = n
		}
		if n > 0 && !probes[want.Account] {
			want.N = min(want.N, n)
			open = append(open, want)
		}
	}
	return open, probes
}

// claim claims what is due. A probe is one comparison of the best lane that has one.
func (c *comparer) claim(ctx context.Context) ([]ledger.Claim, error) {
	l := c.m.outside()
	wants, probes := c.admitted(c.wants())
	var claims []ledger.Claim
	var err error
	if len(wants) > 0 {
		claims, err = l.Claim(ctx, wants, c.lease())
	}
	for lane := ledger.Lane(0); int(lane) < ledger.Lanes && len(probes) > 0 && err == nil; lane++ {
		var wants []ledger.Want
		for name := range probes {
			wants = append(wants, ledger.Want{Account: name, Lane: lane, N: 1})
		}
		var more []ledger.Claim
		more, err = l.Claim(ctx, wants, c.lease())
		for _, claim := range more {
			delete(probes, claim.Account)
		}
		claims = append(claims, more...)
	}
	return claims, err
}
