package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheSessionOfTheGuide runs the session with curl of docs/mockgateway.md,
// and compares what it prints with what the guide shows: "…" there is anything.
func TestTheSessionOfTheGuide(t *testing.T) {
	t.Parallel()
	for _, tool := range [...]string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("the session is one of bash and curl, and this machine has no " + tool)
		}
	}
	guide, err := os.ReadFile("../../../docs/mockgateway.md")
	require.NoError(t, err)
	_, session, _ := strings.Cut(string(guide), "## A session with curl")
	session, _, _ = strings.Cut(session, "\n## ")
	blocks := regexp.MustCompile("(?s)```(sh|json)\n(.*?)```").FindAllStringSubmatch(session, -1)
	require.Greater(t, len(blocks), 10)

	hook := newServer(t, func(http.ResponseWriter, *http.Request) {})
	g := start(t, "-clock", "manual", "-start", "2027-01-04T12:00:00Z")
	const mark = "--- end of block ---"
	var script strings.Builder
	script.WriteString("shopt -s expand_aliases\n")
	var shown []string
	for _, b := range blocks {
		if b[1] == "json" {
			shown[len(shown)-1] = b[2]
			continue
		}
		text := strings.ReplaceAll(b[2], "http://127.0.0.1:4010", g.base)
		text = strings.ReplaceAll(text, "http://127.0.0.1:9000/webhooks", hook)
		script.WriteString(text + "echo; echo '" + mark + "'\n")
		shown = append(shown, "")
	}
	out, err := exec.Command("bash", "-c", script.String()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	printed := strings.Split(string(out), mark)
	require.Len(t, printed, len(shown)+1, "%s", out)
	for i, want := range shown {
		got := strings.Join(strings.Fields(printed[i]), "")
		for _, piece := range strings.FieldsFunc(want, func(r rune) bool { return r == '…' || r == '\n' }) {
			piece = strings.Join(strings.Fields(piece), "")
			_, after, found := strings.Cut(got, piece)
			require.True(t, found, "block %d: %s is not in the rest: %s", i+1, piece, got)
			got = after
		}
	}
}

// TestTheGuideListsEachCall holds the guide's table to what the control plane
// says it has.
func TestTheGuideListsEachCall(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/mockgateway.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `([A-Z]+) (/__mock/[^`]*)` \\| [^|]+ \\| `curl [^`]+` \\|$").FindAllStringSubmatch(string(guide), -1)
	require.Greater(t, len(rows), 40)
	g := start(t)
	for _, row := range rows {
		path := strings.ReplaceAll(row[2], "{id}", "nothing")
		status, v, err := g.call(row[1], path, "")
		if row[2] == "/__mock/metrics" {
			continue // no JSON
		}
		require.NoError(t, err, row[0])
		assert.NotEqual(t, "UNKNOWN_PATH", v["code"], row[0])
		assert.NotEqual(t, http.StatusMethodNotAllowed, status, row[0])
		assert.NotEqual(t, http.StatusInternalServerError, status, fmt.Sprint(row[0], v))
	}
}
