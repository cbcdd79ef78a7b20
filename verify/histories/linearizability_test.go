package histories_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/storm"
	"github.com/gateway-go/gateway/mockserver"
)

// Eight callers work on the same two charges and two payouts. Whichever
// responses are lost, there must be an order of the operations, each between
// its call and its response, in which the model gives the same responses.
//
//	HISTORIES=1000 go test -run TestHistoriesAreLinearizable -v ./histories
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	n := storm.Number(t, "HISTORIES", 12)
	var operations, unknown atomic.Int64
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		eachSetup(t, func(t *testing.T, s setup) {
			t.Helper()
			for seed := range uint64(n) {
				h := record(t, s, seed, 8, 30)
				operations.Add(int64(len(h)))
				unknown.Add(count(h, func(o output) bool { return o.Unknown }))
				explained(t, s, h)
			}
		})
	})
	t.Cleanup(func() {
		fmt.Printf("%s: %d histories of %d operations, %d with an unknown outcome\n", t.Name(), n*len(setups), operations.Load(), unknown.Load())
	})
}

// explained fails the test if no order of the operations explains the history.
func explained(t *testing.T, s setup, history []porcupine.Operation) {
	t.Helper()
	model := modelOf(s.dialect())
	result, info := porcupine.CheckOperationsVerbose(model, history, time.Minute)
	if !assert.Equal(t, porcupine.Ok, result, "no order explains the history") {
		file := filepath.Join(os.TempDir(), "history.html")
		require.NoError(t, porcupine.VisualizePath(model, info, file))
		t.Fatal("see", file)
	}
}

// modelOf adapts the model to the checker: one reference at a time; if a
// response was lost, the operation may or may not have been applied.
func modelOf(d dialect) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			var refs []string
			parts := make(map[string][]porcupine.Operation)
			for _, op := range history {
				ref := op.Input.(input).Ref
				if parts[ref] == nil {
					refs = append(refs, ref)
				}
				parts[ref] = append(parts[ref], op)
			}
			slices.Sort(refs)
			var all [][]porcupine.Operation
			for _, ref := range refs {
				all = append(all, parts[ref])
			}
			return all
		},
		Init: func() []any { return []any{state{}} },
		Step: func(s, in, out any) []any {
			next, want := d.step(isPayout(in.(input).Ref), s.(state), in.(input))
			switch {
			case out.(output).Unknown:
				return []any{s, next}
			case out.(output) == want:
				return []any{next}
			default:
				return nil
			}
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%v -> %+v", in, out) },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
	return m.ToModel()
}

func count(history []porcupine.Operation, is func(output) bool) (n int64) {
	for _, op := range history {
		if is(op.Output.(output)) {
			n++
		}
	}
	return n
}

// record runs callers that perform random operations, and returns when each
// operation began and ended.
func record(t *testing.T, s setup, seed uint64, callers, each int) []porcupine.Operation {
	t.Helper()
	sh := open(t, s)
	require.NoError(t, sh.gw.Faults.Add(
		mockserver.LoseResponse().Probability(0.05),
		mockserver.ResetBefore().Probability(0.03),
		mockserver.Truncate().Probability(0.03),
		mockserver.Status(500).Probability(0.03),
		mockserver.Status(500).Applied().Probability(0.03),
		mockserver.Status(429).Probability(0.02),
	))
	var clock atomic.Int64
	histories := make([][]porcupine.Operation, callers)
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(caller)))
			for range each {
				in := randomOperation(random)
				if in.Do != "create" && sh.id(in.Ref) == "" {
					in.Do, in.Amount = "create", 0
				}
				op := porcupine.Operation{ClientId: caller, Input: in, Call: clock.Add(1)}
				op.Output = sh.do(t.Context(), in)
				op.Return = clock.Add(1)
				histories[caller] = append(histories[caller], op)
			}
		})
	}
	all.Wait()
	return ended(slices.Concat(histories...), clock.Add(1), callers)
}

// ended lets operations with an unknown outcome take effect until the end.
// Each gets its own caller, since a caller has one operation at a time.
func ended(history []porcupine.Operation, end int64, callers int) []porcupine.Operation {
	for i := range history {
		if op := &history[i]; op.Output.(output).Unknown {
			op.Return = end
			op.ClientId = callers
			callers++
		}
	}
	return history
}

var operationsOf = map[bool][]string{
	false: {"create", "read", "read", "pay", "cancel", "refund", "refund", "refund"},
	true:  {"create", "read", "read", "analyse", "process", "settle", "fail", "cancel"},
}

func randomOperation(random *rand.Rand) input {
	ref := [...]string{"charge 1", "charge 2", "payout 1", "payout 2"}[random.IntN(4)]
	dos := operationsOf[isPayout(ref)]
	in := input{Ref: ref, Do: dos[random.IntN(len(dos))]}
	if in.Do == "refund" {
		in.Amount = [...]int64{1, 500, 700, 1990, 0}[random.IntN(5)]
	}
	return in
}

// The check must be able to fail: no order explains a gateway that applies a refund twice,
// loses one, or accepts a reference twice.
func TestHistoriesOfAFaultyGatewayAreRejected(t *testing.T) {
	t.Parallel()
	first := []porcupine.Operation{
		{Input: input{Ref: "charge 1", Do: "create"}, Output: output{OK: true, Status: "pending"}, Call: 1, Return: 2},
		{Input: input{Ref: "charge 1", Do: "pay"}, Output: output{OK: true}, Call: 3, Return: 4},
	}
	for name, rest := range map[string][]porcupine.Operation{
		"a refund is applied twice": {
			{Input: input{Ref: "charge 1", Do: "refund", Amount: 500}, Output: output{OK: true, Left: 1490}, Call: 5, Return: 6},
			{Input: input{Ref: "charge 1", Do: "read"}, Output: output{OK: true, Status: "partially_refunded", Refunded: 1000}, Call: 7, Return: 8},
		},
		"two full refunds": {
			{Input: input{Ref: "charge 1", Do: "refund"}, Output: output{OK: true}, Call: 5, Return: 8},
			{ClientId: 1, Input: input{Ref: "charge 1", Do: "refund"}, Output: output{OK: true}, Call: 6, Return: 7},
		},
		"a stale read": {
			{Input: input{Ref: "charge 1", Do: "read"}, Output: output{OK: true, Status: "pending"}, Call: 5, Return: 6},
		},
		"a reference is accepted twice": {
			{Input: input{Ref: "charge 1", Do: "create"}, Output: output{OK: true, Status: "pending"}, Call: 5, Return: 6},
		},
		"a rejected operation is applied": {
			{Input: input{Ref: "charge 1", Do: "refund", Amount: 5000}, Output: rejected, Call: 5, Return: 6},
			{Input: input{Ref: "charge 1", Do: "read"}, Output: output{OK: true, Status: "refunded", Refunded: 1990}, Call: 7, Return: 8},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := porcupine.CheckOperationsTimeout(modelOf(dialect{}), slices.Concat(first, rest), time.Minute)
			assert.Equal(t, porcupine.Illegal, result)
		})
	}
}
