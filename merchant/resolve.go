package merchant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
)

// Decision is what a person decides about a [Problem]. Which decisions fit depends on its
// kind.
type Decision string

// The decisions.
const (
	// Applied: the gateway did what was requested. For a charge, Resolution.ResourceID is
	// the ID of its transaction.
	Applied Decision = "applied"

	// SendAgain: the gateway did not do it, so it is sent again. If it did after all,
	// money moves twice: look at the gateway's dashboard before.
	SendAgain Decision = "send_again"

	// Abandon: the gateway did not do it, and it is not sent again. The record fails or is
	// rejected.
	Abandon Decision = "abandon"

	// Accept: what was paid is enough. The order counts as paid.
	Accept Decision = "accept"

	// Retry: call back at once, handle the event once more, or store the outcome once
	// more.
	Retry Decision = "retry"

	// Dismiss: there is nothing left to do. An event is not handled any more.
	Dismiss Decision = "dismiss"
)

// decisions says which decisions fit a kind of problem, apart from Dismiss alone.
var decisions = map[ProblemKind][]Decision{
	ProblemAmbiguous: {Applied, SendAgain, Abandon},
	ProblemOutcome:   {Retry},
	ProblemCallback:  {Retry},
	ProblemEvent:     {Retry, Dismiss},
	ProblemUnderpaid: {Accept, Dismiss},
}

// Decisions returns the decisions that fit the problem's kind, for a page that offers them.
func (p *Problem) Decisions() []Decision {
	if fitting := decisions[p.Kind]; fitting != nil {
		return slices.Clone(fitting)
	}
	return []Decision{Dismiss}
}

// Resolution resolves a [Problem].
type Resolution struct {
	Decision   Decision
	ResourceID string // the ID of the created resource, if a create was Applied
	By         string // who decides; required, and stored for good
	Why        string // required, and stored for good
}

func (r *Resolution) validate() error {
	const op = "problems.resolve"
	switch {
	case strings.TrimSpace(r.By) == "":
		return invalid(op, "by", "is required: it says who decides")
	case strings.TrimSpace(r.Why) == "":
		return invalid(op, "why", "is required: it says why")
	case r.ResourceID != "" && r.Decision != Applied:
		return invalid(op, "resource_id", "must be empty unless the decision is applied")
	}
	return nil
}

// fit returns [ErrState], which names the decisions that fit, unless the resolution's does.
func (r *Resolution) fit(p *Problem) error {
	fitting := p.Decisions()
	if slices.Contains(fitting, r.Decision) {
		return nil
	}
	names := make([]string, len(fitting))
	for i, d := range fitting {
		names[i] = string(d)
	}
	return fmt.Errorf("%w: the decision about %s can be %s, not %q", ErrState, p.Kind, strings.Join(names, ", "), r.Decision)
}

// Resolve carries out a person's decision about a problem of [Merchant.Problems]. The
// decision is stored before it takes effect, and is shown by [Merchant.Story]. Requests,
// events and callbacks are repeated by [Merchant.Run].
//
// The error is [ErrNotFound] if no problem with the ID is open, [ErrState] if the decision
// does not fit its kind or state, [ErrAccount] if this process lacks its account,
// [operations.ErrMismatch] if the resource of a request that was [Applied] is another one,
// and [gateway.ErrValidation] if By, Why or ResourceID are wrong. After an error the
// problem is still open; a decision about a request or an event that failed is shown by
// [Merchant.Story] with the error.
func (m *core) Resolve(ctx context.Context, problem string, r Resolution) error {
	if err := r.validate(); err != nil {
		return err
	}
	place, id, _ := strings.Cut(problem, "/")
	account, key, _ := strings.Cut(id, "/")
	number, err := strconv.ParseInt(id, 10, 64)
	switch {
	case place == inProblems && err == nil:
		return m.resolveRow(ctx, number, &r)
	case place == inFacts && err == nil:
		return m.resolveCallback(ctx, number, &r)
	case place == inEvents:
		return m.resolveEvent(ctx, account, key, &r)
	case place == inOperations:
		if number, err = strconv.ParseInt(key, 10, 64); err == nil {
			return m.resolveOperation(ctx, account, number, &r)
		}
	}
	return notOpen(problem)
}

func notOpen(problem string) error {
	return fmt.Errorf("%w: no problem %s is open", ErrNotFound, problem)
}

// note stores a decision, and returns its number.
func (r *Resolution) note(ctx context.Context, c sqldb.Session, p *Problem, subject string) (id int64, err error) {
	_, err = c.Row(ctx, `INSERT INTO {s}gateway_notes (account, subject, record, problem, kind, decision, resource_id, decided_by, why, error, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', {now}) RETURNING id`,
		[]any{p.Account, subject, p.Record, p.ID, string(p.Kind), string(r.Decision), r.ResourceID, clean(r.By), clean(r.Why)}, &id)
	return id, err
}

// clean returns a text that every database can store.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// outside carries out a decision that takes effect in another transaction. The note is
// stored before, so that no effect is without one.
func (m *core) outside(ctx context.Context, p *Problem, subject string, r *Resolution, effect func() error) error {
	var note int64
	if err := m.db.Transaction(ctx, func(tx sqldb.Tx) (err error) {
		note, err = r.note(ctx, m.db.In(tx), p, subject)
		return err
	}); err != nil {
		return err
	}
	err := effect()
	if err == nil {
		return nil
	}
	_, noting := m.db.Conn().Exec(context.WithoutCancel(ctx), `UPDATE {s}gateway_notes SET error = ? WHERE id = ?`, clean(masking.Text(err.Error())), note)
	return errors.Join(err, noting)
}

// resolveRow resolves a problem with a row of its own.
func (m *core) resolveRow(ctx context.Context, id int64, r *Resolution) error {
	return m.db.Transaction(ctx, func(tx sqldb.Tx) error {
		c := m.db.In(tx)
		var subject string
		found, err := c.Row(ctx, `SELECT subject FROM {s}gateway_problems WHERE id = ?`, []any{id}, &subject)
		if err == nil && !found {
			err = notOpen(problemID(inProblems, strconv.FormatInt(id, 10)))
		}
		if err != nil {
			return err
		}
		d, err := m.open(ctx, tx, subject)
		if err != nil {
			return err
		}
		list, err := m.readProblems(ctx, c, `WHERE id = ? AND closed_at IS NULL AND kind <> ?`, id, string(ProblemAmbiguous))
		if err == nil && len(list) == 0 {
			err = notOpen(problemID(inProblems, strconv.FormatInt(id, 10)))
		}
		if err != nil {
			return err
		}
		p := list[0]
		if _, err := m.account(p.Account); err != nil {
			return err
		}
		if err := r.fit(p); err != nil {
			return err
		}
		if _, err := r.note(ctx, c, p, subject); err != nil {
			return err
		}
		if r.Decision == Accept {
			if err := d.accept(ctx, p.Record); err != nil {
				return err
			}
			// What was paid before it was even less.
			_, err := c.Exec(ctx, `UPDATE {s}gateway_problems SET closed_at = {now} WHERE subject = ? AND record = ? AND account = ? AND kind = ? AND closed_at IS NULL`,
				subject, p.Record, p.Account, string(p.Kind))
			return err
		}
		return c.Must(ctx, `UPDATE {s}gateway_problems SET closed_at = {now} WHERE id = ?`, id)
	})
}

// accept counts what was paid of a charge as enough.
func (d *desk) accept(ctx context.Context, charge string) error {
	if err := d.load(ctx, charge); err != nil {
		return err
	}
	if state := d.charge.Books.State; state != Underpaid {
		return fmt.Errorf("%w: charge %s is %s, not underpaid", ErrState, charge, state)
	}
	if err := d.change(ctx, func(b books.Books) (books.Books, books.Result) { return books.Accept(b, d.now) }); err != nil {
		return err
	}
	return d.save(ctx)
}

// resolveCallback makes a callback due that has failed often.
func (m *core) resolveCallback(ctx context.Context, seq int64, r *Resolution) error {
	err := m.db.Transaction(ctx, func(tx sqldb.Tx) error {
		c := m.db.In(tx)
		p := &Problem{ID: problemID(inFacts, strconv.FormatInt(seq, 10)), Kind: ProblemCallback}
		var subject string
		found, err := c.Row(ctx, `SELECT account, subject, record FROM {s}gateway_facts WHERE seq = ? AND delivered_at IS NULL AND attempts >= ? {lock}`,
			[]any{seq, failedOften}, &p.Account, &subject, &p.Record)
		if err == nil && !found {
			err = notOpen(p.ID)
		}
		if err == nil {
			_, err = m.account(p.Account)
		}
		if err == nil {
			err = r.fit(p)
		}
		if err == nil {
			_, err = r.note(ctx, c, p, subject)
		}
		if err != nil {
			return err
		}
		return c.Must(ctx, `UPDATE {s}gateway_facts SET due_at = {now} WHERE seq = ?`, seq)
	})
	if err == nil {
		m.wake()
	}
	return err
}

// resolveEvent handles a dead letter again, or discards it.
func (m *core) resolveEvent(ctx context.Context, name, key string, r *Resolution) error {
	id := problemID(inEvents, name, key)
	a, err := m.account(name)
	if err != nil {
		return err
	}
	letter, err := a.letter(ctx, key)
	if err != nil {
		return err
	}
	p, subject, err := a.letterProblem(ctx, m.db.Conn(), letter)
	if err == nil {
		err = r.fit(p)
	}
	if err != nil {
		return err
	}
	return m.outside(ctx, p, subject, r, func() error {
		do := a.receiver.Requeue
		if r.Decision == Dismiss {
			do = a.receiver.Discard
		}
		n, err := do(ctx, key)
		if err == nil && n == 0 {
			err = notOpen(id)
		}
		return err
	})
}

// letter returns a dead letter, or [ErrNotFound].
func (a *account) letter(ctx context.Context, key string) (letter *webhook.DeadLetter, err error) {
	err = a.letters(ctx, func(l *webhook.DeadLetter) (bool, error) {
		if l.Key == key {
			letter = l
		}
		return letter == nil, nil
	})
	if err == nil && letter == nil {
		err = notOpen(problemID(inEvents, a.Name, key))
	}
	return letter, err
}

// stuck returns a request that waits for a person, or [ErrNotFound].
func (a *account) stuck(ctx context.Context, id int64) (*operations.Entry, error) {
	list, err := a.outbox.List(ctx, operations.Query{States: undecided, After: id - 1, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || list[0].ID != id {
		return nil, notOpen(problemID(inOperations, a.Name, strconv.FormatInt(id, 10)))
	}
	return list[0], nil
}

// resolveOperation decides about a request that waits for a person.
func (m *core) resolveOperation(ctx context.Context, name string, id int64, r *Resolution) error {
	a, err := m.account(name)
	if err != nil {
		return err
	}
	e, err := a.stuck(ctx, id)
	if err != nil {
		return err
	}
	of, err := m.requestOf(ctx, m.db.Conn(), e)
	if err != nil {
		return err
	}
	p := operationProblem(e, of)
	if err := r.fit(p); err != nil {
		return err
	}
	if r.Decision == Applied && e.Resource == "" && r.ResourceID == "" {
		return invalid("problems.resolve", "resource_id", "is required: it is the ID of the resource that the gateway created")
	}
	if err := m.outside(ctx, p, of.subject, r, func() error { return a.decide(ctx, id, r) }); err != nil {
		return err
	}
	m.followUp(ctx, of)
	return nil
}

// decide passes a decision to the outbox.
func (a *account) decide(ctx context.Context, id int64, r *Resolution) (err error) {
	decision := map[Decision]operations.Decision{Applied: operations.Applied, SendAgain: operations.SendAgain, Abandon: operations.Abandoned}[r.Decision]
	if r.Decision == Retry {
		err = a.outbox.Retry(ctx, id)
	} else {
		err = a.outbox.Resolve(ctx, id, operations.Resolution{Decision: decision, ResourceID: r.ResourceID, By: clean(r.By + ": " + r.Why)})
	}
	switch {
	case errors.Is(err, operations.ErrState):
		return fmt.Errorf("%w: %w", ErrState, err)
	case errors.Is(err, operations.ErrNotFound):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

// followUp shows a decision in the record at once; otherwise the next comparison does.
func (m *core) followUp(ctx context.Context, of request) {
	charge := of.record
	switch of.kind {
	case kindCharge:
	case kindRefund:
		list, err := readRefunds(ctx, m.db.Conn(), `WHERE r.id = ?`, of.record)
		if err != nil || len(list) == 0 {
			return
		}
		charge = list[0].charge
	default:
		return
	}
	ch, err := m.readCharge(ctx, m.db.Conn(), charge)
	if err == nil {
		err = m.sync(ctx, ch)
	}
	if err != nil {
		m.fail(ctx, "a decision is not shown in its record yet", err)
	}
}
