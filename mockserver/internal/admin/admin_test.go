package admin_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
)

// The guide's table has a line for each call, and no other.
func TestTheGuideHasEachCall(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/mockgateway.md")
	require.NoError(t, err)
	var shown []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /__mock/[^`]*)` \\|").FindAllStringSubmatch(string(guide), -1) {
		shown = append(shown, row[1])
	}
	assert.ElementsMatch(t, admin.Calls(), shown)
}
