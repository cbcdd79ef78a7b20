package spec

import (
	"slices"
	"strings"
)

// Condition is whether a rule applies to a request, which depends on other members. A
// check knows that at once; [Describe] records on which members it depends.
type Condition struct {
	o, home *Object // the object that the rule is about; the outermost one with a member of terms
	holds   bool    // false while the rule is described
	terms   []Term
}

// Term is a part of a Condition: what another member must be.
type Term struct {
	Path   string   // of the member: "buyer.id"
	Values []string // one of these, where "" stands for missing or null; nil for any value
}

// Dependency is a rule that applies if all its terms are true: the member at Path is
// required, or must not be sent. Paths begin at the object whose Shape has it.
type Dependency struct {
	When      []Term
	Path      string
	Forbidden bool
	NotBlank  bool // a string of white space does not count as a value
}

// When holds if the member called name is one of the values, where "" stands for
// missing or null. Without values it holds if the member has any.
func (o *Object) When(name string, values ...string) Condition {
	c := Condition{o: o, home: o}
	switch k := o.kind(name); {
	case o.shape != nil:
		c.terms = []Term{{join(o.path(), name), slices.Clone(values)}}
	case k == 0, k == 'n':
		c.holds = slices.Contains(values, "")
	default:
		text := o.Text(name)
		c.holds = len(values) == 0 || text != "" && slices.Contains(values, text)
	}
	return c
}

// And holds if both conditions do. The outer one is about an object around c's.
func (c Condition) And(outer Condition) Condition {
	return Condition{c.o, outer.o, c.holds && outer.holds, slices.Concat(c.terms, outer.terms)}
}

// Required returns the presence of the member called name: Required if c holds, else
// otherwise.
func (c Condition) Required(name string, otherwise Presence) Presence {
	c.record(Dependency{Path: name})
	if c.holds {
		return Required
	}
	return otherwise
}

// Require checks, if c holds, that the member at path has a value, unless an object on
// the way to it is missing. Null is no value, a blank string neither.
func (c Condition) Require(path, why string) {
	c.record(Dependency{Path: path, NotBlank: true})
	if !c.holds {
		return
	}
	o, name := c.o, path
	for outer, rest, nested := strings.Cut(name, "."); nested; outer, rest, nested = strings.Cut(name, ".") {
		if o.kind(outer) != '{' {
			return
		}
		o, name = o.c.doc.object(o, outer, o.locate(outer)), rest
	}
	if !o.Has(name) || o.kind(name) == '"' && strings.TrimSpace(o.Text(name)) == "" {
		o.Fail(name, CodeRequired, "is required %s", why)
	}
}

// Forbid rejects the member called name if c holds, and returns whether it did. Null
// is rejected too, unless p allows it.
func (c Condition) Forbid(name string, p Presence, why string) bool {
	c.record(Dependency{Path: name, Forbidden: true})
	k := c.o.kind(name)
	if !c.holds || k == 0 || k == 'n' && p == Nullable {
		return false
	}
	c.o.Fail(name, CodeInvalid, "must not be sent %s", why)
	return true
}

// record adds a dependency to the description.
func (c Condition) record(d Dependency) {
	shape := c.home.shape
	if shape == nil {
		return
	}
	base := c.home.path()
	within := func(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, base), ".") }
	d.Path = within(join(c.o.path(), d.Path))
	for _, t := range c.terms {
		d.When = append(d.When, Term{within(t.Path), t.Values})
	}
	shape.Dependencies = append(shape.Dependencies, d)
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }
