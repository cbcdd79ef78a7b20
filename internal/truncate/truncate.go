// Package truncate limits the length of texts that others sent: of error bodies,
// log attributes and stored reasons.
package truncate

import (
	"strings"
	"unicode/utf8"
)

// Text returns the start of a text: valid UTF-8 of at most limit bytes, in which
// U+FFFD replaces invalid bytes. No character is cut in half.
func Text(s string, limit int) string {
	s = strings.ToValidUTF8(s[:min(len(s), limit+utf8.UTFMax)], "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Ellipsis is Text, followed by "…" if something is missing.
func Ellipsis(s string, limit int) string {
	if short := Text(s, limit); len(s) > limit {
		return short + "…"
	}
	return Text(s, limit)
}
