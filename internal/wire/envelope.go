package wire

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/spec"
)

// Envelope is the envelope of every v2 response.
type Envelope[T any] struct {
	Failed    failed      `json:"success"`
	RequestID string      `json:"requestId"`
	Data      Resource[T] `json:"data"`
}

// Resource is a resource and its place in the body.
type Resource[T any] struct {
	Value *T // nil for null
	place span
}

// Raw returns the JSON of the resource, which is a part of the body.
func (r *Resource[T]) Raw(body []byte) []byte { return r.place.of(body) }

// span is the place of a value in a body. White space and punctuation may precede
// the value.
type span struct{ from, to int }

func (s span) of(body []byte) []byte { return bytes.TrimLeft(body[s.from:s.to:s.to], " \t\r\n:,") }

// UnmarshalJSONFrom reads the resource.
func (r *Resource[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) (err error) {
	r.place, err = unmarshal(dec, &r.Value)
	return err
}

// DecodeNode does the same for [jsonread.Decode].
func (r *Resource[T]) DecodeNode(d *jsonread.Document, at int) bool {
	r.place.from, r.place.to = d.Place(at)
	return d.DecodeAt(at, &r.Value)
}

func unmarshal(dec *jsontext.Decoder, v any) (place span, err error) {
	place.from = int(dec.InputOffset())
	err = json.UnmarshalDecode(dec, v)
	place.to = int(dec.InputOffset())
	return place, err
}

// failed is true if "success" is false. If "success" is missing, null or not a
// boolean, it counts as true: the HTTP status is more reliable.
type failed bool

// UnmarshalJSON accepts any value.
func (f *failed) UnmarshalJSON(b []byte) error {
	*f = string(b) == "false"
	return nil
}

// ErrFailed means that a response has success=false, whatever its HTTP status.
// Its body is a problem.
var ErrFailed = errors.New("the response has success=false")

// Failed reports whether a response has success=false.
func Failed(body []byte) bool {
	var e struct {
		Failed failed `json:"success"`
	}
	return Decode(body, &e) == nil && bool(e.Failed)
}

// ErrNoData means that a response has no data.
var ErrNoData = errors.New("the response has no data")

// Result is a resource that was read from a response.
type Result[T any] struct {
	Data      *T
	Raw       []byte // the JSON of the resource, a part of the body
	RequestID string
	Unread    []Unread
}

// DecodeEnvelope reads a response with one resource, and leaves out what m does not
// require; see [DecodeMembers]. A missing "success" counts as true. The body must not be
// changed afterwards: strings of the resource may be parts of it.
func DecodeEnvelope[T any](body []byte, m *spec.Members) (*Result[T], error) {
	var e Envelope[T]
	unread, err := decodeMembers(body, &e, m, jsonread.DecodeOwned, inEnvelope)
	switch {
	case err != nil:
		return nil, err
	case bool(e.Failed):
		return nil, ErrFailed
	case e.Data.Value == nil:
		return nil, ErrNoData
	}
	return &Result[T]{Data: e.Data.Value, Raw: e.Data.Raw(body), RequestID: e.RequestID, Unread: unread}, nil
}

// List is a page of a list in either shape: data is an object with the items
// and the cursors, or data is the array and the cursors are next to it. Lists
// by page number have metadata instead of cursors.
type List[T any] struct {
	Items      []T
	Total      int
	NextCursor string
	PrevCursor string
	Page       int // of a list by page number, from 1
	Limit      int // of a list by page number
	RequestID  string
	Unread     []Unread

	body []byte
	data listData[T]
}

// Raw returns the JSON of item i, which is a part of the body.
func (l *List[T]) Raw(i int) []byte { return l.data.Raw(l.body, i) }

// ListEnvelope is the envelope of a page of a list, in either shape.
type ListEnvelope[T any] struct {
	Failed    failed       `json:"success"`
	RequestID string       `json:"requestId"`
	Data      listData[T]  `json:"data"`
	Metadata  listMetadata `json:"metadata"`
	cursors
}

type cursors struct {
	Total      int    `json:"total"`
	NextCursor string `json:"next_cursor"`
	PrevCursor string `json:"prev_cursor"`
}

type listMetadata struct {
	Page  int `json:"page"`
	Limit int `json:"limit"`
	Total int `json:"total"`
}

// listData is "data" in either shape.
type listData[T any] struct {
	items[T]
	cursors

	present bool
}

type listObject[T any] struct {
	Data items[T] `json:"data"`
	cursors
}

// items are the items of a list and their places in the body.
type items[T any] struct {
	Items  []T
	places []span
}

// Raw returns the JSON of item i, which is a part of the body.
func (l *items[T]) Raw(body []byte, i int) []byte { return l.places[i].of(body) }

// UnmarshalJSONFrom reads an array.
func (l *items[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '[' {
		return json.UnmarshalDecode(dec, &l.Items)
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	l.Items = []T{}
	for dec.PeekKind() != ']' {
		var item T
		place, err := unmarshal(dec, &item)
		if err != nil {
			return err
		}
		l.Items, l.places = append(l.Items, item), append(l.places, place)
	}
	_, err := dec.ReadToken()
	return err
}

// DecodeNode does the same for [jsonread.Decode].
func (l *items[T]) DecodeNode(d *jsonread.Document, at int) bool {
	if !d.DecodeAt(at, &l.Items) {
		return false
	}
	l.places = make([]span, 0, len(l.Items))
	for i := range d.Children(at) {
		from, to := d.Place(i)
		l.places = append(l.places, span{from, to})
	}
	return true
}

// UnmarshalJSONFrom reads the array or the object.
func (d *listData[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '{':
		var o listObject[T]
		err := json.UnmarshalDecode(dec, &o)
		d.items, d.cursors, d.present = o.Data, o.cursors, o.Data.Items != nil
		return err
	default:
		d.present = true
		return json.UnmarshalDecode(dec, &d.items)
	}
}

// DecodeNode does the same for [jsonread.Decode].
func (d *listData[T]) DecodeNode(r *jsonread.Document, at int) bool {
	switch r.Kind(at) {
	case 'n':
		return true
	case '{':
		var o listObject[T]
		ok := r.DecodeAt(at, &o)
		d.items, d.cursors, d.present = o.Data, o.cursors, o.Data.Items != nil
		return ok
	default:
		d.present = true
		return r.DecodeAt(at, &d.items)
	}
}

// DecodeList reads a page of a list, and leaves out what m does not require of its items;
// see [DecodeMembers].
func DecodeList[T any](body []byte, m *spec.Members) (*List[T], error) {
	var e ListEnvelope[T]
	unread, err := decodeMembers(body, &e, m, jsonread.Decode, inPage)
	switch {
	case err != nil:
		return nil, err
	case bool(e.Failed):
		return nil, ErrFailed
	case !e.Data.present:
		return nil, ErrNoData
	}
	inner := e.Data.cursors
	return &List[T]{
		Items:      e.Data.Items,
		Total:      max(inner.Total, e.Total, e.Metadata.Total),
		NextCursor: cmp.Or(inner.NextCursor, e.NextCursor),
		PrevCursor: cmp.Or(inner.PrevCursor, e.PrevCursor),
		Page:       e.Metadata.Page,
		Limit:      e.Metadata.Limit,
		RequestID:  e.RequestID,
		Unread:     unread,
		body:       body,
		data:       e.Data,
	}, nil
}
