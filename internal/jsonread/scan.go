package jsonread

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// The limits of a scan. The members of an object are compared with each other,
// and each value takes the memory of a node.
const (
	maxDepth   = 32
	maxMembers = 64
	maxNodes   = 1 << 17
)

// scanner fills the nodes of a document in a third of the JSON package's time and
// without allocations. It gives up at anything malformed or unusual: a duplicate
// member, escapes in a name, surrogates, invalid UTF-8. Whatever it accepts is
// valid JSON; a fuzz test checks that.
type scanner struct {
	body  []byte
	at    int
	nodes []node
}

// Scan reads body, any JSON value, and reports false if it gave up.
func (d *Document) Scan(body []byte) bool {
	d.body, d.nodes = body, d.nodes[:0]
	if len(body) > math.MaxInt32 || !utf8.Valid(body) {
		return false
	}
	s := scanner{body: body, nodes: d.nodes}
	ok := s.value(0) && s.end()
	d.nodes = s.nodes
	return ok
}

// value reads one value and appends its node, without the name.
func (s *scanner) value(depth int) bool {
	c := s.peek()
	at := len(s.nodes)
	if at == maxNodes {
		return false
	}
	s.nodes = append(s.nodes, node{raw: int32(s.at), kind: jsontext.Kind(c)}) //nolint:gosec // Scan bounds the body
	var ok bool
	switch {
	case c == '"':
		_, s.nodes[at].escapes, ok = s.readString()
	case c == '{' || c == '[':
		ok = depth < maxDepth && s.children(c, at, depth+1)
	case c == '-' || c >= '0' && c <= '9':
		s.nodes[at].kind = '0'
		ok = s.number()
	default:
		ok = s.word(c)
	}
	n := &s.nodes[at]
	n.rawEnd, n.end = int32(s.at), int32(len(s.nodes)) //nolint:gosec // as above
	return ok
}

// children reads the members or elements of the node at parent, with the
// brackets.
func (s *scanner) children(open byte, parent, depth int) bool {
	end := open + 2 // '}' and ']' are two after their partners
	s.at++
	if s.readByte(end) {
		return true
	}
	for n := 0; ; n++ {
		var ok bool
		if open == '{' {
			ok = n < maxMembers && s.member(parent, depth)
		} else {
			ok = s.value(depth)
		}
		switch {
		case !ok:
			return false
		case s.readByte(end):
			return true
		case !s.readByte(','):
			return false
		}
	}
}

// member reads a member. It gives up at a name that has escapes, or that occurs twice
// in the object at parent.
func (s *scanner) member(parent, depth int) bool {
	s.peek()
	name, escaped, ok := s.readString()
	if !ok || escaped {
		return false
	}
	nameEnd := s.at - 1
	seen, bit := &s.nodes[parent].names, nameBit(name)
	if *seen&bit != 0 && s.has(parent, string(name)) {
		return false
	}
	*seen |= bit
	at := len(s.nodes)
	if !s.readByte(':') || !s.value(depth) {
		return false
	}
	n := &s.nodes[at]
	n.name, n.nameEnd = int32(nameEnd-len(name)), int32(nameEnd) //nolint:gosec // as above
	return true
}

// nameBit returns the bit of a name in an object's names, which several names
// may share.
func nameBit[T string | []byte](name T) uint64 {
	if len(name) == 0 {
		return 1
	}
	return 1 << ((len(name)*7 + int(name[0]) + int(name[len(name)-1])*3) & 63)
}

func (s *scanner) has(parent int, name string) bool {
	for i := parent + 1; i < len(s.nodes); i = int(s.nodes[i].end) {
		if string(s.body[s.nodes[i].name:s.nodes[i].nameEnd]) == name {
			return true
		}
	}
	return false
}

// peek returns the next byte after white space, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.body); s.at++ {
		if c := s.body[s.at]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

// readByte reads c, after white space.
func (s *scanner) readByte(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// end reports whether only white space is left.
func (s *scanner) end() bool { return s.peek() == 0 && s.at == len(s.body) }

// readString reads the string at the current position and returns the bytes
// between its quotes, and whether they have escapes.
func (s *scanner) readString() (text []byte, escaped, ok bool) {
	if s.at >= len(s.body) || s.body[s.at] != '"' {
		return nil, false, false
	}
	start := s.at + 1
	for i := start; ; {
		i = plainPrefix(s.body, i)
		if i >= len(s.body) {
			return nil, false, false
		}
		switch s.body[i] {
		case '"':
			s.at = i + 1
			return s.body[start:i], escaped, true
		case '\\':
			n := escape(s.body[i+1:])
			if n == 0 {
				return nil, false, false
			}
			escaped = true
			i += n + 1
		default:
			return nil, false, false
		}
	}
}

// plainPrefix returns the position of the first byte from i on that is a quote,
// a backslash or a control character. It looks at eight bytes at a time.
func plainPrefix(b []byte, i int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	for ; i+8 <= len(b); i += 8 {
		v := binary.LittleEndian.Uint64(b[i : i+8])
		quote, slash := v^ones*'"', v^ones*'\\'
		// A byte's high bit is set if it is below 0x20, or zero after the xor;
		// one above a match may be set too, never one below: the lowest is right.
		if found := ((v - ones*' ') | (quote - ones) | (slash - ones)) &^ v & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	return i
}

// escape returns how many bytes after the backslash belong to it, or 0 to give
// up, such as at surrogates.
func escape(rest []byte) int {
	if len(rest) == 0 {
		return 0
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
	default:
		return 0
	}
	if len(rest) < 5 {
		return 0
	}
	v, err := strconv.ParseUint(string(rest[1:5]), 16, 16)
	if err != nil || utf16.IsSurrogate(rune(v)) {
		return 0
	}
	return 5
}

func (s *scanner) literal(want string) bool {
	if len(s.body)-s.at < len(want) || string(s.body[s.at:s.at+len(want)]) != want {
		return false
	}
	s.at += len(want)
	return true
}

// number reads a number.
func (s *scanner) number() bool {
	_ = s.next('-')
	if !s.next('0') && !s.digits() {
		return false
	}
	if s.next('.') && !s.digits() {
		return false
	}
	if s.next('e') || s.next('E') {
		_ = s.next('+') || s.next('-')
		return s.digits()
	}
	return true
}

func (s *scanner) next(c byte) bool {
	if s.at < len(s.body) && s.body[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.body) && s.body[s.at] >= '0' && s.body[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}

// word reads true, false or null, whose first byte is c.
func (s *scanner) word(c byte) bool {
	switch c {
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	default:
		return s.literal("null")
	}
}
