package truncate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/internal/truncate"
)

func TestTextCutsBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"abc", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc"},
		{"ação", 4, "aç"},    // "ã" begins at 3 and ends at 5
		{"ação", 5, "açã"},   // ends exactly at the limit
		{"a😀b", 4, "a"},      // a character of four bytes
		{"a\xffb", 9, "a�b"}, // an invalid byte becomes three
		{"ab\xff", 3, "ab"},
	} {
		assert.Equal(t, c.want, truncate.Text(c.text, c.limit), "%q, %d", c.text, c.limit)
	}
}

func TestEllipsisMarksWhatIsMissing(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "abc", truncate.Ellipsis("abc", 3))
	assert.Equal(t, "aç…", truncate.Ellipsis("ação", 4))
	assert.Equal(t, "�…", truncate.Ellipsis("\xffabc", 3))
}

// A run of invalid bytes becomes one character, single ones three bytes each.
func FuzzText(f *testing.F) {
	f.Add("ação", 4)
	f.Add(strings.Repeat("\xffa", 20), 16)
	f.Add("😀😀", 5)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		short := truncate.Text(s, limit)

		assert.True(t, utf8.ValidString(short))
		assert.LessOrEqual(t, len(short), limit)
		if utf8.ValidString(s) {
			assert.True(t, strings.HasPrefix(s, short))
			assert.Greater(t, len(short)+utf8.UTFMax, min(len(s), limit), "not shorter than it must be")
		}
	})
}
