package deliver

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/webhook"
)

// headers returns the names of the signature headers for an endpoint: its own, or
// the server's, or the default ones.
func (s *Sender) headers(e Endpoint) webhook.HeaderNames {
	return webhook.HeaderNames{
		Timestamp: cmp.Or(e.Headers.Timestamp, s.cfg.Headers.Timestamp, webhook.DefaultTimestampHeader),
		Signature: cmp.Or(e.Headers.Signature, s.cfg.Headers.Signature, webhook.DefaultSignatureHeader),
	}
}

// CheckHeaders validates the names of the signature headers. An empty name means the
// default.
func CheckHeaders(names webhook.HeaderNames) error {
	timestamp := cmp.Or(names.Timestamp, webhook.DefaultTimestampHeader)
	signature := cmp.Or(names.Signature, webhook.DefaultSignatureHeader)
	for _, name := range []string{timestamp, signature} {
		if !isToken(name) {
			return fmt.Errorf("the header name %q must be letters, digits, - and _, such as X-Signature", name)
		}
		// Headers that HTTP itself uses can't carry a signature.
		if slices.Contains([]string{"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "User-Agent"},
			http.CanonicalHeaderKey(name)) {
			return fmt.Errorf("the header %s can't carry a signature: choose another name", name)
		}
	}
	if strings.EqualFold(timestamp, signature) {
		return fmt.Errorf("the timestamp and the signature can't both be in the header %s", signature)
	}
	return nil
}

// isToken reports whether name has only characters that are common in header names.
// HTTP allows more.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
}
