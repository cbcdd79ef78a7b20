package wire

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// Encoder encodes request params and the mock's responses as the JSON package
// does, in a third of the time; bench/README.md shows how much that saves. It
// encodes this module's structs of strings, numbers and other such structs,
// and leaves everything else to the JSON package.
type Encoder struct {
	Options json.Options   // for the JSON package
	Plain   []reflect.Type // encoded by their fields, although they have a MarshalJSON

	shapes sync.Map // reflect.Type to *shape
}

// Encode returns the JSON of v, whose type must not contain itself.
func (e *Encoder) Encode(v any) ([]byte, error) { return e.Append(make([]byte, 0, 1<<10), v) }

// Append appends the result of [Encoder.Encode] to b.
func (e *Encoder) Append(b []byte, v any) ([]byte, error) {
	if v != nil {
		if out, err := e.append(b, reflect.ValueOf(v), e.shape(reflect.TypeOf(v))); err == nil {
			return out, nil
		}
	}
	raw, err := json.Marshal(v, e.Options) // its error says which field is wrong
	return append(b, raw...), err
}

// appender is implemented by values that append their own JSON.
type appender interface{ AppendJSON(b []byte) []byte }

// shape says how to encode a type.
type shape struct {
	kind    reflect.Kind // Invalid if the JSON package encodes it
	appends bool         // it is an appender
	elem    *shape       // of a pointer or a slice
	fields  []field      // of a struct
}

type field struct {
	*shape

	index    int
	name     string // with its quotes and colon
	omitZero bool
}

var module = strings.TrimSuffix(reflect.TypeFor[Encoder]().PkgPath(), "/internal/wire")

func (e *Encoder) shape(t reflect.Type) *shape {
	s, known := e.shapes.Load(t)
	if !known {
		s, _ = e.shapes.LoadOrStore(t, e.shapeOf(t))
	}
	return s.(*shape) //nolint:forcetypeassert // nothing else is stored
}

func (e *Encoder) shapeOf(t reflect.Type) *shape {
	s := &shape{kind: t.Kind()}
	own := false
	switch reflect.New(t).Interface().(type) {
	case appender:
		own, s.appends = true, true
	case json.Marshaler, json.MarshalerTo, encoding.TextMarshaler:
		own = !slices.Contains(e.Plain, t)
	}
	switch {
	case own, s.kind == reflect.Struct && !strings.HasPrefix(t.PkgPath()+"/", module+"/"),
		s.kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8: // in base64
		s.kind = reflect.Invalid
	case s.kind == reflect.Pointer, s.kind == reflect.Slice:
		s.elem = e.shapeOf(t.Elem())
	case s.kind == reflect.Struct:
		for f := range t.Fields() {
			name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-":
				continue
			case name == "", option != "" && option != "omitzero":
				return &shape{kind: reflect.Invalid}
			}
			s.fields = append(s.fields, field{e.shapeOf(f.Type), f.Index[0], `"` + name + `":`, option != ""})
		}
	}
	return s
}

func (e *Encoder) append(b []byte, v reflect.Value, s *shape) (_ []byte, err error) {
	switch s.kind {
	case reflect.String:
		return jsonread.AppendQuote(b, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), nil
	case reflect.Int, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10), nil
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, "null"...), nil
		}
		return e.append(b, v.Elem(), s.elem)
	case reflect.Interface:
		if v.IsNil() {
			return append(b, "null"...), nil
		}
		return e.append(b, v.Elem(), e.shape(v.Elem().Type()))
	case reflect.Slice:
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = e.append(b, v.Index(i), s.elem); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	case reflect.Struct:
		b = append(b, '{')
		start := len(b)
		for i := range s.fields {
			f := &s.fields[i]
			value := v.Field(f.index)
			switch {
			case f.omitZero && value.IsZero():
				continue
			case len(b) > start:
				b = append(b, ',')
			}
			if b, err = e.append(append(b, f.name...), value, f.shape); err != nil {
				return b, err
			}
		}
		return append(b, '}'), nil
	default:
		if s.appends && v.CanAddr() {
			return v.Addr().Interface().(appender).AppendJSON(b), nil //nolint:forcetypeassert // see shapeOf
		}
		raw, err := json.Marshal(v.Interface(), e.Options)
		return append(b, raw...), err
	}
}
