package wire

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// FromGateway reports whether an error body has one of the gateway's formats: a
// JSON object with a member of a problem, a coded error or an envelope. A page of a
// proxy, a firewall or an ingress has none. A single "message" is what several
// proxies send. The body may be truncated after the member.
func FromGateway(body []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsonread.Lenient)
	if dec.PeekKind() != '{' {
		return false
	}
	found := false
	eachMember(dec, func(name string) bool {
		known := dec.PeekKind() != 'n'
		_, err := dec.ReadValue()
		switch name {
		case "type", "title", "status", "detail", "instance", "errors", "validation_errors", "code", "error", "success", "requestId", "data":
			found = known // even if its value is cut off
		}
		return err == nil && !found
	})
	return found
}

// InProgress reports whether a 409 says that a request with the same idempotency
// key has not ended: it may still be applied, so the conflict is no rejection.
// Codes are spelled in either case, and some gateways only have a text.
func (p *Problem) InProgress() bool {
	said := words(p.Code + " " + p.Title + " " + p.Detail + " " + p.Type)
	if !contains(said, "idempoten") {
		return contains(said, "request in progress", "concurrent request")
	}
	return contains(said, "in use", "in progress", "locked", "concurrent", "processing", "being processed", "pending")
}

// Failure reports whether a problem's code says that the gateway failed.
func (p *Problem) Failure() bool {
	return contains(words(p.Code), "internal", "server error", "unavailable", "timeout", "timed out", "bad gateway", "unknown error")
}

// words returns a code or a text in lower case, with spaces between its words.
func words(s string) string {
	return strings.NewReplacer("_", " ", "-", " ").Replace(strings.ToLower(s))
}

func contains(s string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}
