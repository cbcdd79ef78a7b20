package money

import (
	"context"

	"github.com/gateway-go/gateway/contrib/mcp/intent"
)

// local is who calls them.
const local = "local"

// Plane calls the tools without a client of the protocol.
type Plane struct{ p *plane }

func NewPlane(c Config) (*Plane, error) {
	p, err := newPlane(&c)
	return &Plane{p}, err
}

// Commit returns the question's state and text if there is one.
func (t *Plane) Commit(ctx context.Context, id string, canAsk bool, state string, answered, accept bool) (r *Result, asked bool, text, sealed string) {
	var a *reply
	if answered {
		a = &reply{state, accept}
	}
	r, q := t.p.commit(ctx, local, id, canAsk, a)
	if q != nil {
		return r, true, q.text, q.state
	}
	return r, false, "", ""
}

func (t *Plane) Payout(ctx context.Context, in PayoutInput) *Result {
	return t.p.preparePayout(ctx, local, in)
}

func (t *Plane) Refund(ctx context.Context, in RefundInput) *Result {
	return t.p.prepareRefund(ctx, local, in)
}

func (t *Plane) Charge(ctx context.Context, in ChargeInput) *Result {
	return t.p.prepareCharge(ctx, local, in)
}

// DropRounds makes a decision count for the current round, whichever it was given for.
func (t *Plane) DropRounds() {
	t.p.decide = func(who, id string, _ int, accept bool, via intent.Via) (*intent.Intent, error) {
		i, err := t.p.journal.Get(who, id)
		if err != nil {
			return nil, err
		}
		return t.p.journal.Decide(who, id, i.Round, accept, via)
	}
}

// DropReads makes every search of the gateway's list find nothing.
func (t *Plane) DropReads() {
	t.p.find = func(context.Context, *intent.Intent) (*Resource, bool, error) { return nil, false, nil }
}

// Failed reports whether nothing was done.
func (r *Result) Failed() bool { return r.failed }
