package spec

import (
	"math"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Shape describes the rules for one value. The OpenAPI document is generated
// from it. [Describe] runs a rule without input, and the rule records its
// checks in the Shape.
type Shape struct {
	Name     string        // of the member
	Presence Presence      // whether it may be missing or null
	Kind     jsontext.Kind // of the value; 0 for a member that must not be sent
	Integer  bool          // a number without a fraction; a string that may also be one
	Joined   bool          // a query parameter with several values, separated by commas

	Min, Max       float64  // of a number; infinite if there is no limit
	MinLen, MaxLen int      // characters or elements; MaxLen is -1 if there is no limit
	Enum           []string // the only values that are allowed
	Format         Format   // of a string

	Members      []*Shape     // of an object, in the order of the rules
	Dependencies []Dependency // of an object: rules that apply only to some requests
	Element      *Shape       // of an array
}

// Format is a rule for a string: what it must be, and how JSON Schema says that. The
// table of integration/openapi lists what JSON Schema can't express.
type Format struct {
	Must    string // the message of the violation
	Names   string // of JSON Schema's formats, one of which the string has: "date-time date"
	Pattern string
}

// Describe returns the checks that rule runs on every body or query, and those that
// depend on other members if the rule declares on which: see [Object.When].
func Describe(rule Rule, v Variant) *Shape {
	d, _ := Parse([]byte("{}"))
	defer d.Release()
	d.checker = checker{doc: d, variant: v}
	root := d.object(nil, "", 0)
	root.shape = newShape("")
	root.shape.Kind = '{'
	rule(root)
	return root.shape
}

// Member returns the shape of the member called name, or nil if no rule
// mentions it.
func (s *Shape) Member(name string) *Shape {
	for _, m := range s.Members {
		if m.Name == name {
			return m
		}
	}
	return nil
}

func newShape(name string) *Shape {
	return &Shape{Name: name, Min: math.Inf(-1), Max: math.Inf(1), MaxLen: -1}
}

// member finds or adds the member called name.
func (s *Shape) member(name string) *Shape {
	m := s.Member(name)
	if m == nil {
		m = newShape(name)
		s.Members = append(s.Members, m)
	}
	return m
}

// The methods below do nothing to a nil Shape.

func (s *Shape) take(name string, p Presence, kind jsontext.Kind, want string) {
	m := s.member(name)
	m.Presence, m.Kind, m.Integer = p, kind, want == "an integer"
}

// orInteger lets a string also be an integer.
func (s *Shape) orInteger() {
	if s != nil {
		s.Integer = true
	}
}

func (s *Shape) between(lo, hi float64) {
	if s != nil {
		s.Min, s.Max = lo, hi
	}
}

func (s *Shape) length(lo, hi int) {
	if s == nil {
		return
	}
	s.MinLen = max(s.MinLen, lo)
	if hi < math.MaxInt {
		s.MaxLen = hi
	}
}

func (s *Shape) format(f Format) {
	if s != nil {
		s.Format = f
	}
}

func (s *Shape) oneOf(values Set) {
	if s != nil {
		s.Enum = slices.Clone(values.values)
	}
}

// list records the kind of the value's elements. If the value is a string, it
// is a query parameter with comma-separated elements.
func (s *Shape) list(kind jsontext.Kind) *Shape {
	if s == nil {
		return nil
	}
	s.Joined = s.Kind == '"'
	s.Element = newShape("")
	s.Element.Kind, s.Element.Integer = kind, kind == '0'
	return s.Element
}

// members records the rule for the object called name in o.
func (s *Shape) members(o *Object, name string, rule Rule) {
	if s != nil && rule != nil {
		member := o.c.doc.object(o, name, 0)
		member.shape = s
		rule(member)
	}
}
