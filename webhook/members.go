package webhook

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway"
)

// members is a JSON object that is taken apart: what is read in the expected
// form is taken, what remains is the Extra. A value of an unexpected type
// remains too, so that no payload, however odd, costs an event.
//
// Every reader takes the names of a member in the order of preference: the
// gateway writes some of them in snake_case and in camelCase.
type members []member

type member struct {
	name, raw []byte
	taken     bool
}

// rest returns what was not read, nil where that is nothing.
func (m members) rest() map[string]json.RawMessage {
	var rest map[string]json.RawMessage
	for i := range m {
		if m[i].taken {
			continue
		}
		if rest == nil {
			rest = make(map[string]json.RawMessage)
		}
		rest[string(m[i].name)] = bytes.Clone(m[i].raw)
	}
	return rest
}

// find returns the first member that is there.
func (m members) find(names ...string) *member {
	for _, name := range names {
		for i := range m {
			if string(m[i].name) == name {
				return &m[i]
			}
		}
	}
	return nil
}

// take hands the member to read and takes it if read likes its form, or if it
// is null.
func (m members) take(names []string, read func(raw []byte) bool) {
	if f := m.find(names...); f != nil {
		f.taken = string(f.raw) == "null" || read(f.raw)
	}
}

func (m members) text(names ...string) (s string) {
	m.take(names, func(raw []byte) (ok bool) {
		s, ok = text(raw)
		return ok
	})
	return s
}

// text reads a string, or a number as its digits.
func text(raw []byte) (s string, ok bool) {
	switch {
	case isNumber(raw):
		return string(raw), true
	case raw[0] != '"' || len(raw) < 2:
		return "", false
	case bytes.IndexByte(raw, '\\') < 0:
		return string(raw[1 : len(raw)-1]), true
	default:
		plain, err := jsontext.AppendUnquote(nil, raw)
		return string(plain), err == nil
	}
}

// amount reads an integer: a number, or a string of digits.
func (m members) amount(names ...string) (n int64) {
	m.take(names, func(raw []byte) bool {
		digits, ok := text(raw)
		if !ok {
			return false
		}
		v, err := strconv.ParseInt(digits, 10, 64)
		if err == nil {
			n = v
		}
		return err == nil
	})
	return n
}

func (m members) count(names ...string) int { return int(m.amount(names...)) }

func (m members) flag(names ...string) (b bool) {
	m.take(names, func(raw []byte) bool {
		b = string(raw) == "true"
		return b || string(raw) == "false"
	})
	return b
}

func (m members) moment(names ...string) (t gateway.Timestamp) {
	m.take(names, func(raw []byte) bool {
		if raw[0] != '"' && !isNumber(raw) {
			return false
		}
		return t.UnmarshalJSON(raw) == nil && !t.IsZero()
	})
	return t
}

// object reads a member that is an object, nil where it is none.
func (m members) object(names ...string) (o members) {
	m.take(names, func(raw []byte) bool {
		if raw[0] != '{' {
			return false
		}
		o = readMembers(raw)
		return true
	})
	return o
}

// objects reads a list of objects; a list with anything else in it is kept as
// it is.
func (m members) objects(names ...string) (list []members) {
	m.take(names, func(raw []byte) bool {
		if raw[0] != '[' {
			return false
		}
		s := scanner{text: raw, at: 1}
		for s.more(']') {
			element := s.value()
			if len(element) == 0 || element[0] != '{' {
				list = nil
				return false
			}
			list = append(list, readMembers(element))
		}
		return true
	})
	return list
}

func (m members) metadata(names ...string) (md gateway.Metadata) {
	m.take(names, func(raw []byte) bool { return md.UnmarshalJSON(raw) == nil })
	return md
}

func isNumber(raw []byte) bool {
	return raw[0] == '-' || (raw[0] >= '0' && raw[0] <= '9')
}

// readMembers takes an object apart, one level deep. A value that is no object
// has no members.
func readMembers(raw []byte) members {
	if len(raw) == 0 || raw[0] != '{' {
		return members{}
	}
	list := make(members, 0, 4)
	s := scanner{text: raw, at: 1}
	for s.more('}') {
		name := s.value()
		if len(name) < 2 || name[0] != '"' || !s.skip(':') {
			break
		}
		value := s.value()
		if len(value) == 0 {
			break
		}
		if plain := name[1 : len(name)-1]; bytes.IndexByte(plain, '\\') < 0 {
			name = plain
		} else if name, _ = jsontext.AppendUnquote(nil, name); name == nil {
			name = plain
		}
		list = append(list, member{name: name, raw: value})
	}
	return list
}

// scanner finds where the values of a JSON text begin and end. It does not
// check them: the text has been through [Parse]. One that has not may read
// oddly, but no further than its end.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// skip steps over one character, if it is the next.
func (s *scanner) skip(c byte) bool {
	s.space()
	if s.at >= len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// more steps over a comma and reports whether there is a value before the end
// of the object or list.
func (s *scanner) more(end byte) bool {
	s.skip(',')
	s.space()
	return s.at < len(s.text) && s.text[s.at] != end
}

// value steps over the next value and returns it, empty at the end.
func (s *scanner) value() []byte {
	s.space()
	begin, depth := s.at, 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			s.quoted()
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			if depth == 0 {
				return s.text[begin:s.at] // of what surrounds a number or a word
			}
			depth--
			s.at++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return s.text[begin:s.at]
			}
			s.at++
			continue
		default:
			s.at++
			continue
		}
		if depth == 0 {
			return s.text[begin:s.at]
		}
	}
	return s.text[begin:s.at]
}

// quoted steps over a string.
func (s *scanner) quoted() {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return
		}
	}
	s.at = len(s.text)
}
