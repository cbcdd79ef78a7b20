package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/legacy"
	kit "github.com/gateway-go/gateway/merchant"
)

// yearAudit collects what is wrong.
type yearAudit struct {
	y     *Year
	rows  []Row
	names []string // of the first resource that differs
	held  int64    // cents of disputes that are not decided
	owed  map[string]yearGoods
}

func (a *yearAudit) differ(what, books, there string, names ...string) {
	if len(a.rows) == 0 {
		a.names = append(names, strings.Fields(what)...)
	}
	a.rows = append(a.rows, Row{what, books, there})
}

func (a *yearAudit) err(month int) error {
	if len(a.rows) == 0 {
		return nil
	}
	const maxRows, maxEvents = 12, 40
	return &DifferenceError{a.y.cfg.Seed, month, "shop", a.rows[:min(len(a.rows), maxRows)], a.y.history(maxEvents, a.names...)}
}

// each calls row with the columns of each row of a query, as text.
func (y *Year) each(ctx context.Context, query string, args []any, row func(columns []string)) error {
	rows, err := y.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports failures
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values, targets := make([]string, len(names)), make([]any, len(names))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		row(slices.Clone(values))
	}
	return rows.Err()
}

// checkSums compares, after an event, the sums of the orders that have new facts with
// all their facts.
func (y *Year) checkSums(ctx context.Context) error {
	a := &yearAudit{y: y}
	err := y.each(ctx, `SELECT o.subject, paid - fee - refunded - disputed - paid_out + adjusted AS net,
			(SELECT COALESCE(SUM(amount), 0) FROM gateway_facts AS e WHERE e.subject = o.subject) AS facts, (SELECT MAX(seq) FROM gateway_facts)
		FROM gateway_orders AS o WHERE subject IN (SELECT subject FROM gateway_facts WHERE seq > ?)`, []any{y.checked}, func(c []string) {
		if c[1] != c[2] {
			a.differ("the sum of "+c[0], c[1], c[2]+" in its facts")
		}
		_, _ = fmt.Sscan(c[3], &y.checked)
	})
	if err != nil {
		return err
	}
	return a.err(len(y.months) + 1)
}

// audit compares the books with the gateway's, after month number of the year.
func (y *Year) audit(ctx context.Context, number int, month string) error {
	a := &yearAudit{y: y}
	for _, check := range []func(context.Context) error{
		func(ctx context.Context) error { return a.statements(ctx, month) },
		a.transactions, a.balance, a.facts, a.goods, a.access, a.orders, a.subscriptions, a.payouts, a.open,
	} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	y.checked = 0
	if err := y.checkSums(ctx); err != nil {
		return err
	}
	return a.err(number)
}

// statements compares the month with the gateway's list, and with the months before.
func (a *yearAudit) statements(ctx context.Context, month string) error {
	y, m := a.y, a.y.shop.m
	s, differences, err := m.CheckMonth(ctx, "shop", month)
	if err != nil {
		return err
	}
	for _, d := range differences {
		if d.Kind == kit.DiffAssumed && y.cfg.Fate == OmitsPaidAmount {
			continue // it says what is booked without a paid_amount, which [yearAudit.transactions] compares
		}
		a.differ("CheckMonth: "+string(d.Kind)+" "+d.Record, fmt.Sprint(d.Here), fmt.Sprint(d.There, d.Text), d.Resource, d.Order)
	}
	if sum := s.Opening + s.Paid - s.Fee - s.Refunded - s.Disputed - s.PaidOut + s.Adjusted; sum != s.Closing || len(s.Others) > 0 {
		a.differ("closing of "+month, fmt.Sprint(s.Closing), fmt.Sprintf("%d is the sum of %+v", sum, s))
	}
	opening := int64(0)
	for _, before := range y.months {
		again, err := m.Month(ctx, "shop", before.name)
		if err != nil {
			return err
		}
		if again.Opening != opening || again.Closing != before.closing {
			a.differ("a month that was closed: "+before.name, fmt.Sprintf("%d to %d", again.Opening, again.Closing), fmt.Sprintf("%d to %d before", opening, before.closing))
		}
		opening = before.closing
	}
	if s.Opening != opening {
		a.differ("opening of "+month, fmt.Sprint(s.Opening), fmt.Sprint(opening, " is the last closing"))
	}
	y.months = append(y.months, yearMonth{month, s.Closing})
	y.note("shop", "month %s: %+v", month, *s)
	return nil
}

// transactions compares each transaction with its entries, and what went back with what
// the shop decided to refund.
func (a *yearAudit) transactions(ctx context.Context) error {
	y := a.y
	type money struct{ paid, refunded, disputed int64 }
	booked, records, subjects := make(map[string]money), make(map[string]string), make(map[string]string)
	err := y.each(ctx, `SELECT c.transaction_id, c.id, c.subject, COALESCE(SUM(CASE WHEN kind = 'paid' THEN amount END), 0),
			-COALESCE(SUM(CASE WHEN kind = 'refunded' THEN amount END), 0), -COALESCE(SUM(CASE WHEN kind = 'disputed' THEN amount END), 0)
		FROM gateway_charges AS c LEFT JOIN gateway_facts AS f ON f.record = c.id AND f.subject = c.subject
		WHERE transaction_id IS NOT NULL GROUP BY 1, 2, 3`, nil, func(c []string) {
		var b money
		_, _ = fmt.Sscan(strings.Join(c[3:], " "), &b.paid, &b.refunded, &b.disputed)
		booked[c[0]], records[c[0]], subjects[c[0]] = b, c[1], c[2]
	})
	if err != nil {
		return err
	}
	again := make(map[string]bool)
	if err := y.each(ctx, `SELECT record FROM gateway_facts WHERE kind = 'paid_again'`, nil, func(c []string) { again[c[0]] = true }); err != nil {
		return err
	}
	a.owed = make(map[string]yearGoods)
	seen := make(map[string]string)
	for summary, err := range y.sound.Transactions.All(ctx, gateway.TransactionListParams{Limit: 100}) {
		if err != nil {
			return err
		}
		t, err := y.sound.Transactions.Get(ctx, summary.ID)
		if err != nil {
			return err
		}
		there := money{paid: t.Paid(), refunded: t.RefundedAmount}
		if t.Status == gateway.TransactionChargedback || t.Status == gateway.TransactionMED || t.Status == gateway.TransactionPreChargedback || t.Status == gateway.TransactionInProtest {
			there.disputed = there.paid - there.refunded
			if t.Status != gateway.TransactionChargedback {
				a.held += there.disputed
			}
		}
		id := strings.ToLower(t.ID)
		record, known := records[id]
		if !known && there == (money{}) {
			continue // a link's session that was not paid
		}
		a.owes(subjects[id], there.paid, there.refunded, there.disputed)
		if booked[id] != there {
			a.differ(fmt.Sprintf("%s %s %s", t.Method, record, id), fmt.Sprintf("%+v", booked[id]), fmt.Sprintf("%s %+v", t.Status, there))
		}
		if t.ExternalRef != "" && seen[t.ExternalRef] != "" {
			a.differ("made twice: "+t.ExternalRef, "", id+" "+seen[t.ExternalRef])
		}
		seen[t.ExternalRef] = id
		decided := y.decided[record]
		if again[record] {
			decided = there.paid
		}
		if t.ExternalRef != "" && there.refunded > decided { // the check of a trial's card is refunded by the gateway
			a.differ("refunds of "+record, fmt.Sprint(decided, " were decided"), fmt.Sprint(there.refunded, " were refunded"), id)
		}
	}
	return nil
}

// balance compares the sum of all entries with the gateway's balance. The mock gateway
// takes a disputed payment out when it is lost, and does not put in what a bank returned,
// see [Year.returns].
func (a *yearAudit) balance(ctx context.Context) error {
	v1, err := legacy.New(a.y.sound, gateway.NewSecret(a.y.gw.Key()))
	if err != nil {
		return err
	}
	there, err := v1.Balance(ctx)
	if err != nil {
		return err
	}
	var sum int64
	if err := a.y.reader.QueryRowContext(ctx, `SELECT COALESCE(SUM(amount), 0) FROM gateway_facts`).Scan(&sum); err != nil {
		return err
	}
	var back int64
	for id, at := range a.y.paidAt {
		t, err := a.y.sound.Transfers.Get(ctx, id)
		if err != nil {
			return err
		}
		if a.y.closingUntil.Sub(at) > 0 && at.Add(day).Before(a.y.gw.Clock.Now()) {
			back += t.Amount
		}
	}
	if sum != there.Balance+back-a.held {
		a.differ("balance", fmt.Sprint(sum), fmt.Sprintf("%d, %d returned by the bank, %d disputed", there.Balance, back, a.held))
	}
	return nil
}

// facts checks that each fact was called back once, in order, and no order was settled
// twice.
func (a *yearAudit) facts(ctx context.Context) error {
	y := a.y
	subjects := make(map[string]string) // of records
	if err := y.each(ctx, `SELECT DISTINCT callback || ' ' || record, subject FROM gateway_facts WHERE callback <> '' AND stream = ''`, nil, func(c []string) {
		if subjects[c[0]] != "" && c[0] != "problem " {
			a.differ("a record of two orders: "+c[0], subjects[c[0]], c[1])
		}
		subjects[c[0]] = c[1]
	}); err != nil {
		return err
	}
	want, got := make(map[string][]string), make(map[string][]string)
	y.counts.Facts, y.counts.Callbacks = 0, 0
	if err := y.each(ctx, `SELECT subject, callback || ' ' || record, callback <> '' AND stream = '' FROM gateway_facts ORDER BY seq`, nil, func(c []string) {
		y.counts.Facts++
		if c[2] == "1" {
			want[c[0]] = append(want[c[0]], c[1])
		}
	}); err != nil {
		return err
	}
	if err := y.each(ctx, `SELECT callback || ' ' || record FROM called ORDER BY id`, nil, func(c []string) {
		y.counts.Callbacks++
		got[subjects[c[0]]] = append(got[subjects[c[0]]], c[0])
	}); err != nil {
		return err
	}
	for _, subject := range slices.Sorted(maps.Keys(want)) {
		if !slices.Equal(want[subject], got[subject]) {
			a.differ("callbacks of "+subject, fmt.Sprint(want[subject]), fmt.Sprint(got[subject], " were called"))
		}
	}
	return y.each(ctx, `SELECT subject, COUNT(*) FROM gateway_facts WHERE kind = 'settled' GROUP BY subject HAVING COUNT(*) > 1`, nil, func(c []string) {
		a.differ(c[0], "settled "+c[1]+" times", "")
	})
}

// yearGoods is what the gateway has of an order, to tell whether its goods are owed.
type yearGoods struct {
	payments       int
	left, disputed int64
}

func (a *yearAudit) owes(subject string, paid, refunded, disputed int64) {
	if paid == 0 {
		return
	}
	g := a.owed[subject]
	g.payments, g.left, g.disputed = g.payments+1, g.left+paid-refunded-disputed, g.disputed+disputed
	a.owed[subject] = g
}

// goods checks that the shop was told to send goods, not to send them, to send them …, and at
// last what is true at the gateway.
func (a *yearAudit) goods(ctx context.Context) error {
	y := a.y
	told := make(map[string][]string)
	if err := y.each(ctx, `SELECT subject, state FROM told WHERE what = 'goods' ORDER BY id`, nil, func(c []string) {
		told[c[0]] = append(told[c[0]], c[1])
	}); err != nil {
		return err
	}
	closed := make(map[string]bool) // before it was told
	if err := y.each(ctx, `SELECT subject FROM gateway_problems WHERE kind = 'closed'`, nil, func(c []string) { closed[c[0]] = true }); err != nil {
		return err
	}
	for subject, states := range told {
		for i, state := range states {
			if (state == string(kit.Paid)) != (i%2 == 0) {
				a.differ("goods of "+subject, fmt.Sprint(states), "was told")
			}
		}
	}
	return y.each(ctx, `SELECT subject, settled_by, owed FROM gateway_orders WHERE subject LIKE 'order/%' OR subject LIKE 'link/%'`, nil, func(c []string) {
		g, sent := a.owed[c[0]], len(told[c[0]])%2 == 1
		owed := c[1] != "" && g.left > 0
		if owed && g.disputed > 0 && g.payments > 1 {
			return // whether the other payment covers the price is in the exhaustive test of the books
		}
		owed = owed && g.disputed == 0
		if owed != sent && (!owed || !closed[c[0]]) || owed != (c[2] == "1") {
			a.differ("goods of "+c[0], fmt.Sprintf("owed: %s, told %v", c[2], told[c[0]]), fmt.Sprintf("settled by %q: %+v", c[1], g))
		}
	})
}

// access checks that nothing was told twice, and that what was told last is kept.
func (a *yearAudit) access(ctx context.Context) error {
	last := make(map[string]string)
	return a.y.each(ctx, `SELECT subject, state FROM told WHERE what = 'access' ORDER BY id`, nil, func(c []string) {
		if last[c[0]] == c[1] {
			a.differ("access of "+c[0], c[1], "was told twice")
		}
		last[c[0]] = c[1]
	})
}

// orders checks what was shipped.
func (a *yearAudit) orders(ctx context.Context) error {
	y := a.y
	y.counts.Orders = 0
	err := y.each(ctx, `SELECT id, ships, closed, (SELECT COUNT(*) FROM gateway_facts WHERE subject = 'order/' || orders.id AND kind = 'settled') FROM orders`, nil, func(c []string) {
		y.counts.Orders++
		if y.cfg.Defect == ShipsAtOnce {
			c[1] = fmt.Sprint(y.parcels[c[0]])
		}
		if c[1] != c[3] {
			a.differ("order "+c[0], "shipped "+c[1]+" times", "settled "+c[3]+" times")
		}
	})
	if err != nil {
		return err
	}
	y.counts.Refunds = 0
	return y.each(ctx, `SELECT id FROM gateway_refunds WHERE state = 'done'`, nil, func([]string) { y.counts.Refunds++ })
}

// subscriptions compares the subscriptions with the gateway's.
func (a *yearAudit) subscriptions(ctx context.Context) error {
	y := a.y
	for _, id := range slices.Sorted(maps.Keys(y.members)) {
		s, err := y.shop.m.Subscription(ctx, id)
		if err != nil {
			return fmt.Errorf("subscription %s: %w", id, err)
		}
		if s.SubscriptionID == "" {
			continue
		}
		there, err := y.sound.Subscriptions.Get(ctx, s.SubscriptionID)
		if err != nil {
			return err
		}
		if string(there.Status) != string(s.State) || len(there.Transactions) != len(s.Charges) {
			a.differ("subscription "+id, fmt.Sprintf("%s, %d charges", s.State, len(s.Charges)), fmt.Sprintf("%s, %d charges", there.Status, len(there.Transactions)), there.ID)
		}
		var paid, started, renewed int
		for _, c := range s.Charges {
			if c.Paid == s.Amount { // not the check of a trial's card
				paid++
			}
		}
		if err := y.each(ctx, `SELECT kind FROM gateway_facts WHERE subject = ? AND kind IN ('started', 'renewed')`, []any{"subscription/" + id}, func(c []string) {
			if c[0] == "started" {
				started++
			} else {
				renewed++
			}
		}); err != nil {
			return err
		}
		if started+renewed != paid || started > 1 {
			a.differ("periods of "+id, fmt.Sprintf("%d started, %d renewed", started, renewed), fmt.Sprintf("%d charges were paid", paid), there.ID)
		}
		if there.Status == gateway.SubscriptionActive && paid > 0 && !s.PaidUntil.Equal(there.CurrentPeriodEnd.Time) {
			a.differ("the period of "+id, s.PaidUntil.String(), there.CurrentPeriodEnd.String(), there.ID)
		}
	}
	return nil
}

// payouts compares the payouts with the gateway's transfers.
func (a *yearAudit) payouts(ctx context.Context) error {
	y := a.y
	states, refs := make(map[string]string), make(map[string]string)
	if err := y.each(ctx, `SELECT ref, state, COALESCE(transfer_id, '') FROM gateway_payouts`, nil, func(c []string) {
		states[c[0]], refs[c[0]] = c[1], c[2]
	}); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for t, err := range y.sound.Transfers.All(ctx, gateway.TransferListParams{Limit: 100}) {
		if err != nil {
			return err
		}
		if seen[t.ExternalRef] || !strings.EqualFold(refs[t.ExternalRef], t.ID) {
			a.differ("transfer "+t.ExternalRef, refs[t.ExternalRef], t.ID)
		}
		seen[t.ExternalRef] = true
		want := map[gateway.TransferStatus]string{
			gateway.TransferPaid: string(kit.Paid), gateway.TransferError: string(kit.Failed), gateway.TransferCancelled: string(kit.Canceled),
		}[t.Status]
		if at, found := y.paidAt[t.ID]; found && at.Add(day).Before(y.gw.Clock.Now()) {
			want = string(kit.Failed)
		}
		if want == "" {
			want = string(kit.Pending)
		}
		if states[t.ExternalRef] != want {
			a.differ("payout "+t.ExternalRef, states[t.ExternalRef], string(t.Status), t.ID)
		}
	}
	for ref, id := range refs {
		if id != "" && !seen[ref] {
			a.differ("payout "+ref, id, "does not exist")
		}
	}
	return nil
}

// open checks that nothing waits, also for a person.
func (a *yearAudit) open(ctx context.Context) error {
	y := a.y
	for what, query := range map[string]string{
		"operation": `SELECT kind || ' ' || key, state FROM gateway_operations WHERE state NOT IN ('done', 'canceled')`,
		"callback":  `SELECT seq, error FROM gateway_facts WHERE delivered_at IS NULL`,
		"event":     `SELECT resource, state FROM gateway_webhook_events WHERE state IN (1, 2)`,
		"charge":    `SELECT id, state FROM gateway_charges WHERE state IN ('new', 'unknown', 'ambiguous')`,
		"refund":    `SELECT id, state FROM gateway_refunds WHERE state IN ('new', 'unknown', 'accepted', 'ambiguous')`,
	} {
		if err := y.each(ctx, query, nil, func(c []string) { a.differ(what+" "+c[0], c[1], "") }); err != nil {
			return err
		}
	}
	problems, err := y.shop.m.Problems(ctx)
	for _, p := range problems {
		a.differ("problem "+string(p.Kind)+" "+p.Record, p.Text, "")
	}
	return err
}

// bankReturned reports whether a bank returned a payout.
func (y *Year) bankReturned(ctx context.Context, payout string) bool {
	var id string
	err := y.reader.QueryRowContext(ctx, `SELECT COALESCE(transfer_id, '') FROM gateway_payouts WHERE id = ?`, payout).Scan(&id)
	y.mu.Lock()
	defer y.mu.Unlock()
	_, found := y.paidAt[id]
	return err == nil && found
}
