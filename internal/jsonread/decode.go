package jsonread

import (
	"reflect"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode decodes body into v, which must point to a zero value, in two thirds of
// the JSON package's time. It uses a plan that is built once per type. It
// returns false if it gives up, for example at a value of the wrong type; v is
// then undefined, and the caller uses the JSON package. A fuzz test compares the
// results with the JSON package's.
func Decode(body []byte, v any) bool { return decode(body, v, false) }

// DecodeOwned is like [Decode], for a body that no one changes afterwards. The
// strings decoded from a short body share its memory instead of being copied.
func DecodeOwned(body []byte, v any) bool { return decode(body, v, len(body) <= ShortBody) }

func decode(body []byte, v any, owned bool) bool {
	d := documents.Get().(*Document) //nolint:forcetypeassert // the pool contains only Documents
	defer release(d)
	d.owned = owned
	return d.Scan(body) && d.Decode(v)
}

var documents = sync.Pool{New: func() any { return new(Document) }}

func release(d *Document) {
	d.Reset()
	documents.Put(d)
}

// Decode decodes the document into v as [Decode] does.
func (d *Document) Decode(v any) bool { return d.DecodeAt(0, v) }

// DecodeAt decodes node i into v, which must point to a zero value. It returns
// false if it gives up.
func (d *Document) DecodeAt(i int, v any) bool {
	target := reflect.ValueOf(v).Elem()
	return planFor(target.Type())(d, i, target)
}

// NodeDecoder is a type that decodes itself from a node. DecodeNode returns
// false if it gives up.
type NodeDecoder interface{ DecodeNode(d *Document, i int) bool }

// readFunc decodes node i into the zero value v, which must have the type that the
// function was made for. It returns false if it gives up.
type readFunc func(d *Document, i int, v reflect.Value) bool

// ShortBody is the length up to which [DecodeOwned] shares the body's memory:
// keeping one string alive keeps at most this much alive.
const ShortBody = 2 << 10

const (
	chunkSize  = 1 << 10 // what a copied string keeps alive at most
	longString = chunkSize / 4
)

// text returns the string of node i, which shares the memory of an owned body and
// is otherwise a copy. Copies of short strings share a chunk of memory, so that
// the strings of a response take only a few allocations. A chunk is at most half
// as long as the remaining input, because the other half is names and punctuation.
func (d *Document) text(i int) (string, bool) {
	n := &d.nodes[i]
	if n.escapes {
		unquoted, err := jsontext.AppendUnquote(nil, d.raw(i))
		return string(unquoted), err == nil
	}
	b := d.body[n.raw+1 : n.rawEnd-1]
	switch {
	case len(b) == 0:
		return "", true
	case d.owned:
		return view(b), true
	case len(b) > longString:
		return string(b), true
	}
	if cap(d.chunk)-len(d.chunk) < len(b) {
		d.chunk = make([]byte, 0, max(min(chunkSize, (len(d.body)-int(n.rawEnd))/2), len(b)))
	}
	start := len(d.chunk)
	d.chunk = append(d.chunk, b...)
	return view(d.chunk[start:]), true
}

func readString(d *Document, i int, v reflect.Value) bool {
	if k := d.nodes[i].kind; k != '"' {
		return k == 'n'
	}
	s, ok := d.text(i)
	v.SetString(s)
	return ok
}

func readBool(d *Document, i int, v reflect.Value) bool {
	k := d.nodes[i].kind
	v.SetBool(k == 't')
	return k == 't' || k == 'f' || k == 'n'
}

func readInt(d *Document, i int, v reflect.Value) bool {
	if k := d.nodes[i].kind; k != '0' {
		return k == 'n'
	}
	n, ok := PlainInteger(d.Raw(i)) // 1.0 and 1e3 are left to lenient decoding
	v.SetInt(n)
	return ok && v.Int() == n
}

// readPointer and readSlice make the plan of their element type only when they
// first need it, because a type may refer to itself.
func readPointer(t reflect.Type) readFunc {
	plan := sync.OnceValue(func() readFunc { return planFor(t) })
	return func(d *Document, i int, v reflect.Value) bool {
		if d.nodes[i].kind == 'n' {
			return true
		}
		v.Set(reflect.New(t))
		return plan()(d, i, v.Elem())
	}
}

func readSlice(t reflect.Type) readFunc {
	plan := sync.OnceValue(func() readFunc { return planFor(t.Elem()) })
	empty := reflect.MakeSlice(t, 0, 0)
	return func(d *Document, i int, v reflect.Value) bool {
		if k := d.nodes[i].kind; k != '[' {
			return k == 'n'
		}
		v.Set(empty)
		read := plan()
		for n, e := 0, i+1; e < d.End(i); n, e = n+1, d.End(e) {
			if n == v.Cap() {
				v.Grow(d.more(i, e, n))
			}
			v.SetLen(n + 1)
			if !read(d, e, v.Index(n)) {
				return false
			}
		}
		return true
	}
}

// more estimates how many elements array i has from e on, after the first n,
// assuming that all elements have the same number of nodes.
func (d *Document) more(i, e, n int) int {
	const few, many = 4, 1 << 10
	if n == 0 {
		return few
	}
	size := (e - i - 1) / n
	return max(few, min((d.End(i)-e)/size, many, n*32))
}

// readOwn uses the type's own DecodeNode.
func readOwn(d *Document, i int, v reflect.Value) bool {
	own, _ := v.Addr().Interface().(NodeDecoder)
	return own.DecodeNode(d, i)
}

// readMethod uses the type's own UnmarshalJSON.
func readMethod(d *Document, i int, v reflect.Value) bool {
	own, _ := v.Addr().Interface().(json.Unmarshaler)
	return own.UnmarshalJSON(d.raw(i)) == nil
}

// Doubtful is a type that decodes every value and says afterwards whether it could read it.
type Doubtful interface {
	json.Unmarshaler
	Unreadable() bool
}

// readReadable gives up if the value can't be read, so that the caller notices it.
func readReadable(d *Document, i int, v reflect.Value) bool {
	own, _ := v.Addr().Interface().(Doubtful)
	return own.UnmarshalJSON(d.raw(i)) == nil && !own.Unreadable()
}

// readOther leaves the value to the JSON package.
func readOther(d *Document, i int, v reflect.Value) bool {
	return json.Unmarshal(d.raw(i), v.Addr().Interface(), Lenient) == nil
}
