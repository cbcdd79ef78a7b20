package gateway

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"github.com/gateway-go/gateway/internal/rules"
	"github.com/gateway-go/gateway/internal/wire"
)

// Direction says which way a list by cursor goes on from its cursor.
type Direction string

// The directions. Items are newest first in both.
const (
	DirectionNext Direction = "next" // the default
	DirectionPrev Direction = "prev"
)

// Known reports whether the interface names d.
func (d Direction) Known() bool { return rules.Directions.Has(string(d)) }

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	Total int // of all pages; 0 where the gateway does not say

	// The cursors of the pages after and before this one, "" where there is
	// none. A list goes on at a cursor also in another process: put it into the
	// params' Cursor.
	NextCursor string
	PrevCursor string

	// The number of this page, from 1, and its size, in lists by page number.
	Number int
	Limit  int
}

// HasMore reports whether there is a page after this one.
func (p *Page[T]) HasMore() bool {
	switch {
	case p.Number == 0:
		return p.NextCursor != ""
	case p.Total == 0: // the gateway does not say: go on until a page is not full
		return len(p.Items) > 0 && len(p.Items) >= p.Limit
	default:
		return len(p.Items) > 0 && p.Number*p.Limit < p.Total
	}
}

// Collect reads a sequence of All into a slice, at most limit items of it; all
// where limit is below 1. With an error it returns what came before.
func Collect[T any](seq iter.Seq2[*T, error], limit int) ([]T, error) {
	var items []T
	for item, err := range seq {
		if err != nil {
			return items, err
		}
		items = append(items, *item)
		if len(items) == limit {
			break
		}
	}
	return items, nil
}

// items ranges over the items of all pages.
func items[T any](pages iter.Seq2[*Page[T], error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for page, err := range pages {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
		}
	}
}

// fetchPage reads the page that the request's query asks for.
func fetchPage[T any](ctx context.Context, r *request) (*Page[T], error) {
	res, err := r.send(ctx)
	if err != nil {
		return nil, err
	}
	list, err := wire.DecodeList[T](res.Body)
	if err != nil {
		return nil, r.undecodable(&res, err)
	}
	r.answered(&res, list.RequestID)
	res.Release()
	page := &Page[T]{
		Items: list.Items, Total: list.Total,
		NextCursor: list.NextCursor, PrevCursor: list.PrevCursor,
		Number: list.Page, Limit: list.Limit,
	}
	if r.op.numbered {
		page.Number = max(page.Number, r.number("page"), 1)
		page.Limit = max(page.Limit, r.number("limit"))
	}
	return page, nil
}

// number reads a query parameter; 0 where there is none.
func (r *request) number(name string) int {
	n, _ := strconv.Atoi(r.query.Get(name))
	return n
}

// following returns the query parameter that asks for the next page in the
// direction of the request; its value is "" after the last page.
func (p *Page[T]) following(r *request) (name, value string) {
	switch {
	case r.op.numbered && p.HasMore():
		return "page", strconv.Itoa(p.Number + 1)
	case r.op.numbered:
		return "page", ""
	case r.query.Get("direction") == string(DirectionPrev):
		return "cursor", p.PrevCursor
	default:
		return "cursor", p.NextCursor
	}
}

// turn makes r ask for another page.
func (r *request) turn(name, value string) {
	if r.query == nil {
		r.query = url.Values{}
	}
	r.query.Set(name, value)
	u := *r.url
	u.RawQuery = r.query.Encode()
	r.url = &u
}
