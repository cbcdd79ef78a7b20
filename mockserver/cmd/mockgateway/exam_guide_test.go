package main

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The guide lists every flag of the exam, with the defaults of the durations.
func TestTheExamGuideListsEveryFlag(t *testing.T) {
	t.Parallel()
	section := guideSection(t, "exam.md", "Flags")
	var listed []string
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \|.*$`).FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`-([a-z-]+)`").FindAllStringSubmatch(row[1], -1) {
			listed = append(listed, name[1])
		}
	}
	var f examFlags
	var flags []string
	set := f.set()
	set.VisitAll(func(f *flag.Flag) { flags = append(flags, f.Name) })
	assert.ElementsMatch(t, flags, listed)

	var defaults []string
	for _, name := range []string{"budget", "grace", "hang", "start-timeout"} {
		defaults = append(defaults, strings.TrimSuffix(set.Lookup(name).DefValue, "m0s"))
	}
	defaults[0] += "m"
	assert.Contains(t, section, strings.Join(defaults, ", "))
}

// Every line of the failure that the guide shows is printed by the exam, except for the
// ids of transactions.
func TestTheFailureOfTheExamGuide(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "exam", "-only", "duplicate", "-seed", "1", "--", "python3", "shop.py", "--mistake", "no_dedup")
	cmd.Dir = "../../../examples/exam/python"
	cmd.Env = append(os.Environ(), asMain, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	assert.Equal(t, 1, exit.ExitCode())
	shown := regexp.MustCompile("(?s)```text\n(.*?)```").FindStringSubmatch(guideSection(t, "exam.md", "3. Read a failure"))
	require.NotNil(t, shown)
	printed := spaced(string(out))
	for line := range strings.Lines(shown[1]) { // a read may also come earlier: the shop reads when it gets an event
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(spaced(line))), "…", ".*?")
		assert.Regexp(t, pattern, printed)
	}
}

// spaced collapses white space: the width of a column depends on the ids in it.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }
