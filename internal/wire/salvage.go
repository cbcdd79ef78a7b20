package wire

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// Salvage reads the id and the status of a resource from an answer that could
// not be decoded, however little of it came: of "data", else of the body
// itself. Both are "" where there is none.
func Salvage(body []byte) (id, status string) {
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsonread.Lenient)
	var s salvage
	s.object(dec, 0)
	return s.id, s.status
}

type salvage struct{ id, status string }

// object reads members until the text ends; the first id and status are kept.
func (s *salvage) object(dec *jsontext.Decoder, depth int) {
	if dec.PeekKind() != '{' {
		return
	}
	if _, err := dec.ReadToken(); err != nil {
		return
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return
		}
		member := name.String()
		if dec.PeekKind() == '{' && depth < 2 && wraps(member) {
			s.object(dec, depth+1)
			continue
		}
		value, err := dec.ReadValue()
		if err != nil {
			return
		}
		s.keep(member, value)
	}
	_, _ = dec.ReadToken()
}

// wraps reports whether a member's object holds the resource.
func wraps(member string) bool {
	return member == "data" || member == "transaction" || member == "object"
}

func (s *salvage) keep(member string, value jsontext.Value) {
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
	case (member == "id" || member == "transactionId") && s.id == "": // v1 calls it transactionId
		s.id = text
	case member == "status" && s.status == "":
		s.status = text
	}
}
