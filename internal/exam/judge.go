package exam

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gateway-go/gateway"
)

// Report is what the program says about an order.
type Report struct {
	Found       bool     `json:"-"` // false after a 404
	Status      string   `json:"status"`
	Paid        int64    `json:"paid"`
	Refunded    int64    `json:"refunded"`
	ChargedBack int64    `json:"charged_back"`
	Shipped     int64    `json:"shipped"`
	Charges     []string `json:"charges"`
}

// The statuses of an order in a report.
const (
	StatusPending           = "pending"
	StatusPaid              = "paid"
	StatusPartiallyRefunded = "partially_refunded"
	StatusRefunded          = "refunded"
	StatusChargedBack       = "charged_back"
	StatusFailed            = "failed"
	StatusUnknown           = "unknown"
	StatusReview            = "review"
)

var statuses = []string{
	StatusPending, StatusPaid, StatusPartiallyRefunded, StatusRefunded, StatusChargedBack, StatusFailed, StatusUnknown, StatusReview,
}

// check returns what is wrong with the form of a report.
func (r *Report) check() error {
	switch {
	case !slices.Contains(statuses, r.Status):
		return fmt.Errorf("status must be %s, not %q", strings.Join(statuses, ", "), r.Status)
	case min(r.Paid, r.Refunded, r.ChargedBack, r.Shipped) < 0:
		return fmt.Errorf("paid, refunded, charged_back and shipped must not be negative")
	}
	return nil
}

// String returns the report in the words of a failure.
func (r *Report) String() string {
	if !r.Found {
		return "404"
	}
	return books(r.Status, r.Paid, r.Refunded, r.ChargedBack) + fmt.Sprintf(", shipped %d", r.Shipped)
}

func books(status string, paid, refunded, chargedBack int64) string {
	s := status + ", paid " + reais(paid)
	if refunded > 0 {
		s += ", refunded " + reais(refunded)
	}
	if chargedBack > 0 {
		s += ", charged back " + reais(chargedBack)
	}
	return s
}

// reais writes cents: 1990 is 19.90.
func reais(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// Charge is a transaction as the gateway has it.
type Charge struct {
	ID       string
	Amount   int64 // that the buyer is charged
	Currency string
	Method   string
	Status   gateway.TransactionStatus
	Paid     int64
	Refunded int64
	Foreign  bool // another system created it

	Ref   string // external_ref
	marks string // what names its order: reference and metadata
}

// payable reports whether the charge is paid, was paid or can still be paid.
func (c *Charge) payable() bool {
	return c.Status != gateway.TransactionRefused && c.Status != gateway.TransactionExpired && c.Status != gateway.TransactionCanceled
}

func (c *Charge) open() bool {
	return c.payable() && c.Paid == 0 && c.Status != gateway.TransactionChargedback
}

func (c *Charge) chargedBack() int64 {
	if c.Status == gateway.TransactionChargedback {
		return c.Paid - c.Refunded
	}
	return 0
}

// withheld returns what a dispute that is not decided for good may have taken already. The
// gateway does not say.
func (c *Charge) withheld() int64 {
	switch c.Status {
	case gateway.TransactionMED, gateway.TransactionInProtest, gateway.TransactionPreChargedback:
		return c.Paid - c.Refunded
	default:
		return 0
	}
}

// Order is an order of a scenario: what the exam asked for, and what the program
// responded.
type Order struct {
	ID     string
	Amount int64
	Method string
	Token  string // of a card

	answers []int // of place; 0 is no response
	refunds []*refund

	elsewhere   int64 // refunded at the gateway, not by the program
	ambiguous   bool  // a report of review is right
	fullAck     bool  // a refund of the rest was acknowledged
	shippedThen int64 // by then
}

type refund struct {
	id      string
	amount  int64
	answers []int
}

func (r *refund) answered(want func(int) bool) bool { return slices.ContainsFunc(r.answers, want) }

func done(status int) bool     { return status == http.StatusOK || status == http.StatusCreated }
func accepted(status int) bool { return status/100 == 2 && !done(status) }
func refused(status int) bool  { return status/100 == 4 }

// onlyRefused reports whether every response was a definite no. The second of two
// requests at once may get a 409 for the first.
func onlyRefused(answers []int) bool {
	return len(answers) > 0 && !slices.ContainsFunc(answers, func(s int) bool { return !refused(s) })
}

// truth is the gateway's side of an order.
type truth struct {
	charges                     []*Charge
	paid, refunded, chargedBack int64
	withheld                    int64
}

func truthOf(charges ...*Charge) *truth {
	t := &truth{}
	for _, c := range charges {
		t.add(c)
	}
	return t
}

func (t *truth) add(c *Charge) {
	t.charges = append(t.charges, c)
	t.paid += c.Paid
	t.refunded += c.Refunded
	t.chargedBack += c.chargedBack()
	t.withheld += c.withheld()
}

func (t *truth) status() string {
	switch {
	case t.paid == 0 && slices.ContainsFunc(t.charges, (*Charge).open):
		return StatusPending
	case t.paid == 0:
		return StatusFailed
	case t.chargedBack > 0:
		return StatusChargedBack
	case t.refunded == t.paid:
		return StatusRefunded
	case t.refunded > 0:
		return StatusPartiallyRefunded
	}
	return StatusPaid
}

func (t *truth) String() string {
	if len(t.charges) == 0 {
		return "no charge"
	}
	s := books(t.status(), t.paid, t.refunded, t.chargedBack)
	if n := len(t.charges); n > 1 {
		s += fmt.Sprintf(", %d charges", n)
	}
	return s
}

// verdict collects findings about one order.
type verdict struct {
	failures []Finding
	warnings []string

	unused     []string // faults that never happened
	eventsLost bool     // the exam kept an event from the program for good
}

func (v *verdict) fail(c Claim, format string, args ...any) {
	v.failures = append(v.failures, Finding{c, fmt.Sprintf(format, args...)})
}

func (v *verdict) warn(format string, args ...any) {
	v.warnings = append(v.warnings, fmt.Sprintf(format, args...))
}

// Judge judges an order of a merchant that does not sit the exam, when everything has
// arrived: what the merchant told its buyer, as statuses of the hooks, the order's charges
// at the gateway, and what the merchant reports.
func Judge(o *Order, charges []*Charge, r *Report) []Finding {
	var v verdict
	t := truthOf(charges...)
	judgeAtOnce(o, t, r, &v)
	judgeAtTheEnd(o, t, r, true, &v)
	return v.failures
}

// Placed says how the program responded to the order.
func (o *Order) Placed(status int) { o.answers = append(o.answers, status) }

// AskedToRefund says how the program responded to a refund.
func (o *Order) AskedToRefund(cents int64, status int) {
	o.refunds = append(o.refunds, &refund{amount: cents, answers: []int{status}})
}

// judgeAtOnce checks the claims that no later event heals.
func judgeAtOnce(o *Order, t *truth, r *Report, v *verdict) {
	payable := 0
	for _, c := range t.charges {
		if c.payable() {
			payable++
		}
		if c.Amount != o.Amount || c.Method != o.Method || c.Currency != string(gateway.BRL) {
			v.fail(RightCharge, "the charge is %s %s by %s, the order %s BRL by %s", c.Currency, reais(c.Amount), c.Method, reais(o.Amount), o.Method)
		}
	}
	if payable > 1 {
		v.fail(ChargedOnce, "the order has %d charges that are paid or can still be paid", payable)
	}
	var asked, refusedOnly int64
	for _, f := range o.refunds {
		asked += f.amount
		if onlyRefused(f.answers) {
			refusedOnly += f.amount
		}
	}
	switch made := t.refunded - o.elsewhere; {
	case made > asked:
		v.fail(RefundedOnce, "the gateway refunded %s, asked for were %s", reais(made), reais(asked))
	case made > asked-refusedOnly:
		v.fail(TrueAnswers, "a refund was rejected with 4xx only, and was made: the gateway refunded %s", reais(made))
	}
	if onlyRefused(o.answers) && payable > 0 {
		v.fail(TrueAnswers, "the buyer was told that the order was not placed (%s), and its charge is %s", codes(o.answers), t.charges[0].Status)
	}
	if !r.Found {
		return
	}
	if r.Paid > t.paid {
		v.fail(NothingMadeUp, "the shop reports %s paid, the gateway has %s", reais(r.Paid), reais(t.paid))
	}
	switch {
	case r.Shipped > 1:
		v.fail(ShippedOnce, "shipped %d times", r.Shipped)
	case r.Shipped > 0 && t.paid == 0:
		v.fail(ShippedOnce, "shipped, and nothing is paid")
	case o.fullAck && r.Shipped > o.shippedThen:
		v.fail(ShippedOnce, "shipped after the refund of everything was acknowledged")
	}
}

func codes(answers []int) string {
	var s []string
	for _, a := range answers {
		if a == 0 {
			s = append(s, "no response")
			continue
		}
		s = append(s, fmt.Sprint(a))
	}
	return strings.Join(s, ", ")
}

// judgeAtTheEnd checks the claims that a program has until the end to fulfil. ticks
// says whether it has periodic jobs.
func judgeAtTheEnd(o *Order, t *truth, r *Report, ticks bool, v *verdict) {
	status := t.status()
	if t.paid == 0 {
		judgeUnpaid(o, t, r, status, v)
		return
	}
	switch {
	case !r.Found:
		v.fail(NothingLost, "the shop does not know the order, the gateway has %s paid", reais(t.paid))
		return
	case r.Status == StatusUnknown, r.Status == StatusFailed, r.Paid < t.paid && r.Status != StatusReview:
		v.fail(NothingLost, "the shop reports %s, %s paid; the gateway has %s", r.Status, reais(r.Paid), reais(t.paid))
	}
	inReview := r.Status == StatusReview && o.ambiguous
	if r.Shipped == 0 && t.refunded == 0 && t.chargedBack == 0 && !inReview {
		v.fail(ShippedOnce, "paid and not shipped")
	}
	judgeRefunds(o, t, ticks, v)
	if inReview {
		return
	}
	if r.Refunded != t.refunded {
		v.fail(BooksAgree, "the shop reports %s refunded, the gateway has %s", reais(r.Refunded), reais(t.refunded))
	}
	if t.withheld > 0 && r.Status == StatusChargedBack && r.ChargedBack == t.chargedBack+t.withheld {
		return // it counts a dispute as lost until it is won
	}
	if r.ChargedBack != t.chargedBack {
		v.fail(BooksAgree, "the shop reports %s charged back, the gateway has %s", reais(r.ChargedBack), reais(t.chargedBack))
	}
	if r.Status != status && r.Status != StatusUnknown && r.Status != StatusFailed {
		v.fail(BooksAgree, "the shop reports %s, the gateway has %s", r.Status, status)
	}
}

func judgeUnpaid(o *Order, t *truth, r *Report, status string, v *verdict) {
	switch {
	case len(t.charges) == 0:
		if slices.ContainsFunc(o.answers, done) {
			v.fail(TrueAnswers, "the buyer was told that the order was placed (%s), and nothing was charged", codes(o.answers))
		}
		if r.Found && (r.Status == StatusUnknown || r.Status == StatusPending) {
			v.warn("a lost sale: the order was left %s, and nothing was charged", r.Status)
		}
	case !r.Found:
		v.fail(BooksAgree, "the shop does not know the order, the gateway's charge is %s", t.charges[0].Status)
	case r.Status == StatusReview && o.ambiguous:
	case r.Status != status && r.Status != StatusUnknown && (r.Status != StatusPending || status != StatusFailed):
		v.fail(BooksAgree, "the shop reports %s, the gateway has %s", r.Status, status)
	case r.Status == StatusUnknown, r.Status != status:
		v.warn("the shop left the order %s, the gateway has %s", r.Status, status)
	}
}

func judgeRefunds(o *Order, t *truth, ticks bool, v *verdict) {
	var promised, pending int64
	for _, f := range o.refunds {
		switch {
		case f.answered(done):
			promised += f.amount
		case f.answered(accepted) && ticks:
			pending += f.amount
		}
	}
	made, rest := t.refunded-o.elsewhere, t.paid-t.refunded-t.chargedBack
	switch missing := promised - made; {
	case missing > 0:
		v.fail(RefundedOnce, "%s were reported as refunded, the gateway refunded %s", reais(promised), reais(made))
	case -missing < pending && pending+missing <= rest:
		v.fail(RefundedOnce, "a refund was accepted and never made: the gateway refunded %s of %s", reais(made), reais(promised+pending))
	}
}

// charges reads the account's transactions that are newer than those in known.
func (p *Play) readCharges(ctx context.Context) ([]*Charge, error) {
	var list []*Charge
	for summary, err := range p.exam.client.Transactions.All(ctx, gateway.TransactionListParams{Limit: 100}) {
		if err != nil {
			return nil, err
		}
		if p.exam.before[summary.ID] {
			continue
		}
		tx, err := p.exam.client.Transactions.Get(ctx, summary.ID)
		if err != nil {
			return nil, err
		}
		c := &Charge{
			ID: tx.ID, Amount: cmp.Or(tx.BasePrice, tx.Amount), Currency: string(tx.Currency), Method: string(tx.Method), Status: tx.Status,
			Refunded: tx.RefundedAmount, Foreign: p.foreign[tx.ID],
		}
		if !tx.PaidAt.IsZero() {
			c.Paid = tx.Charged()
		}
		c.Ref = tx.ExternalRef
		c.marks = tx.ExternalRef + " " + tx.Metadata.Text()
		list = append(list, c)
	}
	return list, nil
}
