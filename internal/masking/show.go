package masking

import (
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/spec"
)

// Shown is a value as JSON text without personal data, for logs.
type Shown string

// Show returns v without credentials, tokens, documents, Pix keys, card data,
// phone numbers and e-mail addresses. It reads the exported fields and calls no
// method that could call it.
func Show(v any) Shown {
	return Shown(appendShown(nil, nil, reflect.ValueOf(v), 0))
}

// Value returns v for a log, as the results' LogValue methods do.
func Value(v any) slog.Value { return slog.AnyValue(Show(v)) }

// Format writes v for every verb, as the results' Format methods do.
func Format(f fmt.State, v any) { _, _ = f.Write([]byte(Show(v))) }

// MarshalJSON writes the JSON.
func (s Shown) MarshalJSON() ([]byte, error) { return []byte(s), nil }

// MarshalText returns the JSON, so that text handlers show it unchanged.
func (s Shown) MarshalText() ([]byte, error) { return []byte(s), nil }

// JSON returns v as encoding/json encodes it, in a log of log/slog masked.
func JSON(v any) ([]byte, error) {
	if Logging() {
		return Show(v).MarshalJSON()
	}
	return json.Marshal(v)
}

// maxDepth limits the depth of a shown value, which may contain itself.
const maxDepth = 24

func appendShown(b []byte, path []string, v reflect.Value, depth int) []byte {
	if depth > maxDepth {
		return append(b, `"…"`...)
	}
	if text, ok := ownText(v); ok {
		return appendQuoted(b, Text(text))
	}
	switch v.Kind() {
	case reflect.String:
		return appendString(b, path, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return appendNumber(b, path, strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return appendNumber(b, path, strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		return appendNumber(b, path, strconv.FormatFloat(v.Float(), 'f', -1, 64))
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(b, "null"...)
		}
		return appendShown(b, path, v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		return appendList(b, path, v, depth)
	case reflect.Map:
		return appendMap(b, path, v, depth)
	case reflect.Struct:
		if !v.CanInterface() {
			return append(b, "null"...)
		}
		return appendStruct(b, path, v, depth)
	default: // a function or a channel
		return append(b, "null"...)
	}
}

// ownText returns the text of types that are not shown by their fields.
func ownText(v reflect.Value) (string, bool) {
	if !v.IsValid() || !v.CanInterface() || v.Kind() == reflect.Pointer && v.IsNil() {
		return "", false
	}
	switch at := v.Interface().(type) {
	case time.Time:
		return at.Format(time.RFC3339Nano), true
	case error:
		return at.Error(), true
	case fmt.Formatter: // a type that masks itself, which those with String do completely
		if _, named := at.(fmt.Stringer); v.Kind() != reflect.Pointer && (named || isOpaque(v)) {
			return fmt.Sprint(at), true
		}
	case encoding.TextMarshaler:
		if v.Kind() == reflect.Struct {
			text, err := at.MarshalText()
			return string(text), err == nil
		}
	}
	return "", false
}

// isOpaque reports whether v is a struct without exported fields.
func isOpaque(v reflect.Value) bool {
	if v.Kind() != reflect.Struct {
		return false
	}
	for f := range v.Type().Fields() {
		if f.IsExported() {
			return false
		}
	}
	return true
}

func appendString(b []byte, path []string, s string) []byte {
	if s != "" && (Member(path, jsontext.String(s)) || isPersonal(path)) {
		s = Masked
	}
	return appendQuoted(b, free(path, s))
}

// free is [Free] for the value of a member: an identifier may have the form of a
// document.
func free(path []string, s string) string {
	if len(path) > 0 && spec.IsIdentifier(path[len(path)-1]) && !strings.Contains(s, "@") {
		return s
	}
	return Free(s)
}

// Free masks free text, which may be JSON: that of metadata, for example.
func Free(s string) string {
	if s != "" && (s[0] == '{' || s[0] == '[') {
		if masked, err := rewriteUnder(nil, []byte(s)); err == nil {
			return masked
		}
	}
	return Text(s)
}

func appendNumber(b []byte, path []string, s string) []byte {
	if isPersonal(path) || len(path) > 0 && Member(path, jsontext.Float(0)) {
		return appendQuoted(b, Masked)
	}
	return append(b, s...)
}

func appendQuoted(b []byte, s string) []byte {
	out, _ := jsontext.AppendQuote(b, s) // an invalid character is replaced
	return out
}

func appendList(b []byte, path []string, v reflect.Value, depth int) []byte {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return append(b, "null"...)
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return appendBytes(b, path, v)
	}
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendShown(b, path, v.Index(i), depth+1)
	}
	return append(b, ']')
}

// appendBytes appends masked JSON, or only the length of bytes that are not JSON.
func appendBytes(b []byte, path []string, v reflect.Value) []byte {
	if v.Kind() != reflect.Slice || len(path) > 0 && isPersonal(path) {
		return appendQuoted(b, Masked)
	}
	text, err := rewriteUnder(path, v.Bytes())
	if err != nil || !json.Valid([]byte(text)) {
		return appendQuoted(b, fmt.Sprintf("(%d bytes)", v.Len()))
	}
	return append(b, text...)
}

// rewriteUnder masks JSON whose place is path.
func rewriteUnder(path []string, text []byte) (string, error) {
	return Rewrite(text, func(inner []string, t jsontext.Token) jsontext.Token {
		return Token(append(append([]string(nil), path...), inner...), t)
	})
}

func appendMap(b []byte, path []string, v reflect.Value, depth int) []byte {
	if v.IsNil() {
		return append(b, "null"...)
	}
	b = append(b, '{')
	for i, key := range sortedKeys(v) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, Text(key.text)), ':')
		b = appendShown(b, append(path, key.text), v.MapIndex(key.Value), depth+1)
	}
	return append(b, '}')
}

func appendStruct(b []byte, path []string, v reflect.Value, depth int) []byte {
	if own, ok := v.Interface().(json.Marshaler); ok && isOpaque(v) {
		text, _ := own.MarshalJSON()
		return appendBytes(b, path, reflect.ValueOf(text))
	}
	b = append(b, '{')
	first := true
	for f := range v.Type().Fields() {
		field := v.FieldByIndex(f.Index)
		if !f.IsExported() || field.IsZero() || isReceived(f) {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			name, _, _ = strings.Cut(f.Tag.Get("url"), ",")
		}
		if name == "" || name == "-" {
			name = f.Name
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendQuoted(b, name), ':')
		b = appendShown(b, append(path, name), field, depth+1)
	}
	return append(b, '}')
}

// isReceived reports whether a field is the Raw of a result: it repeats the other
// fields, and what it has beside them may be anything.
func isReceived(f reflect.StructField) bool {
	return f.Type == reflect.TypeFor[json.RawMessage]() && f.Tag.Get("json") == "-"
}

type mapKey struct {
	reflect.Value

	text string
}

func sortedKeys(v reflect.Value) []mapKey {
	keys := make([]mapKey, 0, v.Len())
	for _, key := range v.MapKeys() {
		text, own := ownText(key)
		if !own {
			text = fmt.Sprint(key.Interface())
		}
		keys = append(keys, mapKey{key, text})
	}
	sortKeys(keys)
	return keys
}

func sortKeys(keys []mapKey) {
	slices.SortFunc(keys, func(a, b mapKey) int { return strings.Compare(a.text, b.text) })
}
