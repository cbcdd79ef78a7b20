package books_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// coin is the amount that all amounts of these histories are multiples of.
const coin = 10

// Where the coins of a payment are.
const (
	inHand = iota
	givenBack
	withheld
)

// payment is what a person knows of a charge: where each of its coins is. Those of the price
// are told apart once it has settled the order.
type payment struct {
	price, extra [3]int
}

// total returns how many coins were paid.
func (p *payment) total() (n int) {
	for where := range p.price {
		n += p.price[where] + p.extra[where]
	}
	return n
}

// move moves n coins of the payment, first those beyond the price.
func (p *payment) move(n, from, to int) {
	for _, coins := range []*[3]int{&p.extra, &p.price} {
		moved := min(n, coins[from])
		coins[from] -= moved
		coins[to] += moved
		n -= moved
	}
}

// pays says which coins are the price: those that are there, before those that went back.
func (p *payment) pays(price int) {
	for where := range p.price {
		p.extra[where], p.price[where] = p.extra[where]+p.price[where], 0
	}
	for _, where := range []int{inHand, withheld, givenBack} {
		n := min(price, p.extra[where])
		p.extra[where] -= n
		p.price[where] += n
		price -= n
	}
}

// person walks the money of an order in coins, and knows no sums.
type person struct {
	payments [3]payment
	counts   [3]bool // the payment can pay this order, in its currency
	settled  int     // the number of the payment that pays the price, -1 while none does
}

// owes says whether a person would send the goods. Coins of the price that a dispute took,
// or all of them if the whole payment was given back, must be replaced by spare coins.
func (p *person) owes() bool {
	if p.settled < 0 {
		return false
	}
	pays := &p.payments[p.settled]
	missing := pays.price[withheld]
	if pays.price[givenBack]+pays.extra[givenBack] == pays.total() {
		missing = pays.price[givenBack]
	}
	spare := 0
	for i := range p.payments {
		if other := &p.payments[i]; p.counts[i] {
			spare += other.extra[inHand]
		}
	}
	return missing <= spare && spare+pays.price[inHand] > 0
}

// why says what a person would tell the shop.
func (p *person) why() books.State {
	if p.owes() {
		return books.Paid
	}
	undisputed := *p
	for i := range undisputed.payments {
		undisputed.payments[i].move(99, withheld, inHand)
	}
	if undisputed.owes() {
		return books.Disputed
	}
	return books.Refunded
}

// left returns the coins in hand that count.
func (p *person) left() (n int) {
	for i := range p.payments {
		if p.counts[i] {
			n += p.payments[i].price[inHand] + p.payments[i].extra[inHand]
		}
	}
	return n
}

// ask is a charge of the histories and how it is paid, in coins.
type ask struct {
	requested, asked, amount int // asked and amount are those of its request
	pays, rest               int // paid at once, and later
	currency                 gateway.Currency
	charge                   books.Charge // what else the charge is
}

// deal is an order with its charges, after some events.
type deal struct {
	asks    *[3]ask
	order   books.Order
	charges [3]books.Charge
	topped  [3]bool // the rest was paid
	lost    [3]bool // the dispute was lost
	person  person
	at      int
	result  books.Result // of Goods in the last step
	facts   int
	told    bool // what the shop heard last
	calls   int
}

// newDeal starts an order.
func newDeal(asks *[3]ask) *deal {
	d := &deal{asks: asks, order: books.Order{ID: "order/A17"}, person: person{settled: -1}}
	for i := range asks {
		a, c := &asks[i], asks[i].charge
		c.ID, c.Operation, c.Currency = fmt.Sprintf("c%d", i+1), books.Sent, gateway.BRL
		c.Origin = cmp.Or(c.Origin, books.FromOrder)
		c.Requested, c.Asked = coin*int64(a.requested), coin*int64(a.asked)
		d.charges[i] = c
	}
	return d
}

// event is one thing that can happen to a deal.
type event struct {
	name string
	can  func(d *deal, i int) bool
	do   func(d *deal, i int)
}

// move moves coins of a charge and reads its transaction.
func (d *deal) move(i, n, from, to int) {
	d.person.payments[i].move(n, from, to)
	d.read(i)
}

// pay adds coins to a payment. If coins of the price went back before, these take their place.
func (d *deal) pay(i, n int) {
	p := &d.person.payments[i]
	p.extra[inHand] += n
	if d.person.settled == i {
		p.pays(p.price[inHand] + p.price[givenBack] + p.price[withheld])
	}
	d.read(i)
}

// read applies a reading of the transaction of a charge, as a caller does.
func (d *deal) read(i int) {
	p, a := &d.person.payments[i], &d.asks[i]
	back, taken := p.price[givenBack]+p.extra[givenBack], p.price[withheld]+p.extra[withheld]
	status := gateway.TransactionPaid
	switch {
	case d.lost[i]:
		status = gateway.TransactionChargedback
	case taken > 0:
		status = gateway.TransactionMED
	case back == p.total():
		status = gateway.TransactionRefunded
	case back > 0:
		status = gateway.TransactionPartiallyRefunded
	}
	tx := &gateway.Transaction{
		ID: "t" + d.charges[i].ID, Status: status, Amount: coin * int64(cmp.Or(a.amount, a.asked, a.requested)),
		Currency: cmp.Or(a.currency, gateway.BRL), PaidAmount: coin * int64(p.total()), RefundedAmount: coin * int64(back),
		PaidAt: gateway.TimestampOf(start), UpdatedAt: gateway.TimestampOf(minute(d.at)),
	}
	b, _ := books.ApplyTransaction(books.Books{Order: d.order, Charge: d.charges[i]}, reading(tx, d.at))
	d.take(i, b)
	if d.person.settled < 0 && !d.order.Closed && p.total() >= a.requested && tx.Currency == gateway.BRL && d.pays(i) {
		d.settles(i, a.requested)
	}
}

// pays reports whether the charge is one of the order.
func (d *deal) pays(i int) bool {
	return !d.charges[i].CardCheck && d.charges[i].Origin != books.FromSubscription
}

// settles notes which payment pays the price.
func (d *deal) settles(i, price int) {
	d.person.settled = i
	d.person.payments[i].pays(price)
	for other := range d.asks {
		d.person.counts[other] = d.asks[other].currency == d.asks[i].currency && d.pays(other)
	}
}

// take stores what a function returned, and does what a caller does next.
func (d *deal) take(i int, b books.Books) {
	settles := d.order.SettledBy != b.Order.SettledBy
	d.order, d.charges[i] = b.Order, b.Charge
	if settles {
		d.unneeded()
	}
}

// unneeded does what a caller does once the order wants no more money.
func (d *deal) unneeded() {
	charges, _ := books.Unneeded(d.order, d.charges[:], minute(d.at))
	copy(d.charges[:], charges)
}

// deliver delivers all facts that wait, as a caller does.
func (d *deal) deliver() {
	if d.told != d.order.Owed {
		d.told = d.order.Owed
		d.calls++
	}
}

func events() []event {
	paid := func(d *deal, i int) bool { return d.person.payments[i].total() > 0 }
	more := func(d *deal, i int) bool { return d.asks[i].rest > 0 && !d.topped[i] }
	can := func(where, more int) func(d *deal, i int) bool {
		return func(d *deal, i int) bool {
			p := &d.person.payments[i]
			return p.price[where]+p.extra[where] > more && !d.lost[i]
		}
	}
	return []event{
		{"paid", func(d *deal, i int) bool { return !paid(d, i) }, func(d *deal, i int) { d.pay(i, d.asks[i].pays) }},
		{"the rest is paid", func(d *deal, i int) bool { return more(d, i) && can(inHand, 0)(d, i) }, func(d *deal, i int) {
			d.topped[i] = true
			d.pay(i, d.asks[i].rest)
		}},
		{"accepted", func(d *deal, i int) bool { return d.charges[i].State == books.Underpaid && !d.charges[i].Accepted }, func(d *deal, i int) {
			b, _ := books.Accept(books.Books{Order: d.order, Charge: d.charges[i]}, minute(d.at))
			d.take(i, b)
			if d.person.settled < 0 && !d.order.Closed && d.pays(i) {
				d.settles(i, d.person.payments[i].total())
			}
		}},
		{"refunded in part", can(inHand, 2), func(d *deal, i int) { d.move(i, 2, inHand, givenBack) }},
		{"refunded", can(inHand, 0), func(d *deal, i int) { d.move(i, 99, inHand, givenBack) }},
		{"disputed", can(inHand, 0), func(d *deal, i int) { d.move(i, 99, inHand, withheld) }},
		{"refunded in part in the dispute", can(withheld, 2), func(d *deal, i int) { d.move(i, 2, withheld, givenBack) }},
		{"refunded in the dispute", can(withheld, 0), func(d *deal, i int) { d.move(i, 99, withheld, givenBack) }},
		{"won", can(withheld, 0), func(d *deal, i int) { d.move(i, 99, withheld, inHand) }},
		{"lost", can(withheld, 0), func(d *deal, i int) {
			d.lost[i] = true
			d.read(i)
		}},
		{"closed", func(d *deal, i int) bool { return i == 0 && !d.order.Closed }, func(d *deal, _ int) {
			d.order.Closed = true
			d.unneeded()
		}},
		{"delivered", func(d *deal, i int) bool { return i == 0 && d.told != d.order.Owed }, func(d *deal, _ int) { d.deliver() }},
	}
}

// deals are orders whose charges are equal and different, underpaid, overpaid, with interest,
// in another currency, or not the order's.
func deals() map[string]*[3]ask {
	return map[string]*[3]ask{
		"equal":                        {{requested: 5, pays: 5}, {requested: 5, pays: 5}, {requested: 5, pays: 5}},
		"underpaid":                    {{requested: 5, pays: 5}, {requested: 5, pays: 2, rest: 3}, {requested: 5, pays: 3}},
		"all are underpaid":            {{requested: 5, pays: 4, rest: 6}, {requested: 5, pays: 2}, {requested: 5, pays: 4}},
		"overpaid":                     {{requested: 5, pays: 11}, {requested: 5, pays: 1}, {requested: 5, pays: 5}},
		"overpaid a little":            {{requested: 5, pays: 6}, {requested: 5, pays: 4}, {requested: 5, pays: 5}},
		"interest":                     {{requested: 5, amount: 6, pays: 6}, {requested: 5, amount: 8, pays: 8}, {requested: 5, pays: 5}},
		"the cart became cheaper":      {{requested: 3, asked: 5, pays: 5}, {requested: 3, pays: 3}, {requested: 3, pays: 2}},
		"another currency":             {{requested: 5, pays: 4, currency: gateway.USD}, {requested: 5, pays: 5}, {requested: 5, pays: 3, currency: gateway.USD}},
		"a card check, a subscription": {{requested: 5, pays: 5}, {requested: 5, pays: 5, charge: books.Charge{CardCheck: true}}, {requested: 5, pays: 5, charge: books.Charge{Origin: books.FromSubscription}}},
	}
}

// judge is books.Goods, or a defective one.
type judge func(o books.Order, charges []books.Charge) (books.Order, books.Result)

// goods is books.Goods a minute after the change.
func goods(o books.Order, charges []books.Charge) (books.Order, books.Result) {
	return books.Goods(o, charges, start)
}

// step does what a caller does at the end of a change. The error says which promise is broken.
func (d *deal) step(do judge) error {
	was := d.order
	d.order, d.result = do(was, d.charges[:])
	want, by := d.person.owes(), ""
	if d.person.settled >= 0 {
		by = d.charges[d.person.settled].ID
	}
	switch {
	case by != d.order.SettledBy:
		return fmt.Errorf("settled by %q, want %q", d.order.SettledBy, by)
	case d.order.Owed != want:
		return fmt.Errorf("owed is %t, want %t", d.order.Owed, want)
	case books.Owed(d.order, d.charges[:]) != want:
		return errors.New("Owed is not what the order says")
	case books.Why(d.order, d.charges[:]) != d.person.why():
		return fmt.Errorf("the shop is told %s, want %s", books.Why(d.order, d.charges[:]), d.person.why())
	}
	facts := d.result.Facts
	if was.Owed == want {
		if len(facts)+len(d.result.Over)+len(d.result.Problems) > 0 || d.result.Outcome != books.Unchanged || d.order != was {
			return fmt.Errorf("nothing has changed, but %+v", d.result)
		}
		return nil
	}
	d.facts++
	fact := books.Fact{
		Key: fmt.Sprintf("goods/order/A17/%d", d.facts), Kind: books.GoodsChanged, Order: "order/A17", Record: by, About: coin * int64(d.person.left()),
		At: start, Source: books.FromOutcome, Callback: books.OnGoods,
	}
	var over []books.Over
	if !want {
		over = []books.Over{{Kind: books.IsClosed, Record: by}}
	}
	if !slices.Equal(facts, []books.Fact{fact}) || !slices.Equal(d.result.Over, over) || silent(d.result) || d.order.GoodsFacts != d.facts {
		return fmt.Errorf("got %+v\nwant %+v, %+v", d.result, fact, over)
	}
	if _, again := do(d.order, d.charges[:]); len(again.Facts) > 0 {
		return fmt.Errorf("not idempotent: %+v", again)
	}
	return nil
}

// related checks what must hold of the deals before and after an event of a charge.
func (d *deal) related(before *deal, name string, i int) error {
	settles := before.person.settled == i
	switch {
	case name == "refunded in part" && settles && before.order.Owed && !d.order.Owed:
		return errors.New("a part of a refund has ended the goods")
	case name == "won" && before.order.Owed && !d.order.Owed:
		return errors.New("more money has ended the goods")
	case name == "lost" && before.order.Owed != d.order.Owed:
		return errors.New("what was withheld before has changed the goods")
	case name == "closed" && before.order.Owed != d.order.Owed:
		return errors.New("to close the order has changed the goods")
	case name == "delivered" && d.calls > 0 && d.told != (d.calls%2 == 1):
		return errors.New("the shop has heard the same twice")
	}
	if name != "disputed" {
		return nil
	}
	won := *d
	won.person.payments[i].move(99, withheld, inHand)
	won.at++
	won.read(i)
	won.order, _ = goods(won.order, won.charges[:])
	if won.order.Owed != before.order.Owed {
		return errors.New("a dispute that was won does not restore what was owed")
	}
	if before.order.Owed && !d.order.Owed && books.Why(d.order, d.charges[:]) != books.Disputed {
		return errors.New("a dispute has ended the goods, and the shop is told something else")
	}
	return nil
}

// end checks that at last the shop has heard what the books say.
func (d *deal) end() error {
	d.deliver()
	if d.told != d.order.Owed || d.told != (d.calls%2 == 1) || d.calls > d.facts {
		return fmt.Errorf("at the end the shop has heard %t in %d calls for %d facts, owed is %t", d.told, d.calls, d.facts, d.order.Owed)
	}
	return nil
}

// walk does everything that can happen next, up to n events.
func (d *deal) walk(do judge, all []event, n int, histories *int) error {
	*histories++
	last := *d
	if err := last.end(); err != nil || n == 0 {
		return err
	}
	for _, e := range all {
		for i := range d.charges {
			if !e.can(d, i) {
				continue
			}
			next := *d
			next.at++
			e.do(&next, i)
			err := cmp.Or(next.step(do), next.related(d, e.name, i))
			if err == nil {
				err = next.walk(do, all, n-1, histories)
			}
			if err != nil {
				return fmt.Errorf("%s %s; %w", e.name, next.charges[i].ID, err)
			}
		}
	}
	return nil
}

// checkEveryDeal walks every history of every deal, of at most n events, and returns their number.
func checkEveryDeal(do judge, n int) (histories int, broken error) {
	for name, asks := range deals() {
		if err := newDeal(asks).walk(do, events(), n, &histories); err != nil {
			return histories, fmt.Errorf("%s: %w", name, err)
		}
	}
	return histories, nil
}

// After every event of every history the goods are owed if a person would send them, the
// facts alternate, and so do the calls, however late facts are delivered.
func TestGoodsInEveryHistoryOfThreeCharges(t *testing.T) {
	t.Parallel()
	n := 5
	if fullSize() {
		n = 7
	}
	histories, err := checkEveryDeal(goods, n)
	require.NoError(t, err)
	t.Logf("%d histories of at most %d events", histories, n)
	assert.Greater(t, histories, 10_000)
}

// The check above must find formulas that look right.
func TestDefectsOfGoodsAreFound(t *testing.T) {
	t.Parallel()
	sum := func(charges []books.Charge, of func(c *books.Charge) int64) (n int64) {
		for i := range charges {
			if c := &charges[i]; c.Origin == books.FromOrder && !c.CardCheck {
				n += of(c)
			}
		}
		return n
	}
	left := func(c *books.Charge) int64 { return c.Left() }
	undisputed := func(c *books.Charge) int64 { return c.Paid - c.Disputed }
	for name, owed := range map[string]func(o books.Order, charges []books.Charge) bool{
		"as long as something is left": func(_ books.Order, charges []books.Charge) bool {
			return sum(charges, left) > 0
		},
		"a refund is like a dispute": func(o books.Order, charges []books.Charge) bool {
			return sum(charges, left) >= o.Price
		},
		"every refund is a decision": func(o books.Order, charges []books.Charge) bool {
			return sum(charges, left) > 0 && sum(charges, undisputed) >= o.Price
		},
		"every refund of the charge that settled it is one": func(o books.Order, charges []books.Charge) bool {
			return sum(charges, left) > 0 && o.Price <= sum(charges, func(c *books.Charge) int64 {
				if c.ID == o.SettledBy {
					return undisputed(c)
				}
				return c.Left()
			})
		},
		"in any currency": func(o books.Order, charges []books.Charge) bool {
			charges = slices.Clone(charges)
			for i := range charges {
				charges[i].Currency = gateway.BRL
			}
			return books.Owed(o, charges)
		},
	} {
		_, err := checkEveryDeal(func(o books.Order, charges []books.Charge) (books.Order, books.Result) {
			if want := o.SettledBy != "" && owed(o, charges); want != books.Owed(o, charges) {
				o.Owed = want
				return o, books.Result{}
			}
			return goods(o, charges)
		}, 5)
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), "owed is", name)
	}
}

// charged is a charge of 50 with an ID, of which was paid, refunded and disputed.
func charged(id string, paid, refunded, disputed int64) books.Charge {
	return books.Charge{ID: id, Origin: books.FromOrder, Currency: gateway.BRL, Requested: 50, Paid: paid, Refunded: refunded, Disputed: disputed}
}

func TestWhenGoodsAreOwed(t *testing.T) {
	t.Parallel()
	dollars := func(c books.Charge) books.Charge {
		c.Currency = gateway.USD
		return c
	}
	for _, tc := range []struct {
		name    string
		why     books.State
		charges []books.Charge
	}{
		{"paid", books.Paid, []books.Charge{charged("c1", 50, 0, 0)}},
		{"a part was refunded", books.Paid, []books.Charge{charged("c1", 50, 49, 0)}},
		{"all was refunded", books.Refunded, []books.Charge{charged("c1", 50, 50, 0)}},
		{"disputed", books.Disputed, []books.Charge{charged("c1", 50, 0, 50)}},
		{"disputed after a part was refunded", books.Disputed, []books.Charge{charged("c1", 50, 20, 30)}},
		{"disputed, and another payment is there", books.Paid, []books.Charge{charged("c1", 50, 0, 50), charged("c2", 50, 0, 0)}},
		{"disputed, and a part of another payment is there", books.Disputed, []books.Charge{charged("c1", 50, 0, 50), charged("c2", 50, 30, 0)}},
		{"disputed, and a cent less than the price is there", books.Disputed, []books.Charge{charged("c1", 50, 0, 50), charged("c2", 50, 1, 0)}},
		{"disputed, and other payments are the price together", books.Paid, []books.Charge{charged("c1", 50, 0, 50), charged("c2", 50, 30, 0), charged("c3", 30, 0, 0)}},
		{"another payment is disputed", books.Paid, []books.Charge{charged("c1", 50, 0, 0), charged("c2", 50, 0, 50)}},
		{"another payment was refunded", books.Paid, []books.Charge{charged("c1", 50, 0, 0), charged("c2", 50, 50, 0)}},
		{"both were refunded", books.Refunded, []books.Charge{charged("c1", 50, 50, 0), charged("c2", 50, 50, 0)}},
		{"refunded, and another payment is there", books.Paid, []books.Charge{charged("c1", 50, 50, 0), charged("c2", 50, 0, 0)}},
		{"refunded, and too little is there", books.Refunded, []books.Charge{charged("c1", 50, 50, 0), charged("c2", 10, 0, 0)}},
		{"refunded, and another payment is disputed", books.Disputed, []books.Charge{charged("c1", 50, 50, 0), charged("c2", 50, 0, 50)}},
		{"too much was refunded, and the price disputed", books.Disputed, []books.Charge{charged("c1", 110, 60, 50), charged("c2", 10, 0, 0)}},
		{"too much and a part of the price were refunded", books.Paid, []books.Charge{charged("c1", 110, 109, 0)}},
		{"disputed, and the other currency does not count", books.Disputed, []books.Charge{charged("c1", 50, 0, 50), dollars(charged("c2", 50, 0, 0))}},
		{"in another currency", books.Paid, []books.Charge{dollars(charged("c1", 50, 0, 0))}},
		{"the charge that settled it is not there", books.Refunded, []books.Charge{charged("c2", 50, 0, 0)}},
	} {
		o := books.Order{SettledBy: "c1", Price: 50, Currency: gateway.BRL}
		given := slices.Clone(tc.charges)
		assert.Equal(t, tc.why == books.Paid, books.Owed(o, tc.charges), tc.name)
		assert.Equal(t, tc.why, books.Why(o, tc.charges), tc.name)
		assert.Equal(t, given, tc.charges, tc.name)
		assert.False(t, books.Owed(books.Order{}, tc.charges), "not settled: %s", tc.name)
	}
}

func TestThePriceOfAnOrder(t *testing.T) {
	t.Parallel()
	priced := func(o books.Order) books.Order {
		return books.Order{SettledBy: o.SettledBy, Price: o.Price, PriceCurrency: o.PriceCurrency, Interest: o.Interest}
	}
	s := newShop(t)
	s.charge("c1").Requested = 4000
	s.charge("c1").Asked = 4500
	assert.Zero(t, priced(s.order))
	s.read("c1", seen{status: "paid", paid: 5200})
	want := books.Order{SettledBy: "c1", Price: 4000, PriceCurrency: gateway.BRL, Interest: 500}
	assert.Equal(t, want, priced(s.order))
	assert.Equal(t, int64(700), s.order.Excess())
	s.read("c1", seen{status: "partially_refunded", paid: 5200, refunded: 900})
	assert.Zero(t, s.order.Excess())
	s.charge("c2").Requested = 100
	s.read("c2", seen{status: "paid", paid: 300})
	assert.Equal(t, want, priced(s.order), "it is that of the first charge that was paid in full")
	assert.Equal(t, int64(100), s.order.Excess())

	accepted := func(v seen) *shop {
		s := newShop(t)
		s.read("c1", v)
		assert.Zero(t, priced(s.order))
		assert.Zero(t, s.order.Excess(), "it is not settled")
		s.do("c1", func(b books.Books) (books.Books, books.Result) { return books.Accept(b, minute(9)) })
		return s
	}
	s = accepted(seen{status: "paid", paid: 2000})
	assert.Equal(t, books.Order{SettledBy: "c1", Price: 2000, PriceCurrency: gateway.BRL}, priced(s.order))
	s.read("c1", seen{status: "paid", paid: 5000})
	assert.Equal(t, int64(3000), s.order.Excess())

	s = accepted(seen{status: "paid", paid: 9000, currency: gateway.USD})
	assert.Equal(t, books.Order{SettledBy: "c1", Price: 9000, PriceCurrency: gateway.USD}, priced(s.order))
	assert.Zero(t, s.order.Excess())
	o, r := books.Goods(s.order, []books.Charge{*s.charge("c1")}, minute(10))
	assert.True(t, o.Owed, "it is in no sum, and pays for the goods")
	require.Len(t, r.Facts, 1)
	assert.Equal(t, int64(9000), r.Facts[0].About)
	s.read("c2", seen{status: "paid", paid: 5000})
	assert.Equal(t, int64(5000), s.order.Excess(), "all that is in the order's currency")
}

func TestAForeignPaymentHasNoInterest(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.charge("c1").Requested = 1000 // and its buyer is asked to pay 5000 of another currency
	s.read("c1", seen{status: "paid", paid: 5000, currency: gateway.USD})
	s.do("c1", func(b books.Books) (books.Books, books.Result) { return books.Accept(b, minute(9)) })
	assert.Equal(t, int64(5000), s.order.Price)
	assert.Zero(t, s.order.Interest)
}

// The goods of an order that was closed before they were told need a person, until they are
// not owed any more.
func TestAnOrderThatWasClosedBeforeItsGoodsWereTold(t *testing.T) {
	t.Parallel()
	o := books.Order{ID: "order/A17", SettledBy: "c1", Price: 50, Closed: true}
	o, r := books.Goods(o, []books.Charge{charged("c1", 50, 0, 0)}, start)
	assert.True(t, o.Owed)
	assert.Empty(t, r.Over)
	o, r = books.Goods(o, []books.Charge{charged("c1", 50, 0, 50)}, start)
	assert.False(t, o.Owed)
	assert.Equal(t, []books.Over{{Kind: books.IsClosed, Record: "c1"}}, r.Over)
	assert.Equal(t, books.Changed, r.Outcome)
	assert.Equal(t, "goods/order/A17/2\n", keys(r.Facts))
	assert.Zero(t, r.Facts[0].About)
}
