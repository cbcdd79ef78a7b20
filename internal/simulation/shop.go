package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway"
)

// open schedules the merchant's own actions: it sells, pays out and reconciles.
func (m *merchant) open() {
	m.every(12*time.Hour, 60*time.Hour, m.sell)
	m.every(12*day, 40*day, m.subscribe)
	m.every(5*day, 15*day, m.payOut)
	m.every(5*day, 9*day, func(ctx context.Context, p *process) {
		if _, err := p.reconcile(ctx); err != nil {
			m.w.note(p.name(), "reconciling: %v", err)
		}
	})
}

// every repeats an action of the merchant while its process lives.
func (m *merchant) every(least, most time.Duration, do func(context.Context, *process)) {
	m.w.agenda.add(time.Now().Add(between(m.shop, least, most)), life, func(ctx context.Context) {
		if !m.process.dead {
			do(ctx, m.process)
		}
		m.every(least, most, do)
	})
}

// place stores an order and sends its create.
func (p *process) place(ctx context.Context, o *order) {
	m := p.m
	m.sold++
	o.ref = fmt.Sprintf("%s-%s-%03d", m.name, o.kind, m.sold)
	if o.kind == card || o.kind == subscription {
		o.token += gateway.CardToken("_" + o.ref)
	}
	err := p.commit(o, fmt.Sprintf("ordered for %d", o.amount), func(b *books) {
		b.add(o)
		b.queue(o)
	})
	if err == nil {
		p.attend(ctx, o)
	}
}

// pick returns one of the values, by their weights.
func pick[T any](n int, weighted ...weight[T]) T {
	for _, c := range weighted {
		if n -= c.weight; n < 0 {
			return c.value
		}
	}
	return weighted[0].value
}

type weight[T any] struct {
	weight int
	value  T
}

func (m *merchant) sell(ctx context.Context, p *process) {
	o := &order{amount: 500 + m.shop.Int64N(50_000)}
	o.kind = pick(m.shop.IntN(100), weight[article]{40, pix}, weight[article]{20, voucher}, weight[article]{40, card})
	if o.kind == card {
		o.token = pick(m.shop.IntN(100), weight[gateway.CardToken]{40, "pgct_paid"}, weight[gateway.CardToken]{15, "pgct_captured"},
			weight[gateway.CardToken]{10, "pgct_refused"}, weight[gateway.CardToken]{15, "pgct_ok"}, weight[gateway.CardToken]{10, "pgct_3ds"},
			weight[gateway.CardToken]{10, "pgct_chargeback"})
	}
	p.place(ctx, o)
}

func (m *merchant) subscribe(ctx context.Context, p *process) {
	o := &order{kind: subscription, amount: 1000 + m.shop.Int64N(9000)}
	o.plan.method = gateway.SubscriptionCreditCard
	o.plan.interval = pick(m.shop.IntN(100), weight[gateway.Interval]{70, gateway.IntervalMonth}, weight[gateway.Interval]{30, gateway.IntervalWeek})
	o.plan.policy = pick(m.shop.IntN(100), weight[gateway.FailurePolicy]{75, gateway.RetryThenCancel}, weight[gateway.FailurePolicy]{25, gateway.ImmediateCancel})
	if m.shop.IntN(4) == 0 {
		// Longer than any outage: once the trial is over, the create can't be repeated.
		o.plan.trial = time.Now().Add(between(m.shop, 8*day, 20*day)).Truncate(time.Second)
	}
	if m.shop.IntN(4) == 0 {
		o.plan.method = gateway.SubscriptionPixAutomatic
	} else {
		o.token = pick(m.shop.IntN(100), weight[gateway.CardToken]{45, "pgct_ok"}, weight[gateway.CardToken]{20, "pgct_renewal_fails_2"},
			weight[gateway.CardToken]{10, "pgct_renewal_fails"}, weight[gateway.CardToken]{5, "pgct_refused"},
			weight[gateway.CardToken]{10, "pgct_always_fails"}, weight[gateway.CardToken]{10, "pgct_3ds"})
	}
	p.place(ctx, o)
}

func (m *merchant) payOut(ctx context.Context, p *process) {
	o := &order{kind: payout, amount: 1000 + m.shop.Int64N(20_000)}
	o.plan.receiver = pick(m.shop.IntN(100), weight[gateway.PixKey]{70, "ana@example.com"}, weight[gateway.PixKey]{15, "fail@example.com"},
		weight[gateway.PixKey]{15, "analysis@example.com"})
	p.place(ctx, o)
}

// tend makes the calls that are due, including those of earlier processes.
func (p *process) tend(ctx context.Context) {
	todo := p.m.db.todo
	for _, o := range todo {
		if !p.dead {
			p.attend(ctx, o)
		}
	}
	var rest []*order
	for _, o := range p.m.db.todo {
		if o.pending() {
			rest = append(rest, o)
		}
	}
	p.m.db.todo = rest
}

// attend makes the next call for an order.
func (p *process) attend(ctx context.Context, o *order) {
	if !o.pending() || time.Now().Before(o.notBefore) {
		return
	}
	switch {
	case o.id == "":
		p.create(ctx, o)
	case o.refund != nil:
		p.giveBack(ctx, o)
	default:
		p.stop(ctx, o)
	}
}

// create sends the create of an order, or repeats it.
func (p *process) create(ctx context.Context, o *order) {
	var options []gateway.RequestOption
	if !o.since.IsZero() {
		options = append(options, gateway.RepeatOf(o.since))
	} else if p.commit(o, "create", func(*books) { o.since = time.Now() }) != nil {
		return
	}
	id, status, err := p.send(ctx, o, options...)
	switch {
	case p.dead:
	case err == nil:
		_ = p.commit(o, "exists as "+id, func(b *books) {
			p.m.know(b, o, id)
			o.calls = 0
			if status == string(gateway.TransactionRefused) {
				o.reach(status) // no webhook will report it
			}
		})
	case transient(err):
		_ = p.commit(o, "create again later: "+err.Error(), func(*books) { o.later() })
	default:
		_ = p.commit(o, "rejected: "+err.Error(), func(*books) { o.failed = true })
	}
}

// send makes the call of a create.
func (p *process) send(ctx context.Context, o *order, options ...gateway.RequestOption) (id, status string, err error) {
	ref := o.ref
	if p.m.w.cfg.Defect == NewReferenceForRepeats && len(options) > 0 {
		ref += "-again"
	}
	switch o.kind {
	case subscription:
		params := gateway.SubscriptionParams{
			CustomerID: p.m.customer, Amount: o.amount, Token: o.token, PaymentMethod: o.plan.method, Interval: o.plan.interval,
			FailurePolicy: o.plan.policy, TrialEnd: o.plan.trial, IdempotencyKey: ref, Metadata: map[string]any{"order": o.ref},
		}
		sub, err := p.client.Subscriptions.Create(ctx, params, options...)
		if err != nil {
			return "", "", err
		}
		return sub.ID, string(sub.Status), nil
	case payout:
		tr, err := p.client.Transfers.Create(ctx, gateway.TransferParams{
			PixKeyType: gateway.PixKeyEmail, PixKeyValue: o.plan.receiver, Amount: o.amount, ExternalRef: ref,
		}, options...)
		if err != nil {
			return "", "", err
		}
		return tr.ID, string(tr.Status), nil
	default:
		tx, err := p.client.Transactions.Create(ctx, o.sale(ref), options...)
		if err != nil {
			return "", "", err
		}
		return tx.ID, string(tx.Status), nil
	}
}

func (o *order) sale(ref string) gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: ref, Amount: o.amount, Method: map[article]gateway.Method{pix: gateway.Pix, voucher: gateway.Voucher, card: gateway.CreditCard}[o.kind],
		Token: o.token,
		Buyer: gateway.BuyerParams{
			Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
			Address: &gateway.Address{Street: "Rua A", Number: "1", City: "São Paulo", State: "SP", ZipCode: "01001000", Country: "BR", Neighborhood: "Sé"},
		},
		Products: []gateway.Product{{Name: "Book", Price: o.amount}},
	}
}

// decideRefund stores a partial or full refund, and sends it.
func (p *process) decideRefund(ctx context.Context, o *order, whole bool) {
	left := o.paid - o.refunded
	if !o.refundable() || o.refund != nil || o.kind == charge {
		return
	}
	amount := left
	if !whole && o.kind != voucher {
		amount = 1 + p.m.shop.Int64N(left)
	}
	r := &refund{amount: amount, upTo: o.refunded + amount, key: fmt.Sprintf("%s refund to %d", o.ref, o.refunded+amount)}
	err := p.commit(o, fmt.Sprintf("refund of %d", amount), func(b *books) {
		o.asked += amount
		o.refund, o.calls, o.notBefore = r, 0, time.Time{}
		b.queue(o)
	})
	if err == nil {
		p.attend(ctx, o)
	}
}

// onItsWay is longer than a request can be in flight. After that a read shows whether a
// refund without an idempotency key was applied.
const onItsWay = time.Hour

// giveBack sends a refund, or determines the outcome of one already sent.
func (p *process) giveBack(ctx context.Context, o *order) {
	r := o.refund
	var options []gateway.RequestOption
	if !r.sent.IsZero() && p.m.w.cfg.Defect != RepeatsRefundBlindly {
		if !p.m.keyed && time.Since(r.sent) < onItsWay {
			return
		}
		tx, err := p.client.Transactions.Get(ctx, o.id)
		if err != nil || p.dead {
			return
		}
		if tx.RefundedAmount >= r.upTo || tx.Status.Final() {
			p.seenThrough(o, r, tx.RefundedAmount, "was made")
			return
		}
		options = append(options, gateway.RepeatOf(r.sent))
	}
	if p.m.keyed {
		options = append(options, gateway.IdempotencyKey(r.key))
	} else {
		options = nil
	}
	if p.commit(o, "refund is sent", func(*books) { r.sent = time.Now() }) != nil {
		return
	}
	done, err := p.client.Transactions.Refund(ctx, o.id, gateway.RefundParams{Amount: r.amount}, options...)
	switch {
	case p.dead:
	case err == nil:
		p.seenThrough(o, r, o.amount-done.RemainingBalance, "is made")
	case transient(err):
		_ = p.commit(o, "refund again later: "+err.Error(), func(*books) { o.later() })
	default:
		p.seenThrough(o, r, r.upTo-r.amount, "is rejected: "+err.Error())
	}
}

// seenThrough stores the outcome of a refund: sum is the total amount refunded.
func (p *process) seenThrough(o *order, r *refund, sum int64, how string) {
	_ = p.commit(o, "refund "+how, func(*books) {
		o.refund, o.calls = nil, 0
		if sum < r.upTo {
			o.asked -= r.amount
			return
		}
		o.refundedTo(sum)
	})
}

// decideCancel stores the decision to cancel a subscription or a payout, and cancels
// it.
func (p *process) decideCancel(ctx context.Context, o *order) {
	if p.commit(o, "cancel", func(b *books) {
		o.cancel, o.calls, o.notBefore = true, 0, time.Time{}
		b.queue(o)
	}) == nil {
		p.attend(ctx, o)
	}
}

// stop cancels a subscription or a payout. A conflict means that it is already
// canceled or that it is too late: webhooks report which.
func (p *process) stop(ctx context.Context, o *order) {
	var options []gateway.RequestOption
	if p.m.keyed {
		options = append(options, gateway.IdempotencyKey(o.ref+" cancel"))
	}
	var err error
	if o.kind == payout {
		_, err = p.client.Transfers.Cancel(ctx, o.id, gateway.TransferCancelParams{}, options...)
	} else {
		_, err = p.client.Subscriptions.Cancel(ctx, o.id, gateway.SubscriptionCancelParams{}, options...)
	}
	switch {
	case p.dead:
	case err == nil, errors.Is(err, gateway.ErrConflict):
		_ = p.commit(o, "is cancelled", func(*books) { o.cancel = false })
	case transient(err):
		_ = p.commit(o, "cancel again later: "+err.Error(), func(*books) { o.later() })
	default:
		_ = p.commit(o, "can't be cancelled: "+err.Error(), func(*books) { o.cancel = false })
	}
}
