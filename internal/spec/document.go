package spec

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/truncate"
)

// Document is a JSON object being checked.
type Document struct {
	jsonread.Document

	body  []byte
	query bool // made from query parameters: every value is a string

	checker checker
	objects []Object
}

var pool = sync.Pool{New: func() any { return new(Document) }}

// SyntaxError reports why a body is not a JSON object with unique member
// names, and where.
type SyntaxError struct {
	Offset  int64  // bytes before the error
	Pointer string // the member with the error, such as "products[0].name"; may be ""
	Reason  string
}

// Error returns the reason and the position, without any part of the body.
func (e *SyntaxError) Error() string {
	at := fmt.Sprintf("at byte %d", e.Offset)
	if e.Pointer != "" {
		at += " in " + e.Pointer
	}
	return e.Reason + " " + at
}

// Parse reads body, which must be a single JSON object without duplicate
// names. The body must not change until Release.
func Parse(body []byte) (*Document, error) {
	d := pool.Get().(*Document) //nolint:forcetypeassert // the pool contains only Documents
	d.body, d.query = body, false
	err := d.Document.Parse(body)
	if err == nil {
		return d, nil
	}
	d.Release()
	if at, ok := errors.AsType[*jsonread.SyntaxError](err); ok {
		err = &SyntaxError{Offset: at.Offset, Pointer: MaskCardNumbers(shown(FieldPath(at.Pointer))), Reason: at.Reason}
	}
	return nil, err
}

// maxShown is how many bytes of a path are shown.
const maxShown = 200

// shown shortens a path whose names are long or that is deep, since it is in an error.
func shown(path string) string { return truncate.Ellipsis(path, maxShown) }

// notations reads integers such as 1000.0 and 1e3 and timestamps in lower case, which
// the rules accept and Go's decoder does not.
var notations = json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(readInteger[int]),
	json.UnmarshalFromFunc(readInteger[int64]),
	json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *time.Time) error {
		if dec.PeekKind() != '"' {
			return errors.ErrUnsupported
		}
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(strconv.Quote(strings.ToUpper(token.String()))), v) // which is stricter than Go's time package
	}),
))

func readInteger[T int | int64](dec *jsontext.Decoder, v *T) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	n, ok := jsonread.Integer(string(raw))
	if *v = T(n); !ok || int64(*v) != n {
		return strconv.ErrRange
	}
	return nil
}

// Decode decodes the document into v, which must point to a zero value. Call
// [Document.Check] first. Decode converts notations such as 1e3, but not types.
func (d *Document) Decode(v any) error {
	if d.Document.Decode(v) {
		return nil
	}
	reflect.ValueOf(v).Elem().SetZero()
	return json.Unmarshal(d.body, v, notations)
}

// Release returns the document to the pool. The document and the strings
// obtained from it must not be used afterwards.
func (d *Document) Release() {
	d.Reset()
	d.body = nil
	clear(d.objects)
	d.objects = d.objects[:0]
	d.checker = checker{}
	pool.Put(d)
}

// FieldPath converts a JSON pointer to the interface's field notation:
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

// Joined joins the values of a repeated query parameter with commas. Empty
// values are left out.
func Joined(values []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" }), ",")
}

// parseQuery turns the parameters into members. The only possible error is
// that there are too many.
func parseQuery(q url.Values) (*Document, error) {
	members := make(map[string]string, len(q))
	for _, name := range slices.Sorted(maps.Keys(q)) {
		valid := strings.ToValidUTF8(name, "�") // several names may become the same
		members[valid] = Joined(append([]string{members[valid]}, q[name]...))
	}
	body, _ := json.Marshal(members, jsontext.AllowInvalidUTF8(true), json.Deterministic(true)) // encoding a map of strings can't fail
	d, err := Parse(body)
	if err != nil {
		return nil, err
	}
	d.query = true
	return d, nil
}
