package spec

import (
	"fmt"
	"strings"
)

// MinSigningKey is the minimum length of a webhook signing key in bytes.
const MinSigningKey = 8

// SigningKeyProblem returns what is wrong with a webhook signing key, or "". The receiver
// rejects such a key, so the mock doesn't sign with it. The text has no part of the key.
func SigningKeyProblem(key string) string {
	switch {
	case key == "":
		return "is empty: is its environment variable set?"
	case strings.TrimSpace(key) != key:
		return "begins or ends with white space: was it read from a file?"
	case Quoted(key):
		return "is in quotes: they are not part of the secret, so remove them from the file or variable"
	case len(key) < MinSigningKey:
		return fmt.Sprintf("has %d characters; a signing key has at least %d: is it the secret of the endpoint?", len(key), MinSigningKey)
	}
	return ""
}

// Quoted reports whether s was copied together with the quotes around it.
func Quoted(s string) bool {
	for _, quotes := range []string{`" "`, `' '`, "` `", "“ ”", "‘ ’"} {
		first, last, _ := strings.Cut(quotes, " ")
		if len(s) > len(first) && strings.HasPrefix(s, first) && strings.HasSuffix(s, last) {
			return true
		}
	}
	return false
}
