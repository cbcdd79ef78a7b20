package jsonread

import (
	"reflect"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads body into v, which points to a zero value, using a plan that is
// built once per type, in two thirds of the JSON package's time. It reports
// false if it gave up, for example at a wrong type; the content of v is then
// undefined, and the caller uses the JSON package. A fuzz test compares the
// two.
func Decode(body []byte, v any) bool {
	d := documents.Get().(*Document) //nolint:forcetypeassert // the pool holds nothing else
	defer release(d)
	return d.Scan(body) && d.Decode(v)
}

var documents = sync.Pool{New: func() any { return new(Document) }}

func release(d *Document) {
	d.Reset()
	documents.Put(d)
}

// Decode fills v, which points to a zero value, as [Decode] does.
func (d *Document) Decode(v any) bool { return d.DecodeAt(0, v) }

// DecodeAt reads node i into v, which points to a zero value. It reports false
// if it gave up.
func (d *Document) DecodeAt(i int, v any) bool {
	target := reflect.ValueOf(v).Elem()
	return planFor(target.Type())(d, i, target)
}

// NodeDecoder is a type that reads itself, as [Document.DecodeAt] does.
type NodeDecoder interface{ DecodeNode(d *Document, i int) bool }

// readFunc reads node i into v, which is zero. It reports false if it gave
// up.
type readFunc func(d *Document, i int, v reflect.Value) bool

const (
	chunkSize  = 1 << 10 // a retained string retains at most this much
	longString = chunkSize / 4
)

// text returns a copy of the string of node i. Short ones share a chunk of
// memory, so that a response's strings take a few allocations; half of the
// remaining input is names and punctuation.
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
	return ok && !v.OverflowInt(n)
}

// readPointer and readSlice make the plan of their element type when they first
// need it: a type may refer to itself.
func readPointer(t reflect.Type) readFunc {
	plan := sync.OnceValue(func() readFunc { return planFor(t) })
	return func(d *Document, i int, v reflect.Value) bool {
		if d.nodes[i].kind == 'n' {
			return true
		}
		p := reflect.New(t)
		v.Set(p)
		return plan()(d, i, p.Elem())
	}
}

func readSlice(t reflect.Type) readFunc {
	plan := sync.OnceValue(func() readFunc { return planFor(t.Elem()) })
	none := reflect.MakeSlice(t, 0, 0)
	return func(d *Document, i int, v reflect.Value) bool {
		if k := d.nodes[i].kind; k != '[' {
			return k == 'n'
		}
		v.Set(none)
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
// assuming that all elements have equally many nodes.
func (d *Document) more(i, e, n int) int {
	const few, many = 4, 1 << 10
	if n == 0 {
		return few
	}
	size := (e - i - 1) / n
	return max(few, min((d.End(i)-e)/size, many, n*32))
}

// readOwn reads with the type's own DecodeNode.
func readOwn(d *Document, i int, v reflect.Value) bool {
	own, _ := v.Addr().Interface().(NodeDecoder)
	return own.DecodeNode(d, i)
}

// readMethod reads with the type's own UnmarshalJSON.
func readMethod(d *Document, i int, v reflect.Value) bool {
	u, _ := v.Addr().Interface().(json.Unmarshaler)
	return u.UnmarshalJSON(d.raw(i)) == nil
}

// readOther leaves the value to the JSON package.
func readOther(d *Document, i int, v reflect.Value) bool {
	return json.Unmarshal(d.raw(i), v.Addr().Interface(), Lenient) == nil
}
