package gateway_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheReadmeExplainsEverySentinelOnce(t *testing.T) {
	t.Parallel()
	var explained []string
	for _, row := range tableRows(t, "README.md", "## Errors") {
		explained = append(explained, regexp.MustCompile(`\bErr[A-Z]\w+`).FindAllString(row[0], -1)...)
		for _, cell := range row {
			assert.NotEmpty(t, cell, row[0])
		}
	}
	assert.ElementsMatch(t, exportedSentinels(t), explained)
}

// exportedSentinels returns the constants of type sentinelError.
func exportedSentinels(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "sentinelError" {
			for _, name := range spec.Names {
				names = append(names, name.Name)
			}
		}
		return true
	})
	require.NotEmpty(t, names)
	return names
}

func TestTheReadmeListsThePlatformsThatCIRuns(t *testing.T) {
	t.Parallel()
	var table []string
	for _, row := range tableRows(t, "README.md", "## Supported versions") {
		table = append(table, strings.Join(row, "|"))
	}
	supported := strings.Join(table, "\n")
	language := found(t, "go.mod", `(?m)^go (1\.\d+)`)
	next := found(t, ".ci/run", `(?m)^readonly next_go=go(1\.\d+)`)
	assert.Contains(t, supported, "Go|"+language+", "+next+"|")
	for platform := range strings.FieldsSeq(found(t, ".ci/run", `(?m)^readonly platforms=\((.*)\)`)) {
		assert.Contains(t, supported, platform)
	}
	for module, file := range map[string]string{
		"modernc.org/sqlite": "integration/go.mod", "github.com/riverqueue/river": "contrib/river/go.mod", "github.com/jackc/pgx/v5": "contrib/river/go.mod",
	} {
		assert.Contains(t, supported, found(t, file, `(?m)^\s`+regexp.QuoteMeta(module)+` (v\S+)`), module)
	}
}

func TestTheReadmeComparesMeasuredFigures(t *testing.T) {
	t.Parallel()
	bench, err := os.ReadFile(filepath.FromSlash("bench/README.md"))
	require.NoError(t, err)
	measured := strings.ReplaceAll(string(bench), ",", "")
	figures := 0
	for _, row := range tableRows(t, "README.md", "## Compared") {
		for _, cell := range row[1:] {
			for _, figure := range regexp.MustCompile(`^[\d,.]+( µs| B)?$`).FindAllString(cell, -1) {
				if !strings.Contains(measured, strings.ReplaceAll(figure, ",", "")) {
					t.Errorf("%s: bench/README.md has no %s", row[0], figure)
				}
				figures++
			}
		}
	}
	assert.GreaterOrEqual(t, figures, 6)
}

func TestTheBadgesAreCorrect(t *testing.T) {
	t.Parallel()
	assert.Equal(t, found(t, "go.mod", `(?m)^go (1\.\d+)`), found(t, "docs/badge-go.svg", `≥ ([\d.]+)`))
	assert.Equal(t, found(t, "LICENSE", `^(\w+) License`), found(t, "docs/badge-license.svg", `<title>(\w+) license`))
}

// tableRows returns the cells of the tables below a heading, without their header rows.
func tableRows(t *testing.T, file, heading string) [][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(text), "\n"+heading)
	require.True(t, ok, "%s has no section %q", file, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	var rows [][]string
	all := lines(section)
	for i, line := range all {
		head := i+1 < len(all) && strings.HasPrefix(all[i+1], "|---")
		if !strings.HasPrefix(line, "| ") || head {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	require.NotEmpty(t, rows, heading)
	return rows
}

// found returns the match of a pattern's first group in a file.
func found(t *testing.T, file, pattern string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(file))
	require.NoError(t, err)
	match := regexp.MustCompile(pattern).FindSubmatch(text)
	require.NotNil(t, match, "%s has no %s", file, pattern)
	return string(match[1])
}
