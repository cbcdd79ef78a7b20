package testplane_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/mcp/testplane"
	"github.com/gateway-go/gateway/examples/exam/goshop/shop"
)

// actAs is the variable that makes the test's binary a merchant's program. The exam sets
// EXAM for the program that it starts.
const actAs = "EXAM"

// exitAs runs a merchant's program in place of the tests, if role is not empty.
func exitAs(role string) bool {
	if role == "" {
		return false
	}
	if len(os.Args) < 2 {
		fmt.Println(instruction, os.Getenv("GATEWAY_API_KEY"))
		os.Exit(1) // a program that doesn't start
	}
	if err := sell(os.Args[1]); err != nil {
		fmt.Println(err)
	}
	return true
}

// sell serves the example shop, which makes a mistake.
func sell(mistake string) error {
	client, err := gateway.New(os.Getenv("GATEWAY_BASE_URL"), gateway.BearerToken(os.Getenv("GATEWAY_API_KEY")), shop.ClientOptions()...)
	if err != nil {
		return err
	}
	store, err := shop.OpenFile(filepath.Join(os.Getenv("EXAM_DATA_DIR"), "shop.jsonl"))
	if err != nil {
		return err
	}
	s, err := shop.New(store, client, gateway.NewSecret(os.Getenv("GATEWAY_WEBHOOK_SECRET")), shop.Mistake(mistake))
	if err != nil {
		return err
	}
	return http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), s.Handler(true))
}

func examined(args ...string) setting {
	return func(c *testplane.Config) { c.Exam.Command = append([]string{os.Args[0]}, args...) }
}

func TestTheExamOfAProgram(t *testing.T) {
	t.Parallel()
	a := serve(t, "2026-07-28", examined("no_dedup"))
	out := a.do("run_exam", object{"only": []string{"plain", "duplicate"}, "seed": 1})
	assert.InEpsilon(t, 1, out["passed"], 0, out)
	assert.InEpsilon(t, 1, out["failed"], 0, out)
	assert.InEpsilon(t, 1, out["seed"], 0)
	failed := at(out, "scenarios", 1)
	assert.Equal(t, "duplicate", at(failed, "scenario"))
	assert.Equal(t, "C5", at(failed, "failures", 0, "claim"))
	assert.Equal(t, "goods leave once", at(failed, "failures", 0, "means"))
	assert.Contains(t, out["do_next"], "loses money")
	assert.Contains(t, a.fails("run_exam", object{"only": []string{"nothing"}})["detail"], "nothing")
}

func TestAProgramThatDoesNotStart(t *testing.T) {
	t.Parallel()
	a := serve(t, "2026-07-28", examined())
	out, failed := a.try("run_exam", object{"only": []string{"plain"}})
	require.True(t, failed)
	assert.Equal(t, "PROGRAM_NOT_STARTED", at(out, "error", "code"))
	assert.Contains(t, fmt.Sprint(out["untrusted"]), instruction)
	for _, result := range *a.seen {
		assert.NotContains(t, result, "sk_test_exam_")
		assert.NotContains(t, trustedPart(t, result), instruction)
	}
}
