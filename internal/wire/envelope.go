package wire

import (
	"cmp"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// Envelope is the envelope of every v2 response.
type Envelope[T any] struct {
	Failed    failed `json:"success"`
	RequestID string `json:"requestId"`
	Data      *T     `json:"data"`
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

// DecodeEnvelope reads a response with one resource. A missing "success" counts
// as true. The body must not be changed afterwards.
func DecodeEnvelope[T any](body []byte) (data *T, requestID string, err error) {
	var e Envelope[T]
	switch err := decode(body, &e, jsonread.DecodeOwned); {
	case err != nil:
		return nil, e.RequestID, err
	case bool(e.Failed):
		return nil, e.RequestID, ErrFailed
	case e.Data == nil:
		return nil, e.RequestID, ErrNoData
	}
	return e.Data, e.RequestID, nil
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
}

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
	present bool
	Items   []T
	cursors
}

type listObject[T any] struct {
	Data []T `json:"data"`
	cursors
}

// UnmarshalJSONFrom reads the array or the object.
func (d *listData[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '{':
		var o listObject[T]
		err := json.UnmarshalDecode(dec, &o)
		d.Items, d.cursors, d.present = o.Data, o.cursors, o.Data != nil
		return err
	default:
		d.present = true
		return json.UnmarshalDecode(dec, &d.Items)
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
		d.Items, d.cursors, d.present = o.Data, o.cursors, o.Data != nil
		return ok
	default:
		d.present = true
		return r.DecodeAt(at, &d.Items)
	}
}

// DecodeList reads a page of a list.
func DecodeList[T any](body []byte) (*List[T], error) {
	var e ListEnvelope[T]
	switch err := Decode(body, &e); {
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
	}, nil
}
