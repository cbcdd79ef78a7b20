package httpapi

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// defaultPage is how many items a cursor list has where limit is not sent.
const defaultPage = 20

// cursorQuery reads the parameters that all cursor lists share. They keep the
// rules already.
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

func cursorListOf[R, V any](p store.Page[R], view func(*R) V) cursorList {
	items := make([]V, len(p.Rows))
	for i, r := range p.Rows {
		items[i] = view(r)
	}
	return cursorList{Data: items, Total: p.Total, Next: nullable(&p.Next), Prev: nullable(&p.Prev)}
}

func badCursor() *problem {
	return invalid([]spec.Violation{{
		Field: "cursor", Message: "must be the next_cursor or prev_cursor of an earlier page of this list", Code: spec.CodeInvalid,
	}})
}

// list returns the values of a comma-joined parameter.
func list(q url.Values, name string) []string {
	if v := q.Get(name); v != "" {
		return strings.Split(v, ",")
	}
	return nil
}

// integers is list for numbers, each as records write it: 3 and not 03.
func integers(q url.Values, name string) []string {
	values := list(q, name)
	for i, v := range values {
		if n, err := strconv.Atoi(v); err == nil {
			values[i] = strconv.Itoa(n)
		}
	}
	return values
}

// day reads a timestamp, or a date in UTC, to which more is added; "" is the
// zero time.
func day(s string, more time.Duration) time.Time {
	if t, err := spec.ParseTime(s); err == nil {
		return t
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t.Add(more)
	}
	return time.Time{}
}
