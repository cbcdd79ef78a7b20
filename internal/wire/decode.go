// Package wire reads and writes the JSON of the interface: the envelope, both list
// shapes, every error body, and values of other types than the interface defines.
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

// converting also reads values of another type than wanted.
var converting = json.JoinOptions(jsonread.Lenient, json.WithUnmarshalers(json.UnmarshalFromFunc(scalar)))

// Decode reads a response into v. If a value has another type than v wants, it
// converts what can be converted without loss: numbers, booleans and strings into
// each other, empty strings, arrays and objects into null.
func Decode[T any](body []byte, v *T) error {
	fresh := func() {
		var zero T
		*v = zero
	}
	fresh()
	if jsonread.Decode(body, v) {
		return nil
	}
	return decode(body, v, fresh)
}

// DecodeAny reads a body into the value that out points to, as Decode does.
func DecodeAny(body []byte, out any) error { return decode(body, out, func() {}) }

func decode(body []byte, v any, fresh func()) error {
	fresh()
	err := json.Unmarshal(body, v, jsonread.Lenient)
	var wrongType *json.SemanticError
	if err == nil || !errors.As(err, &wrongType) {
		return err
	}
	fresh()
	return json.Unmarshal(body, v, converting)
}

// DescribeError describes the error in a response and its position, without
// any of its text.
func DescribeError(err error) error {
	var wrongType *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, ErrNoData):
		return ErrNoData
	case errors.As(err, &wrongType):
		return fmt.Errorf("%s has an unexpected type (%s)", place(wrongType.JSONPointer, wrongType.ByteOffset), jsonread.KindName(wrongType.JSONKind))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s is not complete JSON", place(syntax.JSONPointer, syntax.ByteOffset))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the response is not complete JSON")
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

// scalar is called for every value of the second decoding.
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

// fits reports whether a value of kind k matches the target, so that the usual
// decoding works.
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
	case reflect.Pointer: // to a struct with its own methods: those decide
		_, own := reflect.New(target.Type().Elem()).Interface().(json.Unmarshaler)
		return own || target.Type().Elem().Kind() != reflect.Struct || k == '{'
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
	default:
		return false
	}
}
