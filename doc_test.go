package gateway_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every code block in a package's documentation is a copy of code that is compiled
// and run.
func TestPackageDocumentationShowsCodeThatRuns(t *testing.T) {
	t.Parallel()
	for manual, shown := range map[string]struct {
		from   string
		blocks int // minimum number of blocks
	}{
		"doc.go":                       {"example*_test.go", 7},
		"webhook/doc.go":               {"webhook/example*_test.go", 1},
		"webhook/sqlstore/sqlstore.go": {"integration/webhooks/samples_test.go", 2},
	} {
		examples, err := filepath.Glob(filepath.FromSlash(shown.from))
		require.NoError(t, err)
		var source strings.Builder
		for _, name := range examples {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			source.WriteString(unindented(string(text)))
		}
		blocks := manualBlocks(t, manual)
		assert.GreaterOrEqual(t, len(blocks), shown.blocks, manual)
		for _, block := range blocks {
			assert.True(t, strings.Contains(source.String(), block), "%s: no example contains this block:\n%s", manual, block) //nolint:testifylint // Contains prints it all
		}
	}
}

// manualBlocks returns the indented blocks of the comments in a file.
func manualBlocks(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(file))
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
