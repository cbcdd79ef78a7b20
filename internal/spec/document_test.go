package spec_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		``:                                     "the body is empty at byte 0",
		`null`:                                 "the body must be a JSON object, not null at byte 0",
		`[]`:                                   "the body must be a JSON object, not an array at byte 0",
		`"x"`:                                  "the body must be a JSON object, not a string at byte 0",
		`true`:                                 "the body must be a JSON object, not a boolean at byte 0",
		`7`:                                    "the body must be a JSON object, not a number at byte 0",
		`{`:                                    "unexpected end of JSON at byte 1",
		`{"a":1`:                               "unexpected end of JSON at byte 6",
		`{"a":1,}`:                             "malformed JSON at byte 6",
		`{"a":1}x`:                             "malformed JSON at byte 7",
		`{"a":1}{}`:                            "unexpected text after the JSON object at byte 7",
		`{"a":01}`:                             "malformed JSON at byte 6",
		`{a:1}`:                                "malformed JSON at byte 1",
		`{"products":[{"name":"x","name":1}]}`: "duplicate field at byte 25 in products[0].name",
		`{"amount":1,"am\u006funt":2}`:         "duplicate field at byte 12 in amount",
	} {
		_, err := spec.Check([]byte(body), spec.Refund, spec.Variant{})
		var syntax *spec.SyntaxError
		require.ErrorAs(t, err, &syntax, body)
		assert.Equal(t, want, err.Error(), body)
	}
}

// A syntax error does not quote the body, because the malformed text may be a
// card number.
func TestASyntaxErrorDoesNotQuoteTheBody(t *testing.T) {
	t.Parallel()
	_, err := spec.Check([]byte(`{"amount": 4111111111111111x}`), spec.Refund, spec.Variant{})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "4111")
}

func TestUnusualButValidJSONIsAccepted(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	var many strings.Builder
	for i := range 200 {
		fmt.Fprintf(&many, `"m%d":%d,`, i, i)
	}
	for _, body := range []string{
		`{"am\u006funt":0}`, `{"reason":"\ud83d\ude00","amount":0}`, `{"deep":` + deep + `,"amount":0}`, "\t{ \"amount\" : 0 }\r\n",
		`{` + many.String() + `"amount":0}`,
	} {
		found := check(t, body, spec.Refund)
		if assert.Len(t, found, 1, shorten(body)) {
			assert.Equal(t, "amount", found[0].Field)
			assert.Equal(t, spec.CodeTooSmall, found[0].Code)
		}
	}
}

// FuzzCheck verifies that any body is either checked or rejected with a syntax
// error.
func FuzzCheck(f *testing.F) {
	for _, body := range []string{transactionBase, `{}`, `{"a":1,"a":2}`, `{"a":tru}`, `{"a":{}}x`, `[]`, "{\"a\":\"\xff\"}"} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_, err := spec.Check(body, spec.Transaction, spec.Variant{})
		if _, isSyntax := errors.AsType[*spec.SyntaxError](err); err != nil && !isSyntax {
			t.Errorf("%T for %q", err, body)
		}
	})
}
