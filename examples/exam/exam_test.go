package exam_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/exam/outside"
	"github.com/gateway-go/gateway/mockserver"
)

// findsIt are the scenarios of which each finds the mistake. README.md lists them.
var findsIt = map[string][]string{
	"no_dedup":           {"duplicate"},
	"memory_dedup":       {"duplicate-after-restart"},
	"new_ref":            {"lost-response"},
	"unsigned":           {"forged"},
	"swallow_errors":     {"gateway-fails-in-webhook"},
	"no_amount_check":    {"reference-taken"},
	"late_overwrites":    {"out-of-order"},
	"timeout_is_failure": {"lost-response", "hang"},
	"refund_repeated":    {"refund-response-lost"},
	"any_refund_is_full": {"partial-refunds"},
	"acks_unknown_order": {"paid-before-response", "lost-response"},
	"check_then_act":     {"duplicates-at-once"},
	"chargeback_ignored": {"chargeback"},
	"float_cents":        {"cents"},
	"double_click":       {"double-click", "killed-after-create"},
}

// examine runs scenarios against a shop.
func examine(t *testing.T, command []string, mistake string, seed uint64, dialect mockserver.Dialect, only ...string) *exam.Result {
	t.Helper()
	list, err := exam.Scenarios(only, nil)
	require.NoError(t, err)
	result, err := outside.Run(t.Context(), outside.Config{
		Command: command, Path: "/webhooks", Scenarios: list, Seed: seed, Options: []mockserver.Option{mockserver.WithDialect(dialect)},
		Env:    map[string]string{"EXAM_MISTAKE": mistake},
		Budget: 10 * time.Minute, Grace: 3 * time.Second, Hang: 3 * time.Second, StartTimeout: time.Minute,
	})
	require.NoError(t, err)
	return result
}

// TestEachMistakeIsFoundByItsScenario examines a shop that makes it.
func TestEachMistakeIsFoundByItsScenario(t *testing.T) {
	t.Parallel()
	require.Len(t, findsIt, len(mistakes))
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, p := range programs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			command := p.command(t)
			for _, mistake := range mistakes {
				t.Run(mistake, func(t *testing.T) {
					t.Parallel()
					result := examine(t, command, mistake, 1, mockserver.Document, findsIt[mistake]...)
					for _, o := range result.Outcomes {
						assert.Equal(t, exam.Failed, o.Status, "%s did not find it: %s", o.Scenario, o.Why)
						assert.Contains(t, string(readme), "`"+o.Scenario+"`")
					}
				})
			}
		})
	}
}

// TestCorrectShopsPass runs whole exams of every shop, as many as EXAMS says, in both
// dialects by turns. By default the Go shop sits a few scenarios.
func TestCorrectShopsPass(t *testing.T) {
	t.Parallel()
	exams, err := strconv.Atoi(os.Getenv("EXAMS"))
	var only []string
	if err != nil {
		exams, only = 1, []string{"plain", "cents", "lost-response", "killed-in-webhook", "refund-response-lost", "payout-killed"}
	}
	for _, p := range programs() {
		if p.name != "go" && only != nil {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			command := p.command(t)
			for i := range exams {
				result := examine(t, command, "", uint64(i), mockserver.Dialect(i%2), only...)
				for _, o := range result.Outcomes {
					offered := o.Status != exam.Skipped || strings.HasSuffix(o.Why, "is not offered") || strings.HasSuffix(o.Why, "in this dialect")
					assert.Empty(t, o.Failures, "exam %d, %s: %v\nThe shop printed:\n%s", i, o.Scenario, o.Exchange, result.Output)
					assert.True(t, offered && o.Status != exam.NotRun, "exam %d, %s was %s: %s", i, o.Scenario, o.Status, o.Why)
				}
				t.Logf("exam %d: %d scenarios passed, %d were skipped, %.1f s", i, result.Count(exam.Passed), result.Count(exam.Skipped), result.Took.Seconds())
			}
		})
	}
}
