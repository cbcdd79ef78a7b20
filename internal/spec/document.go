package spec

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// Document is a JSON object under check.
type Document struct {
	jsonread.Document

	body  []byte
	query bool // made from query parameters: every value is a string

	plain   []plainValue // values that Go reads only in another spelling
	checker checker
	objects []Object
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
	d.body, d.query = body, false
	err := d.Document.Parse(body)
	if err == nil {
		return d, nil
	}
	d.Release()
	if at, ok := errors.AsType[*jsonread.SyntaxError](err); ok {
		err = &SyntaxError{Offset: at.Offset, Pointer: MaskCardNumbers(FieldPath(at.Pointer)), Reason: at.Reason}
	}
	return nil, err
}

// plainValue is a value in the spelling that Go reads.
type plainValue struct {
	start, end int // in the body
	text       string
}

// rewrite notes the plain spelling of a value.
func (d *Document) rewrite(i int, text string) {
	start, end := d.Place(i)
	d.plain = append(d.plain, plainValue{start, end, text})
}

// plainBody returns the body with every integer as digits (it may have come as 1000.0 or
// 1e3) and every timestamp in upper case, as Go reads them; a copy only if changed.
func (d *Document) plainBody() []byte {
	if len(d.plain) == 0 {
		return d.body
	}
	slices.SortFunc(d.plain, func(a, b plainValue) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, p := range d.plain {
		if p.start < at {
			continue // checked by two rules
		}
		out = append(append(out, d.body[at:p.start]...), p.text...)
		at = p.end
	}
	return append(out, d.body[at:]...)
}

// Decode reads the document into v, which points to a zero value, after
// [Document.Check]. Nothing but values in another spelling, such as 1e3, is converted.
func (d *Document) Decode(v any) error {
	if len(d.plain) == 0 && d.Document.Decode(v) {
		return nil
	}
	reflect.ValueOf(v).Elem().SetZero()
	return json.Unmarshal(d.plainBody(), v)
}

// Release gives the document back for reuse; nothing of it may be used after.
func (d *Document) Release() {
	d.Reset()
	d.body = nil
	clear(d.plain)
	d.plain = d.plain[:0]
	clear(d.objects)
	d.objects = d.objects[:0]
	d.checker = checker{}
	pool.Put(d)
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

// parseQuery reads the parameters as members. The error is that there are too many.
func parseQuery(q url.Values) (*Document, error) {
	members := make(map[string]string, len(q))
	for name, values := range q {
		members[strings.ToValidUTF8(name, "�")] = Joined(values)
	}
	body, _ := json.Marshal(members, jsontext.AllowInvalidUTF8(true)) // no map of strings fails
	d, err := Parse(body)
	if err != nil {
		return nil, err
	}
	d.query = true
	return d, nil
}
