package webhook

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/jsonread"
)

// object reads the members of a JSON object. Members that were not read, or
// whose value has an unexpected type, end up in the Extra, so that an odd
// payload costs no event. A number that can't be read is an error instead: as
// a zero it would be booked.
//
// Every method takes the names of one member in order of preference: the
// gateway writes some of them in snake_case and in camelCase. Of duplicate
// names the last one counts, as in the client.
type object struct {
	members []member
	index   map[string]int // of the members, where they are many
	scratch []member       // for the objects inside, of which one is read at a time
	path    func() string  // where the object is in the body
	fault   *error         // the first number that can't be read
}

type member struct {
	name, value string
	taken       bool
	nested      bool // it is in the data's "object", which is read as if it were not there
}

// dataOf returns the members of the event's data.
func dataOf(e *Event, fault *error) *object {
	o := &object{members: make([]member, 0, usual), path: func() string { return "data" }, fault: fault}
	for name, value := range jsonread.Members(string(e.Raw)) {
		if name == "data" {
			o.read(value, false)
			break
		}
	}
	return o
}

// usual is how many members the data of most events has.
const usual = 16

// timestampOf returns one timestamp of the event's data.
func timestampOf(e *Event, names ...string) gateway.Timestamp {
	var ignored error
	return dataOf(e, &ignored).timestamp(names...)
}

// read adds the members of an object, one level deep. A value that is no object
// has none.
func (o *object) read(value string, nested bool) {
	o.index = nil
	for name, value := range jsonread.Members(value) {
		o.members = append(o.members, member{name: name, value: value, nested: nested})
	}
}

// rest returns the members that were not read, nil if there are none.
func (o *object) rest() map[string]json.RawMessage {
	var rest map[string]json.RawMessage
	for i := range o.members {
		if o.members[i].taken {
			continue
		}
		if rest == nil {
			rest = make(map[string]json.RawMessage)
		}
		rest[o.members[i].name] = json.RawMessage(o.members[i].value)
	}
	return rest
}

// take hands the first member that exists to read, and takes it if read accepts
// its value or if that is null. A nil is returned where nothing was there to read.
func (o *object) take(names []string, read func(value string) bool) *member {
	for _, name := range names {
		if m := o.find(name); m != nil {
			if m.value == "null" {
				m.taken = true
				return nil
			}
			m.taken = read(m.value)
			return m
		}
	}
	return nil
}

// few is up to how many members are looked through, one after the other. The
// gateway sends less than 30; a stranger may send a body full of them.
const few = 64

// find returns the last member of that name. Those before it are no longer of
// interest.
func (o *object) find(name string) (found *member) {
	if len(o.members) > few {
		return o.findIndexed(name)
	}
	for i := range o.members {
		if o.members[i].name != name {
			continue
		}
		if found != nil {
			found.taken = true
		}
		found = &o.members[i]
	}
	return found
}

func (o *object) findIndexed(name string) *member {
	if o.index == nil {
		o.index = make(map[string]int, len(o.members))
		for i := range o.members {
			if before, twice := o.index[o.members[i].name]; twice {
				o.members[before].taken = true
			}
			o.index[o.members[i].name] = i
		}
	}
	if i, ok := o.index[name]; ok {
		return &o.members[i]
	}
	return nil
}

func (o *object) text(names ...string) (s string) {
	o.take(names, func(value string) (ok bool) {
		s, ok = jsonread.Text(value)
		return ok
	})
	return s
}

// amount reads an integer of cents: a number or a string that has an exact
// integer value, such as 1990, "1990" or 1990.00.
func (o *object) amount(names ...string) int64 {
	return o.integer("is not an integer of cents", names)
}

func (o *object) count(names ...string) int { return int(o.integer("is not an integer", names)) }

func (o *object) integer(rule string, names []string) (n int64) {
	m := o.take(names, func(value string) (ok bool) {
		digits, ok := jsonread.Text(value)
		if ok {
			n, ok = jsonread.Integer(digits)
		}
		return ok
	})
	o.must(m, rule)
	return n
}

func (o *object) flag(names ...string) (b bool) {
	m := o.take(names, func(value string) bool {
		b = value == "true" || value == `"true"`
		return b || value == "false" || value == `"false"`
	})
	o.must(m, "is neither true nor false")
	return b
}

// must notes that a member was there and could not be read.
func (o *object) must(m *member, rule string) {
	if m != nil && !m.taken && *o.fault == nil {
		path := o.path()
		if m.nested {
			path += ".object"
		}
		*o.fault = fmt.Errorf("webhook: %s.%s %s", path, m.name, rule)
	}
}

func (o *object) timestamp(names ...string) (t gateway.Timestamp) {
	o.take(names, func(value string) bool {
		if value[0] != '"' && !jsonread.IsNumber(value) {
			return false
		}
		return t.UnmarshalJSON([]byte(value)) == nil && !t.IsZero()
	})
	return t
}

func (o *object) metadata(names ...string) (md gateway.Metadata) {
	o.take(names, func(value string) bool { return md.UnmarshalJSON([]byte(value)) == nil })
	return md
}

// object returns a member that is an object, nil where it is none. It is valid
// until another object or list of o is read.
func (o *object) object(names ...string) (inner *object) {
	m := o.take(names, isObject)
	if m == nil || !m.taken {
		return nil
	}
	name := m.name
	inner = o.inner(func() string { return o.path() + "." + name })
	inner.read(m.value, false)
	o.scratch = inner.members
	return inner
}

func (o *object) inner(path func() string) *object {
	if o.scratch == nil {
		o.scratch = make([]member, 0, usual/2)
	}
	return &object{members: o.scratch[:0], path: path, fault: o.fault}
}

func isObject(value string) bool { return value[0] == '{' }

// mostElements bounds the lists that are read element by element. The interface
// allows 100 products and 50 informations.
const mostElements = 1000

// listOf reads a list of objects. Any other list is kept as it is. The object
// is valid during the call of read.
func listOf[T any](o *object, name string, read func(*object) T) (list []T) {
	n := 0
	element := o.inner(func() string { return o.path() + "." + name + "[" + strconv.Itoa(n) + "]" })
	m := o.take([]string{name}, func(value string) bool {
		if value[0] != '[' {
			return false
		}
		for one := range jsonread.Elements(value) {
			if !isObject(one) || n == mostElements {
				return false
			}
			if list == nil {
				list = make([]T, 0, usual/2)
			}
			element.members = element.members[:0]
			element.read(one, false)
			list = append(list, read(element))
			n++
		}
		return true
	})
	o.scratch = element.members
	if m == nil || !m.taken {
		return nil
	}
	return list
}
