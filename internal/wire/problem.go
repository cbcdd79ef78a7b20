package wire

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/truncate"
)

// Problem is an error body of any shape, decoded as far as possible.
type Problem struct {
	Type, Title, Detail, Instance string
	Code                          string
	Status                        int // from the body; 0 if it has none
	RequestID                     string
	Fields                        []Field
}

// Field is one of the errors that a Problem lists.
type Field struct{ Field, Message, Code string }

// shortestCode is the length from which a title in capital letters is read as a code.
const shortestCode = 4

// maxText limits the length of each string, maxFields the number of entries.
const (
	maxText   = 1 << 10
	maxFields = 200
)

// DecodeProblem reads an error body: problem+json, {error, message, status},
// validation_errors, success=false, HTML, plain text, nothing, or any of these
// truncated. It never fails.
func DecodeProblem(body []byte) Problem {
	var p Problem
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsonread.Lenient)
	if dec.PeekKind() == '{' {
		p.object(dec, 0)
	} else {
		p.Detail = plainText(body)
	}
	if p.Code == "" && IsCode(p.Title) {
		p.Code = p.Title // {"title": "PAYMENT_BLOCKED"}, as some rejections are written
	}
	if p.Code == "" && len(p.Fields) > 0 {
		p.Code = p.Fields[0].Code
	}
	return p
}

// eachMember calls read with the name of each member of the next value, which
// must be an object. It returns false if the input ends before the object does.
func eachMember(dec *jsontext.Decoder, read func(name string) bool) bool {
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil || !read(name.String()) {
			return false
		}
	}
	_, err := dec.ReadToken()
	return err == nil
}

// object reads members until the input ends or is no longer valid JSON.
func (p *Problem) object(dec *jsontext.Decoder, depth int) {
	eachMember(dec, func(name string) bool { return p.member(dec, name, depth) })
}

// member reads one member. It returns false if the input ends or is invalid.
func (p *Problem) member(dec *jsontext.Decoder, name string, depth int) bool {
	kind := dec.PeekKind()
	switch {
	case kind == '{' && depth == 0 && (name == "error" || name == "data"):
		p.object(dec, depth+1) // {"error": {"code": …, "message": …}}
		return true
	case kind == '[' && (name == "errors" || name == "validation_errors"):
		return p.fields(dec)
	case kind == '{' && name == "errors":
		return p.fieldMap(dec)
	}
	value, err := dec.ReadValue()
	if err == nil {
		p.text(name, scalarText(value))
	}
	return err == nil
}

func (p *Problem) text(name, text string) {
	if text == "" {
		return
	}
	switch name {
	case "type":
		p.Type = text
	case "title":
		p.Title = text
	case "detail":
		p.Detail = text
	case "message":
		if p.Detail == "" {
			p.Detail = text
		}
	case "instance":
		p.Instance = text
	case "code":
		p.Code = text
	case "error":
		if p.Code == "" && allCaps(text) {
			p.Code = text
		} else if p.Title == "" {
			p.Title = text
		}
	case "status", "statusCode":
		if n, ok := jsonread.Integer(text); ok && n >= 100 && n <= 999 {
			p.Status = int(n)
		}
	case "requestId", "request_id":
		p.RequestID = text
	}
}

// fields reads [{field, message, code}] or a list of strings.
func (p *Problem) fields(dec *jsontext.Decoder) bool {
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	for {
		switch dec.PeekKind() {
		case '{':
			var f entry
			ok := f.read(dec)
			for _, field := range f.fields() {
				p.add(field)
			}
			if !ok {
				return false
			}
		case ']':
			_, err := dec.ReadToken()
			return err == nil
		default:
			value, err := dec.ReadValue()
			if err != nil {
				return false
			}
			p.add(Field{Message: scalarText(value)})
		}
	}
}

// entry is one of the errors of a list, in any of its forms.
type entry struct {
	Field

	unknown []string // the names of members that the gateway does not know, within Field
}

// fields returns the entry as one error for each member that it is about.
func (f *entry) fields() []Field {
	if len(f.unknown) == 0 {
		return []Field{f.Field}
	}
	all := make([]Field, len(f.unknown))
	for i, name := range f.unknown {
		all[i] = f.Field
		all[i].Field = shorten(strings.TrimPrefix(f.Field.Field+"."+name, "."))
	}
	return all
}

func (f *entry) read(dec *jsontext.Decoder) bool {
	return eachMember(dec, func(member string) bool {
		value, err := dec.ReadValue()
		if err != nil {
			return false
		}
		switch text := scalarText(value); member {
		case "field", "path", "property":
			if path := pathText(value); path != "" {
				f.Field.Field = path
			}
		case "message", "detail":
			f.Message = text
		case "code":
			f.Code = text
		case "keys":
			f.unknown = textsOf(value)
		}
		return true
	})
}

// pathText returns a path that is a text, or a list of names and indices:
// ["products", 0, "name"] is products[0].name.
func pathText(value jsontext.Value) string {
	if value.Kind() != '[' {
		return scalarText(value)
	}
	var path strings.Builder
	eachElement(value, func(step jsontext.Value) {
		switch text := scalarText(step); {
		case step.Kind() == '0':
			path.WriteString("[" + text + "]")
		case path.Len() > 0:
			path.WriteString("." + text)
		default:
			path.WriteString(text)
		}
	})
	return shorten(path.String())
}

// textsOf returns the strings of a list.
func textsOf(value jsontext.Value) (all []string) {
	eachElement(value, func(element jsontext.Value) {
		if element.Kind() == '"' && len(all) < maxFields {
			all = append(all, scalarText(element))
		}
	})
	return all
}

// eachElement calls use with the elements of a value, if it is a list.
func eachElement(value jsontext.Value, use func(jsontext.Value)) {
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsonread.Lenient)
	if value.Kind() != '[' {
		return
	}
	if _, err := dec.ReadToken(); err != nil {
		return
	}
	for dec.PeekKind() != ']' {
		element, err := dec.ReadValue()
		if err != nil {
			return
		}
		use(element)
	}
}

// fieldMap reads {"amount": "is required"} or {"amount": ["is required"]}.
func (p *Problem) fieldMap(dec *jsontext.Decoder) bool {
	return eachMember(dec, func(field string) bool {
		value, err := dec.ReadValue()
		if err == nil {
			p.add(Field{Field: shorten(field), Message: strings.Trim(scalarText(value), `[]"`)})
		}
		return err == nil
	})
}

func (p *Problem) add(f Field) {
	if len(p.Fields) < maxFields && (f != Field{}) {
		p.Fields = append(p.Fields, f)
	}
}

// IsCode reports whether s is written like DUPLICATE_EXTERNAL_REF.
func IsCode(s string) bool { return len(s) >= shortestCode && allCaps(s) }

func allCaps(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
	}) < 0
}

// scalarText returns the content of a string, the JSON of any other value, and
// "" for null.
func scalarText(value jsontext.Value) string {
	switch value.Kind() {
	case 'n':
		return ""
	case '"':
		text, _ := jsontext.AppendUnquote(nil, value)
		return shorten(string(text))
	default:
		return shorten(string(value))
	}
}

// plainText returns the start of a text that is not a JSON object, or the title
// of an HTML page.
func plainText(body []byte) string {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || !strings.HasPrefix(http.DetectContentType(body), "text/") {
		return ""
	}
	if body[0] == '<' {
		_, after, found := bytes.Cut(body, []byte("<title>"))
		title, _, closed := bytes.Cut(after, []byte("</title>"))
		if !found || !closed {
			return ""
		}
		body = title
	}
	return strings.Join(strings.Fields(shorten(string(body))), " ")
}

func shorten(s string) string { return truncate.Text(s, maxText) }
