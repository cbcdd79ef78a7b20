package exam

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gateway-go/gateway"
)

// agreement is a subscription or a payout: what the exam asked for, and how both
// sides are compared.
type agreement struct {
	id      string
	amount  int64
	path    string // of its hooks
	answers []int
	read    func(p *Play, a *agreement) (count, periods, paid int64) // at the gateway
}

// payoutTime is longer than the gateway takes for a payout.
const payoutTime = time.Minute

// Subscribe calls the hook that starts a subscription, and again if it got no response.
func (p *Play) Subscribe() {
	a := &agreement{id: p.exam.name("s"), amount: p.exam.amount(1000), path: "subscriptions", read: readSubscriptions}
	p.agree(a, NeedsSubscriptions, map[string]any{
		"id": a.id, "amount": a.amount, "interval": gateway.IntervalMonth, "card_token": "pgct_ok_" + a.id, "buyer": p.exam.buyer,
	})
}

// PayOut calls the hook that makes a payout. After a crash the program is started
// again and asked again.
func (p *Play) PayOut() {
	a := &agreement{id: p.exam.name("p"), amount: p.exam.amount(1000), path: "payouts", read: readPayouts}
	p.agree(a, NeedsPayouts, map[string]any{"id": a.id, "amount": a.amount, "pix_key": a.id + "@example.com"})
}

func (p *Play) agree(a *agreement, h Hook, body map[string]any) {
	p.subs = append(p.subs, a)
	for range 2 {
		status, _ := p.hook(http.MethodPost, a.path, body)
		p.offered(h, status)
		a.answers = append(a.answers, status)
		if done(status) || refused(status) {
			break
		}
		if p.exam.stage.Dead() {
			p.Restart()
		}
		p.Quiet()
		p.event("the same again")
	}
	p.Quiet()
	if _, _, paid := a.read(p, a); paid == 0 && a.path == "payouts" {
		p.Advance(payoutTime)
	}
}

// judge compares the two sides.
func (a *agreement) judge(p *Play, now, final *verdict) OrderBooks {
	status, text := p.hook(http.MethodGet, a.path+"/"+a.id, nil)
	var r struct {
		Status  string `json:"status"`
		Periods int64  `json:"periods"`
		Paid    int64  `json:"paid"`
	}
	if status == http.StatusOK && json.Unmarshal(text, &r) != nil || status != http.StatusOK && status != http.StatusNotFound {
		p.broken(NothingLost, "the report of %s %s got the response %s", a.path, a.id, codes([]int{status}))
	}
	count, periods, paid := a.read(p, a)
	if count > 1 {
		now.fail(ChargedOnce, "the gateway has %d %s for %s", count, a.path, a.id)
	}
	if onlyRefused(a.answers) && count > 0 {
		now.fail(TrueAnswers, "it was rejected with 4xx only (%s), and the gateway has it", codes(a.answers))
	}
	if r.Paid > paid || r.Periods > periods {
		now.fail(NothingMadeUp, "the shop reports %s, the gateway has %s", inPeriods(r.Paid, r.Periods), inPeriods(paid, periods))
	}
	switch {
	case count > 0 && status == http.StatusNotFound:
		final.fail(NothingLost, "the shop does not know %s", a.id)
	case r.Paid < paid || r.Periods < periods:
		final.fail(NothingLost, "the shop reports %s, the gateway has %s", inPeriods(r.Paid, r.Periods), inPeriods(paid, periods))
	case r.Status == StatusUnknown && count > 0:
		final.fail(NothingLost, "the shop reports unknown, the gateway has it")
	}
	shop := "404"
	if status == http.StatusOK {
		shop = books(r.Status, r.Paid, 0, 0)
	}
	return OrderBooks{a.id, a.amount, shop, "paid " + reais(paid)}
}

func inPeriods(paid, periods int64) string {
	if periods == 0 {
		return reais(paid) + " paid"
	}
	return fmt.Sprintf("%s paid in %d periods", reais(paid), periods)
}

// readSubscriptions reads the subscriptions of the amount, which no other has. Their
// charges belong to no order.
func readSubscriptions(p *Play, a *agreement) (count, periods, paid int64) {
	for summary, err := range p.exam.client.Subscriptions.All(p.ctx, gateway.SubscriptionListParams{Limit: 100}) {
		p.must(err)
		if summary.Amount != a.amount {
			continue
		}
		count++
		sub, err := p.exam.client.Subscriptions.Get(p.ctx, summary.ID)
		p.must(err)
		for _, tx := range sub.Transactions {
			p.foreign[tx.ID] = true
			if tx.Status.Settled() && tx.AmountIs(a.amount) {
				periods++
				paid += a.amount
			}
		}
	}
	return count, periods, paid
}

// readPayouts reads the payouts of the amount. A payout has no periods.
func readPayouts(p *Play, a *agreement) (count, periods, paid int64) {
	for tr, err := range p.exam.client.Transfers.All(p.ctx, gateway.TransferListParams{Limit: 100}) {
		p.must(err)
		if tr.Amount != a.amount {
			continue
		}
		count++
		if tr.Status == gateway.TransferPaid {
			paid += tr.Amount
		}
	}
	return count, 0, paid
}
