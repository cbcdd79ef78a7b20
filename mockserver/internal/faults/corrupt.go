package faults

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// UnknownStatus is the status that an unknown-enum fault returns.
const UnknownStatus = "mock_unknown_status"

// ExtraName and ExtraValue are the member that an extra-field fault adds.
const (
	ExtraName  = "mock_extra_field"
	ExtraValue = "a member that no client expects"
)

// unknownEnums replaces every status in a JSON text with an unknown value.
func unknownEnums(body []byte) []byte {
	return rewrite(body, func(out *jsontext.Encoder, name string, t jsontext.Token) error {
		if name == "status" && t.Kind() == '"' {
			t = jsontext.String(UnknownStatus)
		}
		return out.WriteToken(t)
	})
}

// extraFields adds a member to every object of a JSON text, except to metadata, whose
// members are the caller's.
func extraFields(body []byte) []byte {
	return rewrite(body, func(out *jsontext.Encoder, name string, t jsontext.Token) error {
		if err := out.WriteToken(t); err != nil || t.Kind() != '{' || name == "metadata" {
			return err
		}
		return errors.Join(
			out.WriteToken(jsontext.String(ExtraName)),
			out.WriteToken(jsontext.String(ExtraValue)),
		)
	})
}

// rewrite calls write for every token of body, with the name of the member that the
// token belongs to. It returns body unchanged if it is not JSON.
func rewrite(body []byte, write func(out *jsontext.Encoder, name string, t jsontext.Token) error) []byte {
	r := jsonread.Rewriter{Value: func(out *jsontext.Encoder, path []string, t jsontext.Token) error {
		if len(path) == 0 {
			return write(out, "", t)
		}
		return write(out, path[len(path)-1], t)
	}}
	text, err := r.Rewrite(body)
	if err != nil {
		return body
	}
	return text
}
