package jsonread

import (
	stdjson "encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
)

// plans has the reading functions of the types read so far. They depend only
// on the types, so sharing them is safe.
var plans sync.Map // reflect.Type to readFunc

// planFor returns the reading function for values of type t.
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
	ownReader       = reflect.TypeFor[NodeDecoder]()
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

// structPlan is the plan of a struct.
type structPlan struct {
	fields []fieldPlan // in the order of the struct, which is that of the responses
	extra  []int       // where unknown members are stored; nil drops them
}

type fieldPlan struct {
	name  string
	index int   // in its struct
	path  []int // to it, if it is embedded; else nil
	read  readFunc
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
	if !p.add(t, nil) {
		return nil
	}
	return p
}

const maxEmbedded = 8

// add adds the fields of t, then those of the structs embedded in it, unless a
// field has the same name.
func (p *structPlan) add(t reflect.Type, at []int) bool {
	if len(at) > maxEmbedded {
		return false // the type embeds a pointer to itself
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
			field := fieldPlan{name: name, index: i, read: planFor(f.Type)}
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

// read reads an object, whose names are unique.
func (p *structPlan) read(d *Document, i int, v reflect.Value) bool {
	if k := d.nodes[i].kind; k != '{' {
		return k == 'n'
	}
	next := 0
	for m, end := i+1, d.End(i); m < end; m = d.End(m) {
		f := p.field(d.Name(m), next)
		switch {
		case f < 0:
			p.keep(d, m, v)
			continue
		case !p.fields[f].read(d, m, p.fields[f].of(v)):
			return false
		}
		next = f + 1
	}
	return true
}

// field returns the field of a member, or -1. It is usually the one right
// after the last field, or close to it.
func (p *structPlan) field(name string, next int) int {
	for i := next; i < len(p.fields); i++ {
		if p.fields[i].name == name {
			return i
		}
	}
	for i := range p.fields[:next] {
		if p.fields[i].name == name {
			return i
		}
	}
	return -1
}

// keep stores a member that has no field in the struct.
func (p *structPlan) keep(d *Document, i int, v reflect.Value) {
	if p.extra == nil {
		return
	}
	members, _ := fieldAt(v, p.extra).Addr().Interface().(*map[string]stdjson.RawMessage)
	if *members == nil {
		*members = map[string]stdjson.RawMessage{}
	}
	(*members)[strings.Clone(d.Name(i))] = slices.Clone(d.raw(i))
}

// fieldAt returns the field at path, and allocates the structs that lead to
// it.
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
