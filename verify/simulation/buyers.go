package simulation

import (
	"context"
	"time"

	"github.com/gateway-go/gateway"
)

// scheduleActions schedules what happens to an order once the merchant has stored
// its id: the buyer pays or does not, the bank charges back, the goods are
// returned.
func (w *World) scheduleActions(m *merchant, o *order) {
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
			w.schedule(o, "cancels", 0, 30*time.Second, func(ctx context.Context) error {
				m.ifRunning(func(p *process) { p.decideCancel(ctx, o) })
				return nil
			})
		}
		return
	case charge:
		return
	}
	if o.kind != subscription && w.people.IntN(3) == 0 {
		for range 1 + w.people.IntN(2) {
			full := w.people.IntN(2) == 0
			w.schedule(o, "returns goods", day, 30*day, func(ctx context.Context) error {
				m.ifRunning(func(p *process) { p.decideRefund(ctx, o, full) })
				return nil
			})
		}
	}
}

// ifRunning runs an action of the merchant unless its process has crashed.
func (m *merchant) ifRunning(do func(*process)) {
	if !m.process.crashed {
		do(m.process)
	}
}

// schedule schedules a person's action on an order. If the order's state no
// longer allows the action, it is only logged.
func (w *World) schedule(o *order, what string, lo, hi time.Duration, do func(context.Context) error) {
	w.agenda.add(time.Now().Add(between(w.people, lo, hi)), decision, func(ctx context.Context) {
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
	w.schedule(o, "pays", time.Minute, 26*time.Hour, func(context.Context) error { return m.account.Transactions.Pay(o.id) })
}

func (w *World) buyVoucher(m *merchant, o *order) {
	if w.people.IntN(4) == 0 {
		return
	}
	w.schedule(o, "pays", time.Hour, 12*day, func(context.Context) error { return m.account.Transactions.Pay(o.id) })
}

func (w *World) buyByCard(m *merchant, o *order) {
	control := m.account.Transactions
	switch n := w.people.IntN(10); {
	case n < 6:
		w.schedule(o, "pays", time.Second, time.Hour, func(context.Context) error { return control.Pay(o.id) })
	case n < 8:
		w.schedule(o, "is declined", time.Second, time.Hour, func(context.Context) error { return control.Refuse(o.id) })
	default:
		w.schedule(o, "is canceled", time.Hour, 5*day, func(context.Context) error { return control.Cancel(o.id) })
	}
	w.scheduleChallenge(m, o, func(context.Context) string { return o.id })
	if w.people.IntN(12) == 0 {
		w.schedule(o, "disputes the charge", 2*day, 40*day, func(context.Context) error { return control.Chargeback(o.id) })
	}
}

// scheduleChallenge lets a buyer pass, fail or ignore a 3-D Secure challenge, if
// there is one.
func (w *World) scheduleChallenge(m *merchant, o *order, id func(context.Context) string) {
	control := m.account.Transactions
	switch w.people.IntN(4) {
	case 0:
		w.schedule(o, "fails the challenge", time.Second, 10*time.Minute, func(ctx context.Context) error { return control.FailChallenge(id(ctx)) })
	case 1, 2:
		w.schedule(o, "passes the challenge", time.Second, 10*time.Minute, func(ctx context.Context) error { return control.PassChallenge(id(ctx)) })
	default:
	}
}

func (w *World) subscriber(m *merchant, o *order) {
	control := m.account.Subscriptions
	if o.plan.method == gateway.SubscriptionCreditCard {
		w.scheduleChallenge(m, o, func(ctx context.Context) string { return m.firstCharge(ctx, o) })
	} else {
		switch w.people.IntN(6) {
		case 0:
			w.schedule(o, "rejects", time.Minute, 20*time.Hour, func(context.Context) error { return control.Reject(o.id) })
		case 1: // neither authorizes nor rejects
		default:
			w.schedule(o, "authorizes", time.Minute, 20*time.Hour, func(context.Context) error { return control.Authorize(o.id) })
		}
		if w.people.IntN(4) == 0 {
			w.schedule(o, "revokes", 20*day, 200*day, func(context.Context) error { return control.Revoke(o.id) })
		}
	}
	for range w.people.IntN(3) {
		failures := 1 + w.people.IntN(4)
		w.schedule(o, "runs out of money", 5*day, 200*day, func(context.Context) error { return control.FailNextCharges(o.id, failures) })
	}
	if w.people.IntN(4) == 0 {
		w.schedule(o, "cancels", time.Hour, 250*day, func(ctx context.Context) error {
			m.ifRunning(func(p *process) { p.decideCancel(ctx, o) })
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

// scheduleChargeback schedules, for a few subscriptions, the chargeback of the
// latest charge.
func (w *World) scheduleChargeback(m *merchant, o *order) {
	if gateway.SubscriptionStatus(o.status) != gateway.SubscriptionActive || o.plan.method != gateway.SubscriptionCreditCard || w.people.IntN(40) > 0 {
		return
	}
	w.schedule(o, "disputes a charge", day, 25*day, func(ctx context.Context) error {
		sub, err := m.sound.Subscriptions.Get(ctx, o.id)
		if err != nil || len(sub.Transactions) == 0 {
			return err
		}
		return m.account.Transactions.Chargeback(sub.Transactions[len(sub.Transactions)-1].ID)
	})
}
