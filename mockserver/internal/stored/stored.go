// Package stored checks values that were read back from a file. A snapshot with a valid
// checksum may have been written by anyone: what the gateway never creates must be
// rejected, since its rules rely on it.
package stored

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
)

// Rule returns what is wrong with a member, or "".
type Rule func(v reflect.Value) string

// Rules are the rules of members by their names, "Subscription.IntervalCount". A member
// without a rule must be a number from 0 to 2^53-1, or anything of another type. No
// element of a list may be null.
type Rules map[string]Rule

// MaxNumber is the largest number of a member without a rule.
const MaxNumber = 1<<53 - 1

// Check returns an error that names the first member that breaks a rule:
// "Transactions[2].Amount must be from 1 to 100000000, not 0".
func (r Rules) Check(name string, v any) error {
	if path, problem := r.walk(reflect.ValueOf(v), ""); problem != "" {
		return fmt.Errorf("%s%s %s", name, path, problem)
	}
	return nil
}

func (r Rules) walk(v reflect.Value, name string) (path, problem string) {
	if rule := r[name]; rule != nil {
		if problem := rule(v); problem != "" {
			return "", problem
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return r.walk(v.Elem(), "")
		}
	case reflect.Struct:
		return r.members(v)
	case reflect.Slice, reflect.Map:
		return r.elements(v)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if r[name] == nil {
			return "", Between(0, MaxNumber)(v)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Uint() > MaxNumber {
			return "", fmt.Sprintf("must be at most %d, not %d", int64(MaxNumber), v.Uint())
		}
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); f < 0 || f > MaxNumber || math.IsNaN(f) {
			return "", fmt.Sprintf("must be from 0 to %d, not %v", int64(MaxNumber), f)
		}
	default:
	}
	return "", ""
}

func (r Rules) members(v reflect.Value) (path, problem string) {
	t := v.Type()
	if t == reflect.TypeFor[time.Time]() {
		return "", ""
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Tag.Get("json") == "-" {
			continue
		}
		path, problem = r.walk(v.Field(i), t.Name()+"."+f.Name)
		switch {
		case problem == "":
		case f.Anonymous:
			return path, problem
		default:
			return "." + f.Name + path, problem
		}
	}
	return "", ""
}

func (r Rules) elements(v reflect.Value) (path, problem string) {
	switch v.Type().Elem().Kind() {
	case reflect.Uint8, reflect.String, reflect.Bool:
		return "", ""
	default:
	}
	if v.Kind() == reflect.Map {
		for _, key := range v.MapKeys() {
			if path, problem = r.walk(v.MapIndex(key), ""); problem != "" {
				return "[…]" + path, problem // the key may be secret
			}
		}
		return "", ""
	}
	for i := range v.Len() {
		at := v.Index(i)
		path, problem = r.walk(at, "")
		if at.Kind() == reflect.Pointer && at.IsNil() {
			problem = "must not be null"
		}
		if problem != "" {
			return fmt.Sprintf("[%d]%s", i, path), problem
		}
	}
	return "", ""
}

// Between is the rule of a number.
func Between(low, high int64) Rule {
	return func(v reflect.Value) string {
		if n := v.Int(); n < low || n > high {
			return fmt.Sprintf("must be from %d to %d, not %d", low, high, n)
		}
		return ""
	}
}

// Required is the rule of a member that is never null, empty or zero.
func Required(v reflect.Value) string {
	if v.IsZero() {
		return "is missing"
	}
	return ""
}

// OneOf is the rule of a string.
func OneOf[S ~string](values ...S) Rule {
	return func(v reflect.Value) string {
		if !slices.Contains(values, S(v.String())) {
			return fmt.Sprintf("must be one of %q, not %q", values, v.String())
		}
		return ""
	}
}

// In is the rule of a string with a value of a set; with optional, it may be "".
func In(set spec.Set, optional bool) Rule {
	return func(v reflect.Value) string {
		if text := v.String(); !set.Has(text) && (text != "" || !optional) {
			return fmt.Sprintf("must be one of %s, not %q", set, text)
		}
		return ""
	}
}

// Years is the rule of a time between the beginning of a year and the end of another one.
func Years(first, last int) Rule {
	return func(v reflect.Value) string {
		at, _ := v.Interface().(time.Time)
		if y := at.UTC().Year(); y < first || y > last {
			return fmt.Sprintf("must be between the years %d and %d, not in %d", first, last, y)
		}
		return ""
	}
}

// Each applies a rule to each element of a list.
func Each(rule Rule) Rule {
	return func(v reflect.Value) string {
		for i := range v.Len() {
			if problem := rule(v.Index(i)); problem != "" {
				return fmt.Sprintf("has an element that %s", problem)
			}
		}
		return ""
	}
}

// All combines rules.
func All(rules ...Rule) Rule {
	return func(v reflect.Value) string {
		var problems []string
		for _, rule := range rules {
			if problem := rule(v); problem != "" {
				problems = append(problems, problem)
			}
		}
		return strings.Join(problems, " and ")
	}
}
