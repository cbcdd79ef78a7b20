package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Document is a JSON object, read once into a flat list of nodes in the order
// of the text: a node's first child is the node after it, end is the node
// after its last descendant.
type Document struct {
	body  []byte
	nodes []node
	query bool // made from query parameters: every value is a text

	plain []plainValue // values that Go reads only in another spelling

	// What one run and the slower reading need is kept for the next body.
	checker checker
	objects []Object
	buf     bytes.Buffer
	dec     jsontext.Decoder
}

// node is a value and its name, as places in the body.
type node struct {
	name, nameEnd int32 // the member's name, without its quotes; empty in an array
	raw, rawEnd   int32 // the value's text
	end           int32
	names         uint64 // of an object: the bits of its members' names, see nameBit
	kind          jsontext.Kind
	escaped       bool // the name has escapes
	escapes       bool // the value is a string that has
}

var pool = sync.Pool{New: func() any { return new(Document) }}

// SyntaxError says where a body stops being a JSON object with unique names.
type SyntaxError struct {
	Offset  int64  // bytes before the fault
	Pointer string // the member it was found in, as "products[0].name"; may be ""
	Reason  string
}

// Error names the place and the reason and repeats nothing of the body.
func (e *SyntaxError) Error() string {
	at := fmt.Sprintf("at byte %d", e.Offset)
	if e.Pointer != "" {
		at += " in " + e.Pointer
	}
	return e.Reason + " " + at
}

// Parse reads body, which must be one JSON object without duplicate names and
// stay unchanged until Release.
func Parse(body []byte) (*Document, error) {
	if len(body) > math.MaxInt32 {
		return nil, &SyntaxError{Offset: math.MaxInt32, Reason: "the body is too long"}
	}
	d := pool.Get().(*Document) //nolint:forcetypeassert // the pool holds nothing else
	d.body, d.query, d.nodes = body, false, d.nodes[:0]
	if d.scan() && d.nodes[0].kind == '{' {
		return d, nil
	}
	if err := d.parse(); err != nil {
		d.Release()
		return nil, err
	}
	return d, nil
}

// plainValue is a value in the spelling that Go reads.
type plainValue struct {
	raw, rawEnd int32
	text        string
}

// rewrite notes the plain spelling of a value.
func (d *Document) rewrite(n *node, text string) {
	d.plain = append(d.plain, plainValue{n.raw, n.rawEnd, text})
}

// Plain returns the body with every integer that the rules accept as digits,
// which may have come as 1000.0 or 1e3, and every timestamp in upper case: as Go
// reads them. It is for after [Document.Check], and is the body itself where
// there is nothing to change.
func (d *Document) Plain() []byte {
	if len(d.plain) == 0 {
		return d.body
	}
	slices.SortFunc(d.plain, func(a, b plainValue) int { return int(a.raw - b.raw) })
	var out []byte
	at := int32(0)
	for _, p := range d.plain {
		if p.raw < at {
			continue // checked by two rules
		}
		out = append(append(out, d.body[at:p.raw]...), p.text...)
		at = p.rawEnd
	}
	return append(out, d.body[at:]...)
}

// Release gives the document back for reuse; nothing of it may be used after.
func (d *Document) Release() {
	const keep = 4096 // nodes; a body of a megabyte has a hundred times as many
	if cap(d.nodes) > keep {
		d.nodes = nil
	}
	d.body, d.buf = nil, bytes.Buffer{}
	clear(d.plain)
	d.plain = d.plain[:0]
	clear(d.objects)
	d.objects = d.objects[:0]
	d.checker = checker{}
	pool.Put(d)
}

// parse reads the body in any form that JSON has.
func (d *Document) parse() error {
	d.nodes = d.nodes[:0]
	d.buf = *bytes.NewBuffer(d.body)
	d.dec.Reset(&d.buf)
	if err := d.read(node{}); err != nil {
		return err
	}
	if k := d.nodes[0].kind; k != '{' {
		return &SyntaxError{Reason: "the body must be a JSON object, it is " + kindName(k)}
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

// read appends the next value to the nodes; n has its name.
func (d *Document) read(n node) error {
	at := len(d.nodes)
	n.kind = d.dec.PeekKind()
	if n.kind != '{' && n.kind != '[' {
		raw, err := d.dec.ReadValue()
		if err != nil {
			return syntaxError(err)
		}
		n.kind = raw.Kind()
		n.escapes = n.kind == '"' && bytes.IndexByte(raw, '\\') >= 0
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
			child.escaped = bytes.IndexByte(raw, '\\') >= 0
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

// place returns where the text of n bytes that was just read stands.
func (d *Document) place(n int) (start, end int32) {
	at := d.dec.InputOffset()
	return int32(at) - int32(n), int32(at) //nolint:gosec // as above
}

// name returns the name of a member.
func (d *Document) name(n *node) string {
	if n.escaped {
		return unquote(d.body[n.name-1 : n.nameEnd+1])
	}
	return view(d.body[n.name:n.nameEnd])
}

// raw returns the JSON of a value.
func (d *Document) raw(n *node) []byte { return d.body[n.raw:n.rawEnd] }

// text returns the string that a JSON string stands for.
func (d *Document) text(n *node) string {
	if n.escapes {
		return unquote(d.raw(n))
	}
	return view(d.body[n.raw+1 : n.rawEnd-1])
}

func unquote(raw []byte) string {
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return ""
	}
	return string(s)
}

// view returns b as a string without a copy: half of the time that the rules
// took went into copies. It holds because the body stays unchanged until
// Release and no rule keeps a text.
func view(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // see above
}

func syntaxError(err error) error {
	var at *jsontext.SyntacticError
	if !errors.As(err, &at) {
		return &SyntaxError{Reason: "the body is empty"}
	}
	reason := "malformed JSON"
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		reason = "a member stands twice in its object"
	case errors.Is(err, io.ErrUnexpectedEOF):
		reason = "the JSON ends too early"
	}
	return &SyntaxError{Offset: at.ByteOffset, Pointer: MaskCardNumbers(FieldPath(at.JSONPointer)), Reason: reason}
}

// FieldPath writes a JSON pointer as the interface writes fields:
// "/products/0/name" is "products[0].name".
func FieldPath(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if token != "" && strings.Trim(token, "0123456789") == "" {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	return b.String()
}

// Joined returns a query parameter as one comma-joined list, however often it
// was sent. What was sent empty is left out.
func Joined(values []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" }), ",")
}

func parseQuery(q url.Values) *Document {
	members := make(map[string]string, len(q))
	for name, values := range q {
		members[name] = Joined(values)
	}
	body, err := json.Marshal(members, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		body = []byte("{}")
	}
	d, err := Parse(body)
	if err != nil { // a map of strings is always an object with unique names
		d, _ = Parse([]byte("{}"))
	}
	d.query = true
	return d
}

func kindName(k jsontext.Kind) string {
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
