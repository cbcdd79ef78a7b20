package main

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The guide and the help list the same commands, and each flag of serve is in one group.
func TestTheGuideAndTheHelpListEveryCommand(t *testing.T) {
	t.Parallel()
	var rows []string
	for line := range strings.Lines(guideSection(t, "mockgateway.md", "Commands")) {
		if strings.HasPrefix(line, "| `") && !strings.HasPrefix(line, "| `mockgateway …`") {
			rows = append(rows, strings.TrimSuffix(line, "\n"))
		}
	}
	code, help, _ := mockgateway(t, "", "help")
	assert.Zero(t, code)
	var expected []string
	for _, c := range commands() {
		expected = append(expected, "| `"+strings.ReplaceAll(c.usage(), "|", `\|`)+"` | "+c.about+" |")
		assert.Regexp(t, `(?m)^  `+c.name+` .*`+plainText(c.about)[:20], help)
		code, own, errs := mockgateway(t, "", "help", c.name)
		assert.Zero(t, code, errs)
		assert.Contains(t, own, "mockgateway")
		if c.client != nil {
			code, again, _ := mockgateway(t, "", c.name, "-h")
			assert.Zero(t, code)
			assert.Equal(t, own, again)
			for _, example := range c.examples {
				assert.Contains(t, own, example)
			}
		}
	}
	assert.Equal(t, expected, rows)

	var all, grouped []string
	(&flags{from: map[string]string{}}).set().VisitAll(func(f *flag.Flag) { all = append(all, f.Name) })
	for _, group := range flagGroups() {
		grouped = append(grouped, group[1:]...)
	}
	assert.ElementsMatch(t, all, grouped)
}

// Completion scripts offer every command, and a command's own flags and values.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, script, _ := mockgateway(t, "", "completion", shell)
		assert.Zero(t, code)
		for _, c := range commands() {
			assert.Contains(t, script, c.name, shell)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		file := t.TempDir() + "/script"
		require.NoError(t, os.WriteFile(file, []byte(script), 0o600))
		out, err := exec.CommandContext(t.Context(), path, "-n", file).CombinedOutput()
		require.NoError(t, err, "%s: %s", shell, out)
		if shell == "bash" {
			assert.Equal(t, "pay\n-probability\ntransaction.paid\n", bash(t, file, "pa", "fault -prob", "trigger transaction.pai"))
		}
	}
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}, {"completion", "bash", "zsh"}} {
		code, _, errs := mockgateway(t, "", args...)
		assert.Equal(t, exitUsage, code)
		assert.Contains(t, errs, "bash, zsh or fish")
	}
}

// bash returns how bash completes command lines with a script.
func bash(t *testing.T, script string, lines ...string) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("source " + script + "\n")
	for _, line := range lines {
		text.WriteString("COMP_WORDS=(mockgateway " + line + "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _mockgateway; echo \"${COMPREPLY[*]}\"\n")
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-c", text.String()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}
