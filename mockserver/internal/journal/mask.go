package journal

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/spec"
)

const masked = "***"

// mask hides what must not be seen of one request: some members and headers by
// their names, and then their values wherever else they turn up.
type mask struct {
	keys    *regexp.Regexp
	secrets []string
}

// shortest is how long a value must be to be looked for elsewhere: "x" is in
// every text.
const shortest = 6

// maskFor learns what must be hidden of a request.
func maskFor(rec *record, keys *regexp.Regexp) *mask {
	m := &mask{keys: keys}
	for name, values := range rec.request.Header {
		if secretHeader(name) {
			for _, v := range values {
				m.credential(v)
			}
		}
	}
	for name, values := range rec.request.URL.Query() {
		if secretParameter(name) {
			m.add(values...)
		}
	}
	for _, c := range []*capture{&rec.body, &rec.response} {
		_, _ = rewrite(c.kept, func(path []string, t jsontext.Token) jsontext.Token {
			if secretMember(path, t) {
				m.add(t.String())
			}
			return t
		})
	}
	// The longest first, so that no secret is left in part.
	slices.SortFunc(m.secrets, func(a, b string) int { return len(b) - len(a) })
	return m
}

func (m *mask) add(secrets ...string) {
	for _, s := range secrets {
		if len(s) < shortest {
			continue
		}
		m.secrets = append(m.secrets, s, url.QueryEscape(s), url.PathEscape(s))
		if digits := spec.OnlyDigits(s); digits != s && len(digits) >= shortest {
			m.secrets = append(m.secrets, digits)
		}
	}
}

// credential learns the key in an Authorization header, in clear and in
// base64.
func (m *mask) credential(value string) {
	m.add(value)
	scheme, text, found := strings.Cut(value, " ")
	if !found {
		return
	}
	m.add(strings.TrimSpace(text))
	if strings.EqualFold(scheme, "Basic") {
		if b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil {
			user, password, _ := strings.Cut(string(b), ":")
			m.add(string(b), user, password)
		}
	}
}

// text hides the secrets in any text.
func (m *mask) text(s string) string {
	for _, secret := range m.secrets {
		s = strings.ReplaceAll(s, secret, masked)
	}
	return m.keys.ReplaceAllString(s, "$1"+masked)
}

// path shows a path as it was escaped, unless it holds a card number.
func (m *mask) path(u *url.URL) string {
	if spec.HoldsCardNumber(u.Path) {
		return m.text(spec.MaskCardNumbers(u.Path))
	}
	return m.text(u.EscapedPath())
}

func (m *mask) query(raw string) string {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return "(malformed)"
	}
	shown := make(url.Values, len(q))
	for name, values := range q {
		for _, v := range values {
			if secretParameter(name) || spec.CardData(name, '"', v) {
				v = masked
			}
			name := spec.MaskCardNumbers(name)
			shown[name] = append(shown[name], spec.MaskCardNumbers(v))
		}
	}
	return m.text(strings.ReplaceAll(shown.Encode(), url.QueryEscape(masked), masked))
}

func (m *mask) header(h http.Header) http.Header {
	shown := make(http.Header, len(h))
	for name, values := range h {
		for _, v := range values {
			shown[name] = append(shown[name], m.value(name, v))
		}
	}
	return shown
}

// value shows a header's value; of a credential only its scheme.
func (m *mask) value(name, v string) string {
	if !secretHeader(name) {
		return m.text(spec.MaskCardNumbers(v))
	}
	if scheme, _, found := strings.Cut(v, " "); found && (strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Basic")) {
		return scheme + " " + masked
	}
	return masked
}

// body shows a body that is JSON. Nothing else can be masked for sure.
func (m *mask) body(c *capture) string {
	if c.size == 0 {
		return ""
	}
	shown, err := rewrite(c.kept, func(path []string, t jsontext.Token) jsontext.Token {
		if secretMember(path, t) {
			return jsontext.String(masked)
		}
		return t
	})
	switch {
	case !c.whole():
		return fmt.Sprintf("(%d bytes, too long to be shown)", c.size)
	case err != nil:
		return fmt.Sprintf("(%d bytes that are not JSON)", c.size)
	}
	return m.text(shown)
}

func secretHeader(name string) bool {
	switch strings.ToLower(name) {
	case "authorization", "proxy-authorization", "apikey", "x-checkout-session-token", "cookie", "set-cookie":
		return true
	}
	return false
}

func secretParameter(name string) bool {
	switch name {
	case "documentNumber", "document_number", "search", "token", "apiKey", "api_key":
		return true
	}
	return false
}

// secretMember reports whether a value is to be hidden. The path names the
// members that lead to it, the innermost last.
func secretMember(path []string, t jsontext.Token) bool {
	if kind := t.Kind(); kind != '"' && kind != '0' || len(path) == 0 {
		return false
	}
	name := path[len(path)-1]
	switch name {
	case "token", "session_token", "client_secret", "secret", "password", "apiKey", "api_key",
		"document", "documentNumber", "document_number", "pix_key", "pix_key_value", "pixKey":
		return true
	case "number":
		return len(path) > 1 && path[len(path)-2] == "document"
	}
	return slices.ContainsFunc(path, spec.IsCardObject) || spec.CardData(name, t.Kind(), t.String())
}

// rewrite copies a JSON text with the values that change returns, and with the
// card numbers in its names masked.
func rewrite(text []byte, change func(path []string, t jsontext.Token) jsontext.Token) (string, error) {
	r := jsonread.Rewriter{
		Name: spec.MaskCardNumbers,
		Value: func(out *jsontext.Encoder, path []string, t jsontext.Token) error {
			return out.WriteToken(change(path, t))
		},
	}
	shown, err := r.Rewrite(text)
	return string(shown), err
}
