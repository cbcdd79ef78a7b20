package ledger

import (
	"context"
	"strings"
	"time"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// Kind is a kind of records that are compared with the gateway.
type Kind string

// The kinds. Their order is that of a comparison of all.
const (
	Charges       Kind = "charge"
	Payouts       Kind = "payout"
	Subscriptions Kind = "subscription"
)

// Kinds lists the kinds.
var Kinds = []Kind{Charges, Payouts, Subscriptions}

// Row is what charges, payouts and subscriptions have in common.
type Row struct {
	Kind     Kind
	ID       string
	Account  string
	Subject  Subject
	Attempt  int    // of a charge
	Ref      string // the external_ref, "" if the gateway made the resource
	Resource string // the gateway's ID in lower case, "" before it is known
	EndToEnd string // of a Pix charge, in lower case
	Params   string // of a subscription, the request for it until its customer exists
	State    books.State
	Created  time.Time
	Record   string
	ErasedAt int64 // since when it keeps nothing of its buyer, in ms since 1970; 0 if it does
	Buyer    int64 // of a charge: [BuyerStored] or [BuyerUnknown], 0 before

	// Made is when the resource of a new row was made, in ms since 1970; 0 if that is now. It is
	// not read.
	Made int64
}

// table is what differs between the tables. An expression is constant where the table has no
// such column.
type table struct {
	name     string
	resource string // the column with the gateway's ID
	selected string // the columns of a Row after its kind, in the order of its members
	inserted string
}

var tables = map[Kind]table{
	Charges: {
		"{s}gateway_charges", "transaction_id",
		`id, account, book, subject, attempt, COALESCE(ref, ''), COALESCE(transaction_id, ''), COALESCE(end_to_end_id, ''), '',
			state, created_at, record, COALESCE(erased_at, 0), buyer`,
		`id, account, book, subject, attempt, ref, transaction_id, end_to_end_id, state, record, buyer, erased_at`,
	},
	Payouts: {
		"{s}gateway_payouts", "transfer_id",
		`id, account, book, subject, 0, ref, COALESCE(transfer_id, ''), '', '', state, created_at, record,
			COALESCE(erased_at, 0), 0`,
		`id, account, book, subject, ref, transfer_id, state, record, erased_at`,
	},
	Subscriptions: {
		"{s}gateway_subscriptions", "subscription_id",
		`id, account, book, '` + subscription + `' || id, 0, ref, COALESCE(subscription_id, ''), '', params, state, created_at, record,
			COALESCE(erased_at, 0), 0`,
		`id, account, book, ref, subscription_id, params, state, record, erased_at`,
	},
}

// Where selects rows by columns that have an index. A member that is "" selects all.
type Where struct {
	Book, ID, Account, Ref, Resource string

	Subject Subject
	State   books.State
}

func (w *Where) condition(k Kind) (c condition) {
	switch {
	case k != Subscriptions:
		c.subject(w.Subject)
	case w.Subject != (Subject{}):
		c.add(`book = ? AND id = ?`, w.Subject.Book, SubscriptionID(w.Subject))
	}
	c.equal("book", w.Book)
	c.equal("id", w.ID)
	c.equal("account", w.Account)
	c.equal("ref", w.Ref)
	c.equal(tables[k].resource, strings.ToLower(w.Resource))
	c.equal("state", string(w.State))
	return c
}

// byAge orders the rows of a subject, the oldest first.
func byAge(k Kind) string {
	if k == Charges {
		return ` ORDER BY subject, book, attempt`
	}
	return ` ORDER BY created_at, book, id`
}

// Rows returns rows, those of a subject the oldest first.
func (l Ledger) Rows(ctx context.Context, k Kind, w Where) ([]Row, error) {
	c := w.condition(k)
	return l.rows(ctx, k, c.where()+byAge(k), c.args)
}

// Row returns a row by its ID in a book, or [ErrNotFound].
func (l Ledger) Row(ctx context.Context, k Kind, book, id string) (*Row, error) {
	rows, err := l.rows(ctx, k, ` WHERE book = ? AND id = ?`, []any{book, id})
	if err == nil && len(rows) == 0 {
		err = notFound(string(k), id)
	}
	if err != nil {
		return nil, err
	}
	return &rows[0], nil
}

// Match returns the row of a resource by its ID at the gateway or, if none has it, by its
// reference. It is nil if there is none.
func (l Ledger) Match(ctx context.Context, k Kind, account, resource, ref string) (*Row, error) {
	resource = strings.ToLower(resource)
	column := tables[k].resource
	rows, err := l.rows(ctx, k, ` WHERE account = ? AND (`+column+` = ? OR ref = ?) ORDER BY CASE WHEN `+column+` = ? THEN 0 ELSE 1 END`,
		[]any{account, resource, ref, resource})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// Charge returns the row of a charge, or [ErrNotFound]: its ID is unique in all books.
func (l Ledger) Charge(ctx context.Context, id string) (*Row, error) {
	rows, err := l.rows(ctx, Charges, ` WHERE id = ?`, []any{id})
	if err == nil && len(rows) == 0 {
		err = notFound(string(Charges), id)
	}
	if err != nil {
		return nil, err
	}
	return &rows[0], nil
}

// RowsOf returns the rows with some IDs in a book. Only the IDs can be looked up in an index.
func (l Ledger) RowsOf(ctx context.Context, k Kind, book string, ids []string) ([]Row, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	in, args := list(ids)
	return l.rows(ctx, k, ` WHERE book || '' = ? AND id IN `+in, append([]any{book}, args...))
}

func (l Ledger) rows(ctx context.Context, k Kind, where string, args []any) ([]Row, error) {
	t := tables[k]
	return all(ctx, l, `SELECT `+t.selected+` FROM `+t.name+where, args, func(row database.Scanner, r *Row) error {
		var created int64
		r.Kind = k
		err := row.Scan(&r.ID, &r.Account, &r.Subject.Book, &r.Subject.ID, &r.Attempt, &r.Ref, &r.Resource, &r.EndToEnd, &r.Params, &r.State,
			&created, &r.Record, &r.ErasedAt, &r.Buyer)
		r.Created = time.UnixMilli(created)
		return err
	})
}

// values returns the columns of table.inserted.
func (r *Row) values() []any {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	erased := nullTime(r.ErasedAt)
	switch r.Kind {
	case Charges:
		return []any{
			r.ID, r.Account, r.Subject.Book, r.Subject.ID, r.Attempt, null(r.Ref), null(r.Resource), null(r.EndToEnd), string(r.State), r.Record,
			r.Buyer, erased,
		}
	case Payouts:
		return []any{r.ID, r.Account, r.Subject.Book, r.Subject.ID, r.Ref, null(r.Resource), string(r.State), r.Record, erased}
	default:
		return []any{r.ID, r.Account, r.Subject.Book, r.Ref, null(r.Resource), r.Params, string(r.State), r.Record, erased}
	}
}

// Add returns the statement that stores a new row. taken is the error if its ID or its
// reference is taken.
func (r *Row) Add(taken error) Write {
	t, values := tables[r.Kind], r.values()
	return Write{
		SQL: `INSERT INTO ` + t.name + ` (` + t.inserted + `, created_at) VALUES (?` + strings.Repeat(`, ?`, len(values)-1) + `,
			COALESCE(NULLIF(CAST(? AS bigint), 0), {now})) ON CONFLICT DO NOTHING`,
		Args: append(values, r.Made), Taken: taken,
	}
}

// Remove returns the statements that remove a row which this transaction has added, and its
// next comparison.
func (r *Row) Remove() []Write {
	return []Write{
		{SQL: `DELETE FROM ` + tables[r.Kind].name + ` WHERE book = ? AND id = ?`, Args: []any{r.Subject.Book, r.ID}, Any: true},
		r.Schedule(Plan{Never: true}),
	}
}

// Save returns the statement that stores a changed row. Its ID, account, book, subject and
// reference never change.
func (r *Row) Save() Write {
	set := map[Kind]string{
		Charges:       `transaction_id = NULLIF(?, ''), end_to_end_id = NULLIF(?, ''), buyer = ?, state = ?, record = ?, erased_at = ?`,
		Payouts:       `transfer_id = NULLIF(?, ''), state = ?, record = ?, erased_at = ?`,
		Subscriptions: `subscription_id = NULLIF(?, ''), params = ?, state = ?, record = ?, erased_at = ?`,
	}
	args := map[Kind][]any{
		Charges: {r.Resource, r.EndToEnd, r.Buyer}, Payouts: {r.Resource}, Subscriptions: {r.Resource, r.Params},
	}
	return Write{
		SQL:  `UPDATE ` + tables[r.Kind].name + ` SET ` + set[r.Kind] + ` WHERE book = ? AND id = ?`,
		Args: append(args[r.Kind], string(r.State), r.Record, nullTime(r.ErasedAt), r.Subject.Book, r.ID),
	}
}

// nullTime returns a time as it is stored, NULL if it is 0.
func nullTime(ms int64) any {
	if ms == 0 {
		return nil
	}
	return ms
}
