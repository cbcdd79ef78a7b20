package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const skill = "docs/skills/gateway-go/SKILL.md"

// The skill's table gives names that exist for names that coding agents invent.
func TestTheNamesInTheSkillExist(t *testing.T) {
	t.Parallel()
	api := exportedAPI(t)
	names := regexp.MustCompile("`((?:gateway|webhook|mockserver)\\.[A-Z][\\w.]*)`")
	for _, row := range tableRows(t, skill, "## Names") {
		require.Len(t, row, 2)
		wrong, right := names.FindAllStringSubmatch(row[0], -1), names.FindAllStringSubmatch(row[1], -1)
		assert.NotEmpty(t, wrong, row)
		assert.NotEmpty(t, right, row)
		for _, name := range wrong {
			assert.NotContains(t, api, name[1])
		}
		for _, name := range right {
			assert.True(t, api[name[1]], "%s is not exported", name[1])
		}
	}
}

// The names in the rest of the skill exist too.
func TestTheSkillUsesExportedNames(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.FromSlash(skill))
	require.NoError(t, err)
	_, rules, ok := strings.Cut(string(text), "\n## Before a call")
	require.True(t, ok)
	exists := map[string]bool{"RowsAffected": true, "Reveal": true} // of database/sql, and of a type that Secret embeds
	for name := range exportedAPI(t) {
		exists[name[strings.LastIndexByte(name, '.')+1:]] = true
	}
	found := regexp.MustCompile("`(?:\\w+\\.)*([A-Z][a-z]\\w*)[`({]").FindAllStringSubmatch(rules, -1)
	require.Greater(t, len(found), 20)
	for _, name := range found {
		assert.True(t, exists[name[1]], "%s is not exported", name[1])
	}
}

// exportedAPI returns the names in api/next.txt, such as gateway.New and
// gateway.Client.Transactions.
func exportedAPI(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash("api/next.txt"))
	require.NoError(t, err)
	names := make(map[string]bool)
	for pattern, format := range map[string]string{
		`(?m)^pkg (\w+), (?:func|const|var|type) (\w+)`:          "%s.%s",
		`(?m)^pkg (\w+), type (\w+) (?:struct|interface), (\w+)`: "%s.%s.%s",
		`(?m)^pkg (\w+), method \(\*?(\w+)(?:\[\w+\])?\) (\w+)`:  "%s.%s.%s",
	} {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			parts := make([]any, 0, len(found))
			for _, part := range found[1:] {
				parts = append(parts, part)
			}
			names[fmt.Sprintf(format, parts...)] = true
		}
	}
	require.True(t, names["gateway.Client.Transactions"])
	return names
}
