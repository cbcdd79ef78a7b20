package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Document is a JSON object, read once into a flat list of nodes in the order
// of the text: a node's first child is the node after it, end is the node
// after its last descendant.
type Document struct {
	nodes []node
	query bool // made from query parameters: every value is a text

	buf bytes.Buffer
	dec jsontext.Decoder
}

type node struct {
	kind jsontext.Kind
	name string // the member's name in its object; "" in an array
	raw  []byte // a scalar's text
	end  int
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
	d := pool.Get().(*Document) //nolint:forcetypeassert // the pool holds nothing else
	d.query = false
	d.nodes = d.nodes[:0]
	d.buf = *bytes.NewBuffer(body)
	d.dec.Reset(&d.buf)
	err := d.read("")
	if err == nil && d.nodes[0].kind != '{' {
		err = &SyntaxError{Reason: "the body must be a JSON object, it is " + kindName(d.nodes[0].kind)}
	}
	if err == nil && d.dec.PeekKind() != 0 {
		err = &SyntaxError{Offset: d.dec.InputOffset(), Reason: "unexpected text after the JSON object"}
	}
	if err == nil {
		// PeekKind is 0 both at the end and before malformed text.
		if _, e := d.dec.ReadToken(); !errors.Is(e, io.EOF) {
			err = syntaxError(e)
		}
	}
	if err != nil {
		d.Release()
		return nil, err
	}
	return d, nil
}

// Release gives the document back for reuse; nothing of it may be used after.
func (d *Document) Release() {
	clear(d.nodes)
	d.nodes = d.nodes[:0]
	d.buf = bytes.Buffer{}
	pool.Put(d)
}

func (d *Document) read(name string) error {
	at := len(d.nodes)
	kind := d.dec.PeekKind()
	if kind != '{' && kind != '[' {
		raw, err := d.dec.ReadValue()
		if err != nil {
			return syntaxError(err)
		}
		d.nodes = append(d.nodes, node{kind: raw.Kind(), name: name, raw: raw, end: at + 1})
		return nil
	}
	d.nodes = append(d.nodes, node{kind: kind, name: name})
	if _, err := d.dec.ReadToken(); err != nil {
		return syntaxError(err)
	}
	for next := d.dec.PeekKind(); next != '}' && next != ']'; next = d.dec.PeekKind() {
		member := ""
		if kind == '{' {
			raw, err := d.dec.ReadValue()
			if err != nil {
				return syntaxError(err)
			}
			member = d.text(raw)
		}
		if err := d.read(member); err != nil {
			return err
		}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return syntaxError(err)
	}
	d.nodes[at].end = len(d.nodes)
	return nil
}

// text returns the string that a JSON string stands for.
func (d *Document) text(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return ""
	}
	return string(s)
}

func syntaxError(err error) error {
	var at *jsontext.SyntacticError
	if !errors.As(err, &at) {
		return &SyntaxError{Reason: "the body is not complete JSON"}
	}
	reason := "malformed JSON"
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		reason = "a member stands twice in its object"
	case errors.Is(err, io.ErrUnexpectedEOF):
		reason = "the JSON ends too early"
	}
	return &SyntaxError{Offset: at.ByteOffset, Pointer: FieldPath(at.JSONPointer), Reason: reason}
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

func parseQuery(q url.Values) *Document {
	members := make(map[string]string, len(q))
	for name, values := range q {
		members[name] = strings.Join(values, ",")
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
