package exam

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/explore/fault"
)

// Play is one performance of a scenario, with the verbs of its script.
type Play struct {
	ctx   context.Context //nolint:containedctx // of one performance; scripts would pass it to every verb
	exam  *Exam
	front *Front
	relay *Relay
	began time.Time

	mu       sync.Mutex
	exchange []Message

	orders  []*Order
	foreign map[string]bool // transactions of others, by id
	subs    []*agreement
	verdict verdict
	right   string // since when the reports were right
	lenient bool   // a mishap need not happen
}

// stop ends a script. The outcome has its reason.
type stop struct {
	status Status
	why    string
}

// skip ends the script: what it needs is not there.
func (p *Play) skip(why string) { panic(stop{Skipped, why}) }

// abort ends the script with what was found so far.
func (p *Play) abort() { panic(stop{status: Failed}) }

// broken ends the script with a failure.
func (p *Play) broken(c Claim, format string, args ...any) {
	p.verdict.fail(c, format, args...)
	p.abort()
}

// goOn ends the script if the exam was ended.
func (p *Play) goOn() {
	if p.ctx.Err() != nil {
		panic(stop{NotRun, "the exam was ended"})
	}
}

func (p *Play) must(err error) {
	if err != nil {
		p.goOn()
		panic(err) // of the mock gateway: the exam itself is wrong
	}
}

func (p *Play) log(m Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.began.IsZero() {
		m.began = time.Now()
	}
	m.At = m.began.Sub(p.began)
	p.exchange = append(p.exchange, m)
}

func (p *Play) event(format string, args ...any) {
	p.log(Message{Direction: Event, What: fmt.Sprintf(format, args...)})
}

// hookTimeout is longer than a program may take to retry.
const hookTimeout = 30 * time.Second

// hook calls a hook. status is 0 if there was no response.
func (p *Play) hook(method, path string, body any) (status int, text []byte) {
	end := p.exam.act.begin(method != http.MethodGet)
	defer end()
	ctx, cancel := context.WithTimeout(p.ctx, hookTimeout)
	defer cancel()
	var reader io.Reader = http.NoBody
	if body != nil {
		encoded, err := json.Marshal(body)
		p.must(err)
		reader = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://shop/exam/"+path, reader)
	p.must(err)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	message := Message{Direction: Hooked, What: method + " " + path, Answer: "no response", began: time.Now()}
	resp, err := p.exam.stage.Shop(r)
	if err == nil {
		status = resp.StatusCode
		text, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		_ = resp.Body.Close()
		message.Answer = fmt.Sprint(status)
		if err != nil {
			status, message.Answer = 0, "cut off"
		}
	}
	p.goOn()
	if path != "tick" && (method != http.MethodGet || status != http.StatusOK) {
		p.log(message)
	}
	return status, text
}

// offered skips the scenario if the program does not have a hook.
func (p *Play) offered(h Hook, status int) {
	switch status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		p.exam.without(h)
		p.skip("the hook " + string(h) + " is not offered")
	}
}

// Order returns a new order.
func (p *Play) Order(method gateway.Method) *Order { return p.OrderOf(method, p.exam.amount(1000)) }

// BigOrder returns an order of at least 900.00.
func (p *Play) BigOrder() *Order { return p.OrderOf(gateway.Pix, p.exam.amount(90_000)) }

// OrderOf returns an order of an amount in cents.
func (p *Play) OrderOf(method gateway.Method, cents int64) *Order {
	o := &Order{ID: p.exam.name("x"), Amount: cents, Method: string(method)}
	if method == gateway.CreditCard {
		o.Token = "pgct_ok_" + o.ID
	}
	p.orders = append(p.orders, o)
	p.exam.orders[o.ID] = o
	return o
}

// Place calls the hook that places an order.
func (p *Play) Place(o *Order) int {
	body := map[string]any{"id": o.ID, "amount": o.Amount, "currency": gateway.BRL, "method": o.Method, "buyer": p.exam.buyer}
	if o.Token != "" {
		body["card_token"] = o.Token
	}
	status, _ := p.hook(http.MethodPost, "orders", body)
	if status == http.StatusNotImplemented {
		p.skip("the method " + o.Method + " is not offered")
	}
	p.mu.Lock()
	o.answers = append(o.answers, status)
	p.mu.Unlock()
	return status
}

// Buy places an order, and once more if the buyer got no response or no charge.
func (p *Play) Buy(o *Order) {
	if status := p.Place(o); !done(status) && !refused(status) {
		p.revived()
		p.Quiet()
		p.event("the buyer clicks again")
		p.Place(o)
	}
	p.Quiet()
}

// Placed buys an order that must be charged.
func (p *Play) Placed(method gateway.Method) *Order {
	o := p.Order(method)
	p.Buy(o)
	p.charged(o)
	return o
}

// charged fails the scenario if the order has no charge. A program whose last response
// was that it will find out (202) may do so first.
func (p *Play) charged(o *Order) []*Charge {
	charges := p.chargesOf(o)
	if len(charges) == 0 && len(o.answers) > 0 && accepted(o.answers[len(o.answers)-1]) {
		p.event("the program finds out")
		p.Tick()
		p.Quiet()
		for waited := time.Duration(0); ; waited += poll {
			charges = p.chargesOf(o)
			if len(charges) > 0 || p.exam.Has(NeedsTick) || waited >= p.exam.cfg.Grace {
				break
			}
			p.exam.stage.Sleep(poll)
		}
	}
	if len(charges) == 0 {
		p.broken(NothingLost, "the order was not charged: place returned %s", codes(o.answers))
	}
	return charges
}

func (p *Play) chargesOf(o *Order) []*Charge {
	report := p.report(o)
	t, _ := p.truth(o, report)
	return t.charges
}

// Paid buys an order and pays it.
func (p *Play) Paid(method gateway.Method) *Order {
	o := p.Placed(method)
	p.Pay(o)
	p.Quiet()
	return o
}

// PaidBig is Paid for an order of at least 900.00.
func (p *Play) PaidBig() *Order {
	o := p.BigOrder()
	p.Buy(o)
	p.charged(o)
	p.Pay(o)
	p.Quiet()
	return o
}

// Pay pays every charge of the order that waits for it.
func (p *Play) Pay(o *Order) {
	for _, c := range p.charged(o) {
		if c.Status == gateway.TransactionPending {
			p.event("the buyer pays %s", reais(c.Amount))
			p.must(p.exam.account.Transactions.Pay(c.ID))
		}
	}
}

// PayIfCharged is Pay for an order that may have no charge.
func (p *Play) PayIfCharged(o *Order) {
	if len(p.chargesOf(o)) > 0 {
		p.Pay(o)
	}
}

// Refund calls the hook that refunds.
func (p *Play) Refund(o *Order, id string, cents int64) int {
	id = o.ID + "-" + id
	p.mu.Lock()
	i := slices.IndexFunc(o.refunds, func(f *refund) bool { return f.id == id })
	if i < 0 {
		i = len(o.refunds)
		o.refunds = append(o.refunds, &refund{id: id, amount: cents})
	}
	f := o.refunds[i]
	p.mu.Unlock()
	status, _ := p.hook(http.MethodPost, "orders/"+o.ID+"/refunds", map[string]any{"id": id, "amount": cents})
	p.offered(NeedsRefund, status)
	p.mu.Lock()
	f.answers = append(f.answers, status)
	p.mu.Unlock()
	return status
}

// RefundElsewhere refunds at the gateway, as a person does in its console.
func (p *Play) RefundElsewhere(o *Order, cents int64) {
	c := p.charged(o)[0]
	p.event("%s are refunded in the gateway's console", reais(cents))
	_, err := p.exam.client.Transactions.Refund(p.ctx, c.ID, gateway.RefundParams{Amount: cents})
	p.must(err)
	o.elsewhere += cents
}

// Tick runs the program's periodic jobs.
func (p *Play) Tick() {
	if !p.exam.Has(NeedsTick) {
		return
	}
	status, _ := p.hook(http.MethodPost, "tick", map[string]any{"now": p.exam.gateway.Clock.Now().Format(time.RFC3339)})
	switch {
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		p.exam.without(NeedsTick)
	case !ok(status):
		p.log(Message{Direction: Hooked, What: "POST tick", Answer: fmt.Sprint(status)})
		p.verdict.warnOnce("tick returned %d", status)
	}
}

func (v *verdict) warnOnce(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(v.warnings, text) {
		v.warnings = append(v.warnings, text)
	}
}

// report reads the program's report of an order.
func (p *Play) report(o *Order) *Report {
	status, text := p.hook(http.MethodGet, "orders/"+o.ID, nil)
	r := &Report{}
	switch {
	case status == http.StatusNotFound:
		return r
	case status != http.StatusOK:
		p.broken(NothingLost, "the report of order %s got the response %s", o.ID, codes([]int{status}))
	}
	r.Found = true
	if err := errors.Join(json.Unmarshal(text, r)); err != nil {
		p.broken(NothingLost, "the report of order %s is not the JSON of docs/exam.md: %v", o.ID, err)
	}
	if err := r.check(); err != nil {
		p.broken(NothingLost, "the report of order %s: %v", o.ID, err)
	}
	return r
}

// truth returns the gateway's side of the order, and the charges of no order.
func (p *Play) truth(o *Order, r *Report) (t *truth, strays []*Charge) {
	all, err := p.readCharges(p.ctx)
	p.must(err)
	t = &truth{}
	for _, c := range all {
		switch owner := p.owner(c, o, r); {
		case c.Foreign:
		case owner == o:
			t.add(c)
		case owner == nil:
			strays = append(strays, c)
		}
	}
	return t, strays
}

// owner returns the order of a charge: the one that reports it, whose id is in its
// reference or metadata, or that has its amount.
func (p *Play) owner(c *Charge, o *Order, r *Report) *Order {
	if slices.Contains(r.Charges, c.ID) && !c.Foreign {
		return o
	}
	for _, other := range p.exam.orders {
		if strings.Contains(c.marks, other.ID) {
			return other
		}
	}
	for _, other := range p.orders {
		if c.Amount == other.Amount {
			return other
		}
	}
	return nil
}

// On adds a rule for requests of the program to the gateway.
func (p *Play) On(r *Rule) *Rule {
	p.front.add(r)
	return r
}

// Lose lets a request of the operation fail in one way.
func (p *Play) Lose(op string, times int, c fault.Case) *Rule {
	return p.On(&Rule{On: op, Times: times, Case: c})
}

// Deliver treats deliveries of a kind.
func (p *Play) Deliver(kind string, times int, do func(*Delivery) int) *Treatment {
	t := &Treatment{Kind: kind, Times: times, Do: do}
	p.relay.add(t)
	return t
}

// Hold keeps deliveries of kinds back. release delivers them.
func (p *Play) Hold(kinds ...string) (held func() []*Delivery) {
	var list []*Delivery
	for _, kind := range kinds {
		p.Deliver(kind, 0, func(d *Delivery) int {
			p.mu.Lock()
			defer p.mu.Unlock()
			list = append(list, d)
			return http.StatusOK
		})
	}
	return func() []*Delivery {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.Clone(list)
	}
}

// Quiet waits until nothing is in progress.
func (p *Play) Quiet() {
	if !p.exam.stage.Settle(p.ctx, p.exam.act.state) {
		p.verdict.warnOnce("the program did not become quiet")
	}
	p.exam.choices.quiet(p)
}

// Kill ends the program as a crash does.
func (p *Play) Kill() {
	p.event("the program is killed")
	p.exam.stage.Kill()
}

// Restart starts the program again.
func (p *Play) Restart() {
	p.event("the program is started again")
	if err := p.exam.stage.Restart(p.ctx); err != nil {
		p.goOn()
		p.exam.gone = true
		p.broken(Restarts, "after a crash the program did not come back: %v", err)
	}
}

// Crash is Kill and Restart.
func (p *Play) Crash() {
	p.Kill()
	p.Restart()
}

// Together runs f n times at once.
func (p *Play) Together(n int, f func(i int)) {
	var wg sync.WaitGroup
	failed := make(chan any, n)
	for i := range n {
		wg.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					failed <- r
				}
			}()
			f(i)
		})
	}
	wg.Wait()
	close(failed)
	if r, ok := <-failed; ok {
		panic(r)
	}
}

// Advance moves the gateway's clock and waits for what that causes.
func (p *Play) Advance(d time.Duration) {
	if d > 0 {
		p.event("%s later", d)
		p.must(p.exam.gateway.Clock.Advance(d))
	}
	p.Quiet()
}

// rounds are the times of the settling, on the gateway's clock.
var rounds = []struct {
	at   time.Duration
	name string
}{{0, "at once"}, {10 * time.Minute, "after 10 min"}, {20 * time.Minute, "after 20 min"}, {200 * time.Minute, "after 3 h 20 min"}}

// settle removes the faults and gives the program time to put everything right.
func (p *Play) settle() {
	p.exam.choices.end()
	for _, r := range p.front.clear() {
		p.unused(r.Case.Name)
	}
	for range p.relay.clear() {
		p.unused("of a delivery")
	}
	var last time.Duration
	for i, round := range rounds {
		p.Advance(round.at - last)
		last = round.at
		unticked := p.judge()
		p.Tick()
		p.Quiet()
		final := p.judge()
		if i < len(rounds)-1 && !p.exam.Has(NeedsTick) && len(final.failures) > 0 {
			final = p.wait()
		}
		if len(final.failures) == 0 && p.right == "" {
			p.right = round.name
		} else if len(final.failures) > 0 {
			p.right = ""
		}
		p.healed(unticked, final)
		if p.right != "" && i > 0 || i == len(rounds)-1 {
			p.verdict.failures = append(p.verdict.failures, final.failures...)
			for _, w := range final.warnings {
				p.verdict.warnOnce("%s", w)
			}
			return
		}
	}
}

// poll is how often a program without tick is asked.
const poll = 100 * time.Millisecond

// wait polls the reports of a program without tick, as it may work on its own.
func (p *Play) wait() verdict {
	for waited := time.Duration(0); ; waited += poll {
		final := p.judge()
		if len(final.failures) == 0 || waited >= p.exam.cfg.Grace {
			return final
		}
		p.exam.stage.Sleep(poll)
	}
}

func (p *Play) unused(name string) {
	if len(p.verdict.failures) == 0 {
		p.verdict.unused = append(p.verdict.unused, name)
	}
}

// healed warns if only a tick made the report right although every event was
// acknowledged.
func (p *Play) healed(unticked, ticked verdict) {
	booked := func(f Finding) bool { return f.Claim != RefundedOnce } // a refund may wait for the jobs
	if slices.ContainsFunc(unticked.failures, booked) && len(ticked.failures) == 0 && len(p.relay.unacknowledged()) == 0 && !p.verdict.eventsLost {
		p.verdict.warnOnce("healed by jobs only: the report was right only after a tick, although every event had been delivered")
	}
}

// judge reads both sides of every order. It ends the scenario if a claim fails that
// no later event heals.
func (p *Play) judge() (final verdict) {
	var now verdict
	for _, o := range p.orders {
		r := p.report(o)
		t, strays := p.truth(o, r)
		judgeAtOnce(o, t, r, &now)
		for _, c := range strays {
			now.fail(RightCharge, "a charge of %s %s belongs to no order", c.Currency, reais(c.Amount))
		}
		judgeAtTheEnd(o, t, r, p.exam.Has(NeedsTick), &final)
	}
	for _, s := range p.subs {
		s.judge(p, &now, &final)
	}
	for _, kind := range p.relay.unacknowledged() {
		if !matters(kind) {
			final.warnings = append(final.warnings, kind+" is never acknowledged with 2xx")
			continue
		}
		final.fail(GenuineAccepts, "%s was rejected to the end of its retries", kind)
	}
	if len(now.failures) > 0 {
		p.verdict.failures = append(p.verdict.failures, now.failures...)
		p.abort()
	}
	return final
}

// matters reports whether money moves with an event of the kind. A program need not
// use the others.
func matters(kind string) bool {
	switch kind {
	case "transaction.paid", "transaction.refunded", "transaction.chargedback", "subscription.renewed", "subscription.started",
		"payout.transferred", "payout.failed":
		return true
	}
	return false
}
