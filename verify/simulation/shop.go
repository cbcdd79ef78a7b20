package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway"
)

// open schedules the merchant's own actions: sales, payouts and reconciliations.
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

// every repeats an action of the merchant, skipping it while its process is down.
func (m *merchant) every(lo, hi time.Duration, do func(context.Context, *process)) {
	m.w.agenda.add(time.Now().Add(between(m.shop, lo, hi)), decision, func(ctx context.Context) {
		if !m.process.crashed {
			do(ctx, m.process)
		}
		m.every(lo, hi, do)
	})
}

// place stores an order and sends its create request.
func (p *process) place(ctx context.Context, o *order) {
	m := p.m
	m.sold++
	o.ref = fmt.Sprintf("%s-%s-%03d", m.name, o.kind, m.sold)
	if o.token != "" {
		o.token += gateway.CardToken("_" + o.ref)
	}
	err := p.commit(o, fmt.Sprintf("ordered for %d", o.amount), func(b *books) {
		b.add(o)
		b.queue(o)
	})
	if err == nil {
		p.makeCall(ctx, o)
	}
}

// pick returns the value whose range of weights contains n.
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
	o.kind = pick(m.shop.IntN(100), weight[orderKind]{40, pix}, weight[orderKind]{20, voucher}, weight[orderKind]{40, card})
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
		// Longer than any outage, because the create can't be repeated once the trial is over.
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

// makeCalls makes the calls that are due, including those of earlier processes.
func (p *process) makeCalls(ctx context.Context) {
	todo := p.m.db.todo
	for _, o := range todo {
		if !p.crashed {
			p.makeCall(ctx, o)
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

// makeCall makes the next call for an order, if one is due.
func (p *process) makeCall(ctx context.Context, o *order) {
	if !o.pending() || time.Now().Before(o.notBefore) {
		return
	}
	switch {
	case o.id == "":
		p.create(ctx, o)
	case o.refund != nil:
		p.sendRefund(ctx, o)
	default:
		p.sendCancel(ctx, o)
	}
}

// create sends the create request of an order, or repeats it.
func (p *process) create(ctx context.Context, o *order) {
	var options []gateway.RequestOption
	if !o.since.IsZero() {
		options = append(options, gateway.FirstSent(o.since))
	} else if p.commit(o, "create", func(*books) { o.since = time.Now() }) != nil {
		return
	}
	id, status, err := p.send(ctx, o, options...)
	switch {
	case p.crashed:
	case err == nil:
		_ = p.commit(o, "created as "+id, func(b *books) {
			p.m.storeID(b, o, id)
			o.failures = 0
			if status == string(gateway.TransactionRefused) {
				o.reach(status) // no webhook will report it
			}
		})
	case transient(err):
		_ = p.commit(o, "will repeat the create: "+err.Error(), func(*books) { o.retryLater() })
	default:
		_ = p.commit(o, "rejected: "+err.Error(), func(*books) { o.failed = true })
	}
}

// send makes the create call for an order.
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
		ExternalRef: ref, Amount: o.amount, Method: map[orderKind]gateway.Method{pix: gateway.Pix, voucher: gateway.Voucher, card: gateway.CreditCard}[o.kind],
		Token: o.token,
		Buyer: gateway.BuyerParams{
			Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
			Address: &gateway.Address{Street: "Rua A", Number: "1", City: "São Paulo", State: "SP", ZipCode: "01001000", Country: "BR", Neighborhood: "Sé"},
		},
		Products: []gateway.Product{{Name: "Book", Price: o.amount}},
	}
}

// decideRefund stores the decision to refund an order, partially or in full, and
// sends the refund.
func (p *process) decideRefund(ctx context.Context, o *order, full bool) {
	left := o.paid - o.refunded
	if !o.refundable() || o.refund != nil || o.kind == charge {
		return
	}
	amount := left
	if !full && o.kind != voucher {
		amount = 1 + p.m.shop.Int64N(left)
	}
	r := &refund{amount: amount, upTo: o.refunded + amount, key: fmt.Sprintf("%s refund to %d", o.ref, o.refunded+amount)}
	err := p.commit(o, fmt.Sprintf("refund of %d", amount), func(b *books) {
		o.toRefund += amount
		o.refund, o.failures, o.notBefore = r, 0, time.Time{}
		b.queue(o)
	})
	if err == nil {
		p.makeCall(ctx, o)
	}
}

// maxFlight is longer than a request can be in flight. After that, a read shows
// whether a refund without an idempotency key was applied.
const maxFlight = time.Hour

// sendRefund sends a refund, or determines the outcome of one already sent.
func (p *process) sendRefund(ctx context.Context, o *order) {
	r := o.refund
	var options []gateway.RequestOption
	if !r.sent.IsZero() && p.m.w.cfg.Defect != RepeatsRefundBlindly {
		if !p.m.keyed && time.Since(r.sent) < maxFlight {
			return
		}
		tx, err := p.client.Transactions.Get(ctx, o.id)
		if err != nil || p.crashed {
			return
		}
		if tx.RefundedAmount >= r.upTo || tx.Status.Final() {
			p.finishRefund(o, r, tx.RefundedAmount, "was made before")
			return
		}
		options = append(options, gateway.FirstSent(r.sent))
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
	case p.crashed:
	case err == nil:
		p.finishRefund(o, r, o.amount-done.RemainingBalance, "was made")
	case transient(err):
		_ = p.commit(o, "will repeat the refund: "+err.Error(), func(*books) { o.retryLater() })
	default:
		p.finishRefund(o, r, r.upTo-r.amount, "was rejected: "+err.Error())
	}
}

// finishRefund stores the outcome of a refund: sum is the total amount refunded.
func (p *process) finishRefund(o *order, r *refund, sum int64, outcome string) {
	_ = p.commit(o, "refund "+outcome, func(*books) {
		o.refund, o.failures = nil, 0
		if sum < r.upTo {
			o.toRefund -= r.amount
			return
		}
		o.refundedTo(sum)
	})
}

// decideCancel stores the decision to cancel a subscription or a payout, and sends
// the cancellation.
func (p *process) decideCancel(ctx context.Context, o *order) {
	if p.commit(o, "cancel", func(b *books) {
		o.cancel, o.failures, o.notBefore = true, 0, time.Time{}
		b.queue(o)
	}) == nil {
		p.makeCall(ctx, o)
	}
}

// sendCancel cancels a subscription or a payout. A conflict means that it is
// already canceled or that it is too late; webhooks report which.
func (p *process) sendCancel(ctx context.Context, o *order) {
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
	case p.crashed:
	case err == nil, errors.Is(err, gateway.ErrConflict):
		_ = p.commit(o, "was canceled", func(*books) { o.cancel = false })
	case transient(err):
		_ = p.commit(o, "will repeat the cancellation: "+err.Error(), func(*books) { o.retryLater() })
	default:
		_ = p.commit(o, "can't be canceled: "+err.Error(), func(*books) { o.cancel = false })
	}
}
