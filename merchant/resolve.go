package merchant

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
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
	Why        string // required, and stored until the record is erased, see [Merchant.Erase]
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
// problem is still open, unless that is [ErrMaybeStored]: then call it again, and
// [ErrNotFound] or [ErrState] means that the decision was carried out. A decision about a
// request or an event that failed is shown by [Merchant.Story] with the error.
func (m *core) Resolve(ctx context.Context, problem string, r Resolution) error {
	if err := r.validate(); err != nil {
		return err
	}
	place, id, _ := strings.Cut(problem, "/")
	account, key, _ := strings.Cut(id, "/")
	number, err := strconv.ParseInt(id, 10, 64)
	switch {
	case place == inProblems && err == nil && number > 0:
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

// note returns the decision about a problem as it is stored by a call.
func (r *Resolution) note(p *Problem, subject ledger.Subject, call string) *ledger.Note {
	return &ledger.Note{
		Account: p.Account, Subject: subject, Record: p.Record, Problem: p.ID, Kind: string(p.Kind), Decision: string(r.Decision),
		Resource: r.ResourceID, By: r.By, Why: r.Why, Call: call,
	}
}

// elsewhere carries out a decision that takes effect in another transaction. The note is
// stored before, so that no effect is without one.
func (m *core) elsewhere(ctx context.Context, note *ledger.Note, effect func(ctx context.Context, again bool) error) error {
	if err := m.noted(ctx, note.Call, func(ctx context.Context, tx sqldb.Tx) error {
		_, err := m.ledger(tx).AddNote(ctx, note)
		return err
	}); err != nil {
		return err
	}
	err := sure(ctx, effect)
	if err == nil {
		return nil
	}
	return errors.Join(err, m.outside().FailNote(context.WithoutCancel(ctx), note.Call, masking.Text(err.Error())))
}

// resolveRow resolves a problem with a row of its own.
func (m *core) resolveRow(ctx context.Context, id int64, r *Resolution) error {
	call := rand.Text()
	return m.noted(ctx, call, func(ctx context.Context, tx sqldb.Tx) error {
		l := m.ledger(tx)
		open := func() (*ledger.Problem, error) {
			list, err := l.Problems(ctx, ledger.ProblemWhere{ID: id, Open: true, Not: ProblemAmbiguous})
			if err == nil && len(list) == 0 {
				err = notOpen(problemID(inProblems, strconv.FormatInt(id, 10)))
			}
			if err != nil {
				return nil, err
			}
			return &list[0], nil
		}
		row, err := open()
		if err != nil {
			return err
		}
		if _, err := m.account(row.Account); err != nil {
			return err
		}
		at := place{subject: row.Subject, charges: r.Decision == Accept}
		if ledger.SubscriptionID(row.Subject) != "" {
			at.charges = false
		}
		return m.on(ctx, tx, at, func(b *bench) error {
			if row, err = open(); err != nil { // under the lock
				return err
			}
			p := problemOf(row)
			if err := r.fit(p); err != nil {
				return err
			}
			if _, err := l.AddNote(ctx, r.note(p, row.Subject, call)); err != nil {
				return err
			}
			if r.Decision == Accept {
				return b.accept(p.Record)
			}
			b.closes = append(b.closes, id)
			return nil
		})
	})
}

// accept counts what was paid of a charge as enough. What was paid before it was even less.
func (b *bench) accept(id string) error {
	ch, err := b.charge(id)
	if err != nil {
		return err
	}
	if state := ch.Books.State; state != Underpaid {
		return fmt.Errorf("%w: charge %s is %s, not underpaid", ErrState, id, state)
	}
	b.change(ch, func(is books.Books) (books.Books, books.Result) { return books.Accept(is, b.now) })
	return nil
}

// resolveCallback makes a callback due that has failed often.
func (m *core) resolveCallback(ctx context.Context, seq int64, r *Resolution) error {
	call := rand.Text()
	err := m.noted(ctx, call, func(ctx context.Context, tx sqldb.Tx) error {
		l := m.ledger(tx)
		p := &Problem{ID: problemID(inFacts, strconv.FormatInt(seq, 10)), Kind: ProblemCallback}
		account, subject, record, err := l.Again(ctx, seq, failedOften)
		if errors.Is(err, ledger.ErrNotFound) {
			err = notOpen(p.ID)
		}
		p.Account, p.Record = account, record
		if err == nil {
			_, err = m.account(account)
		}
		if err == nil {
			err = r.fit(p)
		}
		if err == nil {
			_, err = l.AddNote(ctx, r.note(p, subject, call))
		}
		return err
	})
	if err == nil {
		signal(m.due)
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
	p, subject, err := a.letterProblem(ctx, m.outside(), letter)
	if err == nil {
		err = r.fit(p)
	}
	if err != nil {
		return err
	}
	return m.elsewhere(ctx, r.note(p, subject, rand.Text()), func(ctx context.Context, again bool) error {
		do := a.receiver.Requeue
		if r.Decision == Dismiss {
			do = a.receiver.Discard
		}
		switch n, err := do(ctx, key); {
		case err != nil: // the statement is a transaction of its own
			return dbms.Committed(err)
		case n == 0 && !again:
			return notOpen(id)
		}
		return nil
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
	list, err := a.requests.List(ctx, operations.Query{States: undecided, After: id - 1, Limit: 1})
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
	of, err := m.requestOf(ctx, m.outside(), e)
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
	if err := m.elsewhere(ctx, r.note(p, of.Subject, rand.Text()), func(ctx context.Context, again bool) error {
		err := a.decide(ctx, id, r)
		if again && errors.Is(err, ErrState) { // it may be so because of the decision itself
			return a.decided(ctx, e, r, err)
		}
		return err
	}); err != nil {
		return err
	}
	m.followUp(ctx, of)
	return nil
}

// inOutbox are the decisions as the outbox names them.
var inOutbox = map[Decision]operations.Decision{Applied: operations.Applied, SendAgain: operations.SendAgain, Abandon: operations.Abandoned}

// decide passes a decision to the outbox.
func (a *account) decide(ctx context.Context, id int64, r *Resolution) (err error) {
	if r.Decision == Retry {
		err = a.outbox.Retry(ctx, id)
	} else {
		err = a.outbox.Resolve(ctx, id, operations.Resolution{Decision: inOutbox[r.Decision], ResourceID: r.ResourceID, By: ledger.Clean(r.By + ": " + r.Why)})
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
func (m *core) followUp(ctx context.Context, of ledger.Request) {
	id := of.Record
	var err error
	switch of.Kind {
	case kindCharge:
	case kindRefund:
		r, failed := showRefund(ctx, m.outside(), of.Subject.Book, of.Record)
		if r == nil {
			return
		}
		id, err = r.Charge, failed
	default:
		return
	}
	var ch *charge
	if err == nil {
		ch, err = m.loadCharge(ctx, m.outside(), id)
	}
	if err == nil {
		_, err = m.chargeNow(ctx, ch)
	}
	if err != nil {
		m.fail(ctx, "a decision is not shown in its record yet", err)
	}
}
