package gateway_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

// fiftyCustomers is a gateway with 50 customers, whose lists have a fault.
type fiftyCustomers struct {
	pageSize int
	metadata func(asked, page, limit, total int) string
	page     func(asked int) int // the page that is returned
	cursors  bool
	requests int
}

func (g *fiftyCustomers) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.requests++; g.requests > 60 {
		return nil, fmt.Errorf("the list never ends")
	}
	q := r.URL.Query()
	asked, _ := strconv.Atoi(q.Get("page"))
	page := max(asked, 1)
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
		rest = `,"metadata":` + g.metadata(asked, page, g.pageSize, 50)
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

func sound(_, page, limit, total int) string {
	return fmt.Sprintf(`{"page":%d,"limit":%d,"total":%d}`, page, limit, total)
}

func TestEveryCustomerIsListedOnce(t *testing.T) {
	t.Parallel()
	lowTotal := func(_, page, limit, _ int) string { return sound(0, page, limit, limit) }
	highLimit := func(_, page, _, total int) string { return sound(0, page, 100, total) }
	for name, g := range map[string]*fiftyCustomers{
		"by page number":              {pageSize: 20, metadata: sound},
		"without metadata":            {pageSize: 20},
		"by cursor":                   {pageSize: 20, cursors: true},
		"by cursor, with metadata":    {pageSize: 20, cursors: true, metadata: sound},
		"by cursor, with wrong pages": {pageSize: 20, cursors: true, metadata: func(int, int, int, int) string { return `{"page":1,"limit":20,"total":50}` }},
		"a total of one page":         {pageSize: 20, metadata: lowTotal},
		"a capped limit":              {pageSize: 20, metadata: highLimit},
		"a total far too high":        {pageSize: 20, metadata: func(_, page, limit, _ int) string { return sound(0, page, limit, 1_000_000) }},
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

func TestNumberedPagesThatGoInCirclesEndWithAnError(t *testing.T) {
	t.Parallel()
	silent := func(int, int, int, int) string { return `{"total":50}` }
	echo := func(asked, _, limit, total int) string { return sound(0, max(asked, 1), limit, total) }
	first := func(int) int { return 1 }
	for name, g := range map[string]*fiftyCustomers{
		"the page parameter is ignored, and the number says so": {pageSize: 20, metadata: sound, page: first},
		"the page parameter is ignored, and no number is sent":  {pageSize: 20, metadata: silent, page: first},
		"the page parameter is echoed, the items never change":  {pageSize: 20, metadata: echo, page: first},
		"the page number goes back":                             {pageSize: 10, metadata: sound, page: func(n int) int { return []int{0, 1, 2, 1}[n] }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			customers, err := gateway.Collect(clientOver(t, g.RoundTrip).Customers.All(t.Context(), gateway.CustomerListParams{}), 0)
			require.ErrorContains(t, err, "customers.list: the list goes in circles")
			assert.LessOrEqual(t, g.requests, 3)
			assert.Len(t, customers, (g.requests-1)*g.pageSize, "no customer comes twice")
		})
	}
}

func TestDoRefusesAQueryThatContainsItself(t *testing.T) {
	t.Parallel()
	type node struct {
		Next *node `url:"next"`
	}
	loop := new(node)
	loop.Next = loop
	s := play()
	err := clientOf(t, s).Do(t.Context(), http.MethodGet, "/v2/things", loop, nil)
	require.ErrorContains(t, err, "contains itself")
	assert.Empty(t, s.at)
}
