package transport

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// Secrets are the credentials of an attempt, as headers, so that they can be
// removed from errors and logs.
type Secrets [4][]string

// hidden replaces a credential or a part of one.
const hidden = "[redacted]"

// learn remembers the credentials in h. It does not copy them, because most
// calls succeed and never need them.
func (s *Secrets) learn(h http.Header) {
	*s = Secrets{h["Authorization"], h["Apikey"], h["X-Checkout-Session-Token"], h["Proxy-Authorization"]}
}

// Hide replaces every credential in text, and every part of one, plain or in
// base64.
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

// shortest is the minimum length of a credential to search for: a password
// such as "x" would match almost any text.
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

// HideErr returns err or, if its text contains a credential or a URL with a path
// or query, an error with a redacted text that wraps err.
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

// Error returns the redacted text.
func (e *cleanError) Error() string { return e.text }

// Format writes the text for every verb, so that no verb prints the original
// error.
func (e *cleanError) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(e.text)) }

// Unwrap returns the original error, for errors.Is and errors.As.
func (e *cleanError) Unwrap() error { return e.err }

// withoutURLs truncates the URLs in a text after the host: paths contain ids,
// queries contain names and documents.
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
