package main

import (
	"os"
	"testing"
	"time"

	"github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/exam/outside"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runAsShop makes this test binary the program of an exam.
const runAsShop = "RUN_AS_SHOP"

func TestMain(m *testing.M) {
	if os.Getenv(runAsShop) == "1" {
		os.Args = os.Args[:1]
		main()
		return
	}
	os.Exit(m.Run())
}

// The exam kills the process and starts it again; the orders are in a SQLite file. The
// shop sells nothing by voucher.
func TestTheShopPassesTheExam(t *testing.T) {
	t.Parallel()
	scenarios, err := exam.Scenarios(nil, []string{"voucher-paid-late"})
	require.NoError(t, err)
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			result, err := outside.Run(t.Context(), outside.Config{
				Command: []string{os.Args[0]}, Path: "/webhooks", Options: []mockserver.Option{mockserver.WithDialect(dialect)},
				Env:       map[string]string{runAsShop: "1"},
				Scenarios: scenarios, Seed: 1, Budget: 10 * time.Minute, Hang: 2 * time.Second, StartTimeout: time.Minute,
				Ended: func(o exam.Outcome) {
					for _, f := range o.Failures {
						t.Errorf("%s: %s: %s\n%v\n%v", o.Scenario, f.Claim, f.Text, o.Orders, o.Exchange)
					}
					t.Log(o.Scenario, o.Status, o.Why, o.Right, o.Warnings)
				},
			})
			require.NoError(t, err)
			if t.Failed() {
				t.Log(result.Output)
			}
			assert.Zero(t, result.Count(exam.NotRun))
			assert.GreaterOrEqual(t, result.Count(exam.Passed), 35)
		})
	}
}
