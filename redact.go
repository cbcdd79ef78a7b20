package gateway

import (
	"strings"
	"unicode"

	"github.com/gateway-go/gateway/internal/transport"
)

// oneLine makes a text fit for one line of a log.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// mask takes keys, card tokens, and numbers long enough to be a document or a
// card out of a text that someone else wrote.
func mask(s string) string {
	for _, prefix := range [...]string{"sk_test_", "sk_live_", "pk_test_", "pk_live_", "pgct_", "pgpm_"} {
		s = maskAfter(s, prefix)
	}
	return maskNumbers(s)
}

// maskAfter masks the letters and digits that follow each prefix.
func maskAfter(s, prefix string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, prefix)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString(prefix + "…")
		s = strings.TrimLeftFunc(after, func(r rune) bool {
			return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)
		})
	}
}

// maskNumbers masks runs of 11 digits and more, also written as 000.000.000-00
// or in groups. A UUID, whose groups hold letters, stays.
func maskNumbers(s string) string {
	const shortest = 11 // a CPF
	var b strings.Builder
	for i := 0; i < len(s); {
		end, digits := number(s[i:])
		word := i > 0 && isWord(s[i-1]) || i+end < len(s) && isWord(s[i+end])
		if digits >= shortest && !word {
			b.WriteString("***")
		} else {
			b.WriteString(s[i : i+max(end, 1)])
		}
		i += max(end, 1)
	}
	return b.String()
}

// number returns the length of the digits and separators that s starts with,
// and how many digits they are.
func number(s string) (end, digits int) {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			end, digits = i+1, digits+1
		case digits > 0 && (c == '.' || c == '-' || c == '/' || c == ' ') && i == end:
		default:
			return end, digits
		}
	}
	return end, digits
}

func isWord(c byte) bool {
	return c == '_' || c == '-' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// concealed returns a copy of a response's body without the credentials of the
// request. They are taken out before any text is cut, so that no half of one
// stays at its end.
func concealed(res *transport.Result) []byte { return []byte(res.Secrets.Hide(string(res.Body))) }

// conceal takes the credentials of the request out of e: a gateway, or a proxy,
// may repeat a header in what it returns.
func (e *Error) conceal(secrets *transport.Secrets) {
	texts := []*string{&e.Type, &e.Title, &e.Detail, &e.Instance, &e.Code, &e.RequestID}
	for i := range e.Fields {
		f := &e.Fields[i]
		texts = append(texts, &f.Field, &f.Message, &f.Code)
	}
	for _, text := range texts {
		*text = secrets.Hide(*text)
	}
	for name, values := range e.Header {
		shown := make([]string, len(values))
		for i, value := range values {
			shown[i] = secrets.Hide(value)
		}
		e.Header[name] = shown
	}
	e.Err = secrets.HideErr(e.Err)
}
