package spec

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// Presence says whether a member may be missing or null.
type Presence uint8

// A Required member must be present and not null, an Optional one may be
// missing, a Nullable one may be missing or null.
const (
	Optional Presence = iota
	Required
	Nullable
)

// optional returns Optional, or Nullable in the live reading of null-members, where some
// optional members may be null.
func (o *Object) optional() Presence {
	if o.Variant().Dialect.Live(NullMembers) {
		return Nullable
	}
	return Optional
}

// checker collects the violations of one run.
type checker struct {
	doc     *Document
	variant Variant
	found   []Violation
}

// Object is a JSON object being checked.
type Object struct {
	c      *checker
	parent *Object
	name   string
	index  int // the index in the array called name; -1 if it is not an element
	at     int
	shape  *Shape // records the checks for [Describe]; nil while a body is checked
	hint   int    // where the search for the next member begins
}

// Check runs rule, if there is one, over the whole document and then looks for card
// data.
func (d *Document) Check(rule Rule, v Variant) []Violation {
	d.checker = checker{doc: d, variant: v}
	if rule != nil {
		rule(d.object(nil, "", 0))
	}
	d.checker.checkCardData("", 1, d.End(0))
	return d.checker.found
}

// object returns the object at node at, the member of parent called name. It
// is valid until Release.
func (d *Document) object(parent *Object, name string, at int) *Object {
	d.objects = append(d.objects, Object{})
	o := &d.objects[len(d.objects)-1]
	o.c, o.parent, o.name, o.index, o.at = &d.checker, parent, name, -1, at
	return o
}

// element returns the element at node at of the array called name.
func (d *Document) element(parent *Object, name string, index, at int) *Object {
	o := d.object(parent, name, at)
	o.index = index
	return o
}

// only rejects members that the rules of the object do not mention.
func (o *Object) only(rules *Shape) {
	for at := range o.c.doc.Children(o.at) {
		if name := o.c.doc.Name(at); rules.Member(name) == nil {
			o.Fail(MaskCardNumbers(name), CodeInvalid, "is not a member of this request")
		}
	}
}

// Reject rejects a member that must never be sent.
func (o *Object) Reject(name, format string, args ...any) {
	if o.locate(name) > 0 {
		o.Fail(name, CodeInvalid, format, args...)
	}
}

// Variant returns the variant of the run.
func (o *Object) Variant() Variant { return o.c.variant }

// Fail records a violation of the member called name, or of the object itself
// if name is "".
func (o *Object) Fail(name, code, format string, args ...any) {
	path := o.path()
	switch {
	case path == "":
		path = name
	case name != "":
		path += "." + name
	}
	// The name may point into the body, which the caller may reuse.
	o.c.found = append(o.c.found, Violation{Field: strings.Clone(shown(path)), Message: fmt.Sprintf(format, args...), Code: code})
}

func (o *Object) path() string {
	if o.parent == nil {
		return ""
	}
	path := o.parent.path()
	if path != "" {
		path += "."
	}
	path += MaskCardNumbers(o.name) // a name may be a card number
	if o.index >= 0 {
		path += "[" + strconv.Itoa(o.index) + "]"
	}
	return path
}

// Has reports whether the member is present and not null.
func (o *Object) Has(name string) bool {
	k := o.kind(name)
	return k != 0 && k != 'n'
}

// Text returns the member's string, or "" if it is missing or not a string. It
// is valid until the document is released.
func (o *Object) Text(name string) string {
	if i := o.locate(name); i > 0 && o.c.doc.Kind(i) == '"' {
		return o.c.doc.Text(i)
	}
	return ""
}

// locate returns the node of the member called name, or 0 (the root) if there
// is none.
func (o *Object) locate(name string) int {
	if o.shape != nil {
		o.shape.member(name)
	}
	return o.c.doc.Find(o.at, name, &o.hint)
}

// kind returns the kind of the member called name, or 0 if there is none.
func (o *Object) kind(name string) jsontext.Kind {
	if i := o.locate(name); i > 0 {
		return o.c.doc.Kind(i)
	}
	return 0
}

// member is a member being checked. It is small enough to be passed in
// registers.
type member struct {
	o    *Object
	name string
	at   int // the node of the value, or 0 if it is absent or of the wrong type, so that further rules are skipped
}

func (m member) ok() bool { return m.at > 0 }

// shape returns the Shape that records further rules, or nil; see [Object].
func (m member) shape() *Shape {
	if m.o.shape == nil {
		return nil
	}
	return m.o.shape.Member(m.name)
}

// take finds the member. It reports a violation unless the member has the right
// kind, or p allows it to be missing or null. The kind '0' stands for a number,
// 't' for true or false.
func (o *Object) take(name string, p Presence, kind jsontext.Kind, want string) member {
	none := member{o: o, name: name}
	if o.shape != nil {
		o.shape.take(name, p, kind, want)
		return none
	}
	i := o.locate(name)
	if i == 0 || o.c.doc.query && p != Required && o.Text(name) == "" {
		if p == Required {
			o.Fail(name, CodeRequired, "is required")
		}
		return none
	}
	switch k := o.c.doc.Kind(i); {
	case k == kind, k == 'f' && kind == 't', o.c.doc.query && o.c.doc.readsAs(i, kind):
		return member{o: o, name: name, at: i}
	case k == 'n' && p == Nullable:
	default:
		o.Fail(name, CodeInvalidType, "must be %s, not %s", want, jsonread.KindName(k))
	}
	return none
}

// readsAs reports whether a query parameter may be read as a value of this
// kind.
func (d *Document) readsAs(i int, kind jsontext.Kind) bool {
	text := d.Raw(i)
	return kind == '0' || kind == 't' && (text == `"true"` || text == `"false"`)
}

// Int checks that a member is an integer. In a query it must be written as
// digits.
func (o *Object) Int(name string, p Presence) IntRule {
	m := o.take(name, p, '0', "an integer")
	if m.ok() {
		if _, ok := o.c.doc.integer(m.at); !ok {
			o.Fail(name, CodeInvalidType, "must be an integer")
			m.at = 0
		}
	}
	return IntRule{m}
}

// integer reads the integer at node i. A query allows only digits, as the code that
// reads the query does.
func (d *Document) integer(i int) (int64, bool) {
	if d.query {
		v, err := strconv.ParseInt(d.Text(i), 10, 64)
		return v, err == nil
	}
	return jsonread.Integer(d.Raw(i))
}

// IntRule is an integer being checked.
type IntRule struct{ member }

func (r IntRule) value() int64 {
	v, _ := r.o.c.doc.integer(r.at)
	return v
}

// Between checks both limits, inclusive.
func (r IntRule) Between(lo, hi int64) IntRule {
	r.shape().between(float64(lo), float64(hi))
	if !r.ok() {
		return r
	}
	if v := r.value(); v < lo {
		r.o.Fail(r.name, CodeTooSmall, "must be at least %d", lo)
	} else if v > hi {
		r.o.Fail(r.name, CodeTooBig, "must be at most %d", hi)
	}
	return r
}

// AtLeast checks a lower limit, inclusive.
func (r IntRule) AtLeast(lo int64) IntRule {
	r.shape().between(float64(lo), math.Inf(1))
	if r.ok() && r.value() < lo {
		r.o.Fail(r.name, CodeTooSmall, "must be at least %d", lo)
	}
	return r
}

// Number checks that a member of a body is a number from lo to hi.
func (o *Object) Number(name string, p Presence, lo, hi float64) {
	m := o.take(name, p, '0', "a number")
	m.shape().between(lo, hi)
	if !m.ok() {
		return
	}
	v, err := strconv.ParseFloat(o.c.doc.Raw(m.at), 64)
	switch {
	case err != nil || v > hi:
		o.Fail(name, CodeTooBig, "must be at most %v", hi)
	case v < lo:
		o.Fail(name, CodeTooSmall, "must be at least %v", lo)
	}
}

// Bool checks that a member is true or false.
func (o *Object) Bool(name string, p Presence) {
	o.take(name, p, 't', "true or false")
}

// Enum checks that a member is one of the values of s.
func (o *Object) Enum(name string, p Presence, s Set) {
	r := o.String(name, p)
	r.shape().oneOf(s)
	if r.ok() && !s.Has(r.value()) {
		o.Fail(name, CodeInvalidEnum, "must be one of %s", s)
	}
}

// EnumList checks a query parameter that is a comma-separated list of values
// of s.
func (o *Object) EnumList(name string, s Set) {
	r := o.String(name, Optional)
	r.shape().list('"').oneOf(s)
	if !r.ok() {
		return
	}
	for v := range strings.SplitSeq(r.value(), ",") {
		if !s.Has(v) {
			o.Fail(name, CodeInvalidEnum, "must contain only %s", s)
			return
		}
	}
}

// IntList checks a query parameter that is a comma-separated list of integers
// from lo to hi.
func (o *Object) IntList(name string, lo, hi int64) {
	r := o.String(name, Optional)
	r.shape().list('0').between(float64(lo), float64(hi))
	if !r.ok() {
		return
	}
	for text := range strings.SplitSeq(r.value(), ",") {
		v, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil:
			o.Fail(name, CodeInvalidType, "must contain only integers")
		case v < lo:
			o.Fail(name, CodeTooSmall, "must contain only integers of at least %d", lo)
		case v > hi:
			o.Fail(name, CodeTooBig, "must contain only integers of at most %d", hi)
		default:
			continue
		}
		return
	}
}

// Object checks that a member is an object and runs rule on it.
func (o *Object) Object(name string, p Presence, rule Rule) {
	m := o.take(name, p, '{', "an object")
	m.shape().members(o, name, rule)
	if m.ok() && rule != nil {
		rule(o.c.doc.object(o, name, m.at))
	}
}

// Array checks that a member is an array.
func (o *Object) Array(name string, p Presence) ArrayRule {
	return ArrayRule{o.take(name, p, '[', "an array")}
}

// ArrayRule is an array being checked.
type ArrayRule struct{ member }

// Len checks the minimum and maximum number of elements.
func (r ArrayRule) Len(lo, hi int) ArrayRule {
	r.shape().length(lo, hi)
	if !r.ok() {
		return r
	}
	n := 0
	for range r.elements() {
		n++
	}
	switch {
	case n < lo:
		r.o.Fail(r.name, CodeTooSmall, "must have at least %s", elements(lo))
	case n > hi:
		r.o.Fail(r.name, CodeTooBig, "must have at most %s", elements(hi))
	}
	return r
}

// Each checks that every element is an object and runs rule on it.
func (r ArrayRule) Each(rule Rule) {
	r.shape().list('{').members(r.o, r.name, rule)
	for i, at := range r.elements() {
		element := r.o.c.doc.element(r.o, r.name, i, at)
		if k := r.o.c.doc.Kind(at); k != '{' {
			element.Fail("", CodeInvalidType, "must be an object, not %s", jsonread.KindName(k))
			continue
		}
		rule(element)
	}
}

// EachInt checks that every element is an integer from lo to hi.
func (r ArrayRule) EachInt(lo, hi int64) {
	r.shape().list('0').between(float64(lo), float64(hi))
	for i, at := range r.elements() {
		element := r.o.c.doc.element(r.o, r.name, i, at)
		v, ok := r.o.c.doc.integer(at)
		switch {
		case !ok:
			element.Fail("", CodeInvalidType, "must be an integer")
		case v < lo:
			element.Fail("", CodeTooSmall, "must be at least %d", lo)
		case v > hi:
			element.Fail("", CodeTooBig, "must be at most %d", hi)
		}
	}
}

// EachEnum checks that every element is one of the values of s.
func (r ArrayRule) EachEnum(s Set) {
	r.shape().list('"').oneOf(s)
	for i, at := range r.elements() {
		element := r.o.c.doc.element(r.o, r.name, i, at)
		switch k := r.o.c.doc.Kind(at); {
		case k != '"':
			element.Fail("", CodeInvalidType, "must be a string, not %s", jsonread.KindName(k))
		case !s.Has(r.o.c.doc.Text(at)):
			element.Fail("", CodeInvalidEnum, "must be one of %s", s)
		}
	}
}

// elements ranges over the positions and nodes of the array.
func (r ArrayRule) elements() func(yield func(int, int) bool) {
	return func(yield func(int, int) bool) {
		if !r.ok() {
			return
		}
		doc := r.o.c.doc
		for i, at := 0, r.at+1; at < doc.End(r.at); i, at = i+1, doc.End(at) {
			if !yield(i, at) {
				return
			}
		}
	}
}
