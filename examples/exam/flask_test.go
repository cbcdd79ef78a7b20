package exam_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/exam/outside"
)

// The hooks that the guide shows for Flask pass a part of the exam: each hook, and a
// restart. CI runs the whole exam.
func TestTheFlaskShopPassesTheExam(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import flask").Run() != nil {
		t.Skip("Python with Flask is not installed: .ci/run examples installs it")
	}
	only := strings.Split("plain,lost-response,killed-after-create,duplicate,forged,webhook-lost,partial-refunds", ",")
	scenarios, err := exam.Scenarios(only, nil)
	require.NoError(t, err)
	result, err := outside.Run(t.Context(), outside.Config{
		Command: []string{python, "-B", "python/flask_shop.py"}, Path: "/webhooks", Scenarios: scenarios, Seed: 1,
		Budget: 5 * time.Minute, Grace: time.Second, Hang: time.Second, StartTimeout: time.Minute,
	})
	require.NoError(t, err)
	for _, o := range result.Outcomes {
		assert.Equal(t, exam.Passed, o.Status, "%s: %s %v\n%v", o.Scenario, o.Why, o.Failures, result.Output)
	}
}
