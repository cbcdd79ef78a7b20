package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// defaultPage is the default size of a page of a cursor list.
const defaultPage = 20

// cursorQuery reads the parameters that all cursor lists share. They have
// already been validated.
func cursorQuery[R any](q url.Values) store.Query[R] {
	query := store.Query[R]{
		Limit:  defaultPage,
		Cursor: q.Get("cursor"),
		Prev:   q.Get("direction") == "prev",
	}
	if n, err := strconv.Atoi(q.Get("limit")); err == nil {
		query.Limit = n
	}
	return query
}

// listed is a list of R with items of type V.
type listed[R, V any] struct {
	table func(*store.Data) *store.Table[R]
	query func(*store.Data, url.Values) store.Query[R] // called with a valid query only
	view  func(*R) V
}

// page validates the query and returns its page. A repeated parameter is one
// comma-separated list; an empty one counts as absent.
func (l listed[R, V]) page(rq *request) (page store.Page[R], items []V, p *problem) {
	q, err := url.ParseQuery(rq.r.URL.RawQuery)
	if err != nil {
		return page, nil, &problem{status: http.StatusUnprocessableEntity, code: engine.CodeValidation, detail: "The query string is malformed."}
	}
	wrong := spec.CheckQuery(q, rq.route.Rule, rq.api.variant())
	for name, values := range q {
		q[name] = []string{spec.Joined(values)}
	}
	rq.view(func(d *store.Data) {
		query := store.Query[R]{Cursor: q.Get("cursor")} // enough to check the cursor
		if len(wrong) == 0 {
			query = l.query(d, q)
		}
		page, err = l.table(d).Page(query)
	})
	if err != nil {
		wrong = append(wrong, spec.Violation{
			Field: "cursor", Message: "must be the next_cursor or prev_cursor of an earlier page of this list", Code: spec.CodeInvalid,
		})
	}
	if len(wrong) > 0 {
		return page, nil, invalid(wrong)
	}
	items = make([]V, len(page.Rows))
	for i, r := range page.Rows {
		items[i] = l.view(r)
	}
	return page, items, nil
}

// byID returns the handler of a read by id. kind names the resource in errors:
// "transfer".
func (l listed[R, V]) byID(kind string) handler {
	return plainly(func(rq *request) (any, *engine.Refusal) {
		var r *R
		rq.view(func(d *store.Data) { r = read(rq, l.table(d)) })
		if r == nil {
			return nil, engine.NotFound(kind)
		}
		return l.view(r), nil
	})
}

// byCursor handles a list by cursor.
func (l listed[R, V]) byCursor(rq *request) (any, *problem) {
	page, items, p := l.page(rq)
	if p != nil {
		return nil, p
	}
	data := cursorList{items, page.Total, nullable(&page.Next), nullable(&page.Prev)}
	if rq.api.cfg.Dialect.Live(spec.ListEnvelope) {
		return liveCursorList{true, rq.id, data}, nil
	}
	return data, nil
}

// list returns the values of a comma-separated parameter.
func list(q url.Values, name string) []string {
	if v := q.Get(name); v != "" {
		return strings.Split(v, ",")
	}
	return nil
}

// integers is like list, with each number in canonical form: 03 becomes 3.
func integers(q url.Values, name string) []string {
	values := list(q, name)
	for i, v := range values {
		if n, err := strconv.Atoi(v); err == nil {
			values[i] = strconv.Itoa(n)
		}
	}
	return values
}

// day parses a timestamp, or a UTC date, to which it adds more. "" is the zero
// time.
func day(s string, more time.Duration) time.Time {
	if t, err := spec.ParseTime(s); err == nil {
		return t
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t.Add(more)
	}
	return time.Time{}
}
