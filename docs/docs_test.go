package docs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/docs"
)

func TestAssumptions(t *testing.T) {
	t.Parallel()
	list := docs.Assumptions()
	seen := make(map[string]bool)
	for _, a := range list {
		assert.NotEmpty(t, a.ID)
		assert.NotEmpty(t, a.Text, a.ID)
		assert.NotEmpty(t, a.Knob, a.ID)
		assert.True(t, strings.HasSuffix(a.Text, "."), "%s: a sentence ends in a point", a.ID)
		assert.False(t, seen[a.ID], "%s stands twice", a.ID)
		seen[a.ID] = true
	}
	for _, id := range []string{"D1", "D14", "pix-life", "delivery-schedule"} {
		assert.True(t, seen[id], id)
	}
}

// Every row of a table is an assumption: none is lost to a stray bar in its
// text.
func TestNoRowIsLost(t *testing.T) {
	t.Parallel()
	rows := 0
	for line := range strings.SplitSeq(docs.Markdown(), "\n") {
		if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|---") && !strings.HasPrefix(line, "| id |") {
			rows++
		}
	}
	require.Positive(t, rows)
	assert.Len(t, docs.Assumptions(), rows)
}
