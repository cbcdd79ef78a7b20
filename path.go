package gateway

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/gateway-go/gateway/internal/rules"
)

// resolve returns the URL of op with args in the place of its placeholders.
func (c *Client) resolve(op *operation, args []string, query url.Values) (*url.URL, error) {
	u := *c.base
	u.RawQuery = query.Encode()
	if len(args) == 0 {
		u.Path += op.Path
		if u.RawPath != "" {
			u.RawPath += op.Path
		}
		return &u, nil
	}
	var plain, escaped strings.Builder
	rest := op.Path
	for _, arg := range args {
		before, after, _ := strings.Cut(rest, "{")
		name, after, _ := strings.Cut(after, "}")
		if err := checkPathElement(op.Name, name, arg); err != nil {
			return nil, err
		}
		plain.WriteString(before + arg)
		escaped.WriteString(before + url.PathEscape(arg))
		rest = after
	}
	u.RawPath = c.base.EscapedPath() + escaped.String() + rest
	u.Path += plain.String() + rest
	return &u, nil
}

// checkPathElement refuses what would name another endpoint than meant, such
// as "" or "..", before anything is sent.
func checkPathElement(op, name, value string) error {
	refuse := func(code, format string, args ...any) error {
		return &ValidationError{Op: op, Fields: []FieldError{{Field: name, Message: fmt.Sprintf(format, args...), Code: code}}}
	}
	switch {
	case strings.TrimSpace(value) == "":
		return refuse(rules.CodeRequired, "is required: pass the %s as the gateway answered it", name)
	case value == "." || value == "..":
		return refuse(rules.CodeInvalid, "must not be a relative path: pass the %s as the gateway answered it", name)
	case strings.ContainsAny(value, `/\`) || !printable(value):
		return refuse(rules.CodeInvalid, "must not hold slashes or control characters: pass the %s alone, not a path", name)
	}
	if name != "slug" {
		return nil
	}
	switch n := utf8.RuneCountInString(value); {
	case n < rules.MinSlug:
		return refuse(rules.CodeTooSmall, "must have at least %d characters", rules.MinSlug)
	case n > rules.MaxSlug:
		return refuse(rules.CodeTooBig, "must have at most %d characters", rules.MaxSlug)
	}
	return nil
}

func printable(s string) bool {
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// rawURL returns the URL of a path that the caller escaped.
func (c *Client) rawURL(path string, query url.Values) (*url.URL, error) {
	plain, err := url.PathUnescape(path)
	switch {
	case err != nil || !strings.HasPrefix(path, "/"):
		return nil, fmt.Errorf("gateway: the path %q must start with a slash and be escaped", path)
	case strings.ContainsAny(path, "?#"):
		return nil, fmt.Errorf("gateway: the path %q must have no query: pass it as in, or with Query", path)
	}
	for element := range strings.SplitSeq(plain, "/") {
		if element == "." || element == ".." {
			return nil, fmt.Errorf("gateway: the path %q must not be relative", path)
		}
	}
	u := *c.base
	u.RawQuery = query.Encode()
	u.RawPath = c.base.EscapedPath() + path
	u.Path += plain
	return &u, nil
}
