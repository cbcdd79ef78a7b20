package openapi

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/spec"
)

// forms are the JSON Schemas of the rules that internal/spec describes in
// words. The table of integration/openapi lists what they can't express, with
// the reasons.
var forms = map[string]schema{ //nolint:gochecknoglobals // never changes
	"must be an e-mail address":                           {Format: "email"},
	"must be an IPv4 or IPv6 address":                     {AnyOf: []*schema{{Type: oneOrAll{"string"}, Format: "ipv4"}, {Type: oneOrAll{"string"}, Format: "ipv6"}}},
	"must be an http or https URL":                        {Format: "uri", Pattern: "^[Hh][Tt][Tt][Pp][Ss]?://"},
	"must be an https URL":                                {Format: "uri", Pattern: "^[Hh][Tt][Tt][Pp][Ss]://"},
	"must be a timestamp with a zone":                     {Format: "date-time"},
	"must be a date or a timestamp with a zone":           {AnyOf: []*schema{{Type: oneOrAll{"string"}, Format: "date-time"}, {Type: oneOrAll{"string"}, Format: "date"}}},
	"must start with pgct_ or pgpm_":                      {Pattern: "^pg(ct|pm)_"},
	"must start with pgct_":                               {Pattern: "^pgct_"},
	"must contain only letters and digits":                {Pattern: "^[A-Za-z0-9]*$"},
	"must be two letters":                                 {Pattern: "^[A-Za-z]{2}$"},
	"must be 11 digits: an area code and a mobile number": {Pattern: "^[0-9]{11}$"},
}

// form returns the schema of a rule described in words: the longest entry of
// forms that is a prefix of the words.
func form(must string) schema {
	best := ""
	for words := range maps.Keys(forms) {
		if strings.HasPrefix(must, words) && len(words) > len(best) {
			best = words
		}
	}
	if best == "" {
		panic(fmt.Sprintf("openapi: no JSON Schema for the rule %q: add it to forms", must))
	}
	return forms[best]
}

// request is the body or the query of an operation, to be turned into a schema.
type request struct {
	rule    spec.Rule
	variant spec.Variant
	shape   *spec.Shape
}

// newRequest describes the rules for every request; [request.conditions] finds
// those for some requests only.
func newRequest(rule spec.Rule, v spec.Variant) *request {
	return &request{rule: rule, variant: v, shape: spec.Describe(rule, v)}
}

// value writes the schema of one value, without its members.
func value(s *spec.Shape) *schema {
	out := &schema{Enum: s.Enum}
	switch s.Kind { //nolint:exhaustive // no rule takes another kind
	case '"':
		out.Type = oneOrAll{"string"}
		out.MinLength, out.MaxLength = s.MinLen, limit(s.MaxLen)
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
	for _, must := range s.Requirements {
		f := form(must)
		out.Format, out.Pattern = f.Format, f.Pattern
		if out.AnyOf = slices.Clone(f.AnyOf); out.AnyOf != nil {
			out.Type = nil // each of them has it
		}
	}
	return out
}

func limit(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

// members writes the members of an object. child writes each of them, so that
// the caller decides on names and descriptions.
func (rq *request) members(s *spec.Shape, path string, child func(m *spec.Shape, path string) *schema) *schema {
	out := text("object")
	var unwanted []string
	for _, m := range s.Members {
		at := join(path, m.Name)
		var sub *schema
		if m.Kind == 0 {
			if sub = rq.looked(at); sub == nil {
				unwanted = append(unwanted, m.Name)
				continue
			}
		} else {
			sub = child(m, at)
		}
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

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// looked finds the values of a member that a rule only tests: it is nil if
// every value is rejected.
func (rq *request) looked(path string) *schema {
	out := &schema{}
	for _, kind := range []struct{ name, sample string }{
		{"string", `"x"`}, {"integer", `1`}, {"number", `1.5`}, {"boolean", `true`}, {"array", `[]`}, {"object", `{}`}, {"null", `null`},
	} {
		if rq.verdict(body{path: kind.sample}, path) == nil {
			out.Type = append(out.Type, kind.name)
		}
	}
	switch {
	case len(out.Type) == 0 || len(out.Type) == 1 && out.Type[0] == "null":
		return nil
	case slices.Contains(out.Type, "string") && rq.verdict(body{path: `""`}, path) != nil:
		out.MinLength = 1
	}
	return alternatives(out)
}

// alternatives returns a schema that lists the types of a value one by one, if there are
// several besides null: generators such as oapi-codegen reject a list of types.
func alternatives(s *schema) *schema {
	if len(s.Type) < 2 || len(s.Type) == 2 && slices.Contains(s.Type, "null") {
		return s
	}
	union := &schema{}
	for _, kind := range s.Type {
		one := text(kind)
		if kind == "string" {
			one.MinLength = s.MinLength
		}
		union.AnyOf = append(union.AnyOf, one)
	}
	return union
}

// body is a request's members by their paths, as JSON: "buyer.name".
type body map[string]string

// with returns b and one more member.
func (b body) with(path, value string) body {
	b = maps.Clone(b)
	b[path] = value
	return b
}

// without returns b without a member and those inside it.
func (b body) without(path string) body {
	b = maps.Clone(b)
	maps.DeleteFunc(b, func(p, _ string) bool { return within(p, path) })
	return b
}

// json nests the members.
func (b body) json() []byte {
	type node map[string]any
	root := node{}
	for path, value := range b {
		at := root
		names := strings.Split(path, ".")
		for _, name := range names[:len(names)-1] {
			next, ok := at[name].(node)
			if !ok {
				next = node{}
				at[name] = next
			}
			at = next
		}
		if _, taken := at[names[len(names)-1]]; !taken {
			at[names[len(names)-1]] = jsontext.Value(value)
		}
	}
	out, err := encode(root)
	if err != nil {
		panic(err)
	}
	return out
}

// violations are those of a body, by field.
func (rq *request) violations(b body) map[string]*spec.Violation {
	found := map[string]*spec.Violation{}
	list, err := spec.Check(b.json(), rq.rule, rq.variant)
	if err != nil {
		panic(err)
	}
	for i := range list {
		found[list[i].Field] = &list[i]
	}
	return found
}

func (rq *request) verdict(b body, path string) *spec.Violation { return rq.violations(b)[path] }
