package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// TestTheSessionOfTheGuide runs the session with curl of docs/mockgateway.md.
func TestTheSessionOfTheGuide(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl")
	hook := newServer(t, func(http.ResponseWriter, *http.Request) {})
	g := start(t, "-clock", "manual", "-start", "2027-01-04T12:00:00Z")
	section := guideSection(t, "mockgateway.md", "A session with curl")
	section = strings.ReplaceAll(section, "http://127.0.0.1:4010", g.base)
	section = strings.ReplaceAll(section, "http://127.0.0.1:9000/webhooks", hook)
	runSession(t, t.TempDir(), section, "shopt -s expand_aliases\n")
}

// TestTheSessionForOtherLanguages runs the session in docs/testing.md, which
// starts its own gateway.
func TestTheSessionForOtherLanguages(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl", "openssl")
	hook := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || webhook.Verify(r.Header, body, gateway.NewSecret("whsec_test_1")) != nil {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	section := guideSection(t, "testing.md", "Other languages")
	section = strings.ReplaceAll(section, "http://127.0.0.1:9000/webhooks", hook)
	_, signature := webhook.Sign(gateway.NewSecret("whsec_test_1"), time.Unix(1798761600, 0), []byte(`{"id":"evt_1"}`))
	assert.Contains(t, section, "… "+strings.TrimPrefix(signature, "sha256="), "the signature of the example")

	self, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "mockgateway")))
	dir := t.TempDir()
	stale := []byte("127.0.0.1:1\n") // of an earlier run, whose gateway was killed
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gateway.addr"), stale, 0o600))
	runSession(t, dir, section, `trap 'kill $! 2>/dev/null' EXIT`+"\n",
		asMain, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func needs(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("the session needs a tool that this machine doesn't have: " + tool)
		}
	}
}

func guideSection(t *testing.T, guide, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/" + guide)
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// runSession runs the shell blocks of a section, one after the other in one
// shell, and compares what each prints with the block that follows it: "…"
// matches anything.
func runSession(t *testing.T, dir, section, before string, env ...string) {
	t.Helper()
	blocks := regexp.MustCompile("(?s)```(sh|json|text)\n(.*?)```").FindAllStringSubmatch(section, -1)
	require.Greater(t, len(blocks), 10)
	const mark = "--- end of block ---"
	var script strings.Builder
	script.WriteString(before)
	var shown []string
	for _, b := range blocks {
		if b[1] != "sh" {
			shown[len(shown)-1] = b[2]
			continue
		}
		script.WriteString(b[2] + "echo; echo '" + mark + "'\n")
		shown = append(shown, "")
	}
	cmd := exec.Command("bash", "-c", script.String())
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
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
