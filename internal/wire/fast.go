package wire

import (
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/scan"
)

// The fast reading takes a third of the JSON package's time for the answers
// that come every day. It reads a struct by a plan that is made once per type,
// and gives up at whatever it does not know: a wrong type, a member that stands
// twice, surrogates, invalid UTF-8. The JSON package then reads the answer from
// its beginning. A fuzz test holds the two to the same results.

// fastReader reads one text.
type fastReader struct {
	scan.Scanner

	chunk strings.Builder // of the texts read so far
}

// readFunc reads the value at the reader's place, which Peek has moved to, into
// v, which is zero. It reports false where it gave up.
type readFunc func(r *fastReader, v reflect.Value) bool

// decodeFast reads body into v, which points to a zero value. It reports false
// where it gave up; v then holds anything.
func decodeFast(body []byte, v any) bool {
	if !scan.Valid(body) {
		return false
	}
	r := &fastReader{Scanner: scan.Scanner{Body: body}}
	target := reflect.ValueOf(v).Elem()
	r.Peek()
	return planFor(target.Type())(r, target) && r.End()
}

const (
	chunkSize = 1 << 10 // a text that is kept keeps at most this much
	longText  = chunkSize / 4
)

// text returns a string of what stands between two quotes. Short ones share a
// chunk of memory, so that an answer's texts take a few allocations; half of
// what is left to read is names and punctuation.
func (r *fastReader) text(b []byte, escaped bool) (string, bool) {
	switch {
	case escaped:
		unquoted, err := jsontext.AppendUnquote(nil, r.Body[r.At-len(b)-2:r.At])
		return string(unquoted), err == nil
	case len(b) == 0:
		return "", true
	case len(b) > longText:
		return string(b), true
	}
	if r.chunk.Cap()-r.chunk.Len() < len(b) {
		r.chunk.Reset()
		r.chunk.Grow(max(min(chunkSize, (len(r.Body)-r.At)/2), len(b)))
	}
	start := r.chunk.Len()
	r.chunk.Write(b)
	return r.chunk.String()[start:], true
}

// raw reads any value and returns its text.
func (r *fastReader) raw() ([]byte, bool) {
	start := r.At
	ok := r.Skip(scan.MaxDepth)
	return r.Body[start:r.At], ok
}

// null reads null where it stands.
func (r *fastReader) null() bool {
	return r.At < len(r.Body) && r.Body[r.At] == 'n' && r.Literal("null")
}

func readString(r *fastReader, v reflect.Value) bool {
	if r.null() {
		return true
	}
	b, escaped, ok := r.String()
	if !ok {
		return false
	}
	s, ok := r.text(b, escaped)
	v.SetString(s)
	return ok
}

func readBool(r *fastReader, v reflect.Value) bool {
	switch {
	case r.null(), r.Literal("false"):
		return true
	default:
		v.SetBool(true)
		return r.Literal("true")
	}
}

func readInt(r *fastReader, v reflect.Value) bool {
	if r.null() {
		return true
	}
	start := r.At
	if !r.Number() || r.At-start > 18 { // more digits may overflow
		return false
	}
	digits := r.Body[start:r.At]
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	n := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false // 1.0 and 1e3 are for the lenient reading
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	v.SetInt(n)
	return !v.OverflowInt(n)
}

// readPointer and readSlice make the plan of the type they lead to when they
// first read one: a type may lead to itself.
func readPointer(t reflect.Type) readFunc {
	plan := sync.OnceValue(func() readFunc { return planFor(t) })
	return func(r *fastReader, v reflect.Value) bool {
		if r.null() {
			return true
		}
		p := reflect.New(t)
		v.Set(p)
		return plan()(r, p.Elem())
	}
}

func readSlice(t reflect.Type) readFunc {
	plan := sync.OnceValue(func() readFunc { return planFor(t.Elem()) })
	none := reflect.MakeSlice(t, 0, 0)
	return func(r *fastReader, v reflect.Value) bool {
		if r.null() {
			return true
		}
		if !r.Byte('[') {
			return false
		}
		if r.Byte(']') {
			v.Set(none)
			return true
		}
		read := plan()
		for start, n := r.At, 0; ; n++ {
			if n == v.Cap() {
				v.Grow(r.more(start, n))
			}
			v.SetLen(n + 1)
			r.Peek()
			if !read(r, v.Index(n)) {
				return false
			}
			if r.Byte(']') {
				return true
			}
			if !r.Byte(',') {
				return false
			}
		}
	}
}

// more guesses how many further elements an array has that began at start and
// has had n: as many as fit into the rest of the text, if all are alike.
func (r *fastReader) more(start, n int) int {
	const few, many = 4, 1 << 10
	if n == 0 {
		return few
	}
	size := (r.At - start) / n
	return max(few, min((len(r.Body)-r.At)/max(size, 1)+1, many, n*32))
}

// readOwn reads with the type's own readFast.
func readOwn(r *fastReader, v reflect.Value) bool {
	own, _ := v.Addr().Interface().(interface{ readFast(r *fastReader) bool })
	return own.readFast(r)
}

// readMethod reads with the type's own UnmarshalJSON.
func readMethod(r *fastReader, v reflect.Value) bool {
	raw, ok := r.raw()
	if !ok {
		return false
	}
	u, _ := v.Addr().Interface().(json.Unmarshaler)
	return u.UnmarshalJSON(raw) == nil
}

// readOther leaves the value to the JSON package.
func readOther(r *fastReader, v reflect.Value) bool {
	raw, ok := r.raw()
	return ok && json.Unmarshal(raw, v.Addr().Interface(), strict) == nil
}
