package merchant

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
)

// Accounts returns the names of the accounts of this process, in alphabetical order: those of
// the book that [Merchant.Book] has bound it to, or all.
func (m *reading) Accounts() []string { return m.names() }

func (m *reading) names() []string {
	names := make([]string, 0, len(m.accounts))
	for _, a := range m.sorted() {
		names = append(names, a.Name)
	}
	return names
}

// Zone returns the time zone of an account, see [Account]. With one account its name may be
// "". The error is [ErrAccount] if there is no such account.
func (m *reading) Zone(account string) (*time.Location, error) {
	a, err := m.account(account)
	if err != nil {
		return nil, err
	}
	return a.Zone, nil
}

// Record is what a [Hit] belongs to: an order, a subscription, or a sale by link or a
// payout that belongs to no order.
type Record struct {
	Order        *Order        // the money, with charges, refunds and payouts; ID is "" unless it is an order
	Subscription *Subscription // nil unless it is a subscription
	Problems     []*Problem    // the open ones, the oldest first
	Story        []Step        // see [Merchant.Story]
}

// Record returns what a hit of [Merchant.Find] belongs to, by the hit's book and kind and the ID
// of the record. With one book its name may be "". The error is [ErrNotFound] if there is no
// such record, and [ErrAccount] if there is no such book. What only the outbox or the receiver
// of an account knows is missing if this process lacks the account.
func (m *reading) Record(ctx context.Context, book, kind, id string) (*Record, error) {
	if book != "" {
		m = m.within(book)
	}
	book, err := m.oneBook(ctx)
	if err != nil {
		return nil, err
	}
	l := m.outside()
	subject, err := l.SubjectOf(ctx, book, kind, id)
	if err != nil {
		return nil, err
	}
	order, err := m.showOrder(ctx, l, subject, true)
	if err != nil {
		return nil, err
	}
	r := &Record{Order: order}
	if id := ledger.SubscriptionID(subject); id != "" {
		stored, err := m.loadSubscription(ctx, l, book, id)
		if err != nil {
			return nil, err
		}
		r.Subscription = stored.shown(order)
	}
	if r.Story, err = m.story(ctx, l, subject); err != nil {
		return nil, err
	}
	r.Problems, err = m.problemsAbout(ctx, l, subject, r.Order.Charges)
	return r, err
}

// problemsAbout returns the open problems of a subject, each from an index.
func (m *reading) problemsAbout(ctx context.Context, l ledger.Ledger, subject ledger.Subject, charges []*Charge) ([]*Problem, error) {
	rows, err := l.Problems(ctx, ledger.ProblemWhere{Subject: subject, Open: true, Not: ProblemAmbiguous})
	if err != nil {
		return nil, err
	}
	list := problemsOf(rows)
	callbacks, err := l.Failing(ctx, failedOften, ledger.FailingWhere{Subject: subject})
	if err != nil {
		return nil, err
	}
	list = append(list, callbackProblems(callbacks)...)
	requests, err := l.Requests(ctx, ledger.RequestWhere{Subject: subject})
	if err != nil {
		return nil, err
	}
	for _, of := range requests {
		a := m.accounts[of.Account]
		if a == nil {
			continue
		}
		entries, err := a.requests.List(ctx, operations.Query{States: undecided, Kind: of.Kind, Key: of.Key})
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			list = append(list, operationProblem(e, of))
		}
	}
	for _, ch := range charges {
		if ch.TransactionID == "" || m.accounts[ch.Account] == nil {
			continue
		}
		letters, err := m.DeadLetters(ctx, ch.Account, webhook.DeadLetterQuery{
			DeadLetterFilter: webhook.DeadLetterFilter{Resource: string(webhook.FamilyTransaction) + "/" + strings.ToLower(ch.TransactionID)},
		})
		if err != nil {
			return nil, err
		}
		for _, l := range letters {
			list = append(list, l.Problem)
		}
	}
	slices.SortStableFunc(list, byAge)
	return list, nil
}

// Problem returns an open problem by its ID. The error is [ErrNotFound] if no problem with
// the ID is open, and [ErrAccount] if this process lacks its account.
func (m *reading) Problem(ctx context.Context, id string) (*Problem, error) {
	l := m.outside()
	where, rest, _ := strings.Cut(id, "/")
	account, key, _ := strings.Cut(rest, "/")
	number, notNumber := strconv.ParseInt(rest, 10, 64)
	var list []*Problem
	var err error
	switch {
	case where == inEvents:
		return m.event(ctx, account, key)
	case where == inOperations:
		return m.operation(ctx, account, key)
	case notNumber != nil || number <= 0:
	case where == inProblems:
		var rows []ledger.Problem
		rows, err = l.Problems(ctx, ledger.ProblemWhere{ID: number, Open: true, Not: ProblemAmbiguous})
		list = problemsOf(rows)
	case where == inFacts:
		var failing []ledger.Failing
		failing, err = l.Failing(ctx, failedOften, ledger.FailingWhere{Seq: number})
		list = callbackProblems(failing)
	}
	if err == nil && len(list) == 0 {
		err = notOpen(id)
	}
	if err != nil {
		return nil, err
	}
	_, err = m.account(list[0].Account)
	return list[0], err
}

// event returns the problem of a dead letter.
func (m *reading) event(ctx context.Context, account, key string) (*Problem, error) {
	a, err := m.account(account)
	if err != nil {
		return nil, err
	}
	l, err := a.letter(ctx, key)
	if err != nil {
		return nil, err
	}
	p, _, err := a.letterProblem(ctx, m.outside(), l)
	return p, err
}

// operation returns the problem of a request that waits for a person.
func (m *reading) operation(ctx context.Context, account, number string) (*Problem, error) {
	a, err := m.account(account)
	if err != nil {
		return nil, err
	}
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return nil, notOpen(problemID(inOperations, account, number))
	}
	e, err := a.stuck(ctx, id)
	if err != nil {
		return nil, err
	}
	of, err := m.requestOf(ctx, m.outside(), e)
	if err != nil {
		return nil, err
	}
	return operationProblem(e, of), nil
}

// DeadLetter is a webhook event that could not be handled.
type DeadLetter struct {
	Problem *Problem // for [Merchant.Resolve]: [Retry] handles it once more, [Dismiss] gives it up
	Event   webhook.DeadLetter
}

// DeadLetters returns a page of the events of an account that could not be handled, the
// oldest first. With one account its name may be "". The error is [ErrAccount] if there is
// no such account, and otherwise that of [webhook.Receiver.DeadLetters].
func (m *reading) DeadLetters(ctx context.Context, account string, q webhook.DeadLetterQuery) ([]DeadLetter, error) {
	a, err := m.account(account)
	if err != nil {
		return nil, err
	}
	letters, err := a.inbox.DeadLetters(ctx, q)
	if err != nil {
		return nil, err
	}
	list := make([]DeadLetter, 0, len(letters))
	for i := range letters {
		p, _, err := a.letterProblem(ctx, m.outside(), &letters[i])
		if err != nil {
			return nil, err
		}
		list = append(list, DeadLetter{Problem: p, Event: letters[i]})
	}
	return list, nil
}
