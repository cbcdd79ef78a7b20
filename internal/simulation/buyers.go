package simulation

import (
	"context"
	"time"

	"github.com/gateway-go/gateway"
)

// await schedules the actions of others on an order whose id the merchant has
// stored: the buyer pays or not, the bank charges back, the goods are
// returned.
func (w *World) await(m *merchant, o *order) {
	switch o.kind {
	case pix:
		w.buyPix(m, o)
	case voucher:
		w.buyVoucher(m, o)
	case card:
		w.buyByCard(m, o)
	case subscription:
		w.subscriber(m, o)
	case payout:
		if w.people.IntN(5) == 0 {
			w.by(o, "cancels", 0, 30*time.Second, func(ctx context.Context) error {
				m.decides(func(p *process) { p.decideCancel(ctx, o) })
				return nil
			})
		}
		return
	case charge:
		return
	}
	if o.kind != subscription && w.people.IntN(3) == 0 {
		for range 1 + w.people.IntN(2) {
			whole := w.people.IntN(2) == 0
			w.by(o, "returns goods", day, 30*day, func(ctx context.Context) error {
				m.decides(func(p *process) { p.decideRefund(ctx, o, whole) })
				return nil
			})
		}
	}
}

// decides runs an action of the merchant, unless its process is dead.
func (m *merchant) decides(do func(*process)) {
	if !m.process.dead {
		do(m.process)
	}
}

// by schedules a person's action on an order. If the order's state no longer
// allows the action, it is only logged.
func (w *World) by(o *order, what string, least, most time.Duration, do func(context.Context) error) {
	w.agenda.add(time.Now().Add(between(w.people, least, most)), life, func(ctx context.Context) {
		outcome := "done"
		if err := do(ctx); err != nil {
			outcome = err.Error()
		}
		w.note("people", "%s %s: %s: %s", o.ref, o.id, what, outcome)
	})
}

func (w *World) buyPix(m *merchant, o *order) {
	if w.people.IntN(5) == 0 {
		return // never pays
	}
	w.by(o, "pays", time.Minute, 26*time.Hour, func(context.Context) error { return m.account.Transactions.Pay(o.id) })
}

func (w *World) buyVoucher(m *merchant, o *order) {
	if w.people.IntN(4) == 0 {
		return
	}
	w.by(o, "pays", time.Hour, 12*day, func(context.Context) error { return m.account.Transactions.Pay(o.id) })
}

func (w *World) buyByCard(m *merchant, o *order) {
	control := m.account.Transactions
	switch n := w.people.IntN(10); {
	case n < 6:
		w.by(o, "pays", time.Second, time.Hour, func(context.Context) error { return control.Pay(o.id) })
	case n < 8:
		w.by(o, "is refused", time.Second, time.Hour, func(context.Context) error { return control.Refuse(o.id) })
	default:
		w.by(o, "is canceled", time.Hour, 5*day, func(context.Context) error { return control.Cancel(o.id) })
	}
	w.challenged(m, o, func(context.Context) string { return o.id })
	if w.people.IntN(12) == 0 {
		w.by(o, "takes the money back", 2*day, 40*day, func(context.Context) error { return control.Chargeback(o.id) })
	}
}

// challenged lets a buyer pass, fail or ignore a 3-D Secure challenge, if
// there is one.
func (w *World) challenged(m *merchant, o *order, id func(context.Context) string) {
	control := m.account.Transactions
	switch w.people.IntN(4) {
	case 0:
		w.by(o, "fails the challenge", time.Second, 10*time.Minute, func(ctx context.Context) error { return control.FailChallenge(id(ctx)) })
	case 1, 2:
		w.by(o, "passes the challenge", time.Second, 10*time.Minute, func(ctx context.Context) error { return control.PassChallenge(id(ctx)) })
	default:
	}
}

func (w *World) subscriber(m *merchant, o *order) {
	control := m.account.Subscriptions
	if o.plan.method == gateway.SubscriptionCreditCard {
		w.challenged(m, o, func(ctx context.Context) string { return m.firstCharge(ctx, o) })
	} else {
		switch w.people.IntN(6) {
		case 0:
			w.by(o, "rejects", time.Minute, 20*time.Hour, func(context.Context) error { return control.Reject(o.id) })
		case 1: // does nothing
		default:
			w.by(o, "authorizes", time.Minute, 20*time.Hour, func(context.Context) error { return control.Authorize(o.id) })
		}
		if w.people.IntN(4) == 0 {
			w.by(o, "revokes", 20*day, 200*day, func(context.Context) error { return control.Revoke(o.id) })
		}
	}
	for range w.people.IntN(3) {
		failures := 1 + w.people.IntN(4)
		w.by(o, "runs out of money", 5*day, 200*day, func(context.Context) error { return control.FailNextCharges(o.id, failures) })
	}
	if w.people.IntN(4) == 0 {
		w.by(o, "cancels", time.Hour, 250*day, func(ctx context.Context) error {
			m.decides(func(p *process) { p.decideCancel(ctx, o) })
			return nil
		})
	}
}

// firstCharge returns the id of the charge that a new subscription waits for.
func (m *merchant) firstCharge(ctx context.Context, o *order) string {
	sub, err := m.sound.Subscriptions.Get(ctx, o.id)
	if err != nil || len(sub.Transactions) == 0 {
		return ""
	}
	return sub.Transactions[0].ID
}

// awaitCharges schedules chargebacks of some of a subscription's charges.
func (w *World) awaitCharges(m *merchant, o *order) {
	if gateway.SubscriptionStatus(o.status) != gateway.SubscriptionActive || o.plan.method != gateway.SubscriptionCreditCard || w.people.IntN(40) > 0 {
		return
	}
	w.by(o, "takes a charge back", day, 25*day, func(ctx context.Context) error {
		sub, err := m.sound.Subscriptions.Get(ctx, o.id)
		if err != nil || len(sub.Transactions) == 0 {
			return err
		}
		return m.account.Transactions.Chargeback(sub.Transactions[len(sub.Transactions)-1].ID)
	})
}
