// Package examtest examines the examples in their tests. Only tests import it.
package examtest

import (
	"maps"
	"os"
	"sync"
	"sync/atomic"
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
	PassInParts(t, []outside.Config{cfg}, least, skip...)
}

// PassInParts is [Pass] with the scenarios dealt out to several instances of the program,
// which are examined at the same time: an exam mostly waits until the program is quiet.
func PassInParts(t *testing.T, parts []outside.Config, least int, skip ...string) {
	t.Helper()
	all, err := exam.Scenarios(nil, skip)
	require.NoError(t, err)
	var running sync.WaitGroup
	var passed, ended atomic.Int64
	for i, cfg := range parts {
		for n := i; n < len(all); n += len(parts) {
			cfg.Scenarios = append(cfg.Scenarios, all[n])
		}
		running.Go(func() {
			result := examine(t, cfg)
			if result != nil {
				passed.Add(int64(result.Count(exam.Passed)))
				ended.Add(int64(len(result.Outcomes) - result.Count(exam.NotRun)))
			}
		})
	}
	running.Wait()
	assert.EqualValues(t, len(all), ended.Load(), "every scenario is run")
	assert.GreaterOrEqual(t, passed.Load(), int64(least))
}

// examine returns the result of an exam, or nil if there is none.
func examine(t *testing.T, cfg outside.Config) *exam.Result {
	t.Helper()
	if cfg.Command == nil && cfg.URL == "" {
		cfg.Command = []string{os.Args[0]}
		env := map[string]string{runAsProgram: "1"}
		maps.Copy(env, cfg.Env)
		cfg.Env = env
	}
	cfg.Seed, cfg.Budget, cfg.StartTimeout = 1, 10*time.Minute, time.Minute
	failed := false
	cfg.Ended = func(o exam.Outcome) {
		for _, f := range o.Failures {
			failed = true
			t.Errorf("%s: %s: %s\n%v\n%v", o.Scenario, f.Claim, f.Text, o.Orders, o.Exchange)
		}
		t.Log(o.Scenario, o.Status, o.Why, o.Right, o.Warnings)
	}
	result, err := outside.Run(t.Context(), cfg)
	if !assert.NoError(t, err) {
		return nil
	}
	if failed {
		t.Log(result.Output)
	}
	return result
}
