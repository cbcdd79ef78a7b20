package docs_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/docs"
)

func TestDifferencesNameExistingRows(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("differences.md")
	require.NoError(t, err)
	rows := make(map[string]bool)
	for _, a := range docs.Assumptions() {
		rows[a.ID] = true
	}
	named := 0
	for _, id := range regexp.MustCompile("`([a-z0-9]+(?:-[a-z0-9]+)+)`|\\b(D\\d+)\\b").FindAllStringSubmatch(string(guide), -1) {
		assert.True(t, rows[id[1]+id[2]], "docs/assumptions.md has no row %q", id[1]+id[2])
		named++
	}
	assert.Greater(t, named, 50)
}
