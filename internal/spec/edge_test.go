package spec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/internal/spec"
)

// edge is a limit: the last value that is allowed and the first that is
// rejected, as JSON, and the code of the violation. The value missing removes
// the member.
type edge struct {
	field    string // "products[0].name"
	allowed  string
	rejected string
	code     string
}

const missing = golden.Missing

// checkEdges tries each edge in an otherwise valid body.
func checkEdges(t *testing.T, rule spec.Rule, base string, edges []edge) {
	t.Helper()
	require.Empty(t, check(t, base, rule), "the base body must be valid")
	for _, e := range edges {
		t.Run(e.field+" "+e.code+" "+shorten(e.rejected), func(t *testing.T) {
			t.Parallel()
			assert.Empty(t, check(t, edit(t, base, e.field, e.allowed), rule), "allowed: %s", shorten(e.allowed))
			found := check(t, edit(t, base, e.field, e.rejected), rule)
			require.Len(t, found, 1, "rejected: %s", shorten(e.rejected))
			assert.Equal(t, e.field, found[0].Field)
			assert.Equal(t, e.code, found[0].Code)
			assert.NotEmpty(t, found[0].Message)
		})
	}
}

func check(t *testing.T, body string, rule spec.Rule) []spec.Violation {
	t.Helper()
	found, err := spec.Check([]byte(body), rule, spec.Variant{})
	require.NoError(t, err)
	return found
}

// edit returns body with the member at path set to the JSON in value.
func edit(t *testing.T, body, path, value string) string {
	t.Helper()
	return golden.Edit(t, body, path, value)
}

// text returns the JSON of a string of n two-byte characters, so that a limit
// on bytes instead of characters fails.
func text(n int) string { return `"` + strings.Repeat("é", n) + `"` }

// list returns the JSON of an array of n elements.
func list(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

func shorten(s string) string {
	if len(s) > 30 {
		return s[:30] + "…"
	}
	return s
}
