package wire

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/masking"
)

// ordered sorts maps by key, so that every attempt and every run sends the same
// bytes.
var ordered = json.JoinOptions(json.Deterministic(true))

// Encode returns the JSON of v, which may be of any type. A value that contains
// itself is an error.
func Encode(v any) ([]byte, error) { return json.Marshal(v, ordered) }

// Marshal encodes a result as the gateway does: empty nullable members are
// null. The results' MarshalJSON methods use it, so that encoding/json gives
// the same output.
//
// In a log of log/slog personal data is masked.
func Marshal(v any) ([]byte, error) {
	if masking.Logging() {
		return masking.Show(v).MarshalJSON()
	}
	return json.Marshal(v, asResponse)
}

var asResponse = json.JoinOptions(
	json.Deterministic(true),
	jsontext.AllowInvalidUTF8(true), // as for decoding: see jsonread.Lenient
	jsontext.AllowDuplicateNames(true),
	json.FormatNilSliceAsNull(true),
	json.FormatNilMapAsNull(true),
	json.WithMarshalers(json.MarshalToFunc(emptyAsNull)),
)

func emptyAsNull(enc *jsontext.Encoder, v any) error {
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer {
		r = r.Elem()
	}
	if r.Kind() == reflect.String && r.Len() == 0 && !atName(enc) {
		return enc.WriteToken(jsontext.Null)
	}
	return errors.ErrUnsupported
}

// atName reports whether the next token is a member's name.
func atName(enc *jsontext.Encoder) bool {
	kind, n := enc.StackIndex(enc.StackDepth())
	return kind == '{' && n%2 == 0
}

// MarshalWith encodes a result as [Marshal] does, and adds the members of received, the
// object that v was decoded from, for which v has no field: whoever passes a result on,
// for example to a browser, passes on what the gateway will add. The names of except are
// not added.
func MarshalWith(v any, received []byte, except ...string) ([]byte, error) {
	if masking.Logging() {
		return masking.Show(v).MarshalJSON()
	}
	out, err := json.Marshal(v, asResponse)
	if err != nil || len(received) == 0 || len(out) < len("{}") || out[0] != '{' {
		return out, err
	}
	known := slices.Concat(namesOf(reflect.TypeOf(v)), except)
	dec := jsontext.NewDecoder(bytes.NewReader(received), jsonread.Lenient)
	if dec.PeekKind() != '{' {
		return out, nil
	}
	out = out[:len(out)-1]
	eachMember(dec, func(name string) bool {
		value, err := dec.ReadValue()
		if err != nil || slices.Contains(known, name) || !value.IsValid() || strings.ContainsRune(name, utf8.RuneError) {
			return err == nil
		}
		known = append(known, name)
		if len(out) > 1 {
			out = append(out, ',')
		}
		quoted, err := jsontext.AppendQuote(out, name)
		if err == nil {
			out = append(append(quoted, ':'), value...)
		}
		return err == nil
	})
	return append(out, '}'), nil
}

// HasOthers reports whether an object has members for which v, a pointer to a struct, has
// no field.
func HasOthers(v any, received []byte) bool {
	known, others := namesOf(reflect.TypeOf(v)), false
	dec := jsontext.NewDecoder(bytes.NewReader(received), jsonread.Lenient)
	if dec.PeekKind() != '{' {
		return false
	}
	eachMember(dec, func(name string) bool {
		others = others || !slices.Contains(known, name)
		return dec.SkipValue() == nil
	})
	return others
}

// namesOf returns the names of the members of a struct or a pointer to one.
func namesOf(t reflect.Type) (names []string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			names = append(names, namesOf(f.Type)...)
		case name != "-" && name != "":
			names = append(names, name)
		}
	}
	return names
}
