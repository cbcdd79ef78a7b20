package rules

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner reads bodies as they nearly always are. At anything unusual, and at
// anything malformed, it gives up: the body is then read with the JSON package,
// which knows every form and says what is wrong. It takes a third of that one's
// time and allocates nothing.
type scanner struct {
	body  []byte
	at    int
	nodes []node
}

const (
	maxScanDepth   = 32
	maxScanMembers = 64 // of one object: names are compared with each other
)

// scan fills the nodes; it reports false where it gave up.
func (d *Document) scan() bool {
	if !utf8.Valid(d.body) {
		return false
	}
	s := scanner{body: d.body, nodes: d.nodes}
	ok := s.value(node{}, 0)
	if s.space(); s.at != len(s.body) {
		ok = false
	}
	d.nodes = s.nodes
	return ok
}

// peek returns the next byte after white space, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.at == len(s.body) {
		return 0
	}
	return s.body[s.at]
}

func (s *scanner) space() {
	for s.at < len(s.body) {
		switch s.body[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// value reads one value into n, which has its name, and appends it.
func (s *scanner) value(n node, depth int) bool {
	c := s.peek()
	n.raw = int32(s.at) //nolint:gosec // Parse bounds the body
	at := len(s.nodes)
	ok := true
	switch c {
	case '{', '[':
		n.kind = jsontext.Kind(c)
		s.nodes = append(s.nodes, n)
		ok = depth < maxScanDepth && s.children(c, at, depth+1)
	case '"':
		n.kind, ok = '"', s.str(true)
		s.nodes = append(s.nodes, n)
	case 't':
		n.kind, ok = 't', s.literal("true")
		s.nodes = append(s.nodes, n)
	case 'f':
		n.kind, ok = 'f', s.literal("false")
		s.nodes = append(s.nodes, n)
	case 'n':
		n.kind, ok = 'n', s.literal("null")
		s.nodes = append(s.nodes, n)
	default:
		n.kind, ok = '0', s.number()
		s.nodes = append(s.nodes, n)
	}
	s.nodes[at].rawEnd, s.nodes[at].end = int32(s.at), int32(len(s.nodes)) //nolint:gosec // as above
	return ok
}

// children reads the members or elements of the node at parent, with the
// brackets.
func (s *scanner) children(open byte, parent, depth int) bool {
	end := open + 2 // '}' and ']' stand two after their partners
	s.at++
	if s.peek() == end {
		s.at++
		return true
	}
	seen := uint64(0) // a bit per name, several names may share one
	for n := 0; ; n++ {
		child := node{}
		if open == '{' && (n == maxScanMembers || !s.name(&child, &seen, parent)) {
			return false
		}
		if !s.value(child, depth) {
			return false
		}
		switch s.peek() {
		case ',':
			s.at++
		case end:
			s.at++
			return true
		default:
			return false
		}
	}
}

// name reads a member's name and the colon. It gives up at a name that the
// object at parent has already.
func (s *scanner) name(n *node, seen *uint64, parent int) bool {
	if s.peek() != '"' {
		return false
	}
	start := s.at + 1
	if !s.str(false) {
		return false
	}
	name := s.body[start : s.at-1]
	n.name, n.nameEnd = int32(start), int32(s.at-1) //nolint:gosec // as above
	bit := uint64(1) << (len(name) & 63)
	if len(name) > 0 {
		bit = 1 << ((len(name)*7 + int(name[0]) + int(name[len(name)-1])*3) & 63)
	}
	if *seen&bit != 0 && s.has(parent, string(name)) {
		return false
	}
	*seen |= bit
	if s.peek() != ':' {
		return false
	}
	s.at++
	return true
}

func (s *scanner) has(parent int, name string) bool {
	for i := parent + 1; i < len(s.nodes); i = int(s.nodes[i].end) {
		if string(s.body[s.nodes[i].name:s.nodes[i].nameEnd]) == name {
			return true
		}
	}
	return false
}

// str reads a string. Escapes are allowed where escapes says so, those of
// surrogates never.
func (s *scanner) str(escapes bool) bool {
	for i := s.at + 1; i < len(s.body); i++ {
		switch c := s.body[i]; {
		case c == '"':
			s.at = i + 1
			return true
		case c == '\\':
			n := escape(s.body[i+1:])
			if n == 0 || !escapes {
				return false
			}
			i += n
		case c < ' ':
			return false
		}
	}
	return false
}

// escape returns how many bytes after the backslash belong to it, 0 to give up.
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
	v := 0
	for _, c := range rest[1:5] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 + int(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 + int(c-'a') + 10
		case c >= 'A' && c <= 'F':
			v = v<<4 + int(c-'A') + 10
		default:
			return 0
		}
	}
	if v >= 0xd800 && v <= 0xdfff {
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

func (s *scanner) number() bool {
	if s.next('-') && s.at == len(s.body) {
		return false
	}
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
