package ledger

import (
	"context"
	"strings"

	"github.com/gateway-go/gateway/database"
)

// Hit is a record that has an identifier.
type Hit struct {
	As      string // what the identifier is
	Kind    string // of the record
	Account string
	Record  string
	Subject string
}

// lookups find records by an identifier, each in an index. A query has the columns account,
// record and subject. The gateway's IDs are stored in lower case, because the gateway ignores
// case; the merchant's are not.
var lookups = []struct {
	as, kind  string
	query     string
	lowerCase bool
}{
	{as: "order", kind: "order", query: `SELECT '', SUBSTR(subject, 7), subject FROM {s}gateway_orders WHERE subject = 'order/' || ?`},
	{as: "charge", kind: "charge", query: `SELECT account, id, subject FROM {s}gateway_charges WHERE id = ?`},
	{as: "transaction", kind: "charge", query: `SELECT account, id, subject FROM {s}gateway_charges WHERE transaction_id = ?`, lowerCase: true},
	{as: "end_to_end", kind: "charge", query: `SELECT account, id, subject FROM {s}gateway_charges WHERE end_to_end_id = ?`, lowerCase: true},
	{
		as: "refund", kind: "refund",
		query: `SELECT c.account, r.id, c.subject FROM {s}gateway_refunds AS r JOIN {s}gateway_charges AS c ON c.id = r.charge WHERE r.id = ?`,
	},
	{as: "payout", kind: "payout", query: `SELECT account, id, subject FROM {s}gateway_payouts WHERE id = ?`},
	{as: "transfer", kind: "payout", query: `SELECT account, id, subject FROM {s}gateway_payouts WHERE transfer_id = ?`, lowerCase: true},
	{as: "subscription", kind: "subscription", query: `SELECT account, id, 'subscription/' || id FROM {s}gateway_subscriptions WHERE id = ?`},
	{
		as: "gateway_subscription", kind: "subscription", lowerCase: true,
		query: `SELECT account, id, 'subscription/' || id FROM {s}gateway_subscriptions WHERE subscription_id = ?`,
	},
}

// Find returns the records that have an identifier.
func (l Ledger) Find(ctx context.Context, id string) (hits []Hit, err error) {
	for _, is := range lookups {
		key := id
		if is.lowerCase {
			key = strings.ToLower(id)
		}
		more, err := all(ctx, l, is.query, []any{key}, func(row database.Scanner, h *Hit) error {
			h.As, h.Kind = is.as, is.kind
			return row.Scan(&h.Account, &h.Record, &h.Subject)
		})
		if err != nil {
			return nil, err
		}
		hits = append(hits, more...)
	}
	return hits, nil
}

// SubjectOf returns the subject of a record by its kind and its ID, or [ErrNotFound].
func (l Ledger) SubjectOf(ctx context.Context, kind, id string) (string, error) {
	for _, is := range lookups {
		if is.kind != kind || is.as != kind {
			continue
		}
		var account, record, subject string
		found, err := l.first(ctx, is.query, []any{id}, &account, &record, &subject)
		if err != nil || found {
			return subject, err
		}
	}
	return "", notFound(kind, id)
}

// Request is the operation of a record.
type Request struct {
	Kind    string // as the outbox names it
	Account string
	Key     string
	Record  string
	Subject string
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
	{CreateTransaction, `SELECT account, ref AS key, id AS record, subject FROM {s}gateway_charges`},
	{RefundTransaction, `SELECT c.account AS account, r.id AS key, r.id AS record, c.subject AS subject
		FROM {s}gateway_refunds AS r JOIN {s}gateway_charges AS c ON c.id = r.charge`},
	{CreateTransfer, `SELECT account, ref AS key, id AS record, subject FROM {s}gateway_payouts`},
	{CreateCustomer, `SELECT account, ref AS key, id AS record, 'subscription/' || id AS subject FROM {s}gateway_subscriptions`},
	{CreateSubscription, `SELECT account, ref AS key, id AS record, 'subscription/' || id AS subject FROM {s}gateway_subscriptions`},
}

// RequestWhere selects requests. A member that is "" selects all.
type RequestWhere struct{ Account, Key, Record, Subject string }

// Requests returns the requests of records.
func (l Ledger) Requests(ctx context.Context, w RequestWhere) (found []Request, err error) {
	c := condition{text: `key IS NOT NULL`}
	c.equal("account", w.Account)
	c.equal("key", w.Key)
	c.equal("record", w.Record)
	c.equal("subject", w.Subject)
	for _, of := range requests {
		more, err := all(ctx, l, `SELECT account, key, record, subject FROM (`+of.query+`) AS q`+c.where(), c.args, func(row database.Scanner, r *Request) error {
			r.Kind = of.kind
			return row.Scan(&r.Account, &r.Key, &r.Record, &r.Subject)
		})
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}
