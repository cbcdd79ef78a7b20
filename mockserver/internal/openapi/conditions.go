package openapi

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/internal/spec"
)

// A rule for one member may depend on another: a card needs a token, a Pix
// Automatico must not have one. There is no table of these; they are found by
// running the rules on bodies that differ in one member.

// factor is a member that others depend on.
type factor struct {
	path   string
	values []string // as JSON; nil if it matters only whether the member is there
}

// states returns the values of f that are told apart: those of its list, or any one
// value, and first of all "" for absent.
func (f factor) states() []string {
	if f.values == nil {
		return []string{"", present}
	}
	return append([]string{""}, f.values...)
}

// condition is when a member is required.
type condition struct {
	path   string              // of the member
	states map[string][]string // the values of each factor that matters; "" for absent
}

// factors are the members with a closed list of values, and those whose presence may
// matter: all of the body and of the objects in it.
func (rq *request) factors(s *spec.Shape, path string) []factor {
	var list []factor
	for _, m := range s.Members {
		at := join(path, m.Name)
		switch {
		case len(m.Enum) > 0 && len(m.Enum) <= 8:
			f := factor{path: at}
			for _, v := range m.Enum {
				f.values = append(f.values, `"`+v+`"`)
			}
			list = append(list, f)
		case m.Kind == 0 && rq.looked(at) == nil:
		case m.Kind != '{':
			list = append(list, factor{path: at})
		}
		if m.Kind == '{' && path == "" {
			list = append(list, rq.factors(m, at)...)
		}
	}
	return list
}

// sample returns a value that satisfies the rules of s, as JSON.
func sample(s *spec.Shape) string {
	switch s.Kind {
	case '0':
		return jsonNumber(max(s.Min, 1))
	case 't':
		return "true"
	case '[':
		return "[" + strings.TrimSuffix(strings.Repeat(sample(s.Element)+",", max(1, s.MinLen)), ",") + "]"
	case '{':
		var b strings.Builder
		for _, m := range s.Members {
			if m.Presence == spec.Required {
				b.WriteString("," + `"` + m.Name + `":` + sample(m))
			}
		}
		return "{" + strings.TrimPrefix(b.String(), ",") + "}"
	default:
		return `"` + sampleText(s) + `"`
	}
}

func sampleText(s *spec.Shape) string {
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	for _, must := range s.Requirements {
		switch f := form(must); {
		case f.Format == "email":
			return "ana@example.com"
		case f.Format == "uri":
			return "https://example.com/"
		case f.Format == "date-time" || len(f.AnyOf) > 0 && f.AnyOf[0].Format == "date-time":
			return "2027-01-04T12:00:00Z"
		case len(f.AnyOf) > 0:
			return "192.0.2.1"
		case strings.HasPrefix(f.Pattern, "^pg"):
			return "pgct_sample"
		case strings.Contains(f.Pattern, "{11}"):
			return "11987654321"
		}
	}
	return strings.Repeat("x", max(2, s.MinLen))
}

func jsonNumber(v float64) string {
	b, err := encode(number(v))
	if err != nil {
		panic(err)
	}
	return string(b)
}

// bodies returns the bodies on which a state is tried: with the members that are
// always required; with every object there, each with its own required members.
func (rq *request) bodies() [2]body {
	least, objects := body{}, body{}
	least.fill(rq.shape, "", false)
	objects.fill(rq.shape, "", true)
	return [2]body{least, objects}
}

// fill adds the required members of s, and of the objects in it: of all objects, or
// of the required ones.
func (b body) fill(s *spec.Shape, path string, allObjects bool) {
	for _, m := range s.Members {
		object := m.Kind == '{' && len(m.Members) > 0
		switch at := join(path, m.Name); {
		case object && allObjects, object && m.Presence == spec.Required:
			b.fill(m, at, allObjects)
		case m.Presence == spec.Required:
			b[at] = sample(m)
		}
	}
}

// required returns the paths that are required in a state.
func (rq *request) required(state body) map[string]bool {
	found := map[string]bool{}
	for _, b := range rq.bodies() {
		for path := range b {
			rq.addRequired(found, b.without(path), state)
		}
		rq.addRequired(found, b, state)
	}
	rq.addRequired(found, body{}, state)
	return found
}

func (rq *request) addRequired(found map[string]bool, b, state body) {
	for path, v := range state {
		if v == "" {
			b = b.without(path)
		} else {
			b = b.with(path, v)
		}
	}
	for path, v := range rq.violations(b) {
		if v.Code == spec.CodeRequired && !strings.Contains(path, "[") {
			found[path] = true
		}
	}
}

// conditions finds the members that are required in some states only, makes
// them optional in the shape and returns when they are required.
func (rq *request) conditions() []condition {
	factors := rq.mattering()
	states := product(factors)
	needs := make([]map[string]bool, len(states))
	all := map[string]bool{}
	for i, state := range states {
		needs[i] = rq.required(state)
		for path := range needs[i] {
			all[path] = true
		}
	}
	var list []condition
	for _, path := range slices.Sorted(maps.Keys(all)) {
		var in []body
		for i := range states {
			if needs[i][path] && !states[i].holds(path) {
				in = append(in, states[i])
			}
		}
		if c, always := rq.conditionOf(path, in, states, factors); !always {
			list = append(list, c)
		}
	}
	for _, c := range list {
		rq.lower(c, states, needs)
	}
	return list
}

// mattering returns the factors on which any requirement depends.
func (rq *request) mattering() []factor {
	base := rq.required(body{})
	var list []factor
	for _, f := range rq.factors(rq.shape, "") {
		if slices.ContainsFunc(rq.valuesOf(f), func(v string) bool {
			return !maps.Equal(f.others(base), f.others(rq.required(body{f.path: v})))
		}) {
			list = append(list, f)
		}
	}
	return list
}

// others returns the required paths without f and the objects around it.
func (f factor) others(required map[string]bool) map[string]bool {
	required = maps.Clone(required)
	maps.DeleteFunc(required, func(path string, _ bool) bool { return within(f.path, path) })
	return required
}

// valuesOf returns the values of a factor, as JSON.
func (rq *request) valuesOf(f factor) []string {
	if f.values == nil {
		return []string{rq.valueOf(f.path)}
	}
	return f.values
}

// valueOf returns a value for a member that others depend on.
func (rq *request) valueOf(path string) string {
	if s := rq.at(path); s.Kind != 0 {
		return sample(s)
	}
	return `"x"`
}

// at returns the shape at a path.
func (rq *request) at(path string) *spec.Shape {
	s := rq.shape
	for name := range strings.SplitSeq(path, ".") {
		s = s.Member(name)
	}
	return s
}

// product returns every combination of the factors' values and of absence.
func product(factors []factor) []body {
	states := []body{{}}
	for _, f := range factors {
		var next []body
		for _, state := range states {
			for _, v := range f.states() {
				next = append(next, state.with(f.path, v))
			}
		}
		states = next
	}
	return states
}

// present stands for any value of a factor without a closed list of values.
const present = `"x"`

// conditionOf says when path is required: in all of in, out of states. Only the
// factors on which that depends are in the condition; always is true if none is.
func (rq *request) conditionOf(path string, in, states []body, factors []factor) (c condition, always bool) {
	c = condition{path: path, states: map[string][]string{}}
	possible := 0
	for _, state := range states {
		if !state.holds(path) {
			possible++
		}
	}
	if len(in) == possible {
		return c, true
	}
	for _, f := range factors {
		if within(f.path, path) {
			continue
		}
		var when []string
		for _, v := range f.states() {
			if slices.ContainsFunc(in, func(state body) bool { return state[f.path] == v }) {
				when = append(when, v)
			}
		}
		if len(when) < len(f.states()) {
			c.states[f.path] = when
		}
	}
	return c, len(c.states) == 0
}

// holds reports whether b has the member at path, or one inside it.
func (b body) holds(path string) bool {
	for p, v := range b {
		if v != "" && within(p, path) {
			return true
		}
	}
	return false
}

// within reports whether path is outer or inside it.
func within(path, outer string) bool { return path == outer || strings.HasPrefix(path, outer+".") }

// lower makes a member optional that is required in some states only, and
// nullable if another state lets it be null.
func (rq *request) lower(c condition, states []body, needs []map[string]bool) {
	s := rq.at(c.path)
	s.Presence = spec.Optional
	for i, state := range states {
		if needs[i][c.path] {
			continue
		}
		b := state.with(c.path, "null")
		maps.DeleteFunc(b, func(_, v string) bool { return v == "" })
		if rq.verdict(b, c.path) == nil {
			s.Presence = spec.Nullable
			return
		}
	}
}

// schema writes a condition as if and then, relative to the object at base.
func (rq *request) conditional(c condition, base string) *schema {
	when := &schema{}
	for _, path := range slices.Sorted(maps.Keys(c.states)) {
		when.AllOf = append(when.AllOf, nest(relative(base, path), stateSchema(c.states[path])))
	}
	if len(when.AllOf) == 1 {
		when = when.AllOf[0]
	}
	must := value(&spec.Shape{Kind: rq.at(c.path).Kind, Min: math.Inf(-1), Max: math.Inf(1), MaxLen: -1})
	if must.Type[0] == "string" && rq.blankIsMissing(c) {
		must.Pattern = `\S`
	}
	return &schema{If: when, Then: nest(relative(base, c.path), func(name string) *schema {
		return &schema{Required: []string{name}, Properties: named[*schema]{{name, must}}}
	})}
}

// blankIsMissing reports whether white space does not count as a value.
func (rq *request) blankIsMissing(c condition) bool {
	b := rq.bodies()[1]
	for path, values := range c.states {
		if v := values[len(values)-1]; v != "" {
			b = b.with(path, v)
		}
	}
	v := rq.verdict(b.with(c.path, `" "`), c.path)
	return v != nil && v.Code == spec.CodeRequired
}

// stateSchema returns the schema of an object in which a member has one of the
// values, or is absent.
func stateSchema(values []string) func(name string) *schema {
	return func(name string) *schema {
		there := &schema{Required: []string{name}, Properties: named[*schema]{{name, &schema{Not: text("null")}}}}
		if slices.Equal(values, []string{""}) {
			return &schema{Not: there}
		}
		if slices.Equal(values, []string{present}) {
			return there
		}
		s := &schema{Properties: named[*schema]{{name, &schema{Enum: unquoted(values)}}}}
		if !slices.Contains(values, "") {
			s.Required = []string{name}
		}
		return s
	}
}

func unquoted(values []string) []string {
	var out []string
	for _, v := range values {
		if v != "" {
			out = append(out, strings.Trim(v, `"`))
		}
	}
	return out
}

// nest wraps the schema of the last element of a path in those of the objects
// on the way to it.
func nest(path string, leaf func(name string) *schema) *schema {
	first, rest, found := strings.Cut(path, ".")
	if !found {
		return leaf(first)
	}
	return &schema{Properties: named[*schema]{{first, nest(rest, leaf)}}}
}

func relative(base, path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, base), ".")
}

// home returns the object that a condition belongs to: the innermost one with
// all members of the condition.
func (c condition) home() string {
	home := parent(c.path)
	for path := range c.states {
		for home != "" && !strings.HasPrefix(path, home+".") {
			home = parent(home)
		}
	}
	return home
}

func parent(path string) string {
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)]
}

// exclusion is a member that must not be sent together with another one, or
// with one of its values.
type exclusion struct {
	path, with string
	values     []string // of with, as JSON; nil for all
}

// exclusions tries every two members of an object.
func (rq *request) exclusions() []exclusion {
	var list []exclusion
	factors := rq.factors(rq.shape, "")
	for _, f := range factors {
		for _, m := range factors {
			if parent(m.path) != parent(f.path) || m.path == f.path {
				continue
			}
			values := rq.valuesOf(f)
			var bad []string
			for _, v := range values {
				if rq.excluded(body{f.path: v, m.path: rq.valueOf(m.path)}, m.path) {
					bad = append(bad, v)
				}
			}
			switch {
			case len(bad) == 0:
			case len(bad) == len(values):
				list = append(list, exclusion{path: m.path, with: f.path})
			default:
				list = append(list, exclusion{m.path, f.path, bad})
			}
		}
	}
	return list
}

func (rq *request) excluded(b body, path string) bool {
	v := rq.verdict(b, path)
	return v != nil && strings.HasPrefix(v.Message, "must not be sent")
}

func (e exclusion) schema(base string) *schema {
	member := func(path string) string { return relative(base, path) }
	other := &schema{Not: text("null")}
	if e.values != nil {
		other = &schema{Enum: unquoted(e.values)}
	}
	return &schema{Not: &schema{
		Required: []string{member(e.with), member(e.path)},
		Properties: named[*schema]{
			{member(e.with), other},
			{member(e.path), &schema{Not: text("null")}},
		},
	}}
}
