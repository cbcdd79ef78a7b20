package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/jsonread"
)

// typed reads the data of an event of family f. It is an error if the event
// belongs to another family, or if a number of its data can't be read.
func typed[T any](e *Event, f Family, read func(object) T) (data T, err error) {
	if e.Family != f {
		return data, fmt.Errorf("webhook: the event belongs to the family %q, not %q", e.Family, f)
	}
	return dataOf(e, read)
}

// dataOf reads the data of an event that [Parse] accepted; one that was made by
// hand may have none.
func dataOf[T any](e *Event, read func(object) T) (data T, err error) {
	if len(e.Raw) == 0 {
		return data, nil
	}
	invalid := jsonread.Read(bytes.Clone(e.Raw), func(d *jsonread.Document) {
		for i := range d.Children(0) {
			if d.Name(i) == "data" {
				r := &reading{doc: d, members: make([]member, 0, usual)}
				data = read(r.open(i))
				err = r.fault
				return
			}
		}
	})
	if invalid != nil {
		return data, ErrInvalidJSON
	}
	return data, err
}

// usual is how many members of an event are read at a time, for most events.
const usual = 24

// timestampOf returns one timestamp of the event's data.
func timestampOf(e *Event, names ...string) gateway.Timestamp {
	t, _ := dataOf(e, func(o object) gateway.Timestamp { return o.timestamp(names...) }) // the zero time
	return t
}

// reading is the state of reading one event's data.
type reading struct {
	doc     *jsonread.Document
	members []member // of the objects that are being read
	fault   error    // the first number that can't be read
}

type member struct {
	name  string
	node  int
	taken bool
}

// object reads the members of a JSON object. Members that were not read, or
// whose value has an unexpected type, end up in the Extra, so that an odd
// payload costs no event. A number that can't be read is an error instead: as
// a zero it would be booked.
//
// Every method takes the names of one member in order of preference: the
// gateway writes some of them in snake_case and in camelCase. Of duplicate
// names the last one counts, as in the client.
type object struct {
	*reading

	from, to int // its members
}

// open returns the object of a node. A value that is no object has no members.
func (r *reading) open(node int) object {
	from := len(r.members)
	if r.doc.Kind(node) == '{' {
		for i := range r.doc.Children(node) {
			r.members = append(r.members, member{name: r.doc.Name(i), node: i})
		}
	}
	return object{r, from, len(r.members)}
}

// rest returns the members that were not read, nil if there are none.
func (o object) rest() map[string]json.RawMessage {
	var rest map[string]json.RawMessage
	for _, m := range o.members[o.from:o.to] {
		if m.taken {
			continue
		}
		if rest == nil {
			rest = make(map[string]json.RawMessage)
		}
		rest[m.name] = json.RawMessage(o.doc.Raw(m.node))
	}
	return rest
}

// find takes the last member with the first of the names that exists: of
// duplicates only the last is of interest. It returns nil if there is none, or
// if it is null. The member is valid until the next open.
func (o object) find(names ...string) *member {
	for _, name := range names {
		var found *member
		for i := o.from; i < o.to; i++ {
			if m := &o.members[i]; m.name == name {
				m.taken = true
				found = m
			}
		}
		if found != nil {
			if o.doc.Kind(found.node) == 'n' {
				return nil
			}
			return found
		}
	}
	return nil
}

func (o object) text(names ...string) (s string) {
	if m := o.find(names...); m != nil {
		s, m.taken = o.doc.Scalar(m.node)
	}
	return s
}

// amount reads an integer of cents: a number or a string that has an exact
// integer value, such as 1990, "1990" or 1990.00.
func (o object) amount(names ...string) int64 {
	return o.integer("is not an integer of cents", names)
}

func (o object) count(names ...string) int { return int(o.integer("is not an integer", names)) }

func (o object) integer(rule string, names []string) (n int64) {
	m := o.find(names...)
	if m == nil {
		return 0
	}
	digits, ok := o.doc.Scalar(m.node)
	if ok {
		n, ok = jsonread.Integer(digits)
	}
	o.must(m, ok, rule)
	return n
}

func (o object) flag(names ...string) bool {
	m := o.find(names...)
	if m == nil {
		return false
	}
	s := o.doc.Raw(m.node)
	yes, no := s == "true" || s == `"true"`, s == "false" || s == `"false"`
	o.must(m, yes || no, "is neither true nor false")
	return yes
}

// must notes that a member could not be read.
func (o object) must(m *member, ok bool, rule string) {
	m.taken = ok
	if !ok && o.fault == nil {
		o.fault = fmt.Errorf("webhook: %s %s", o.doc.Path(m.node), rule)
	}
}

func (o object) timestamp(names ...string) (t gateway.Timestamp) {
	if m := o.find(names...); m != nil {
		_, ok := o.doc.Scalar(m.node)
		m.taken = ok && t.UnmarshalJSON([]byte(o.doc.Raw(m.node))) == nil && !t.IsZero()
	}
	return t
}

func (o object) metadata(names ...string) (md gateway.Metadata) {
	if m := o.find(names...); m != nil {
		m.taken = md.UnmarshalJSON([]byte(o.doc.Raw(m.node))) == nil
	}
	return md
}

// object opens a member that is an object.
func (o object) object(names ...string) (inner object, ok bool) {
	if m := o.find(names...); m != nil {
		if m.taken = o.doc.Kind(m.node) == '{'; m.taken {
			return o.open(m.node), true
		}
	}
	return object{}, false
}

// mostElements bounds the lists that are read element by element. The interface
// allows 100 products and 50 informations.
const mostElements = 1000

// listOf reads a list of objects. Any other list goes to the Extra as it is.
func listOf[T any](o object, name string, read func(object) T) (list []T) {
	m := o.find(name)
	if m == nil {
		return nil
	}
	n := 0
	m.taken = o.doc.Kind(m.node) == '['
	for i := range o.doc.Children(m.node) {
		n++
		m.taken = m.taken && n <= mostElements && o.doc.Kind(i) == '{'
	}
	if !m.taken || n == 0 {
		return nil
	}
	list = make([]T, 0, n)
	top := len(o.members)
	for i := range o.doc.Children(m.node) {
		list = append(list, read(o.open(i)))
		o.reading.members = o.members[:top]
	}
	return list
}
