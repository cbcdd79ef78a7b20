// Package jsonread is the project's own JSON parser. It uses unsafe in one place,
// for strings that are views of the text: see view. A [Document] is JSON parsed once into a flat list
// of nodes: the rules check it, [Decode] fills structs from it, and [Read]
// parses webhooks into it.
package jsonread

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Lenient are the options for responses and webhooks: a buyer's name in Latin-1
// or a duplicate member must not hide a payment.
var Lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// WithoutMark returns a text without the byte order mark with which some editors begin a
// file, and some servers a response.
func WithoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte(mark)) }

// Marked reports whether a text begins with a byte order mark.
func Marked(text []byte) bool { return bytes.HasPrefix(text, []byte(mark)) }

const mark = "\xEF\xBB\xBF"

// Document is a JSON value, parsed into a flat list of nodes in the order of the
// text. A node is identified by its index; 0 is the whole value, whose first
// child is node 1. The zero Document is ready to use, and may be reused.
type Document struct {
	body   []byte
	nodes  []node
	strict bool   // without duplicate names or invalid UTF-8
	owned  bool   // decoded strings share the memory of the body
	chunk  []byte // holds the other decoded strings; only appended to

	// The JSON package's decoder and its input.
	buf bytes.Buffer
	dec jsontext.Decoder
}

// node is a value and its name, as positions in the body. Its first child is the
// next node; end is the node after its last descendant.
type node struct {
	names         uint64 // of an object: the bits of its members' names; see nameBit
	name, nameEnd int32  // the member's name, without its quotes; empty in an array
	raw, rawEnd   int32  // the value's text
	end           int32
	kind          jsontext.Kind
	escaped       bool // the name has escapes or invalid UTF-8
	escapes       bool // the value is a string with escapes or invalid UTF-8
}

// SyntaxError reports why a body is not a JSON object with unique member names,
// and where.
type SyntaxError struct {
	Offset  int64            // bytes before the error
	Pointer jsontext.Pointer // the member with the error; may be ""
	Reason  string
}

// Error returns the reason, without any part of the body.
func (e *SyntaxError) Error() string { return e.Reason }

// Parse reads body, which must be a single JSON object without duplicate names.
// The document refers to body until [Document.Reset].
func (d *Document) Parse(body []byte) error {
	if d.Scan(body) && d.nodes[0].kind == '{' {
		return nil
	}
	return d.parse()
}

// Read parses body, a JSON object, leniently (see [Lenient]) and calls use with
// the document. The document is valid only during the call; the strings it
// returns are valid until body changes. A body with more than maxNodes values is
// an error, which limits the memory that an attacker's body can use.
func Read(body []byte, use func(d *Document)) error {
	d := documents.Get().(*Document) //nolint:forcetypeassert // the pool contains only Documents
	defer release(d)
	err := d.Parse(body)
	d.strict = err == nil
	if err != nil {
		err = d.parse(Lenient)
	}
	if err == nil {
		use(d)
	}
	return err
}

// Strict reports whether [Read] found neither duplicate names nor invalid UTF-8.
func (d *Document) Strict() bool { return d.strict }

// Reset releases the body and, if there are unusually many, the nodes.
func (d *Document) Reset() {
	const keep = 1 << 14 // nodes; a page of 100 transactions has half as many
	if cap(d.nodes) > keep {
		d.nodes = nil
	}
	d.body, d.owned, d.chunk, d.buf = nil, false, nil, bytes.Buffer{}
}

// parse parses the body with the JSON package, which accepts all valid JSON.
func (d *Document) parse(opts ...jsontext.Options) error {
	if len(d.body) > math.MaxInt32 {
		return &SyntaxError{Offset: math.MaxInt32, Reason: "the body is too long"}
	}
	d.nodes = d.nodes[:0]
	d.buf = *bytes.NewBuffer(d.body)
	d.dec.Reset(&d.buf, opts...)
	if err := d.read(node{}); err != nil {
		return err
	}
	if k := d.nodes[0].kind; k != '{' {
		return &SyntaxError{Reason: "the body must be a JSON object, not " + KindName(k)}
	}
	if d.dec.PeekKind() != 0 {
		return &SyntaxError{Offset: d.dec.InputOffset(), Reason: "unexpected text after the JSON object"}
	}
	// PeekKind is 0 both at the end and before malformed text.
	if _, err := d.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return syntaxError(err)
	}
	return nil
}

// read appends the node of the next value; n has the value's name.
func (d *Document) read(n node) error {
	at := len(d.nodes)
	if at == maxNodes {
		return &SyntaxError{Offset: d.dec.InputOffset(), Reason: "the body has too many values"}
	}
	n.kind = d.dec.PeekKind()
	if n.kind != '{' && n.kind != '[' {
		raw, err := d.dec.ReadValue()
		if err != nil {
			return syntaxError(err)
		}
		n.kind = raw.Kind()
		n.escapes = n.kind == '"' && !plain(raw)
		n.raw, n.rawEnd = d.place(len(raw))
		n.end = int32(at + 1) //nolint:gosec // Parse bounds the body
		d.nodes = append(d.nodes, n)
		return nil
	}
	open := n.kind
	d.nodes = append(d.nodes, n)
	if _, err := d.dec.ReadToken(); err != nil {
		return syntaxError(err)
	}
	start, _ := d.place(1)
	for next := d.dec.PeekKind(); next != '}' && next != ']'; next = d.dec.PeekKind() {
		child := node{}
		if open == '{' {
			raw, err := d.dec.ReadValue()
			if err != nil {
				return syntaxError(err)
			}
			child.name, child.nameEnd = d.place(len(raw))
			child.name, child.nameEnd = child.name+1, child.nameEnd-1
			child.escaped = !plain(raw)
		}
		if err := d.read(child); err != nil {
			return err
		}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return syntaxError(err)
	}
	_, end := d.place(1)
	d.nodes[at].raw, d.nodes[at].rawEnd = start, end
	d.nodes[at].names = ^uint64(0)
	d.nodes[at].end = int32(len(d.nodes)) //nolint:gosec // as above
	return nil
}

// plain reports whether a string has no escapes and is valid UTF-8.
func plain(raw []byte) bool { return bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) }

// place returns the position of the last n bytes read.
func (d *Document) place(n int) (start, end int32) {
	at := d.dec.InputOffset()
	return int32(at) - int32(n), int32(at) //nolint:gosec // as above
}

// maxNesting is how many levels the decoder accepts.
const maxNesting = 10_000

func syntaxError(err error) error {
	var at *jsontext.SyntacticError
	if !errors.As(err, &at) {
		return &SyntaxError{Reason: "the body is empty"}
	}
	reason := "malformed JSON"
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		reason = "duplicate field"
	case errors.Is(err, io.ErrUnexpectedEOF):
		reason = "unexpected end of JSON"
	case strings.Count(string(at.JSONPointer), "/") >= maxNesting:
		reason = "too many levels of nesting"
	}
	return &SyntaxError{Offset: at.ByteOffset, Pointer: at.JSONPointer, Reason: reason}
}

// Kind returns the kind of node i.
func (d *Document) Kind(i int) jsontext.Kind { return d.nodes[i].kind }

// End returns the node after the last descendant of node i, which is its next
// sibling if it has one. The first child of i is i+1.
func (d *Document) End(i int) int { return int(d.nodes[i].end) }

// Find returns the node of the member of object i with this name, or 0. The
// search starts at *hint, which is then set to the node after the one found,
// because members are mostly read in order.
func (d *Document) Find(i int, name string, hint *int) int {
	if d.nodes[i].names&nameBit(name) == 0 {
		return 0
	}
	first, end := i+1, int(d.nodes[i].end)
	from := max(*hint, first)
	found := d.search(name, from, end)
	if found == 0 {
		found = d.search(name, first, from)
	}
	if found > 0 {
		*hint = int(d.nodes[found].end)
	}
	return found
}

func (d *Document) search(name string, from, end int) int {
	for i := from; i < end; i = int(d.nodes[i].end) {
		n := &d.nodes[i]
		if int(n.nameEnd-n.name) == len(name) && !n.escaped && string(d.body[n.name:n.nameEnd]) == name ||
			n.escaped && d.Name(i) == name {
			return i
		}
	}
	return 0
}

// Name returns the name of a member. It is valid until the body changes.
func (d *Document) Name(i int) string {
	n := &d.nodes[i]
	if n.escaped {
		return unquote(d.body[n.name-1 : n.nameEnd+1])
	}
	return view(d.body[n.name:n.nameEnd])
}

// Raw returns the JSON of node i. It is valid until the body changes.
func (d *Document) Raw(i int) string { return view(d.raw(i)) }

func (d *Document) raw(i int) []byte { return d.body[d.nodes[i].raw:d.nodes[i].rawEnd] }

// Text returns the value of a JSON string. It is valid until the body changes.
func (d *Document) Text(i int) string {
	if n := &d.nodes[i]; !n.escapes {
		return view(d.body[n.raw+1 : n.rawEnd-1])
	}
	return unquote(d.raw(i))
}

// Scalar returns a string as [Document.Text] does, or a number as it is written.
func (d *Document) Scalar(i int) (s string, ok bool) {
	switch d.Kind(i) {
	case '"':
		return d.Text(i), true
	case '0':
		return d.Raw(i), true
	default:
		return "", false
	}
}

// Children iterates over the members of an object or the elements of an array.
func (d *Document) Children(i int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for child, end := i+1, d.End(i); child < end && yield(child); child = d.End(child) {
		}
	}
}

// Path returns the path of node i, such as "data.products[0].price".
func (d *Document) Path(i int) string {
	var path []byte
	for at := 0; at != i; {
		child, n := at+1, 0
		for ; d.End(child) <= i; n++ {
			child = d.End(child)
		}
		switch {
		case d.Kind(at) == '[':
			path = append(strconv.AppendInt(append(path, '['), int64(n), 10), ']')
		case len(path) > 0:
			path = append(append(path, '.'), d.Name(child)...)
		default:
			path = append(path, d.Name(child)...)
		}
		at = child
	}
	return string(path)
}

// unquote maps invalid UTF-8 to U+FFFD.
func unquote(raw []byte) string {
	s, _ := jsontext.AppendUnquote(nil, raw) // raw is valid JSON, so the only possible error is invalid UTF-8
	return string(s)
}

// view returns b as a string without copying it: copies took half the time of
// the rule checks.
func view(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // see above
}

// Place returns the position of node i's value in the body.
func (d *Document) Place(i int) (start, end int) {
	return int(d.nodes[i].raw), int(d.nodes[i].rawEnd)
}

// KindName returns the name of a kind for messages such as "must be a string,
// not null".
func KindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	default:
		return "nothing"
	}
}
