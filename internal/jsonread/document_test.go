package jsonread_test

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/internal/jsonread"
)

// FuzzDocument checks that for every body that the fast scan accepts, it returns
// what the JSON package returns.
func FuzzDocument(f *testing.F) {
	for _, body := range []string{
		string(golden.Read(f, "transactions/create.request.json")), `{}`, `{"a":"\u00e9\"\\"}`, `{"a":"\ud800"}`, `{"a":-0.5e+10,"b":[true,false,null,{}]}`, `{"a":1,"a":2}`, `{"":0,"":1}`,
		`{"a":01}`, `{"a":1.}`, `{"a":-}`, "{\"a\":\"\xff\"}", "{\"a\":\"\x01\"}", `{"a":[1,]}`, `{"a" 1}`, `{"a":tru}`, "\ufeff{}", `{"a":{}}x`, `[]`,
		`{"ab":1,"ba":2,"aab":3}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, scanned, want, err := jsonread.BothReadings(body)
		if scanned {
			require.NoError(t, err, "%q", body)
			assert.Equal(t, want, got, "%q", body)
		}
		if _, isSyntax := errors.AsType[*jsonread.SyntaxError](err); err != nil && !isSyntax {
			t.Errorf("%T for %q", err, body)
		}
	})
}

// FuzzAppendQuote checks that strings are quoted as the JSON package quotes them.
func FuzzAppendQuote(f *testing.F) {
	for _, s := range []string{"", "Maria", "São Paulo", `a "quoted" \ name`, "12345678", "1234567\n", "\x7f<&>\u2028", "\xff", "exactly sixteen!\x1f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, wantErr := jsontext.AppendQuote([]byte("x"), s)
		got, err := jsonread.AppendQuote([]byte("x"), s)
		assert.Equal(t, wantErr, err)
		assert.Equal(t, string(want), string(got))
	})
}

// The bytes that end the plain part of a string are found wherever they are, and
// whatever follows them.
func TestPlainPrefixStopsAtTheFirstSpecialByte(t *testing.T) {
	t.Parallel()
	special := func(c byte) bool { return c == '"' || c == '\\' || c < ' ' || c >= 0x80 }
	text := []byte("aaaaaaaaaaa")
	for first := range 256 {
		for second := range 256 {
			for at := range 8 {
				text[at], text[at+1] = byte(first), byte(second)
				want := len(text)
				for i, c := range text {
					if special(c) {
						want = i
						break
					}
				}
				if got := jsonread.PlainPrefix(text, 0); got != want {
					t.Fatalf("%q: %d instead of %d", text, got, want)
				}
				text[at], text[at+1] = 'a', 'a'
			}
		}
	}
}
