package gateway_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every piece of code in the package's manual stands in an example, which is
// compiled and run.
func TestManualShowsCodeThatRuns(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Glob("example*_test.go")
	require.NoError(t, err)
	var source strings.Builder
	for _, name := range examples {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		source.WriteString(unindented(string(text)))
	}
	blocks := manualBlocks(t)
	assert.GreaterOrEqual(t, len(blocks), 7)
	for _, block := range blocks {
		assert.True(t, strings.Contains(source.String(), block), "no example has this:\n%s", block) //nolint:testifylint // Contains prints it all
	}
}

// manualBlocks returns the indented blocks of the comment in doc.go.
func manualBlocks(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var blocks []string
	var block strings.Builder
	for line := range strings.Lines(string(text)) {
		if code, ok := strings.CutPrefix(line, "//\t"); ok {
			block.WriteString(code)
			continue
		}
		if block.Len() > 0 {
			blocks = append(blocks, unindented(block.String()))
			block.Reset()
		}
	}
	return blocks
}

func unindented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, "\t"))
	}
	return b.String()
}
