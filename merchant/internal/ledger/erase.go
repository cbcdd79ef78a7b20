package ledger

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// Erased is the decision of a note about an erasure, which is kept.
const Erased = "erase"

// Operation names an operation in the outbox.
type Operation struct{ Account, Kind, Key string }

// Resource is a resource of the gateway that a record has.
type Resource struct {
	Account string
	Kind    Kind // of the record
	ID      string
}

// event is how events name the resource.
func (r *Resource) event() string { return families[r.Kind] + "/" + r.ID }

// Erasure is what is stored of the records of a subject, or of one of its payouts, beside the
// records.
type Erasure struct {
	Subject    Subject
	Owned      []Owned // what it is to buyers
	Payout     string  // of an order, if it is the only one that is erased
	Operations []Operation
	Resources  []Resource

	// Plain are the kinds of problems whose texts have IDs, amounts and states alone.
	Plain []books.ProblemKind

	// Adoption returns what stays of the request for an adoption.
	Adoption func(request string) (string, error)
}

// WaitsFor returns what is not done yet of what is to be erased, "" if all is.
func (l Ledger) WaitsFor(ctx context.Context, e *Erasure) (what string, err error) {
	for _, o := range e.Operations {
		var state string
		found, err := l.first(ctx, `SELECT state FROM {s}gateway_operations WHERE account = ? AND kind = ? AND key = ?
			AND state || '' NOT IN ('done', 'canceled')`, []any{o.Account, o.Kind, o.Key}, &state)
		if err != nil {
			return "", err
		}
		if found {
			return fmt.Sprintf("the request %s %s is %s: wait for its outcome or, if it is a problem, resolve it", o.Kind,
				o.Key, state), nil
		}
	}
	var callback string
	waits := `SELECT callback FROM {s}gateway_facts WHERE book = ? AND subject = ? AND (delivered_at + 0) IS NULL`
	args := []any{e.Subject.Book, e.Subject.ID}
	if e.Payout != "" {
		waits, args = waits+` AND record = ? AND callback = 'payout'`, append(args, e.Payout)
	}
	if found, err := l.first(ctx, waits+` ORDER BY subject, book, stream, seq LIMIT 1`, args, &callback); err != nil ||
		found {
		return fmt.Sprintf("the callback %s waits: let Run deliver it; it gives up one that is nil in each process after an hour",
			callback), err
	}
	for i := range e.Resources {
		r := &e.Resources[i]
		for _, state := range l.unhandled() {
			found, err := l.first(ctx,
				`SELECT 1 FROM {s}gateway_webhook_events WHERE account = ? AND resource = ? AND `+state+` LIMIT 1`,
				[]any{r.Account, r.event()}, new(int))
			if err != nil || found {
				return fmt.Sprintf("an event about %s is not handled yet: let Run handle it", r.event()), err
			}
		}
	}
	return "", nil
}

// unhandled are the conditions of the events that wait, and of those that are being handled. Each
// is that of an index.
func (l Ledger) unhandled() []string {
	if l.s.Dialect() == database.DialectPostgres {
		return []string{`state = 2`, `state + 0 = 1 AND resource <> ''`}
	}
	return []string{`state = 2`, `state = 1`}
}

// Erase erases what is stored beside the records: what it leaves is what may stay. It returns the
// resources about which events were given up that no handler could handle.
func (l Ledger) Erase(ctx context.Context, e *Erasure) (given []Resource, err error) {
	for _, o := range e.Operations {
		if err := l.EraseOperation(ctx, o); err != nil {
			return nil, err
		}
	}
	for _, r := range e.Resources {
		n, err := l.eraseEvents(ctx, &r)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			given = append(given, r)
		}
		if _, err := l.s.Exec(ctx, `DELETE FROM {s}gateway_unknown WHERE account = ? AND family = ? AND id = ?`,
			r.Account, families[r.Kind], r.ID); err != nil {
			return nil, err
		}
		if err := l.eraseAdoptions(ctx, e, `resource = ? AND kind = ? AND account = ?`, r.ID, string(r.Kind),
			r.Account); err != nil {
			return nil, err
		}
	}
	for _, o := range e.Owned {
		if _, err := l.s.Exec(ctx, `DELETE FROM {s}gateway_buyers WHERE record = ? AND kind = ? AND book = ?`,
			o.Record, o.Kind, o.Book); err != nil {
			return nil, err
		}
	}
	return given, l.eraseTexts(ctx, e)
}

// eraseTexts erases what was written about the records.
func (l Ledger) eraseTexts(ctx context.Context, e *Erasure) error {
	of, args := ` WHERE subject = ? AND book = ?`, []any{e.Subject.ID, e.Subject.Book}
	about := ``
	if e.Payout != "" {
		of, args, about = of+` AND record = ?`, append(args, e.Payout), ` AND about = 'payout'`
	} else if err := l.eraseAdoptions(ctx, e, `subject = ? AND book = ?`, args...); err != nil {
		return err
	}
	plain, kinds := list(e.Plain)
	for _, one := range []Write{
		{
			SQL: `UPDATE {s}gateway_problems SET text = 'erased'` + of + about + ` AND text <> 'erased' AND kind NOT IN ` +
				plain, Args: kinds,
		},
		{
			SQL: `UPDATE {s}gateway_notes SET why = 'erased', error = ''` + of + ` AND (why <> 'erased' OR error <> '')
				AND decision <> '` + Erased + `'`,
		},
		{SQL: `UPDATE {s}gateway_facts SET error = ''` + of + ` AND error <> ''`},
	} {
		if _, err := l.s.Exec(ctx, one.SQL, append(append([]any(nil), args...), one.Args...)...); err != nil {
			return err
		}
	}
	return nil
}

// EraseOperation erases what is left of an operation that has ended: the digest of its params, and
// the texts of its history. It is recognized by its key alone.
func (l Ledger) EraseOperation(ctx context.Context, o Operation) error {
	const ended = ` WHERE account = ? AND kind = ? AND key = ? AND state IN ('done', 'canceled')`
	key := []any{o.Account, o.Kind, o.Key}
	var progress string
	found, err := l.first(ctx, `SELECT CAST(progress AS TEXT) FROM {s}gateway_operations`+ended, key, &progress)
	if err != nil || !found {
		return err
	}
	var kept struct {
		Sends int `json:"sends,omitzero"`
	}
	if err := json.Unmarshal([]byte(progress), &kept); err != nil {
		return fmt.Errorf("merchant: the progress of %s %s can't be decoded: %w", o.Kind, o.Key, err)
	}
	left, err := json.Marshal(&kept)
	if err != nil {
		return err
	}
	_, err = l.s.Exec(ctx, `UPDATE {s}gateway_operations SET params = 'null', digest = '', progress = {json}`+ended+`
			AND COALESCE(digest, '-') <> ''`,
		append([]any{string(left)}, key...)...)
	return err
}

// eraseEvents erases what is stored of the events of a resource, and gives up those that can't be
// handled: it returns how many.
func (l Ledger) eraseEvents(ctx context.Context, r *Resource) (given int64, err error) {
	for _, state := range []string{`state = 4`, `state = 5`} {
		n, err := l.s.Exec(ctx, `UPDATE {s}gateway_webhook_events SET state = 3, since = {now}, position = 0, body = NULL, confirmed = NULL,
			reason = '', digest = '' WHERE resource = ? AND `+state, r.event())
		if given += n; err != nil {
			return given, err
		}
	}
	_, err = l.s.Exec(ctx, `UPDATE {s}gateway_webhook_events SET digest = '', reason = '', body = NULL, confirmed = NULL
		WHERE resource = ? AND state = 3 AND digest <> ''`, r.event())
	return given, err
}

// eraseAdoptions erases what is stored of adoptions that have ended.
func (l Ledger) eraseAdoptions(ctx context.Context, e *Erasure, where string, args ...any) error {
	list, err := l.adoptions(ctx, ` WHERE `+where+` AND state <> 'waiting'`, args...)
	for i := range list {
		a := &list[i]
		request, err := e.Adoption(a.Request)
		if err != nil {
			return err
		}
		if request == a.Request && a.Error == "" {
			continue
		}
		if _, err := l.s.Exec(ctx,
			`UPDATE {s}gateway_adoptions SET request = ?, error = '' WHERE resource = ? AND kind = ? AND account = ?`,
			request, a.Resource, string(a.Kind), a.Account); err != nil {
			return err
		}
	}
	return err
}
