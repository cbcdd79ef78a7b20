package ledger

import (
	"context"
	"time"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// Entries calls visit with each entry of an account's month, the oldest first.
func (l Ledger) Entries(ctx context.Context, account, month string, visit func(*NewFact) error) error {
	return l.s.Each(ctx, `SELECT at, book, subject, record, kind, amount, currency, source, key FROM {s}gateway_facts
		WHERE account = ? AND month = ? AND amount IS NOT NULL ORDER BY at, seq`, []any{account, month}, func(row database.Scanner) error {
		var f NewFact
		var at int64
		if err := row.Scan(&at, &f.Book, &f.Order, &f.Record, &f.Kind, &f.Amount, &f.Currency, &f.Source, &f.StoredKey); err != nil {
			return err
		}
		f.At = time.UnixMilli(at)
		return visit(&f)
	})
}

// Unequal is an order whose sums are not those of its entries.
type Unequal struct {
	Subject      Subject
	Net, Entries int64
}

// Unequal returns the orders with entries in an account's month whose sums are wrong.
func (l Ledger) Unequal(ctx context.Context, account, month string) ([]Unequal, error) {
	return all(ctx, l, `SELECT book, subject, net, entries FROM (
			SELECT o.book AS book, o.subject AS subject, o.paid - o.fee - o.refunded - o.disputed - o.paid_out + o.adjusted AS net,
				CAST((SELECT COALESCE(SUM(amount), 0) FROM {s}gateway_facts AS e
					WHERE e.book = o.book AND e.subject = o.subject AND e.currency = o.currency) AS {int}) AS entries
			FROM {s}gateway_orders AS o
			WHERE (o.book, o.subject) IN (SELECT book, subject FROM {s}gateway_facts WHERE account = ? AND month = ? AND amount IS NOT NULL)
		) AS q WHERE net <> entries ORDER BY book, subject`,
		[]any{account, month}, func(row database.Scanner, u *Unequal) error {
			return row.Scan(&u.Subject.Book, &u.Subject.ID, &u.Net, &u.Entries)
		})
}

// Sums is a charge with the sums of its entries.
type Sums struct {
	Transaction string
	ID          string
	Subject     Subject
	Record      string

	books.Side

	During bool // it has entries in the month
}

// ChargeSums returns the charges of an account with some transactions or, without any, those
// with entries in the month; by transaction.
func (l Ledger) ChargeSums(ctx context.Context, account, month string, transactions []string) (map[string]*Sums, error) {
	where, args := `c.account = ? AND c.transaction_id IS NOT NULL AND c.id IN (
		SELECT record FROM {s}gateway_facts WHERE account = ? AND month = ? AND amount IS NOT NULL)`, []any{month, account, account, month}
	if transactions != nil {
		in, ids := list(transactions)
		where, args = `c.account = ? AND c.transaction_id IN `+in, append([]any{month, account}, ids...)
	}
	found := make(map[string]*Sums)
	err := l.s.Each(ctx, `SELECT c.transaction_id, c.id, c.book, c.subject, c.record, COALESCE(f.kind, ''), CAST(COALESCE(SUM(f.amount), 0) AS {int}),
			MAX(CASE WHEN f.month = ? THEN 1 ELSE 0 END)
		FROM {s}gateway_charges AS c LEFT JOIN {s}gateway_facts AS f
			ON f.book = c.book AND f.subject = c.subject AND f.record = c.id AND f.amount IS NOT NULL
		WHERE `+where+` GROUP BY c.transaction_id, c.id, c.book, c.subject, c.record, f.kind`, args, func(row database.Scanner) error {
		s := new(Sums)
		var kind books.Kind
		var sum int64
		var during int
		if err := row.Scan(&s.Transaction, &s.ID, &s.Subject.Book, &s.Subject.ID, &s.Record, &kind, &sum, &during); err != nil {
			return err
		}
		if known := found[s.Transaction]; known != nil {
			s = known
		}
		found[s.Transaction] = s
		s.During = s.During || during == 1
		switch kind {
		case books.EntryPaid:
			s.Paid = sum
		case books.EntryFee:
			s.Fee = -sum
		case books.EntryRefunded:
			s.Refunded = -sum
		case books.EntryDisputed:
			s.Disputed = -sum
		default: // no entry of a charge
		}
		return nil
	})
	return found, err
}

// PaidOut is a payout with the sum of its entries.
type PaidOut struct {
	ID, Ref, Transfer string

	Subject Subject

	Out    int64
	During bool // it has entries in the month
}

// PayoutSums returns the payouts of an account with some transfers or references or, without
// any, those with entries in the month.
func (l Ledger) PayoutSums(ctx context.Context, account, month string, transfers, refs []string) ([]PaidOut, error) {
	const kind = `'` + string(books.EntryPaidOut) + `'`
	where, args := `p.transfer_id IS NOT NULL AND p.account = ? AND p.id IN (
		SELECT record FROM {s}gateway_facts WHERE account = ? AND month = ? AND kind = `+kind+`)`, []any{month, account, account, month}
	if transfers != nil {
		byTransfer, ids := list(transfers)
		byRef, named := list(refs)
		where = `p.account = ? AND (p.transfer_id IN ` + byTransfer + ` OR p.ref IN ` + byRef + `)`
		args = append(append([]any{month, account}, ids...), named...)
	}
	return all(ctx, l, `SELECT p.id, p.book, p.subject, p.ref, COALESCE(p.transfer_id, ''), CAST(COALESCE(-SUM(f.amount), 0) AS {int}),
			COALESCE(MAX(CASE WHEN f.month = ? THEN 1 ELSE 0 END), 0)
		FROM {s}gateway_payouts AS p LEFT JOIN {s}gateway_facts AS f
			ON f.book = p.book AND f.subject = p.subject AND f.record = p.id AND f.kind = `+kind+`
		WHERE `+where+` GROUP BY p.id, p.book, p.subject, p.ref, p.transfer_id ORDER BY p.id`, args, func(row database.Scanner, p *PaidOut) error {
		var during int
		err := row.Scan(&p.ID, &p.Subject.Book, &p.Subject.ID, &p.Ref, &p.Transfer, &p.Out, &during)
		p.During = during == 1
		return err
	})
}

// AcceptedRefunds counts the refunds of accounts that the gateway confirmed and that no
// transaction shows yet. They are few, and have an index. A scalar subquery is no join, for
// which all charges might be read.
func (l Ledger) AcceptedRefunds(ctx context.Context, accounts []string) (n int64, err error) {
	in, args := list(accounts)
	const accepted = `'` + string(books.Accepted) + `'` // a parameter would fit no index
	_, err = l.s.Row(ctx, `SELECT COUNT(*) FROM {s}gateway_refunds AS r WHERE r.state = `+accepted+`
		AND (SELECT c.account FROM {s}gateway_charges AS c WHERE c.id = r.charge) IN `+in, args, &n)
	return n, err
}
