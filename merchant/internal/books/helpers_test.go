package books_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// start is when the histories of these tests begin.
var start = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// minute returns a time of the histories.
func minute(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

// params describes a transaction.
func params(ref string, amount int64, method gateway.Method) gateway.TransactionParams {
	p := gateway.TransactionParams{
		ExternalRef: ref, Amount: amount, Method: method,
		Buyer:    gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"}},
		Products: []gateway.Product{{Name: "Mug", Price: amount}},
	}
	if method == gateway.Voucher {
		p.Buyer.Address = &gateway.Address{Street: "Rua das Laranjeiras", City: "Rio de Janeiro", ZipCode: "22240003", Country: gateway.Brazil}
	}
	return p
}

// chargeOf returns the charge of an order whose transaction is tx.
func chargeOf(tx *gateway.Transaction) books.Charge {
	c := books.Seen("c-"+tx.ID, books.FromOrder, tx)
	c.Operation = books.Sent
	return c
}

// reading returns a reading of a resource in a minute.
func reading[T any](resource *T, at int) books.Reading[T] {
	return books.Reading[T]{Resource: resource, Source: books.FromWebhook, At: minute(at)}
}

// has reports whether one of the facts is of the kind.
func has(facts []books.Fact, kind books.Kind) bool {
	return slices.ContainsFunc(facts, func(f books.Fact) bool { return f.Kind == kind })
}

// silent reports whether the result has facts or problems, but does not say so, or a
// fact whose kind is not that of its key and its callback.
func silent(r books.Result) bool {
	for _, f := range r.Facts {
		kind := string(f.Kind)
		if f.Callback == books.OnSubscription && (f.Kind == books.Started || f.Kind == books.Renewed) {
			kind = "period"
		}
		if !strings.HasPrefix(f.Key, kind+"/") || f.Kind == books.PayoutEnded && f.Callback != books.OnPayout {
			return true
		}
	}
	return len(r.Facts)+len(r.Problems)+len(r.Over) > 0 && r.Outcome != books.Changed
}

// problems are those that are open, and the keys of all that were ever raised.
type problems struct {
	open []books.Problem
	keys []string
}

// keep closes and raises the problems of a result. The error says which promise is broken.
func (p *problems) keep(r books.Result) error {
	for _, over := range r.Over {
		var open []books.Problem
		for _, one := range p.open {
			if one.Kind != over.Kind || one.Record != over.Record {
				open = append(open, one)
			}
		}
		if len(open) == len(p.open) && over.Kind != books.IsPaidAgain { // callers raise that too
			return fmt.Errorf("%+v is over, but is not open", over)
		}
		p.open = open
	}
	for _, one := range r.Problems {
		if slices.Contains(p.keys, one.Key) {
			return fmt.Errorf("the problem %s twice", one.Key)
		}
		if one.Text == "" || !strings.HasPrefix(one.Key, string(one.Kind)+"/") || !strings.Contains(one.Key, "/"+one.Record+"/") {
			return fmt.Errorf("an incomplete problem: %+v", one)
		}
		p.open, p.keys = append(slices.Clip(p.open), one), append(slices.Clip(p.keys), one.Key)
	}
	return nil
}

// has reports whether a problem of a kind about a record is open.
func (p *problems) has(kind books.ProblemKind, record string) bool {
	return slices.ContainsFunc(p.open, func(one books.Problem) bool { return one.Kind == kind && one.Record == record })
}

// remembered compares the open problems with what the records remember of them.
func (p *problems) remembered(raised []books.Raised) error {
	open := 0
	for _, one := range p.open {
		if one.Kind != books.IsForeign { // each is raised once
			open++
		}
	}
	for i := range raised {
		if r := &raised[i]; !r.Over {
			open--
			if !p.has(r.Kind, r.Record) {
				return fmt.Errorf("%+v is known, but not open", r)
			}
		}
	}
	if open != 0 {
		return fmt.Errorf("%+v are open, %+v known", p.open, raised)
	}
	return nil
}

// wrongly returns an error if a problem of a kind is open and does not hold, or the other
// way round.
func (p *problems) wrongly(kind books.ProblemKind, record string, holds bool) error {
	if p.has(kind, record) != holds {
		return fmt.Errorf("%s of %s: holds %t, open %t", kind, record, holds, !holds)
	}
	return nil
}

// ofCharge checks the problems of a charge that follow from what is booked.
func (p *problems) ofCharge(o *books.Order, c *books.Charge) error {
	if c.CardCheck {
		return nil
	}
	needed := o.SettledBy == "" && !o.Closed
	return cmp.Or(
		p.wrongly(books.IsUnderpaid, c.ID, c.State == books.Underpaid && needed),
		p.wrongly(books.IsOverpaid, c.ID, c.Excess() > c.Refunded && c.State != books.Disputed && (needed || o.SettledBy == c.ID)),
		p.wrongly(books.IsContested, c.ID, c.Status == gateway.TransactionInProtest),
		p.wrongly(books.IsAmbiguous, c.ID, c.Operation == books.InDoubt && c.Status == ""),
	)
}

// foreign reports whether the result has an entry in another currency than the order's, and
// no problem says so.
func foreign(r books.Result, currency gateway.Currency) bool {
	entries, problems := 0, 0
	for _, f := range r.Facts {
		if f.Amount != 0 && f.Currency != currency {
			entries++
		}
	}
	for _, p := range r.Problems {
		if p.Kind == books.IsForeign {
			problems++
		}
	}
	return entries != problems
}

// sums adds up the entries of facts as an order does.
func sums(facts []books.Fact, currency gateway.Currency) (o books.Order) {
	for _, f := range facts {
		if f.Currency != currency {
			continue
		}
		switch f.Kind {
		case books.EntryPaid:
			o.Paid += f.Amount
		case books.EntryFee:
			o.Fee -= f.Amount
		case books.EntryRefunded:
			o.Refunded -= f.Amount
		case books.EntryDisputed:
			o.Disputed -= f.Amount
		case books.EntryPaidOut:
			o.PaidOut -= f.Amount
		default: // no entry
		}
	}
	return o
}

// money returns only the sums of an order.
func money(o books.Order) books.Order {
	return books.Order{Paid: o.Paid, Fee: o.Fee, Refunded: o.Refunded, Disputed: o.Disputed, PaidOut: o.PaidOut}
}

// seen is a transaction as it is read in a minute.
type seen struct {
	status   gateway.TransactionStatus
	paid     int64
	refunded int64
	fee      int64
	changed  int // the minute of updated_at, 0 for none
	currency gateway.Currency
	built    *gateway.Transaction // what transaction returns, if it is needed often
}

// transaction returns the transaction of a charge of 5000.
func (s seen) transaction(id string) *gateway.Transaction {
	tx := &gateway.Transaction{
		ID: id, Amount: 5000, Currency: cmp.Or(s.currency, gateway.BRL), Status: s.status,
		PaidAmount: s.paid, RefundedAmount: s.refunded,
	}
	if s.fee != 0 {
		tx.Fee = &gateway.Fee{EstimatedFee: s.fee}
	}
	if s.changed > 0 {
		tx.UpdatedAt = gateway.TimestampOf(minute(s.changed))
	}
	if s.paid > 0 {
		tx.PaidAt = gateway.TimestampOf(start)
	}
	return tx
}
