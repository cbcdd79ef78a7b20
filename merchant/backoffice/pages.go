package backoffice

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
)

// Lists are cut there, and say how many more there are.
const (
	pageSize  = 100 // problems
	letters   = 50  // dead letters, each of which costs a query
	firstOnes = 10  // problems of the overview
	countable = 1000
	records   = 50  // charges, refunds and payouts of an order, the newest
	steps     = 200 // of a story, the newest
)

type overview struct {
	merchant.Health

	Accounts []account
	List     []*merchant.Problem // the oldest ones
	More     int
}

// account counts what waits for this program, and what waits for a person.
type account struct {
	merchant.AccountHealth

	Waiting, Unknown, Ambiguous, Outcome int64
}

// overview shows what waits and what fails.
func (v *visit) overview() (*view, error) {
	health, err := v.m.Health(v.r.Context())
	if err != nil {
		return nil, err
	}
	data := overview{Health: health}
	for _, a := range health.Accounts {
		n := a.Operations
		data.Accounts = append(data.Accounts, account{
			AccountHealth: a, Waiting: n[operations.Waiting] + n[operations.Working] + n[operations.Decided],
			Unknown: n[operations.Sent], Ambiguous: n[operations.Ambiguous], Outcome: n[operations.Dead],
		})
	}
	data.More = health.Problems
	if health.Problems <= countable { // else listing them would take long
		list, err := v.m.Problems(v.r.Context())
		if err != nil {
			return nil, err
		}
		data.List = list[:min(len(list), firstOnes)]
		data.More = len(list) - len(data.List)
	}
	return &view{template: "overview", Title: "Overview", Section: "overview", Data: data}, nil
}

// find searches for an identifier, and leads to its record if it has only one.
func (v *visit) find() (*view, error) {
	query := strings.TrimSpace(v.r.FormValue("q"))
	hits, err := v.m.Find(v.r.Context(), query)
	if err != nil {
		return nil, err
	}
	if len(hits) == 1 {
		return v.redirect(link(hits[0].Kind, "id", hits[0].Record, "book", hits[0].Book))
	}
	return &view{template: "find", Title: "Find", Query: masking.Text(query), Data: hits}, nil
}

type record struct {
	*merchant.Record

	Kind, ID, Book                      string // what was asked for
	Heading                             string
	Account                             string // for times; "" if several
	Charges, Refunds, Payouts, StepsOut int    // how many older ones are not shown
}

// record shows an order, a subscription, or what belongs to neither.
func (v *visit) record(kind string) (*view, error) {
	id, book := v.r.FormValue("id"), v.r.FormValue("book")
	is, err := v.m.Record(v.r.Context(), book, kind, id)
	if book == "" && errors.Is(err, merchant.ErrAccount) { // several companies may have it
		return v.redirect(link("find", "q", id))
	}
	if err != nil {
		return nil, err
	}
	data := record{Record: is, Kind: kind, ID: id, Book: book}
	switch {
	case is.Order.ID != "":
		data.Heading = "Order " + is.Order.ID
	case is.Subscription != nil:
		data.Heading = "Subscription " + is.Subscription.ID
	case len(is.Order.Charges) > 0:
		data.Heading = "Sale by link " + is.Order.Charges[0].ID
	default:
		data.Heading = "Payout " + id
	}
	if v.r.FormValue("all") == "" {
		is.Order.Charges, data.Charges = newest(is.Order.Charges, records)
		is.Order.Refunds, data.Refunds = newest(is.Order.Refunds, records)
		is.Order.Payouts, data.Payouts = newest(is.Order.Payouts, records)
		is.Story, data.StepsOut = newest(is.Story, steps)
	}
	return &view{template: "record", Title: data.Heading, Data: data, Note: v.done()}, nil
}

// newest returns the end of a list, and how many elements it omits.
func newest[T any](list []T, limit int) ([]T, int) {
	omitted := max(len(list)-limit, 0)
	return list[omitted:], omitted
}

type problems struct {
	List           []*merchant.Problem
	Total          int
	From, To       int
	Earlier, Later string // links
	Kinds          []merchant.ProblemKind
	Accounts       []string
	Kind           merchant.ProblemKind
	Account        string
}

// problems lists what needs a person.
func (v *visit) problems() (*view, error) {
	list, err := v.m.Problems(v.r.Context())
	if err != nil {
		return nil, err
	}
	data := problems{Kind: merchant.ProblemKind(v.r.FormValue("kind")), Account: v.r.FormValue("account"), Accounts: v.m.Accounts()}
	for _, p := range list {
		data.Kinds = append(data.Kinds, p.Kind)
	}
	slices.Sort(data.Kinds)
	data.Kinds = slices.Compact(data.Kinds)
	list = slices.DeleteFunc(list, func(p *merchant.Problem) bool {
		return data.Kind != "" && p.Kind != data.Kind || data.Account != "" && p.Account != data.Account
	})
	number, _ := strconv.Atoi(v.r.FormValue("page"))
	last := max((len(list)-1)/pageSize, 0)
	number = min(max(number, 0), last)
	data.Total, data.From = len(list), number*pageSize
	data.To = min(data.From+pageSize, len(list))
	data.List = list[data.From:data.To]
	if number > 0 {
		data.Earlier = link("problems", "kind", data.Kind, "account", data.Account, "page", number-1)
	}
	if number < last {
		data.Later = link("problems", "kind", data.Kind, "account", data.Account, "page", number+1)
	}
	return &view{template: "problems", Title: "Problems", Section: "problems", Data: data, Note: v.done()}, nil
}

type problem struct {
	*merchant.Problem

	Seen     int64 // when the problem began, to notice that it is another one
	Failure  string
	Decision merchant.Decision
	Resource string
	Why      string
}

// problem shows a problem with the decisions that fit it.
func (v *visit) problem() (*view, error) {
	p, err := v.m.Problem(v.r.Context(), v.r.FormValue("id"))
	if errors.Is(err, merchant.ErrNotFound) {
		return v.ended(http.StatusNotFound), nil
	}
	if err != nil {
		return nil, err
	}
	return problemView(problem{Problem: p, Seen: p.Since.UnixMilli()}), nil
}

func problemView(p problem) *view {
	return &view{template: "problem", Title: "Problem: " + words(p.Kind), Section: "problems", Data: p}
}

type deadLetters struct {
	List     []merchant.DeadLetter
	Accounts []string
	Account  string
	Next     string // the link to the next page
	Failure  string
	Decision merchant.Decision
	Why      string
	Chosen   map[string]bool
}

// deadLetters lists the events of an account that could not be handled.
func (v *visit) deadLetters() (*view, error) { return v.lettersView(deadLetters{}) }

func (v *visit) lettersView(data deadLetters) (*view, error) {
	data.Accounts = v.m.Accounts()
	if data.Account = v.r.FormValue("account"); data.Account == "" {
		data.Account = data.Accounts[0]
	}
	q := webhook.DeadLetterQuery{Limit: letters + 1, After: v.r.FormValue("after")}
	if _, _, err := q.Position(); err != nil {
		return v.refuse(http.StatusUnprocessableEntity, "There is no such page of the list."), nil //nolint:nilerr // the view says it
	}
	var err error
	if data.List, err = v.m.DeadLetters(v.r.Context(), data.Account, q); err != nil {
		return nil, err
	}
	if len(data.List) > letters {
		data.List = data.List[:letters]
		data.Next = link("dead-letters", "account", data.Account, "after", data.List[letters-1].Event.Cursor)
	}
	return &view{template: "dead-letters", Title: "Dead letters", Section: "dead-letters", Data: data, Note: v.done()}, nil
}

type unknown struct {
	List     []merchant.UnknownResource
	Accounts []string
	Account  string
	Next     string // the link to the next page
}

// unknown lists what events were about that is in no record.
func (v *visit) unknown() (*view, error) {
	data := unknown{Accounts: v.m.Accounts(), Account: v.r.FormValue("account")}
	if data.Account == "" {
		data.Account = data.Accounts[0]
	}
	q := merchant.UnknownQuery{Account: data.Account, Limit: pageSize + 1}
	if after := v.r.FormValue("after"); after != "" {
		last, err := strconv.ParseInt(after, 10, 64)
		if err != nil {
			return v.refuse(http.StatusUnprocessableEntity, "There is no such page of the list."), nil //nolint:nilerr // the view says it
		}
		q.After = &merchant.UnknownResource{Last: time.UnixMilli(last), Family: webhook.Family(v.r.FormValue("family")), ID: v.r.FormValue("id")}
	}
	var err error
	if data.List, err = v.m.Unknown(v.r.Context(), q); err != nil {
		return nil, err
	}
	if len(data.List) > pageSize {
		data.List = data.List[:pageSize]
		last := data.List[pageSize-1]
		data.Next = link("unknown", "account", data.Account, "after", strconv.FormatInt(last.Last.UnixMilli(), 10), "family", string(last.Family), "id", last.ID)
	}
	return &view{template: "unknown", Title: "In no record", Section: "unknown", Data: data}, nil
}

type month struct {
	Statements     []*merchant.Statement // one for each currency
	Accounts       []string
	Account        string
	Month          string
	Earlier, Later string // links
	Checked        bool
	Differences    []merchant.Difference
	Omitted        int
}

// month shows the statement of a month, by default of the current one.
func (v *visit) month() (*view, error) {
	data, err := v.chosenMonth()
	if err != nil {
		return nil, err
	}
	s, err := v.m.Month(v.r.Context(), data.Account, data.Month)
	if err != nil {
		return nil, err
	}
	return data.view(s), nil
}

func (m *month) view(s *merchant.Statement) *view {
	m.Statements = append([]*merchant.Statement{s}, s.Others...)
	if begin, err := time.Parse("2006-01", m.Month); err == nil {
		m.Earlier = link("month", "account", m.Account, "month", begin.AddDate(0, -1, 0).Format("2006-01"))
		m.Later = link("month", "account", m.Account, "month", begin.AddDate(0, 1, 0).Format("2006-01"))
	}
	return &view{template: "month", Title: "Month " + m.Month, Section: "month", Data: m}
}

func (v *visit) chosenMonth() (*month, error) {
	data := &month{Accounts: v.m.Accounts(), Account: v.r.FormValue("account"), Month: v.r.FormValue("month")}
	if data.Account == "" {
		data.Account = data.Accounts[0]
	}
	zone, err := v.m.Zone(data.Account)
	if err == nil && data.Month == "" {
		data.Month = time.Now().In(zone).Format("2006-01")
	}
	return data, err
}

// export sends the entries of a month as a file.
func (v *visit) export() (*view, error) {
	data, err := v.chosenMonth()
	if err != nil {
		return nil, err
	}
	format := merchant.Format(v.r.FormValue("format"))
	kind, suffix := "text/csv; charset=utf-8", ".csv"
	if format == merchant.Hledger {
		kind, suffix = "text/plain; charset=utf-8", ".journal"
	}
	file := &download{w: v.w, kind: kind, name: data.Account + "-" + data.Month + suffix}
	err = v.m.Export(v.r.Context(), file, data.Account, data.Month, format)
	switch {
	case err != nil && file.begun:
		v.log(err)
		panic(http.ErrAbortHandler) // an incomplete file must not look like a complete one
	case err != nil:
		return nil, err
	case !file.begun: // a journal without entries
		file.begin()
	}
	return nil, nil //nolint:nilnil // the response is written
}

// download writes the headers of a file with its first bytes.
type download struct {
	w          http.ResponseWriter
	kind, name string
	begun      bool
}

func (d *download) begin() {
	d.begun = true
	d.w.Header().Set("Content-Type", d.kind)
	d.w.Header().Set("Content-Disposition", `attachment; filename="`+strings.Map(fileRune, d.name)+`"`)
}

// Write implements [io.Writer].
func (d *download) Write(b []byte) (int, error) {
	if !d.begun {
		d.begin()
	}
	return d.w.Write(b)
}

func fileRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
		return r
	}
	return '_'
}
