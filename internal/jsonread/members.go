package jsonread

import (
	"iter"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// Members and Elements look into one value without reading what is nested in
// it: a hostile body costs no memory for its nodes. The text must be [Valid]; one
// that is not may be read oddly, but no further than its end.

// Members ranges over the names and the values of an object, in the order of the
// text and with duplicates. Any other value has none.
func Members(object string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		s := scanner{body: bytesOf(object)}
		if !s.readByte('{') {
			return
		}
		for s.more('}') {
			name, ok := Text(s.skip())
			if !ok || !s.readByte(':') {
				return
			}
			value := s.skip()
			if value == "" || !yield(name, value) {
				return
			}
		}
	}
}

// Elements ranges over the values of an array. Any other value has none.
func Elements(array string) iter.Seq[string] {
	return func(yield func(value string) bool) {
		s := scanner{body: bytesOf(array)}
		if !s.readByte('[') {
			return
		}
		for s.more(']') {
			if value := s.skip(); value == "" || !yield(value) {
				return
			}
		}
	}
}

// Text reads a string, or a number as its digits. Invalid UTF-8 becomes U+FFFD.
func Text(value string) (s string, ok bool) {
	switch {
	case value == "":
		return "", false
	case IsNumber(value):
		return value, true
	case value[0] != '"' || len(value) < 2:
		return "", false
	}
	if plain := value[1 : len(value)-1]; strings.IndexByte(plain, '\\') < 0 && utf8.ValidString(plain) {
		return plain, true
	}
	unquoted, err := jsontext.AppendUnquote(nil, value)
	return string(unquoted), err == nil || jsontext.Value(value).IsValid(Lenient)
}

// IsNumber reports whether a value, which is not empty, is a number.
func IsNumber(value string) bool {
	return value[0] == '-' || (value[0] >= '0' && value[0] <= '9')
}

// bytesOf returns s without a copy, for reading only.
func bytesOf(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s)) //nolint:gosec // see above
}

// more steps over a comma and reports whether there is a value before the end
// of the object or array.
func (s *scanner) more(end byte) bool {
	s.readByte(',')
	c := s.peek()
	return c != end && s.at < len(s.body)
}

// skip steps over the next value and returns it, empty at the end.
func (s *scanner) skip() string {
	s.peek()
	begin, depth := s.at, 0
	for s.at < len(s.body) {
		switch s.body[s.at] {
		case '"':
			s.skipString()
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			if depth == 0 {
				return view(s.body[begin:s.at]) // of what surrounds a number or a word
			}
			depth--
			s.at++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return view(s.body[begin:s.at])
			}
			s.at++
			continue
		default:
			s.at++
			continue
		}
		if depth == 0 {
			return view(s.body[begin:s.at])
		}
	}
	return view(s.body[begin:s.at])
}

// skipString steps over a string that at is at.
func (s *scanner) skipString() {
	for s.at++; ; {
		s.at = plainPrefix(s.body, s.at)
		if s.at >= len(s.body) {
			return
		}
		c := s.body[s.at]
		s.at++
		switch c {
		case '"':
			return
		case '\\':
			s.at = min(s.at+1, len(s.body))
		}
	}
}
