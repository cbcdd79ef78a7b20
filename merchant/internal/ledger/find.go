package ledger

import (
	"context"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/database"
)

// Hit is a record that has an identifier.
type Hit struct {
	As      string // what the identifier is
	Kind    string // of the record
	Account string
	Record  string
	Subject Subject
}

// lookup finds records by an identifier in an index. Its query has the columns account,
// record, book and subject; column is the one with the identifier. The gateway's IDs are
// stored in lower case, because the gateway ignores case; the merchant's are not.
type lookup struct {
	as, kind  string
	query     string
	column    string
	lowerCase bool
}

const (
	selectCharges = `SELECT account, id, book, subject FROM {s}gateway_charges WHERE `
	selectRefunds = `SELECT c.account, r.id, c.book, c.subject FROM {s}gateway_refunds AS r JOIN {s}gateway_charges AS c ON c.id = r.charge
		WHERE `
	selectPayouts       = `SELECT account, id, book, subject FROM {s}gateway_payouts WHERE `
	selectSubscriptions = `SELECT account, id, book, 'subscription/' || id FROM {s}gateway_subscriptions WHERE `
)

// ofBook are the lookups of the merchant's IDs, which are unique in a book.
var ofBook = []lookup{
	{as: "order", kind: "order", query: `SELECT '', SUBSTR(subject, 7), book, subject FROM {s}gateway_orders WHERE `, column: `subject = 'order/' || ?`},
	{as: "refund", kind: "refund", query: selectRefunds, column: `r.id = ?`},
	{as: "payout", kind: "payout", query: selectPayouts, column: `id = ?`},
	{as: "subscription", kind: "subscription", query: selectSubscriptions, column: `id = ?`},
}

// ofAll are those of IDs that are unique in all books.
var ofAll = []lookup{
	{as: "charge", kind: "charge", query: selectCharges, column: `id = ?`},
	{as: "transaction", kind: "charge", query: selectCharges, column: `transaction_id = ?`, lowerCase: true},
	{as: "end_to_end", kind: "charge", query: selectCharges, column: `end_to_end_id = ?`, lowerCase: true},
	{as: "transfer", kind: "payout", query: selectPayouts, column: `transfer_id = ?`, lowerCase: true},
	{as: "gateway_subscription", kind: "subscription", query: selectSubscriptions, column: `subscription_id = ?`, lowerCase: true},
}

// Find returns the records of some books that have an identifier.
func (l Ledger) Find(ctx context.Context, in []string, id string) (hits []Hit, err error) {
	inBooks, named := list(in)
	for _, is := range slices.Concat(ofBook, ofAll) {
		key, book := id, `book`
		if is.lowerCase {
			key = strings.ToLower(id)
		}
		if is.kind == "refund" {
			book = `r.book`
		}
		more, err := all(ctx, l, is.query+book+` IN `+inBooks+` AND `+is.column, append(slices.Clone(named), key), func(row database.Scanner, h *Hit) error {
			h.As, h.Kind = is.as, is.kind
			return row.Scan(&h.Account, &h.Record, &h.Subject.Book, &h.Subject.ID)
		})
		if err != nil {
			return nil, err
		}
		hits = append(hits, more...)
	}
	return hits, nil
}

// SubjectOf returns the subject of a record of a book by its kind and its ID, or
// [ErrNotFound].
func (l Ledger) SubjectOf(ctx context.Context, book, kind, id string) (Subject, error) {
	hits, err := l.Find(ctx, []string{book}, id)
	if err != nil {
		return Subject{}, err
	}
	for _, h := range hits {
		if h.Kind == kind && h.As == kind {
			return h.Subject, nil
		}
	}
	return Subject{}, notFound(kind, id)
}

// Request is the operation of a record.
type Request struct {
	Kind    string // as the outbox names it
	Account string
	Key     string
	Record  string
	Subject Subject
}

// The kinds of operations, as the outbox names them.
const (
	CreateTransaction  = "transactions.create"
	RefundTransaction  = "transactions.refund"
	CreateTransfer     = "transfers.create"
	CreateCustomer     = "customers.create"
	CreateSubscription = "subscriptions.create"
)

// requests have the records whose requests are in the outbox, by the kind of the operation.
var requests = []struct{ kind, query string }{
	{CreateTransaction, `SELECT account, ref AS key, id AS record, book, subject FROM {s}gateway_charges`},
	{RefundTransaction, `SELECT c.account AS account, r.id AS key, r.id AS record, c.book AS book, c.subject AS subject
		FROM {s}gateway_refunds AS r JOIN {s}gateway_charges AS c ON c.id = r.charge`},
	{CreateTransfer, `SELECT account, ref AS key, id AS record, book, subject FROM {s}gateway_payouts`},
	{CreateCustomer, `SELECT account, ref AS key, id AS record, book, 'subscription/' || id AS subject FROM {s}gateway_subscriptions`},
	{CreateSubscription, `SELECT account, ref AS key, id AS record, book, 'subscription/' || id AS subject FROM {s}gateway_subscriptions`},
}

// RequestWhere selects requests. A member that is "" selects all.
type RequestWhere struct {
	Account, Key, Record string

	Subject Subject
}

// Requests returns the requests of records.
func (l Ledger) Requests(ctx context.Context, w RequestWhere) (found []Request, err error) {
	c := condition{text: `key IS NOT NULL`}
	c.equal("account", w.Account)
	c.equal("key", w.Key)
	c.equal("record", w.Record)
	c.subject(w.Subject)
	for _, of := range requests {
		more, err := all(ctx, l, `SELECT account, key, record, book, subject FROM (`+of.query+`) AS q`+c.where(), c.args, func(row database.Scanner, r *Request) error {
			r.Kind = of.kind
			return row.Scan(&r.Account, &r.Key, &r.Record, &r.Subject.Book, &r.Subject.ID)
		})
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}
