package openapi

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/internal/spec"
)

// value writes the schema of one value, without its members.
func value(s *spec.Shape) *schema {
	out := &schema{Enum: s.Enum}
	switch s.Kind { //nolint:exhaustive // no rule takes another kind
	case '"':
		out.Type, out.Pattern = oneOrAll{"string"}, s.Format.Pattern
		out.MinLength, out.MaxLength = s.MinLen, limit(s.MaxLen)
		return out.anyOf(s)
	case '0':
		out.Type = oneOrAll{"number"}
		if s.Integer {
			out.Type, out.Format = oneOrAll{"integer"}, "int64"
		}
		if !math.IsInf(s.Min, 0) {
			out.Minimum = new(number(s.Min))
		}
		if !math.IsInf(s.Max, 0) {
			out.Maximum = new(number(s.Max))
		}
	case 't':
		out.Type = oneOrAll{"boolean"}
	case '[':
		out.Type = oneOrAll{"array"}
		out.MinItems, out.MaxItems = s.MinLen, limit(s.MaxLen)
	case '{':
		out.Type = oneOrAll{"object"}
	}
	return out
}

// anyOf returns the schema of a string that has one of several formats or may also be
// an integer. It lists the types one by one: generators such as oapi-codegen reject a
// list of types.
func (s *schema) anyOf(shape *spec.Shape) *schema {
	formats := strings.Fields(shape.Format.Names)
	switch {
	case shape.Integer:
		return &schema{AnyOf: []*schema{s, text("integer")}}
	case len(formats) == 1:
		s.Format = formats[0]
	case len(formats) > 1:
		s.Type = nil // each of them has it
		for _, format := range formats {
			s.AnyOf = append(s.AnyOf, &schema{Type: oneOrAll{"string"}, Format: format})
		}
	}
	return s
}

func limit(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

// members writes the members of an object. child writes each of them, so that
// the caller decides on names and descriptions.
func members(s *spec.Shape, child func(m *spec.Shape) *schema) *schema {
	out := text("object")
	var unwanted []string
	for _, m := range s.Members {
		if m.Kind == 0 {
			unwanted = append(unwanted, m.Name)
			continue
		}
		sub := child(m)
		if m.Presence == spec.Nullable {
			sub = orNull(sub)
		}
		if m.Presence == spec.Required {
			out.Required = append(out.Required, m.Name)
		}
		out.Properties.set(m.Name, sub)
	}
	if len(unwanted) > 0 {
		out.PropertyNames = &schema{Not: &schema{Enum: unwanted}}
	}
	return out
}

// dependencies writes the rules of an object that depend on other members: first what
// they require, by name, then what they forbid.
func dependencies(s *spec.Shape) (all []*schema) {
	byPath := slices.SortedFunc(slices.Values(s.Dependencies), func(a, b spec.Dependency) int { return cmp.Compare(a.Path, b.Path) })
	for _, d := range byPath {
		if !d.Forbidden {
			all = append(all, requirement(s, d))
		}
	}
	for _, d := range s.Dependencies {
		if d.Forbidden {
			all = append(all, exclusion(d))
		}
	}
	return all
}

// requirement writes a dependency as if and then.
func requirement(s *spec.Shape, d spec.Dependency) *schema {
	when := &schema{}
	for _, t := range d.When {
		when.AllOf = append(when.AllOf, nest(t.Path, func(name string) *schema { return state(name, t.Values) }))
	}
	if len(when.AllOf) == 1 {
		when = when.AllOf[0]
	}
	for name := range strings.SplitSeq(d.Path, ".") {
		s = s.Member(name)
	}
	must := &schema{Type: value(s).Type}
	if d.NotBlank && s.Kind == '"' {
		must.Pattern = `\S`
	}
	return &schema{If: when, Then: nest(d.Path, func(name string) *schema {
		return &schema{Required: []string{name}, Properties: named[*schema]{{name, must}}}
	})}
}

// state writes that a member has one of the values, where "" stands for missing or null.
func state(name string, values []string) *schema {
	given := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	switch {
	case len(given) == 0:
		return &schema{Not: &schema{Required: []string{name}, Properties: named[*schema]{{name, notNull()}}}}
	case len(given) < len(values):
		return &schema{Properties: named[*schema]{{name, &schema{Enum: given}}}}
	default:
		return &schema{Required: []string{name}, Properties: named[*schema]{{name, &schema{Enum: given}}}}
	}
}

// exclusion writes that a member must not be sent together with another one, or with
// one of its values.
func exclusion(d spec.Dependency) *schema {
	with, other := d.When[0], notNull()
	if with.Values != nil {
		other = &schema{Enum: with.Values}
	}
	return &schema{Not: &schema{
		Required:   []string{with.Path, d.Path},
		Properties: named[*schema]{{with.Path, other}, {d.Path, notNull()}},
	}}
}

func notNull() *schema { return &schema{Not: text("null")} }

// nest wraps the schema of the last element of a path in those of the objects on the
// way to it.
func nest(path string, leaf func(name string) *schema) *schema {
	first, rest, found := strings.Cut(path, ".")
	if !found {
		return leaf(first)
	}
	return &schema{Properties: named[*schema]{{first, nest(rest, leaf)}}}
}
