package merchant

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
)

// Hit is a record that has an identifier.
type Hit struct {
	As      string // what the identifier is: "order", "charge", "transaction", "end_to_end", "refund", "payout", "transfer", "subscription" or "gateway_subscription"
	Kind    string // of the record: "order", "charge", "refund", "payout" or "subscription"
	Account string // "" for an order, which may have charges of several accounts
	Record  string // the ID of the record
	Order   string // the ID of its order, "" if it belongs to none
}

// lookups find records by an identifier, each in an index. A query has the columns
// account, record and subject. The gateway's IDs are stored in lower case, because the
// gateway ignores case; yours are not.
var lookups = []struct {
	as, kind  string
	query     string
	lowerCase bool
}{
	{as: "order", kind: "order", query: `SELECT '', SUBSTR(subject, 7), subject FROM gateway_orders WHERE subject = 'order/' || ?`},
	{as: "charge", kind: "charge", query: `SELECT account, id, subject FROM gateway_charges WHERE id = ?`},
	{as: "transaction", kind: "charge", query: `SELECT account, id, subject FROM gateway_charges WHERE transaction_id = ?`, lowerCase: true},
	{as: "end_to_end", kind: "charge", query: `SELECT account, id, subject FROM gateway_charges WHERE end_to_end_id = ?`, lowerCase: true},
	{
		as: "refund", kind: "refund",
		query: `SELECT c.account, r.id, c.subject FROM gateway_refunds AS r JOIN gateway_charges AS c ON c.id = r.charge WHERE r.id = ?`,
	},
	{as: "payout", kind: "payout", query: `SELECT account, id, subject FROM gateway_payouts WHERE id = ?`},
	{as: "transfer", kind: "payout", query: `SELECT account, id, subject FROM gateway_payouts WHERE transfer_id = ?`, lowerCase: true},
	{as: "subscription", kind: "subscription", query: `SELECT account, id, 'subscription/' || id FROM gateway_subscriptions WHERE id = ?`},
	{as: "gateway_subscription", kind: "subscription", query: `SELECT account, id, 'subscription/' || id FROM gateway_subscriptions WHERE subscription_id = ?`, lowerCase: true},
}

// Find returns the records that have an identifier: the ID of an order, refund, payout or
// subscription, the ID of a charge, which is its external_ref, the gateway's ID of a
// transaction, transfer or subscription, or the end-to-end ID of a Pix. The case of the gateway's IDs does not matter. The list is empty
// if there is no such record.
func (m *Merchant) Find(ctx context.Context, id string) (hits []Hit, err error) {
	for _, is := range lookups {
		key := id
		if is.lowerCase {
			key = strings.ToLower(id)
		}
		err := m.store.conn().each(ctx, is.query, []any{key}, func(row database.Scanner) error {
			h := Hit{As: is.as, Kind: is.kind}
			err := row.Scan(&h.Account, &h.Record, &h.Order)
			h.Order = orderID(h.Order)
			hits = append(hits, h)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// request is the operation of a record.
type request struct {
	kind    string // as the outbox names it
	account string
	key     string
	record  string
	subject string
}

// requestTables have the records whose requests are in the outbox, by the kind of the
// operation.
var requestTables = []struct{ kind, query string }{
	{kindCharge, `SELECT account, ref AS key, id AS record, subject FROM gateway_charges`},
	{kindRefund, `SELECT c.account AS account, r.id AS key, r.id AS record, c.subject AS subject
		FROM gateway_refunds AS r JOIN gateway_charges AS c ON c.id = r.charge`},
	{kindPayout, `SELECT account, ref AS key, id AS record, subject FROM gateway_payouts`},
	{kindCustomer, `SELECT account, ref AS key, id AS record, 'subscription/' || id AS subject FROM gateway_subscriptions`},
	{kindSubscribe, `SELECT account, ref AS key, id AS record, 'subscription/' || id AS subject FROM gateway_subscriptions`},
}

// readRequests returns the requests that a condition selects.
func readRequests(ctx context.Context, c conn, where string, args ...any) (list []request, err error) {
	for _, of := range requestTables {
		err := c.each(ctx, `SELECT account, key, record, subject FROM (`+of.query+`) AS q WHERE key IS NOT NULL AND `+where, args, func(row database.Scanner) error {
			r := request{kind: of.kind}
			err := row.Scan(&r.account, &r.key, &r.record, &r.subject)
			list = append(list, r)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// requestOf returns the request of an operation. Without a record its key is all that is
// known.
func (m *Merchant) requestOf(ctx context.Context, c conn, e *operations.Entry) (request, error) {
	list, err := readRequests(ctx, c, `account = ? AND key = ?`, e.Account, e.Key)
	if err != nil {
		return request{}, err
	}
	if i := slices.IndexFunc(list, func(r request) bool { return r.kind == e.Kind }); i >= 0 {
		return list[i], nil
	}
	return request{kind: e.Kind, account: e.Account, key: e.Key, record: e.Key}, nil
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

	ProblemCancelRejected = isCancelRejected // a cancellation was rejected: the subscription is still charged

	// ProblemRefundRejected: a refund was rejected, and there is no
	// [Callbacks.RefundRejected]: the money is still with you. Refund with another ID.
	ProblemRefundRejected ProblemKind = "refund_rejected"
)

// Problem is something that a person must decide or look at.
type Problem struct {
	ID      string // for [Merchant.Resolve]
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
// Alert if the list is not empty. A problem stays on it until [Merchant.Resolve] ends it,
// except that a callback, which is repeated, may succeed before.
func (m *Merchant) Problems(ctx context.Context) ([]*Problem, error) {
	c := m.store.conn()
	names, args := m.names()
	// The outbox says what is ambiguous: it knows it first, and until it is resolved.
	list, err := m.readProblems(ctx, c, `WHERE closed_at IS NULL AND account IN (`+names+`) AND kind <> ? ORDER BY id`, append(args, string(ProblemAmbiguous))...)
	if err != nil {
		return nil, err
	}
	for _, read := range []func(context.Context, conn) ([]*Problem, error){m.failingCallbacks, m.deadLetters, m.stuckOperations} {
		more, err := read(ctx, c)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	slices.SortStableFunc(list, byAge)
	return list, nil
}

func byAge(a, b *Problem) int { return a.Since.Compare(b.Since) }

func (m *Merchant) readProblems(ctx context.Context, c conn, where string, args ...any) (list []*Problem, err error) {
	err = c.each(ctx, `SELECT id, account, subject, record, kind, text, since FROM gateway_problems `+where, args, func(row database.Scanner) error {
		p := new(Problem)
		var id, since int64
		var subject string
		if err := row.Scan(&id, &p.Account, &subject, &p.Record, &p.Kind, &p.Text, &since); err != nil {
			return err
		}
		p.ID, p.Order, p.Since = problemID(inProblems, strconv.FormatInt(id, 10)), orderID(subject), time.UnixMilli(since)
		p.Subscription = subscriptionID(subject)
		list = append(list, p)
		return nil
	})
	return list, err
}

// reported makes the problem of an ambiguous request the one that [Merchant.Problems]
// lists: its truth is in the outbox.
func (m *Merchant) reported(ctx context.Context, tx *sql.Tx, p *Problem) error {
	a := m.accounts[p.Account]
	if p.Kind != ProblemAmbiguous || a == nil {
		return nil
	}
	list, err := readRequests(ctx, m.store.in(tx), `account = ? AND record = ?`, p.Account, p.Record)
	if err != nil {
		return err
	}
	for _, r := range list {
		switch e, err := a.outbox.FindTx(ctx, tx, r.kind, r.key); {
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

// failingCallbacks returns the problems of the callbacks that have failed often.
func (m *Merchant) failingCallbacks(ctx context.Context, c conn) (list []*Problem, err error) {
	names, args := m.names()
	return m.readCallbacks(ctx, c, `account IN (`+names+`)`, args...)
}

// readCallbacks returns the problems of those that a condition selects.
func (m *Merchant) readCallbacks(ctx context.Context, c conn, where string, args ...any) (list []*Problem, err error) {
	err = c.each(ctx, `SELECT seq, account, subject, record, callback, attempts, error, created_at FROM gateway_facts
		WHERE delivered_at IS NULL AND `+where+` AND attempts >= ? ORDER BY due_at, seq`, append(args, failedOften), func(row database.Scanner) error {
		p := &Problem{Kind: ProblemCallback}
		var subject, callback, failure string
		var seq, attempts, since int64
		if err := row.Scan(&seq, &p.Account, &subject, &p.Record, &callback, &attempts, &failure, &since); err != nil {
			return err
		}
		p.ID, p.Order, p.Since = problemID(inFacts, strconv.FormatInt(seq, 10)), orderID(subject), time.UnixMilli(since)
		p.Subscription = subscriptionID(subject)
		p.Text = fmt.Sprintf("the callback %s has failed %d times: %s", callback, attempts, masking.Text(failure))
		list = append(list, p)
		return nil
	})
	return list, err
}

// sorted returns the process's accounts by name.
func (m *Merchant) sorted() []*account {
	return slices.SortedFunc(maps.Values(m.accounts), func(a, b *account) int { return cmp.Compare(a.Name, b.Name) })
}

// page is how many operations or dead letters are read at once.
const page = 500

// deadLetters returns the problems of the events that could not be handled.
func (m *Merchant) deadLetters(ctx context.Context, c conn) (list []*Problem, err error) {
	for _, a := range m.sorted() {
		err := a.letters(ctx, func(l *webhook.DeadLetter) (bool, error) {
			p, _, err := a.letterProblem(ctx, c, l)
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
		list, err := a.receiver.DeadLetters(ctx, q)
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

// letterProblem returns the problem of a dead letter, and the subject of its record, "" if
// it has none.
func (a *account) letterProblem(ctx context.Context, c conn, l *webhook.DeadLetter) (p *Problem, subject string, err error) {
	p = &Problem{
		ID: problemID(inEvents, a.Name, l.Key), Account: a.Name, Kind: ProblemEvent, Since: l.Since,
		Text: fmt.Sprintf("the event %s of %s could not be handled: %s", l.Kind, l.Resource, masking.Text(l.Reason)),
	}
	if family, id, _ := strings.Cut(l.Resource, "/"); webhook.Family(family) == webhook.FamilyTransaction {
		if _, err := c.first(ctx, `SELECT id, subject FROM gateway_charges WHERE account = ? AND transaction_id = ?`,
			[]any{a.Name, strings.ToLower(id)}, &p.Record, &subject); err != nil {
			return nil, "", err
		}
	}
	p.Order, p.Subscription = orderID(subject), subscriptionID(subject)
	return p, subject, nil
}

// undecided are the states of the requests that wait for a person.
var undecided = []operations.State{operations.Ambiguous, operations.Dead}

// stuckOperations returns the problems of the requests that wait for a person.
func (m *Merchant) stuckOperations(ctx context.Context, c conn) (list []*Problem, err error) {
	for _, a := range m.sorted() {
		for after := int64(0); ; {
			entries, err := a.outbox.List(ctx, operations.Query{States: undecided, After: after, Limit: page})
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				r, err := m.requestOf(ctx, c, e)
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

func operationProblem(e *operations.Entry, r request) *Problem {
	p := &Problem{
		ID: problemID(inOperations, e.Account, strconv.FormatInt(e.ID, 10)), Account: e.Account, Order: orderID(r.subject), Subscription: subscriptionID(r.subject), Record: r.record, Since: e.UpdatedAt,
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
// decisions. The list is empty if there is no such order. The error is [ErrAccount] if
// this process lacks an account of the order.
func (m *Merchant) Story(ctx context.Context, order string) ([]Step, error) {
	return m.story(ctx, m.store.conn(), orderSubject(order))
}

func (m *Merchant) story(ctx context.Context, c conn, subject string) (story []Step, err error) {
	for _, read := range []func(context.Context, conn, string) ([]Step, error){m.requestSteps, factSteps, m.problemSteps, decisionSteps} {
		steps, err := read(ctx, c, subject)
		if err != nil {
			return nil, err
		}
		story = append(story, steps...)
	}
	slices.SortStableFunc(story, func(a, b Step) int { return a.At.Compare(b.At) })
	return story, nil
}

func (m *Merchant) requestSteps(ctx context.Context, c conn, subject string) (steps []Step, err error) {
	requests, err := readRequests(ctx, c, `subject = ?`, subject)
	if err != nil {
		return nil, err
	}
	for _, r := range requests {
		a, err := m.account(r.account)
		if err != nil {
			return nil, err
		}
		list, err := a.outbox.List(ctx, operations.Query{Kind: r.kind, Key: r.key})
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			continue
		}
		e := list[0]
		step := Step{Kind: StepRequest, Account: r.account, Record: r.record, At: e.CreatedAt, Text: r.kind + " stored"}
		steps = append(steps, step)
		for _, note := range e.History {
			step.At, step.Text = note.At, r.kind+": "+masking.Text(note.Text)
			steps = append(steps, step)
		}
		step.At, step.Text = e.UpdatedAt, r.kind+": "+string(e.State)
		steps = append(steps, step)
	}
	return steps, nil
}

// factSteps returns the facts, and their callbacks.
func factSteps(ctx context.Context, c conn, subject string) (steps []Step, err error) {
	err = c.each(ctx, `SELECT account, record, kind, COALESCE(amount, 0), currency, about, at, source, callback, created_at,
		COALESCE(delivered_at, 0), attempts, error FROM gateway_facts WHERE subject = ? ORDER BY seq`, []any{subject}, func(row database.Scanner) error {
		s := Step{Kind: StepFact}
		var kind, callback, failure string
		var about, at, created, delivered, attempts int64
		if err := row.Scan(&s.Account, &s.Record, &kind, &s.Amount, &s.Currency, &about, &at, &s.Source, &callback, &created, &delivered, &attempts, &failure); err != nil {
			return err
		}
		s.At, s.Text = time.UnixMilli(at), kind
		if about != 0 {
			s.Text += " of " + gateway.FormatAmount(about, s.Currency)
		}
		if books.Callback(callback) != onProblem { // the problem is a step itself
			steps = append(steps, s)
		}
		if callback == "" {
			return nil
		}
		s.Kind, s.Amount, s.Currency, s.Source = StepCallback, 0, "", ""
		if delivered != 0 {
			s.At, s.Text = time.UnixMilli(delivered), callback+" delivered"
			if attempts > 0 {
				s.Text += fmt.Sprintf(" after %d failures", attempts)
			}
		} else {
			s.At, s.Text = time.UnixMilli(created), callback+" waits"
			if attempts > 0 {
				s.Text = fmt.Sprintf("%s has failed %d times: %s", callback, attempts, masking.Text(failure))
			}
		}
		steps = append(steps, s)
		return nil
	})
	return steps, err
}

func (m *Merchant) problemSteps(ctx context.Context, c conn, subject string) ([]Step, error) {
	problems, err := m.readProblems(ctx, c, `WHERE subject = ? ORDER BY id`, subject)
	if err != nil {
		return nil, err
	}
	steps := make([]Step, 0, len(problems))
	for _, p := range problems {
		steps = append(steps, Step{At: p.Since, Kind: StepProblem, Account: p.Account, Record: p.Record, Text: string(p.Kind) + ": " + p.Text})
	}
	return steps, nil
}

func decisionSteps(ctx context.Context, c conn, subject string) (steps []Step, err error) {
	err = c.each(ctx, `SELECT account, record, kind, decision, resource_id, decided_by, why, error, created_at FROM gateway_notes
		WHERE subject = ? ORDER BY id`, []any{subject}, func(row database.Scanner) error {
		s := Step{Kind: StepDecision}
		var kind, decision, resource, why, failure string
		var at int64
		if err := row.Scan(&s.Account, &s.Record, &kind, &decision, &resource, &s.By, &why, &failure, &at); err != nil {
			return err
		}
		s.At, s.Text = time.UnixMilli(at), kind+": "+decision
		if resource != "" {
			s.Text += " as " + resource
		}
		s.Text += ": " + masking.Text(why)
		if failure != "" {
			s.Text += ", which failed: " + masking.Text(failure)
		}
		steps = append(steps, s)
		return nil
	})
	return steps, err
}
