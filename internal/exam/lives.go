package exam

import (
	"net/http"

	"github.com/gateway-go/gateway"
)

// Lives returns the lives of an order: scenarios without faults. A white box chooses the
// faults at their messages.
func Lives() []*Scenario {
	all := []Claim{
		ChargedOnce, RightCharge, NothingLost, NothingMadeUp, ShippedOnce, RefundedOnce, BooksAgree, TrueAnswers, GenuineAccepts, Restarts,
	}
	life := func(name, about string, needs []Hook, play func(*Play)) *Scenario {
		return &Scenario{name, about, all, needs, func(p *Play) {
			p.exam.choices.begin(p)
			play(p)
		}}
	}
	refunds := []Hook{NeedsRefund}
	return []*Scenario{
		life("pix", "Pix, paid", nil, func(p *Play) { p.livePaid(p.OrderOf(gateway.Pix, exactCents[0])) }),
		life("pix-not-paid", "Pix that is not paid and expires", nil, func(p *Play) {
			o := p.OrderOf(gateway.Pix, exactCents[1])
			p.liveBuy(o)
			p.expire(o)
		}),
		life("card-at-once", "a card that is captured in the response of the create", nil, func(p *Play) {
			o := p.Order(gateway.CreditCard)
			o.Token = "pgct_captured_" + o.ID
			p.liveBuy(o)
		}),
		life("card-later", "a card that is captured later", nil, func(p *Play) { p.livePaid(p.Order(gateway.CreditCard)) }),
		life("card-refused", "a card that the issuer refuses", nil, func(p *Play) {
			o := p.Order(gateway.CreditCard)
			o.Token = "pgct_refused_" + o.ID
			p.liveBuy(o)
		}),
		life("voucher-paid-late", "a voucher that expires, and is paid then", nil, func(p *Play) {
			o := p.Order(gateway.Voucher)
			p.liveBuy(o)
			p.expire(o)
			p.Tick()
			p.Alive()
			for _, c := range p.chargesOf(o) {
				if c.Status == gateway.TransactionExpired {
					p.event("the buyer pays it late")
					p.must(p.exam.account.Transactions.Pay(c.ID))
				}
			}
			p.Alive()
		}),
		life("partial-refunds", "refunds of 300.00 and 50.00", refunds, func(p *Play) {
			o := p.BigOrder()
			p.exam.choices.prelude(func() { p.livePaid(o) })
			p.liveRefund(o, "r1", 30_000)
			p.liveRefund(o, "r2", 5_000)
		}),
		life("refund-by-someone-else", "400.00 are refunded in the gateway's console", nil, func(p *Play) {
			o := p.BigOrder()
			p.exam.choices.prelude(func() { p.livePaid(o) })
			p.refundElsewhere(o, 40_000)
		}),
		life("refunded-by-someone-else", "everything is refunded in the gateway's console", nil, func(p *Play) {
			o := p.BigOrder()
			p.exam.choices.prelude(func() { p.livePaid(o) })
			p.refundElsewhere(o, o.Amount)
			if r := p.report(o); r.Status == StatusRefunded {
				o.fullAck, o.shippedThen = true, r.Shipped
			}
		}),
		life("chargeback", "a card payment is charged back", nil, func(p *Play) {
			o := p.Order(gateway.CreditCard)
			p.exam.choices.prelude(func() { p.livePaid(o) })
			for _, c := range p.chargesOf(o) {
				if c.Paid > 0 {
					p.event("the issuer charges it back")
					p.must(p.exam.account.Transactions.Chargeback(c.ID))
				}
			}
			p.Alive()
		}),
		{"forged", "forgeries of an event that another order is paid", []Claim{NothingMadeUp, ShippedOnce, ForgedIgnored}, nil, forged},
	}
}

// Alive waits until nothing is in progress, and starts the program again if it was
// killed.
func (p *Play) Alive() {
	p.Quiet()
	for p.exam.stage.Dead() {
		p.Restart()
		p.Quiet()
	}
}

// clicks is how often a buyer or an operator asks until there is a yes or a no.
const clicks = 3

// liveBuy places an order until there is a yes or a no.
func (p *Play) liveBuy(o *Order) {
	for i := range clicks {
		if i > 0 {
			p.event("the buyer clicks again")
		}
		p.act("place", func() { p.Place(o) })
		p.Alive()
		if definite(o.answers) {
			return
		}
	}
}

// definite reports whether one of the responses was yes or no.
func definite(answers []int) bool {
	for _, s := range answers {
		if done(s) || refused(s) {
			return true
		}
	}
	return false
}

func (p *Play) livePaid(o *Order) {
	p.liveBuy(o)
	p.PayIfCharged(o)
	p.Alive()
}

func (p *Play) expire(o *Order) {
	for _, c := range p.chargesOf(o) {
		if c.open() {
			p.event("it expires")
			p.must(p.exam.account.Transactions.Expire(c.ID))
		}
	}
	p.Alive()
}

// liveRefund asks for a refund of a paid order until there is a yes or a no.
func (p *Play) liveRefund(o *Order, id string, cents int64) {
	if !p.paid(o) {
		return
	}
	f := &refund{id: o.ID + "-" + id, amount: cents}
	o.refunds = append(o.refunds, f)
	for i := range clicks {
		if i > 0 {
			p.event("the same refund again")
		}
		p.act("refund", func() {
			status, _ := p.hook(http.MethodPost, "orders/"+o.ID+"/refunds", map[string]any{"id": f.id, "amount": cents})
			p.mu.Lock()
			defer p.mu.Unlock()
			f.answers = append(f.answers, status)
		})
		p.Alive()
		if status := f.answers[len(f.answers)-1]; status != http.StatusNotFound || p.report(o).Found {
			p.offered(NeedsRefund, status)
		}
		if definite(f.answers) {
			return
		}
	}
}

func (p *Play) paid(o *Order) bool {
	t, _ := p.truth(o, p.report(o))
	return t.paid > 0
}

func (p *Play) refundElsewhere(o *Order, cents int64) {
	if p.paid(o) {
		p.RefundElsewhere(o, cents)
	}
	p.Alive()
}
