package admin_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
)

// The guide's table has a line for each call, with what it does and how curl
// sends it, and no other.
func TestTheGuideHasEachCall(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/mockgateway.md")
	require.NoError(t, err)
	var shown []string
	row := regexp.MustCompile("(?m)^\\| `([A-Z]+ /__mock/[^`]*)` \\| [^|]+ \\| `curl [^`]*\\$GW/__mock/[^`]+` \\|$")
	for _, row := range row.FindAllStringSubmatch(string(guide), -1) {
		shown = append(shown, row[1])
	}
	assert.ElementsMatch(t, admin.Calls(), shown)
}
