package wire

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// ExtractIdentity reads the id and the status of a resource from a response that
// could not be decoded, even a truncated one. It looks in "data" and at the top
// level of the body, and returns "" for what it does not find.
func ExtractIdentity(body []byte) (id, status string) {
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsonread.Lenient)
	var found identity
	found.object(dec, 0)
	return found.id, found.status
}

type identity struct{ id, status string }

// object reads members until the input ends or is invalid. The first id and the
// first status are kept.
func (found *identity) object(dec *jsontext.Decoder, depth int) {
	if dec.PeekKind() != '{' {
		return
	}
	eachMember(dec, func(member string) bool {
		if dec.PeekKind() == '{' && depth < 2 && wraps(member) {
			found.object(dec, depth+1)
			return true
		}
		value, err := dec.ReadValue()
		if err == nil {
			found.keep(member, value)
		}
		return err == nil
	})
}

// wraps reports whether a member's object contains the resource.
func wraps(member string) bool {
	return member == "data" || member == "transaction" || member == "object"
}

func (found *identity) keep(member string, value jsontext.Value) {
	var text string
	switch value.Kind() {
	case '"':
		unquoted, _ := jsontext.AppendUnquote(nil, value)
		text = string(unquoted)
	case '0':
		text = string(value)
	default:
		return
	}
	switch {
	case len(text) > 256:
	case (member == "id" || member == "transactionId") && found.id == "": // v1 calls it transactionId
		found.id = text
	case member == "status" && found.status == "":
		found.status = text
	}
}
