package books_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// attempt is a charge at a gateway, which knows what it is for.
type attempt struct {
	created, paid int // days; paid counts only for a status that was paid
	until         int // the day on which the period ends that it is made for
	status        gateway.TransactionStatus
	refunded      int64
	unlisted      bool // the list of the subscription does not show it yet
}

// was reports whether the charge was paid, whatever became of the money.
func (a *attempt) was() bool { return books.Pays(a.status) }

// kept reports whether some of the money is there.
func (a *attempt) kept() bool {
	return a.status == "paid" || a.status == "partially_refunded"
}

// plan is a subscription at a gateway: a period has 30 days.
type plan struct {
	pix        bool
	trial      int // the day on which the trial ends, 0 for none
	had        bool
	status     gateway.SubscriptionStatus
	reason     gateway.CancellationReason
	start, end int
	day, step  int
	charges    []attempt
}

// until returns the day until which a person would let the member in, -1 for never.
func (p *plan) until() int {
	day := -1
	if p.had {
		day = p.trial
	}
	for i := range p.charges {
		if c := &p.charges[i]; c.kept() {
			day = max(day, c.until)
		}
	}
	return day
}

// paidUntil returns the day on which the last period ends that was paid, -1 if none was.
func (p *plan) paidUntil() int {
	day := -1
	for i := range p.charges {
		if c := &p.charges[i]; c.was() {
			day = max(day, c.until)
		}
	}
	return day
}

// snapshot is what the gateway shows at a time.
type snapshot struct {
	sub          *gateway.Subscription
	transactions []*gateway.Transaction
}

// show returns a reading of the subscription and of its transactions.
func (p *plan) show() snapshot {
	s := snapshot{sub: &gateway.Subscription{
		ID: "s1", Status: p.status, CancellationReason: p.reason, Amount: 2990, Currency: gateway.BRL, Transactions: []gateway.SubscriptionTransaction{},
		CancelAtPeriodEnd: p.status == gateway.SubscriptionCancelScheduled, UpdatedAt: gateway.TimestampOf(minute(p.step)),
	}}
	if p.trial > 0 {
		s.sub.TrialEnd = gateway.TimestampOf(day(p.trial))
	}
	if p.end > 0 {
		s.sub.CurrentPeriodStart, s.sub.CurrentPeriodEnd = gateway.TimestampOf(day(p.start)), gateway.TimestampOf(day(p.end))
	}
	for i := range p.charges {
		c := &p.charges[i]
		tx := &gateway.Transaction{ID: fmt.Sprintf("t%d", i), Status: c.status, Amount: 2990, Currency: gateway.BRL, UpdatedAt: gateway.TimestampOf(minute(p.step))}
		item := gateway.SubscriptionTransaction{ID: tx.ID, Status: c.status, Amount: 2990, CreatedAt: gateway.TimestampOf(day(c.created))}
		if c.was() {
			tx.PaidAmount, tx.RefundedAmount, tx.PaidAt = 2990, c.refunded, gateway.TimestampOf(day(c.paid))
			item.PaidAmount, item.RefundedAmount, item.PaidAt = tx.PaidAmount, tx.RefundedAmount, tx.PaidAt
		}
		if !c.unlisted {
			s.sub.Transactions = append(s.sub.Transactions, item)
			s.transactions = append(s.transactions, tx)
		}
	}
	slices.Reverse(s.sub.Transactions) // as gateways do
	return s
}

// last returns the newest charge, or nil.
func (p *plan) last() *attempt {
	if len(p.charges) == 0 {
		return nil
	}
	return &p.charges[len(p.charges)-1]
}

// charge makes a charge for the current period.
func (p *plan) charge(status gateway.TransactionStatus) {
	p.charges = append(p.charges, attempt{created: p.day, paid: p.day, until: p.end, status: status})
}

// moves begins the next period.
func (p *plan) moves() {
	p.day = max(p.day, p.end)
	p.start, p.end = p.end, p.end+30
	p.status = gateway.SubscriptionActive
}

// newest reports whether the newest charge is in a status.
func (p *plan) newest(status gateway.TransactionStatus) bool {
	c := p.last()
	return c != nil && c.status == status && !c.unlisted
}

// happening is something that can happen to a plan, or to one of its charges.
type happening struct {
	name string
	can  func(p *plan) bool
	do   func(p *plan)
}

func happenings() []happening {
	renews := func(p *plan) bool {
		waits := p.last() != nil && (p.last().unlisted || p.last().status == "pending")
		return (p.status == gateway.SubscriptionActive || p.status == gateway.SubscriptionTrialing) && !waits
	}
	dunned := func(p *plan) bool { return p.status == gateway.SubscriptionPastDue }
	ends := func(p *plan, reason gateway.CancellationReason) {
		p.status, p.reason = gateway.SubscriptionCanceled, reason
	}
	return []happening{
		{"renewed", renews, func(p *plan) {
			p.moves()
			p.charge("paid")
		}},
		{"not renewed", renews, func(p *plan) {
			p.moves()
			p.charge("refused")
			p.status = gateway.SubscriptionPastDue
		}},
		{"the renewal is pending", renews, func(p *plan) {
			p.moves()
			p.charge("pending")
		}},
		{"the renewal is not listed", renews, func(p *plan) {
			p.moves()
			p.charge("paid")
			p.last().unlisted = true
		}},
		{"the renewal is listed", func(p *plan) bool { return p.last() != nil && p.last().unlisted }, func(p *plan) { p.last().unlisted = false }},
		{"a debit is announced", func(p *plan) bool { return p.pix && renews(p) && p.status == gateway.SubscriptionActive }, func(p *plan) {
			p.day = p.end - 3
			p.charges = append(p.charges, attempt{created: p.day, until: p.end + 30, status: "pending"})
		}},
		{"the debit is made", func(p *plan) bool { return p.newest("pending") && p.last().until > p.end }, func(p *plan) {
			p.moves()
			p.last().status, p.last().paid = "paid", p.day
		}},
		{"the next period begins without a charge", func(p *plan) bool {
			return p.status == gateway.SubscriptionActive && p.newest("pending") && p.last().until == p.end
		}, (*plan).moves},
		{"what was pending is paid", func(p *plan) bool { return p.newest("pending") && p.last().until <= p.end && p.end > 0 }, func(p *plan) {
			p.day++
			p.last().status, p.last().paid = "paid", p.day
		}},
		{"what was pending is refused", func(p *plan) bool { return p.newest("pending") && p.last().until == p.end && p.end > 0 }, func(p *plan) {
			p.last().status, p.status = "refused", gateway.SubscriptionPastDue
		}},
		{"confirmed", func(p *plan) bool { return p.status == gateway.SubscriptionIncomplete }, func(p *plan) {
			p.day += 20 // the first period begins now
			p.start, p.end, p.status = p.day, p.day+30, gateway.SubscriptionActive
			*p.last() = attempt{created: 0, paid: p.day, until: p.end, status: "paid"}
		}},
		{"retried", dunned, func(p *plan) {
			p.day += 20
			p.charge("paid")
			p.status = gateway.SubscriptionActive
		}},
		{"retried in vain", dunned, func(p *plan) {
			p.day += 3
			p.charge("refused")
		}},
		{"given up", dunned, func(p *plan) {
			p.charge("refused")
			ends(p, gateway.CancellationPaymentFailure)
		}},
		{"canceled", func(p *plan) bool { return !p.status.Final() && p.status != gateway.SubscriptionCancelScheduled }, func(p *plan) {
			if p.pix || !p.status.Running() {
				ends(p, gateway.CancellationUserRequested)
				return
			}
			p.status, p.reason = gateway.SubscriptionCancelScheduled, gateway.CancellationUserRequested
		}},
		{"the last period ends", func(p *plan) bool { return p.status == gateway.SubscriptionCancelScheduled }, func(p *plan) {
			p.day = p.end
			ends(p, p.reason)
		}},
	}
}

// ofCharges are what can happen to a charge that was paid.
func ofCharges() []happening {
	var list []happening
	for back := range 2 { // counted from the newest one
		of := func(p *plan) *attempt { return &p.charges[len(p.charges)-1-back] }
		in := func(status ...gateway.TransactionStatus) func(p *plan) bool {
			return func(p *plan) bool {
				return len(p.charges) > back && !of(p).unlisted && slices.Contains(status, of(p).status)
			}
		}
		list = append(list,
			happening{"refunded", in("paid", "partially_refunded"), func(p *plan) { of(p).status, of(p).refunded = "refunded", 2990 }},
			happening{"refunded in part", in("paid"), func(p *plan) { of(p).status, of(p).refunded = "partially_refunded", 1000 }},
			happening{"disputed", in("paid", "partially_refunded"), func(p *plan) { of(p).status = "med" }},
			happening{"won", in("med"), func(p *plan) {
				of(p).status = "paid"
				if of(p).refunded > 0 {
					of(p).status = "partially_refunded"
				}
			}},
			happening{"charged back", in("med", "paid", "partially_refunded"), func(p *plan) {
				of(p).status = "chargedback"
				if !p.pix && !p.status.Final() {
					p.status, p.reason = gateway.SubscriptionCanceled, gateway.CancellationChargeback
				}
			}})
	}
	return list
}

// plans are subscriptions that have just been made.
func plans() map[string]plan {
	first := func(status gateway.TransactionStatus) []attempt { return []attempt{{until: 30, status: status}} }
	return map[string]plan{
		"card":          {status: "active", end: 30, charges: first("paid")},
		"card, trial":   {status: "trialing", trial: 14, had: true, end: 14},
		"card, pending": {status: "incomplete", charges: first("pending")},
		"pix":           {pix: true, status: "active", end: 30, charges: first("paid")},
		"pix, trial":    {pix: true, status: "trialing", trial: 14, had: true, end: 14},
	}
}

// reader is what readings make of a subscription.
type reader struct {
	order        books.Order
	subscription books.Subscription
	charges      []books.Charge
}

func newReader() *reader {
	return &reader{
		order:        books.Order{ID: "subscription/m1"},
		subscription: books.Subscription{ID: "m1", Operation: books.Sent, State: books.Unknown},
	}
}

// read applies what a snapshot shows, as a caller does.
func (r *reader) read(s snapshot, at int) error {
	var result books.Result
	r.subscription, r.charges, result = books.ApplySubscription(r.order, r.subscription, r.charges, reading(s.sub, at))
	for i := range r.charges {
		for _, tx := range s.transactions {
			if tx.ID == r.charges[i].TransactionID {
				b, _ := books.ApplyTransaction(books.Books{Order: r.order, Charge: r.charges[i]}, reading(tx, at))
				r.order, r.charges[i] = b.Order, b.Charge
			}
		}
	}
	if silent(result) {
		return fmt.Errorf("nothing is said to have changed: %+v", result)
	}
	return r.access(minute(at))
}

// access does what a caller does at the end of a change. The error says which promise is broken.
func (r *reader) access(at time.Time) error {
	was := r.subscription
	var result, again books.Result
	r.subscription, result = books.MemberAccess(r.order, r.subscription, r.charges, at)
	is, n := r.subscription.Access, was.AccessFacts+1
	_, again = books.MemberAccess(r.order, r.subscription, r.charges, at)
	fact := books.Fact{
		Key: fmt.Sprintf("access/m1/%d", n), Kind: books.AccessChanged, Order: "subscription/m1", Record: "m1",
		At: at, Source: books.FromOutcome, Callback: books.OnAccess,
	}
	changed := !is.Until.Equal(was.Access.Until) || is.Status != was.Access.Status || is.Ends != was.Access.Ends
	told := changed && (!is.Until.IsZero() || was.AccessFacts > 0)
	switch {
	case len(again.Facts) > 0 || again.Outcome != books.Unchanged:
		return fmt.Errorf("not idempotent: %+v", again)
	case changed != (result.Outcome == books.Changed):
		return fmt.Errorf("changed is %t: %+v", changed, result)
	case told && (!slices.Equal(result.Facts, []books.Fact{fact}) || r.subscription.AccessFacts != n):
		return fmt.Errorf("got %+v, want %+v", result.Facts, fact)
	case !told && (len(result.Facts) > 0 || r.subscription.AccessFacts != was.AccessFacts):
		return fmt.Errorf("there is nothing to tell: %+v", result)
	case is.Status != r.subscription.Status:
		return fmt.Errorf("the status is %q, want %q", is.Status, r.subscription.Status)
	}
	return nil
}

// date is a day of a plan as a time.
func date(n int) time.Time {
	if n < 0 {
		return time.Time{}
	}
	return day(n)
}

// agrees compares the access with what a person would say.
func (r *reader) agrees(p *plan) error {
	ends := p.status.Final() || p.status == gateway.SubscriptionCancelScheduled
	if is := r.subscription.Access; !is.Until.Equal(date(p.until())) || is.Ends != ends {
		return fmt.Errorf("access is %+v, want %s, %t", is, date(p.until()), ends)
	}
	return nil
}

// living is a plan, its history and what was read of it.
type living struct {
	plan
	reader
	history []snapshot
}

// walk does all that can happen next, up to n times, and reads the subscription after each.
func (l *living) walk(all []happening, n int, leaf func(l *living) error) (histories int, broken error) {
	if n == 0 {
		return 1, leaf(l)
	}
	for _, h := range all {
		if !h.can(&l.plan) {
			continue
		}
		next := *l
		next.plan.charges = slices.Clone(l.plan.charges)
		h.do(&next.plan)
		err := next.reads()
		if err == nil {
			var below int
			below, err = next.walk(all, n-1, leaf)
			histories += below
		}
		if err != nil {
			return histories, fmt.Errorf("%s; %w", h.name, err)
		}
	}
	if histories == 0 {
		return 1, leaf(l)
	}
	return histories, nil
}

// reads reads the subscription, and compares.
func (l *living) reads() error {
	l.step++
	s := l.show()
	l.history = append(slices.Clip(l.history), s)
	l.reader.charges = slices.Clone(l.reader.charges)
	was := l.subscription.PaidUntil
	if err := l.read(s, l.step); err != nil {
		return err
	}
	if l.last() != nil && l.last().unlisted {
		hidden := l.plan // what is not shown is not known
		hidden.charges = hidden.charges[:len(hidden.charges)-1]
		return cmp.Or(l.agrees(&hidden), l.paidFor(&hidden, was))
	}
	return cmp.Or(l.agrees(&l.plan), l.paidFor(&l.plan, was))
}

// paidFor compares until when the subscription is paid.
func (l *living) paidFor(p *plan, was time.Time) error {
	switch is := l.subscription.PaidUntil; {
	case is.Before(was):
		return errors.New("PaidUntil goes back")
	case p.reason == gateway.CancellationChargeback: // which payment is lost may not be shown yet
		return nil
	case !is.Equal(date(p.paidUntil())):
		return fmt.Errorf("paid until %s, want %s", is, date(p.paidUntil()))
	}
	return nil
}

// shuffled applies the readings of a history in every order.
func (l *living) shuffled() error {
	for p := range permutations(len(l.history)) {
		r := newReader()
		for at, i := range p {
			if err := r.read(l.history[i], at+1); err != nil {
				return fmt.Errorf("in the order %v: %w", p, err)
			}
		}
		if is := r.subscription.Access; !is.Until.Equal(l.subscription.Access.Until) || is.Status != l.subscription.Access.Status || is.Ends != l.subscription.Access.Ends {
			return fmt.Errorf("in the order %v: access is %+v, in their own %+v", p, is, l.subscription.Access)
		}
	}
	return nil
}

// walkPlans walks every history of every plan.
func walkPlans(n int, leaf func(l *living) error) (histories int, broken error) {
	all := append(happenings(), ofCharges()...)
	for name, p := range plans() {
		l := &living{plan: p, reader: *newReader()}
		err := l.reads()
		if err == nil {
			var below int
			below, err = l.walk(all, n, leaf)
			histories += below
		}
		if err != nil {
			return histories, fmt.Errorf("%s; %w", name, err)
		}
	}
	return histories, nil
}

// After all that can happen to a subscription, its member has access until the end of the last
// period whose payment is kept, and each change is a fact.
func TestAccessInEveryHistoryOfASubscription(t *testing.T) {
	t.Parallel()
	n := 4
	if fullSize() {
		n = 6
	}
	histories, err := walkPlans(n, func(*living) error { return nil })
	require.NoError(t, err)
	t.Logf("%d histories of %d events", histories, n)
	assert.Greater(t, histories, 1000)
}

// The same readings in any order end in the same access.
func TestAccessInEveryOrderOfTheReadings(t *testing.T) {
	t.Parallel()
	n := 3
	if fullSize() {
		n = 4
	}
	histories, err := walkPlans(n, (*living).shuffled)
	require.NoError(t, err)
	t.Logf("every order of the readings of %d histories", histories)
}

// An earlier charge that is first seen together with later ones has paid until the period of
// the next one began.
func TestUntilWhenEachChargeHasPaid(t *testing.T) {
	t.Parallel()
	undated := func(status gateway.TransactionStatus, paid int) gateway.SubscriptionTransaction {
		tx := item("undated", status, 0)
		tx.CreatedAt, tx.PaidAt = gateway.Timestamp{}, gateway.TimestampOf(day(paid))
		return tx
	}
	confirmed := func(created, paid int) gateway.SubscriptionTransaction {
		tx := item("confirmed", "paid", created)
		tx.PaidAt = gateway.TimestampOf(day(paid))
		return tx
	}
	changed := func(sub *gateway.Subscription, change func(*gateway.Subscription)) *gateway.Subscription {
		change(sub)
		return sub
	}
	trial := func(until int) func(*gateway.Subscription) {
		return func(sub *gateway.Subscription) { sub.TrialEnd = gateway.TimestampOf(day(until)) }
	}
	for name, tc := range map[string]struct {
		sub  *gateway.Subscription
		want []int // the days on which the charges' periods end, the oldest charge first; -1 if it is not known
	}{
		"all renewed":    {period("active", 60, 60, item("a", "paid", 0), item("b", "paid", 30), item("c", "paid", 60)), []int{30, 60, 90}},
		"refunded":       {period("active", 30, 30, item("a", "refunded", 0), item("b", "chargedback", 30)), []int{30, 60}},
		"retried":        {period("active", 30, 37, item("a", "paid", 0), item("b", "refused", 30), item("c", "paid", 50)), []int{30, -1, 60}},
		"past due":       {period("past_due", 30, 37, item("a", "paid", 0), item("b", "refused", 30)), []int{30, -1}},
		"paid, past due": {period("past_due", 30, 37, item("a", "paid", 0), item("b", "paid", 31)), []int{30, -1}},
		"at its end":     {period("active", 30, 37, item("a", "paid", 0), item("b", "paid", 30), item("c", "paid", 60)), []int{30, 60, -1}},
		"in the middle":  {period("active", 30, 37, item("a", "paid", 0), item("b", "paid", 15)), []int{15, 30}},
		"after it":       {period("active", 30, 37, item("a", "paid", 0), item("b", "paid", 16)), []int{30, 60}},
		"both after it":  {period("active", 30, 37, item("a", "paid", 16), item("b", "paid", 31)), []int{30, 60}},
		"a card check":   {changed(period("active", 40, 40, item("check", "refunded", 0), item("a", "paid", 40)), trial(40)), []int{-1, 70}},
		"the longest": {changed(period("active", 70, 70, item("a", "paid", 0), item("b", "paid", 70)), func(sub *gateway.Subscription) {
			sub.CurrentPeriodEnd = gateway.TimestampOf(day(110))
		}), []int{70, 110}},
		"a first billing": {period("active", 52, 52, item("a", "paid", 0), item("b", "paid", 52)), []int{52, 82}},
		"one is missing":  {period("active", 53, 53, item("a", "paid", 0), item("b", "paid", 53)), []int{30, 83}},
		"undated":         {period("active", 30, 37, undated("paid", 31)), []int{60}},
		"undated, before": {period("active", 30, 37, undated("paid", 1)), []int{30}},
		"nothing is dated": {changed(period("active", 30, 37, undated("paid", 1)), func(sub *gateway.Subscription) {
			sub.Transactions[0].PaidAt = gateway.Timestamp{}
		}), []int{30}},
		"confirmed later":        {period("active", 30, 37, confirmed(0, 30)), []int{60}},
		"paid later":             {period("active", 30, 37, item("a", "paid", -30), confirmed(0, 31)), []int{0, 30}},
		"paid later, of a trial": {changed(period("active", 30, 37, confirmed(0, 31)), trial(0)), []int{30}},
		"no start": {changed(period("active", 30, 37, item("a", "paid", 0), item("b", "paid", 30)), func(sub *gateway.Subscription) {
			sub.CurrentPeriodStart = gateway.Timestamp{}
		}), []int{30, -1}},
		"no start, pending": {changed(period("active", 30, 37, item("a", "paid", 0), item("b", "pending", 30)), func(sub *gateway.Subscription) {
			sub.CurrentPeriodStart = gateway.Timestamp{}
		}), []int{30, -1}},
		"no end": {changed(period("active", 30, 37, item("a", "paid", 0), item("b", "paid", 30)), func(sub *gateway.Subscription) {
			sub.CurrentPeriodEnd = gateway.Timestamp{}
		}), []int{30, -1}},
		"no times": {changed(period("active", 30, 37, item("a", "paid", 0)), func(sub *gateway.Subscription) {
			sub.CurrentPeriodStart, sub.CurrentPeriodEnd = gateway.Timestamp{}, gateway.Timestamp{}
		}), []int{-1}},
	} {
		m := newMember()
		m.apply(tc.sub, day(90))
		var got []time.Time
		want := make([]time.Time, 0, len(tc.want))
		for i, c := range m.charges {
			got = append(got, c.PeriodEnd)
			want = append(want, date(tc.want[i]))
		}
		assert.Equal(t, want, got, name)
	}
}

func TestWhatGivesAccess(t *testing.T) {
	t.Parallel()
	paid := func(until int, c books.Charge) books.Charge {
		c.PeriodEnd = day(until)
		return c
	}
	for name, tc := range map[string]struct {
		subscription books.Subscription
		charges      []books.Charge
		want         int
	}{
		"nothing":                     {books.Subscription{}, nil, -1},
		"a trial":                     {books.Subscription{TrialEnd: day(14)}, nil, 14},
		"a trial, and a period":       {books.Subscription{TrialEnd: day(14)}, []books.Charge{paid(44, charged("a", 50, 0, 0))}, 44},
		"a trial that was longer":     {books.Subscription{TrialEnd: day(14)}, []books.Charge{paid(13, charged("a", 50, 0, 0))}, 14},
		"the last is not paid":        {books.Subscription{}, []books.Charge{paid(30, charged("a", 50, 0, 0)), charged("b", 0, 0, 0)}, 30},
		"the last was refunded":       {books.Subscription{}, []books.Charge{paid(30, charged("a", 50, 0, 0)), paid(60, charged("b", 50, 50, 0))}, 30},
		"but for a cent":              {books.Subscription{}, []books.Charge{paid(30, charged("a", 50, 0, 0)), paid(60, charged("b", 50, 49, 0))}, 60},
		"the last is disputed":        {books.Subscription{}, []books.Charge{paid(60, charged("b", 50, 20, 30)), paid(30, charged("a", 50, 0, 0))}, 30},
		"an earlier one was refunded": {books.Subscription{}, []books.Charge{paid(30, charged("a", 50, 50, 0)), paid(60, charged("b", 50, 0, 0))}, 60},
		"all were refunded":           {books.Subscription{}, []books.Charge{paid(30, charged("a", 50, 50, 0)), paid(60, charged("b", 50, 50, 0))}, -1},
	} {
		s, _ := books.MemberAccess(books.Order{}, tc.subscription, tc.charges, start)
		assert.Equal(t, date(tc.want), s.Access.Until, name)
	}
}

func TestWhatEndsAndWhatATrialIs(t *testing.T) {
	t.Parallel()
	for status, tc := range map[gateway.SubscriptionStatus]struct{ ends, trial bool }{
		"incomplete":       {},
		"trialing":         {trial: true},
		"active":           {trial: true},
		"past_due":         {trial: true},
		"cancel_scheduled": {ends: true, trial: true},
		"canceled":         {ends: true},
		"paused":           {},
	} {
		for _, planned := range []bool{false, true} {
			sub := period(status, 0, 0)
			sub.TrialEnd, sub.CancelAtPeriodEnd = gateway.TimestampOf(day(30)), planned
			m := newMember()
			m.apply(sub, day(1))
			assert.Equal(t, tc.ends || planned && status != "paused", m.subscription.Ends, status)
			assert.Equal(t, tc.trial, m.subscription.TrialEnd.Equal(day(30)), status)
			assert.Equal(t, tc.trial, !m.subscription.TrialEnd.IsZero(), status)
		}
	}
}

// Times that were stored and loaded, in another zone, are the same.
func TestAccessThatIsEqual(t *testing.T) {
	t.Parallel()
	s := books.Subscription{TrialEnd: day(14), Status: "active"}
	s, r := books.MemberAccess(books.Order{}, s, nil, start)
	require.Len(t, r.Facts, 1)
	s.Access.Until = s.Access.Until.In(time.FixedZone("", 3600))
	_, r = books.MemberAccess(books.Order{}, s, nil, start)
	assert.Equal(t, books.Result{}, r)
}
