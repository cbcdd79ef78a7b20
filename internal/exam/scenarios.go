package exam

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/explore/fault"
	"github.com/gateway-go/gateway/mockserver"
)

// The operations whose requests scenarios lose.
const (
	create   = "transactions.create"
	refundOp = "transactions.refund"
)

// exactCents are amounts that a conversion of decimals by truncation changes.
var exactCents = []int64{1999, 829, 115}

func scenarios() []*Scenario {
	all := []Claim{ChargedOnce, RightCharge, NothingLost, NothingMadeUp, ShippedOnce, BooksAgree, TrueAnswers, GenuineAccepts}
	refunds := []Hook{NeedsRefund}
	restart := []Hook{NeedsRestart}
	return []*Scenario{
		{"plain", "Pix, paid; the buyer is called José & Ana <Souza>", all, nil, func(p *Play) { p.Paid(gateway.Pix) }},
		{"not-paid", "Pix that no one pays", all, nil, func(p *Play) { p.Placed(gateway.Pix) }},
		{"cents", "orders of 19.99, 8.29 and 1.15", []Claim{RightCharge}, nil, func(p *Play) {
			for _, cents := range exactCents {
				o := p.OrderOf(gateway.Pix, cents)
				p.Buy(o)
				p.Pay(o)
			}
			p.Quiet()
		}},
		{"card-refused", "the issuer refuses the card in the response of the create", []Claim{TrueAnswers, NothingMadeUp}, nil, func(p *Play) {
			o := p.Order(gateway.CreditCard)
			o.Token = "pgct_refused_" + o.ID
			p.Place(o)
			p.Quiet()
		}},
		{"card-at-once", "the card is captured in the response of the create", []Claim{TrueAnswers, NothingLost}, nil, func(p *Play) {
			o := p.Order(gateway.CreditCard)
			o.Token = "pgct_captured_" + o.ID
			p.Buy(o)
			p.charged(o)
		}},
		lost("lost-response", "the create is executed, the connection reset", fault.LostResponse(), 1, ChargedOnce, NothingLost, TrueAnswers),
		lost("lost-responses", "the create is executed, the connection reset, for every attempt", fault.LostResponse(), 0, ChargedOnce, NothingLost, TrueAnswers),
		lost("half-a-body", "the create is executed, the response ends in the middle", fault.HalfABody(), 1, ChargedOnce, NothingLost),
		lost("html-page", "the create is executed, a proxy responds with a page and 502", fault.Page(502, true), 1, ChargedOnce, NothingLost),
		lost("html-page-200", "the create is executed, a proxy responds with a page and 200", fault.Page(200, true), 1, ChargedOnce, NothingLost),
		{"hang", "the create is executed, no response for seconds, then a reset", []Claim{ChargedOnce, NothingLost, TrueAnswers}, nil, func(p *Play) {
			p.On(&Rule{On: create, Times: 1, Case: fault.LostResponse(), Hang: p.exam.cfg.Hang})
			p.buyAndPay()
		}},
		{"late-request", "the connection is reset, the create arrives 0.4 s later, after the retry", []Claim{ChargedOnce}, nil, func(p *Play) {
			p.On(&Rule{On: create, Times: 1, Case: fault.LateRequest(), Late: lateBy})
			p.buyAndPay()
		}},
		{"busy", "429 with Retry-After: 1", []Claim{NothingLost}, nil, func(p *Play) {
			p.Lose(create, 1, fault.Status(http.StatusTooManyRequests, "1"))
			p.buyAndPay()
		}},
		{"outage", "503 for every request, then the gateway is back", []Claim{NothingLost, TrueAnswers}, nil, func(p *Play) {
			o := p.Order(gateway.Pix)
			p.Lose("", 0, fault.Status(http.StatusServiceUnavailable, ""))
			p.Place(o)
			p.Quiet()
			p.front.clear()
			p.Advance(10 * time.Minute)
			p.Tick()
			p.Quiet()
			if len(p.chargesOf(o)) == 0 && !onlyRefused(o.answers) {
				p.event("the buyer clicks again")
				p.Place(o)
				p.Quiet()
			}
			p.PayIfCharged(o)
		}},
		{"paid-before-response", "paid, and the webhook delivered, before the create has its response", []Claim{NothingLost, ShippedOnce}, nil, func(p *Play) {
			o := p.Order(gateway.Pix)
			p.On(&Rule{On: create, Times: 1, Case: named1(fault.None(), "paid before the response"), After: func() {
				p.payNewest()
				p.deliveries(2 * time.Second)
			}})
			p.Buy(o)
		}},
		{"killed-before-create", "SIGKILL when the create arrives, which is not executed; restart; the buyer clicks again", []Claim{ChargedOnce, NothingLost, Restarts}, restart, func(p *Play) {
			p.killedAround(create, func(r *Rule) { r.Before = p.Kill; r.Case = named1(fault.Case{See: fault.Reset}, "killed before it") })
		}},
		{"killed-after-create", "SIGKILL when the create has been executed; restart; the buyer clicks again", []Claim{ChargedOnce, NothingLost, Restarts}, restart, func(p *Play) {
			p.killedAround(create, func(r *Rule) { r.After = p.Kill; r.Case = named1(fault.LostResponse(), "killed after it") })
		}},
		{"double-click", "three orders with the same id at once; every charge is paid", []Claim{ChargedOnce}, nil, func(p *Play) {
			o := p.Order(gateway.Pix)
			p.Together(3, func(int) { p.Place(o) })
			p.Quiet()
			p.Pay(o)
		}},
		{"reference-taken", "another system has a charge of 1.00 with the order's reference, which is paid", []Claim{NothingMadeUp, ShippedOnce}, nil, func(p *Play) {
			o := p.Order(gateway.Pix)
			o.ambiguous = true
			p.On(&Rule{On: create, Times: 1, Case: named1(fault.None(), "its reference is taken"), Seen: p.takeReference})
			p.Place(o)
			p.Quiet()
			p.payForeign()
		}},
		paidBy("duplicate", "paid is delivered three times", []Claim{ShippedOnce}, func(_ *Play, d *Delivery) int {
			first := d.Send("")
			d.Send("again")
			d.Send("again")
			return first
		}),
		{"duplicate-after-restart", "paid is delivered, the program is restarted, paid is delivered again", []Claim{ShippedOnce}, restart, func(p *Play) {
			var sent *Delivery
			p.Deliver("transaction.paid", 1, func(d *Delivery) int {
				sent = d
				return d.Send("")
			})
			p.Paid(gateway.Pix)
			if sent == nil {
				p.skip("the fault never happened: no paid event was sent")
			}
			p.Crash()
			sent.Send("again, after the restart")
			p.Quiet()
		}},
		paidBy("duplicates-at-once", "paid is delivered six times in parallel, as its first delivery", []Claim{ShippedOnce}, func(p *Play, d *Delivery) int {
			var acked atomic.Int32
			// What one delivery has read is old when it acts, if another one has read too.
			meet := p.On(&Rule{On: "reads", After: meeting(100 * time.Millisecond)})
			defer p.front.remove(meet)
			p.Together(6, func(int) {
				if ok(d.Send("six at once")) {
					acked.Add(1)
				}
			})
			if acked.Load() == 0 {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		}),
		paidBy("rerendered", "paid as another encoder writes it, signed, then as usual", []Claim{ShippedOnce, GenuineAccepts}, func(_ *Play, d *Delivery) int {
			d.Rerendered()
			return d.Send("")
		}),
		paidBy("same-fact-new-event", "paid, and again with a new event id", []Claim{ShippedOnce}, func(p *Play, d *Delivery) int {
			first := d.Send("")
			d.Renamed("evt_" + p.exam.name("again"))
			return first
		}),
		{"out-of-order", "paid first, then pending and created", []Claim{NothingLost, BooksAgree}, nil, func(p *Play) {
			held := p.Hold("transaction.created", "transaction.pending")
			p.Paid(gateway.Pix)
			p.sendHeld(held)
		}},
		{"late-paid-after-refund", "paid is held back; the order is refunded in the gateway; refunded is delivered, then paid", []Claim{ShippedOnce, BooksAgree}, nil, func(p *Play) {
			held := p.Hold("transaction.paid")
			o := p.Paid(gateway.Pix)
			p.RefundElsewhere(o, o.Amount)
			p.Quiet()
			o.fullAck, o.shippedThen = true, p.report(o).Shipped
			p.sendHeld(held)
		}},
		paidBy("forged", "paid unsigned, with another secret, the empty secret, another body's signature; never paid", []Claim{NothingMadeUp, ShippedOnce, ForgedIgnored}, nil),
		{"gateway-fails-in-webhook", "the reads while paid is handled get 503; redelivered", []Claim{NothingLost, ShippedOnce}, nil, func(p *Play) {
			p.paidWhile(&Rule{On: "reads", Case: fault.Status(http.StatusServiceUnavailable, "")})
		}},
		{"stale-read", "the read while paid is handled returns the state before the payment; redelivered", []Claim{NothingLost, ShippedOnce}, nil, func(p *Play) {
			p.paidWhile(&Rule{On: "transactions.get", Stale: true, Case: named1(fault.None(), fault.StaleRead)})
		}},
		{"killed-in-webhook", "SIGKILL while paid is handled, and after its 200, which is lost; restart; redelivered", []Claim{NothingLost, ShippedOnce, Restarts}, restart, killedInWebhook},
		{"shop-down", "paid while the program is down", []Claim{NothingLost, ShippedOnce}, restart, func(p *Play) {
			o := p.Placed(gateway.Pix)
			p.Kill()
			p.Pay1(o)
			p.Quiet()
			p.Restart()
		}},
		{"webhook-lost", "paid, and no event ever arrives", []Claim{NothingLost, ShippedOnce}, []Hook{NeedsTick}, func(p *Play) {
			o := p.Placed(gateway.Pix)
			p.verdict.eventsLost = true
			p.Deliver("", 0, (*Delivery).Swallow)
			p.Pay(o)
			p.Quiet()
		}},
		{"voucher-paid-late", "a voucher expires, the jobs run, then it is paid", []Claim{NothingLost, ShippedOnce}, nil, func(p *Play) {
			o := p.Placed(gateway.Voucher)
			for _, c := range p.charged(o) {
				p.event("the voucher expires")
				p.must(p.exam.account.Transactions.Expire(c.ID))
			}
			p.Quiet()
			p.Tick()
			p.Quiet()
			for _, c := range p.charged(o) {
				p.event("the buyer pays it late")
				p.must(p.exam.account.Transactions.Pay(c.ID))
			}
			p.Quiet()
		}},
		{"partial-refunds", "refunds of 300.00 and 50.00", []Claim{RefundedOnce, BooksAgree}, refunds, func(p *Play) {
			o := p.PaidBig()
			p.Refund(o, "r1", 30_000)
			p.Quiet()
			p.Refund(o, "r2", 5_000)
			p.Quiet()
		}},
		{"refund-response-lost", "the refund is executed, the connection reset", []Claim{RefundedOnce, BooksAgree, TrueAnswers}, refunds, func(p *Play) {
			o := p.PaidBig()
			p.Lose(refundOp, 1, fault.LostResponse())
			p.Refund(o, "r1", 30_000)
			p.Quiet()
		}},
		{"refund-late-request", "the connection is reset, the refund arrives 0.4 s later", []Claim{RefundedOnce, BooksAgree, TrueAnswers}, refunds, func(p *Play) {
			o := p.PaidBig()
			p.On(&Rule{On: refundOp, Times: 1, Case: fault.LateRequest(), Late: lateBy})
			p.Refund(o, "r1", 30_000)
			p.Quiet()
		}},
		{"killed-in-refund", "SIGKILL before and after the refund is executed; restart; the same refund again", []Claim{RefundedOnce, BooksAgree, Restarts}, []Hook{NeedsRefund, NeedsRestart}, func(p *Play) {
			for _, r := range []*Rule{
				{On: refundOp, Times: 1, Before: p.Kill, Case: named1(fault.Case{See: fault.Reset}, "killed before it")},
				{On: refundOp, Times: 1, After: p.Kill, Case: named1(fault.LostResponse(), "killed after it")},
			} {
				o := p.PaidBig()
				p.On(r)
				p.Refund(o, "r1", 30_000)
				if r.fired == 0 {
					continue
				}
				p.Restart()
				p.Refund(o, "r1", 30_000)
				p.Quiet()
			}
		}},
		{"refund-lost-then-another", "no request of a refund of 300.00 arrives; then 50.00 are refunded", []Claim{RefundedOnce, BooksAgree, TrueAnswers}, refunds, func(p *Play) {
			o := p.PaidBig()
			unreachable := p.On(&Rule{On: refundOp, Case: named1(fault.Case{See: fault.Reset}, "the request is lost")})
			p.Refund(o, "r1", 30_000)
			p.front.remove(unreachable)
			p.Refund(o, "r2", 5_000)
			p.Quiet()
		}},
		{"refund-double-click", "the same refund three times at once", []Claim{RefundedOnce, TrueAnswers}, refunds, func(p *Play) {
			o := p.PaidBig()
			p.Together(3, func(int) { p.Refund(o, "r1", 30_000) })
			p.Quiet()
		}},
		{"refunds-at-once", "two refunds of 60 % at once", []Claim{RefundedOnce, TrueAnswers}, refunds, func(p *Play) {
			o := p.PaidBig()
			o.ambiguous = true
			p.Together(2, func(i int) { p.Refund(o, [...]string{"r1", "r2"}[i], o.Amount*6/10) })
			p.Quiet()
		}},
		{"refund-by-someone-else", "400.00 are refunded in the gateway's console", []Claim{BooksAgree}, nil, func(p *Play) {
			o := p.PaidBig()
			p.RefundElsewhere(o, 40_000)
			p.Quiet()
		}},
		{"chargeback", "a card payment is charged back", []Claim{BooksAgree}, nil, func(p *Play) {
			o := p.Paid(gateway.CreditCard)
			p.event("the issuer charges it back")
			p.must(p.exam.account.Transactions.Chargeback(p.charged(o)[0].ID))
			p.Quiet()
		}},
		{"disputes", "two Pix payments are disputed; one dispute is lost, the other won", []Claim{BooksAgree, ShippedOnce}, nil, disputes},
		{"success-page", "the buyer opens the success page of an order that is not paid", []Claim{NothingMadeUp, ShippedOnce}, []Hook{NeedsReturn}, func(p *Play) {
			o := p.Placed(gateway.Pix)
			status, _ := p.hook(http.MethodPost, "orders/"+o.ID+"/return", map[string]string{"status": "paid"})
			p.offered(NeedsReturn, status)
			p.Quiet()
			p.judge()
		}},
		{"subscription-lost-response", "the create of a subscription is executed, the connection reset", []Claim{ChargedOnce, NothingLost, TrueAnswers}, []Hook{NeedsSubscriptions}, func(p *Play) {
			p.Lose("subscriptions.create", 1, fault.LostResponse())
			p.Subscribe()
		}},
		{"subscription-renewal-lost", "the events of a renewal never arrive", []Claim{NothingLost}, []Hook{NeedsSubscriptions, NeedsTick}, func(p *Play) {
			p.Subscribe()
			p.verdict.eventsLost = true
			p.Deliver("", 0, (*Delivery).Swallow)
			p.Advance(month)
		}},
		{"subscription-renewal-twice", "the event of a renewal is delivered twice", []Claim{NothingMadeUp}, []Hook{NeedsSubscriptions}, func(p *Play) {
			p.Subscribe()
			p.Deliver("subscription.renewed", 1, func(d *Delivery) int {
				first := d.Send("")
				d.Send("again")
				return first
			})
			p.Advance(month)
		}},
		{"payout-lost-response", "the payout is executed, the connection reset", []Claim{ChargedOnce, NothingLost, TrueAnswers}, []Hook{NeedsPayouts}, func(p *Play) {
			p.Lose("transfers.create", 1, fault.LostResponse())
			p.PayOut()
		}},
		{"payout-killed", "SIGKILL when the payout has been executed; restart; the same payout again", []Claim{ChargedOnce, NothingLost, Restarts}, []Hook{NeedsPayouts, NeedsRestart}, func(p *Play) {
			p.On(&Rule{On: "transfers.create", Times: 1, After: p.Kill, Case: named1(fault.LostResponse(), "killed after it")})
			p.PayOut()
		}},
	}
}

// disputes needs the states that one of the dialects has. The other reports a lost dispute
// only, as a chargeback.
func disputes(p *Play) {
	lost, won := p.Paid(gateway.Pix), p.Paid(gateway.Pix)
	payments := p.exam.account.Transactions
	for _, o := range []*Order{lost, won} {
		var e *mockserver.ControlError
		if err := payments.OpenDispute(p.charged(o)[0].ID); errors.As(err, &e) {
			p.unused("no disputes in this dialect")
			return
		} else {
			p.must(err)
		}
		p.event("the payer's bank opens a dispute about %s", o.ID)
	}
	p.Quiet()
	p.event("the dispute about %s is lost", lost.ID)
	p.must(payments.LoseDispute(p.charged(lost)[0].ID))
	p.event("the dispute about %s is won", won.ID)
	p.must(payments.WinDispute(p.charged(won)[0].ID))
	p.Quiet()
}

const (
	lateBy = 400 * time.Millisecond
	month  = 32 * 24 * time.Hour
)

func named1(c fault.Case, name string) fault.Case {
	c.Name = name
	return c
}

// lost is a scenario in which creates fail in one way.
func lost(name, about string, c fault.Case, times int, claims ...Claim) *Scenario {
	return &Scenario{name, about, claims, nil, func(p *Play) {
		p.Lose(create, times, c)
		p.buyAndPay()
	}}
}

// paidBy is a scenario in which paid is delivered in a certain way. Without a way it is
// forged, and no one pays.
// meeting returns a function that returns when it has been called a second time, or after
// a while.
func meeting(patience time.Duration) func() {
	second := make(chan struct{})
	return func() {
		alone := time.NewTimer(patience)
		defer alone.Stop()
		select {
		case second <- struct{}{}: // another call waits below
		case <-second:
		case <-alone.C:
		}
	}
}

func paidBy(name, about string, claims []Claim, send func(*Play, *Delivery) int) *Scenario {
	return &Scenario{name, about, claims, nil, func(p *Play) {
		if send == nil {
			forged(p)
			return
		}
		p.Deliver("transaction.paid", 1, func(d *Delivery) int { return send(p, d) })
		p.Paid(gateway.Pix)
	}}
}

func (p *Play) buyAndPay() {
	o := p.Order(gateway.Pix)
	p.Buy(o)
	p.PayIfCharged(o)
	p.Quiet()
}

// forged pays an order, keeps its event back and delivers forgeries of it. The
// program must wait for the genuine one.
func forged(p *Play) {
	paid, other := p.Placed(gateway.Pix), p.Placed(gateway.Pix)
	var genuine *Delivery
	p.Deliver("transaction.paid", 1, func(d *Delivery) int {
		genuine = d
		return d.Send("")
	})
	p.Pay(paid)
	p.Quiet()
	if genuine == nil {
		p.skip("the fault never happened: no paid event was sent")
	}
	about := genuine.About(p.charged(paid)[0], p.charged(other)[0], "evt_"+p.exam.name("forged"))
	about.Forge()
	about.Stale()
	p.Quiet()
	p.judge()
}

// killedAround lets the program die around a request, starts it again and lets the
// buyer click again.
func (p *Play) killedAround(op string, set func(*Rule)) {
	r := &Rule{On: op, Times: 1}
	set(r)
	p.On(r)
	o := p.Order(gateway.Pix)
	p.Place(o)
	if r.fired == 0 {
		return
	}
	p.Restart()
	p.Quiet()
	p.event("the buyer clicks again")
	p.Place(o)
	p.Quiet()
	p.Pay(o)
	p.Quiet()
}

// paidWhile pays an order; the rule holds while its event is handled for the first
// time.
func (p *Play) paidWhile(r *Rule) {
	o := p.Placed(gateway.Pix)
	p.Deliver("transaction.paid", 1, func(d *Delivery) int {
		p.On(r)
		status := d.Send("")
		p.front.remove(r)
		if r.fired == 0 {
			p.unused("the program read nothing while it handled paid")
		}
		if ok(status) && r.Stale {
			d.Send("again")
		}
		return status
	})
	p.Pay(o)
	p.Quiet()
}

// killedInWebhook kills the program at its first request while it handles paid; at
// parts of the time that this takes; and after its 200, which does not arrive.
func killedInWebhook(p *Play) {
	var took time.Duration
	measured := p.Placed(gateway.Pix)
	p.Deliver("transaction.paid", 1, func(d *Delivery) int {
		began := time.Now()
		status := d.Send("")
		took = time.Since(began)
		return status
	})
	p.Pay(measured)
	p.Quiet()

	type position struct {
		name string
		send func(d *Delivery) int
	}
	atRequest := position{"at its first request", func(d *Delivery) int {
		r := p.On(&Rule{Times: 1, Before: p.Kill, Case: fault.Case{Name: "killed", See: fault.Reset}})
		d.Send("killed at its first request")
		p.front.remove(r)
		if r.fired == 0 {
			p.Kill()
		}
		return 0
	}}
	after := position{"after its 200", func(d *Delivery) int {
		d.send("its response is lost", d.Header, d.Body)
		p.Kill()
		return 0
	}}
	positions := []position{atRequest, after}
	if !p.exam.cfg.Slow {
		for _, part := range []int{30, 60, 90} {
			positions = append(positions, position{fmt.Sprintf("at %d %% of the time", part), func(d *Delivery) int {
				var wg sync.WaitGroup
				wg.Go(func() { d.Send("killed in the middle") })
				p.exam.stage.Sleep(took * time.Duration(part) / 100)
				p.Kill()
				wg.Wait()
				return 0
			}})
		}
	}
	for _, at := range positions {
		o := p.Placed(gateway.Pix)
		killed := false
		p.Deliver("transaction.paid", 1, func(d *Delivery) int {
			killed = true
			return at.send(d)
		})
		p.Pay1(o)
		p.deliveries(2 * deliveryTimeout)
		if !killed {
			p.skip("the fault never happened: no paid event was sent")
		}
		p.Restart()
	}
}

// Pay1 pays the order's charge without asking the program, which may be down.
func (p *Play) Pay1(o *Order) {
	all, err := p.readCharges(p.ctx)
	p.must(err)
	for _, c := range all {
		if p.owner(c, o, &Report{}) == o && c.Status == gateway.TransactionPending {
			p.event("the buyer pays %s", reais(c.Amount))
			p.must(p.exam.account.Transactions.Pay(c.ID))
		}
	}
}

// payNewest pays the charge that has just been created.
func (p *Play) payNewest() {
	all, err := p.readCharges(p.ctx)
	if err != nil || len(all) == 0 {
		return
	}
	if c := all[0]; c.Status == gateway.TransactionPending {
		p.event("the buyer pays %s", reais(c.Amount))
		_ = p.exam.account.Transactions.Pay(c.ID) // a second attempt of the same create
	}
}

// deliveries waits for the deliveries that are due, for at most d.
func (p *Play) deliveries(d time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.exam.gateway.Wait(p.ctx)
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// takeReference creates a charge of another system with the reference of a create.
func (p *Play) takeReference(body []byte) {
	var params struct {
		ExternalRef string `json:"external_ref"`
	}
	if json.Unmarshal(body, &params) != nil || params.ExternalRef == "" {
		return
	}
	const other = 100
	tx, err := p.exam.client.Transactions.Create(p.ctx, gateway.TransactionParams{
		ExternalRef: params.ExternalRef, Amount: other, Method: gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Rui", Email: "rui@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Another system's", Price: other}},
	})
	if err != nil {
		return // the program sends references that the gateway rejects, which it will see itself
	}
	p.event("another system charges 1.00 with the same reference")
	p.mu.Lock()
	p.foreign[tx.ID] = true
	p.mu.Unlock()
}

func (p *Play) payForeign() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.foreign {
		p.must(p.exam.account.Transactions.Pay(id))
	}
}

// sendHeld delivers what was held back.
func (p *Play) sendHeld(held func() []*Delivery) {
	list := held()
	if len(list) == 0 {
		p.skip("the fault never happened: no event was held back")
	}
	p.relay.clear()
	for _, d := range list {
		if !ok(d.Send("late")) {
			p.Advance(0)
			d.Send("late, again")
		}
	}
	p.Quiet()
}
