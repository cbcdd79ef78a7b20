package gateway_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Code in the guides is copied from a file that is compiled, and run if it is a
// test or an example. The comment above a block names the file:
//
//	<!-- from: examples/first/main.go -->
func TestGuidesShowRealCode(t *testing.T) {
	t.Parallel()
	for _, guide := range guides(t) {
		for _, block := range blocks(t, guide) {
			sources, ok := map[string]string{
				"go":     `^examples/.*\.go$|_test\.go$`,
				"ts":     `^integration/clients/src/.*\.ts$`,
				"python": `^integration/clients/test_.*\.py$|^examples/exam/python/.*\.py$`,
			}[block.language]
			if !ok {
				continue
			}
			require.NotEmpty(t, block.from, "%s:%d: a block of code needs the line <!-- from: FILE --> above it", guide, block.line)
			assert.Regexp(t, sources, block.from, "%s:%d: only examples and tests are compiled by CI", guide, block.line)
			source, err := os.ReadFile(filepath.FromSlash(block.from))
			require.NoError(t, err, "%s:%d", guide, block.line)
			assert.True(t, containsLines(lines(string(source)), block.text), "%s:%d: %s does not contain this code", guide, block.line, block.from)
		}
	}
}

// Links between the guides point to existing files and headings.
func TestLinksInTheGuidesAreValid(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)
	for _, guide := range append(guides(t), "llms.txt") {
		text, err := os.ReadFile(guide)
		require.NoError(t, err)
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			target := guide
			if found[1] != "" {
				target = filepath.Join(filepath.Dir(guide), found[1])
			}
			if _, err := os.Stat(target); !assert.NoError(t, err, "%s: %s", guide, found[0]) {
				continue
			}
			if found[2] != "" && filepath.Ext(target) == ".md" {
				assert.Contains(t, anchors(t, target), found[2], "%s: %s", guide, found[0])
			}
		}
	}
}

// anchors returns the anchors that code hosts generate for the headings of a
// guide.
func anchors(t *testing.T, guide string) []string {
	t.Helper()
	text, err := os.ReadFile(guide)
	require.NoError(t, err)
	var names []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// Code hosts do not render a sequence diagram if one of its messages or notes
// contains a semicolon, because Mermaid reads that as the end of the line.
func TestSequenceDiagramsInTheGuidesHaveNoSemicolons(t *testing.T) {
	t.Parallel()
	diagrams := 0
	for _, guide := range guides(t) {
		for _, block := range blocks(t, guide) {
			if sequenceDiagram(block) {
				diagrams++
			}
			assert.Empty(t, semicolons(block), "%s:%d: use a comma, or #59;", guide, block.line)
		}
	}
	assert.GreaterOrEqual(t, diagrams, 3)
}

func TestASemicolonInASequenceDiagramIsFound(t *testing.T) {
	t.Parallel()
	for line, broken := range map[string]bool{
		"    A->>B: stored; then acknowledged": true,
		"    Note over A,B: lost; repeat":      true,
		"    A->>B: stored, then acknowledged": false,
		"    A->>B: stored#59; acknowledged":   false,
		"    %% drawn by hand; not generated":  false,
	} {
		diagram := block{language: "mermaid", text: []string{"sequenceDiagram", line}}
		assert.Equal(t, broken, len(semicolons(diagram)) == 1, line)
	}
	assert.Empty(t, semicolons(block{language: "mermaid", text: []string{"flowchart TD;", "A-->B;"}}))
}

// semicolons returns the lines of a sequence diagram that contain a semicolon
// outside of an entity such as #59; and outside of a comment.
func semicolons(b block) []string {
	if !sequenceDiagram(b) {
		return nil
	}
	entity := regexp.MustCompile(`#\w+;`)
	var broken []string
	for _, line := range b.text {
		comment := strings.HasPrefix(strings.TrimSpace(line), "%%")
		if !comment && strings.Contains(entity.ReplaceAllString(line, ""), ";") {
			broken = append(broken, line)
		}
	}
	return broken
}

func sequenceDiagram(b block) bool {
	return b.language == "mermaid" && len(b.text) > 0 && strings.TrimSpace(b.text[0]) == "sequenceDiagram"
}

// Commands in the guides name directories that exist.
func TestCommandsInTheGuidesNameDirectoriesThatExist(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`go (?:run|test|build|install) (?:-\S+ )*(\./[\w./-]+)`)
	for _, guide := range guides(t) {
		text, err := os.ReadFile(guide)
		require.NoError(t, err)
		for _, found := range command.FindAllStringSubmatch(string(text), -1) {
			dir := strings.TrimSuffix(found[1], "/...")
			root := "."
			if strings.HasPrefix(guide, "bench") || strings.HasPrefix(guide, "integration") || nested(guide) {
				root = filepath.Dir(guide)
			}
			_, err := os.Stat(filepath.Join(root, dir))
			assert.NoError(t, err, "%s: %s", guide, found[0])
		}
	}
}

// CI runs the two commands in the README. The tests of mockgateway start the third.
func TestReadmeCommandsAreChecked(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	script, err := os.ReadFile(".ci/run")
	require.NoError(t, err)
	for _, command := range []string{"go run ./examples/quickstart", "go test ./...", "`go run ./mockserver/cmd/mockgateway"} {
		assert.Contains(t, string(readme), "\n"+command)
	}
	assert.Contains(t, string(script), "part_test() { go test ./...; }")
	assert.Contains(t, string(script), "./examples/...")
}

type block struct {
	language, from string
	line           int
	text           []string
}

// blocks returns the fenced blocks of a guide.
func blocks(t *testing.T, guide string) []block {
	t.Helper()
	text, err := os.ReadFile(guide)
	require.NoError(t, err)
	var (
		found   []block
		open    *block
		comment = regexp.MustCompile(`^<!-- from: (\S+) -->$`)
		from    string
	)
	for i, line := range lines(string(text)) {
		switch fence := strings.HasPrefix(strings.TrimSpace(line), "```"); {
		case fence && open == nil:
			open = &block{language: strings.TrimSpace(line)[3:], from: from, line: i + 1}
			from = ""
		case fence:
			found = append(found, *open)
			open = nil
		case open != nil:
			open.text = append(open.text, line)
		default:
			from = ""
			if m := comment.FindStringSubmatch(line); m != nil {
				from = m[1]
			}
		}
	}
	require.Nil(t, open, "%s: a block has no end", guide)
	return found
}

// containsLines reports whether the source contains the lines of the region,
// which may be indented further there.
func containsLines(source, region []string) bool {
	if len(region) == 0 {
		return false
	}
	for start := range source {
		indent, found := strings.CutSuffix(source[start], region[0])
		if !found || strings.Trim(indent, "\t") != "" || start+len(region) > len(source) {
			continue
		}
		same := true
		for i, line := range region {
			if line != "" {
				line = indent + line
			}
			same = same && source[start+i] == line
		}
		if same {
			return true
		}
	}
	return false
}

// guides returns every Markdown file of the project.
func guides(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules" || len(entry.Name()) > 1 && entry.Name()[0] == '.') {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			found = append(found, filepath.ToSlash(path))
		}
		return nil
	})
	require.NoError(t, err)
	require.Contains(t, found, "README.md")
	return found
}

// nested reports whether a guide is in another module.
func nested(guide string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(guide), "go.mod"))
	return err == nil && filepath.Dir(guide) != "."
}

func lines(s string) []string { return strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n") }
