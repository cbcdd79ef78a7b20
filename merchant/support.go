package merchant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
)

// Hit is a record that has an identifier.
type Hit struct {
	As      string // what the identifier is: "order", "charge", "transaction", "end_to_end", "refund", "payout", "transfer", "subscription" or "gateway_subscription"
	Kind    string // of the record: "order", "charge", "refund", "payout" or "subscription"
	Book    string // see [Account]
	Account string // "" for an order, which may have charges of several accounts
	Record  string // the ID of the record
	Order   string // the ID of its order, "" if it belongs to none
}

// Find returns the records that have an identifier: the ID of an order, refund, payout or
// subscription, the ID of a charge, which is its external_ref, the gateway's ID of a
// transaction, transfer or subscription, or the end-to-end ID of a Pix. The case of the gateway's IDs does not matter. The list is empty
// if there is no such record.
func (m *reading) Find(ctx context.Context, id string) (hits []Hit, err error) {
	found, err := m.outside().Find(ctx, m.books(), id)
	for _, h := range found {
		hits = append(hits, Hit{As: h.As, Kind: h.Kind, Book: h.Subject.Book, Account: h.Account, Record: h.Record, Order: ledger.OrderID(h.Subject)})
	}
	return hits, err
}

// The kinds of operations, as the outbox names them.
const (
	kindCharge    = ledger.CreateTransaction
	kindRefund    = ledger.RefundTransaction
	kindPayout    = ledger.CreateTransfer
	kindCustomer  = ledger.CreateCustomer
	kindSubscribe = ledger.CreateSubscription
	kindCancel    = "subscriptions.cancel"
)

// requestOf returns the request of an operation. Without a record its key is all that is
// known.
func (m *reading) requestOf(ctx context.Context, l ledger.Ledger, e *operations.Entry) (ledger.Request, error) {
	list, err := l.Requests(ctx, ledger.RequestWhere{Account: e.Account, Key: e.Key})
	if err != nil {
		return ledger.Request{}, err
	}
	if i := slices.IndexFunc(list, func(r ledger.Request) bool { return r.Kind == e.Kind }); i >= 0 {
		return list[i], nil
	}
	of := ledger.Subject{Book: m.anyAccount(e.Account, "").Book}
	return ledger.Request{Kind: e.Kind, Account: e.Account, Key: e.Key, Record: e.Key, Subject: of}, nil
}

// ProblemKind says what a person must decide or look at.
type ProblemKind = books.ProblemKind

// The kinds of problems, with the decisions that fit besides [Dismiss], which fits where
// nothing else is said.
const (
	// ProblemAmbiguous: it can't be determined whether the gateway did what was
	// requested. [Applied], [SendAgain] or [Abandon], and not [Dismiss].
	ProblemAmbiguous = books.IsAmbiguous

	// ProblemOutcome: the outcome of a request is known, but could not be stored. [Retry],
	// and not [Dismiss].
	ProblemOutcome ProblemKind = "outcome"

	// ProblemCallback: a callback has failed at least five times. It is repeated, and
	// later callbacks of the order wait for it. [Retry], and not [Dismiss].
	ProblemCallback ProblemKind = "callback"

	// ProblemEvent: a webhook event could not be handled and is not repeated. [Retry].
	ProblemEvent ProblemKind = "dead_letter"

	// ProblemUnderpaid: less than requested was paid, or in another currency. [Accept].
	ProblemUnderpaid = books.IsUnderpaid

	ProblemPaidAgain     = books.IsPaidAgain    // a payment that the order did not need, see [Callbacks.PaidAgain]
	ProblemUnknownState  = books.IsUnknownState // the gateway reports a status that this release does not know
	ProblemUnmatched     = books.IsUnmatched    // the gateway's resource is not that of the record
	ProblemContested     = books.IsContested    // a dispute is contested: whether the money is withheld meanwhile is not known
	ProblemContradiction = books.IsContradicted // the gateway reports what can't be true
	ProblemLower         = books.IsLower        // for a day the gateway has reported less than is booked
	ProblemCurrency      = books.IsForeign      // money in another currency than the order's, which is not in its sums
	ProblemReversed      = books.IsReversed     // a payout ended twice, differently
	ProblemOverpaid      = books.IsOverpaid     // more was paid than requested, and it is no interest
	ProblemClosed        = books.IsClosed       // an order was paid, and closed before [Callbacks.Goods] said that its goods are owed
	ProblemMissing       = isMissing            // for a day the gateway has not found what it made

	ProblemCancelRejected = isCancelRejected // a cancellation was rejected: the subscription is still charged

	// ProblemAdoption: what other code made could not be adopted. Adopt it once more, as it is
	// right.
	ProblemAdoption = isAdoption

	// ProblemRefundRejected: a refund was rejected, and there is no
	// [Callbacks.RefundRejected]: the money is still with you. Refund with another ID.
	ProblemRefundRejected ProblemKind = "refund_rejected"
)

// Problem is something that a person must decide or look at.
type Problem struct {
	ID      string // for [Merchant.Resolve]
	Book    string // see [Account]
	Account string
	Order   string // "" if none is known
	Record  string // the ID of a charge, refund, payout or subscription, "" if none is known
	Kind    ProblemKind
	Text    string // without personal data
	Since   time.Time

	Subscription string // the ID of the subscription that it is about; then Order is ""
}

// The first parts of the IDs of problems say where they are.
const (
	inProblems   = "problem"   // and the number of a row
	inFacts      = "callback"  // and the number of a fact
	inEvents     = "event"     // the account, and the key of an event
	inOperations = "operation" // the account, and the number of an operation
)

func problemID(parts ...string) string { return strings.Join(parts, "/") }

// failedOften is the number of failures that make a callback a problem.
const failedOften = 5

// Problems lists what needs a person in the accounts of this process, the oldest first.
// Alert if the list is not empty. A problem stays on it until [Merchant.Resolve] ends it, or
// until it no longer holds: the rest is paid, a callback succeeds, the gateway shows a refund
// after all.
func (m *reading) Problems(ctx context.Context) ([]*Problem, error) {
	l := m.outside()
	// The outbox says what is ambiguous: it knows it first, and until it is resolved.
	rows, err := l.Problems(ctx, ledger.ProblemWhere{Open: true, Accounts: m.names(), Not: ProblemAmbiguous})
	if err != nil {
		return nil, err
	}
	list := problemsOf(rows)
	callbacks, err := l.Failing(ctx, failedOften, ledger.FailingWhere{Accounts: m.names()})
	if err != nil {
		return nil, err
	}
	list = append(list, callbackProblems(callbacks)...)
	for _, read := range []func(context.Context, ledger.Ledger) ([]*Problem, error){m.deadLetters, m.stuckOperations} {
		more, err := read(ctx, l)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	slices.SortStableFunc(list, byAge)
	return list, nil
}

func byAge(a, b *Problem) int { return a.Since.Compare(b.Since) }

func problemsOf(rows []ledger.Problem) []*Problem {
	list := make([]*Problem, len(rows))
	for i := range rows {
		list[i] = problemOf(&rows[i])
	}
	return list
}

func problemOf(row *ledger.Problem) *Problem {
	return &Problem{
		ID: problemID(inProblems, strconv.FormatInt(row.ID, 10)), Book: row.Subject.Book, Account: row.Account, Order: ledger.OrderID(row.Subject),
		Subscription: ledger.SubscriptionID(row.Subject), Record: row.Record, Kind: row.Kind, Text: row.Text, Since: row.Since,
	}
}

// reported makes the problem of an ambiguous request the one that [Merchant.Problems]
// lists: its truth is in the outbox.
func (m *core) reported(ctx context.Context, tx sqldb.Tx, p *Problem, row *ledger.Problem) error {
	a := m.accounts[p.Account]
	if p.Kind != ProblemAmbiguous || a == nil {
		return nil
	}
	list, err := m.ledger(tx).Requests(ctx, ledger.RequestWhere{Account: p.Account, Record: p.Record})
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.Subject != row.Subject || !isAbout(row, r.Kind) { // of another record with the same ID
			continue
		}
		switch e, err := a.outbox.FindTx(ctx, tx, r.Kind, r.Key); {
		case errors.Is(err, operations.ErrNotFound):
		case err != nil:
			return err
		case e.State == operations.Ambiguous:
			p.ID = operationProblem(e, r).ID
			return nil
		}
	}
	return nil // resolved since
}

// isAbout reports whether a problem is about a request of a kind.
func isAbout(p *ledger.Problem, kind string) bool {
	switch kind {
	case kindCharge:
		return p.About == books.AboutCharge
	case kindRefund:
		return p.About == books.AboutRefund
	case kindPayout:
		return p.About == books.AboutPayout
	default:
		return p.About == books.AboutSubscription
	}
}

// callbackProblems returns the problems of callbacks that have failed often.
func callbackProblems(failing []ledger.Failing) []*Problem {
	list := make([]*Problem, len(failing))
	for i, f := range failing {
		list[i] = &Problem{
			ID: problemID(inFacts, strconv.FormatInt(f.Seq, 10)), Book: f.Subject.Book, Account: f.Account, Order: ledger.OrderID(f.Subject),
			Subscription: ledger.SubscriptionID(f.Subject), Record: f.Record, Kind: ProblemCallback, Since: f.Since,
			Text: fmt.Sprintf("the callback %s has failed %d times: %s", f.Callback, f.Attempts, masking.Text(f.Error)),
		}
	}
	return list
}

// sorted returns the process's accounts by name: those of the book that m is bound to, or all.
func (m *reading) sorted() []*account {
	all := slices.SortedFunc(maps.Values(m.accounts), func(a, b *account) int { return cmp.Compare(a.Name, b.Name) })
	return slices.DeleteFunc(all, func(a *account) bool { return m.ofBook != "" && a.Book != m.ofBook })
}

// page is how many operations or dead letters are read at once.
const page = 500

// deadLetters returns the problems of the events that could not be handled.
func (m *reading) deadLetters(ctx context.Context, t ledger.Ledger) (list []*Problem, err error) {
	for _, a := range m.sorted() {
		err := a.letters(ctx, func(l *webhook.DeadLetter) (bool, error) {
			p, _, err := a.letterProblem(ctx, t, l)
			list = append(list, p)
			return true, err
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// letters calls visit with each dead letter of the account until it returns false.
func (a *account) letters(ctx context.Context, visit func(*webhook.DeadLetter) (more bool, err error)) error {
	for q := (webhook.DeadLetterQuery{Limit: page}); ; {
		list, err := a.inbox.DeadLetters(ctx, q)
		if err != nil {
			return err
		}
		for i := range list {
			if more, err := visit(&list[i]); err != nil || !more {
				return err
			}
		}
		if len(list) < q.Limit {
			return nil
		}
		q.After = list[len(list)-1].Cursor
	}
}

// letterProblem returns the problem of a dead letter, and the subject of its record, the zero
// value if it has none.
func (a *account) letterProblem(ctx context.Context, t ledger.Ledger, l *webhook.DeadLetter) (p *Problem, subject ledger.Subject, err error) {
	p = &Problem{
		ID: problemID(inEvents, a.Name, l.Key), Book: a.Book, Account: a.Name, Kind: ProblemEvent, Since: l.Since,
		Text: fmt.Sprintf("the event %s of %s could not be handled: %s", l.Kind, l.Resource, masking.Text(l.Reason)),
	}
	if family, id, _ := strings.Cut(l.Resource, "/"); webhook.Family(family) == webhook.FamilyTransaction {
		rows, err := t.Rows(ctx, ledger.Charges, ledger.Where{Account: a.Name, Resource: id})
		if err != nil {
			return nil, subject, err
		}
		if len(rows) > 0 {
			p.Record, subject = rows[0].ID, rows[0].Subject
		}
	}
	p.Order, p.Subscription = ledger.OrderID(subject), ledger.SubscriptionID(subject)
	return p, subject, nil
}

// undecided are the states of the requests that wait for a person.
var undecided = []operations.State{operations.Ambiguous, operations.Dead}

// stuckOperations returns the problems of the requests that wait for a person.
func (m *reading) stuckOperations(ctx context.Context, l ledger.Ledger) (list []*Problem, err error) {
	for _, a := range m.sorted() {
		for after := int64(0); ; {
			entries, err := a.requests.List(ctx, operations.Query{States: undecided, After: after, Limit: page})
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				r, err := m.requestOf(ctx, l, e)
				if err != nil {
					return nil, err
				}
				list = append(list, operationProblem(e, r))
				after = e.ID
			}
			if len(entries) < page {
				break
			}
		}
	}
	return list, nil
}

func operationProblem(e *operations.Entry, r ledger.Request) *Problem {
	p := &Problem{
		ID: problemID(inOperations, e.Account, strconv.FormatInt(e.ID, 10)), Book: r.Subject.Book, Account: e.Account, Record: r.Record,
		Order: ledger.OrderID(r.Subject), Subscription: ledger.SubscriptionID(r.Subject), Since: e.UpdatedAt,
	}
	if e.State == operations.Ambiguous {
		p.Kind, p.Text = ProblemAmbiguous, fmt.Sprintf("the outcome of %s %s is not known: %s", e.Kind, e.Key, masking.Text(e.Ambiguity))
	} else {
		p.Kind, p.Text = ProblemOutcome, fmt.Sprintf("the outcome of %s %s could not be stored: %s", e.Kind, e.Key, masking.Text(e.LastError))
	}
	return p
}

// StepKind is the kind of a [Step].
type StepKind string

// The kinds of steps.
const (
	StepRequest  StepKind = "request"  // something about a request to the gateway
	StepFact     StepKind = "fact"     // the gateway showed it
	StepCallback StepKind = "callback" // one of your callbacks was called
	StepProblem  StepKind = "problem"  // a person must look, see [Problem]
	StepDecision StepKind = "decision" // a person has decided, see [Merchant.Resolve] and [Merchant.Adjust]
)

// Step is a line of an order's story. It has no personal data of the buyer, as far as the
// errors of your callbacks and the reasons of decisions can be masked.
type Step struct {
	// At is when it happened: a fact by the gateway's clock, everything else by the
	// database's. The failures of a callback have the time of its fact.
	At time.Time

	Kind     StepKind
	Account  string
	Record   string // the ID of a charge or refund, or the number of an adjustment
	Text     string
	Amount   int64 // cents, of a fact: signed as it changes Order.Net, 0 if it is no entry
	Currency gateway.Currency
	Source   string // of a fact, why the gateway was read: response, webhook, comparison, refresh, outcome, adoption
	By       string // who has decided
}

// Story returns what happened to an order, the oldest first: each request with its
// history, what the gateway showed, the callbacks with their failures, problems and
// decisions. The list is empty if there is no such order. It lacks the requests of accounts
// that this process lacks. The error is [ErrAccount] if there are several books, see
// [Merchant.Book].
func (m *reading) Story(ctx context.Context, order string) ([]Step, error) {
	subject, err := m.orderSubject(ctx, order)
	if err != nil {
		return nil, err
	}
	return m.story(ctx, m.outside(), subject)
}

func (m *reading) story(ctx context.Context, l ledger.Ledger, subject ledger.Subject) (story []Step, err error) {
	for _, steps := range []func(context.Context, ledger.Ledger, ledger.Subject) ([]Step, error){m.requestSteps, m.factSteps, problemSteps, decisionSteps} {
		more, err := steps(ctx, l, subject)
		if err != nil {
			return nil, err
		}
		story = append(story, more...)
	}
	slices.SortStableFunc(story, func(a, b Step) int { return a.At.Compare(b.At) })
	return story, nil
}

func (m *reading) requestSteps(ctx context.Context, l ledger.Ledger, subject ledger.Subject) (steps []Step, err error) {
	requests, err := l.Requests(ctx, ledger.RequestWhere{Subject: subject})
	if err != nil {
		return nil, err
	}
	for _, r := range requests {
		a := m.accounts[r.Account]
		if a == nil { // only its outbox has the request
			continue
		}
		list, err := a.requests.List(ctx, operations.Query{Kind: r.Kind, Key: r.Key})
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			continue
		}
		e := list[0]
		step := Step{Kind: StepRequest, Account: r.Account, Record: r.Record, At: e.CreatedAt, Text: r.Kind + " stored"}
		steps = append(steps, step)
		for _, note := range e.History {
			step.At, step.Text = note.At, r.Kind+": "+masking.Text(note.Text)
			steps = append(steps, step)
		}
		step.At, step.Text = e.UpdatedAt, r.Kind+": "+string(e.State)
		steps = append(steps, step)
	}
	return steps, nil
}

// factSteps returns the facts, and their callbacks.
func (m *reading) factSteps(ctx context.Context, l ledger.Ledger, subject ledger.Subject) (steps []Step, err error) {
	facts, err := l.FactsOf(ctx, subject)
	for i := range facts {
		f := &facts[i]
		s := Step{
			At: f.At, Kind: StepFact, Account: f.Account, Record: f.Record, Text: string(f.Kind), Amount: f.Amount, Currency: f.Currency, Source: string(f.Source),
		}
		if f.About != 0 {
			s.Text += " of " + gateway.FormatAmount(f.About, f.Currency)
		}
		if f.Callback != onProblem { // the problem is a step itself
			steps = append(steps, s)
		}
		if f.Callback == books.None {
			continue
		}
		s = Step{At: f.Created, Kind: StepCallback, Account: f.Account, Record: f.Record, Text: string(f.Callback) + " waits"}
		switch {
		case f.Skipped:
			s.At, s.Text = f.Delivered, string(f.Callback)+" was given up: no process had this callback"
		case !f.Delivered.IsZero():
			s.At, s.Text = f.Delivered, string(f.Callback)+" delivered"
			if f.Attempts > 0 {
				s.Text += fmt.Sprintf(" after %d failures", f.Attempts)
			}
		case slices.Contains(m.unheard, f.Callback):
			s.Text += " for a process that has this callback"
		case f.Attempts > 0:
			s.Text = fmt.Sprintf("%s has failed %d times: %s", f.Callback, f.Attempts, masking.Text(f.Error))
		}
		steps = append(steps, s)
	}
	return steps, err
}

func problemSteps(ctx context.Context, l ledger.Ledger, subject ledger.Subject) ([]Step, error) {
	problems, err := l.Problems(ctx, ledger.ProblemWhere{Subject: subject})
	steps := make([]Step, 0, len(problems))
	for _, p := range problems {
		steps = append(steps, Step{At: p.Since, Kind: StepProblem, Account: p.Account, Record: p.Record, Text: string(p.Kind) + ": " + p.Text})
	}
	return steps, err
}

func decisionSteps(ctx context.Context, l ledger.Ledger, subject ledger.Subject) (steps []Step, err error) {
	notes, err := l.Notes(ctx, subject)
	for _, n := range notes {
		s := Step{At: n.At, Kind: StepDecision, Account: n.Account, Record: n.Record, By: n.By, Text: n.Kind + ": " + n.Decision}
		if n.Resource != "" {
			s.Text += " as " + n.Resource
		}
		s.Text += ": " + masking.Text(n.Why)
		if n.Error != "" {
			s.Text += ", which failed: " + masking.Text(n.Error)
		}
		steps = append(steps, s)
	}
	return steps, err
}
