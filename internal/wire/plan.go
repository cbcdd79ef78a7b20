package wire

import (
	stdjson "encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway/internal/scan"
)

// plans are the reading functions of the types read so far. They are made from
// the types alone, so it makes no difference who makes them.
var plans sync.Map // reflect.Type to readFunc

// planFor returns how values of type t are read.
func planFor(t reflect.Type) readFunc {
	if read, ok := plans.Load(t); ok {
		return read.(readFunc) //nolint:forcetypeassert // nothing else is stored
	}
	read := makePlan(t)
	plans.Store(t, read)
	return read
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	unmarshalerFrom = reflect.TypeFor[json.UnmarshalerFrom]()
	ownReader       = reflect.TypeFor[interface{ readFast(r *fastReader) bool }]()
	rawMembers      = reflect.TypeFor[map[string]stdjson.RawMessage]()
)

func makePlan(t reflect.Type) readFunc {
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(ownReader):
		return readOwn
	case t.PkgPath() == "time", pointer.Implements(unmarshalerFrom):
		return readOther
	case pointer.Implements(unmarshaler):
		return readMethod
	}
	switch t.Kind() { //nolint:exhaustive // all others are read as they are
	case reflect.String:
		return readString
	case reflect.Bool:
		return readBool
	case reflect.Int, reflect.Int64:
		return readInt
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Struct {
			return readPointer(t.Elem())
		}
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return readSlice(t)
		}
	case reflect.Struct:
		if p := planStruct(t); p != nil {
			return p.read
		}
	}
	return readOther
}

// structPlan is how a struct is read.
type structPlan struct {
	fields []fieldPlan // in the order of the struct, which is that of the answers
	extra  []int       // where unknown members are kept; nil drops them
}

type fieldPlan struct {
	name   string
	quoted string
	index  int   // in its struct
	path   []int // to it, where it is embedded; else nil
	read   readFunc
}

// of returns the field of v.
func (f *fieldPlan) of(v reflect.Value) reflect.Value {
	if f.path != nil {
		return fieldAt(v, f.path)
	}
	return v.Field(f.index)
}

// planStruct returns nil for a struct that is not read fast.
func planStruct(t reflect.Type) *structPlan {
	p := &structPlan{}
	if !p.add(t, nil) || len(p.fields) > 64 {
		return nil
	}
	return p
}

const maxEmbedded = 8

// add adds the fields of t, then those of the structs embedded in it, which
// stand back behind fields of the same name.
func (p *structPlan) add(t reflect.Type, at []int) bool {
	if len(at) > maxEmbedded {
		return false // a type that embeds a pointer to itself
	}
	var embedded []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-", !f.IsExported() && !f.Anonymous:
		case options == "embed" && f.Type == rawMembers:
			p.extra = append(slices.Clone(at), i)
		case options == "embed", f.Anonymous && tag == "":
			embedded = append(embedded, f)
		case options != "" && options != "omitzero" && options != "omitempty":
			return false
		case !p.has(name):
			if name == "" {
				name = f.Name
			}
			field := fieldPlan{name: name, quoted: `"` + name + `"`, index: i, read: planFor(f.Type)}
			if at != nil {
				field.path = append(slices.Clone(at), i)
			}
			p.fields = append(p.fields, field)
		}
	}
	for _, f := range embedded {
		e := f.Type
		if e.Kind() == reflect.Pointer {
			e = e.Elem()
		}
		if e.Kind() != reflect.Struct || !p.add(e, append(slices.Clone(at), f.Index...)) {
			return false
		}
	}
	return true
}

func (p *structPlan) has(name string) bool {
	return slices.ContainsFunc(p.fields, func(f fieldPlan) bool { return f.name == name })
}

// read reads an object. A member that stands twice makes it give up: which of
// the two holds is the JSON package's to say.
func (p *structPlan) read(r *fastReader, v reflect.Value) bool {
	if r.null() {
		return true
	}
	if !r.Byte('{') {
		return false
	}
	if r.Byte('}') {
		return true
	}
	seen, next := uint64(0), 0
	for {
		r.Peek()
		i, name, ok := p.member(r, next)
		if !ok || !r.Byte(':') {
			return false
		}
		r.Peek()
		if i >= 0 {
			f, bit := &p.fields[i], uint64(1)<<i
			if seen&bit != 0 || !f.read(r, f.of(v)) {
				return false
			}
			seen, next = seen|bit, i+1
		} else if !p.keep(r, v, name) {
			return false
		}
		if r.Byte('}') {
			return true
		}
		if !r.Byte(',') {
			return false
		}
	}
}

// member reads a name and returns its field, or -1 and the name. It is most
// often the field after the last one, or one soon after that.
func (p *structPlan) member(r *fastReader, next int) (i int, name []byte, ok bool) {
	if next < len(p.fields) && r.Literal(p.fields[next].quoted) {
		return next, nil, true
	}
	name, escaped, ok := r.String()
	if !ok || escaped {
		return 0, nil, false
	}
	for i := next; i < len(p.fields); i++ {
		if p.fields[i].name == string(name) {
			return i, nil, true
		}
	}
	for i := range p.fields[:next] {
		if p.fields[i].name == string(name) {
			return i, nil, true
		}
	}
	return -1, name, true
}

// keep reads a member that the struct has no field for.
func (p *structPlan) keep(r *fastReader, v reflect.Value, name []byte) bool {
	start := r.At
	if !r.Skip(scan.MaxDepth) {
		return false
	}
	if p.extra == nil {
		return true
	}
	members, _ := fieldAt(v, p.extra).Addr().Interface().(*map[string]stdjson.RawMessage)
	if *members == nil {
		*members = map[string]stdjson.RawMessage{}
	}
	if _, twice := (*members)[string(name)]; twice {
		return false
	}
	(*members)[string(name)] = slices.Clone(r.Body[start:r.At])
	return true
}

// fieldAt returns the field at path, making the structs on the way to it.
func fieldAt(v reflect.Value, path []int) reflect.Value {
	v = v.Field(path[0])
	for _, i := range path[1:] {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}
