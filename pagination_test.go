package gateway_test

import (
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

// cursorPage responds with a page of a list, in the shape of the interface
// document or in that of live gateways.
func cursorPage(live bool, next, prev string, ids ...string) roundTrip {
	items := make([]string, len(ids))
	for i, id := range ids {
		items[i] = fmt.Sprintf(`{"id":%q}`, id)
	}
	list, cursors := "["+strings.Join(items, ",")+"]", fmt.Sprintf(`"total":9,"next_cursor":%s,"prev_cursor":%s`, quoted(next), quoted(prev))
	if live {
		return reply(200, fmt.Sprintf(`{"success":true,"data":%s,%s}`, list, cursors))
	}
	return reply(200, fmt.Sprintf(`{"success":true,"data":{"data":%s,%s}}`, list, cursors))
}

func quoted(s string) string {
	if s == "" {
		return "null"
	}
	return fmt.Sprintf("%q", s)
}

func ids(t *testing.T, seq iter.Seq2[*gateway.Transaction, error]) []string {
	t.Helper()
	all, err := gateway.Collect(seq, 0)
	require.NoError(t, err)
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].ID
	}
	return out
}

func queries(s *fakeTransport) []string {
	out := make([]string, len(s.requests))
	for i, r := range s.requests {
		out[i] = r.URL.RawQuery
	}
	return out
}

func TestPagesContinueInBothShapes(t *testing.T) {
	t.Parallel()
	for _, live := range []bool{false, true} {
		s := play(cursorPage(live, "c1", "", "a", "b"), cursorPage(live, "c2", "p1"), cursorPage(live, "", "p2", "c"))
		client := clientOf(t, s)
		seq := client.Transactions.All(t.Context(), gateway.TransactionListParams{Limit: 2, Email: "m@x"})
		assert.Empty(t, s.at, "nothing is sent before the iteration")
		assert.Equal(t, []string{"a", "b", "c"}, ids(t, seq), "an empty page with a cursor does not end the list")
		assert.Equal(t, []string{"email=m%40x&limit=2", "cursor=c1&email=m%40x&limit=2", "cursor=c2&email=m%40x&limit=2"}, queries(s))
	}
}

func TestPagesCanBeIteratedTwice(t *testing.T) {
	t.Parallel()
	s := play(cursorPage(false, "", "", "a"), cursorPage(false, "", "", "a"))
	seq := clientOf(t, s).Transactions.All(t.Context(), gateway.TransactionListParams{})
	first := ids(t, seq)
	assert.Equal(t, first, ids(t, seq))
	assert.Equal(t, []string{"", ""}, queries(s))
}

func TestPagesResumeAndGoBack(t *testing.T) {
	t.Parallel()
	s := play(cursorPage(true, "c4", "p2", "x"), cursorPage(true, "c4", "p1", "y"), cursorPage(true, "c3", "", "z"))
	seq := clientOf(t, s).Transactions.All(t.Context(), gateway.TransactionListParams{Cursor: "p3", Direction: gateway.DirectionPrev})
	assert.Equal(t, []string{"x", "y", "z"}, ids(t, seq))
	assert.Equal(t, []string{"cursor=p3&direction=prev", "cursor=p2&direction=prev", "cursor=p1&direction=prev"}, queries(s))
}

func TestBreakStopsTheRequests(t *testing.T) {
	t.Parallel()
	s := play(cursorPage(false, "c1", "", "a", "b"))
	for item, err := range clientOf(t, s).Transactions.All(t.Context(), gateway.TransactionListParams{}) {
		require.NoError(t, err)
		assert.Equal(t, "a", item.ID)
		break
	}
	for range clientOf(t, play(cursorPage(false, "c1", "", "a"))).Transactions.Pages(t.Context(), gateway.TransactionListParams{}) {
		break
	}
	assert.Len(t, s.at, 1)
	s = play(cursorPage(false, "c1", "", "a", "b"), cursorPage(false, "c2", "", "c", "d"))
	some, err := gateway.Collect(clientOf(t, s).Transactions.All(t.Context(), gateway.TransactionListParams{}), 3)
	require.NoError(t, err)
	assert.Len(t, some, 3)
	assert.Len(t, s.at, 2)
}

// TestListsWhoseCursorsRepeat: following a repeated cursor would never end.
func TestListsWhoseCursorsRepeat(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]roundTrip{
		"same page":  {cursorPage(false, "c1", "", "a"), cursorPage(false, "c1", "", "b")},
		"first page": {cursorPage(false, "c0", "", "a")},
		"two pages":  {cursorPage(false, "c1", "", "a"), cursorPage(false, "c2", "", "b"), cursorPage(false, "c1", "", "c")},
		"empty page": {cursorPage(true, "c1", ""), cursorPage(true, "c1", "")},
	} {
		s := play(steps...)
		got, err := gateway.Collect(clientOf(t, s).Transactions.All(t.Context(), gateway.TransactionListParams{Cursor: "c0"}), 0)
		require.ErrorContains(t, err, "does not advance", name)
		assert.Len(t, s.at, len(steps), name)
		if name != "empty page" {
			assert.Len(t, got, len(steps), "earlier items are kept: %s", name)
		}
	}
}

func TestPagesEndWithOneError(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]roundTrip{
		"forbidden":  reply(403, problem(403)),
		"unreadable": reply(200, `<html>`),
		"no data":    reply(200, `{"success":true}`),
		"null":       reply(200, `{"success":true,"data":{"data":null}}`),
		"an item":    reply(200, `{"success":true,"data":[{"id":"a","amount":12.5}]}`),
	} {
		s := play(cursorPage(false, "c1", "", "a"), last)
		failures, seen := 0, 0
		for page, err := range clientOf(t, s).Transactions.Pages(t.Context(), gateway.TransactionListParams{}, gateway.MaxAttempts(1)) {
			if err != nil {
				failures++
				assert.Nil(t, page)
				var e *gateway.Error
				require.ErrorAs(t, err, &e, name)
				require.NotErrorIs(t, err, gateway.ErrOutcomeUnknown, name)
				continue
			}
			seen++
		}
		assert.Equal(t, 1, failures, name)
		assert.Equal(t, 1, seen, name)
	}
}

// TestInvalidListIsNotSent: the iteration yields the error once.
func TestInvalidListIsNotSent(t *testing.T) {
	t.Parallel()
	s := play()
	n := 0
	for _, err := range clientOf(t, s).Transactions.All(t.Context(), gateway.TransactionListParams{Limit: 101}) {
		n++
		require.ErrorIs(t, err, gateway.ErrValidation)
	}
	assert.Equal(t, 1, n)
	assert.Empty(t, s.at)
}

// TestLenientLists: numbers sent as strings and cursors sent as numbers are
// decoded.
func TestLenientLists(t *testing.T) {
	t.Parallel()
	s := play(reply(200, `{"success":"true","data":[{"id":7,"amount":"1200","installments":"3","created_at":1798000000}],"total":"9","next_cursor":12}`))
	page, err := clientOf(t, s).Transactions.List(t.Context(), gateway.TransactionListParams{})
	require.NoError(t, err)
	assert.Equal(t, "12", page.NextCursor)
	assert.Equal(t, 9, page.Total)
	assert.Equal(t, "7", page.Items[0].ID)
	assert.Equal(t, int64(1200), page.Items[0].Amount)
	assert.Equal(t, 3, page.Items[0].Installments)
	assert.Equal(t, 2026, page.Items[0].CreatedAt.Year())
}

// fiftyCustomers is a gateway with 50 customers. Its lists may have a fault.
type fiftyCustomers struct {
	pageSize int
	metadata func(requested, page, limit, total int) string
	page     func(requested int) int // the page that is returned
	cursors  bool
	requests int
}

func (g *fiftyCustomers) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.requests++; g.requests > 60 {
		return nil, fmt.Errorf("the list never ends")
	}
	q := r.URL.Query()
	requested, _ := strconv.Atoi(q.Get("page"))
	page := max(requested, 1)
	if g.cursors {
		page, _ = strconv.Atoi(strings.TrimPrefix(q.Get("cursor"), "c"))
		page = max(page, 1)
	} else if g.page != nil {
		page = g.page(page)
	}
	var items []string
	for i := (page - 1) * g.pageSize; i < min(page*g.pageSize, 50); i++ {
		items = append(items, fmt.Sprintf(`{"id":"c%d"}`, i))
	}
	rest := ""
	if g.metadata != nil {
		rest = `,"metadata":` + g.metadata(requested, page, g.pageSize, 50)
	}
	if g.cursors {
		next := "null"
		if page*g.pageSize < 50 {
			next = fmt.Sprintf(`"c%d"`, page+1)
		}
		rest += `,"next_cursor":` + next
	}
	return reply(http.StatusOK, `{"success":true,"data":[`+strings.Join(items, ",")+`]`+rest+`}`)(r)
}

func correctMetadata(_, page, limit, total int) string {
	return fmt.Sprintf(`{"page":%d,"limit":%d,"total":%d}`, page, limit, total)
}

func TestEveryCustomerIsListedOnce(t *testing.T) {
	t.Parallel()
	lowTotal := func(_, page, limit, _ int) string { return correctMetadata(0, page, limit, limit) }
	highLimit := func(_, page, _, total int) string { return correctMetadata(0, page, 100, total) }
	for name, g := range map[string]*fiftyCustomers{
		"by page number":                     {pageSize: 20, metadata: correctMetadata},
		"without metadata":                   {pageSize: 20},
		"by cursor":                          {pageSize: 20, cursors: true},
		"by cursor, with metadata":           {pageSize: 20, cursors: true, metadata: correctMetadata},
		"by cursor, with wrong page numbers": {pageSize: 20, cursors: true, metadata: func(int, int, int, int) string { return `{"page":1,"limit":20,"total":50}` }},
		"a total of one page":                {pageSize: 20, metadata: lowTotal},
		"a capped limit":                     {pageSize: 20, metadata: highLimit},
		"a total far too high":               {pageSize: 20, metadata: func(_, page, limit, _ int) string { return correctMetadata(0, page, limit, 1_000_000) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			customers, err := gateway.Collect(clientOver(t, g.RoundTrip).Customers.All(t.Context(), gateway.CustomerListParams{}), 0)
			require.NoError(t, err)
			seen := map[string]bool{}
			for _, c := range customers {
				seen[c.ID] = true
			}
			assert.Len(t, customers, 50)
			assert.Len(t, seen, 50)
			assert.LessOrEqual(t, g.requests, 4)
		})
	}
}

func TestNumberedPagesThatRepeatEndWithAnError(t *testing.T) {
	t.Parallel()
	silent := func(int, int, int, int) string { return `{"total":50}` }
	echo := func(requested, _, limit, total int) string {
		return correctMetadata(0, max(requested, 1), limit, total)
	}
	first := func(int) int { return 1 }
	for name, g := range map[string]*fiftyCustomers{
		"the page parameter is ignored, and the number shows it":   {pageSize: 20, metadata: correctMetadata, page: first},
		"the page parameter is ignored, and no number is sent":     {pageSize: 20, metadata: silent, page: first},
		"the page parameter is echoed, but the items never change": {pageSize: 20, metadata: echo, page: first},
		"the page number goes back":                                {pageSize: 10, metadata: correctMetadata, page: func(n int) int { return []int{0, 1, 2, 1}[n] }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			customers, err := gateway.Collect(clientOver(t, g.RoundTrip).Customers.All(t.Context(), gateway.CustomerListParams{}), 0)
			require.ErrorContains(t, err, "customers.list: the list does not advance")
			assert.LessOrEqual(t, g.requests, 3)
			assert.Len(t, customers, (g.requests-1)*g.pageSize, "no customer is returned twice")
		})
	}
}

func TestDoRejectsAQueryThatContainsItself(t *testing.T) {
	t.Parallel()
	type node struct {
		Next *node `url:"next"`
	}
	loop := new(node)
	loop.Next = loop
	s := play()
	err := clientOf(t, s).Do(t.Context(), http.MethodGet, "/v2/things", loop, nil)
	require.ErrorIs(t, err, gateway.ErrValidation)
	require.ErrorContains(t, err, "gateway: do: query: the value contains itself")
	assert.Empty(t, s.at)
}
