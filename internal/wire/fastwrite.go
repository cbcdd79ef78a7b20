package wire

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway/internal/scan"
)

// The fast writing does for the bodies of requests, and for the mock gateway's
// answers, what the fast reading does for what comes in: by a plan per type it
// writes what the JSON package would, and leaves to it whatever it does not
// know. A fuzz test holds the two to the same bytes.

// writeFunc appends the JSON of v. It reports false where it gave up.
type writeFunc func(b []byte, v reflect.Value) ([]byte, bool)

// writers are the writing functions of the types written so far; see plans.
var writers sync.Map // reflect.Type to writeFunc

func writerFor(t reflect.Type) writeFunc {
	if write, ok := writers.Load(t); ok {
		return write.(writeFunc) //nolint:forcetypeassert // nothing else is stored
	}
	write := makeWriter(t)
	writers.Store(t, write)
	return write
}

// appendFast appends the JSON of v, false where it gave up.
func appendFast(b []byte, v any) ([]byte, bool) {
	value := reflect.ValueOf(v)
	if !value.IsValid() {
		return append(b, "null"...), true
	}
	start := len(b)
	b, ok := writerFor(value.Type())(b, value)
	return b, ok && utf8.Valid(b[start:])
}

type zeroer interface{ IsZero() bool }

// appender is a type that writes itself, for either writing.
type appender interface{ AppendJSON(b []byte) []byte }

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	marshalerTo   = reflect.TypeFor[json.MarshalerTo]()
	textMarshaler = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
	textAppender  = reflect.TypeFor[interface {
		AppendText(b []byte) ([]byte, error)
	}]()
	isZeroer   = reflect.TypeFor[zeroer]()
	isAppender = reflect.TypeFor[appender]()
)

func makeWriter(t reflect.Type) writeFunc {
	if t.Implements(isAppender) && t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		return writeOwn
	}
	own := []reflect.Type{marshaler, marshalerTo, textMarshaler, textAppender}
	if slices.ContainsFunc(own, reflect.PointerTo(t).Implements) {
		return writeOther
	}
	switch t.Kind() { //nolint:exhaustive // all others are written by the JSON package
	case reflect.String:
		return writeString
	case reflect.Bool:
		return func(b []byte, v reflect.Value) ([]byte, bool) { return strconv.AppendBool(b, v.Bool()), true }
	case reflect.Int, reflect.Int64:
		return func(b []byte, v reflect.Value) ([]byte, bool) { return strconv.AppendInt(b, v.Int(), 10), true }
	case reflect.Pointer:
		return writePointer(writerFor(t.Elem()))
	case reflect.Interface:
		return writeDynamic
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return writeSlice(writerFor(t.Elem()))
		}
	case reflect.Struct:
		if w := planWriter(t); w != nil {
			return w.write
		}
	}
	return writeOther
}

// writeDynamic writes what an interface holds.
func writeDynamic(b []byte, v reflect.Value) ([]byte, bool) {
	if v.IsNil() {
		return append(b, "null"...), true
	}
	v = v.Elem()
	return writerFor(v.Type())(b, v)
}

// writeOwn writes with the type's own AppendJSON.
func writeOwn(b []byte, v reflect.Value) ([]byte, bool) {
	a, _ := inPlace(v).Interface().(appender)
	return a.AppendJSON(b), true
}

// inPlace returns v as a pointer where it can: an interface of a pointer takes
// no memory.
func inPlace(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v.Addr()
	}
	return v
}

// writeOther leaves the value to the JSON package.
func writeOther(b []byte, v reflect.Value) ([]byte, bool) {
	raw, err := json.Marshal(inPlace(v).Interface(), json.Deterministic(true))
	return append(b, raw...), err == nil
}

// writeString leaves to the JSON package what has to be escaped.
func writeString(b []byte, v reflect.Value) ([]byte, bool) {
	s := v.String()
	start := len(b) + 1
	b = append(append(append(b, '"'), s...), '"')
	// The memory behind the text lets Plain read eight bytes to the end.
	if scan.Plain(b[:cap(b)], start) == len(b)-1 {
		return b, true
	}
	raw, err := json.Marshal(s)
	return append(b[:start-1], raw...), err == nil
}

func writePointer(write writeFunc) writeFunc {
	return func(b []byte, v reflect.Value) ([]byte, bool) {
		if v.IsNil() {
			return append(b, "null"...), true
		}
		return write(b, v.Elem())
	}
}

func writeSlice(write writeFunc) writeFunc {
	return func(b []byte, v reflect.Value) ([]byte, bool) {
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			var ok bool
			if b, ok = write(b, v.Index(i)); !ok {
				return b, false
			}
		}
		return append(b, ']'), true
	}
}

// structWriter is how a struct is written.
type structWriter struct {
	fields []fieldWriter
	extra  int // the index of the unknown members; -1 for none
}

type fieldWriter struct {
	index    int
	name     string // with its quotes and the colon
	omitZero bool
	zeroer   bool // it says itself whether it is zero
	write    writeFunc
}

// planWriter returns nil for a struct that is not written fast.
func planWriter(t reflect.Type) *structWriter {
	w := &structWriter{extra: -1}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-", !f.IsExported() && !f.Anonymous:
		case options == "embed" && f.Type == rawMembers:
			w.extra = i
		case name == "" || options != "" && options != "omitzero":
			return nil
		default:
			w.fields = append(w.fields, fieldWriter{
				i, `"` + name + `":`, options == "omitzero", f.Type.Implements(isZeroer), writerFor(f.Type),
			})
		}
	}
	return w
}

func (w *structWriter) write(b []byte, v reflect.Value) ([]byte, bool) {
	if w.extra >= 0 && v.Field(w.extra).Len() > 0 {
		return b, false
	}
	b = append(b, '{')
	start := len(b)
	for i := range w.fields {
		f := &w.fields[i]
		value := v.Field(f.index)
		if f.omitZero && f.isZero(value) {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(b, f.name...)
		var ok bool
		if b, ok = f.write(b, value); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

func (f *fieldWriter) isZero(v reflect.Value) bool {
	if !f.zeroer {
		return v.IsZero()
	}
	z, _ := inPlace(v).Interface().(zeroer)
	return z.IsZero()
}
