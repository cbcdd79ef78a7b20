package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/docs"
	"github.com/gateway-go/gateway/internal/spec"
)

func TestAssumptions(t *testing.T) {
	t.Parallel()
	list := docs.Assumptions()
	seen := make(map[string]bool)
	for _, a := range list {
		assert.NotEmpty(t, a.ID)
		assert.NotEmpty(t, a.Text, a.ID)
		assert.True(t, strings.HasSuffix(a.Text, "."), "%s: a sentence ends with a period", a.ID)
		assert.False(t, seen[a.ID], "two rows are called %s", a.ID)
		seen[a.ID] = true
	}
	for _, id := range []string{"list-envelope", "pix-document", "pix-life", "delivery-schedule"} {
		assert.True(t, seen[id], id)
	}
}

// The column "affects" has only words that the page explains, and each of them.
func TestWhoIsAffectedIsExplained(t *testing.T) {
	t.Parallel()
	var explained []string
	for _, found := range regexp.MustCompile(`(?m)^- \*\*(.+)\*\*: `).FindAllStringSubmatch(docs.Markdown(), -1) {
		explained = append(explained, found[1])
	}
	used := make(map[string]bool)
	for _, a := range docs.Assumptions() {
		if a.Affects == "" {
			continue
		}
		for who := range strings.SplitSeq(a.Affects, ", ") {
			assert.Contains(t, explained, who, a.ID)
			used[who] = true
		}
	}
	assert.Len(t, used, len(explained))
}

// Every row of a table is parsed as an assumption, so none contains a stray pipe
// character.
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

// The settings that the rows name exist: options, flags, fields, controls.
func TestSettingsExist(t *testing.T) {
	t.Parallel()
	code := source(t, "../*.go", "../mockserver/*.go", "../webhook/*.go", "../webhook/sqlstore/*.go", "../operations/*.go", "../merchant/*.go")
	flags, members := source(t, "../mockserver/cmd/mockgateway/*.go"), source(t, "../internal/spec/*.go")
	declared := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^(?:func (?:\(.*?\) )?|type |\t)(\w+)[ (,]`).FindAllStringSubmatch(code, -1) {
		declared[found[1]] = true
	}
	named := regexp.MustCompile("`([^`]+)`")
	checked := 0
	for _, a := range docs.Assumptions() {
		settings := named.FindAllStringSubmatch(a.Knob, -1)
		assert.Equal(t, a.Knob == "", settings == nil, "%s: a setting is in backquotes", a.ID)
		for _, found := range settings {
			checked++
			name := found[1]
			if flag, isFlag := strings.CutPrefix(name, "-"); isFlag {
				assert.Contains(t, flags, `"`+flag+`"`, a.ID)
				continue
			}
			if strings.ToLower(name) == name {
				assert.Contains(t, members, `"`+name+`"`, a.ID)
				continue
			}
			path := strings.Split(regexp.MustCompile(`\(.*?\)`).ReplaceAllString(name, ""), ".")
			assert.True(t, declared[path[len(path)-1]], "%s: %s", a.ID, name)
		}
	}
	assert.Greater(t, checked, 50)
}

// The table of members in errors.md is that of the code.
func TestTheTableOfMembers(t *testing.T) {
	t.Parallel()
	quoted := func(paths []string) string {
		if len(paths) == 0 {
			return ""
		}
		return "`" + strings.Join(paths, "`, `") + "`"
	}
	text := source(t, "errors.md")
	for _, m := range spec.ResponseMembers() {
		row := "| " + m.Resource + " | " + quoted(m.Strict) + " | " + quoted(m.Whole) + " |\n"
		assert.Contains(t, text, row)
	}
}

func source(t *testing.T, patterns ...string) string {
	t.Helper()
	var b strings.Builder
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			b.Write(text)
		}
	}
	return b.String()
}

// The pictures of the guides load quickly.
func TestPicturesAreSmall(t *testing.T) {
	t.Parallel()
	pictures, err := filepath.Glob("*.png")
	require.NoError(t, err)
	require.NotEmpty(t, pictures)
	for _, name := range pictures {
		file, err := os.Stat(name)
		require.NoError(t, err)
		assert.Less(t, file.Size(), int64(150<<10), name)
	}
}
