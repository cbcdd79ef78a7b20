package testplane_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

func readParams(uri string) *mcp.ReadResourceParams { return &mcp.ReadResourceParams{URI: uri} }

func promptParams(name string) *mcp.GetPromptParams { return &mcp.GetPromptParams{Name: name} }

func textOf(t *testing.T, c mcp.Content) string {
	t.Helper()
	text, ok := c.(*mcp.TextContent)
	require.True(t, ok)
	return text.Text
}

func toolsOf(t *testing.T, s *mcp.ClientSession) []*mcp.Tool {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	require.NoError(t, err)
	return list.Tools
}

// A tool is what a model reads of it: names, descriptions and schemas change only with
// their golden file, where a review sees them.
func TestToolsAreAsReviewed(t *testing.T) {
	t.Parallel()
	const folder = "../testdata/tools/test"
	var names []string
	for _, version := range versions() {
		a := serve(t, version)
		names = nil
		for _, tool := range toolsOf(t, a.session) {
			got, err := json.MarshalIndent(tool, "", "  ")
			require.NoError(t, err)
			got = append(got, '\n')
			file := filepath.Join(folder, tool.Name+".json")
			names = append(names, tool.Name+".json")
			if *update {
				require.NoError(t, os.MkdirAll(folder, 0o755))
				require.NoError(t, os.WriteFile(file, got, 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got), "run go test -update, and read the difference")

			assert.False(t, *tool.Annotations.OpenWorldHint, tool.Name)
			assert.NotNil(t, tool.OutputSchema, tool.Name)
			assert.Less(t, len(tool.Description), 900, tool.Name)
		}
	}
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	var present []string
	for _, f := range files {
		present = append(present, f.Name())
	}
	assert.ElementsMatch(t, names, present, "a golden file for each tool, and no other")
}
