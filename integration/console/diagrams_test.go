package console_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const mermaid = "node_modules/mermaid/dist/mermaid.min.js"

// Mermaid draws every diagram of the guides: code hosts show an error in place of one
// that it can't read.
func TestDiagrams(t *testing.T) {
	t.Parallel()
	draw := drawer(t)
	found := diagrams(t)
	assert.Greater(t, len(found), 10)
	for name, source := range found {
		labels, err := draw(name, source)
		if assert.NoError(t, err, name) {
			assert.NotEmpty(t, strings.TrimSpace(labels), name)
		}
	}
}

// A diagram that Mermaid can't read is an error.
func TestABrokenDiagramIsFound(t *testing.T) {
	t.Parallel()
	draw := drawer(t)
	_, err := draw("", "flowchart LR\n    a --> b[an end (that is missing]\n")
	require.ErrorContains(t, err, "Parse error")
	labels, err := draw("", "flowchart LR\n    a[one] --> b[two]\n")
	require.NoError(t, err)
	assert.Contains(t, labels, "one")
}

// drawer opens a page with Mermaid and returns a function that draws a diagram there and
// returns its text.
func drawer(t *testing.T) func(name, source string) (labels string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mermaid.js" {
			http.ServeFile(w, r, mermaid)
			return
		}
		_, _ = fmt.Fprint(w, `<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,"><script src="/mermaid.js"></script><title>Diagram</title><body></body>`)
	}))
	t.Cleanup(server.Close)
	p := open(t, server.URL, device{})
	p.visit("/")
	p.waitFor("window.mermaid !== undefined")
	return func(name, source string) (labels string, err error) {
		drawn := eval[[]string](p, fmt.Sprintf(`mermaid.render("diagram", %s).then((d) => {
			document.body.innerHTML = d.svg;
			document.querySelectorAll("style").forEach((s) => s.remove());
			const labels = document.body.textContent;
			document.body.innerHTML = d.svg;
			return [labels, ""];
		}, (e) => ["", e.message])`, quote(source)))
		if drawn[1] != "" {
			return "", errors.New(drawn[1])
		}
		if name != "" {
			p.shot(strings.ReplaceAll(name, "/", "-"))
		}
		return drawn[0], nil
	}
}

// diagrams returns the Mermaid blocks of all guides by file and number.
func diagrams(t *testing.T) map[string]string {
	t.Helper()
	const root = "../.."
	block := regexp.MustCompile("(?ms)^```mermaid\n(.*?)^```")
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		for i, b := range block.FindAllStringSubmatch(string(text), -1) {
			found[fmt.Sprintf("%s-%d", strings.TrimPrefix(path, root+"/"), i+1)] = b[1]
		}
		return err
	}))
	return found
}
