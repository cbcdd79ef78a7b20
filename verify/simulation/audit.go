package simulation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/legacy"
)

// DifferenceError means that after a month the books of a merchant differed from
// the gateway's.
type DifferenceError struct {
	Seed     uint64
	Month    int
	Merchant string
	Rows     []Row
	Events   []string // the last events of the first resource that differs
}

// Row is one difference between the two sides.
type Row struct{ What, Books, Gateway string }

// Error returns a table of the two sides and the last events of the first
// resource that differs.
func (e *DifferenceError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, month %d: the books of %s and the gateway's differ:\n\n", e.Seed, e.Month, e.Merchant)
	fmt.Fprintf(&b, "  %-44s %-36s %s\n", "", "books", "gateway")
	for _, r := range e.Rows {
		fmt.Fprintf(&b, "  %-44s %-36s %s\n", r.What, r.Books, r.Gateway)
	}
	b.WriteString("\nThe last events of the first resource:\n")
	for _, line := range e.Events {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}

// account is one side of the comparison.
type account struct {
	balance   int64
	resources map[string]entry // by reference; a subscription's charge by its id
}

type entry struct {
	id       string
	kind     orderKind
	status   string
	amount   int64
	paid     int64
	refunded int64
	period   time.Time // the end of a subscription's current period
	currency string    // of a transaction
	method   string    // of a transaction
}

func (e entry) String() string {
	if e.status == "" {
		return "does not exist"
	}
	text := fmt.Sprintf("%s, %d", e.status, e.amount)
	if e.paid+e.refunded > 0 {
		text += fmt.Sprintf(", %d paid, %d refunded", e.paid, e.refunded)
	}
	if !e.period.IsZero() {
		text += ", until " + e.period.Format(time.DateOnly)
	}
	return text
}

// audit compares the books of every merchant with the gateway's.
func (w *World) audit(ctx context.Context, month int) error {
	for _, m := range w.merchants {
		theirs, err := m.atGateway(ctx)
		if err != nil {
			return err
		}
		rows, names := m.differences(ctx, theirs)
		if len(rows) > 0 {
			return &DifferenceError{w.cfg.Seed, month, m.name, rows, w.history(25, names...)}
		}
		w.note(m.name, "month %d: the books of %d resources are right, the balance is %d", month, len(theirs.resources), theirs.balance)
	}
	return nil
}

// inBooks returns the account according to the merchant's books.
func (m *merchant) inBooks() account {
	a := account{resources: map[string]entry{}}
	for _, o := range m.db.orders {
		a.balance += o.net()
		if o.id == "" {
			continue
		}
		e := entry{id: o.id, kind: o.kind, status: o.status, amount: o.amount, paid: o.paid, refunded: o.refunded, period: o.periodEnd}
		a.resources[o.ref] = e
	}
	return a
}

// atGateway returns the account according to the gateway's API.
func (m *merchant) atGateway(ctx context.Context) (account, error) {
	a := account{resources: map[string]entry{}}
	v1, err := legacy.New(m.sound, m.key())
	if err != nil {
		return a, err
	}
	balance, err := v1.Balance(ctx)
	if err != nil {
		return a, err
	}
	a.balance = balance.Balance
	validations := map[string]bool{} // charges that only validate the card of a trial, or failed and report another amount
	for sub, err := range m.sound.Subscriptions.All(ctx, gateway.SubscriptionListParams{Limit: 100}) {
		if err != nil {
			return a, err
		}
		full, err := m.sound.Subscriptions.Get(ctx, sub.ID)
		if err != nil {
			return a, err
		}
		for _, tx := range full.Transactions {
			validations[tx.ID] = !tx.AmountIs(sub.Amount)
		}
		var metadata struct {
			Order string `json:"order"`
		}
		if err := sub.Metadata.Decode(&metadata); err != nil {
			return a, err
		}
		a.resources[metadata.Order] = entry{
			id: sub.ID, kind: subscription, status: string(sub.Status), amount: sub.Amount, period: sub.CurrentPeriodEnd.Time,
		}
	}
	for tr, err := range m.sound.Transfers.All(ctx, gateway.TransferListParams{Limit: 100}) {
		if err != nil {
			return a, err
		}
		a.resources[tr.ExternalRef] = entry{id: tr.ID, kind: payout, status: string(tr.Status), amount: tr.Amount}
	}
	for tx, err := range m.sound.Transactions.All(ctx, gateway.TransactionListParams{Limit: 100}) {
		if err != nil {
			return a, err
		}
		if validations[tx.ID] {
			continue
		}
		e := entry{
			id: tx.ID, status: string(tx.Status), amount: cmp.Or(tx.BasePrice, tx.Amount), paid: tx.Paid(), refunded: tx.RefundedAmount,
			currency: string(tx.Currency), method: string(tx.Method),
		}
		if m.w.live() && (&order{}).rank(e.status) >= settledRank { // the live dialect's list has no amounts
			full, err := m.sound.Transactions.Get(ctx, tx.ID)
			if err != nil {
				return a, err
			}
			e.paid, e.refunded = full.Paid(), full.RefundedAmount
		}
		a.resources[cmp.Or(tx.ExternalRef, tx.ID)] = e
	}
	return a, nil
}

// differences compares the two sides, and the gateway's side with the merchant's
// decisions. names are the reference and the ids of the first resource that
// differs.
func (m *merchant) differences(ctx context.Context, theirs account) (rows []Row, names []string) {
	ours := m.inBooks()
	differ := func(ref, books, gateway string) {
		if len(rows) == 0 {
			names = []string{ref, ours.resources[ref].id, theirs.resources[ref].id}
		}
		rows = append(rows, Row{ref, books, gateway})
	}
	all := maps.Clone(ours.resources)
	maps.Copy(all, theirs.resources)
	for _, ref := range slices.Sorted(maps.Keys(all)) {
		booked, actual := ours.resources[ref], theirs.resources[ref]
		if booked.id == "" && actual.id == ref && actual.paid == 0 {
			continue // a failed charge of a subscription: only its webhook reports it, and that may be lost
		}
		if booked.id != actual.id || booked.String() != actual.String() {
			differ(ref, booked.String(), actual.String())
		}
	}
	for _, o := range m.db.orders {
		m.checkOrder(o, theirs.resources[o.ref], differ)
	}
	if left, _ := m.store.Counts(ctx); left.Waiting+left.Claimed+left.Dead+left.Unhandled > 0 {
		rows = append(rows, Row{"events in the inbox", fmt.Sprintf("%+v", left), ""})
	}
	if ours.balance != theirs.balance {
		rows = append(rows, Row{"balance", fmt.Sprint(ours.balance), fmt.Sprint(theirs.balance)})
	}
	const maxRows = 12
	return rows[:min(len(rows), maxRows)], names
}

// checkOrder checks what the merchant has decided, and judges its orders as an exam does.
func (m *merchant) checkOrder(o *order, actual entry, differ func(ref, books, gateway string)) {
	for _, f := range o.judge(actual) {
		differ(o.ref, "judged by claim "+string(f.Claim), f.Text)
	}
	switch {
	case o.pending():
		differ(o.ref, "a call is pending", actual.String())
	case o.kind == subscription && actual.overdue():
		differ(o.ref, "the period has ended, and nothing was charged", actual.String())
	case o.kind == subscription && o.paidPeriods > m.paidCharges(o):
		differ(o.ref, fmt.Sprintf("%d paid periods", o.paidPeriods), fmt.Sprintf("%d paid charges", m.paidCharges(o)))
	}
}

// judge is the verdict of the exam. The merchants of the simulation ship when they book a
// payment, and decide all their refunds by themselves.
func (o *order) judge(actual entry) []exam.Finding {
	if o.kind == subscription || o.kind == charge || o.kind == payout || o.pending() {
		return nil
	}
	placed := &exam.Order{ID: o.ref, Amount: o.amount, Method: actual.method}
	report := &exam.Report{Found: true, Status: exam.StatusFailed, Paid: o.paid, Refunded: o.refunded}
	var charges []*exam.Charge
	if o.failed {
		placed.Placed(http.StatusUnprocessableEntity)
	} else {
		placed.Placed(http.StatusCreated)
	}
	if o.toRefund > 0 {
		placed.AskedToRefund(o.toRefund, http.StatusOK)
	}
	if actual.id != "" {
		charges = append(charges, &exam.Charge{
			ID: actual.id, Amount: actual.amount, Currency: actual.currency, Method: actual.method,
			Status: gateway.TransactionStatus(actual.status), Paid: actual.paid, Refunded: actual.refunded,
		})
	}
	switch rank := o.rank(o.status); {
	case rank > settledRank+2:
		report.Status, report.ChargedBack = exam.StatusChargedBack, o.paid-o.refunded
	case rank == settledRank+2:
		report.Status = exam.StatusRefunded
	case rank == settledRank+1:
		report.Status = exam.StatusPartiallyRefunded
	case rank == settledRank:
		report.Status = exam.StatusPaid
	case rank == 1:
		report.Status = exam.StatusPending
	}
	if o.paid > 0 {
		report.Shipped = 1
	}
	return exam.Judge(placed, charges, report)
}

// overdue reports whether a subscription should have been renewed or ended by now.
func (e entry) overdue() bool {
	switch gateway.SubscriptionStatus(e.status) {
	case gateway.SubscriptionActive, gateway.SubscriptionTrialing, gateway.SubscriptionCancelScheduled:
		return e.period.Before(time.Now().Add(-time.Hour))
	default:
		return false
	}
}

// paidCharges counts the charges of a subscription that were paid, even if they
// were refunded later.
func (m *merchant) paidCharges(o *order) (n int) {
	for _, c := range m.db.orders {
		if c.sub == o.ref && c.paid > 0 {
			n++
		}
	}
	return n
}
