// Package scan reads JSON as it nearly always is, and gives up at anything
// unusual and at anything malformed: whoever uses it then reads the text with
// the JSON package, which knows every form and says what is wrong. What it
// accepts is JSON; a fuzz test holds it to that.
package scan

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how deep values may be nested.
const MaxDepth = 32

// Scanner reads one text from At on. Every method that reads reports false
// where it gave up; the scanner is of no use after that.
type Scanner struct {
	Body []byte // valid UTF-8; see Valid
	At   int
}

// Valid reports whether body may be scanned at all.
func Valid(body []byte) bool { return utf8.Valid(body) }

// Peek returns the next byte after white space, 0 at the end.
func (s *Scanner) Peek() byte {
	for s.At < len(s.Body) {
		switch c := s.Body[s.At]; c {
		case ' ', '\t', '\n', '\r':
			s.At++
		default:
			return c
		}
	}
	return 0
}

// Byte reads c, after white space.
func (s *Scanner) Byte(c byte) bool {
	if s.Peek() != c {
		return false
	}
	s.At++
	return true
}

// End reports whether nothing is left but white space.
func (s *Scanner) End() bool { return s.Peek() == 0 && s.At == len(s.Body) }

// String reads a string that At stands at and returns what is between its
// quotes, and whether that has escapes.
func (s *Scanner) String() (text []byte, escaped, ok bool) {
	if s.At >= len(s.Body) || s.Body[s.At] != '"' {
		return nil, false, false
	}
	start := s.At + 1
	for i := start; ; {
		i = Plain(s.Body, i)
		if i >= len(s.Body) {
			return nil, false, false
		}
		switch s.Body[i] {
		case '"':
			s.At = i + 1
			return s.Body[start:i], escaped, true
		case '\\':
			n := escape(s.Body[i+1:])
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

// Plain returns the place of the first byte from i on that is a quote, a
// backslash or a control character. It looks at eight bytes at a time.
func Plain(b []byte, i int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	for ; i+8 <= len(b); i += 8 {
		v := binary.LittleEndian.Uint64(b[i : i+8])
		quote, slash := v^ones*'"', v^ones*'\\'
		// A byte's high bit is set where it is below 0x20, or zero after the xor;
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

// escape returns how many bytes after the backslash belong to it, 0 to give
// up, as at surrogates.
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

// Literal reads true, false or null.
func (s *Scanner) Literal(want string) bool {
	if len(s.Body)-s.At < len(want) || string(s.Body[s.At:s.At+len(want)]) != want {
		return false
	}
	s.At += len(want)
	return true
}

// Number reads a number.
func (s *Scanner) Number() bool {
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

func (s *Scanner) next(c byte) bool {
	if s.At < len(s.Body) && s.Body[s.At] == c {
		s.At++
		return true
	}
	return false
}

func (s *Scanner) digits() bool {
	start := s.At
	for s.At < len(s.Body) && s.Body[s.At] >= '0' && s.Body[s.At] <= '9' {
		s.At++
	}
	return s.At > start
}

// Scalar reads a string, a number, true, false or null whose first byte is c.
func (s *Scanner) Scalar(c byte) bool {
	switch c {
	case '"':
		_, _, ok := s.String()
		return ok
	case 't':
		return s.Literal("true")
	case 'f':
		return s.Literal("false")
	case 'n':
		return s.Literal("null")
	default:
		return s.Number()
	}
}

// Skip reads any value, nested no deeper than depth.
func (s *Scanner) Skip(depth int) bool {
	c := s.Peek()
	if c != '{' && c != '[' {
		return s.Scalar(c)
	}
	if depth == 0 {
		return false
	}
	end := c + 2 // '}' and ']' stand two after their partners
	s.At++
	if s.Byte(end) {
		return true
	}
	for {
		if c == '{' && !s.name() || !s.Skip(depth-1) {
			return false
		}
		if s.Byte(end) {
			return true
		}
		if !s.Byte(',') {
			return false
		}
	}
}

func (s *Scanner) name() bool {
	s.Peek()
	_, _, ok := s.String()
	return ok && s.Byte(':')
}
