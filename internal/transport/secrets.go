package transport

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// Secrets are the credentials that an attempt carried, as headers, so that
// whatever repeats them can be kept out of errors and logs.
type Secrets [4][]string

// hidden stands for a credential, or a part of one.
const hidden = "[redacted]"

// learn takes note of what h carries. It copies nothing: most calls succeed.
func (s *Secrets) learn(h http.Header) {
	*s = Secrets{h["Authorization"], h["Apikey"], h["X-Checkout-Session-Token"], h["Proxy-Authorization"]}
}

// Hide replaces every credential in text, whole, in base64 and in its parts.
func (s *Secrets) Hide(text string) string {
	if text == "" {
		return ""
	}
	for _, values := range s {
		for _, value := range values {
			text = hide(text, value)
		}
	}
	return text
}

// shortest is the least length of what is looked for: the password "x" is in
// every text.
const shortest = 4

func hide(text, value string) string {
	parts := []string{value}
	if scheme, credentials, found := strings.Cut(value, " "); found {
		parts = append(parts, credentials)
		if pair, err := base64.StdEncoding.DecodeString(credentials); err == nil && strings.EqualFold(scheme, "Basic") {
			user, password, _ := strings.Cut(string(pair), ":")
			parts = append(parts, string(pair), user, password)
		}
	}
	for _, part := range parts {
		if len(part) < shortest {
			continue
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(part))
		for _, form := range []string{part, encoded, strings.TrimRight(encoded, "=")} {
			text = strings.ReplaceAll(text, form, hidden)
		}
	}
	return text
}

// HideErr returns err, or if its text has a credential or a URL with a path or query,
// an error with a text that has not and the same tree of errors.
func (s *Secrets) HideErr(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	clean := s.Hide(withoutURLs(text))
	if clean == text {
		return err
	}
	return &cleanError{clean, err}
}

type cleanError struct {
	text string
	err  error
}

// Error returns the text without what must not be shown.
func (e *cleanError) Error() string { return e.text }

// Format writes the text whatever the verb, so that no verb prints the error
// behind it.
func (e *cleanError) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(e.text)) }

// Unwrap returns the error as it was, for errors.Is and errors.As.
func (e *cleanError) Unwrap() error { return e.err }

// withoutURLs cuts the URLs in a text after their host: paths have ids, queries
// have names and documents of people.
func withoutURLs(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "://")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("://")
		end := strings.IndexAny(after, " \"'`<>\n\t")
		if end < 0 {
			end = len(after)
		}
		host := after[:end]
		if i := strings.IndexAny(host, "/?#"); i >= 0 {
			host = host[:i] + "/…"
		}
		if i := strings.LastIndexByte(host, '@'); i >= 0 { // a password
			host = host[i+1:]
		}
		b.WriteString(host)
		text = after[end:]
	}
}
