package books_test

import (
	"cmp"
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
	return len(r.Facts)+len(r.Problems) > 0 && r.Outcome != books.Changed
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
