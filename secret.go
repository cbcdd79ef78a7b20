package gateway

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"unique"
	"unsafe"

	"github.com/gateway-go/gateway/internal/masking"
)

// Secret is a string that must never be printed: an API key, a session token, a
// webhook signing secret. [NewSecret] creates one and Reveal returns its text.
// fmt, slog, JSON and reflection-based printers show "[redacted]" or an address,
// even for a Secret in an unexported field of your own struct. == compares the
// strings. The zero Secret is empty.
type Secret struct{ hidden }

const redacted = "[redacted]"

// NewSecret returns the Secret that holds text.
func NewSecret(text string) Secret { return Secret{hide(text)} }

// MarshalText returns the same as String. To send a secret, call Reveal.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON writes "[redacted]", or null for an empty secret.
func (s Secret) MarshalJSON() ([]byte, error) { return s.json(redacted) }

// UnmarshalText makes s the Secret that holds text.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// ClientSecret identifies a challenge to the client-side payment element. It
// encodes to JSON as its text, since it must reach the payer's browser; otherwise
// it is redacted like a [Secret].
type ClientSecret struct{ hidden }

// MarshalJSON writes the text, in a log of log/slog "[redacted]", or null for an
// empty secret.
func (s ClientSecret) MarshalJSON() ([]byte, error) {
	if masking.Logging() {
		return s.json(redacted)
	}
	return s.json(s.Reveal())
}

// hidden is a string that can be compared but not printed. fmt does not call
// methods on unexported fields, and spew (used in testify's diffs) follows
// every typed pointer, but both stop at an unsafe.Pointer. It is a
// unique.Handle[string], so == compares the text.
type hidden struct{ handle unsafe.Pointer }

// Compiles only if a handle is exactly one pointer.
var _ = [1]struct{}{}[unsafe.Sizeof(unique.Handle[string]{})-unsafe.Sizeof(uintptr(0))]

func hide(text string) hidden {
	if text == "" {
		return hidden{}
	}
	handle := unique.Make(text)
	return hidden{*(*unsafe.Pointer)(unsafe.Pointer(&handle))} //nolint:gosec // see hidden
}

// Reveal returns the secret's text, for sending it.
func (h hidden) Reveal() string {
	if h.IsZero() {
		return ""
	}
	return (*unique.Handle[string])(unsafe.Pointer(&h.handle)).Value() //nolint:gosec // see hidden
}

// IsZero reports whether the secret is empty.
func (h hidden) IsZero() bool { return h.handle == nil }

// String returns "[redacted]", or "" for an empty secret.
func (h hidden) String() string {
	if h.IsZero() {
		return ""
	}
	return redacted
}

// GoString returns the same as String.
func (h hidden) GoString() string { return h.String() }

// Format writes the result of String for every verb.
func (h hidden) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(h.String())) }

// LogValue returns the same as String.
func (h hidden) LogValue() slog.Value { return slog.StringValue(h.String()) }

// UnmarshalJSON reads a string. null is the empty secret; any other value is
// kept as JSON text, so that the response can still be decoded.
func (h *hidden) UnmarshalJSON(b []byte) error {
	text := string(b)
	switch text {
	case "null", "[]", "{}":
		text = ""
	}
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	*h = hide(text)
	return nil
}

func (h hidden) json(text string) ([]byte, error) {
	if h.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(text)
}
