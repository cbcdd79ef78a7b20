package wire

import "reflect"

const (
	maxNesting = 64
	maxValues  = 100_000
)

// Finite reports whether v has no cycles and is not too large or too deeply
// nested. The query encoder does not detect cycles: a value that contains
// itself would overflow the stack and crash the process.
func Finite(v any) bool {
	left := maxValues
	return finite(reflect.ValueOf(v), maxNesting, &left)
}

func finite(v reflect.Value, depth int, left *int) bool {
	if *left--; depth == 0 || *left < 0 {
		return false
	}
	switch v.Kind() { //nolint:exhaustive // the others contain no values
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || finite(v.Elem(), depth-1, left)
	case reflect.Struct:
		for _, field := range v.Fields() {
			if !finite(field, depth-1, left) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		if isLeaf(v.Type().Elem()) {
			return true
		}
		for i := range v.Len() {
			if !finite(v.Index(i), depth-1, left) {
				return false
			}
		}
	case reflect.Map:
		if isLeaf(v.Type().Elem()) && isLeaf(v.Type().Key()) {
			return true
		}
		for m := v.MapRange(); m.Next(); {
			if !finite(m.Key(), depth-1, left) || !finite(m.Value(), depth-1, left) {
				return false
			}
		}
	}
	return true
}

// isLeaf reports whether values of type t contain no other values.
func isLeaf(t reflect.Type) bool { return t.Kind() < reflect.Array || t.Kind() == reflect.String }
