// Package masking decides which parts of requests and responses must not be shown:
// credentials, tokens, documents, Pix keys and card data.
package masking

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/spec"
)

// Masked replaces a value that must not be shown.
const Masked = "***"

// Header reports whether a header contains a credential.
func Header(name string) bool {
	switch strings.ToLower(name) {
	case "authorization", "proxy-authorization", "apikey", "x-checkout-session-token", "cookie", "set-cookie":
		return true
	}
	return false
}

// Parameter reports whether the value of a query parameter must be masked.
func Parameter(name string) bool {
	if Personal(name) {
		return true
	}
	switch name {
	case "documentNumber", "document_number", "search", "token", "apiKey", "api_key":
		return true
	}
	return false
}

// Member reports whether a value must be masked. The path has the names of the
// members that contain it, the innermost last.
func Member(path []string, t jsontext.Token) bool {
	if kind := t.Kind(); kind != '"' && kind != '0' || len(path) == 0 {
		return false
	}
	name := path[len(path)-1]
	switch name {
	case "token", "session_token", "client_secret", "secret", "password", "apiKey", "api_key",
		"document", "documentNumber", "document_number", "pix_key", "pix_key_value", "pixKey":
		return true
	case "number":
		if len(path) > 1 && path[len(path)-2] == "document" {
			return true
		}
	}
	return slices.ContainsFunc(path, spec.IsCardObject) || spec.CardData(name, t.Kind(), t.String())
}

// Token returns the value of a member as it may be shown.
func Token(path []string, t jsontext.Token) jsontext.Token {
	switch kind := t.Kind(); {
	case kind != '"' && kind != '0':
		return t
	case Member(path, t) || isPersonal(path):
		return jsontext.String(Masked)
	case kind == '"':
		return jsontext.String(free(path, t.String()))
	default:
		return t
	}
}

// Rewrite copies JSON text, replaces values with change and masks card numbers in
// member names.
func Rewrite(text []byte, change func(path []string, t jsontext.Token) jsontext.Token) (string, error) {
	r := jsonread.Rewriter{
		Name: spec.MaskCardNumbers,
		Value: func(out *jsontext.Encoder, path []string, t jsontext.Token) error {
			return out.WriteToken(change(path, t))
		},
	}
	masked, err := r.Rewrite(text)
	return string(masked), err
}
