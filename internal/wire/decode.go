// Package wire reads and writes the interface's JSON: the envelope, both list
// shapes, every kind of error body, and values whose type differs from the
// documented one.
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/spec"
)

// converting are decoding options that also convert values of another type.
var converting = json.JoinOptions(jsonread.Lenient, json.WithUnmarshalers(json.UnmarshalFromFunc(scalar)))

// Decode decodes a response into v. A value of another type than v expects is
// converted if nothing is lost: numbers, booleans and strings to each other,
// and empty strings, arrays and objects to null.
func Decode[T any](body []byte, v *T) error { return decode(body, v, jsonread.Decode) }

func decode[T any](body []byte, v *T, fast func([]byte, any) bool) error {
	reset := func() {
		var zero T
		*v = zero
	}
	reset()
	if fast(body, v) {
		return nil
	}
	return decodeSlowly(body, v, reset)
}

// DecodeAny decodes a body into the value that out points to, as Decode does.
func DecodeAny(body []byte, out any) error { return decodeSlowly(body, out, func() {}) }

func decodeSlowly(body []byte, v any, reset func()) error {
	reset()
	err := json.Unmarshal(body, v, jsonread.Lenient)
	var wrongType *json.SemanticError
	if err == nil || !errors.As(err, &wrongType) {
		return err
	}
	reset()
	return json.Unmarshal(body, v, converting)
}

// DescribeError says what is wrong with a response and where, without quoting
// the response.
func DescribeError(err error) error {
	var wrongType *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, ErrNoData):
		return ErrNoData
	case errors.As(err, &wrongType):
		return fmt.Errorf("%s has an unexpected type (%s)", place(wrongType.JSONPointer, wrongType.ByteOffset), jsonread.KindName(wrongType.JSONKind))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s is malformed or truncated JSON", place(syntax.JSONPointer, syntax.ByteOffset))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the response is truncated JSON")
	default:
		return err
	}
}

func place(p jsontext.Pointer, offset int64) string {
	if p == "" {
		return fmt.Sprintf("the response at byte %d", offset)
	}
	return fmt.Sprintf("the response at byte %d, %s,", offset, p)
}

// Unread is a member of a response that was left out, or a time that is unknown, because
// its value can't be read.
type Unread struct {
	Member string // without indices: "fee", "transactions.paidAt"
	Kind   string // of the value: "an object"
}

// DecodeMembers decodes a resource into v as Decode does, and leaves out what m does not
// require. It returns what it left out.
func DecodeMembers[T any](body []byte, v *T, m *spec.Members) ([]Unread, error) {
	return decodeMembers(body, v, m, jsonread.Decode, wholeBody)
}

func decodeMembers[T any](body []byte, v *T, m *spec.Members, fast func([]byte, any) bool, where locate) ([]Unread, error) {
	reset := func() {
		var zero T
		*v = zero
	}
	reset()
	if fast(body, v) {
		return nil, nil
	}
	if m == nil {
		return nil, decodeSlowly(body, v, reset)
	}
	reset()
	r := reading{members: m, locate: where}
	err := json.Unmarshal(body, v, jsonread.Lenient, json.WithUnmarshalers(json.UnmarshalFromFunc(r.value)))
	return r.unread, err
}

// reading is the state of a decoding that leaves out what can't be read.
type reading struct {
	members *spec.Members
	locate  locate
	unread  []Unread
}

// locate returns the path of a value in its resource or its page, and the table that has it.
type locate func(names []string, m *spec.Members) (path string, of *spec.Members)

// wholeBody is for a body that is the resource.
func wholeBody(names []string, m *spec.Members) (string, *spec.Members) { return pathOf(names), m }

// envelopeMembers has no strict members besides "data".
var envelopeMembers = spec.Members{Resource: "envelope", Strict: []string{"data"}}

// inEnvelope is for a body whose "data" is the resource.
func inEnvelope(names []string, m *spec.Members) (string, *spec.Members) {
	if len(names) > 1 && names[0] == "data" {
		return pathOf(names[1:]), m
	}
	return pathOf(names), &envelopeMembers
}

// inPage is for a body whose "data" is a list of resources, or an object that has it.
func inPage(names []string, m *spec.Members) (string, *spec.Members) {
	items := names
	for len(items) > 0 && items[0] == "data" && len(names)-len(items) < 2 {
		items = items[1:]
	}
	switch {
	case len(items) == len(names), len(items) > 0 && !isIndex(items[0]):
		return pathOf(items), &spec.PageMembers
	case len(items) > 0:
		items = items[1:]
	}
	return pathOf(items), m
}

// pathOf joins the names, without the indices of lists.
func pathOf(names []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(names), isIndex), ".")
}

func isIndex(name string) bool {
	_, err := strconv.Atoi(name)
	return err == nil
}

// value is called for every value of the second attempt to decode a body.
func (r *reading) value(dec *jsontext.Decoder, v any) error {
	target, kind := reflect.ValueOf(v).Elem(), dec.PeekKind()
	time, isTime := v.(jsonread.Doubtful)
	whole := kind != 'n' && kind != 0 && (target.Kind() == reflect.Slice || target.Kind() == reflect.Pointer)
	if !isTime && !whole && fits(kind, target) {
		return errors.ErrUnsupported
	}
	path, of := r.locate(slices.Collect(dec.StackPointer().Tokens()), r.members)
	if whole = whole && of.IsWhole(path); !isTime && !whole && fits(kind, target) {
		return errors.ErrUnsupported
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if isTime {
		readable := time.UnmarshalJSON(raw) == nil && !time.Unreadable()
		r.leaveOut(path, raw, !readable)
		return nil
	}
	strict := of.IsStrict(path)
	var ok bool
	switch {
	case whole:
		ok = empty(raw) || json.Unmarshal(raw, v, together) == nil
	case strict:
		ok = convertStrictly(raw, target)
	default:
		ok = convertLeniently(raw, target)
	}
	if ok {
		return nil
	}
	if !strict {
		target.SetZero()
		r.leaveOut(path, raw, true)
		return nil
	}
	return wrongType(dec, raw, target)
}

func (r *reading) leaveOut(path string, raw jsontext.Value, unread bool) {
	if u := (Unread{path, jsonread.KindName(raw.Kind())}); unread && !slices.Contains(r.unread, u) {
		r.unread = append(r.unread, u)
	}
}

// isScalar reports whether a value is a string, a number or a boolean.
func isScalar(raw jsontext.Value) bool { return raw.Kind() != '{' && raw.Kind() != '[' }

// isEnum reports whether the target has one of a set of names, which a number or a boolean
// can't be.
func isEnum(target reflect.Value) bool {
	t := target.Type()
	return t.Kind() == reflect.String && t.PkgPath() != "" && t.NumMethod() == 0
}

// together are the options for a value that is left out if any part of it can't be read.
var together = json.JoinOptions(jsonread.Lenient, json.WithUnmarshalers(json.UnmarshalFromFunc(part)))

func part(dec *jsontext.Decoder, v any) error {
	target := reflect.ValueOf(v).Elem()
	if fits(dec.PeekKind(), target) {
		return errors.ErrUnsupported
	}
	raw, err := dec.ReadValue()
	if err != nil || convertLeniently(raw, target) {
		return err
	}
	return wrongType(dec, raw, target)
}

// convertLeniently converts a value if nothing is lost.
func convertLeniently(raw jsontext.Value, target reflect.Value) bool {
	return empty(raw) || isScalar(raw) && !isEnum(target) && convert(raw, target)
}

// convertStrictly converts a value only if it can mean nothing else: a number that is an
// identifier, a text that is exactly an integer. "" is null.
func convertStrictly(raw jsontext.Value, target reflect.Value) bool {
	switch kind := target.Kind(); {
	case string(raw) == `""`, !isScalar(raw) && kind != reflect.String && kind != reflect.Int && kind != reflect.Int64 && empty(raw):
		return true
	case kind == reflect.String:
		_, integer := jsonread.PlainInteger(string(raw))
		return raw.Kind() == '0' && integer && convert(raw, target)
	default:
		return (raw.Kind() == '0' || raw.Kind() == '"') && convert(raw, target)
	}
}

func wrongType(dec *jsontext.Decoder, raw jsontext.Value, target reflect.Value) error {
	return &json.SemanticError{
		ByteOffset: dec.InputOffset() - int64(len(raw)), JSONPointer: dec.StackPointer(), JSONKind: raw.Kind(), GoType: target.Type(),
	}
}

// scalar is called for every value of the second attempt to decode a body.
func scalar(dec *jsontext.Decoder, v any) error {
	target := reflect.ValueOf(v).Elem()
	if !fits(dec.PeekKind(), target) {
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if empty(raw) || convert(bytes.TrimSpace(raw), target) {
			return nil
		}
		return wrongType(dec, raw, target)
	}
	return errors.ErrUnsupported
}

// fits reports whether a value of kind k can be decoded into the target without
// a conversion.
func fits(k jsontext.Kind, target reflect.Value) bool {
	if k == 'n' || k == 0 {
		return true
	}
	if _, own := target.Addr().Interface().(json.Unmarshaler); own {
		return true
	}
	if _, own := target.Addr().Interface().(json.UnmarshalerFrom); own {
		return true
	}
	switch target.Kind() {
	case reflect.String:
		return k == '"'
	case reflect.Bool:
		return k == 't' || k == 'f'
	case reflect.Int, reflect.Int64:
		return false // also 1200.0
	case reflect.Float64:
		return k == '0'
	case reflect.Struct, reflect.Map:
		return k == '{'
	case reflect.Pointer:
		return target.Type().Elem().Kind() != reflect.Struct || k == '{'
	case reflect.Slice:
		return k == '['
	default:
		return true
	}
}

func empty(raw jsontext.Value) bool {
	switch string(raw) {
	case `""`, `[]`, `{}`:
		return true
	}
	return false
}

// convert stores the string or number in raw in a target of another type.
func convert(raw jsontext.Value, target reflect.Value) bool {
	text := string(raw)
	if raw.Kind() == '"' {
		unquoted, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return false
		}
		text = string(unquoted)
	}
	switch target.Kind() {
	case reflect.String: // also an object, as its JSON
		target.SetString(text)
		return true
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		target.SetBool(b)
		return err == nil
	case reflect.Int, reflect.Int64:
		n, ok := jsonread.Integer(text)
		target.SetInt(n)
		return ok
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		target.SetFloat(f)
		return err == nil
	case reflect.Pointer: // to a struct whose own UnmarshalJSON may read other kinds, such as a time
		v := reflect.New(target.Type().Elem())
		own, ok := v.Interface().(json.Unmarshaler)
		if !ok || own.UnmarshalJSON(raw) != nil {
			return false
		}
		target.Set(v)
		return true
	default:
		return false
	}
}
