package gateway

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/url"
	"reflect"
	"strconv"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// Direction is the direction in which a list continues from a cursor.
type Direction string

// The directions. Items are newest first in both.
const (
	DirectionNext Direction = "next" // the default
	DirectionPrev Direction = "prev"
)

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	Total int // items on all pages; 0 if unknown

	// The cursors of the pages after and before this one, "" if there is none.
	// To continue a list from a cursor, even in another process, set Cursor in
	// the params.
	NextCursor string
	PrevCursor string

	// The number of this page, from 1, and its size. Only lists with page
	// numbers have them.
	Number int
	Limit  int
}

// HasMore reports whether there is a page after this one.
func (p *Page[T]) HasMore() bool {
	switch {
	case p.Number == 0:
		return p.NextCursor != ""
	case p.Total == 0: // unknown: continue until a page is not full
		return len(p.Items) > 0 && len(p.Items) >= p.Limit
	default:
		return len(p.Items) > 0 && (p.Number-1)*p.Limit+len(p.Items) < p.Total
	}
}

// Collect reads the items of All into a slice: up to limit items, or all if
// limit is less than 1. If reading fails, it returns the error and the items
// read so far.
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

// items iterates over the items of all pages.
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

// fetchPage makes one call for the page that the request asks for.
func fetchPage[T any](ctx context.Context, r *request) (*Page[T], error) {
	ctx = r.begin(ctx)
	page, err := readPage[T](ctx, r)
	r.end(err)
	return page, err
}

// hugePage is the length of a page whose items don't share its memory, so that one
// item does not keep it alive. A page of 100 transactions has half as much.
const hugePage = 256 << 10

func readPage[T any](ctx context.Context, r *request) (*Page[T], error) {
	res, err := r.send(ctx)
	if err != nil {
		return nil, err
	}
	list, err := wire.DecodeList[T](res.Body, membersOf[T]())
	if err == nil {
		err = checkIdentities(list.Items)
	}
	if err != nil {
		return nil, r.undecodable(res, err)
	}
	for i := range list.Items {
		if k, ok := any(&list.Items[i]).(keeper); ok {
			raw := list.Raw(i)
			if len(res.Body) > hugePage {
				raw = bytes.Clone(raw)
			}
			k.keep(raw)
		}
	}
	r.fillResponse(res, list.RequestID)
	unread := list.Unread
	for i := range list.Items {
		unread = leftOut(unread, &list.Items[i])
	}
	r.warnUnread(ctx, unread)
	page := &Page[T]{
		Items: list.Items, Total: list.Total,
		NextCursor: list.NextCursor, PrevCursor: list.PrevCursor,
	}
	if r.numbered(page) {
		page.Number = cmp.Or(list.Page, r.number("page"), 1)
		page.Limit = cmp.Or(list.Limit, r.number("limit"))
	}
	return page, nil
}

// numbered reports whether a list continues by page number. If a gateway sends
// cursors where page numbers are documented, the cursors are used.
func (r *request) numbered(page interface{ hasCursor() bool }) bool {
	return r.op.Numbered && !page.hasCursor() && !r.query.Has("cursor")
}

func (p *Page[T]) hasCursor() bool { return p.NextCursor != "" || p.PrevCursor != "" }

// number reads a query parameter; 0 if there is none.
func (r *request) number(name string) int {
	n, _ := strconv.Atoi(r.query.Get(name))
	return n
}

// turn changes r to request another page.
func (r *request) turn(name, value string) {
	if r.query == nil {
		r.query = url.Values{}
	}
	if name == "cursor" {
		r.query.Del("page")
	}
	r.query.Set(name, value)
	u := *r.url
	u.RawQuery = r.query.Encode()
	r.url = &u
}

// list prepares the request for a list. Invalid params are reported to the
// observer as a failed call.
func (c *Client) list(ctx context.Context, op *spec.Operation, params any, opts []RequestOption) (*request, error) {
	r, err := c.newRequest(op, opts)
	if err != nil {
		return nil, err
	}
	if err := r.prepare(params, nil); err != nil {
		r.begin(ctx)
		r.end(err)
		return nil, err
	}
	return r, nil
}

// listPage reads one page of a list.
func listPage[T any](ctx context.Context, c *Client, op *spec.Operation, params any, opts []RequestOption) (*Page[T], error) {
	r, err := c.list(ctx, op, params, opts)
	if err != nil {
		return nil, err
	}
	return fetchPage[T](ctx, r)
}

// listPages iterates over the pages, starting at the page in params. Nothing
// is sent before the iteration starts.
func listPages[T any](ctx context.Context, c *Client, op *spec.Operation, params any, opts []RequestOption) iter.Seq2[*Page[T], error] {
	return func(yield func(*Page[T], error) bool) {
		r, err := c.list(ctx, op, params, opts)
		if err != nil {
			yield(nil, err)
			return
		}
		p := pager[T]{request: r, cursors: map[string]bool{r.query.Get("cursor"): true}}
		for more := true; more; {
			page, err := p.read(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(page, nil) {
				return
			}
			if more, err = p.turn(page); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// pager reads one page after another. If a list does not advance, it returns an
// error, rather than rely on the gateway to end the list.
type pager[T any] struct {
	*request

	cursors map[string]bool // those requested so far
	last    *Page[T]
	seen    int // items read so far, in a list by page number
}

// read reads the page that the request asks for.
func (p *pager[T]) read(ctx context.Context) (*Page[T], error) {
	page, err := fetchPage[T](ctx, p.request)
	if err != nil || page.Number == 0 || p.last == nil {
		return page, err
	}
	switch wanted := p.number("page"); {
	case page.Number != wanted:
		return nil, p.notAdvancing("the gateway returned page %d instead of page %d", page.Number, wanted)
	case len(page.Items) > 0 && reflect.DeepEqual(page.Items, p.last.Items):
		return nil, p.notAdvancing("page %d has the same items as the page before it", wanted)
	}
	return page, nil
}

// turn changes the request to the page after page; it reports false if there is
// none.
func (p *pager[T]) turn(page *Page[T]) (more bool, err error) {
	if page.Number > 0 {
		more = p.count(page)
		p.last = page
		p.request.turn("page", strconv.Itoa(page.Number+1))
		return more, nil
	}
	cursor := page.NextCursor
	if p.query.Get("direction") == string(DirectionPrev) {
		cursor = page.PrevCursor
	}
	switch {
	case cursor == "":
		return false, nil
	case p.cursors[cursor]:
		return false, p.notAdvancing("cursor %q was returned twice", cursor)
	}
	p.cursors[cursor] = true
	p.request.turn("cursor", cursor)
	return true, nil
}

// count reports whether another page follows a numbered page. It counts the
// items received, since the gateway may cap the requested limit. A full page
// never ends the list, so no item is missed if the total counts only one page.
func (p *pager[T]) count(page *Page[T]) bool {
	n := len(page.Items)
	if p.last == nil {
		p.seen = (page.Number - 1) * cmp.Or(page.Limit, n)
	}
	p.seen += n
	return n > 0 && (p.seen < page.Total || page.Limit == 0 && page.Total == 0 || page.Limit > 0 && n >= page.Limit)
}

func (p *pager[T]) notAdvancing(format string, args ...any) error {
	return &Error{Op: p.op.Name, Err: fmt.Errorf("the list does not advance: "+format, args...)}
}
