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
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
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
		return &json.SemanticError{
			ByteOffset: dec.InputOffset() - int64(len(raw)), JSONPointer: dec.StackPointer(), JSONKind: raw.Kind(), GoType: target.Type(),
		}
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
