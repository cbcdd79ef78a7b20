package webhook

import (
	"encoding/json"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
)

// members is a JSON object that is taken apart: what is read in the expected
// form is removed, what remains is the Extra. A value of an unexpected type
// remains too, so that no payload, however odd, costs an event.
//
// Every reader takes the names of a member in the order of preference: the
// gateway writes some of them in snake_case and in camelCase.
type members map[string]json.RawMessage

func readMembers(raw []byte) members {
	var m members
	if jsonv2.Unmarshal(raw, &m) != nil || m == nil {
		return members{}
	}
	return m
}

// rest returns what was not read, nil where that is nothing.
func (m members) rest() map[string]json.RawMessage {
	if len(m) == 0 {
		return nil
	}
	return m
}

// take hands the first member that is there to read and removes it if read
// likes its form, or if it is null.
func (m members) take(names []string, read func(raw json.RawMessage) bool) {
	for _, name := range names {
		raw, ok := m[name]
		if !ok {
			continue
		}
		if string(raw) == "null" || read(raw) {
			delete(m, name)
		}
		return
	}
}

func (m members) text(names ...string) (s string) {
	m.take(names, func(raw json.RawMessage) bool {
		if raw[0] == '"' {
			return jsonv2.Unmarshal(raw, &s) == nil
		}
		if isNumber(raw) {
			s = string(raw)
			return true
		}
		return false
	})
	return s
}

// amount reads an integer: a number, or a string of digits.
func (m members) amount(names ...string) (n int64) {
	m.take(names, func(raw json.RawMessage) bool {
		text := string(raw)
		if raw[0] == '"' && jsonv2.Unmarshal(raw, &text) != nil {
			return false
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return false
		}
		n = v
		return true
	})
	return n
}

func (m members) count(names ...string) int { return int(m.amount(names...)) }

func (m members) flag(names ...string) (b bool) {
	m.take(names, func(raw json.RawMessage) bool { return jsonv2.Unmarshal(raw, &b) == nil })
	return b
}

func (m members) moment(names ...string) (t gateway.Timestamp) {
	m.take(names, func(raw json.RawMessage) bool {
		if raw[0] != '"' && !isNumber(raw) {
			return false
		}
		return t.UnmarshalJSON(raw) == nil && !t.IsZero()
	})
	return t
}

// object reads a member that is an object, nil where it is none.
func (m members) object(names ...string) (o members) {
	m.take(names, func(raw json.RawMessage) bool {
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
	m.take(names, func(raw json.RawMessage) bool {
		var found []members
		if raw[0] != '[' || jsonv2.Unmarshal(raw, &found) != nil {
			return false
		}
		list = found
		return true
	})
	return list
}

func (m members) metadata(names ...string) (md gateway.Metadata) {
	m.take(names, func(raw json.RawMessage) bool { return md.UnmarshalJSON(raw) == nil })
	return md
}

func isNumber(raw json.RawMessage) bool {
	return raw[0] == '-' || (raw[0] >= '0' && raw[0] <= '9')
}
