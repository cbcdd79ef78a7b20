package jsonread

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
)

// plans are the functions that decode the types seen so far. They depend only
// on the types, so sharing them is safe.
var plans sync.Map // reflect.Type to readFunc

// planFor returns the function that decodes values of type t.
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
	doubtful        = reflect.TypeFor[Doubtful]()
)

func makePlan(t reflect.Type) readFunc {
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(ownReader):
		return readOwn
	case t.PkgPath() == "time", pointer.Implements(unmarshalerFrom):
		return readOther
	case pointer.Implements(doubtful):
		return readReadable
	case pointer.Implements(unmarshaler):
		return readMethod
	}
	switch t.Kind() { //nolint:exhaustive // the JSON package decodes all others
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

// structPlan says how to decode a struct.
type structPlan struct {
	fields []fieldPlan // in the order of the struct, which is that of the responses
}

type fieldPlan struct {
	name  string
	index []int // from the outermost struct
	read  readFunc
}

// HasPlan reports whether [Decode] decodes the struct T itself, without the JSON
// package.
func HasPlan[T any]() bool { return planStruct(reflect.TypeFor[T]()) != nil }

// planStruct returns nil for a struct that is left to the JSON package.
func planStruct(t reflect.Type) *structPlan {
	p := &structPlan{}
	if !p.add(t, nil) {
		return nil
	}
	return p
}

// add adds the fields of t, which has the given index, then those of its embedded
// structs, unless there is already a field with the same name.
func (p *structPlan) add(t reflect.Type, index []int) bool {
	var embedded []reflect.StructField
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-", !f.IsExported() && !f.Anonymous:
		case f.Anonymous && tag == "":
			embedded = append(embedded, f)
		case options != "" && options != "omitzero" && options != "omitempty":
			return false
		case !p.has(name):
			if name == "" {
				name = f.Name
			}
			p.fields = append(p.fields, fieldPlan{name, slices.Concat(index, f.Index), planFor(f.Type)})
		}
	}
	for _, f := range embedded {
		if f.Type.Kind() != reflect.Struct || !p.add(f.Type, slices.Concat(index, f.Index)) {
			return false
		}
	}
	return true
}

func (p *structPlan) has(name string) bool {
	return slices.ContainsFunc(p.fields, func(f fieldPlan) bool { return f.name == name })
}

// read decodes an object with unique names into the struct v.
func (p *structPlan) read(d *Document, i int, v reflect.Value) bool {
	if k := d.nodes[i].kind; k != '{' {
		return k == 'n'
	}
	next := 0
	for m, end := i+1, d.End(i); m < end; m = d.End(m) {
		f := p.field(d.Name(m), next)
		switch {
		case f < 0:
			continue
		case !p.fields[f].read(d, m, v.FieldByIndex(p.fields[f].index)):
			return false
		}
		next = f + 1
	}
	return true
}

// field returns the index of the member's field, or -1. The search starts at
// next, because responses usually have the order of the struct.
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
