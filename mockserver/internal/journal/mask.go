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

	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/spec"
)

// mask hides the secrets of one request and its response: the values of certain
// members and headers, and all other occurrences of these values.
type mask struct {
	keys    *regexp.Regexp
	secrets []string
}

// minLength is the minimum length of a secret to search for elsewhere. Shorter ones,
// such as "x", occur in too many other texts.
const minLength = 6

// maskFor collects the secrets of a request.
func maskFor(rec *record, keys *regexp.Regexp) *mask {
	m := &mask{keys: keys}
	for name, values := range rec.request.Header {
		if masking.Header(name) {
			for _, v := range values {
				m.credential(v)
			}
		}
	}
	for name, values := range rec.request.URL.Query() {
		if masking.Parameter(name) {
			m.add(values...)
		}
	}
	for s := range strings.SplitSeq(rec.request.URL.Path, "/") {
		if masking.Text(s) != s {
			m.add(s) // the response repeats the path
		}
	}
	for _, c := range []*capture{&rec.body, &rec.response} {
		_, _ = masking.Rewrite(c.head, func(path []string, t jsontext.Token) jsontext.Token {
			if k := t.Kind(); (k == '"' || k == '0') && masking.Token(path, t).String() == masking.Masked {
				m.add(t.String())
			}
			return t
		})
	}
	// The longest first, so that no part of a secret remains.
	slices.SortFunc(m.secrets, func(a, b string) int { return len(b) - len(a) })
	return m
}

func (m *mask) add(secrets ...string) {
	for _, s := range secrets {
		if len(s) < minLength {
			continue
		}
		m.secrets = append(m.secrets, s, url.QueryEscape(s), url.PathEscape(s))
		if digits := spec.OnlyDigits(s); digits != s && len(digits) >= minLength {
			m.secrets = append(m.secrets, digits)
		}
	}
}

// credential collects the key in an Authorization header, plain and in base64.
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

// text masks the secrets in any string.
func (m *mask) text(s string) string {
	for _, secret := range m.secrets {
		s = strings.ReplaceAll(s, secret, masking.Masked)
	}
	return m.keys.ReplaceAllString(s, "$1"+masking.Masked)
}

// path returns a path with its original escaping, unless a part of it is masked.
// Each segment is masked by itself: the one before it does not make a card number
// an id, because no id of the interface looks like one.
func (m *mask) path(u *url.URL) string {
	segments := strings.Split(u.Path, "/")
	for i, s := range segments {
		segments[i] = masking.Text(s)
	}
	if shown := strings.Join(segments, "/"); shown != u.Path {
		return m.text(shown)
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
			if masking.Parameter(name) || spec.CardData(name, '"', v) {
				v = masking.Masked
			}
			name := masking.Text(name)
			if !spec.IsIdentifier(name) {
				v = masking.Free(v)
			}
			shown[name] = append(shown[name], v)
		}
	}
	return m.text(strings.ReplaceAll(shown.Encode(), url.QueryEscape(masking.Masked), masking.Masked))
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

// value returns the masked value of a header. A credential keeps only its scheme.
func (m *mask) value(name, v string) string {
	if !masking.Header(name) {
		return m.text(masking.Text(v))
	}
	if scheme, _, found := strings.Cut(v, " "); found && (strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Basic")) {
		return scheme + " " + masking.Masked
	}
	return masking.Masked
}

// body returns a masked JSON body. Other bodies can't be masked reliably.
func (m *mask) body(c *capture) string {
	if c.size == 0 {
		return ""
	}
	shown, err := masking.Rewrite(c.head, masking.Token)
	switch {
	case !c.complete():
		return fmt.Sprintf("(%d bytes, too long to be shown)", c.size)
	case err != nil:
		return fmt.Sprintf("(%d bytes that are not JSON)", c.size)
	}
	return m.text(shown)
}
