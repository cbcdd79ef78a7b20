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

// The limits of a scan: the names of an object's members are compared with each
// other, and each value takes the memory of a node.
const (
	maxDepth   = 32
	maxMembers = 64
	maxNodes   = 1 << 17
)

// scanner fills the nodes of a document in a third of the JSON package's time
// and without allocations. It gives up at anything malformed or unusual: a
// duplicate name, escapes in a name, surrogates, invalid UTF-8. Everything it
// accepts is valid JSON; a fuzz test checks that.
//
// Its methods start at position i and return the position after what they have
// read, or gaveUp. The position is passed rather than stored so that it stays in
// a register.
type scanner struct {
	body  []byte
	nodes []node
}

const gaveUp = -1

// Scan parses body, which may be any JSON value. It returns false if it gives
// up.
func (d *Document) Scan(body []byte) bool {
	d.body, d.nodes = body, d.nodes[:0]
	if len(body) > math.MaxInt32 {
		return false
	}
	s := scanner{body: body, nodes: d.nodes}
	end := s.value(space(body, 0), 0, 0, 0)
	d.nodes = s.nodes
	return end != gaveUp && space(body, end) == len(body)
}

// space returns the position of the first byte at or after i that is not white
// space.
func space(b []byte, i int) int {
	const spaces uint64 = 1<<' ' | 1<<'\n' | 1<<'\t' | 1<<'\r'
	for i < len(b) && b[i] <= ' ' && spaces>>b[i]&1 == 1 {
		i++
	}
	return i
}

// value reads a value, whose name is from name to nameEnd, and appends its node.
//
//nolint:gosec // Scan bounds the body
func (s *scanner) value(i, depth, name, nameEnd int) int {
	at := len(s.nodes)
	if i >= len(s.body) || at == maxNodes {
		return gaveUp
	}
	c := s.body[i]
	// The fields are set in place: copying a node right after building it stalls
	// the processor.
	s.nodes = append(s.nodes, node{})
	n := &s.nodes[at]
	n.name, n.nameEnd, n.raw, n.kind = int32(name), int32(nameEnd), int32(i), jsontext.Kind(c)
	var end int
	switch {
	case c == '"':
		end, s.nodes[at].escapes = s.quoted(i)
	case c == '{' || c == '[':
		end = s.children(c, at, i+1, depth+1)
	case c == '-' || c >= '0' && c <= '9':
		s.nodes[at].kind = '0'
		end = s.number(i)
	default:
		end = s.word(i)
	}
	n = &s.nodes[at] // append may have moved it
	n.rawEnd, n.end = int32(end), int32(len(s.nodes))
	return end
}

// children reads the members or elements of the node at parent, and the closing
// bracket.
func (s *scanner) children(open byte, parent, i, depth int) int {
	if depth > maxDepth {
		return gaveUp
	}
	end := open + 2 // in ASCII, '}' is '{' + 2 and ']' is '[' + 2
	i = space(s.body, i)
	if i < len(s.body) && s.body[i] == end {
		return i + 1
	}
	for n := 0; ; n++ {
		switch {
		case open == '[':
			i = s.value(i, depth, 0, 0)
		case n < maxMembers:
			i = s.member(parent, i, depth)
		default:
			return gaveUp
		}
		if i == gaveUp {
			return gaveUp
		}
		if i = space(s.body, i); i == len(s.body) {
			return gaveUp
		}
		switch s.body[i] {
		case end:
			return i + 1
		case ',':
			i = space(s.body, i+1)
		default:
			return gaveUp
		}
	}
}

// member reads a member. It gives up at a name that has escapes or that the
// object at parent already has.
func (s *scanner) member(parent, i, depth int) int {
	end, escaped := s.quoted(i)
	if end == gaveUp || escaped {
		return gaveUp
	}
	name := s.body[i+1 : end-1]
	seen, bit := &s.nodes[parent].names, nameBit(name)
	if *seen&bit != 0 && s.has(parent, string(name)) {
		return gaveUp
	}
	*seen |= bit
	colon := space(s.body, end)
	if colon == len(s.body) || s.body[colon] != ':' {
		return gaveUp
	}
	return s.value(space(s.body, colon+1), depth, i+1, end-1)
}

// nameBit returns the bit that stands for a name in an object's names. Several
// names may share a bit.
func nameBit[T string | []byte](name T) uint64 {
	if len(name) == 0 {
		return 1
	}
	// Of the hashes tried, this one has the fewest collisions among the names of
	// the documented objects.
	n := len(name)
	return 1 << (((name[0]+name[n-1])*17 + name[n>>1]*15 + byte(n&63)*38) & 63)
}

func (s *scanner) has(parent int, name string) bool {
	for i := parent + 1; i < len(s.nodes); i = int(s.nodes[i].end) {
		if n := &s.nodes[i]; int(n.nameEnd-n.name) == len(name) && string(s.body[n.name:n.nameEnd]) == name {
			return true
		}
	}
	return false
}

// quoted reads a string and reports whether it has escapes.
func (s *scanner) quoted(i int) (end int, escaped bool) {
	b := s.body
	if i >= len(b) || b[i] != '"' {
		return gaveUp, false
	}
	for i++; ; {
		if i = plainPrefix(b, i); i == len(b) {
			return gaveUp, false
		}
		n := 0
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			n, escaped = escape(b[i:]), true
		case c >= utf8.RuneSelf:
			n = character(b[i:])
		}
		if n == 0 {
			return gaveUp, false
		}
		i += n
	}
}

// plainPrefix returns the position of the first byte at or after i that is a
// quote, a backslash, a control character or not ASCII. It looks at eight
// bytes at a time.
func plainPrefix(b []byte, i int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	for ; i+8 <= len(b); i += 8 {
		v := binary.LittleEndian.Uint64(b[i : i+8])
		// A byte's high bit is set if the byte is not ASCII, is a control character or
		// a quote, which are those below 0x21 after bit 1 is flipped, or is a backslash,
		// which is zero after the xor. A borrow may also set the bits of bytes above a
		// match but never below it, so the lowest bit is right.
		if found := (v | ((v ^ ones*2) - ones*0x21) | ((v ^ ones*'\\') - ones)) & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

// AppendQuote appends s as a JSON string.
func AppendQuote(b []byte, s string) ([]byte, error) {
	quoted := append(append(append(b, '"'), s...), '"')
	scan := scanner{body: quoted}
	if end, escaped := scan.quoted(len(b)); end == len(quoted) && !escaped {
		return quoted, nil
	}
	return jsontext.AppendQuote(b, s)
}

// character returns the length of the character at the start of b, or 0 to give
// up.
func character(b []byte) int {
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 {
		return 0
	}
	return n
}

// escape returns the length of the escape sequence at the start of b, or 0 to
// give up, for example at a surrogate.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
	default:
		return 0
	}
	if len(b) < 6 {
		return 0
	}
	v, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil || utf16.IsSurrogate(rune(v)) {
		return 0
	}
	return 6
}

// number reads a number.
func (s *scanner) number(i int) int {
	i = s.skip(i, '-')
	if s.skip(i, '0') > i {
		i++
	} else if i = s.digits(i); i == gaveUp {
		return gaveUp
	}
	if after := s.skip(i, '.'); after > i {
		if i = s.digits(after); i == gaveUp {
			return gaveUp
		}
	}
	if after := max(s.skip(i, 'e'), s.skip(i, 'E')); after > i {
		return s.digits(max(s.skip(after, '+'), s.skip(after, '-')))
	}
	return i
}

// skip returns the position after c, or i if the byte at i is not c.
func (s *scanner) skip(i int, c byte) int {
	if i < len(s.body) && s.body[i] == c {
		return i + 1
	}
	return i
}

// digits reads at least one digit.
func (s *scanner) digits(i int) int {
	start := i
	for i < len(s.body) && s.body[i] >= '0' && s.body[i] <= '9' {
		i++
	}
	if i == start {
		return gaveUp
	}
	return i
}

// word reads true, false or null.
func (s *scanner) word(i int) int {
	for _, word := range [...]string{"null", "true", "false"} {
		if end := i + len(word); end <= len(s.body) && string(s.body[i:end]) == word {
			return end
		}
	}
	return gaveUp
}
