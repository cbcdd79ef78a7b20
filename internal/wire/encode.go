package wire

import (
	"errors"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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
