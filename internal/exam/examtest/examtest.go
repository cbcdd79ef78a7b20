// Package examtest examines the examples in their tests. Only tests import it.
package examtest

import (
	"maps"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/exam/outside"
)

// runAsProgram makes the test binary the program.
const runAsProgram = "RUN_AS_PROGRAM"

// Main is the TestMain of a package whose test binary is also the program that Pass
// examines.
func Main(m *testing.M, program func()) {
	if os.Getenv(runAsProgram) == "1" {
		os.Args = os.Args[:1]
		program()
		return
	}
	os.Exit(m.Run())
}

// Pass examines a program, the test binary unless cfg has a command or an address, and
// fails the test if a scenario fails or is not run, or fewer than least pass. The program
// does not offer the scenarios in skip.
func Pass(t *testing.T, cfg outside.Config, least int, skip ...string) {
	t.Helper()
	var err error
	cfg.Scenarios, err = exam.Scenarios(nil, skip)
	require.NoError(t, err)
	if cfg.Command == nil && cfg.URL == "" {
		cfg.Command = []string{os.Args[0]}
		env := map[string]string{runAsProgram: "1"}
		maps.Copy(env, cfg.Env)
		cfg.Env = env
	}
	cfg.Seed, cfg.Budget, cfg.StartTimeout = 1, 10*time.Minute, time.Minute
	cfg.Ended = func(o exam.Outcome) {
		for _, f := range o.Failures {
			t.Errorf("%s: %s: %s\n%v\n%v", o.Scenario, f.Claim, f.Text, o.Orders, o.Exchange)
		}
		t.Log(o.Scenario, o.Status, o.Why, o.Right, o.Warnings)
	}
	result, err := outside.Run(t.Context(), cfg)
	require.NoError(t, err)
	if t.Failed() {
		t.Log(result.Output)
	}
	assert.Zero(t, result.Count(exam.NotRun))
	assert.GreaterOrEqual(t, result.Count(exam.Passed), least)
}
